"""The wait for a batch before the first kernel of a recording's only step, which lies in no row of the step table and
between no two kernels.

Nothing that ran before was recorded, so the device may have been busy then. Not where the step's mark on the host ends
behind its last kernel: this loop waits for its device in each step, also in the one before, and while it fetches its
batch nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.intervals import covered_in, union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.drawn import work_of
from advisor.facts.host.owners import COVERS, LOADER
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace, trace_source


class Opening(Struct, frozen=True):
    """How long one rank's only step waits for its batch before the first kernel, microseconds."""

    us: float
    step: str
    source: Source


OPENING = Reduction("opening", Opening)


def reduce(rank: Rank) -> Opening | None:
    """None where there are several steps, where the host runs ahead of its device, or where something else than the
    loader has most of the time before the first kernel."""
    timeline = work_of(rank)
    if timeline is None or not timeline.whole or len(timeline.windows.names) != 1:
        return None
    trace = load_trace(rank)
    name, first, last = timeline.windows.names[0], timeline.windows.start, int(timeline.windows.end[0])
    marks = [(start, end) for step, start, end in trace.steps if step == name] if trace is not None else []
    if trace is None or len(marks) != 1 or marks[0][1] < last:
        return None
    host, begin = trace.host, np.array([marks[0][0]], np.int64)
    chosen = np.array([bool(LOADER.search(each)) for each in host.names], bool)[host.name]
    waited = float(covered_in(union(host.start[chosen], host.end[chosen]), begin, first)[0])
    if not waited >= COVERS * float(first[0] - begin[0]) > 0:
        return None
    return Opening(waited / 1000, name, trace_source(rank) or Source(""))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Of each rank, and of the one that waits least: what another one waits longer is that one's."""
    del facts
    found = run.each(OPENING)
    for rank, each in found.items():
        yield from fact("timeline.opening_loader_us", Subject("rank", str(rank), (rank,)), each.us, each.source)
    if not found or len(found) < len(run.ranks):
        return
    least = min(found.values(), key=lambda each: each.us)
    yield from fact("timeline.opening_loader_us", RUN, least.us, least.source, samples=len(found))
    yield from fact("timeline.opening_step", RUN, least.step, least.source)


KINDS = (
    kind("timeline.opening_loader_us", "us", "run rank",
         "how long the loop of the only recorded step waits for its batch before the first kernel, of a rank, and "
         "of the one where that is shortest",
         formula="the loop's calls for a batch from the step's mark on the host to its first kernel, where the mark "
                 "ends behind the last one", needs="trace"),
    kind("timeline.opening_step", "text", "run", "this step", needs="trace"),
)  # fmt: skip
FAMILIES = (
    Family("opening", KINDS, measure, OPENING.by(reduce), ("kernels", "trace")),
)  # fmt: skip
