"""Where the step's time goes, on each rank and on average over those that may be compared (S01, S20, S33, S66)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.data.getnext import GET_NEXT
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.course import COURSE
from advisor.facts.host.opening import OPENING
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import recording_of
from advisor.facts.step.alike import alike
from advisor.facts.step.from_kernels import KERNEL_STEPS
from advisor.facts.step.steps import excluded_steps, steady
from advisor.facts.step.tables import reduce
from advisor.facts.step.times import STEPS, StepTimes
from advisor.facts.step.unlike import unlike_ranks
from advisor.model import RUN, Fact, Source, Subject

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
    kind("step.longest_us", "us", _SCOPES, "duration of the longest steady step", needs=_STEP,
         formula="maximum over steady steps; for the run: median over ranks"),
    kind("step.shortest_us", "us", _SCOPES, "duration of the shortest steady step", needs=_STEP,
         formula="minimum over steady steps; for the run: median over ranks"),
    kind("step.jitter", "ratio", _SCOPES, "how far the slow steps are above the typical one",
         formula="(95th percentile − median) ÷ median of steady steps, five at least", needs=_STEP),
    *(
        item
        for phase, meaning, formula in (
            ("computing", "time in which a compute kernel ran", "Computing"),
            ("exposed_communication", "time in which only communication ran (S20)", "Communication(Not Overlapped)"),
            ("overlapped", "communication hidden behind computation", "Overlapped"),
            ("unplaced", "communication of which nothing tells whether computation hides it",
             "collectives and handovers before backward ends in the older step trace"),
            ("idle", "time in which neither computation nor communication ran", "Free, and the start gap"),
            ("start_gap", "idle time before the step's first kernel: data, or the host between two steps (S01, S02)",
             "idle from the step before to the first kernel, or Preparing where the host does not run ahead"),
            ("bubble", "waiting for other pipeline stages", "Bubble, or Receive alone in the older trace"),
            ("interval", "iteration gap: the wait for data before the step (S01, S02)", "iteration_interval"),
            ("fp_bp", "forward and backward", "fp_and_bp"),
            ("tail", "after backward: collectives and the update", "tail"),
            ("tail_exposed", "collectives after backward", "stream_* behind bp_point"),
            ("last_reduction", "the last of several collectives after backward", "end − start of the last stream_*"),
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
    kind("run.left_out_ranks", "list", "run", "ranks at hand whose steps stand in no mean and no comparison"),
    kind("run.unlike_ranks", "list", "run", "ranks whose steps are unlike those of the others: no rank has what is "
         "told of the run, the middle of both", formula="ranks above the run's figure in the one of step.time_us, "
         "step.computing_share, step.exposed_communication_share and step.idle_share that is farthest from the nearest "
         "rank's", needs=_STEP),
    kind("run.doubted_ranks", "count", "run", "ranks that are compared although their step tables cannot be true, or "
         "are not of one job: half of all at least"),
    kind("run.unmeasured_ranks", "count", "run", "ranks at hand without a usable step, where others have some"),
    kind("step.computing_includes_idle", "bool", "run", "the older cluster trace counts idle time as computation"),
)  # fmt: skip

_PHASE_OF = {
    "computing": "computing", "exposed_communication": "exposed", "overlapped": "overlapped", "unplaced": "unplaced",
    "idle": "idle", "start_gap": "start_gap", "bubble": "bubble", "interval": "interval", "fp_bp": "fp_bp",
    "tail": "tail", "tail_exposed": "tail_exposed", "last_reduction": "last_reduction",
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
    if has_steps and len(times.steps) > 1:
        yield from fact("step.longest_us", subject, float(times.time.max()), *sources, samples=n)
        yield from fact("step.shortest_us", subject, float(times.time.min()), *sources, samples=n)
    yield from fact("step.jitter", subject, _jitter(times.time), *sources, samples=n)
    for name, phase in _PHASE_OF.items():
        share = times.share(phase)
        if share is not None:
            own = times.sources_of(phase)
            yield from fact(f"step.{name}_share", subject, share, *own, samples=n)
            yield from fact(f"step.{name}_us", subject, share * mean, *own, samples=n)
    yield from fact("step.preparing_us", subject, _median(times.phases.get("preparing")), *sources, samples=n)


def _jitter(time: Floats) -> float | None:
    if len(time) < 5 or np.median(time) <= 0:
        return None
    return float((np.percentile(time, 95) - np.median(time)) / np.median(time))


def _median(values: Floats | None) -> float | None:
    return None if values is None or not np.isfinite(values).any() else float(np.nanmedian(values))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of every rank and of the run from the steady steps."""
    del facts
    every = steady(run)
    if not every:
        yield from _from_data(run)
        return
    for rank, series in every.items():
        yield from _facts_of_rank(rank, series, recording_of(run).has_steps)
    compared = alike(run)
    yield from fact("run.left_out_ranks", RUN, compared.left_out)
    yield from fact("run.doubted_ranks", RUN, len(compared.doubted) or None)
    yield from fact("run.unmeasured_ranks", RUN, len(run.ranks) - len(every))
    times = compared.times
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
    if recording_of(run).has_steps and any(len(t.steps) > 1 for t in times.values()):
        longest = float(np.median([t.time.max() for t in times.values()]))
        yield from fact("step.longest_us", RUN, longest, *sources, samples=n)
        shortest = float(np.median([t.time.min() for t in times.values()]))
        yield from fact("step.shortest_us", RUN, shortest, *sources, samples=n)
    jitters = [j for t in times.values() if (j := _jitter(t.time)) is not None]
    yield from fact("step.jitter", RUN, float(np.median(jitters)) if jitters else None, *sources, samples=n)
    for name, phase in _PHASE_OF.items():
        known = [t for t in times.values() if t.share(phase) is not None]
        if known:
            total = sum(float(t.time.sum()) for t in known)
            share = sum((t.share(phase) or 0.0) * float(t.time.sum()) for t in known) / total
            own = known[0].sources_of(phase)
            yield from fact(f"step.{name}_share", RUN, share, *own, samples=n)
            yield from fact(f"step.{name}_us", RUN, share * mean, *own, samples=n)
    others = {rank: each for rank, each in every.items() if rank not in times}
    yield from fact("run.unlike_ranks", RUN, unlike_ranks(times, mean, others) or None, *sources)
    preparing = [p for t in times.values() if (p := _median(t.phases.get("preparing"))) is not None]
    yield from fact("step.preparing_us", RUN, float(np.median(preparing)) if preparing else None, *sources, samples=n)
    yield from fact("step.computing_includes_idle", RUN, any(t.computing_has_idle for t in times.values()), *sources)


_BATCHES = Source("", table="batches")


def _from_data(run: Run) -> Iterator[Fact]:
    """A host-only profile has no device step: the interval between batches is the step."""
    steps = {rank: (data.step_us, data.batches) for rank, data in run.each(DATA_PIPELINE).items() if data.step_us}
    for rank, (us, batches) in steps.items():
        yield from fact("step.time_us", Subject("rank", str(rank), (rank,)), float(us), _BATCHES, samples=batches)
    if steps:
        values = [float(us) for us, _ in steps.values()]
        fewest = min(n for _, n in steps.values())
        yield from fact("step.time_us", RUN, float(np.median(values)), _BATCHES, samples=fewest)


FAMILIES = (
    Family(
        "steps",
        KINDS,
        measure,
        STEPS.by(reduce),
        ("steps", "step_phases", "cluster_phases", "collectives"),
        uses=(RECORDING, COURSE, DATA_PIPELINE, GET_NEXT, KERNEL_STEPS, OPENING),
    ),
)
