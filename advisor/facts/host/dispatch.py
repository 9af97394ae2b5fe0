"""From the host's launch to the device's start: does the host stay ahead, and what holds it up (S39, S58)?

A kernel is starved when the host launched it only after the device had run dry, or so shortly before that the launch
itself was still under way: then the idle time before it is the host's. A kernel launched earlier lies in the device's
queue (slanted links), and idle time before it has other reasons: as much as before the usual one of these, the device
takes from kernel to kernel however early they are launched, and no host is late by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import Intervals, covered, union
from advisor.basics.numbering import beginnings
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.cluster.peers import held_by_most
from advisor.facts.device.drawn import work_of
from advisor.facts.device.kernel_time import sums
from advisor.facts.host import host_api
from advisor.facts.host.linked import Linked, Turns, awaited, linked_of, turns
from advisor.facts.operators.coverage import scale
from advisor.facts.step.in_steps import in_steps
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace, trace_source
from advisor.sources.streams.trace import Trace, waits_for_device

_BOTH = "run rank"
_ALL = "run rank step"
_AWAITED = "dispatch.awaited_us"
STALL_US = limit("launches", "stall_us")
"""Idle time before one kernel beyond this is a stall of its own kind, not the cost of launching."""

PACES, QUEUED = limit("launches", "paces"), limit("launches", "queued")
"""A host that launches for this part of a step sets its pace, unless one in ten kernels lies in the queue for that."""
PAUSE = limit("launches", "pause")
"""Between two launches that lie further apart, by this many medians, the host does something else, or waits."""

KINDS = (
    kind(
        "dispatch.lead_median_us",
        "us",
        _ALL,
        "from launch on the host to start on the device, median",
        formula="HostToDevice links",
        needs="trace",
    ),
    kind("dispatch.lead_low_us", "us", _BOTH, "the same, 10th percentile", needs="trace"),
    kind("dispatch.lead_high_us", "us", _BOTH, "the same, 90th percentile", needs="trace"),
    kind(
        "dispatch.starved_share",
        "ratio",
        _ALL,
        "kernels launched only when the device had run dry or was about to (vertical links, S39)",
        formula="launch ≥ end of all earlier kernels, or start − launch ≤ 1.5 × the median launch interval, and more "
        "idle before the start than the median of all others; communication left out",
        needs="trace",
    ),
    kind(
        "dispatch.starved_idle_us",
        "us",
        _ALL,
        "idle time per step before such kernels beyond what is idle before others, stalls over 1 ms left out",
        needs="trace",
    ),
    kind(
        "dispatch.starved_inside_us",
        "us",
        _BOTH,
        "the same, without what is idle before the first kernel of a step: there the host did other work",
        needs="trace",
    ),
    kind(
        "dispatch.starved_behind_us",
        "us",
        _BOTH,
        "the same, before kernels that follow a launch more than 1 ms late, until the host is ahead again",
        needs="trace",
    ),
    kind("dispatch.starved_idle_share", "ratio", _ALL, "the same, share of the step's window", needs="trace"),
    kind("dispatch.starved_idle_each_us", "us", _BOTH, "the same for each kernel that was launched", needs="trace"),
    kind(
        "dispatch.stall_us",
        "us",
        _BOTH,
        "idle time per step before launches that came more than 1 ms late",
        needs="trace",
    ),
    kind(
        "dispatch.queued_idle_us",
        "us",
        _BOTH,
        "idle time per step before kernels that the host had launched in time",
        needs="trace",
    ),
    kind(
        "dispatch.launch_interval_us",
        "us",
        _BOTH,
        "median time from the launch before to that of a starved kernel; of all kernels where none is starved",
        needs="trace",
    ),
    kind(
        "dispatch.pace_us",
        "us",
        _BOTH,
        "what the host needs per step to launch, from one launch to the next",
        formula="Σ lesser of the time from launch to launch, without calls that wait for the device, and three of "
        "their medians (knowledge_base/measuring.yaml)",
        needs="trace",
    ),
    kind(
        "dispatch.bound_us",
        "us",
        "run",
        "the same of the slowest host, where it launches nearly all the time: a step is no shorter, however early the "
        "devices are done",
        formula="highest dispatch.pace_us; absent below nine tenths of the step, and where launches lie in the "
        "device's queue for half of the step (they may wait until there is room)",
        needs="trace",
    ),
    kind(
        "dispatch.awaited_us",
        "us",
        _BOTH,
        "work of the device per step that the host, or the end of the recording, waits for: what is done sooner of all "
        "other work is followed by a longer wait for the next launch; of the run: of the rank where it is least",
        formula="walked back from the last kernel: the device's work back to a kernel that was launched late, from its "
        "launch to the last call before it that waited for the device, and on with the device's work then; absent "
        "where calls of AscendCL were not recorded, or launches lie in the device's queue for half of the step",
        needs="trace",
    ),
    kind(
        "operator_type.awaited_us",
        "us",
        "operator_type",
        "its kernels in such work, per step at most, on the rank where there is least of it",
        formula="Σ duration; where there are collectives, what none of the kernels fills of that work counts as well",
        needs="trace",
    ),
    kind("dispatch.kernel_us", "us", _BOTH, "mean duration of a launched kernel", needs="trace"),
    kind(
        "dispatch.starved_steps",
        "text",
        "run",
        "steps that lose to starved kernels what the mean step does, or half of it at least",
        needs="trace",
    ),
    kind("dispatch.linked_count", "count", _BOTH, "kernels with a link to their launch", needs="trace"),
    kind("dispatch.mode", "text", "run", "pynative or graph, as MindSpore's host events tell", needs="trace"),
)


class Launches(Struct, frozen=True):
    """One rank's launches; arrays hold one value a step."""

    steps: tuple[str, ...]
    window_us: Floats
    linked: Floats
    starved: Floats
    starved_idle_us: Floats
    starved_inside_us: Floats
    starved_behind_us: Floats
    stall_us: Floats
    queued_idle_us: Floats
    pace_us: Floats
    """From one launch to the next, but for pauses."""
    lead_median_us: Floats
    lead: tuple[float, float, float]
    """10th, 50th and 90th percentile over all steps."""
    interval_us: float | None
    kernel_us: float
    awaited_us: Floats | None
    """None where calls that wait for the device were not recorded."""
    awaited_of: Mapping[str, float]
    """Operator type -> its microseconds in that work per step, at most."""
    mode: str
    covered: Floats
    """1 where the timeline holds the step, 0 where it ends before or inside."""
    sources: tuple[Source, ...]


LAUNCHES = Reduction("dispatch", Launches)


def reduce(rank: Rank) -> Launches | None:
    """Launch against start for every linked kernel; None without links."""
    timeline = work_of(rank)
    trace = load_trace(rank) if timeline is None or timeline.whole else None
    if trace is None or trace.launched.size < 2:
        return None
    linked = linked_of(rank, trace)
    if linked is None:
        return None
    launched, step, steps = linked.launched, linked.step, len(linked.names)
    found = turns(linked)
    gap, ahead, dry, turn = found.gap_us, found.ahead, found.late, found.turn_us
    lead = (linked.start - launched) / 1000
    in_turn = np.argsort(launched, kind="stable")
    interval = np.diff(launched[in_turn]) / 1000
    stall = dry & (gap > STALL_US)
    starved = dry & ~stall
    late = interval[starved[in_turn][1:]]
    inside = starved & ~_first_of_each(step, linked.start)
    behind = starved & _catching_up(linked.start, stall, ahead)
    return Launches(
        linked.names,
        linked.lengths_us,
        sums(step, None, steps),
        sums(step[dry], None, steps),
        sums(step[starved], gap[starved] - turn, steps),
        sums(step[inside], gap[inside] - turn, steps),
        sums(step[behind], gap[behind] - turn, steps),
        sums(step[stall], gap[stall], steps),
        sums(step[~dry], gap[~dry], steps),
        _pace(trace, launched[in_turn], step[in_turn], steps),
        np.array([np.median(lead[step == i]) if (step == i).any() else np.nan for i in range(steps)]),
        (float(np.percentile(lead, 10)), float(np.median(lead)), float(np.percentile(lead, 90))),
        float(np.median(late if late.size else interval)) if interval.size else None,
        linked.kernel_us,
        *_awaited(linked, found, trace),
        _mode(trace),
        _covered(linked.ends, trace),
        (linked.source, trace_source(rank) or Source("")),
    )  # fmt: skip


def _first_of_each(step: Ints, start: Ints) -> Mask:
    """The kernel of each step that starts first."""
    in_turn = np.lexsort((start, step))
    result = np.zeros(step.size, bool)
    result[in_turn[beginnings(step[in_turn])]] = True
    return result


def _catching_up(start: Ints, stall: Mask, ahead: Mask) -> Mask:
    """The kernels that follow a stall before one that was launched ahead: what holds the host up emptied the queue."""
    in_turn = np.argsort(start, kind="stable")
    place = np.arange(start.size)
    stalled, caught = (np.maximum.accumulate(np.where(told[in_turn], place, -1)) for told in (stall, ahead))
    result = np.zeros(start.size, bool)
    result[in_turn] = stalled > caught
    return result


def _pace(trace: Trace, launched: Ints, step: Ints, steps: int) -> Floats:
    """What the host needs from launch to launch, in turn, without what it waits for the device and without pauses."""
    waited = np.diff(covered(union(*_waits(trace)), launched))
    own = (np.diff(launched) - waited) / 1000
    most = PAUSE * float(np.median(own)) if own.size else 0.0
    return sums(step[1:], np.minimum(own, most), steps)


def _waits(trace: Trace) -> Intervals:
    """The calls that return once the device has done something."""
    host = trace.host
    chosen = np.array([waits_for_device(name) for name in host.names], bool)[host.name]
    return host.start[chosen], host.end[chosen]


def _awaited(linked: Linked, found: Turns, trace: Trace) -> tuple[Floats | None, Mapping[str, float]]:
    """What is waited for of each step, and of each operator type; nothing is known where calls that wait for the device
    may have been made without being recorded."""
    if not any(process == "CANN" and name.startswith("AscendCL@") for process, name in trace.activities):
        return None, {}
    work = awaited(linked, found.late, _waits(trace))
    if not linked.kinds:
        return work.us, {}
    own = sums(linked.kind[work.kernels], linked.duration_us[work.kernels], len(linked.kinds))
    most = (own + (work.between_us if linked.exchanges else 0.0)) / len(linked.names)
    return work.us, {linked.kinds[i]: float(most[i]) for i in np.unique(linked.kind).tolist()}


def _covered(ends: Ints, trace: Trace) -> Floats:
    inside = ends <= trace.started.max() if trace.cut else np.ones(ends.size, bool)
    return (inside if inside.any() else np.ones(ends.size, bool)).astype(np.float64)


def _mode(trace: Trace) -> str:
    names = [name for process, name in trace.activities if process == "MindSpore"]
    if any(name.startswith("PynativeFramework") for name in names):
        return "pynative"
    if any(name.startswith(("GraphExecutorPy", "RuntimeFramework")) or name == "RunGraph" for name in names):
        return "graph"
    return ""


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of steps, ranks and the run."""
    found = run.each(LAUNCHES)
    rows: dict[int, dict[str, float]] = {}
    by_step: dict[str, list[tuple[float, float, float, float, float]]] = {}
    for rank, links in found.items():
        per = scale(run, rank, links.steps)
        if not links.covered.all() and (per.chosen * links.covered).any():
            inside = per.chosen * links.covered
            per = replace(per, chosen=inside, steps=float(inside.sum()))
        chosen = per.chosen.astype(bool)
        linked, window = per.per_step(links.linked), per.per_step(links.window_us)
        row = {
            "dispatch.lead_median_us": links.lead[1], "dispatch.lead_low_us": links.lead[0],
            "dispatch.lead_high_us": links.lead[2],
            "dispatch.starved_idle_us": per.per_step(links.starved_idle_us),
            "dispatch.starved_inside_us": per.per_step(links.starved_inside_us),
            "dispatch.pace_us": per.per_step(links.pace_us),
            "dispatch.starved_behind_us": per.per_step(links.starved_behind_us),
            "dispatch.stall_us": per.per_step(links.stall_us),
            "dispatch.queued_idle_us": per.per_step(links.queued_idle_us),
            "dispatch.kernel_us": links.kernel_us, "dispatch.linked_count": linked,
        }  # fmt: skip
        if linked:
            row["dispatch.starved_share"] = per.per_step(links.starved) / linked
            row["dispatch.starved_idle_each_us"] = row["dispatch.starved_idle_us"] / linked
        if window:
            row["dispatch.starved_idle_share"] = row["dispatch.starved_idle_us"] / window
        if links.awaited_us is not None and links.lead[2] <= QUEUED * window:
            row[_AWAITED] = per.per_step(links.awaited_us)
        if links.interval_us is not None:
            row["dispatch.launch_interval_us"] = links.interval_us
        rows[rank] = row = in_steps(run, rank, row, window)
        for name, value in row.items():
            yield from fact(
                name, Subject("rank", str(rank), (rank,)), value, *links.sources, samples=int(links.linked.sum())
            )
        for i in np.flatnonzero(chosen & (links.linked > 0)).tolist():
            by_step.setdefault(links.steps[i], []).append((
                links.starved[i] / links.linked[i], links.starved_idle_us[i],
                links.starved_idle_us[i] / max(links.window_us[i], 1e-9), links.lead_median_us[i], links.linked[i],
            ))  # fmt: skip
    if not rows:
        return
    sources = next(iter(found.values())).sources
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = [row[name] for row in rows.values() if name in row]
        told = min(values) if name == _AWAITED else held_by_most(values)
        yield from fact(name, RUN, told, *sources, samples=len(values))
    least = min((rank for rank in rows if _AWAITED in rows[rank]), key=lambda rank: rows[rank][_AWAITED], default=None)
    for kernel_type, us in found[least].awaited_of.items() if least is not None else ():
        yield from fact("operator_type.awaited_us", Subject("operator_type", kernel_type), us, *sources)
    yield from fact("dispatch.bound_us", RUN, _bound(rows, facts.number("step.time_us", RUN)), *sources)
    for step, values_of in by_step.items():
        usual = [held_by_most(column) for column in zip(*values_of, strict=True)]
        keys = ("starved_share", "starved_idle_us", "starved_idle_share", "lead_median_us")
        for key, value in zip(keys, usual[:4], strict=True):
            yield from fact(f"dispatch.{key}", Subject("step", step), value, *sources, samples=int(usual[4]))
    lost = {step: held_by_most([v[1] for v in values_of]) for step, values_of in by_step.items()}
    usual_us = float(np.mean(list(lost.values()) or [0.0]))
    starved = [step for step, us in lost.items() if us > 0 and 2 * us >= usual_us]
    shown = ", ".join(starved[:8]) + (f" and {len(starved) - 8} more" if len(starved) > 8 else "")
    yield from fact("dispatch.starved_steps", RUN, shown or None, *sources, samples=len(by_step))
    modes = [links.mode for links in found.values() if links.mode]
    yield from fact("dispatch.mode", RUN, modes[0] if modes else None, *sources)


def _bound(rows: Mapping[int, Mapping[str, float]], step_us: float | None) -> float | None:
    """What the slowest host needs per step that launches nearly all the time; None where none does, or where launches
    may wait until the device's queue has room."""
    slowest = max(rows.values(), key=lambda row: row["dispatch.pace_us"])
    if not step_us or slowest["dispatch.lead_high_us"] > QUEUED * step_us:
        return None
    pace = slowest["dispatch.pace_us"]
    return min(pace, step_us) if pace >= PACES * step_us else None


FAMILIES = (Family("dispatch", KINDS, measure, LAUNCHES.by(reduce), ("trace",), uses=(STEPS,)), host_api.FAMILY)
