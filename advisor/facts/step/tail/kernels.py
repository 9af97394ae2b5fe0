"""What runs behind the end of backward that the older step trace marks, where kernels tell it.

The mark is the end of one operator. Others of backward may run behind it: those that need a collective's result first,
which no fusion of gradients hides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.intervals import clip, measure, subtract, union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.chain import AWAITED_MOST_US, AWAITED_SHARE
from advisor.facts.device.kernel_time import Timeline, busy, timeline_of
from advisor.facts.recording.limits import told_by
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

_SCOPES = "run rank"
KINDS = (
    kind("step.tail_computing_us", "us", _SCOPES, "computation behind the marked end of backward, per step",
         formula="Σ union of computing kernels between bp_point and end_point ÷ steps whose kernels are told; for the "
                 "run: of the rank where it is longest", needs="step_phases"),
    kind("step.tail_operator", "text", _SCOPES, "the operator that takes most of that", needs="step_phases"),
    kind("step.tail_operator_us", "us", _SCOPES, "its time there, per step", needs="step_phases"),
    kind("step.tail_handed_us", "us", _SCOPES, "exposed communication behind the marked end of backward that an "
         "operator of backward waits for, per step",
         formula="of collectives as whose end a kernel of the scope Gradients starts", needs="step_phases"),
)  # fmt: skip


class Tail(Struct, frozen=True):
    """Behind the marked end of backward, microseconds a step, the mean over the steps whose kernels are told."""

    computing_us: float
    operator: str
    operator_us: float
    handed_us: float
    sources: tuple[Source, ...]


TAIL = Reduction("tail", Tail)


def reduce(rank: Rank) -> Tail | None:
    """None where no trace marks the end of backward, or no kernels tell what runs behind it."""
    phases = rank.read("step_phases") if rank.has("step_phases") and rank.has("kernels") else None
    timeline = timeline_of(rank) if phases is not None else None
    if phases is None or timeline is None or not timeline.whole or not {"bp_end_us", "end_us"} <= set(phases):
        return None
    told = set(timeline.windows.names)
    marks = zip(phases["step"].astype(str), phases["bp_end_us"], phases["end_us"], strict=True)
    tails = {step: (int(low * 1000), int(high * 1000)) for step, low, high in marks if step in told and low < high}
    if not tails:
        return None
    kernels = timeline.kernels
    computing, talking = busy(timeline, ~timeline.communication), busy(timeline, timeline.communication)
    computed = handed = 0
    of: dict[str, float] = defaultdict(float)
    for low, high in tails.values():
        computed += measure(clip(computing, low, high))
        handed += _handed(timeline, low, high)
        for at in np.flatnonzero(~timeline.communication & (kernels.start >= low) & (kernels.start < high)):
            of[kernels.names[kernels.name[at]]] += float(kernels.duration[at])
    if not measure(talking) and not computed:
        return None
    operator = max(of, key=lambda name: of[name], default="")
    points = rank.source("step_phases", "bp_end_us", "end_us")
    runs = rank.source("kernels", "start_ns", steps=tuple(tails))
    per = 1000 * len(tails)
    return Tail(computed / per, operator, of.get(operator, 0.0) / len(tails), handed / per, (points, runs))


def _handed(timeline: Timeline, low: int, high: int) -> int:
    """Nanoseconds of exposed communication in this tail for which a kernel of backward waits."""
    kernels, backward = timeline.kernels, told_by("backward")
    inside = (kernels.start >= 0) & (kernels.end > low) & (kernels.start < high)
    work = np.flatnonzero(inside & ~timeline.communication)
    computing = union(kernels.start[work], kernels.end[work])
    awaited = []
    for talk in np.flatnonzero(inside & timeline.communication):
        after = work[kernels.start[work] >= kernels.end[talk]]
        lag_us = (kernels.start[after[0]] - kernels.end[talk]) / 1000 if len(after) else np.inf
        near = lag_us <= min(AWAITED_SHARE * kernels.duration[talk], AWAITED_MOST_US)
        if near and backward(kernels.names[kernels.name[after[0]]]):
            awaited.append(talk)
    waits = union(kernels.start[awaited], kernels.end[awaited])
    return measure(clip(subtract(waits, computing), low, high))


def measure_tails(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Of each rank, and of the one with most computation there."""
    del facts
    found = run.each(TAIL)
    for rank, tail in found.items():
        yield from _facts(Subject("rank", str(rank), (rank,)), tail)
    if found:
        yield from _facts(RUN, max(found.values(), key=lambda tail: tail.computing_us))


def _facts(subject: Subject, tail: Tail) -> Iterator[Fact]:
    yield from fact("step.tail_computing_us", subject, tail.computing_us, *tail.sources)
    if tail.operator:
        yield from fact("step.tail_operator", subject, tail.operator, *tail.sources)
        yield from fact("step.tail_operator_us", subject, tail.operator_us, *tail.sources)
    yield from fact("step.tail_handed_us", subject, tail.handed_us, *tail.sources)


FAMILIES = (Family("tail", KINDS, measure_tails, TAIL.by(reduce), ("step_phases", "kernels")),)
