"""Each rank's step as an account: computation, exposed communication, idling between kernels, waiting for data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Mask
from advisor.facts.base import Run, computed
from advisor.facts.cluster.peers import kernel_speeds, others_median, yardsticks
from advisor.facts.device.course import COURSE, Course
from advisor.facts.host.timeline import IDLE
from advisor.facts.recording.limits import section
from advisor.facts.step.alike import alike
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import Source

ONE_JOB = section("contradiction")["one_job_factor"]
"""Ranks whose steps differ in length by more than this factor are not of one synchronous job."""
PARTS = ("compute", "data", "host")
"""What a rank can be late from by itself."""


class Accounts(Struct):
    """Where each rank's time goes: rows are ranks, columns steady steps common to all, microseconds."""

    ranks: list[int]
    steps: list[str]
    time: Floats
    compute: Floats
    data: Floats
    host: Floats
    exposed: Floats
    idle: Floats
    data_known: bool
    sources: dict[int, tuple[Source, ...]] = field(default_factory=dict)
    left_out: tuple[int, ...] = ()
    """Ranks with steps that were measured in another way than those of most."""
    prepared: Floats | None = None
    """From the step's beginning on the host to its first kernel; NaN where not told."""
    within: Floats | None = None
    """The part of `data` between kernels of the step: a loop that launches something before it asks for its batch waits
    there, and its timeline names the loader."""
    shown: frozenset[int] = frozenset()
    """Ranks that the others are compared with, where most are slow (`peers.yardsticks`); nobody: with all."""

    def among(self, rows: Sequence[int] | None = None) -> Mask:
        """Which of these rows, or of all, show what is usual; none where the median of all does."""
        ranks = self.ranks if rows is None else [self.ranks[row] for row in rows]
        return np.array([rank in self.shown for rank in ranks], bool)

    def synchronous(self, rows: list[int]) -> bool:
        """Whether these ranks' steps are of one length, as those of one job are: else they cannot be compared. One step
        tells it, or all of them together: a pause at the end of a row lengthens that of one rank, and the next of the
        others."""
        if len(rows) < 2:
            return True
        lengths = np.column_stack((self.time[rows], self.time[rows].sum(axis=1)))
        return bool((np.nanmax(lengths, axis=0) <= ONE_JOB * np.nanmin(lengths, axis=0)).any())

    def part(self, name: str) -> Floats:
        """compute, data or host."""
        return {"compute": self.compute, "data": self.data, "host": self.host}[name]

    def above_others(self, name: str, rank: int) -> Floats:
        """How much more of this part the rank has in each step than the median of all others; NaN where unknown."""
        values = self.part(name)
        among = self.among() if name == "compute" else None
        return np.asarray((values - others_median(values, among))[self.ranks.index(rank)])

    def told_as(self, cause: str) -> str:
        """What a rank is late from, as far as the tables tell: where none has the wait for data apart from late
        launches, it idles."""
        return "idle" if cause == "host" and not self.data_known else cause

    @property
    def communicates(self) -> bool:
        """Whether any communication of these ranks was recorded: else their idle time holds it."""
        return bool((self.exposed > 0).any())

    @property
    def step_us(self) -> float:
        """Duration of a step on average, as `step.time_us` has it."""
        return float(np.median(np.nanmean(self.time, axis=1)))


@computed
def accounts(run: Run) -> Accounts | None:
    """The accounts of this run; None where no rank has steps."""
    courses = run.each(COURSE)
    compared = alike(run)
    times, left_out = compared.times, compared.left_out
    if not times:
        return None
    steps = _compared(times, {rank: one.steps[0] for rank, one in run.each(STEPS).items()})
    if not steps:
        return None
    ranks = list(times)

    def table(phase: str) -> Floats:
        return np.array([_phase(times[rank], phase, steps) for rank in ranks])

    time, computing, exposed, idle, gap = (table(p) for p in ("time", "computing", "exposed", "idle", "start_gap"))
    if not np.isfinite(computing).any():
        computing = table("fp_bp")
    interval = table("interval")
    awaiting = beyond_work(_of_courses(courses, ranks, steps, "awaiting_us"), ranks, kernel_speeds(run))
    if np.nansum(awaiting) > 0:
        computing, exposed = computing - np.nan_to_num(awaiting), np.nan_to_num(exposed) + np.nan_to_num(awaiting)
    if np.isfinite(interval).any():
        data, host = interval, np.nan_to_num(idle)
    elif np.isfinite(gap).any():
        data, host = gap, np.maximum(np.nan_to_num(idle) - np.nan_to_num(gap), 0.0)
    else:
        data, host = np.full(time.shape, np.nan), np.nan_to_num(idle)
    known = bool(np.isfinite(data).any())
    within = np.minimum(_fetched_within(run, ranks, steps), host) if known else np.zeros(host.shape)
    prepared = table("preparing")
    if known:
        before = _before_the_record(prepared, data, exposed)
        for part in (data, idle, time):
            part[:, 0] += before
    sources = {rank: times[rank].sources for rank in ranks}
    return Accounts(
        ranks, steps, time, computing, np.nan_to_num(data) + within, host - within, exposed, idle, known, sources,
        left_out, prepared, within, yardsticks(run),
    )  # fmt: skip


def _before_the_record(prepared: Floats, data: Floats, exposed: Floats) -> Floats:
    """What each rank waited before its first recorded kernel and no row of its own holds, microseconds: so much longer
    its host prepared that step than the row tells, as far as the others wait for it there."""
    lacking = np.nan_to_num(prepared[:, 0] - data[:, 0])
    held = np.nan_to_num(others_median(exposed)[:, 0] - exposed[:, 0])
    return np.maximum(np.minimum(lacking, held), 0.0)


def _compared(times: Mapping[int, StepTimes], first: Mapping[int, str]) -> list[str]:
    """The steps that all ranks have. Not one that some rank's record begins with and others' do not: what was before it
    was not recorded there, so that its wait is told in another way. `first` are the steps that records begin with."""
    opened = Counter(first.get(rank) for rank, one in times.items() if "start_gap" in one.phases)
    return [
        step
        for step in next(iter(times.values())).steps
        if all(step in one.places for one in times.values()) and opened[step] in (0, len(times))
    ]


def _fetched_within(run: Run, ranks: list[int], steps: list[str]) -> Floats:
    """Waits for the loader between kernels of a step, rank by step, microseconds; 0 where no timeline tells."""
    found = np.zeros((len(ranks), len(steps)))
    for row, rank in enumerate(ranks):
        idle = run.each(IDLE).get(rank)
        if idle is not None and idle.loader_within_us is not None:
            told = dict(zip(idle.steps, idle.loader_within_us.tolist(), strict=True))
            found[row] = [told.get(step, 0.0) for step in steps]
    return found


def beyond_work(fused: Floats, ranks: list[int], speeds: Mapping[int, float]) -> Floats:
    """What kernels that compute and communicate in one wait for others: what they take beyond the rank that has least
    of them. That much a card takes by itself, and a slow one longer."""
    if not np.nansum(fused) > 0:
        return fused
    alone = np.where(np.isfinite(fused).all(axis=0), np.min(np.nan_to_num(fused), axis=0), 0.0)
    own = alone * np.array([[max(speeds.get(rank, 1.0), 1.0)] for rank in ranks])
    return np.asarray(np.maximum(fused - own, 0.0))


def _phase(times: StepTimes, phase: str, steps: list[str]) -> Floats:
    values = times.time if phase == "time" else times.phases.get(phase)
    if values is None:
        return np.full(len(steps), np.nan)
    return values[[times.places[s] for s in steps]].astype(float)


def _of_courses(courses: dict[int, Course], ranks: list[int], steps: list[str], name: str) -> Floats:
    """A time of the courses, rank by step; NaN where not told."""
    found = np.full((len(ranks), len(steps)), np.nan)
    for row, rank in enumerate(ranks):
        course = courses.get(rank)
        place = {} if course is None else {step: i for i, step in enumerate(course.steps)}
        for column, step in enumerate(steps):
            if course is not None and step in place:
                found[row, column] = getattr(course, name)[place[step]]
    return found
