"""The steps of a run that count: each rank's from its best witness, without warm-up and incomplete ones.

What is left out is left out here, once, for all: other families take `steady(run)`; `means.py` measures it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from advisor.facts.base import Run, computed
from advisor.facts.data.getnext import GET_NEXT
from advisor.facts.data.loading import DATA_PIPELINE, DataPipeline
from advisor.facts.device.course import COURSE, Course
from advisor.facts.host.opening import OPENING, Opening
from advisor.facts.recording.fuller import are_fuller, outvoted_ranks
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import framework_of, recording_of
from advisor.facts.step.evaluation import without_evaluation
from advisor.facts.step.from_kernels import KERNEL_STEPS, KernelSteps
from advisor.facts.step.odd_ends import (
    behind_warm_up,
    following_nothing,
    met_again,
    moved_ranks,
    on_all,
    without_cut_end,
    without_cut_start,
    without_drain,
    without_open_end,
    without_ramp,
    without_short_start,
    without_unwaited_ends,
    without_warm_up,
)
from advisor.facts.step.start_gap import own_waits, settle, without_unknown_wait
from advisor.facts.step.tables import from_kernels
from advisor.facts.step.times import STEPS, StepTimes
from advisor.facts.step.whole_recording import by_batch
from advisor.tables import NUMBERED


@computed
def steady(run: Run) -> dict[int, StepTimes]:
    """rank -> its steady steps. A step that is warm-up or incomplete on one rank is left out on all of them: the
    others waited for it."""
    times = dict(run.each(STEPS))
    recordings, courses = run.each(RECORDING), run.each(COURSE)
    known = {rank.rank: rank.framework for rank in run.ranks}
    frameworks = {rank: framework_of(run) if name == "unknown" else name for rank, name in known.items()}
    outvoted = outvoted_ranks(run)
    for rank, reduction in run.each(KERNEL_STEPS).items():
        prepared = rank in recordings and recordings[rank].set_up_us > 0  # its only row holds that as well
        framework = frameworks.get(rank, "unknown")
        fuller = rank in times and rank in courses and are_fuller(times[rank], courses[rank], framework)
        believed = rank not in times or prepared or fuller or rank in outvoted
        if believed and (found := from_kernels(reduction)) is not None:
            times[rank] = found
        elif not believed:
            times[rank] = _parted(times[rank], reduction)
    times = _told_apart(run, {rank: _named(t, courses.get(rank)) for rank, t in times.items()})
    settled = settle(without_short_start(times, frameworks), courses, frameworks)
    settled = _opened(settled, run.each(OPENING))
    times = {rank: _fetching_idle(one, courses.get(rank)) for rank, one in settled.items()}
    times = _undivided(times, courses, run.each(DATA_PIPELINE))
    times = by_batch(times, run.each(DATA_PIPELINE), run.each(GET_NEXT), run.each(KERNEL_STEPS))
    times = without_evaluation(times, courses, run.ranks)
    times = on_all({rank: without_cut_start(t, courses.get(rank)) for rank, t in times.items()})
    serves = recording_of(run).kind == "inference"
    times = on_all({rank: without_warm_up(t, serves=serves) for rank, t in without_ramp(times).items()})
    times = met_again(behind_warm_up(times))
    times = following_nothing(times)
    ended = on_all({rank: without_cut_end(t) for rank, t in without_open_end(times).items()})
    ended = on_all({rank: without_unwaited_ends(t, frameworks.get(rank, "unknown")) for rank, t in ended.items()})
    moved = moved_ranks(ended)
    ended = {
        rank: t if rank in moved else without_drain(t, courses.get(rank), frameworks.get(rank, "unknown"))
        for rank, t in ended.items()
    }
    return dict(sorted(without_unknown_wait(on_all(ended), settled, frameworks).items()))


@computed
def stepped_courses(run: Run) -> dict[int, Course]:
    """Courses whose steps are those of the run: none of a whole recording where a table tells several steps."""
    times = steady(run)
    return {
        rank: course
        for rank, course in run.each(COURSE).items()
        if course.marked or rank not in times or times[rank].recorded <= 1
    }


def _parted(one: StepTimes, told: KernelSteps) -> StepTimes:
    """The older trace's steps with what runs in those whose kernels are told, the trace itself knowing nothing of
    computation: then it is known what its collectives leave exposed, before the end of backward as well."""
    rows = {step.step: step for step in told.steps}
    if one.table != "step_phases" or "computing" in one.phases or not rows.keys() & set(one.steps):
        return one
    parts = np.array([
        (step.computing_us, step.exposed_us, step.communication_us - step.exposed_us) if step else (np.nan,) * 3
        for step in map(rows.get, one.steps)
    ])  # fmt: skip
    computing, exposed, overlapped = parts.T
    idle = np.maximum(one.time - computing - exposed, 0.0)
    phases = {name: values for name, values in one.phases.items() if name != "unplaced"}
    phases |= {"computing": computing, "exposed": exposed, "overlapped": overlapped, "idle": idle}
    return replace(one, phases=phases, sources=(*one.sources, *told.sources))


def _opened(times: Mapping[int, StepTimes], openings: Mapping[int, Opening]) -> dict[int, StepTimes]:
    """The only step of each rank with the wait before it, where timelines tell it of all of them."""
    if not all(rank in openings and one.steps == (openings[rank].step,) for rank, one in times.items()):
        return dict(times)
    return {
        rank: one
        if "start_gap" in one.phases
        else own_waits(one, np.array([openings[rank].us]), np.zeros(1, bool), "trace")
        for rank, one in times.items()
    }


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


def _undivided(
    times: dict[int, StepTimes], courses: Mapping[int, Course], pipelines: Mapping[int, DataPipeline]
) -> dict[int, StepTimes]:
    """Computing and idle time as one where batches are sunk and no kernels tell how long GetNext ran: step tables count
    it as computing, and it waits as long as the sending thread may have waited for its batch."""
    found = {}
    for rank, one in times.items():
        data, idle = pipelines.get(rank), one.phases.get("idle")
        sent = data.times if data is not None and data.mode == "sink" else None
        if sent is None or not sent.wait_us or rank in courses or one.table != "steps" or idle is None:
            found[rank] = one
            continue
        phases = {name: values for name, values in one.phases.items() if name != "idle"}
        if "computing" in phases:
            phases["computing"] = phases["computing"] + idle
        found[rank] = replace(one, phases=phases, computing_has_idle=True)
    return found


def _named(one: StepTimes, course: Course | None) -> StepTimes:
    """Steps that their table only numbers, with the names that the kernels tell of as many steps."""
    if course is None or len(course.steps) != len(one.steps) or not all(s.startswith(NUMBERED) for s in one.steps):
        return one
    sources = tuple(dataclasses.replace(source, steps=course.steps) for source in one.sources)
    return replace(one, steps=course.steps, sources=sources)


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
