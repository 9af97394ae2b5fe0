"""The facts of operator types, over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from advisor.basics.arrays import Floats
from advisor.basics.units import rank_list
from advisor.facts.base import Told, fact
from advisor.facts.operators.coverage import Scale
from advisor.facts.operators.kinds import is_fetch, is_own, is_random, is_rearranging, is_recurrent
from advisor.facts.operators.longest import longest_of
from advisor.facts.operators.reduction import Operators
from advisor.facts.operators.shapes.backward import Backward
from advisor.facts.operators.shapes.patches import Patches
from advisor.facts.operators.shapes.work import UnalignedRows
from advisor.facts.operators.types import conversions, data_types, padding
from advisor.facts.operators.types.row import TypeRow, category
from advisor.knowledge.measuring import limit
from advisor.model import Fact, Source, Subject

PARTS = ("update", "attention", "fusible", "written_back", "optimizer", "loss")
"""Of what a type's kernels may be a part (`TypeRow.parts`)."""

INPUTS_TOLD = int(limit("kernels", "inputs_told"))
"""Input shapes of a type that are told one by one: the costliest."""

Rows = Mapping[int, TypeRow]
"""Rank -> one type there."""


def type_facts(
    found: Mapping[int, Operators], scales: Mapping[int, Scale], step_us: float | None, timed_us: float | None
) -> Iterator[Fact]:
    """What each type costs and is, over all ranks. `step_us` is the step where all of its kernels are at hand,
    `timed_us` wherever anything tells how long it lasts, microseconds."""
    computed = sum(scales[rank].per_step(o.compute_us) for rank, o in found.items())
    exchanges = ((rank, row) for rank, o in found.items() for row in o.types.values() if row.communication)
    exchanged = sum(scales[rank].per_step(row.total_us) for rank, row in exchanges)
    device = computed + exchanged if np.isfinite(exchanged) else computed
    timed = {rank for rank, o in found.items() if any(np.isfinite(row.alone_us).any() for row in o.types.values())}
    lasts = _longest_calls(found.values())
    for name in dict.fromkeys(name for o in found.values() for name, row in o.types.items() if not row.communication):
        rows = {rank: o.types[name] for rank, o in found.items() if name in o.types}
        on_aicpu = sorted(rank for rank, row in rows.items() if row.aicpu.us > 0)
        subject = Subject("operator_type", name, tuple(on_aicpu) if len(on_aicpu) < len(found) else ())
        source = found[next(iter(rows))].sources
        samples = int(sum(row.count.sum() for row in rows.values()))

        def mean(get: Callable[[TypeRow], Floats], rows: Rows = rows) -> float:
            return sum(scales[rank].per_step(get(row)) for rank, row in rows.items()) / len(found)

        time, count = mean(lambda row: row.total_us), mean(lambda row: row.count)
        whole = sum(row.whole_us for row in rows.values())
        # what shapes tell is told by the ranks that recorded them, for all, which do the same
        shaped = [row for rank, row in rows.items() if found[rank].tells_shapes] or list(rows.values())
        shaped_us = sum(row.whole_us for row in shaped)
        best = max(rows, key=lambda rank: (rank in timed, bool(rows[rank].core), rows[rank].whole_us))
        alone = [scales[rank].per_step(rows[rank].alone_us) for rank in rows if rank in timed]
        exposed = sum(alone) / len(timed) if timed else None  # ranks with statistics only do not know
        waits = is_fetch(name)  # which computes nothing, and whose sums hold the fetch before the first step
        share = exposed / step_us if exposed is not None and step_us else None
        bounds = (time * len(found) / device if computed else None, time / timed_us if timed_us else None)
        bound = None if waits else min((each for each in bounds if each is not None), default=None)
        of_type: Told = {
            "time_us": time, "count": count or None,  # it has run
            "average_us": time / count if count else None, "outlasts": _outlasts(name, time / (count or 1.0), lasts),
            "compute_share": time * len(found) / computed if computed and not waits else None,
            "exposed_us": exposed, "step_share": share, "stake_share": bound if share is None else share,
            "random": is_random(name), "own": is_own(name),
            "copies": is_rearranging(name) or None, "recurrent": is_recurrent(name) or None,
            **_parts(rows.values(), whole, time),
            **_of_one(rows[best], category(rows[best], found[best].types)),
            **data_types.told_by([row.data_types for row in rows.values()]),
            **_longest(found, scales, rows),
            **conversions.told_by([row.converts for row in rows.values()], whole),
            **_defects(shaped, time / shaped_us if shaped_us else 0.0, time),
            **_of_aicpu(found, scales, {rank: rows[rank] for rank in on_aicpu}, subject.ranks),
        }  # fmt: skip
        yield from _facts(subject, of_type, source, samples)
        slow = _slow(shaped, time / shaped_us if shaped_us else 0.0)
        if slow is not None:
            yield from _facts(subject, slow[0], source, slow[1])


def _facts(subject: Subject, told: Told, source: Sequence[Source], samples: int) -> Iterator[Fact]:
    for name, value in told.items():
        yield from fact(f"operator_type.{name}", subject, value, *source, samples=samples)


def _parts(rows: Iterable[TypeRow], whole: float, per_step: float) -> Told:
    us = {part: sum(row.parts.get(part, 0.0) for row in rows) for part in PARTS}
    shares = {f"{part}_share": us[part] / whole if us[part] else None for part in PARTS}
    return {**shares, "loss_us": us["loss"] / whole * per_step if us["loss"] else None}


def _of_one(row: TypeRow, kind: str) -> Told:
    """What is told of one rank, the one whose kernels tell most."""
    converts = row.converts.told() if row.converts else {}
    return {
        "core": row.core or None, "category": kind or None,
        "dtypes": row.dtypes.rstrip(";") or None, "shapes": row.shapes.rstrip(";") or None,
        **_inputs(row), **converts, **row.units.told(), **row.memory.told(row.whole_us),
    }  # fmt: skip


def _inputs(row: TypeRow) -> Told:
    """How long a call takes on each of several inputs: launches on other shapes are other measurements."""
    if len(row.inputs) < 2:
        return {}
    most = dict(islice(row.inputs.items(), INPUTS_TOLD))
    return {
        "inputs": len(row.inputs), "inputs_shapes": tuple(each.rstrip(";") for each in most),
        "inputs_calls": tuple(calls for calls, _ in most.values()),
        "inputs_times": tuple(us / calls for calls, us in most.values()),
    }  # fmt: skip


def _longest_calls(found: Iterable[Operators]) -> dict[str, float]:
    """Type -> its longest call on any rank, microseconds; of computing types, where all of them tell it."""
    lasts: dict[str, float] = {}
    for row in (row for o in found for row in o.types.values() if not row.communication and row.whole_us):
        longest = max((row.longest_us or 0.0, *(call.us for call in row.longest)))
        lasts[row.type] = max(longest or np.inf, lasts.get(row.type, 0.0))
    return lasts


def _outlasts(name: str, average_us: float, lasts: Mapping[str, float]) -> float | None:
    """How many times as long as any call of another type this one's calls last; None where they do not, or where nobody
    knows."""
    other = max((us for each, us in lasts.items() if each != name), default=np.inf)
    return average_us / other if other < average_us else None


def _longest(found: Mapping[int, Operators], scales: Mapping[int, Scale], rows: Rows) -> Told:
    """The longest call, with where it stands; of sums how long it takes. `aicpu_`: of those on the AI CPU."""
    counted = {rank: scales[rank].counted_of(found[rank].steps) for rank in rows}
    told: Told = {"longest_us": max((row.longest_us or 0.0 for row in rows.values()), default=0.0) or None}
    for prefix, calls in (
        ("", [longest_of(row.longest, counted[rank]) for rank, row in rows.items()]),
        ("aicpu_", [longest_of(row.aicpu.longest, counted[rank]) for rank, row in rows.items()]),
    ):
        longest = max(filter(None, calls), key=lambda call: call.us, default=None)
        if longest is not None:
            told |= {f"{prefix}longest_us": longest.us or None, f"{prefix}longest_call": str(longest)}
    return told


def _defects(rows: Sequence[TypeRow], scale: float, time: float) -> Told:
    """What of the type's time need not be, as shapes tell. `scale` is what a microsecond over these rows' profiles is
    per step; `time` is a step's, microseconds."""
    told: Told = {}
    if not scale:
        return told
    if any(row.cube and row.data_types.known_us for row in rows):
        told |= padding.told_by([row.padding for row in rows], time / scale, time)
    told |= _unaligned([row.unaligned for row in rows if row.unaligned], scale)
    told |= _patches([row.patches for row in rows if row.patches], scale)
    return told | _backward([row.backward for row in rows if row.backward], scale)


def _unaligned(found: Sequence[UnalignedRows], scale: float) -> Told:
    if not found:
        return {}
    odd = max(found, key=lambda one: one.us)
    return {
        "unaligned_us": sum(one.us for one in found) * scale,
        "unaligned_mac_ratio": odd.mac_ratio, "aligned_mac_ratio": odd.aligned_ratio,
        "unaligned_speed_share": odd.speed_ratio,
        "unaligned_shape": odd.shape, "unaligned_align": odd.align,
    }  # fmt: skip


def _slow(rows: Sequence[TypeRow], scale: float) -> tuple[Told, int] | None:
    """Calls that take longer than their shapes let expect, and how many they are; `scale` as of `_defects`."""
    found = [row.slow for row in rows if row.slow]
    if not found or not scale:
        return None
    worst = max(found, key=lambda case: case.excess_us)
    return {
        "slow_ratio": worst.ratio, "slow_us": sum(case.excess_us for case in found) * scale,
        "slow_shape": worst.shape, "slow_dtype": worst.dtype, "fast_case": worst.reference,
    }, worst.calls  # fmt: skip


def _patches(found: Sequence[Patches], scale: float) -> Told:
    if not found:
        return {}
    worst = max(found, key=lambda one: one.us)
    return {
        "patch_us": sum(one.us for one in found) * scale,
        "patch_product_us": sum(one.product_us for one in found) * scale,
        "patch_shape": worst.shape, "patch_product": worst.product,
        "patch_by_card": any(one.by_card for one in found) or None,
    }  # fmt: skip


def _backward(found: Sequence[Backward], scale: float) -> Told:
    if not found:
        return {}
    worst = max(found, key=lambda one: one.us)
    return {
        "backward_us": sum(one.us for one in found) * scale,
        "backward_forward_us": sum(one.forward_us for one in found) * scale,
        "backward_shape": worst.shape, "backward_mac_ratio": worst.mac_ratio,
        "forward_mac_ratio": worst.forward_mac_ratio,
    }  # fmt: skip


def _of_aicpu(found: Mapping[int, Operators], scales: Mapping[int, Scale], rows: Rows, named: tuple[int, ...]) -> Told:
    """`rows` are of the ranks on which it ran there; `named` are these where others have none."""
    if not rows:
        return {}
    slow = {kind: instead for row in rows.values() for kind, instead in row.aicpu.dtypes.items()}
    return {
        "aicpu_us": float(np.mean([scales[r].per_step(row.total_us) * row.aicpu_part for r, row in rows.items()])),
        "aicpu_alone_us": float(np.mean([_alone_us(found[rank], scales[rank]) for rank in rows])),
        "aicpu_ranks": rank_list(named) if named else None,
        "aicpu_dtypes": ", ".join(slow) or None,
        "aicpu_replacement": ", ".join(f"{kind} → {instead}" for kind, instead in slow.items()) or None,
    }


def _alone_us(o: Operators, per: Scale) -> float:
    """Microseconds per step in which only AI CPU kernels run; of a table of sums, in which they can at most."""
    measured = per.per_step(o.aicpu_us)
    return measured if np.isfinite(measured) else per.per_step(np.array([o.aicpu_most_us]))
