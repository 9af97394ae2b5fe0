"""Operators by type and one by one: where device time goes, and what of it need not.

Statements S08 to S11, S14, S56, S57, S60, S61 and S67.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.basics.arrays import Floats
from advisor.basics.units import rank_list, show
from advisor.facts.base import FactSet, Family, Run, fact
from advisor.facts.operators.across import measure_across, measure_waits_inside
from advisor.facts.operators.beside import most_alone_us
from advisor.facts.operators.catalogue import KINDS
from advisor.facts.operators.gates import copies_of, experts_of, gates_of, norms_of, sizing_of
from advisor.facts.operators.kinds import (
    CUBE_CORES,
    DRAWING_CORES,
    MIXED_CORES,
    SLOW_DTYPES,
    VECTOR_CORES,
    holds_several,
    is_attention,
    is_batched_product,
    is_between_products,
    is_fetch,
    is_fused_exchange,
    is_own,
    is_random,
    is_rearranging,
    is_softmax,
    is_update,
)
from advisor.facts.operators.longest import longest_of
from advisor.facts.operators.reduction import OPERATORS, Operators, TypeRow
from advisor.facts.operators.reduction import reduce as reduce_kernels
from advisor.facts.operators.shapes.backward import Backward
from advisor.facts.operators.statistics import from_statistics
from advisor.facts.recording.limits import section
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank


def reduce(rank: Rank) -> Operators | None:
    """From the kernels, else from the tables that sum them up."""
    return reduce_kernels(rank) or from_statistics(rank)


@dataclass(frozen=True)
class _Scale:
    """Which of a rank's steps count, and how many they are."""

    chosen: Floats
    steps: float

    def per_step(self, values: Floats) -> float:
        usable = values[self.chosen.astype(bool)]
        usable = usable[np.isfinite(usable)]
        return float(usable.sum() / self.steps) if usable.size else float("nan")

    def counted_of(self, steps: Sequence[str]) -> set[str]:
        """The names of those that count."""
        return {step for step, chosen in zip(steps, self.chosen, strict=True) if chosen}


def scale(run: Run, rank: int, steps: tuple[str, ...]) -> _Scale:
    """The steady steps among those of a reduction; all where the names do not meet."""
    times = steady(run).get(rank)
    if times is not None and len(steps) == 1 and times.recorded > 1:
        return _Scale(np.ones(1), float(times.recorded))  # sums over the whole profile
    names = set(times.steps) if times is not None else set()
    chosen = np.array([float(step in names) for step in steps])
    if not chosen.any():
        chosen = np.ones(len(steps))
    return _Scale(chosen, float(chosen.sum()))


def _scale_of(run: Run, rank: int, found: Operators) -> _Scale:
    if found.averaged or found.executions:
        return _Scale(np.ones(1), float(found.executions or 1))
    return scale(run, rank, found.steps)


def _in_these_steps(run: Run) -> dict[int, Operators]:
    """The operators of each rank, without those of another recording: a table that sums up the run counts each type
    that runs in a step once a step at least. Where none is counted so often, it is a table of other steps."""
    found: dict[int, Operators] = dict(run.each(OPERATORS))
    times = steady(run)
    for rank in run.profile.ranks:
        o = found.get(rank.rank)
        if o is None or o.averaged or rank.has("kernels") or rank.rank not in times:
            continue
        steps, most = times[rank.rank].recorded, max((row.count.sum() for row in o.types.values()), default=0.0)
        if 0 < most < steps:
            text = f"counts no operator more than {most:.0f} times in {steps} steps: it tells of other steps; left out"
            rank.note(o.sources[0].file, text)
            del found[rank.rank]
        elif not o.executions and (covered := _steps_covered(o, times[rank.rank])) is not None:
            text = (
                f"sums kernels of {show(float(o.compute_us.sum()), 'us')}, more than the {steps} steps last: it covers "
                f"about {covered} such steps"
            )
            doubted = () if _runs_whole(o, covered) else (o.sources[0].table, times[rank.rank].table)
            rank.note(o.sources[0].file, text, doubted)
            found[rank.rank] = replace(o, executions=covered)
    for rank_id, o in found.items():
        if rank_id in times and not np.isfinite(o.aicpu_us).any():  # a table of sums
            found[rank_id] = replace(o, aicpu_most_us=most_alone_us(o, times[rank_id]))
    return found


def _steps_covered(o: Operators, times: StepTimes) -> int | None:
    """Of how many steps a table sums the kernels up that would fill far more than all recorded ones, by what the steps
    compute; None where the steps can hold them: kernels of several streams run beside each other."""
    step_us = float(np.mean(times.time)) if times.time.size else 0.0
    computing = times.phases.get("computing", times.time)
    us = float(np.nanmean(computing)) if np.isfinite(computing).any() else 0.0
    most = section("contradiction")["one_job_factor"] * step_us * times.recorded
    if min(step_us, us) <= 0 or float(o.compute_us.sum()) <= most:
        return None
    fewest = round(float(o.compute_us.sum()) / us)
    return fewest if "computing" in times.phases else max(fewest, _once_in_each(o))  # a step may idle as well


def _once_in_each(o: Operators) -> int:
    """How many executions the counts tell of: some type ran once in each, and all others as often in one as in the
    next; 0 where they do not show it."""
    counts = np.array([row.count.sum() for row in o.types.values() if not row.communication])
    enough = len(counts) >= section("witness")["fewest_types"] and counts.min() > 0
    return int(counts.min()) if enough and not np.any(counts % counts.min()) else 0


def _runs_whole(o: Operators, executions: int) -> bool:
    """Whether every type ran as often in each of so many executions: that is the reason why the table sums up more, and
    nothing is damaged. Of a few types all may do so by chance."""
    counts = np.array([row.count.sum() for row in o.types.values() if not row.communication])
    return len(counts) >= section("witness")["fewest_types"] and not np.any(counts % executions)


def time_by_type(run: Run, rank: int) -> dict[str, float]:
    """Operator type -> device time per steady step on this rank, communication left out."""
    found: Operators | None = run.each(OPERATORS).get(rank)
    if found is None:
        return {}
    per = _scale_of(run, rank, found)
    return {name: per.per_step(row.total_us) for name, row in found.types.items() if not row.communication}


def explain_difference(slow: Mapping[str, float], usual: Mapping[str, float]) -> list[tuple[str, float]]:
    """(operator type, microseconds per step more), largest first: which types account for a difference (S37)."""
    rows = [(name, slow.get(name, 0.0) - usual.get(name, 0.0)) for name in {*slow, *usual}]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the types, the operators, each rank and the run."""
    found = _in_these_steps(run)
    if not found:
        return
    scales = {rank: _scale_of(run, rank, o) for rank, o in found.items()}
    whole = all(o.whole for o in found.values())
    timed_us = facts.number("step.time_us", RUN) or None
    own = {rank: _step_of(rank, o, scales[rank], facts, timed_us) for rank, o in found.items()}
    # a sum over ranks is a share of their own steps: where these are unlike, the middle one is nobody's
    mean_us = sum(us for us in own.values() if us) / len(own) if all(own.values()) else None
    yield from _type_facts(found, scales, mean_us if whole else None, mean_us)
    yield from _operator_facts(found, scales, own if whole else {})
    yield from _run_facts(found, scales, own if whole else {})
    if timed_us is None:
        yield from measure_across(found)
    yield from measure_waits_inside(found, {rank: per.steps for rank, per in scales.items()})


def _step_of(rank: int, o: Operators, per: _Scale, facts: FactSet, usual_us: float | None) -> float | None:
    """How long the rank's step lasts; None where kernels that do not overlap take longer: it is no measure of them."""
    step_us = facts.number("step.time_us", Subject("rank", str(rank), (rank,))) or usual_us
    alone = sum(per.per_step(row.alone_us) for row in o.types.values() if np.isfinite(row.alone_us).any())
    # tables clip and round differently
    return step_us if step_us and alone <= (1 + section("contradiction")["of_step"]) * step_us else None


def _type_facts(
    found: dict[int, Operators], scales: dict[int, _Scale], step_us: float | None, timed_us: float | None
) -> Iterator[Fact]:
    """`step_us` where all kernels of the step are at hand, `timed_us` wherever anything tells how long it lasts."""
    compute = {r: scales[r].per_step(o.compute_us) for r, o in found.items()}
    total = sum(compute.values())
    talk = sum(scales[r].per_step(t.total_us) for r, o in found.items() for t in o.types.values() if t.communication)
    names = dict.fromkeys(n for o in found.values() for n, row in o.types.items() if not row.communication)
    timed = [r for r, o in found.items() if any(np.isfinite(row.alone_us).any() for row in o.types.values())]
    for name in names:
        rows = {r: o.types[name] for r, o in found.items() if name in o.types}
        first = next(iter(rows))
        source = found[first].sources
        on_aicpu = {r: row for r, row in rows.items() if row.aicpu_us > 0}
        named = tuple(sorted(on_aicpu)) if len(on_aicpu) < len(found) else ()
        subject = Subject("operator_type", name, named)
        samples = int(sum(row.count.sum() for row in rows.values()))
        ranks = len(found)

        def mean(get: Callable[[TypeRow], Floats], rows: dict[int, TypeRow] = rows, ranks: int = ranks) -> float:
            return sum(scales[r].per_step(get(row)) for r, row in rows.items()) / ranks

        time, count = mean(lambda row: row.total_us), mean(lambda row: row.count)
        whole = sum(float(row.total_us.sum()) for row in rows.values())
        yield from fact("operator_type.time_us", subject, time, *source, samples=samples)
        yield from fact("operator_type.count", subject, count or None, *source, samples=samples)  # it has run
        yield from fact("operator_type.random", subject, is_random(name), *source)
        yield from fact("operator_type.own", subject, is_own(name), *source)
        yield from fact("operator_type.copies", subject, is_rearranging(name) or None, *source)
        of_compute = time * ranks / total if total and not is_fetch(name) else None  # waiting for data computes nothing
        yield from fact("operator_type.compute_share", subject, of_compute, *source, samples=samples)
        yield from fact("operator_type.average_us", subject, time / count if count else None, *source, samples=samples)
        for part in ("update", "attention", "fusible", "written_back", "optimizer", "loss"):
            us = sum(getattr(row, f"{part}_us") for row in rows.values())
            yield from fact(
                f"operator_type.{part}_share", subject, us / whole if us else None, *source, samples=samples
            )
        alone = [scales[r].per_step(rows[r].alone_us) for r in timed if r in rows]
        exposed = sum(alone) / len(timed) if timed else None  # ranks with statistics only do not know
        yield from fact("operator_type.exposed_us", subject, exposed, *source, samples=samples)
        share = exposed / step_us if exposed is not None and step_us else None
        yield from fact("operator_type.step_share", subject, share, *source, samples=samples)
        device = total + talk if np.isfinite(talk) else total
        bounds = [of_compute and time * ranks / device, time / timed_us if timed_us else None]
        # sums hold the fetch before the first step, however long that waited for the pipeline to start
        bound = min((each for each in bounds if each is not None and not is_fetch(name)), default=None)
        yield from fact(
            "operator_type.stake_share", subject, bound if share is None else share, *source, samples=samples
        )
        best = max(rows, key=lambda r: (r in timed, bool(rows[r].core), float(rows[r].total_us.sum())))
        top = rows[best]
        counted = {r: scales[r].counted_of(found[r].steps) for r in rows}
        for prefix, calls in (
            ("", [longest_of(row.longest, counted[r]) for r, row in rows.items()]),
            ("aicpu_", [longest_of(row.aicpu_longest, counted[r]) for r, row in rows.items()]),
        ):
            longest = max(filter(None, calls), key=lambda call: call.us, default=None)
            if longest is not None:
                yield from fact(f"operator_type.{prefix}longest_us", subject, longest.us or None, *source)
                yield from fact(f"operator_type.{prefix}longest_call", subject, str(longest), *source)
            elif not prefix:
                summed = max((row.longest_us or 0.0 for row in rows.values()), default=0.0)
                yield from fact("operator_type.longest_us", subject, summed or None, *source)
        for key, text in (
            ("core", top.core), ("category", _category(top, found[best])),
            ("dtypes", (top.dtype_text or "").rstrip(";")), ("shapes", (top.shape_text or "").rstrip(";")),
            ("pipe", top.pipe), ("second_pipe", top.second_pipe),
            ("fed_by", top.fed_by), ("feeds", top.feeds),
        ):  # fmt: skip
            yield from fact(f"operator_type.{key}", subject, text or None, *source, samples=samples)
        yield from fact("operator_type.pipe_ratio", subject, top.pipe_ratio, *source, samples=samples)
        has_units = top.units_counted if top.pipe_ratio is not None else None
        yield from fact("operator_type.units_counted", subject, has_units, *source, samples=samples)
        yield from fact("operator_type.counters_blank", subject, top.blank or None, *source, samples=samples)
        yield from fact("operator_type.second_pipe_ratio", subject, top.second_ratio, *source, samples=samples)
        yield from fact("operator_type.transfer_ratio", subject, top.transfer_ratio, *source, samples=samples)
        yield from fact("operator_type.computing_ratio", subject, top.computing_ratio, *source, samples=samples)
        yield from fact("operator_type.mac_ratio", subject, top.mac_ratio, *source, samples=samples)
        of_best = float(top.total_us.sum())
        by_memory = top.memory_us / of_best if top.memory_us and of_best else None
        yield from fact("operator_type.memory_bound_share", subject, by_memory, *source, samples=samples)
        idle = top.memory_idle_us / of_best if top.memory_us and of_best else None
        yield from fact("operator_type.memory_idle_share", subject, idle, *source, samples=samples)
        at_memory = top.at_memory_us / of_best if top.at_memory_us and of_best else None
        yield from fact("operator_type.at_memory_share", subject, at_memory, *source, samples=samples)
        yield from fact("operator_type.bytes_per_s", subject, top.bytes_per_s, *source, samples=samples)
        yield from fact("operator_type.memory_speed_share", subject, top.memory_speed, *source, samples=samples)
        yield from fact("operator_type.rest_mac_ratio", subject, top.rest_mac_ratio, *source, samples=samples)
        rest_shapes = top.rest_shape.rstrip(";") or None
        yield from fact("operator_type.rest_shapes", subject, rest_shapes, *source, samples=samples)
        yield from fact("operator_type.framework_share", subject, top.framework_share, *source, samples=samples)
        yield from _inside_facts(subject, [row for row in rows.values() if row.inside], whole, source)
        known = sum(row.known_dtype_us for row in rows.values())
        if known:
            share = sum(row.float32_us for row in rows.values()) / known
            yield from fact("operator_type.float32_share", subject, share, *source, samples=samples)
            most = max(rows.values(), key=lambda row: row.float32_us)
            yield from fact("operator_type.float32_call", subject, most.float32_call or None, *source)
            yield from fact("operator_type.float32_dtypes", subject, most.float32_dtypes or None, *source)
        in_half = [row.in_half for row in rows.values() if row.in_half]
        if half := sum(pair[1] for pair in in_half):
            ratio = sum(pair[0] for pair in in_half) / half
            yield from fact("operator_type.float32_ratio", subject, ratio, *source, samples=samples)
        yield from (replace(each, sources=source) for each in _defects(subject, rows, time, whole))
        if on_aicpu:
            per_step = [scales[r].per_step(row.total_us) * _aicpu_part(row) for r, row in on_aicpu.items()]
            beside = [_alone_us(found[r], scales[r]) for r in on_aicpu]
            yield from fact("operator_type.aicpu_us", subject, float(np.mean(per_step)), *source)
            yield from fact("operator_type.aicpu_alone_us", subject, float(np.mean(beside)), *source)
            yield from fact("operator_type.aicpu_ranks", subject, rank_list(named) if named else None, *source)


def _inside_facts(
    subject: Subject, rows: Sequence[TypeRow], whole: float, source: tuple[Source, ...]
) -> Iterator[Fact]:
    """`whole` is the type's time on all ranks, microseconds."""
    found = [row.inside for row in rows if row.inside is not None]
    if not whole or not found:
        return
    inside, drawing = sum(one.us for one in found), sum(one.drawing_us for one in found)
    yield from fact("operator_type.inside_share", subject, inside / whole if inside else None, *source)
    yield from fact("operator_type.drawing_share", subject, drawing / whole if drawing else None, *source)
    yield from fact("operator_type.inside_calls", subject, max(found, key=lambda one: one.us).calls or None, *source)


def _defects(subject: Subject, rows: dict[int, TypeRow], time: float, whole: float) -> Iterator[Fact]:
    padded = max(rows.values(), key=lambda row: row.padding_us)
    if any(row.cube and row.known_dtype_us for row in rows.values()) and whole:
        share = sum(row.padding_us for row in rows.values()) / whole
        yield from fact("operator_type.padding_share", subject, share)
        yield from fact("operator_type.padding_us", subject, share * time)
        yield from fact("operator_type.padding_shape", subject, padded.padding_shape or None)
        yield from fact("operator_type.padding_align", subject, padded.padding_align or None)
    odd = max((row.unaligned for row in rows.values() if row.unaligned), key=lambda found: found.us, default=None)
    if odd is not None and whole:
        share = sum(row.unaligned.us for row in rows.values() if row.unaligned) / whole
        yield from fact("operator_type.unaligned_us", subject, share * time)
        yield from fact("operator_type.unaligned_mac_ratio", subject, odd.mac_ratio)
        yield from fact("operator_type.aligned_mac_ratio", subject, odd.aligned_ratio)
        yield from fact("operator_type.unaligned_speed_share", subject, odd.speed_ratio)
        yield from fact("operator_type.unaligned_shape", subject, odd.shape)
        yield from fact("operator_type.unaligned_align", subject, odd.align)
    slow = max((row.slow for row in rows.values() if row.slow), key=lambda case: case.excess_us, default=None)
    if slow is not None and whole:
        excess = sum(row.slow.excess_us for row in rows.values() if row.slow)
        yield from fact("operator_type.slow_ratio", subject, slow.ratio, samples=slow.calls)
        yield from fact("operator_type.slow_us", subject, excess / whole * time, samples=slow.calls)
        yield from fact("operator_type.slow_shape", subject, slow.shape)
        yield from fact("operator_type.slow_dtype", subject, slow.dtype)
        yield from fact("operator_type.fast_case", subject, slow.reference)
    patches = [row.patches for row in rows.values() if row.patches]
    if patches and whole:
        worst = max(patches, key=lambda found: found.us)
        yield from fact("operator_type.patch_us", subject, sum(found.us for found in patches) / whole * time)
        yield from fact(
            "operator_type.patch_product_us", subject, sum(found.product_us for found in patches) / whole * time
        )
        yield from fact("operator_type.patch_shape", subject, worst.shape)
        yield from fact("operator_type.patch_product", subject, worst.product)
        yield from fact("operator_type.patch_by_card", subject, any(found.by_card for found in patches) or None)
    yield from _backward(subject, [row.backward for row in rows.values() if row.backward], time / whole if whole else 0)
    if any(row.aicpu_us for row in rows.values()):
        kinds = tuple(dict.fromkeys(k for row in rows.values() for k in row.aicpu_dtypes))
        yield from fact("operator_type.aicpu_dtypes", subject, ", ".join(kinds) or None)
        better = ", ".join(f"{k} → {SLOW_DTYPES[k]}" for k in kinds)
        yield from fact("operator_type.aicpu_replacement", subject, better or None)


def _backward(subject: Subject, found: Sequence[Backward], scale: float) -> Iterator[Fact]:
    """`scale` is what a microsecond over the profile is per step."""
    if not found:
        return
    worst = max(found, key=lambda one: one.us)
    yield from fact("operator_type.backward_us", subject, sum(one.us for one in found) * scale)
    yield from fact("operator_type.backward_forward_us", subject, sum(one.forward_us for one in found) * scale)
    yield from fact("operator_type.backward_shape", subject, worst.shape)
    yield from fact("operator_type.backward_mac_ratio", subject, worst.mac_ratio)
    yield from fact("operator_type.forward_mac_ratio", subject, worst.forward_mac_ratio)


def _alone_us(o: Operators, per: _Scale) -> float:
    """Microseconds per step in which only AI CPU kernels run; of a table of sums, in which they can at most."""
    measured = per.per_step(o.aicpu_us)
    return measured if np.isfinite(measured) else per.per_step(np.array([o.aicpu_most_us]))


def _aicpu_part(row: TypeRow) -> float:
    """Part of a type's time that its calls on the AI CPU take."""
    whole = float(row.total_us.sum())
    return row.aicpu_us / whole if whole else 0.0


def _category(row: TypeRow, found: Operators) -> str:
    """What kind of work a type is; empty where it is several, or its core is lost that the table tells of others."""
    if holds_several(row.type):
        return ""
    if row.aicpu_us > 0.5 * float(row.total_us.sum()):
        return "aicpu"
    if is_fetch(row.type):
        return "fetch"
    if row.core.upper() in DRAWING_CORES:
        return "random"
    if row.conversion:
        return "conversion"
    if is_fused_exchange(row.type):
        return "exchange"
    if is_attention(row.type):
        return "attention"
    if is_update(row.type):
        return "update"
    if row.cube:
        return "cube"
    split = any(other.core.upper() in VECTOR_CORES | MIXED_CORES for other in found.types.values())
    if split and row.core.upper() in CUBE_CORES and row.mac_ratio is None:
        return ""  # this chip has vector cores of their own, and no counter tells what the other kind did here
    lost = not row.core and any(other.core for other in found.types.values() if not other.communication)
    return "" if lost else "vector"


def _operator_facts(
    found: dict[int, Operators], scales: dict[int, _Scale], own: Mapping[int, float | None]
) -> Iterator[Fact]:
    """`own` are the steps of the ranks, where all their kernels are at hand."""
    rows: dict[str, list[tuple[int, float, int, str, bool]]] = {}
    for rank, o in found.items():
        steps = 1.0 if o.averaged else max(float(len(o.steps)), scales[rank].steps)
        for row in o.operators:
            timed = bool(row.by_step_us.size)
            us = scales[rank].per_step(row.by_step_us) if timed else row.total_us / steps
            if us > 0:  # what ran in the warm-up alone is none of the steps that are judged
                rows.setdefault(row.operator, []).append((rank, us, row.calls, row.type, timed))
    most = sorted(rows, key=lambda name: -max(us for _, us, *_ in rows[name]))[:20]
    for name in most:
        rank, us, calls, type_name, timed = max(rows[name], key=lambda row: row[1])
        subject, source = Subject("operator", name), found[rank].sources
        yield from fact("operator.time_us", subject, us, *source, samples=calls)
        step_us = own.get(rank)
        share = us / step_us if step_us else None
        if share is not None and timed:  # kernels of one name may run side by side, on several streams
            share = min(share, 1.0)
        yield from fact("operator.step_share", subject, share, *source, samples=calls)
        yield from _kind_of(subject, type_name, found[rank])
        yield from fact("operator.count", subject, calls, *source)
    odd = sorted(((o, rank) for rank, f in found.items() for o in f.outliers), key=lambda pair: -pair[0].excess_us)
    seen: set[str] = set()
    for outlier, rank in odd:
        if not outlier.operator or outlier.operator in seen or len(seen) == 10:
            continue
        seen.add(outlier.operator)
        subject, source = Subject("operator", outlier.operator), found[rank].sources
        n = outlier.calls
        yield from fact("operator.slowest_us", subject, outlier.slowest_us, *source, samples=n)
        yield from fact("operator.typical_us", subject, outlier.typical_us, *source, samples=n)
        yield from fact("operator.slowest_ratio", subject, outlier.slowest_us / outlier.typical_us, *source, samples=n)
        yield from fact(
            "operator.excess_us",
            subject,
            outlier.excess_us / max(float(len(found[rank].steps)), scales[rank].steps),
            *source,
            samples=n,
        )
        yield from fact("operator.slowest_step", subject, outlier.step, *source)
        if outlier.start_ns >= 0:
            start = f"{outlier.start_ns // 1000}.{outlier.start_ns % 1000:03d}"
            yield from fact("operator.slowest_start", subject, start, *source)
        if outlier.operator not in most:
            yield from _kind_of(subject, outlier.type, found[rank])


def _kind_of(subject: Subject, type_name: str, found: Operators) -> Iterator[Fact]:
    yield from fact("operator.type", subject, type_name, *found.sources)
    row = found.types.get(type_name)
    known = row is not None and not row.communication
    yield from fact("operator.category", subject, (_category(row, found) or None) if row and known else None)
    if row is not None:
        yield from fact("operator.pipe", subject, row.pipe or None, *found.sources)
        yield from fact("operator.pipe_ratio", subject, row.pipe_ratio, *found.sources)
        yield from fact("operator.transfer_ratio", subject, row.transfer_ratio, *found.sources)


def _run_facts(
    found: dict[int, Operators], scales: dict[int, _Scale], own: Mapping[int, float | None]
) -> Iterator[Fact]:
    """`own` as of `_operator_facts`."""
    rows: dict[int, dict[str, float]] = {}
    for rank, o in found.items():
        per = scales[rank]
        rows[rank] = dict(_of_rank(o, per, own.get(rank)))
        subject = Subject("rank", str(rank), (rank,))
        for name, value in rows[rank].items():
            yield from fact(name, subject, value, *o.sources)
    first = next(iter(found.values()))
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = [row[name] for row in rows.values() if name in row and np.isfinite(row[name])]
        if values:
            yield from fact(name, RUN, float(np.mean(values)), *first.sources, samples=len(values))
    if any(o.update_types for o in found.values()):
        yield from fact("operators.update_fused", RUN, first.fused_update, *first.sources)
        yield from fact("operators.update_types", RUN, first.update_types or None, *first.sources)
        yield from fact("operators.update_chain", RUN, first.update_chain or None, *first.sources)
        yield from fact("operators.update_passes", RUN, first.update_passes, *first.sources)
    yield from fact("operators.fusible_example", RUN, first.small.example or None, *first.sources)
    for name, pieces_of in _PIECES.items():
        if (pieces := pieces_of(first.types)) is not None:
            yield from fact(f"operators.{name}_types", RUN, pieces.text, *first.sources)
            if pieces.activation:
                yield from fact("operators.gate_activation", RUN, pieces.activation, *first.sources)
                yield from fact("operators.gate_ordered", RUN, pieces.ordered, *first.sources)
    fused = [row.type for row in _fused_exchanges(first)]
    yield from fact("operators.fused_exchange_types", RUN, ", ".join(fused) or None, *first.sources)
    yield from fact("operators.attention_types", RUN, ", ".join(_unfused_attention(first)) or None, *first.sources)


_PIECES = {"gate": gates_of, "norm": norms_of, "copying": copies_of, "experts": experts_of, "sizing": sizing_of}
"""What facts are told of chains that one kernel could do, and of what the host waits for."""


def _unfused_attention(o: Operators) -> dict[str, float]:
    """Type -> part of its time between the two products of an attention that is not fused, the longest first; empty
    where one is fused, or where batches of matrices are not multiplied at least twice for each softmax. Where no order
    of kernels tells what runs there, the types that nothing else has."""
    if o.attention_us is not None and o.attention_us.sum() > 0:
        found = {name: row.attention_us for name, row in o.types.items() if row.attention_us}
    else:
        if any(map(is_attention, o.types)):
            return {}
        products = sum(float(row.count.sum()) for name, row in o.types.items() if is_batched_product(name))
        softmaxes = sum(float(row.count.sum()) for name, row in o.types.items() if is_softmax(name))
        if not softmaxes or products < 2 * softmaxes:
            return {}
        found = {name: _beside_softmaxes(row, o.types) for name, row in o.types.items() if is_between_products(name)}
    order = sorted(found, key=lambda name: -found[name])
    return {name: found[name] / us for name in order if (us := float(o.types[name].total_us.sum()))}


def _beside_softmaxes(row: TypeRow, types: Mapping[str, TypeRow]) -> float:
    """Microseconds that a type can take at most in calls beside a softmax, forward or backward: what is called more
    often than those, as dropout is behind every projection, runs elsewhere for the rest."""
    us, calls = float(row.total_us.sum()), float(row.count.sum())
    softmaxes = sum(float(other.count.sum()) for name, other in types.items() if _is_any_softmax(name))
    if _is_any_softmax(row.type) or not row.longest_us or calls <= softmaxes:
        return us
    return min(us, softmaxes * row.longest_us)


def _is_any_softmax(name: str) -> bool:
    return is_between_products(name) and "softmax" in name.lower()


def _exchanges(o: Operators, per: _Scale) -> Iterator[tuple[str, float]]:
    """The type of collective that takes longest, and its longest call, where these are sums of the whole recording."""
    told = ((per.per_step(row.total_us), row) for row in o.types.values() if row.communication)
    us, row = max((each for each in told if each[0] > 0), key=lambda each: each[0], default=(float("nan"), None))
    yield "operators.exchange_us", us
    if row is not None and row.longest_us and not o.averaged and us == float(row.total_us.sum()):
        yield "operators.exchange_longest_us", row.longest_us
        yield "operators.exchange_count", float(row.count.sum())


def _of_rank(o: Operators, per: _Scale, step_us: float | None) -> Iterator[tuple[str, float]]:
    compute = per.per_step(o.compute_us)
    yield "operators.compute_us", compute
    if not o.has_shapes:  # a table of sums counts all kernels; of kernels themselves some may be cut off
        yield from _exchanges(o, per)
        inside = sum(per.per_step(row.total_us) for row in _fused_exchanges(o))
        yield "operators.fused_exchange_us", inside or float("nan")
    for name, values in (("conversion", o.conversion_us), ("aicpu", o.aicpu_us), ("update", o.update_us),
                         ("fusible", o.small.span_us), ("tail", o.tail_us)):  # fmt: skip
        us = per.per_step(values)
        yield f"operators.{name}_us", us
        if step_us:
            yield f"operators.{name}_share", us / step_us
    conversions = [row.count for row in o.types.values() if row.conversion]
    yield "operators.conversion_count", sum(per.per_step(count) for count in conversions)
    yield "operators.update_count", per.per_step(o.update_kernels)
    if o.small_update is not None and o.small_update.kernels.any():
        yield "operators.update_small_count", per.per_step(o.small_update.kernels)
        yield "operators.update_small_us", per.per_step(o.small_update.us)
        yield "operators.update_moving_us", per.per_step(o.small_update.moving_us)
    if compute:
        named = (per.per_step(row.total_us) for row in o.types.values() if is_update(row.type))
        update = sum(named) if o.update_total_us is None else per.per_step(o.update_total_us)
        yield "operators.update_compute_share", update / compute
    limits = [
        (row.total_us.sum(), row.pipe_ratio) for row in o.types.values() if is_update(row.type) and row.pipe_ratio
    ]
    if limits:
        yield "operators.update_pipe_ratio", sum(us * ratio for us, ratio in limits) / sum(us for us, _ in limits)
    yield "operators.fusible_count", per.per_step(o.small.kernels)
    if (between := _unfused_attention(o)) and compute:
        us = sum(part * per.per_step(o.types[name].total_us) for name, part in between.items())
        yield "operators.attention_us", us
        yield "operators.attention_share", us / compute
    for name, pieces_of in _PIECES.items():
        if (pieces := pieces_of(o.types)) is not None and compute:
            us = per.per_step(pieces.total_us)
            yield f"operators.{name}_us", us
            yield f"operators.{name}_share", us / compute
            yield f"operators.{name}_count", per.per_step(pieces.count)
            if pieces.layers is not None:
                yield f"operators.{name}_layers", per.per_step(pieces.layers)
    yield "operators.fusible_saving_us", per.per_step(o.small.saving_us)
    if o.dynamic_share is not None:
        yield "operators.dynamic_share", o.dynamic_share
    if o.shapes_per_operator is not None:
        yield "operators.shapes_per_operator", o.shapes_per_operator
    cube = [row for row in o.types.values() if row.cube and row.known_dtype_us]
    known = sum(row.known_dtype_us for row in cube)
    if known:
        yield "operators.float32_cube_share", sum(row.float32_us for row in cube) / known


def _fused_exchanges(o: Operators) -> list[TypeRow]:
    """Types whose kernels exchange between ranks inside, the longest first."""
    rows = [row for row in o.types.values() if is_fused_exchange(row.type) and not row.communication]
    return sorted(rows, key=lambda row: -float(row.total_us.sum()))


FAMILIES = (
    Family(
        "operators", KINDS, measure, OPERATORS.by(reduce), ("kernels", "operator_types", "operators"), uses=(STEPS,)
    ),
)
