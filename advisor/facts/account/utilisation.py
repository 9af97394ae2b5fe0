"""How much of what the card can compute a step uses: model FLOPs utilisation, and the step at the best speed seen.

Operations come from shapes (`operators/flops.py`), the card's peak from its name, else from its cores and clock
(knowledge_base/cards.yaml); where neither is told there is no share. The yardstick of an operator type is its fastest
call in the same profile: what the hardware did once with this kind of work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.account.spending import step_time
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.operators.cores import core_clock
from advisor.facts.operators.flops import flop
from advisor.facts.operators.kinds import dtypes, is_attention, is_cube
from advisor.facts.operators.work import LAUNCH_US
from advisor.facts.recording.bounds import bounds_of
from advisor.facts.recording.counts import is_cut
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.cards import KINDS as PRECISIONS
from advisor.knowledge.cards import peaks, peaks_of_cores
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank


@dataclass(frozen=True)
class Work:
    """One operator type on one rank, over the profile: operations and microseconds of the calls whose shapes tell."""

    flop: float
    us: float
    best: float
    """Operations per second of its fastest shapes that run long enough to tell."""
    best_us: float
    """What these calls would take at that speed."""
    usual_us: float
    """The same at the speed that half of its work reaches, where it is slower."""


@dataclass(frozen=True)
class Use:
    """What one rank computes in its recording."""

    card: str
    peaks: Mapping[str, float]
    types: Mapping[str, Work]
    by_precision: Mapping[str, float]
    """half, single, int8 -> operations."""
    counted_us: float
    cube_us: float
    """All multiplications, convolutions and attention, those whose shapes do not tell as well."""
    by_step: Mapping[str, float]
    """Step -> operations."""
    sources: tuple[Source, ...]

    @property
    def steps(self) -> int:
        return max(len(self.by_step), 1)


USE = Reduction("utilisation", Use)


def reduce(rank: Rank) -> Use | None:
    """None where kernels are missing, or no shape tells of any work."""
    timeline = timeline_of(rank)
    if timeline is None or is_cut(rank, timeline.kernels):
        return None
    kernels = timeline.kernels
    size = len(kernels.signatures)
    own = ~timeline.communication
    calls = np.bincount(kernels.signature[own], minlength=size)
    lasts = np.bincount(kernels.signature[own], kernels.duration[own], size)
    of_type: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    by_precision: dict[str, float] = defaultdict(float)
    each = np.zeros(size)
    cube = counted = 0.0
    most = bounds_of("operator_type.flop_per_s", "flop_per_s").most or np.inf
    for index in np.flatnonzero(calls).tolist():
        signature, n, us = kernels.signatures[index], int(calls[index]), float(lasts[index])
        if not (is_cube(signature) or is_attention(signature.type)):
            continue
        cube += us
        done = float(flop(signature)) * n
        # more than any card computes: these shapes mean something else
        if done > 0 and us > 0 and done / us * 1e6 <= most:
            counted += us
            each[index] = done / n
            of_type[signature.type].append((done, us, us / n))
            precision = PRECISIONS.get((dtypes(signature.input_dtypes) or ("",))[0])
            by_precision[precision or "unknown"] += done
    if not of_type:
        return None
    cores, mhz = core_clock(rank)
    name = str(rank.info.get("npu") or "")
    known = peaks(name)
    names = timeline.windows.names
    by_step = np.bincount(timeline.windows.of[own], each[kernels.signature[own]], len(names))
    types = {type_: _work(rows) for type_, rows in of_type.items()}
    return Use(
        name if known or not cores else "", known or peaks_of_cores(cores, mhz), types, dict(by_precision), counted,
        cube, dict(zip(names, by_step.tolist(), strict=True)), (rank.source("kernels", "input_shapes", "duration_us"),),
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
         formula="from the shapes of tensors; attention without a mask, its backward twice its forward", needs=_NEEDS),
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
    covers = {rank: times.covers for rank, times in steady(run).items()}
    yield from fact("utilisation.steps_ratio", RUN, _steps_ratio(run, found), *next(iter(found.values())).sources)
    per_step = {rank: use.steps * covers.get(rank, 1) * rows for rank, use in found.items()}
    sources = next(iter(found.values())).sources
    yield from _type_facts(found, sources)
    work = [sum(use.by_precision.values()) / per_step[rank] for rank, use in found.items()]
    cube = sum(use.cube_us for use in found.values())
    yield from fact("utilisation.flop", RUN, float(np.median(work)), *sources)
    counted = sum(use.counted_us for use in found.values()) / cube if cube > 0 else 1.0
    if cube > 0:
        yield from fact("utilisation.counted_share", RUN, counted, *sources)
    named = {use.card for use in found.values() if use.card}
    yield from fact("utilisation.card", RUN, ", ".join(sorted(named)) or None, *sources)
    if not step_us or counted < COUNTED or facts.value("recording.has_steps", RUN) is False:
        return
    yield from fact("utilisation.flop_per_s", RUN, float(np.median(work)) / step_us * 1e6, *sources)
    for name, best in (("best", True), ("usual", False)):
        saved = [
            sum(w.us - (w.best_us if best else w.usual_us) for w in use.types.values()) / per_step[rank]
            for rank, use in found.items()
        ]
        computing = facts.number("step.computing_us", RUN) or step_us
        yield from fact(f"utilisation.{name}_step_us", RUN, step_us - min(float(np.median(saved)), computing), *sources)
    shares = [share / per_step[rank] / step_us * 1e6 for rank, use in found.items() if (share := _peak_seconds(use))]
    if len(shares) == len(found):
        yield from fact("utilisation.model_flops_share", RUN, float(np.median(shares)), *sources)
        half = [use.peaks["half"] for use in found.values() if "half" in use.peaks]
        yield from fact("utilisation.peak_flop_per_s", RUN, float(np.median(half)) if half else None, *sources)


def _steps_ratio(run: Run, found: Mapping[int, Use]) -> float | None:
    ratios = []
    for rank, times in steady(run).items():
        use = found.get(rank)
        if use is None or times.covers > 1 or not set(times.steps) <= set(use.by_step) or len(times.steps) < 2:
            continue
        evened = at_mean_work(times.time, np.array([use.by_step[step] for step in times.steps]))
        ratios.append(float(evened.max() / evened.min()) if evened.min() > 0 else np.inf)
    return float(np.median(ratios)) if ratios else None


def _peak_seconds(use: Use) -> float | None:
    """Seconds that this work takes at the card's peak; None where the peak of one of its data types is not known."""
    if not set(use.by_precision) <= set(use.peaks):
        return None
    return sum(done / use.peaks[precision] for precision, done in use.by_precision.items())


def _type_facts(found: Mapping[int, Use], sources: tuple[Source, ...]) -> Iterator[Fact]:
    for name in dict.fromkeys(name for use in found.values() for name in use.types):
        rows = [use.types[name] for use in found.values() if name in use.types]
        subject = Subject("operator_type", name)
        done, us = sum(row.flop for row in rows), sum(row.us for row in rows)
        yield from fact("operator_type.flop_per_s", subject, done / us * 1e6, *sources)
        yield from fact("operator_type.best_flop_per_s", subject, max(row.best for row in rows), *sources)


FAMILIES = (Family("utilisation", KINDS, measure, USE.by(reduce), ("kernels",), uses=(STEPS,), after=("steps",)),)
