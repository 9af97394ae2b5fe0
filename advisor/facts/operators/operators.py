"""Operators by type and one by one: where device time goes, and what of it need not.

Statements S08 to S11, S14, S56, S57, S60, S61 and S67.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact
from advisor.facts.collectives.exchanges import POINT_TO_POINT, kind_of
from advisor.facts.operators.across import measure_across, measure_waits_inside
from advisor.facts.operators.catalogue import KINDS
from advisor.facts.operators.coverage import Scale, in_these_steps, scale_of
from advisor.facts.operators.gates import copies_of, experts_of, gates_of, norms_of, rotary_of, sizing_of
from advisor.facts.operators.kinds import (
    is_attention,
    is_batched_product,
    is_between_products,
    is_fused_exchange,
    is_loss,
    is_softmax,
    is_update,
)
from advisor.facts.operators.reduction import OPERATORS, Operators
from advisor.facts.operators.reduction import reduce as reduce_kernels
from advisor.facts.operators.statistics import from_statistics
from advisor.facts.operators.types.facts import type_facts
from advisor.facts.operators.types.row import TypeRow, category
from advisor.facts.recording.limits import section
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Subject
from advisor.sources.base import Rank


def reduce(rank: Rank) -> Operators | None:
    """From the kernels, else from the tables that sum them up."""
    return reduce_kernels(rank) or from_statistics(rank)


def time_by_type(run: Run, rank: int) -> dict[str, float]:
    """Operator type -> device time per steady step on this rank, communication left out."""
    found: Operators | None = run.each(OPERATORS).get(rank)
    if found is None:
        return {}
    per = scale_of(run, rank, found)
    return {name: per.per_step(row.total_us) for name, row in found.types.items() if not row.communication}


def explain_difference(slow: Mapping[str, float], usual: Mapping[str, float]) -> list[tuple[str, float]]:
    """(operator type, microseconds per step more), largest first: which types account for a difference (S37)."""
    rows = [(name, slow.get(name, 0.0) - usual.get(name, 0.0)) for name in {*slow, *usual}]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the types, the operators, each rank and the run."""
    found = in_these_steps(run)
    if not found:
        return
    scales = {rank: scale_of(run, rank, o) for rank, o in found.items()}
    whole = all(o.whole for o in found.values())
    timed_us = facts.number("step.time_us", RUN) or None
    yield from fact("operators.are_placed", RUN, timed_us is not None, *next(iter(found.values())).sources)
    own = {rank: _step_of(rank, o, scales[rank], facts, timed_us) for rank, o in found.items()}
    # a sum over ranks is a share of their own steps: where these are unlike, the middle one is nobody's
    mean_us = sum(us for us in own.values() if us) / len(own) if all(own.values()) else None
    yield from type_facts(found, scales, mean_us if whole else None, mean_us)
    yield from _operator_facts(found, scales, own if whole else {})
    yield from _run_facts(found, scales, own if whole else {})
    if timed_us is None:
        yield from measure_across(found)
    yield from measure_waits_inside(found, {rank: per.steps for rank, per in scales.items()})


def _step_of(rank: int, o: Operators, per: Scale, facts: FactSet, usual_us: float | None) -> float | None:
    """How long the rank's step lasts; None where kernels that do not overlap take longer: it is no measure of them."""
    step_us = facts.number("step.time_us", Subject("rank", str(rank), (rank,))) or usual_us
    alone = sum(per.per_step(row.alone_us) for row in o.types.values() if np.isfinite(row.alone_us).any())
    # tables clip and round differently
    return step_us if step_us and alone <= (1 + section("contradiction")["of_step"]) * step_us else None


def _operator_facts(
    found: dict[int, Operators], scales: dict[int, Scale], own: Mapping[int, float | None]
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
    yield from fact("operator.category", subject, (category(row, found.types) or None) if row and known else None)
    if row is not None:
        yield from fact("operator.pipe", subject, row.units.busiest or None, *found.sources)
        yield from fact("operator.pipe_ratio", subject, row.units.ratio, *found.sources)
        yield from fact("operator.transfer_ratio", subject, row.units.transfer_ratio, *found.sources)


def _run_facts(
    found: dict[int, Operators], scales: dict[int, Scale], own: Mapping[int, float | None]
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
        yield from fact("operators.update_plain", RUN, first.update_plain, *first.sources)
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


_PIECES = {
    "gate": gates_of,
    "norm": norms_of,
    "rotary": rotary_of,
    "copying": copies_of,
    "experts": experts_of,
    "sizing": sizing_of,
}
"""What facts are told of chains that one kernel could do, and of what the host waits for."""


def _unfused_attention(o: Operators) -> dict[str, float]:
    """Type -> part of its time between the two products of an attention that is not fused, the longest first; empty
    where one is fused, or where batches of matrices are not multiplied at least twice for each softmax. Where no order
    of kernels tells what runs there, the types that nothing else has."""
    if o.attention_us is not None and o.attention_us.sum() > 0:
        found = {name: us for name, row in o.types.items() if (us := row.parts.get("attention"))}
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


def _exchanges(o: Operators, per: Scale) -> Iterator[tuple[str, float]]:
    """What hands over from rank to rank, the type of collective that takes longest, and its longest call, where these
    are sums of the whole recording."""
    told = [(per.per_step(row.total_us), row) for row in o.types.values() if row.communication]
    handed = sum(us for us, row in told if kind_of(row.type) in POINT_TO_POINT)
    yield "operators.handover_us", handed if told else np.nan
    us, row = max((each for each in told if each[0] > 0), key=lambda each: each[0], default=(float("nan"), None))
    yield "operators.exchange_us", us
    if row is not None and row.longest_us and not o.averaged and us == float(row.total_us.sum()):
        yield "operators.exchange_longest_us", row.longest_us
        yield "operators.exchange_count", float(row.count.sum())


def _of_rank(o: Operators, per: Scale, step_us: float | None) -> Iterator[tuple[str, float]]:
    compute = per.per_step(o.compute_us)
    yield "operators.compute_us", compute
    if not o.has_shapes:  # a table of sums counts all kernels; of kernels themselves some may be cut off
        yield from _exchanges(o, per)
        fused = _fused_exchanges(o)
        yield "operators.fused_exchange_us", sum(per.per_step(row.total_us) for row in fused) or float("nan")
        shortest = [per.per_step(np.array([row.shortest_us])) for row in fused if row.shortest_us is not None]
        yield "operators.fused_exchange_least_us", sum(shortest) if shortest and len(shortest) == len(fused) else np.nan
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
    if o.update_late_us is not None and o.update_kernels.any():
        yield "operators.update_late_us", per.per_step(o.update_late_us)
    if o.gradient_sums is not None:
        yield "operators.gradient_sum_count", per.per_step(o.gradient_sums[0])
        yield "operators.gradient_sum_us", per.per_step(o.gradient_sums[1])
    if compute:
        named = (per.per_step(row.total_us) for row in o.types.values() if is_update(row.type))
        update = sum(named) if o.update_total_us is None else per.per_step(o.update_total_us)
        yield "operators.update_compute_share", update / compute
    limits = [
        (row.total_us.sum(), row.units.ratio) for row in o.types.values() if is_update(row.type) and row.units.ratio
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
            if pieces.each:
                yield f"operators.{name}_kernels", sum(pieces.each.values()) * per.per_step(pieces.count)
            if pieces.gradients is not None:
                yield f"operators.{name}_gradient_count", per.per_step(pieces.gradients)
            if pieces.layers is not None:
                yield f"operators.{name}_layers", per.per_step(pieces.layers)
    yield "operators.fusible_saving_us", per.per_step(o.small.saving_us)
    yield "operators.fusible_spared_count", per.per_step(o.small.spared)
    yield "operators.fusible_spared_us", per.per_step(o.small.spared_us)
    if o.dynamic_share is not None:
        yield "operators.dynamic_share", o.dynamic_share
    if o.shapes_per_operator is not None:
        yield "operators.shapes_per_operator", o.shapes_per_operator
    cube = [row for row in o.types.values() if row.cube and row.data_types.known_us]
    known, single = (sum(getattr(row.data_types, part) for row in cube) for part in ("known_us", "float32_us"))
    if known:
        yield "operators.float32_cube_share", single / known
    if single:
        yield "operators.float32_paced_ratio", sum(_paced_us(row, o.types) for row in o.types.values()) / single


def _paced_us(row: TypeRow, types: Mapping[str, TypeRow]) -> float:
    """Microseconds over the profile of a type's vector kernels that go at the pace of their float32 bytes; the
    optimizer and the loss left out, which stay in float32 for their accuracy."""
    if is_loss(row.type) or category(row, types) != "vector":
        return 0.0
    return max(row.data_types.paced_us - sum(row.parts.get(part, 0.0) for part in ("update", "optimizer")), 0.0)


def _fused_exchanges(o: Operators) -> list[TypeRow]:
    """Types whose kernels exchange between ranks inside, the longest first."""
    rows = [row for row in o.types.values() if is_fused_exchange(row.type) and not row.communication]
    return sorted(rows, key=lambda row: -float(row.total_us.sum()))


FAMILIES = (
    Family(
        "operators",
        KINDS,
        measure,
        OPERATORS.by(reduce),
        ("kernels", "operator_types", "operators", "trace"),
        uses=(STEPS,),
    ),
)
