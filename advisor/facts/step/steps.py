"""The steps of each rank from the best table it has (S01, S20, S33, S66); `means.py` measures them.

Warm-up and incomplete steps are recognised here, once, and left out everywhere: other families take `steady(run)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.base import Run, computed
from advisor.facts.data.getnext import GET_NEXT
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.course import COURSE, Course
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.recording.fuller import are_fuller
from advisor.facts.recording.iterations import iterations_of
from advisor.facts.recording.kind import RECORDING, framework_of, recording_of
from advisor.facts.recording.limits import section
from advisor.facts.recording.sums import tell_phases, tell_sums
from advisor.facts.recording.windows import follows, meeting_steps
from advisor.facts.step.from_kernels import KERNEL_STEPS, KernelSteps
from advisor.facts.step.start_gap import is_host_window, own_waits, settle
from advisor.facts.step.tail_collectives import exposed_in_tail
from advisor.facts.step.times import STEPS, StepTimes
from advisor.facts.step.whole_recording import by_batch
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import device_lanes, load_trace, trace_source
from advisor.tables import NUMBERED


def _in_order(frame: Any) -> Any:
    """The rows by step where steps are numbers: the first step and the one before are told by their place."""
    if frame is None or "step" not in frame or not all(str(step).isdecimal() for step in frame["step"]):
        return frame
    return frame.iloc[np.argsort([int(step) for step in frame["step"]], kind="stable")].reset_index(drop=True)


def _rows(frame: Any, columns: dict[str, str], time: Floats) -> tuple[Any, Floats, dict[str, Floats]]:
    usable = np.isfinite(time) & (time > 0)
    phases: dict[str, Floats] = {}
    for phase, column in columns.items():
        if column in frame:
            values = frame[column].to_numpy(float, na_value=np.nan)[usable]
            if np.isfinite(values).any():
                phases[phase] = values
    return frame[usable], time[usable], phases


def _from_step_trace(rank: Rank) -> StepTimes | None:
    frame = _in_order(rank.read("steps"))
    if frame is None or frame.empty:
        return None
    parts = [frame[c].to_numpy(float, na_value=np.nan) for c in ("computing_us", "exposed_us", "free_us")]
    columns = {
        "computing": "computing_us", "exposed": "exposed_us", "overlapped": "overlapped_us", "idle": "free_us",
        "preparing": "preparing_us", "stage": "stage_us", "bubble": "bubble_us",
    }  # fmt: skip
    frame, time, phases = _rows(frame, columns, np.sum(parts, axis=0))
    if not len(time):
        rank.note(rank.relative(rank.tables["steps"].paths[0]), "no step with usable times; step facts are absent")
        return None
    tell_sums(rank, frame, time)
    if "overlapped" in phases:
        phases["overlapped"] = _settled(phases["overlapped"])
    names = tuple(str(s) if s is not None and s == s else "0" for s in frame["step"]) if "step" in frame else ("0",)
    source = rank.source("steps", "computing_us", "exposed_us", "free_us", steps=names)
    return StepTimes(names, time, phases, "steps", (source,))


def _settled(overlapped: Floats) -> Floats:
    """Without rows below zero that the rows before them make up for: a collective is counted whole in the row in which
    it begins, and what of it is exposed in the row in which that part begins."""
    settled, debt = overlapped.copy(), 0.0
    for row in reversed(range(len(settled))):
        settled[row], debt = max(settled[row] + debt, 0.0), min(settled[row] + debt, 0.0)
    return overlapped if debt < 0 or np.isnan(debt) else settled


def _from_phases(rank: Rank) -> StepTimes | None:
    frame = _in_order(rank.read("step_phases"))
    if frame is None or frame.empty:
        return None
    time = frame["total_us"].to_numpy(float, na_value=np.nan)
    columns = {"interval": "interval_us", "fp_bp": "fp_bp_us", "tail": "tail_us"}
    frame, time, phases = _rows(frame, columns, time)
    if not len(time):
        return None
    tell_phases(rank, frame, time)
    names = tuple(str(s) for s in frame["step"])
    source = rank.source("step_phases", "total_us", "interval_us", "fp_bp_us", "tail_us", steps=names)
    if "bp_end_us" in frame and "end_us" in frame:
        points = (frame[name].to_numpy(float, na_value=np.nan) for name in ("bp_end_us", "end_us"))
        if (exposed := exposed_in_tail(rank, names, *points)) is not None:
            phases["exposed"] = exposed
    times = StepTimes(names, time, phases, "step_phases", (source,))
    if "interval" in phases and len(names) > 1 and phases["interval"][0] == 0:
        times = times.without(names[:1], "first step: its iteration gap is 0 by construction")
    return _with_cluster_phases(rank, times)


def _with_cluster_phases(rank: Rank, times: StepTimes | None) -> StepTimes | None:
    """Adds the older cluster trace: exposed and receive time; its computation includes idle time."""
    frame = _in_order(rank.read("cluster_phases"))
    if frame is None or frame.empty:
        return times
    columns = {"computing": "computation_us", "exposed": "exposed_us", "stage": "stage_us", "bubble": "receive_us"}
    present = {phase: column for phase, column in columns.items() if column in frame and frame[column].notna().any()}
    if "computing" not in present or "exposed" not in present:
        return times
    total = (frame["computation_us"] + frame["exposed_us"]).to_numpy(float, na_value=np.nan)
    names = tuple(str(s) for s in frame["step"])
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
    joined = {phase: values for phase, values in joined.items() if np.isfinite(values).any()}
    return replace(
        times, phases={**times.phases, **joined}, sources=(*times.sources, source), computing_has_idle=bool(joined)
    )


def _without_warm_up(times: StepTimes, *, serves: bool = False) -> StepTimes:
    """Without a first step that is warm-up. What `serves` is often run once before it is measured: the pause behind
    that run, which stands in the second step, belongs to it."""
    ends = section("odd_ends")
    if len(times.steps) < ends["steps"]:
        return times
    if serves and len(times.steps) > ends["steps"] and "start_gap" in times.phases:
        usual, working = times.time[2:], float(times.time[1] - np.nan_to_num(times.phases["start_gap"])[1])
        most = ends["longer_factor"] * float(usual.max())
        if times.time[1] > most and times.time[0] <= most and working <= most:
            return times.without(times.steps[:2], "warm-up")
    typical = float(np.median(times.time[1:]))
    late = times.time[0] > ends["longer_factor"] * typical or _starts_late(times, typical)
    return times.without(times.steps[:1], "warm-up") if late else times


def _without_ramp(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """Without a few first steps that are longer than all the others, which are alike, by what most ranks do themselves:
    clocks and caches warm up everywhere, and where one rank is slow its peers only wait."""
    ends = section("odd_ends")
    ramps: dict[int, tuple[str, ...]] = {}
    for rank, one in times.items():
        own = one.time - np.nan_to_num(one.phases.get("exposed", np.zeros(len(one.time))))
        for count in range(min(int(ends["most"]), len(one.steps) // int(ends["steps"])), 1, -1):
            first, rest = own[:count], own[count:]
            apart = float(first.min() - rest.max())
            if apart > max(ends["apart_share"] * float(np.median(rest)), ends["apart_factor"] * float(np.ptp(rest))):
                ramps[rank] = one.steps[:count]
                break
    if 2 * len(ramps) <= len(times):
        return times
    return _on_all({rank: one.without(ramps.get(rank, ()), "warm-up") for rank, one in times.items()})


def _without_short_start(times: dict[int, StepTimes], frameworks: Mapping[int, str]) -> dict[int, StepTimes]:
    """Without the first rows of windows on the host that hold only a part of a step, in length and in computation: the
    host ran ahead until the device's queue was full. Half of the rows at most, and on most ranks: a card that fails in
    mid-run makes no other compute longer."""
    ends = section("odd_ends")
    short: dict[int, tuple[str, ...]] = {}
    for rank, one in times.items():
        computing = one.phases.get("computing")
        windows = one.table == "steps" and is_host_window(one, frameworks.get(rank, "unknown"))
        if not windows or computing is None or len(one.steps) < ends["steps"]:
            continue
        for count in range(len(one.steps) // 2, 0, -1):
            if all(
                (values[:count] < ends["shorter_factor"] * np.nanmedian(values[count:])).all()
                for values in (one.time, computing)
            ):
                short[rank] = one.steps[:count]
                break
    if 2 * len(short) <= len(times):
        return times
    return _on_all({r: t.without(short.get(r, ()), "its window holds a part of a step") for r, t in times.items()})


def _without_cut_end(times: StepTimes) -> StepTimes:
    """Without a last step that the end of the collection cut."""
    ends = section("odd_ends")
    if len(times.steps) < ends["steps"] or times.time[-1] >= ends["shorter_factor"] * np.median(times.time[:-1]):
        return times
    return times.without(times.steps[-1:], "incomplete: the collection ended in it")


def _starts_late(times: StepTimes, typical: float) -> bool:
    """Whether the wait before the first step is of another order than those before the others; where nothing tells
    when its kernels begin, whether its idle time is: the device may be behind the marks of the host."""
    gap = next((times.phases[name] for name in ("start_gap", "interval", "idle") if name in times.phases), None)
    if gap is None or not np.isfinite(gap[0]) or not np.isfinite(gap[1:]).any():
        return False
    limits, usual = section("warm_up"), float(np.nanmedian(gap[1:]))
    more = float(gap[0]) - usual
    return gap[0] > limits["start_gap_factor"] * usual and more > limits["start_gap_share"] * typical


def reduce(rank: Rank) -> StepTimes | None:
    """The rank's steps from the best table it has; None where no table tells."""
    tables = _from_step_trace(rank) or _from_phases(rank) or _with_cluster_phases(rank, None)
    return tables or _from_iterations(rank) or _from_meetings(rank) or _from_host(rank)


def _from_host(rank: Rank) -> StepTimes | None:
    """Steps by the host's marks where nothing was recorded of the device, and no loop's batches were timed: each lasts
    to the next mark, the last one to its own end. Of what the device did in them nothing is known."""
    told = rank.has("kernels") or rank.has("batches")
    trace = load_trace(rank) if rank.has("trace") and not told else None
    if trace is None or len(trace.steps) < 2 or device_lanes(rank) is not None:
        return None
    names, start, end = zip(*trace.steps, strict=True)
    near = [*follows(names), False]
    until = np.where(near, np.append(start[1:], 0), end)
    return StepTimes(names, (until - np.array(start)) / 1000, {}, "trace", (trace_source(rank) or Source(""),))


def _from_meetings(rank: Rank) -> StepTimes | None:
    """Steps from collectives, of which nothing but the length is known."""
    told = meeting_steps(rank)
    if told is None:
        return None
    source = rank.source("collectives", "start_ns", steps=told.names)
    return StepTimes(told.names, told.time_us, {}, "collectives", (source,))


def _from_iterations(rank: Rank) -> StepTimes | None:
    """Steps from msprof's table of iterations where no kernels tell them: each lasts from its start to the next one's,
    and what it does not run itself is the gap between two. The last one is followed by nothing."""
    timeline = timeline_of(rank)
    if not rank.has("iterations") or (device_lanes(rank) is not None if timeline is None else timeline.whole):
        return None
    told = iterations_of(rank)
    if told is None or len(told.names) < 2:
        return None
    time, own = (told.end - told.start)[:-1] / 1000, told.took[:-1] / 1000
    source = rank.source("iterations", "end_ns", "time_us", steps=told.names)
    return StepTimes(told.names[:-1], time, {"interval": np.maximum(time - own, 0.0)}, "iterations", (source,))


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


@computed
def steady(run: Run) -> dict[int, StepTimes]:
    """rank -> its steady steps. A step that is warm-up or incomplete on one rank is left out on all of them: the
    others waited for it."""
    times = dict(run.each(STEPS))
    has_steps = recording_of(run).has_steps
    recordings, courses = run.each(RECORDING), run.each(COURSE)
    known = {rank.rank: rank.framework for rank in run.ranks}
    frameworks = {rank: framework_of(run) if name == "unknown" else name for rank, name in known.items()}
    for rank, reduction in run.each(KERNEL_STEPS).items():
        prepared = not has_steps and rank in recordings and recordings[rank].set_up_us > 0
        framework = frameworks.get(rank, "unknown")
        fuller = rank in times and rank in courses and are_fuller(times[rank], courses[rank], framework)
        if (rank not in times or prepared or fuller) and (found := from_kernels(reduction)) is not None:
            times[rank] = found
    times = _told_apart(run, {rank: _named(t, courses.get(rank)) for rank, t in times.items()})
    times = settle(_without_short_start(times, frameworks), courses, frameworks)
    times = {rank: _fetching_idle(one, courses.get(rank)) for rank, one in times.items()}
    times = by_batch(times, run.each(DATA_PIPELINE), run.each(GET_NEXT))
    serves = recording_of(run).kind == "inference"
    times = _on_all({rank: _without_warm_up(t, serves=serves) for rank, t in _without_ramp(times).items()})
    times = _met_again(times)
    times = _following_nothing(times)
    return dict(sorted(_on_all({rank: _without_cut_end(t) for rank, t in times.items()}).items()))


@computed
def stepped_courses(run: Run) -> dict[int, Course]:
    """Courses whose steps are those of the run: none of a whole recording where a table tells several steps."""
    times = steady(run)
    return {
        rank: course
        for rank, course in run.each(COURSE).items()
        if course.marked or rank not in times or times[rank].recorded <= 1
    }


def _on_all(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """What is left out on one rank is left out on all."""
    odd = {name: reason for t in times.values() for name, reason, _ in t.excluded}
    for reason in sorted(set(odd.values())):
        names = [name for name, why in odd.items() if why == reason]
        times = {rank: t.without(names, reason) for rank, t in times.items()}
    return times


def _met_again(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """The step behind a warm-up that ended at different times: the ranks that were ready first wait in it for the
    others, which is a part of the warm-up. What it is longer than on the last of them is taken off its exposed
    communication; where that is less, the step is left out."""
    warmed = any(reason == "warm-up" for t in times.values() for _, reason, _ in t.excluded)
    shared = {t.steps for t in times.values()}
    if not warmed or len(times) < 2 or len(shared) != 1 or len(next(iter(shared))) < 2:
        return times
    lengths = np.array([t.time for t in times.values()])
    apart = lengths.max(axis=0) > section("contradiction")["one_job_factor"] * lengths.min(axis=0)
    if not apart[0] or apart[1:].any():
        return times
    shortest = float(lengths[:, 0].min())
    trimmed = {rank: t.shortened(float(t.time[0]) - shortest) for rank, t in times.items()}
    kept = {rank: t for rank, t in trimmed.items() if t is not None}
    first = next(iter(shared))[:1]
    return kept if len(kept) == len(times) else {r: t.without(first, "behind the warm-up") for r, t in times.items()}


def _following_nothing(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """Without a first step in which ranks did not wait for others as they do in all steps behind it: whom they waited
    for was late before the recording began. Ranks of one job whose steps are otherwise of one length show it."""
    limits, shared = section("start_gap"), {t.steps for t in times.values()}
    if len(times) < 2 or len(shared) != 1 or len(next(iter(shared))) <= section("odd_ends")["steps"]:
        return times
    lengths = np.array([t.time for t in times.values()])
    usual = float(np.median(lengths[:, 1:]))
    missing = usual - lengths.min(axis=0)
    alone = missing[0] > limits["telling_share"] * usual and 2 * missing[1:].max() <= missing[0]
    if not alone or np.ptp(lengths[:, 0]) < limits["telling_share"] * usual:
        return times
    return {rank: t.without(t.steps[:1], "what was before it is not recorded") for rank, t in times.items()}


def _fetching_idle(one: StepTimes, course: Course | None) -> StepTimes:
    """With the time in which only GetNext ran as what it is, waiting for data before the step's work: step tables and
    kernels count it as computing."""
    if course is None or not course.fetching_us.any() or not {"computing", "idle"} <= one.phases.keys():
        return one
    place = {step: i for i, step in enumerate(course.steps)}
    if not course.marked and len(one.steps) == 1:
        fetching = course.fetching_us.sum(keepdims=True)
    else:
        fetching = np.array([course.fetching_us[place[step]] if step in place else 0.0 for step in one.steps])
    fetching = np.minimum(fetching, np.nan_to_num(one.phases["computing"]))
    gap = one.phases.get("start_gap", np.zeros(len(one.time)))
    phases = {
        **one.phases, "computing": one.phases["computing"] - fetching, "idle": one.phases["idle"] + fetching,
        "start_gap": gap + fetching,
    }  # fmt: skip
    return replace(one, phases=phases)


def _named(one: StepTimes, course: Course | None) -> StepTimes:
    """Steps that their table only numbers, with the names that the kernels tell of as many steps."""
    if course is None or len(course.steps) != len(one.steps) or not all(s.startswith(NUMBERED) for s in one.steps):
        return one
    return replace(one, steps=course.steps, sources=tuple(replace(s, steps=course.steps) for s in one.sources))


def _told_apart(run: Run, times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """Without ranks whose whole recording is one nameless step while others have several: its steps were lost."""
    several = [rank for rank, t in times.items() if len(t.steps) + len(t.excluded) > 1]
    lost = [rank for rank, t in times.items() if t.steps == ("0",) and not t.excluded]
    if not lost or len(several) < len(lost):
        return times
    for rank in run.profile.ranks:
        if rank.rank in lost:
            rank.note(rank.relative(rank.root), "its steps cannot be told apart, those of other ranks can; left out")
    return {rank: t for rank, t in times.items() if rank not in lost}


def excluded_steps(run: Run) -> tuple[tuple[str, str], ...]:
    """(step, reason) of everything left out, for the report."""
    return tuple(sorted({(name, reason) for t in steady(run).values() for name, reason, _ in t.excluded}))
