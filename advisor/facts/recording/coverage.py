"""What one table of a recording tells and another lacks, and what one rank lacks beside the others: nobody knows how
that step or that rank was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from advisor.basics.units import show, whole
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.device.course import COURSE, Course
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.limits import section
from advisor.facts.step.from_kernels import KERNEL_STEPS, KernelSteps
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import RUN, Fact
from advisor.sources.base import Rank
from advisor.sources.gaps import lacked_by_some
from advisor.sources.metadata import normalise_settings, recorded_ns
from advisor.tables import FILES

KINDS = (
    kind("run.partial_steps", "count", "run", "steps within the recording that some table of some rank lacks"),
    kind("run.partial_share", "ratio", "run", "the same as a share of all steps within the recording"),
    kind("recording.clock_share", "ratio", "run", "part of the time that the profiler ran which the kernels at hand "
         "span, where no schedule ended it and neither a step table nor a timeline holds the rest",
         formula="span of the kernels ÷ (MonotonicTimeEnd − start_monotonic of profiler_info), highest of all ranks",
         needs="kernels"),
    kind("communication.unseen_ranks", "count", "run", "ranks at hand, where there are several and no file that could "
         "tell of communication: what looks idle may be communication"),
    kind("run.uneven_files", "list", "run", "files that some rank lacks although most ranks have them"),
    kind("run.failed_measures", "list", "run", "families of facts that a defect of the advisor kept from being "
         "measured, or from being measured as a whole",
         formula="told by the pipeline, once all families have been heard"),
)  # fmt: skip

_TELLING = ("kernels", "collectives", "transports", "links", "trace", "operator_types")
"""Tables that tell what may be wrong with a rank beside its steps."""
_OF_COMMUNICATION = ("step_phases", "cluster_phases", "collectives")
"""Tables that tell when a rank communicated. What its links carried tells that it did, and not when."""
WITNESSED = section("witness")["clock_share"]
"""Part of the time that the profiler ran below which its kernels are a part of the recording."""
_LEAST = 2
"""Steps of a table below which it is another kind of record."""


def partial_steps(told: list[set[int]]) -> set[int]:
    """Steps that some of these tables lack, but for the first and the last one: tables begin and end differently."""
    several = [steps for steps in told if len(steps) >= _LEAST]
    every = set().union(*several)
    return {step for step in sorted(every)[1:-1] if any(step not in steps for steps in several)}


def uneven_tables(ranks: Sequence[Rank]) -> list[str]:
    """Tables of single ranks that half of these have, and not all; the first in the order of their names. Of a rank
    whose kernels stand one by one a timeline tells nothing that nobody may lack: without any timeline it is judged."""
    spared = "trace" if all(rank.has("kernels") for rank in ranks if not rank.has("trace")) else ""
    telling = {*_TELLING} - {spared}
    return lacked_by_some(([table for table in rank.tables if table in telling] for rank in ranks), len(ranks))


def _is_silent(rank: Rank, times: StepTimes | None, course: Course | None, recomputed: KernelSteps | None) -> bool:
    """Whether nothing tells that the rank communicated, or did not. Sums over the tasks of a database are no witness of
    their own."""
    told = rank.has("steps") and rank.tables["steps"].reader != "db.steps"
    if told or any(rank.has(table) for table in _OF_COMMUNICATION):
        return False
    parts = [] if times is None else [times.phases[name] for name in ("exposed", "overlapped") if name in times.phases]
    parts += [] if course is None else [course.exposed_us]
    parts += [] if recomputed is None else [np.array([step.communication_us for step in recomputed.steps])]
    return not any((part > 0).any() for part in parts)


def _clock_share(rank: Rank, course: Course | None) -> float | None:
    """What the kernels span of the time between the profiler's own marks; None where it had a schedule, which leaves
    most steps of that time out, where a table of steps or a timeline holds all of it, or nothing tells. The profiler
    itself takes seconds to begin."""
    info = rank.info.get("profiler_info")
    if course is None or course.marked or rank.has("steps") or rank.has("trace") or not isinstance(info, dict):
        return None
    settings, (begin, end) = normalise_settings(info), recorded_ns(info)
    length_us, span_us = (end - begin) / 1000, float(course.span_us.sum())
    if "schedule" in settings or "config" not in info or length_us <= 0:
        return None
    if span_us < WITNESSED * length_us:
        text = f"spans {show(span_us, 'us')} of the {show(length_us, 'us')} that the profiler ran, by profiler_info"
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), f"{text}: whether others ran is not told")
    return min(span_us / length_us, 1.0)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """How many steps are known in part only, and whether communication is known at all."""
    del facts
    times, courses, exchanges = run.each(STEPS), run.each(COURSE), run.each(EXCHANGES)
    recomputed = run.each(KERNEL_STEPS)
    silent = [
        _is_silent(rank, times.get(rank.rank), courses.get(rank.rank), recomputed.get(rank.rank)) for rank in run.ranks
    ]
    yield from fact("communication.unseen_ranks", RUN, len(silent) if len(silent) > 1 and all(silent) else None)
    shares = [_clock_share(rank, courses.get(rank.rank)) for rank in run.ranks]
    yield from fact("recording.clock_share", RUN, max((share for share in shares if share is not None), default=None))
    recordings = run.each(RECORDING)
    told = []
    for rank in run.ranks:
        number = rank.rank
        names = [
            times[number].steps if number in times else (),
            courses[number].steps if number in courses and courses[number].marked else (),
            exchanges[number].steps if number in exchanges else (),
        ]
        tables = [_numbers(each) for each in names]
        if tables[-1] and number in times:  # what lists collectives lacks no step in which there were none
            tables[-1] |= _numbers(_silent(times[number]))
        marked = _numbers(recordings[number].timeline_steps) if number in recordings else set()
        # a timeline may count from elsewhere: it tells of lost steps where it shares some with the tables
        told += [*tables, marked] if marked & set().union(*tables) else tables
    partial = partial_steps(told)
    yield from fact("run.partial_steps", RUN, len(partial))
    yield from fact("run.partial_share", RUN, len(partial) / max(len(set().union(*told)) - 2, 1))
    lacking = tuple(dict.fromkeys(FILES[table] for table in uneven_tables(run.ranks)))
    yield from fact("run.uneven_files", RUN, lacking or None)


def _silent(times: StepTimes) -> list[str]:
    """The steps of which the table says that nothing was communicated, exposed or hidden."""
    parts = [times.phases.get(name) for name in ("exposed", "overlapped")]
    if any(part is None for part in parts):
        return []
    none = np.all([part == 0 for part in parts], axis=0)
    return [step for step, silent in zip(times.steps, none.tolist(), strict=True) if silent]


def _numbers(names: Iterable[str]) -> set[int]:
    return {number for name in names if (number := whole(name)) is not None}


FAMILIES = (Family("coverage", KINDS, measure, uses=(STEPS, COURSE, EXCHANGES, RECORDING, KERNEL_STEPS)),)
