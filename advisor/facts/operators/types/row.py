"""One operator type on one rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from advisor.basics.arrays import Floats
from advisor.facts.operators.kinds import (
    CUBE_CORES,
    DRAWING_CORES,
    MIXED_CORES,
    VECTOR_CORES,
    holds_several,
    is_attention,
    is_conversion,
    is_cube,
    is_fetch,
    is_fused_exchange,
    is_update,
)
from advisor.facts.operators.longest import LongCall
from advisor.facts.operators.shapes.backward import Backward
from advisor.facts.operators.shapes.flops import SlowCase, slow_case
from advisor.facts.operators.shapes.patches import Patches
from advisor.facts.operators.shapes.work import REACH, UnalignedRows, unaligned
from advisor.facts.operators.types.cases import by_inputs, cases_of, macs_of
from advisor.facts.operators.types.conversions import Conversion
from advisor.facts.operators.types.data_types import DataTypes, data_types_of
from advisor.facts.operators.types.memory import Memory, memory_of
from advisor.facts.operators.types.on_aicpu import OnAicpu, on_aicpu
from advisor.facts.operators.types.padding import Padding, padding_of
from advisor.facts.operators.types.units import Units, units_of
from advisor.facts.recording.counts import UNTYPED
from advisor.facts.recording.limits import section
from advisor.sources.streams.kernels import Kernels


class TypeRow(Struct, frozen=True):
    """One operator type on one rank. Arrays hold one value a step; scalars are over the profile, microseconds."""

    type: str
    core: str
    count: Floats
    total_us: Floats
    alone_us: Floats
    communication: bool = False
    conversion: bool = False
    cube: bool = False
    dtypes: str = ""
    """Data types of the inputs that take most of its time; `shapes` likewise."""
    shapes: str = ""
    inputs: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """Input shapes, as far as they are told -> calls and their time, over the profile."""
    data_types: DataTypes = field(default_factory=DataTypes)
    units: Units = field(default_factory=Units)
    memory: Memory = field(default_factory=Memory)
    padding: Padding = field(default_factory=Padding)
    aicpu: OnAicpu = field(default_factory=OnAicpu)
    slow: SlowCase | None = None
    unaligned: UnalignedRows | None = None
    converts: Conversion | None = None
    patches: Patches | None = None
    backward: Backward | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    """Time of those of its kernels that are a part of something larger: an `update` of weights, an `attention` that is
    not fused, runs of small kernels that are `fusible`, weights `written_back` in another data type, products of
    the `optimizer` in float32, a `loss`."""
    gating: Floats | None = None
    """Calls a step that the next kernel multiplies with something, of an activation; None where no order tells."""
    longest: tuple[LongCall, ...] = ()
    """The longest call of each step."""
    longest_us: float | None = None
    """How long the longest call takes, where a table of sums tells it without saying which one it is."""
    shortest_us: float | None = None
    """Its time, had each call taken as long as the shortest on its core, where a table of sums tells that one."""
    apart: bool = False
    """Of a table of collectives, which the table of all types leaves out."""

    @property
    def whole_us(self) -> float:
        """Its time over the profile, microseconds."""
        return float(self.total_us.sum())

    @property
    def aicpu_part(self) -> float:
        """Part of its time that its calls on the AI CPU take."""
        return self.aicpu.us / self.whole_us if self.whole_us else 0.0


def row_of(
    name: str, steps: tuple[Floats, Floats, Floats], kernels: Kernels, members: Sequence[int],
    by_signature: tuple[Floats, Floats], communication: bool, carries: float,
) -> TypeRow:  # fmt: skip
    """What kernels tell of a type: its calls, time and time alone of each `steps`, microseconds; `members` are its
    signatures, `by_signature` the calls and time of all, `carries` the card's memory bandwidth, bytes a second."""
    cases = cases_of(name, kernels, members, *by_signature, carries)
    cores: Counter[str] = Counter()
    for case in cases:
        cores[case.signature.core] += case.us  # type: ignore[assignment]
    units, aicpu = units_of(kernels, members), on_aicpu(cases)
    on_cores = not (communication or aicpu.us)
    # kernels without a type are of many: that some take longer tells nothing of their shapes
    alike = on_cores and not is_fused_exchange(name) and name != UNTYPED
    signatures, calls, times = [c.signature for c in cases], [c.calls for c in cases], [c.us for c in cases]
    counted = (units.mac_ratio or 0.0) >= section("counters")["cube_ratio"] and not is_fused_exchange(name)
    costliest = max(cases, key=lambda case: case.us).signature
    return TypeRow(
        name, cores.most_common(1)[0][0], *steps, communication, is_conversion(name),
        counted or any(map(is_cube, signatures)), costliest.input_dtypes, costliest.input_shapes,
        by_inputs(cases),
        data_types_of(cases, kernels, on_cores), units, memory_of(cases, kernels, carries), padding_of(cases), aicpu,
        slow_case(signatures, calls, times, REACH * carries) if alike else None,
        unaligned(signatures, calls, times, macs_of(kernels, members).tolist()),
    )  # fmt: skip


def category(row: TypeRow, beside: Mapping[str, TypeRow]) -> str:
    """What kind of work a type is; empty where it is several, or its core is lost that the table tells of others, which
    are `beside`."""
    if holds_several(row.type):
        return ""
    if row.aicpu_part > 0.5:
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
    split = any(other.core.upper() in VECTOR_CORES | MIXED_CORES for other in beside.values())
    if split and row.core.upper() in CUBE_CORES and row.units.mac_ratio is None:
        return ""  # this chip has vector cores of their own, and no counter tells what the other kind did here
    lost = not row.core and any(other.core for other in beside.values() if not other.communication)
    return "" if lost else "vector"
