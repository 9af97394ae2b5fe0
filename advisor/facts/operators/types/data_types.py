"""In which data types the kernels of a type compute, and what float32 costs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from advisor.facts.base import Told
from advisor.facts.operators.kinds import dtypes
from advisor.facts.operators.shapes.work import FULL, float32_ratio
from advisor.facts.operators.types.cases import Case, costliest_call
from advisor.sources.streams.kernels import Kernels


class DataTypes(Struct, frozen=True):
    """Times over the profile, microseconds."""

    known_us: float = 0.0
    """Time of kernels whose data types are told; `float32_us`: of those whose first input is float32."""
    float32_us: float = 0.0
    float32_call: str = ""
    """Operator and input shapes that take most of the float32 time; `float32_dtypes`: their data types."""
    float32_dtypes: str = ""
    in_half: tuple[float, float] | None = None
    """Time of float32 multiplications, and what half-precision ones of the type would take."""
    paced_us: float = 0.0
    """Time of float32 kernels whose bytes come at the pace of the card's memory: in half precision, half of them."""


def data_types_of(cases: Sequence[Case], kernels: Kernels, on_cores: bool) -> DataTypes:
    """`on_cores` where the cores alone compute the type: else half precision is no matter of its speed."""
    told = [(case, kinds) for case in cases if (kinds := dtypes(case.signature.input_dtypes))]
    full = [case for case, kinds in told if kinds[0] in FULL]
    worst = max((case for case in full if case.us > 0), key=lambda case: case.us, default=None)
    signatures, calls, times = [c.signature for c in cases], [c.calls for c in cases], [c.us for c in cases]
    return DataTypes(
        sum(case.us for case, _ in told),
        sum(case.us for case in full),
        costliest_call(kernels, worst.index) if worst else "",
        worst.signature.input_dtypes if worst else "",
        float32_ratio(signatures, calls, times) if on_cores and worst else None,
        sum(case.us for case in full if case.reaches),
    )


def told_by(rows: Collection[DataTypes]) -> Told:
    """The facts of a type on all ranks."""
    known = sum(row.known_us for row in rows)
    halves = [row.in_half for row in rows if row.in_half]
    half = sum(pair[1] for pair in halves)
    told: Told = {"float32_ratio": sum(pair[0] for pair in halves) / half if half else None}
    if not known:
        return told
    most = max(rows, key=lambda row: row.float32_us)
    return {
        **told, "float32_share": sum(row.float32_us for row in rows) / known,
        "float32_call": most.float32_call or None, "float32_dtypes": most.float32_dtypes or None,
    }  # fmt: skip
