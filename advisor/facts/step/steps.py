"""The step: how long it takes and where it goes, on each rank and over the run (S01, S20, S33, S66).

Warm-up and incomplete steps are recognised here, once, and left out everywhere: other families take `steady(run)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.data.getnext import GET_NEXT
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.course import COURSE
from advisor.facts.recording.kind import RECORDING, framework_of, recording_of
from advisor.facts.recording.limits import section
from advisor.facts.step.from_kernels import KERNEL_STEPS, KernelSteps
from advisor.facts.step.start_gap import settle
from advisor.facts.step.tail_collectives import exposed_in_tail
from advisor.facts.step.times import STEPS, Series, StepTimes
from advisor.facts.step.whole_recording import by_batch
from advisor.model import RUN, Fact, Subject
from advisor.sources.base import Rank

WARM_UP_FACTOR = 1.5
"""A first step this much longer than the median of the others is warm-up: compilation, cold caches, the pipeline
filling. Steady steps of one run differ by a few percent."""
INCOMPLETE_FACTOR = 0.5
"""A last step this much shorter than the median of the others was cut by the end of the collection (S49)."""
STEPS_TO_JUDGE = 3
"""Fewer steps than this have no first or last that could be told from the rest."""
CONTRADICTION = 0.5
"""Two files that differ by more than this about the step's length are not of one run."""


def _in_order(frame: Any) -> Any:
    """The rows by step where steps are numbers: the first step and the one before are told by their place."""
    if frame is None or "step" not in frame or not all(str(step).isdecimal() for step in frame["step"]):
        return frame
    return frame.iloc[np.argsort([int(step) for step in frame["step"]], kind="stable")].reset_index(drop=True)


def _rows(frame: Any, columns: dict[str, str], time: Series) -> tuple[Any, Series, dict[str, Series]]:
    usable = np.isfinite(time) & (time > 0)
    phases: dict[str, Series] = {}
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
    names = tuple(str(s) if s is not None and s == s else "0" for s in frame["step"]) if "step" in frame else ("0",)
    source = rank.source("steps", "computing_us", "exposed_us", "free_us", steps=names)
    return StepTimes(names, time, phases, "steps", (source,))


def _from_phases(rank: Rank) -> StepTimes | None:
    frame = _in_order(rank.read("step_phases"))
    if frame is None or frame.empty:
        return None
    time = frame["total_us"].to_numpy(float, na_value=np.nan)
    columns = {"interval": "interval_us", "fp_bp": "fp_bp_us", "tail": "tail_us"}
    frame, time, phases = _rows(frame, columns, time)
    if not len(time):
        return None
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
    if len(total) and abs(float(np.median(total)) / float(np.median(times.time)) - 1) > CONTRADICTION:
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


def exclude_odd_ends(times: StepTimes) -> StepTimes:
    """Leaves out a first step that is warm-up and a last step that the end of the collection cut."""
    if len(times.steps) < STEPS_TO_JUDGE:
        return times
    typical = float(np.median(times.time[1:]))
    if times.time[0] > WARM_UP_FACTOR * typical or _starts_late(times, typical):
        times = times.without(times.steps[:1], "warm-up")
    if len(times.steps) >= STEPS_TO_JUDGE and times.time[-1] < INCOMPLETE_FACTOR * float(np.median(times.time[:-1])):
        times = times.without(times.steps[-1:], "incomplete: the collection ended in it")
    return times


def _starts_late(times: StepTimes, typical: float) -> bool:
    """Whether the wait before the first step is of another order than those before the others."""
    gap = times.phases.get("start_gap", times.phases.get("interval"))
    if gap is None or not np.isfinite(gap[0]) or not np.isfinite(gap[1:]).any():
        return False
    limits, usual = section("warm_up"), float(np.nanmedian(gap[1:]))
    more = float(gap[0]) - usual
    return gap[0] > limits["start_gap_factor"] * usual and more > limits["start_gap_share"] * typical


def reduce(rank: Rank) -> StepTimes | None:
    """The rank's steps from the best table it has; None where no table tells."""
    return _from_step_trace(rank) or _from_phases(rank) or _with_cluster_phases(rank, None)


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
    return StepTimes(names, time, phases, "kernels", recomputed.sources)


@computed
def steady(run: Run) -> dict[int, StepTimes]:
    """rank -> its steady steps. A step that is warm-up or incomplete on one rank is left out on all of them: the
    others waited for it."""
    times = dict(run.each(STEPS))
    has_steps = recording_of(run).has_steps
    recordings = run.each(RECORDING)
    for rank, reduction in run.each(KERNEL_STEPS).items():
        prepared = not has_steps and rank in recordings and recordings[rank].set_up_us > 0
        if (rank not in times or prepared) and (found := from_kernels(reduction)) is not None:
            times[rank] = found
    times = _told_apart(run, times)
    known = {rank.rank: rank.framework for rank in run.ranks}
    frameworks = {rank: framework_of(run) if name == "unknown" else name for rank, name in known.items()}
    times = settle(times, run.each(COURSE), frameworks)
    times = by_batch(times, run.each(DATA_PIPELINE), run.each(GET_NEXT))
    times = {rank: exclude_odd_ends(t) for rank, t in times.items()}
    odd = {name: reason for t in times.values() for name, reason, _ in t.excluded}
    for reason in sorted(set(odd.values())):
        names = [name for name, why in odd.items() if why == reason]
        times = {rank: t.without(names, reason) for rank, t in times.items()}
    return dict(sorted(times.items()))


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


_SCOPES = "run rank"
_STEP = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("recording.time_us", "us", "run", "length of what is judged where nothing marks steps, middle rank: "
         "step.time_us is the same then, and every figure of a step one of the recording", needs=_STEP),
    kind("step.count", "count", _SCOPES, "steady steps the other figures rest on", needs=_STEP),
    kind("step.excluded_count", "count", _SCOPES, "warm-up and incomplete steps left out", needs=_STEP),
    kind("step.time_us", "us", _SCOPES, "duration of a step, on average: what the run's time divides into",
         formula="mean over steady steps of computing + exposed communication + idle with the wait before the first "
                 "kernel, or of the step trace's total; for the run: median over ranks", needs=_STEP),
    kind("step.median_us", "us", _SCOPES, "duration of the middle step; below the average where few steps are slow",
         formula="median over steady steps; for the run: median over ranks", needs=_STEP),
    kind("step.jitter", "ratio", _SCOPES, "how far the slow steps are above the typical one",
         formula="(95th percentile − median) ÷ median of steady steps, five at least", needs=_STEP),
    *(
        item
        for phase, meaning, formula in (
            ("computing", "time in which a compute kernel ran", "Computing"),
            ("exposed_communication", "time in which only communication ran (S20)", "Communication(Not Overlapped)"),
            ("overlapped", "communication hidden behind computation", "Overlapped"),
            ("idle", "time in which neither computation nor communication ran", "Free, and the start gap"),
            ("start_gap", "idle time before the step's first kernel: data, or the host between two steps (S01, S02)",
             "idle from the step before to the first kernel, or Preparing where the host does not run ahead"),
            ("bubble", "waiting for other pipeline stages", "Bubble, or Receive alone in the older trace"),
            ("interval", "iteration gap: the wait for data before the step (S01, S02)", "iteration_interval"),
            ("fp_bp", "forward and backward", "fp_and_bp"),
            ("tail", "after backward: collectives and the update", "tail"),
        )
        for item in (
            kind(f"step.{phase}_share", "ratio", _SCOPES, f"{meaning}, share of the step",
                 formula=f"Σ {formula} ÷ Σ step time over steady steps; for the run: over all ranks", needs=_STEP),
            kind(f"step.{phase}_us", "us", _SCOPES, f"{meaning}, per step", formula="share × step.time_us",
                 needs=_STEP),
        )
    ),
    kind("step.preparing_us", "us", _SCOPES, "from the step's start on the host to its first kernel on the device",
         formula="median of Preparing over steady steps", needs="steps"),
    kind("step.computing_includes_idle", "bool", "run", "the older cluster trace counts idle time as computation"),
)  # fmt: skip

_PHASE_OF = {
    "computing": "computing", "exposed_communication": "exposed", "overlapped": "overlapped", "idle": "idle",
    "start_gap": "start_gap", "bubble": "bubble", "interval": "interval", "fp_bp": "fp_bp", "tail": "tail",
}  # fmt: skip


def _facts_of_rank(rank: int, times: StepTimes, has_steps: bool) -> Iterator[Fact]:
    subject = Subject("rank", str(rank), (rank,))
    mean = float(np.mean(times.time))
    n = times.covers * len(times.steps)
    sources = times.sources
    if has_steps:
        yield from fact("step.count", subject, n, *sources, samples=n)
        yield from fact("step.excluded_count", subject, len(times.excluded), *sources, samples=n)
    yield from fact("step.time_us", subject, mean, *sources, samples=n)
    yield from fact("step.median_us", subject, float(np.median(times.time)), *sources, samples=n)
    yield from fact("step.jitter", subject, _jitter(times.time), *sources, samples=n)
    for name, phase in _PHASE_OF.items():
        share = times.share(phase)
        if share is not None:
            yield from fact(f"step.{name}_share", subject, share, *sources, samples=n)
            yield from fact(f"step.{name}_us", subject, share * mean, *sources, samples=n)
    yield from fact("step.preparing_us", subject, _median(times.phases.get("preparing")), *sources, samples=n)


def _jitter(time: Series) -> float | None:
    if len(time) < 5 or np.median(time) <= 0:
        return None
    return float((np.percentile(time, 95) - np.median(time)) / np.median(time))


def _median(values: Series | None) -> float | None:
    return None if values is None or not np.isfinite(values).any() else float(np.nanmedian(values))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of every rank and of the run from the steady steps."""
    del facts
    times = steady(run)
    if not times:
        yield from _from_data(run)
        return
    for rank, series in times.items():
        yield from _facts_of_rank(rank, series, recording_of(run).has_steps)
    sources = next(iter(times.values())).sources
    mean = float(np.median([np.mean(t.time) for t in times.values()]))
    n = int(np.median([t.covers * len(t.steps) for t in times.values()]))
    if recording_of(run).has_steps:
        yield from fact("step.count", RUN, n, *sources, samples=n)
        yield from fact("step.excluded_count", RUN, len(excluded_steps(run)), *sources, samples=n)
    else:
        yield from fact("recording.time_us", RUN, mean, *sources, samples=n)
    yield from fact("step.time_us", RUN, mean, *sources, samples=n)
    median = float(np.median([np.median(t.time) for t in times.values()]))
    yield from fact("step.median_us", RUN, median, *sources, samples=n)
    jitters = [j for t in times.values() if (j := _jitter(t.time)) is not None]
    yield from fact("step.jitter", RUN, float(np.median(jitters)) if jitters else None, *sources, samples=n)
    for name, phase in _PHASE_OF.items():
        known = [t for t in times.values() if t.share(phase) is not None]
        if known:
            total = sum(float(t.time.sum()) for t in known)
            share = sum((t.share(phase) or 0.0) * float(t.time.sum()) for t in known) / total
            yield from fact(f"step.{name}_share", RUN, share, *sources, samples=n)
            yield from fact(f"step.{name}_us", RUN, share * mean, *sources, samples=n)
    preparing = [p for t in times.values() if (p := _median(t.phases.get("preparing"))) is not None]
    yield from fact("step.preparing_us", RUN, float(np.median(preparing)) if preparing else None, *sources, samples=n)
    yield from fact("step.computing_includes_idle", RUN, any(t.computing_has_idle for t in times.values()), *sources)


def _from_data(run: Run) -> Iterator[Fact]:
    """A host-only profile has no device step: the interval between batches is the step."""
    steps = {rank: (data.step_us, data.batches) for rank, data in run.each(DATA_PIPELINE).items() if data.step_us}
    for rank, (us, batches) in steps.items():
        yield from fact("step.time_us", Subject("rank", str(rank), (rank,)), float(us), samples=batches)
    if steps:
        values = [float(us) for us, _ in steps.values()]
        yield from fact("step.time_us", RUN, float(np.median(values)), samples=min(n for _, n in steps.values()))


FAMILIES = (
    Family(
        "steps",
        KINDS,
        measure,
        STEPS.by(reduce),
        ("steps", "step_phases", "cluster_phases"),
        uses=(RECORDING, COURSE, DATA_PIPELINE, GET_NEXT, KERNEL_STEPS),
    ),
)
