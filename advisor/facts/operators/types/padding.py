"""What padding of shapes to the cube unit's blocks costs a type."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from advisor.facts.base import Told
from advisor.facts.operators.types.cases import Case


class Padding(Struct, frozen=True):
    """`us` over the profile; the shapes that cost most, and what would be aligned."""

    us: float = 0.0
    shape: str = ""
    align: str = ""


def padding_of(cases: Sequence[Case]) -> Padding:
    """What padding costs all multiplications of a type."""
    lost = [(case.us * _part(case), case) for case in cases if case.product is not None]
    most, worst = max(lost, key=lambda pair: pair[0], default=(0.0, None))
    whole = sum(us for us, _ in lost)
    if worst is None or worst.product is None or not most > 0:
        return Padding(whole)
    return Padding(whole, worst.signature.input_shapes, worst.product.aligned())


def _part(case: Case) -> float:
    """Part of a multiplication's time that padding costs, as bytes and operations tell; no more than the cube unit's
    busy time pads, and nothing where counters show that another unit is busier."""
    if case.product is None:
        return 0.0
    told = case.product.padding(case.moved)
    if case.mac is None or case.busiest is None:
        return told
    return min(told, (1 - case.product.useful) * case.mac) if case.mac >= case.busiest else 0.0


def told_by(rows: Collection[Padding], whole_us: float, step_us: float) -> Told:
    """The facts of a type that takes `whole_us` over the profile on these ranks, `step_us` a step."""
    share = sum(row.us for row in rows) / whole_us
    most = max(rows, key=lambda row: row.us)
    return {
        "padding_share": share, "padding_us": share * step_us,
        "padding_shape": most.shape or None, "padding_align": most.align or None,
    }  # fmt: skip
