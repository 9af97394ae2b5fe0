"""Whether a device idles at the pace of its launches: behind what is shorter than the time to launch, and only there.

Where the host is behind, the device waits for the next launch whenever a kernel ends before it, and a longer kernel
gives the host time to catch up. Whoever waits for results, or for data, leaves a gap however long the kernel before it
was. Starts and durations of kernels alone tell the two apart: no timeline of the host is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.cluster.peers import held_by_most
from advisor.facts.device.drawn import work_of, work_source
from advisor.facts.device.kernel_time import Timeline, sums
from advisor.facts.operators.coverage import scale
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

BEHIND_US = limit("launches", "behind_us")
"""What has been launched ahead follows within this."""
LONG_US = limit("launches", "long_us")
"""An idle stretch this long is no launch that came late."""

_BOTH = "run rank"
KINDS = (
    kind("timeline.launch_interval_us", "us", _BOTH, "how far launches lie apart where the device waits for them",
         formula="median of (start behind idle time − the start behind the idle time before it) ÷ kernels started in "
         "between; without collectives and gaps of 1 ms and more", needs="kernels"),
    kind("timeline.shorter_count", "count", _BOTH, "recorded kernels that begin behind idle time and are shorter than "
         "that interval", needs="kernels"),
    kind("timeline.shorter_followed_share", "ratio", _BOTH, "how many of them are followed by idle time again",
         needs="kernels"),
    kind("timeline.longer_count", "count", _BOTH, "recorded kernels that begin behind idle time and are longer than "
         "that interval", needs="kernels"),
    kind("timeline.longer_followed_share", "ratio", _BOTH, "how many of them are followed by idle time again: as many "
         "as of the shorter ones where the gaps are no launches", needs="kernels"),
)  # fmt: skip


class Pace(Struct, frozen=True):
    """One rank's kernels that begin behind idle time; arrays hold one number a step."""

    interval_us: float
    steps: tuple[str, ...]
    shorter: Floats
    shorter_followed: Floats
    longer: Floats
    longer_followed: Floats
    sources: tuple[Source, ...]


PACE = Reduction("launch_pace", Pace)


def reduce(rank: Rank) -> Pace | None:
    """None without kernels, where rows are missing between them, or where nothing begins behind idle time."""
    timeline = work_of(rank)
    if timeline is None or not timeline.whole:
        return None
    return pace_of(timeline, (work_source(rank, "start_ns", "duration_us"),))


def pace_of(timeline: Timeline, sources: tuple[Source, ...] = ()) -> Pace | None:
    """From one start behind idle time to the next the host launches what runs in between, whatever that takes."""
    kernels, windows = timeline.kernels, timeline.windows
    known = np.flatnonzero((kernels.start >= 0) & (windows.of >= 0))
    order = known[np.argsort(kernels.start[known], kind="stable")]
    start, end = kernels.start[order], kernels.end[order]
    if not order.size:
        return None
    idle = np.concatenate(([np.inf], (start[1:] - np.maximum.accumulate(end)[:-1]) / 1000))
    first = np.flatnonzero(idle >= BEHIND_US)
    began, gap, step = start[first], idle[first], windows.of[order[first]]
    launched = np.diff(first)
    talks = np.add.reduceat(timeline.communication[order].astype(np.int64), first)[:-1] > 0
    # a collective lasts as long as its peers want, and a stall is no launch
    told = ~talks & (gap[1:] < LONG_US) & (step[1:] == step[:-1])
    if not told.any():
        return None
    interval = float(np.median((np.diff(began) / 1000 / launched)[told]))
    lasts = ((end - start)[first[:-1]] / 1000)[told]
    followed, step, steps = launched[told] == 1, step[:-1][told], len(windows.names)
    shorter = lasts < interval
    return Pace(
        interval, windows.names,
        sums(step[shorter], None, steps), sums(step[shorter & followed], None, steps),
        sums(step[~shorter], None, steps), sums(step[~shorter & followed], None, steps), sources,
    )  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Of each rank over its steady steps; of the run what most ranks have: at least of what tells of launches, at most
    of what tells against them. Ranks that hardly idle tell of none."""
    del facts
    found = run.each(PACE)
    rows: dict[int, dict[str, float]] = {}
    for rank, pace in found.items():
        chosen = scale(run, rank, pace.steps).chosen.astype(bool)
        row = {"timeline.launch_interval_us": pace.interval_us}
        for name, all_of, followed in (
            ("shorter", pace.shorter, pace.shorter_followed),
            ("longer", pace.longer, pace.longer_followed),
        ):
            count = float(all_of[chosen].sum())
            row[f"timeline.{name}_count"] = count
            if count:
                row[f"timeline.{name}_followed_share"] = float(followed[chosen].sum()) / count
        rows[rank] = row
        for name, value in row.items():
            yield from fact(name, Subject("rank", str(rank), (rank,)), value, *pace.sources)
    if not rows:
        return
    sources = next(iter(found.values())).sources
    silent = [0.0] * (len(run.ranks) - len(rows))
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = [row[name] for row in rows.values() if name in row]
        if name == "timeline.launch_interval_us":
            value = float(np.median(values))
        elif name == "timeline.longer_followed_share":
            value = -held_by_most([-each for each in values])
        else:
            value = held_by_most([*values, *silent])
        yield from fact(name, RUN, value, *sources, samples=len(values))


FAMILIES = (Family("launch_pace", KINDS, measure, PACE.by(reduce), ("kernels", "trace"), uses=(STEPS,)),)
