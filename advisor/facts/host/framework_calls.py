"""Host time of the framework's operators, from a table of their calls: what the host was in where no timeline tells
when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.recording.limits import section
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.trace import COPIES_BACK

if TYPE_CHECKING:
    import pandas as pd

_BOTH = "run rank"
_NEEDS = "framework_operators"

KINDS = (
    kind("framework.longest_name", "text", _BOTH, "operator of the framework in which the host is longest",
         needs=_NEEDS),
    kind(
        "framework.longest_us",
        "us",
        _BOTH,
        "host time per step in it",
        formula="Σ Host Self Duration: without what the operators take that it calls; where no timeline is there, of "
        "operators that take no longer than what was recorded",
        needs=_NEEDS,
    ),
    kind("framework.longest_count", "count", _BOTH, "calls of it per step", needs=_NEEDS),
    kind("framework.longest_shapes", "text", _BOTH, "input shapes of the calls that take most of it", needs=_NEEDS),
    kind("framework.reads_us", "us", _BOTH, "host time per step in reading single values back from the device",
         formula="Σ Host Self Duration of aten::_local_scalar_dense, which .item(), conditions and prints call",
         needs=_NEEDS),
    kind("framework.reads_count", "count", _BOTH, "such reads per step", needs=_NEEDS),
)  # fmt: skip


class _Operator(Struct, frozen=True):
    us: float
    count: int
    name: str
    shapes: str = ""


class HostOperators(Struct, frozen=True):
    """Operators of the framework over the profile, the one in which the host is longest first."""

    operators: tuple[_Operator, ...]
    sources: tuple[Source, ...]


HOST_OPERATORS = Reduction("framework", HostOperators)


_Told = tuple[_Operator, int, HostOperators]
"""An operator, over how many steps, and where it is from."""


def reduce(rank: Rank) -> HostOperators | None:
    """None where a timeline tells what the host does and when: the table has neither order nor steps."""
    if rank.has("trace") or not rank.has("framework_operators"):
        return None
    frame = rank.read("framework_operators", ("name", "input_shapes", "self_us", "total_us"))
    if frame is None or not {"name", "self_us"} <= set(frame):
        return None
    frame = _possible(rank, frame)
    frame = frame[frame["name"].notna() & (frame["self_us"] >= 0)]
    if frame.empty:
        return None
    times = frame.groupby("name")["self_us"].agg(["sum", "count"]).sort_values("sum", ascending=False)
    found = [_Operator(float(us), int(count), str(name)) for name, us, count in times.itertuples()]
    if "input_shapes" in frame:
        found[0] = _with_shapes(found[0], frame[frame["name"] == found[0].name])
    return HostOperators(tuple(found), (rank.source("framework_operators", "name", "self_us"),))


def _possible(rank: Rank, frame: pd.DataFrame) -> pd.DataFrame:
    """The calls that take no longer by themselves than with what they call; the others are told."""
    if "total_us" not in frame:
        return frame
    odd = frame["self_us"] > (1 + section("contradiction")["sum_share"]) * frame["total_us"]
    if odd.any():
        text = "calls take longer by themselves than with all that they call: cells were moved; left out"
        file = rank.relative(rank.tables["framework_operators"].paths[0])
        rank.note(file, f"{int(odd.sum())} of {len(frame)} {text}", ("framework_operators",))
    possible: pd.DataFrame = frame[~odd]
    return possible


def _with_shapes(operator: _Operator, calls: pd.DataFrame) -> _Operator:
    """The same with the shapes of the calls that take most of its time."""
    by_shape = calls.fillna({"input_shapes": ""}).groupby("input_shapes")["self_us"].sum()
    shapes, us = str(by_shape.idxmax()).strip('" ;'), float(by_shape.max())
    return replace(operator, shapes=shapes if us >= limit("framework", "most") * operator.us else "")


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The costliest operator of each rank that has no timeline, and what it waits for single values; of the run, those
    of the rank where they take most."""
    times = steady(run)
    told: list[_Told] = []
    reads: list[_Told] = []
    for rank, found in run.each(HOST_OPERATORS).items():
        subject = Subject("rank", str(rank), (rank,))
        steps, step_us = times[rank].recorded if rank in times else 1, facts.number("step.time_us", subject)
        if step_us is None:
            continue
        within = [each for each in found.operators if each.us <= step_us * steps]
        if within:
            told.append((within[0], steps, found))
            yield from _tell(subject, *told[-1])
        if reading := [each for each in within if COPIES_BACK.search(each.name)]:
            reads.append((reading[0], steps, found))
            yield from _tell_reads(subject, *reads[-1])
    if told:
        yield from _tell(RUN, *max(told, key=_per_step))
    if reads:
        yield from _tell_reads(RUN, *max(reads, key=_per_step))


def _per_step(told: _Told) -> float:
    return told[0].us / told[1]


def _tell_reads(subject: Subject, reading: _Operator, steps: int, found: HostOperators) -> Iterator[Fact]:
    yield from fact("framework.reads_us", subject, reading.us / steps, *found.sources)
    yield from fact("framework.reads_count", subject, reading.count / steps, *found.sources)


def _tell(subject: Subject, operator: _Operator, steps: int, found: HostOperators) -> Iterator[Fact]:
    yield from fact("framework.longest_name", subject, operator.name, *found.sources)
    yield from fact("framework.longest_us", subject, operator.us / steps, *found.sources)
    yield from fact("framework.longest_count", subject, operator.count / steps, *found.sources)
    if operator.shapes:
        yield from fact("framework.longest_shapes", subject, operator.shapes, *found.sources)


FAMILIES = (Family("framework", KINDS, measure, HOST_OPERATORS.by(reduce), ("framework_operators",), uses=(STEPS,)),)
