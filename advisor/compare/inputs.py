"""On which input shapes an operator type became faster or slower: calls on other shapes are other measurements, and a
mean over them tells of none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.compare.changes import Change, Role
from advisor.compare.facts import FactTable, Key
from advisor.compare.metrics import MEASURED_KERNEL
from advisor.knowledge.comparison import settings
from advisor.model import Subject

_KIND = "operator_type"
_SHAPES, _CALLS, _TIMES = (f"{_KIND}.inputs_{each}" for each in ("shapes", "calls", "times"))


def with_inputs(lines: Iterable[Change], old: FactTable, new: FactTable) -> Iterator[Change]:
    """The lines, those of operator types followed by the input shapes on which they changed, where on others they did
    not."""
    for line in lines:
        yield line
        if line.subject.kind == _KIND:
            yield from _odd(_each(line.part, line.subject, old, new))


def of_measured(old: FactTable, new: FactTable) -> Iterator[Change]:
    """The kernel that a benchmark measures, on each of several inputs."""
    name = new.value("recording.measured_type")
    if name is not None and name == old.value("recording.measured_type"):
        for _, line in _each(MEASURED_KERNEL, Subject(_KIND, str(name)), old, new):
            yield line


def _each(part: str, subject: Subject, old: FactTable, new: FactTable) -> list[tuple[float, Change]]:
    """(calls, what one takes on either side) of the input shapes that both sides tell."""
    sides = [_told((subject.kind, subject.id), table) for table in (old, new)]
    return [
        (sides[0][shapes][0], Change(Role.SEEN_AT, part, _TIMES, subject, us, sides[1][shapes][1], inputs=shapes))
        for shapes, (_, us) in sides[0].items()
        if shapes in sides[1]
    ]


def _told(key: Key, table: FactTable) -> dict[str, tuple[float, float]]:
    """Input shapes -> calls, and microseconds of one."""
    shapes, calls, times = (table.listed(name, key) for name in (_SHAPES, _CALLS, _TIMES))
    return {str(shape): (float(n), float(us)) for shape, n, us in zip(shapes, calls, times, strict=False)}


def _odd(told: list[tuple[float, Change]]) -> Iterator[Change]:
    """Those that changed clearly, where others did not, what cost or gave most first."""
    noise = settings().limits["fact_noise"]
    odd = [each for each in told if abs(each[1].difference) > noise * max(each[1].before, each[1].after)]
    if len(odd) < len(told):
        odd.sort(key=lambda each: -each[0] * abs(each[1].difference))
        for _, line in odd[: int(settings().limits["accounts_shown"])]:
            yield line
