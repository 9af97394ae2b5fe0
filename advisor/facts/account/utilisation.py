"""How much of what the card can compute a step uses: model FLOPs utilisation, and the step at the best speed seen.

Operations come from shapes (`operators/shapes/flops.py`), the card's peak from its name, else from its cores and clock
(knowledge_base/cards.yaml); where neither is told there is no share. The yardstick of an operator type is its fastest
call in the same profile: what the hardware did once with this kind of work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.numbering import numbered
from advisor.facts.account.spending import step_time
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.operators.cores import core_clock
from advisor.facts.operators.kinds import dtypes, is_attention, is_cube
from advisor.facts.operators.shapes.flops import flop
from advisor.facts.operators.shapes.work import LAUNCH_US
from advisor.facts.recording.bounds import bounds_of
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.cards import KINDS as PRECISIONS
from advisor.knowledge.cards import peaks, peaks_of_cores
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank


class Work(Struct, frozen=True):
    """One operator type on one rank, over some steps: operations and microseconds of the calls whose shapes tell."""

    flop: float
    us: float
    best: float
    """Operations per second of its fastest shapes that run long enough to tell."""
    best_us: float
    """What these calls would take at that speed."""
    usual_us: float
    """The same at the speed that half of its work reaches, where it is slower."""


class Done(Struct, frozen=True):
    """What some steps of one rank compute."""

    types: Mapping[str, Work]
    by_precision: Mapping[str, float]
    """half, single, int8 -> operations."""
    counted_us: float
    cube_us: float
    """All multiplications, convolutions and attention, those whose shapes do not tell as well."""


class Use(Struct, frozen=True, dict=True):
    """What one rank computes in its recording: a row for each step and each shape of its multiplications,
    convolutions and attention."""

    card: str
    peaks: Mapping[str, float]
    steps: tuple[str, ...]
    shapes: tuple[tuple[str, str, float], ...]
    """(type, precision, operations of a call), 0 operations where the shape does not tell them."""
    step: Ints
    shape: Ints
    calls: Floats
    us: Floats
    sources: tuple[Source, ...]

    @cached_property
    def by_step(self) -> Mapping[str, float]:
        """Step -> operations."""
        each = np.array([shape[2] for shape in self.shapes])
        done = np.bincount(self.step, self.calls * each[self.shape], len(self.steps))
        return dict(zip(self.steps, done.tolist(), strict=True))

    def judged(self, steps: Iterable[str]) -> tuple[str, ...]:
        """Those of the steps that kernels tell of; all of the recording where they know none of them."""
        return tuple(step for step in steps if step in self.by_step) or self.steps

    def over(self, steps: Iterable[str]) -> Done:
        """The work of these steps alone: a warm-up or an evaluation computes something else."""
        chosen = set(steps)
        inside = np.array([name in chosen for name in self.steps])[self.step]
        calls = np.bincount(self.shape[inside], self.calls[inside], len(self.shapes))
        lasts = np.bincount(self.shape[inside], self.us[inside], len(self.shapes))
        of_type: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        by_precision: dict[str, float] = defaultdict(float)
        counted = 0.0
        for (type_, precision, each), n, us in zip(self.shapes, calls.tolist(), lasts.tolist(), strict=True):
            if each > 0 and us > 0:
                counted += us
                of_type[type_].append((each * n, us, us / n))
                by_precision[precision] += each * n
        types = {type_: _work(rows) for type_, rows in of_type.items()}
        return Done(types, dict(by_precision), counted, float(lasts.sum()))


USE = Reduction("utilisation", Use)


def reduce(rank: Rank) -> Use | None:
    """None where kernels are missing, or no shape tells of any work."""
    timeline = timeline_of(rank)
    if timeline is None or not timeline.tells_types:
        return None
    kernels = timeline.kernels
    counts = [is_cube(signature) or is_attention(signature.type) for signature in kernels.signatures]
    own = ~timeline.communication & np.array(counts, bool)[kernels.signature]
    size = len(kernels.signatures)
    rows, row = numbered(timeline.windows.of[own].astype(np.int64) * size + kernels.signature[own])
    calls = np.bincount(row, minlength=len(rows)).astype(float)
    lasts = np.bincount(row, kernels.duration[own], len(rows)).astype(float)
    used, shape = numbered(rows % size)
    times, numbers = np.bincount(shape, lasts, len(used)), np.bincount(shape, calls, len(used))
    most = bounds_of("operator_type.flop_per_s", "flop_per_s").most or np.inf
    told = []
    for index, us, n in zip(used.tolist(), times.tolist(), numbers.tolist(), strict=True):
        signature = kernels.signatures[index]
        each = float(flop(signature))
        # more than any card computes: these shapes mean something else
        known_work = each > 0 and us > 0 and each * n / us * 1e6 <= most
        precision = PRECISIONS.get((dtypes(signature.input_dtypes) or ("",))[0])
        told.append((signature.type, precision or "unknown", each if known_work else 0.0))
    if not any(each for _, _, each in told):
        return None
    cores, mhz = core_clock(rank)
    name = str(rank.info.get("npu") or "")
    known = peaks(name)
    return Use(
        name if known or not cores else "", known or peaks_of_cores(cores, mhz), timeline.windows.names, tuple(told),
        rows // size, shape, calls, lasts, (rank.source("kernels", "input_shapes", "duration_us"),),
    )  # fmt: skip


def _work(rows: list[tuple[float, float, float]]) -> Work:
    """Rows are (operations, microseconds, microseconds of one call) of one type's shapes."""
    done, us = sum(row[0] for row in rows), sum(row[1] for row in rows)
    told = [row for row in rows if row[2] >= LAUNCH_US] or rows
    best = max(row[0] / row[1] for row in told)
    order = sorted(told, key=lambda row: row[0] / row[1])
    half = np.searchsorted(np.cumsum([row[0] for row in order]), sum(row[0] for row in order) / 2)
    usual = order[int(half)][0] / order[int(half)][1]
    return Work(done, us, best * 1e6, sum(min(row[0] / best, row[1]) for row in rows),
                sum(min(row[0] / usual, row[1]) for row in rows))  # fmt: skip


def at_mean_work(lengths: Floats, work: Floats) -> Floats:
    """The lengths that steps would have if each computed the mean of their work: a part of a step is fixed, the rest
    goes with its work (least squares), no more than all of it."""
    off = work - work.mean()
    if not off.any():
        return lengths
    slope = float(off @ lengths / (off @ off))
    evened: Floats = lengths - off * min(max(slope, 0.0), float(lengths.mean() / work.mean()))
    return evened


_NEEDS = "kernels"
KINDS = (
    kind("utilisation.flop", "flop", "run", "operations of multiplications, convolutions and attention, per step",
         formula="from the shapes of tensors, in the steps judged; attention without a mask, its backward twice its "
                 "forward", needs=_NEEDS),
    kind("utilisation.flop_per_s", "flop_per_s", "run", "the same per second of the step",
         formula="utilisation.flop ÷ step.time_us", needs=_NEEDS),
    kind("utilisation.counted_share", "ratio", "run", "part of the time of such kernels whose shapes tell their work",
         needs=_NEEDS),
    kind("utilisation.card", "text", "run", "the card, where the profile names its variant", needs=_NEEDS),
    kind("utilisation.peak_flop_per_s", "flop_per_s", "run", "what its cube cores do at most in half precision",
         formula="knowledge_base/cards.yaml by name, else cores × clock × operations of a core in a cycle",
         needs=_NEEDS),
    kind("utilisation.model_flops_share", "ratio", "run", "model FLOPs utilisation (MFU)",
         formula="Σ over data types of operations ÷ (peak of the type × step); lower bound where not all shapes tell",
         needs=_NEEDS),
    kind("utilisation.best_step_us", "us", "run", "the step, if each type ran at the best speed seen for it here",
         formula="step.time_us − time of the counted kernels + their operations ÷ the best speed of their type",
         needs=_NEEDS),
    kind("utilisation.usual_step_us", "us", "run",
         "the same, if the slower half of each type's work ran at its middle speed", needs=_NEEDS),
    kind("utilisation.steps_ratio", "ratio", "run", "longest step ÷ shortest, had each computed the same (S81)",
         formula="lengths − what least squares of length on operations tells of more or fewer operations; median of "
                 "the ranks",
         needs=_NEEDS),
    kind("operator_type.flop_per_s", "flop_per_s", "operator_type", "operations per second of its kernels",
         needs=_NEEDS),
    kind("operator_type.best_flop_per_s", "flop_per_s", "operator_type", "the same of its fastest shapes",
         formula="highest over shapes whose calls last 20 us", needs=_NEEDS),
    kind("operator.peak_ratio", "number", "operator", "operations per second of its type's kernels, as a multiple of "
         "what the cube cores do at most in half precision; above 1 where a mask leaves out what shapes count",
         formula="operator_type.flop_per_s ÷ utilisation.peak_flop_per_s", needs=_NEEDS),
)  # fmt: skip


COUNTED = limit("utilisation", "counted_share")
"""Part of the time of matrix products and the like whose work must be known."""


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Utilisation of the typical rank, and the speed of each operator type."""
    found = run.each(USE)
    if not found:
        return
    row_us, step_us = facts.number("step.time_us", RUN), step_time(facts)
    rows = row_us / step_us if row_us and step_us else 1.0  # a recording of several steps may stand in one row
    times = steady(run)
    covers = {rank: one.covers for rank, one in times.items()}
    yield from fact("utilisation.steps_ratio", RUN, _steps_ratio(run, found), *next(iter(found.values())).sources)
    judged = {rank: use.judged(times[rank].steps if rank in times else ()) for rank, use in found.items()}
    done = {rank: use.over(judged[rank]) for rank, use in found.items()}
    per_step = {rank: len(steps) * covers.get(rank, 1) * rows for rank, steps in judged.items()}
    sources = next(iter(found.values())).sources
    yield from _type_facts(done, sources)
    half = [use.peaks["half"] for use in found.values() if "half" in use.peaks]
    peak = float(np.median(half)) if half else None
    if peak:
        yield from _operator_facts(done, facts, peak, sources)
    work = [sum(one.by_precision.values()) / per_step[rank] for rank, one in done.items()]
    cube = sum(one.cube_us for one in done.values())
    yield from fact("utilisation.flop", RUN, float(np.median(work)), *sources)
    counted = sum(one.counted_us for one in done.values()) / cube if cube > 0 else 1.0
    if cube > 0:
        yield from fact("utilisation.counted_share", RUN, counted, *sources)
    named = {use.card for use in found.values() if use.card}
    yield from fact("utilisation.card", RUN, ", ".join(sorted(named)) or None, *sources)
    if not step_us or counted < COUNTED or facts.value("recording.has_steps", RUN) is False:
        return
    yield from fact("utilisation.flop_per_s", RUN, float(np.median(work)) / step_us * 1e6, *sources)
    for name, best in (("best", True), ("usual", False)):
        saved = [
            sum(w.us - (w.best_us if best else w.usual_us) for w in one.types.values()) / per_step[rank]
            for rank, one in done.items()
        ]
        computing = facts.number("step.computing_us", RUN) or step_us
        yield from fact(f"utilisation.{name}_step_us", RUN, step_us - min(float(np.median(saved)), computing), *sources)
    seconds = [_peak_seconds(found[rank], one) for rank, one in done.items()]
    shares = [share / n / step_us * 1e6 for share, n in zip(seconds, per_step.values(), strict=True) if share]
    if len(shares) == len(found):
        yield from fact("utilisation.model_flops_share", RUN, float(np.median(shares)), *sources)
        yield from fact("utilisation.peak_flop_per_s", RUN, peak, *sources)


def _steps_ratio(run: Run, found: Mapping[int, Use]) -> float | None:
    ratios = []
    for rank, times in steady(run).items():
        use = found.get(rank)
        if use is None or times.covers > 1 or not set(times.steps) <= set(use.by_step) or len(times.steps) < 2:
            continue
        evened = at_mean_work(times.time, np.array([use.by_step[step] for step in times.steps]))
        ratios.append(float(evened.max() / evened.min()) if evened.min() > 0 else np.inf)
    return float(np.median(ratios)) if ratios else None


def _peak_seconds(use: Use, done: Done) -> float | None:
    """Seconds that this work takes at the card's peak; None where the peak of one of its data types is not known."""
    if not set(done.by_precision) <= set(use.peaks):
        return None
    return sum(flops / use.peaks[precision] for precision, flops in done.by_precision.items())


def _type_facts(found: Mapping[int, Done], sources: tuple[Source, ...]) -> Iterator[Fact]:
    for name in dict.fromkeys(name for one in found.values() for name in one.types):
        rows = [one.types[name] for one in found.values() if name in one.types]
        subject = Subject("operator_type", name)
        yield from fact("operator_type.flop_per_s", subject, _rate(rows), *sources)
        yield from fact("operator_type.best_flop_per_s", subject, max(row.best for row in rows), *sources)


def _operator_facts(
    found: Mapping[int, Done], facts: FactSet, peak: float, sources: tuple[Source, ...]
) -> Iterator[Fact]:
    for subject in facts.subjects("operator"):
        name = facts.value("operator.type", subject)
        rows = [one.types[name] for one in found.values() if isinstance(name, str) and name in one.types]
        if rows:
            yield from fact("operator.peak_ratio", subject, _rate(rows) / peak, *sources)


def _rate(rows: Sequence[Work]) -> float:
    return sum(row.flop for row in rows) / sum(row.us for row in rows) * 1e6


FAMILIES = (
    Family(
        "utilisation", KINDS, measure, USE.by(reduce), ("kernels",), uses=(STEPS,), after=("steps", "operators")
    ),
)  # fmt: skip
