"""The steps of one rank from the best table it has, before it is known which of them count (S01, S20, S33, S66)."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.basics.units import whole
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.recording.between import between_iterations
from advisor.facts.recording.iterations import iterations_of
from advisor.facts.recording.limits import section
from advisor.facts.recording.sums import moved_rows, step_rows, tell_cluster_phases, tell_phases, tell_sums
from advisor.facts.recording.windows import follows, is_marked, meeting_steps
from advisor.facts.step.from_kernels import KernelSteps
from advisor.facts.step.start_gap import own_waits
from advisor.facts.step.tail.collectives import collectives_in_steps
from advisor.facts.step.times import StepTimes
from advisor.knowledge.measuring import limit
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import device_lanes, load_trace, trace_source
from advisor.sources.streams.trace import BATCH_FETCH

COVERED = limit("queueing", "covered")
"""Part of the batches of which steps are marked, from which these steps speak for the recording."""


def reduce(rank: Rank) -> StepTimes | None:
    """The rank's steps from the best table it has; None where no table tells. A row without a mark is the whole
    recording: where executions of a graph are counted in it, these are the steps."""
    if not is_marked(rank) and (counted := _from_iterations(rank)) is not None:
        return counted
    tables = _from_step_trace(rank) or _from_phases(rank) or _with_cluster_phases(rank, None)
    return tables or _from_iterations(rank) or _from_meetings(rank) or _from_host(rank)


def _from_step_trace(rank: Rank) -> StepTimes | None:
    frame = _in_order(step_rows(rank))
    if frame is None or frame.empty:
        return None
    parts = [frame[c].to_numpy(float, na_value=np.nan) for c in ("computing_us", "exposed_us", "free_us")]
    columns = {
        "computing": "computing_us", "exposed": "exposed_us", "overlapped": "overlapped_us", "idle": "free_us",
        "preparing": "preparing_us", "stage": "stage_us", "bubble": "bubble_us",
    }  # fmt: skip
    rows, named = len(frame), _named(frame)
    frame, time, phases = _rows(frame, columns, np.sum(parts, axis=0))
    # MindSpore's rows are windows of the host: where it ran far ahead most hold nothing, and the last ones a piece
    if 0 < 2 * len(time) < rows and rank.framework != "pytorch":
        text = f"holds no time in {rows - len(time)} of {rows} rows, as of a host far ahead of its device"
        rank.note(rank.relative(rank.tables["steps"].paths[0]), f"{text}: its rows are no steps")
        return None
    if not len(time):
        rank.note(rank.relative(rank.tables["steps"].paths[0]), "no step with usable times; step facts are absent")
        return None
    if not tell_sums(rank, frame, time) and rank.has("kernels"):
        return None
    if (moved := moved_rows(rank, frame, time)).any():
        frame, time = frame[~moved], time[~moved]
        phases = {phase: values[~moved] for phase, values in phases.items()}
        if not len(time):
            return None
    if "overlapped" in phases:
        phases["overlapped"] = _settled(phases["overlapped"])
    names = tuple(str(s) if s is not None and s == s else "0" for s in frame["step"]) if "step" in frame else ("0",)
    source = rank.source("steps", "computing_us", "exposed_us", "free_us", steps=names)
    return StepTimes(names, time, phases, "steps", (source,), named=named)


def _from_phases(rank: Rank) -> StepTimes | None:
    frame = _in_order(rank.read("step_phases"))
    if frame is None or frame.empty:
        return None
    time = frame["total_us"].to_numpy(float, na_value=np.nan)
    columns = {"interval": "interval_us", "fp_bp": "fp_bp_us", "tail": "tail_us"}
    named = _named(frame)
    frame, time, phases = _rows(frame, columns, time)
    if not len(time):
        return None
    tell_phases(rank, frame, time)
    names = tuple(str(s) for s in frame["step"])
    source = rank.source("step_phases", "total_us", "interval_us", "fp_bp_us", "tail_us", steps=names)
    unmeasured = "interval" in phases and len(names) > 1 and phases["interval"][0] == 0
    if "bp_end_us" in frame and "end_us" in frame:
        points = (
            frame[name].to_numpy(float, na_value=np.nan) if name in frame else np.full(len(names), np.nan)
            for name in ("start_us", "fp_start_us", "bp_end_us", "end_us")
        )
        if (talks := collectives_in_steps(rank, names, *points)) is not None:
            told = (
                ("exposed", talks.exposed), ("tail_exposed", talks.exposed), ("last_reduction", talks.last),
                ("unplaced", talks.unplaced),
            )  # fmt: skip
            phases |= {name: us for name, us in told if np.isfinite(us).any()}
            if "interval" in phases:
                phases["interval"] = np.maximum(phases["interval"] - np.nan_to_num(talks.ahead), 0.0)
    times = StepTimes(names, time, phases, "step_phases", (source,), named=named)
    if unmeasured:
        times = times.without(names[:1], "first step: its iteration gap is 0 by construction")
    return _with_cluster_phases(rank, times)


def _with_cluster_phases(rank: Rank, times: StepTimes | None) -> StepTimes | None:
    """Adds the older cluster trace: exposed and receive time; its computation includes idle time, also
    the gap before the step, which is taken from it where the step trace tells it."""
    frame = _in_order(rank.read("cluster_phases"))
    if frame is None or frame.empty:
        return times
    columns = {"computing": "computation_us", "exposed": "exposed_us", "stage": "stage_us", "bubble": "receive_us"}
    present = {phase: column for phase, column in columns.items() if column in frame and frame[column].notna().any()}
    if "computing" not in present or "exposed" not in present:
        return times
    total = (frame["computation_us"] + frame["exposed_us"]).to_numpy(float, na_value=np.nan)
    names = tuple(str(s) for s in frame["step"])
    tell_cluster_phases(rank, frame, total)
    source = rank.source("cluster_phases", *present.values(), steps=names)
    frame, total, phases = _rows(frame, present, total)
    if times is None:
        if not len(total):
            return None
        return StepTimes(names, total, phases, "cluster_phases", (source,), computing_has_idle=True)
    if (
        len(total)
        and abs(float(np.median(total)) / float(np.median(times.time)) - 1) > section("contradiction")["step_share"]
    ):
        file = rank.relative(rank.tables["cluster_phases"].paths[0])
        rank.note(file, "contradicts the step trace about the step's length; only this file's phases are used")
        return StepTimes(names, total, phases, "cluster_phases", (source,), computing_has_idle=True)
    at = {name: index for index, name in enumerate(names)}
    rows = [at.get(name, -1) for name in times.steps]
    joined = {
        phase: np.array([values[i] if i >= 0 and i < len(values) else np.nan for i in rows])
        for phase, values in phases.items()
    }
    if "interval" in times.phases:
        # the gap before the step is no computation; a stage receives in it, which stands in the exposed time already,
        # and is none of the gap where the step trace holds it
        received = 0.0 if "unplaced" in times.phases else np.nan_to_num(joined.get("bubble", 0.0))
        gap = np.maximum(np.nan_to_num(times.phases["interval"]) - received, 0.0)
        whole = np.fmax(joined["computing"] + joined["exposed"], times.time)
        joined["computing"] = np.minimum(joined["computing"], np.maximum(whole - joined["exposed"] - gap, 0.0))
    joined = {phase: values for phase, values in joined.items() if np.isfinite(values).any()}
    own = {phase: values for phase, values in times.phases.items() if phase != "unplaced" or "exposed" not in joined}
    return replace(
        times, phases={**own, **joined}, sources=(*times.sources, source), added=frozenset(joined),
        computing_has_idle=bool(joined),
    )  # fmt: skip


def _from_iterations(rank: Rank) -> StepTimes | None:
    """Steps from msprof's table of iterations where no kernels tell them: each lasts from its start to the next one's,
    and what it does not run itself is the gap between two, also where an iteration is counted from the end of the one
    before and waits for its data first. The last one is followed by nothing: how long it would last is unknown."""
    timeline = timeline_of(rank)
    if not rank.has("iterations") or (device_lanes(rank) is not None if timeline is None else timeline.whole):
        return None
    told = iterations_of(rank)
    if told is None or len(told.names) < 2:
        return None
    time, own = (told.end - told.start) / 1000, told.took / 1000
    between = between_iterations(rank)
    if between is not None and between.awaited:
        own = np.minimum(own, time - between.gap_us)
    source = rank.source("iterations", "end_ns", "time_us", steps=told.names)
    times = StepTimes(told.names, time, {"interval": np.maximum(time - own, 0.0)}, "iterations", (source,))
    return times.without(told.names[-1:], "nothing follows it")


def _from_meetings(rank: Rank) -> StepTimes | None:
    """Steps from collectives, of which nothing but the length is known."""
    told = meeting_steps(rank)
    if told is None:
        return None
    source = rank.source("collectives", "start_ns", steps=told.names)
    return StepTimes(told.names, told.time_us, {}, "collectives", (source,))


def _from_host(rank: Rank) -> StepTimes | None:
    """Steps by the host's marks where nothing was recorded of the device, and no loop's batches were timed, or few
    more than were marked: each lasts to the next mark, the last one to its own end. Of what the device did in them
    nothing is known."""
    told = rank.has("kernels") or rank.has("batches")
    trace = load_trace(rank) if rank.has("trace") and not told else None
    if trace is None or len(trace.steps) < 2 or device_lanes(rank) is not None:
        return None
    if len(trace.steps) < COVERED * len(trace.host.called(BATCH_FETCH)[0]):
        return None
    names, start, end = zip(*trace.steps, strict=True)
    near = [*follows(names, start, end), False]
    until = np.where(near, np.append(start[1:], 0), end)
    return StepTimes(names, (until - np.array(start)) / 1000, {}, "trace", (trace_source(rank) or Source(""),))


def from_kernels(recomputed: KernelSteps) -> StepTimes | None:
    """Steps recomputed from kernels by interval unions, where no step table exists."""
    rows = recomputed.steps
    if not rows:
        return None
    phases = {
        "computing": np.array([row.computing_us for row in rows]),
        "exposed": np.array([row.exposed_us for row in rows]),
        "idle": np.array([row.idle_us for row in rows]),
    }
    time = np.sum(list(phases.values()), axis=0)
    if not (time > 0).all():
        return None
    names = tuple(str(row.step) for row in rows)
    times = StepTimes(names, time, phases, "kernels", recomputed.sources)
    leads = np.array(recomputed.leads_us)
    if not np.isfinite(leads).any():
        return times
    holds_next = np.append(np.isfinite(leads[1:]), False)
    return own_waits(times, np.where(np.isfinite(leads), leads, np.nanmedian(leads)), holds_next, "kernels")


def _in_order(frame: Any) -> Any:
    """The rows by step where steps are numbers: the first step and the one before are told by their place."""
    numbers = [None] if frame is None or "step" not in frame else [whole(str(step)) for step in frame["step"]]
    if None in numbers:
        return frame
    return frame.iloc[np.argsort(np.array(numbers, np.int64), kind="stable")].reset_index(drop=True)


def _named(frame: Any) -> frozenset[str]:
    """The steps that the rows name."""
    return frozenset(map(str, frame["step"])) if "step" in frame else frozenset()


def _rows(frame: Any, columns: dict[str, str], time: Floats) -> tuple[Any, Floats, dict[str, Floats]]:
    usable = np.isfinite(time) & (time > 0)
    phases: dict[str, Floats] = {}
    for phase, column in columns.items():
        if column in frame:
            values = frame[column].to_numpy(float, na_value=np.nan)[usable]
            if np.isfinite(values).any():
                phases[phase] = values
    return frame[usable], time[usable], phases


def _settled(overlapped: Floats) -> Floats:
    """Without rows below zero that the rows before them make up for: a collective is counted whole in the row in which
    it begins, and what of it is exposed in the row in which that part begins."""
    settled, debt = overlapped.copy(), 0.0
    for row in reversed(range(len(settled))):
        settled[row], debt = max(settled[row] + debt, 0.0), min(settled[row] + debt, 0.0)
    return overlapped if debt < 0 or np.isnan(debt) else settled
