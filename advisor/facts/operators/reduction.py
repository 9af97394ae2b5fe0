"""One rank's kernels by operator type and operator, reduced to kilobytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.base import Reduction
from advisor.facts.device.kernel_time import alone_us, only_us, sums, sweep, timeline_of
from advisor.facts.device.pipes import (
    busiest_pipe,
    computing,
    counters_blank,
    main_units_counted,
    second_pipe,
    transfers,
)
from advisor.facts.operators.attention import between_products
from advisor.facts.operators.kinds import (
    SLOW_DTYPES,
    activation,
    asks_to_convert,
    call_of,
    draws,
    dtypes,
    inserted_by_framework,
    is_aicpu,
    is_attention,
    is_conversion,
    is_cube,
    is_fused_exchange,
    is_fused_update,
    moved_bytes,
)  # fmt: skip
from advisor.facts.operators.longest import LongCall, ending, longest_calls
from advisor.facts.operators.patterns import (
    MOST,
    Outlier,
    SmallRuns,
    changing_operators,
    dynamic_share,
    gating,
    outliers,
    small_runs,
    tail_us,
)
from advisor.facts.operators.shapes.backward import Backward, Call, backward_of
from advisor.facts.operators.shapes.flops import SlowCase, slow_case
from advisor.facts.operators.shapes.losses import beside_losses, is_of_loss, loss_sizes
from advisor.facts.operators.shapes.patches import Patches, patches_of, product_of, product_speeds
from advisor.facts.operators.shapes.work import (
    FULL,
    REACH,
    MatMul,
    UnalignedRows,
    float32_ratio,
    matmul,
    unaligned,
)
from advisor.facts.operators.updates import (
    SmallUpdates,
    find_updates,
    of_optimizer,
    passes,
    small_updates,
    written_back,
)
from advisor.facts.recording.counts import UNTYPED, types_of
from advisor.facts.recording.limits import section
from advisor.knowledge.cards import bandwidth
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, operator_name


@dataclass(frozen=True)
class Inside:
    """Conversions that nobody asked for: calls of CANN's library make them on the way to what they do."""

    us: float
    calls: str
    """These calls, with counts."""
    drawing_us: float
    """Time in such calls that draw random numbers, which is none of `us`."""


@dataclass(frozen=True)
class TypeRow:
    """One operator type on one rank. Arrays hold one value a step; scalars are over the profile, microseconds."""

    type: str
    core: str
    count: Floats
    total_us: Floats
    alone_us: Floats
    signatures: int = 1
    communication: bool = False
    conversion: bool = False
    cube: bool = False
    aicpu_us: float = 0.0
    aicpu_dtypes: tuple[str, ...] = ()
    float32_us: float = 0.0
    known_dtype_us: float = 0.0
    padding_us: float = 0.0
    padding_shape: str = ""
    padding_align: str = ""
    slow: SlowCase | None = None
    pipe: str = ""
    pipe_ratio: float | None = None
    second_pipe: str = ""
    second_ratio: float | None = None
    """The busiest of the other units, but for the scalar unit, which issues what all of them do."""
    transfer_ratio: float | None = None
    """Busy parts of a vector core's reading and writing units, added."""
    mac_ratio: float | None = None
    dtype_text: str = ""
    shape_text: str = ""
    fed_by: str = ""
    feeds: str = ""
    framework_share: float | None = None
    unaligned: UnalignedRows | None = None
    in_half: tuple[float, float] | None = None
    """Time of float32 multiplications, and what half-precision ones of the type would take."""
    float32_call: str = ""
    """Operator and input shapes that take most of the float32 time."""
    float32_dtypes: str = ""
    computing_ratio: float | None = None
    """Busy part of the unit that computes, vector or cube, whichever is busier."""
    memory_us: float = 0.0
    """Time of multiplications whose shapes move more bytes than the cube unit could work on meanwhile."""
    memory_idle_us: float = 0.0
    """The part of that time in which not even the busiest unit works, but for calls that the card's memory limits."""
    at_memory_us: float = 0.0
    """Time of calls whose bytes come at half of the card's memory bandwidth or more."""
    bytes_per_s: float | None = None
    """Bytes of inputs and outputs ÷ time, of calls whose shapes tell them; `memory_speed`: ÷ the card's bandwidth."""
    memory_speed: float | None = None
    units_counted: bool = False
    """The main units of its cores have counters."""
    rest_mac_ratio: float | None = None
    """Busy part of the cube unit in the other multiplications."""
    rest_shape: str = ""
    """Input shapes of those in which it idles longest."""
    update_us: float = 0.0
    """Time of those of its kernels that update weights."""
    attention_us: float = 0.0
    """Time of those of its kernels that run between the two products of an attention that is not fused."""
    fusible_us: float = 0.0
    """Time of those of its kernels that stand in runs of small ones."""
    written_back_us: float = 0.0
    """Time of those of its kernels that convert updated weights."""
    optimizer_us: float = 0.0
    """Time of those of its kernels in which the optimizer multiplies in float32."""
    loss_us: float = 0.0
    """Time of those of its kernels that convert what a loss is computed from, or its gradient."""
    gating: Floats | None = None
    """Calls a step that the next kernel multiplies with something, of an activation; None where no order tells."""
    longest: tuple[LongCall, ...] = ()
    """The longest call of each step."""
    longest_us: float | None = None
    """How long the longest call takes, where a table of sums tells it without saying which one it is."""
    apart: bool = False
    """Of a table of collectives, which the table of all types leaves out."""
    aicpu_longest: tuple[LongCall, ...] = ()
    """The same of those that ran on the AI CPU."""
    patches: Patches | None = None
    backward: Backward | None = None
    blank: bool = False
    """Counters were recorded, and show no unit at work."""
    inside: Inside | None = None
    """Of a conversion: what of it calls of the library do for themselves."""


@dataclass(frozen=True)
class OperatorRow:
    """One operator (by name) on one rank, over the profile."""

    operator: str
    type: str
    calls: int
    total_us: float
    by_step_us: Floats = field(default_factory=lambda: np.zeros(0))
    """The same of each step; empty where only the sum is told."""


@dataclass(frozen=True)
class Operators:
    """What one rank's kernels say about operators."""

    steps: tuple[str, ...]
    types: dict[str, TypeRow]
    operators: tuple[OperatorRow, ...]
    outliers: tuple[Outlier, ...]
    compute_us: Floats
    conversion_us: Floats
    aicpu_us: Floats
    update_us: Floats
    update_kernels: Floats
    tail_us: Floats
    small: SmallRuns
    fused_update: bool
    update_types: str
    sources: tuple[Source, ...]
    has_shapes: bool = True
    dynamic_share: float | None = None
    shapes_per_operator: float | None = None
    changing: tuple[tuple[str, int, float], ...] = ()
    """(operator, shapes, total microseconds) of operators that change shape."""
    whole: bool = True
    update_total_us: Floats | None = None
    """Σ durations of the update's kernels per step; None where only types tell which these are."""
    update_chain: int = 0
    """Separate kernels for each weight, where nothing but their place tells that they update it."""
    update_passes: float | None = None
    """How often the update's kernels read or write a tensor as large as all weights."""
    small_update: SmallUpdates | None = None
    """None where only sums tell of the update."""
    attention_us: Floats | None = None
    """Per step: kernels between the two products of an attention that is not fused; None where no order tells them."""
    averaged: bool = False
    """Whether the sums are one step's average rather than the whole profile's."""
    executions: int = 0
    """Of how many steps they are sums, where the tables tell so by themselves."""
    aicpu_most_us: float = float("nan")
    """Σ over these steps: only AI CPU operators can have run for so long, where sums are all that is known."""
    problems: tuple[str, ...] = field(default_factory=tuple)


OPERATORS = Reduction("operators", Operators)


def reduce(rank: Rank) -> Operators | None:
    """The rank's kernels by type and operator; None where there are none, or only a part of what a statistic counts."""
    timeline = timeline_of(rank)
    if timeline is None or not timeline.tells_types:
        return None
    kernels = timeline.kernels
    types, type_of = types_of(kernels)
    steps = len(timeline.windows.names)
    # what computes is on the way of all that computes next, also while a collective runs in the background
    segments = sweep(kernels, ~timeline.communication)
    alone = alone_us(kernels, segments)
    if not timeline.whole:  # of what nobody knows the start, nobody knows what it runs beside
        alone = kernels.duration if (kernels.start >= 0).any() else np.full(len(kernels), np.nan)
    cell = type_of * steps + timeline.windows.of
    shape = (len(types), steps)
    counts = sums(cell, None, len(types) * steps).reshape(shape)
    totals = sums(cell, kernels.duration, len(types) * steps).reshape(shape)
    lonely = sums(cell, alone, len(types) * steps).reshape(shape)
    size = len(kernels.signatures)
    by_signature = sums(kernels.signature, None, size), sums(kernels.signature, kernels.duration, size)
    convolves = any(map(product_of, kernels.signatures))  # else nobody asks how fast products are
    speeds = product_speeds(kernels.signatures, *by_signature) if convolves else {}
    attends = _attentions(kernels, *by_signature)
    members: dict[int, list[int]] = defaultdict(list)
    pair = np.unique(type_of * size + kernels.signature)
    for code in pair.tolist():
        members[code // size].append(code % size)
    collective = np.zeros(len(types), bool)
    collective[type_of[timeline.communication]] = True
    chosen = [t for t in _chosen(types, totals, members, kernels) if t in members]
    neighbours = _neighbours(kernels, type_of, types, [t for t in chosen if is_conversion(types[t])])
    aicpu = np.array([is_aicpu(s) for s in kernels.signatures])[kernels.signature]
    longest = longest_calls(timeline, type_of, chosen, np.ones(len(kernels), bool))
    on_aicpu = longest_calls(timeline, type_of, chosen, aicpu)
    updates = find_updates(timeline, types, type_of)
    update = updates.kernels
    updated = sums(type_of[update], kernels.duration[update], len(types))
    between = between_products(timeline)
    attending = np.zeros(len(kernels), bool) if between is None else between
    attended = sums(type_of[attending], kernels.duration[attending], len(types))
    conversion = np.array([is_conversion(name) for name in types])[type_of]
    back = written_back(timeline, update, conversion)
    written = sums(type_of[back], kernels.duration[back], len(types))
    solving = of_optimizer(timeline, types, type_of, update)
    solved = sums(type_of[solving], kernels.duration[solving], len(types))
    small, in_runs = small_runs(timeline, type_of, types, update)
    fusible = sums(type_of[in_runs], kernels.duration[in_runs], len(types))
    gates = gating(timeline)
    gated = None if gates is None else sums(cell[gates], None, len(types) * steps).reshape(shape)
    carries = bandwidth(str(rank.info.get("npu") or ""))
    sizes = loss_sizes(kernels.signatures)
    unshaped = beside_losses(kernels, type_of, types)
    of_loss = sums(type_of[unshaped], kernels.duration[unshaped], len(types))
    rows = {
        types[t]: replace(
            _row(
                types[t], counts[t], totals[t], lonely[t], kernels, members[t], by_signature, bool(collective[t]),
                neighbours.get(t), carries,
            ),
            update_us=float(updated[t]), attention_us=float(attended[t]), fusible_us=float(fusible[t]),
            written_back_us=float(written[t]), optimizer_us=float(solved[t]),
            loss_us=float(of_loss[t])
            + sum(float(by_signature[1][s]) for s in members[t] if is_of_loss(kernels.signatures[s], sizes)),
            gating=None if gated is None or not activation(types[t]) else gated[t],
            backward=backward_of(types[t], attends),
            inside=_inside(kernels, type_of == t) if is_conversion(types[t]) else None,
            longest=tuple(longest.get(t, ())), aicpu_longest=tuple(on_aicpu.get(t, ())),
            patches=patches_of(
                [kernels.signatures[s] for s in members[t]], by_signature[0][members[t]], by_signature[1][members[t]],
                speeds, carries, str(rank.info.get("npu") or ""),
            ),
        )
        for t in chosen
    }  # fmt: skip
    of = timeline.windows.of
    main = ~timeline.communication
    return Operators(
        timeline.windows.names,
        rows,
        _operators(kernels, type_of, types, timeline.windows.of, steps, main),
        outliers(timeline, type_of, types),
        sums(of[main], kernels.duration[main], steps),
        only_us(timeline, segments, conversion)
        if timeline.whole
        else sums(of[conversion], kernels.duration[conversion], steps),
        only_us(timeline, segments, aicpu) if timeline.whole else sums(of[aicpu], kernels.duration[aicpu], steps),
        only_us(timeline, segments, update) if timeline.whole else sums(of[update], kernels.duration[update], steps),
        sums(of[update], None, steps),
        tail_us(timeline, update),
        small,
        any(is_fused_update(types[t]) for t in np.unique(type_of[update])),
        ", ".join(
            types[t] for t in np.unique(type_of[update])[np.argsort(-totals.sum(1)[np.unique(type_of[update])])][:3]
        ),
        (rank.source("kernels", "type", "duration_us", steps=timeline.windows.names),),
        any(s.input_shapes for s in kernels.signatures),
        dynamic_share(kernels, main),
        *changing_operators(kernels, main),
        whole=timeline.whole,
        update_total_us=sums(of[update], kernels.duration[update], steps),
        update_chain=updates.per_weight,
        update_passes=passes(kernels, update),
        small_update=small_updates(timeline, update, carries),
        attention_us=None if between is None else sums(of[between], kernels.duration[between], steps),
    )


def _chosen(types: list[str], totals: Floats, members: dict[int, list[int]], kernels: Kernels) -> list[int]:
    order = np.argsort(-totals.sum(axis=1), kind="stable").tolist()
    special = [
        t
        for t in order[MOST:]
        if is_conversion(types[t]) or any(is_aicpu(kernels.signatures[s]) for s in members.get(t, ()))
    ]
    chosen: list[int] = order[:MOST] + special[:MOST]
    return chosen


def _row(
    name: str, counts: Floats, totals: Floats, lonely: Floats, kernels: Kernels, members: list[int],
    by_signature: tuple[Floats, Floats], communication: bool, neighbours: tuple[str, str] | None, carries: float,
) -> TypeRow:  # fmt: skip
    reach = REACH * carries
    signatures = [s if s.type else replace(s, type=name) for s in map(kernels.signatures.__getitem__, members)]
    times = [float(by_signature[1][s]) for s in members]
    calls = [int(by_signature[0][s]) for s in members]
    first = signatures[int(np.argmax(times))]
    core_us: Counter[str] = Counter()
    float32 = known = aicpu = padding = memory = memory_idle = at_memory = sized_us = sized_bytes = 0.0
    limited: set[int] = set()
    worst_padding, padded = 0.0, None
    worst_float32, full = 0.0, None
    aicpu_dtypes: Counter[str] = Counter()
    for member, s, us, n in zip(members, signatures, times, calls, strict=True):
        core_us[s.core] += us  # type: ignore[assignment]
        kinds = dtypes(s.input_dtypes)
        if kinds:
            known += us
            if kinds[0] in FULL:
                float32 += us
                worst_float32, full = max((worst_float32, full), (us, member), key=lambda pair: pair[0])
        if is_aicpu(s):
            aicpu += us
            aicpu_dtypes.update(k for k in {*kinds, *dtypes(s.output_dtypes)} if k in SLOW_DTYPES)
        product, moved = matmul(s), moved_bytes(s)
        if moved > 0:
            sized_us, sized_bytes = sized_us + us, sized_bytes + moved * n
        reaches = us > 0 and moved * n / us * 1e6 >= reach
        if reaches:
            at_memory += us
        if product is None and not is_cube(s):
            continue
        _, busiest, own_mac = busiest_pipe(kernels, [member])
        if _is_limited(product, moved, busiest, own_mac):
            limited.add(member)
            memory += us
            # experts at once: nobody knows of how many the weights are read
            if product is None or not reaches:
                memory_idle += us * (1 - (busiest or 1.0))
        if product is not None:
            lost = us * _padding(product, moved, busiest, own_mac)
            padding += lost
            if lost > worst_padding:
                worst_padding, padded = lost, (s.input_shapes, product.aligned())
    pipe, ratio, mac = busiest_pipe(kernels, members)
    second, second_ratio = second_pipe(kernels, members, pipe)
    multiplies = (mac or 0.0) >= section("counters")["cube_ratio"] and not is_fused_exchange(name)
    macs = _macs(kernels, members)
    rest = [member for member in members if member not in limited]
    idle = [
        us * (1 - mac) if member not in limited and mac == mac else 0.0
        for member, us, mac in zip(members, times, macs, strict=True)
    ]
    share = None
    if is_conversion(name):
        ours = [i for i in range(len(kernels.names)) if name in kernels.names[i]]
        share = _framework_share(kernels, members, ours)
    # kernels without a type are of many: that some take longer tells nothing of their shapes
    alike = not (communication or aicpu or is_fused_exchange(name) or name == UNTYPED)
    return TypeRow(
        name, core_us.most_common(1)[0][0], counts, totals, lonely, len(members),
        communication, is_conversion(name), any(is_cube(s) for s in signatures) or multiplies, aicpu,
        tuple(k for k, _ in aicpu_dtypes.most_common()), float32, known, padding, *(padded or ("", "")),
        slow_case(signatures, calls, times, reach) if alike else None,
        pipe, ratio, second, second_ratio, transfers(kernels, members), mac,
        first.input_dtypes, first.input_shapes, *(neighbours or ("", "")), share,
        unaligned(signatures, calls, times, macs.tolist()),
        None if communication or aicpu or not float32 else float32_ratio(signatures, calls, times),
        float32_call="" if full is None else _call(kernels, full),
        float32_dtypes="" if full is None else kernels.signatures[full].input_dtypes,
        memory_us=memory, memory_idle_us=memory_idle, at_memory_us=at_memory,
        bytes_per_s=1e6 * sized_bytes / sized_us if sized_us else None,
        memory_speed=min(1e6 * sized_bytes / sized_us / carries, 1.0) if sized_us else None,
        blank=counters_blank(kernels, members),
        units_counted=main_units_counted(kernels, members), computing_ratio=computing(kernels, members),
        rest_mac_ratio=busiest_pipe(kernels, rest)[2] if rest else None,
        rest_shape=signatures[int(np.argmax(idle))].input_shapes if any(idle) else "",
    )  # fmt: skip


def _macs(kernels: Kernels, members: Sequence[int]) -> Floats:
    """The cube unit's busy part of each signature, NaN where it was not counted."""
    known_us, busy_us = kernels.piped["mac_ratio"][members], kernels.pipes["mac_ratio"][members]
    macs: Floats = np.divide(busy_us, known_us, out=np.full(known_us.size, np.nan), where=known_us > 0)
    return macs


def _attentions(kernels: Kernels, counts: Floats, totals: Floats) -> list[Call]:
    """Every signature of a fused attention, forward or backward."""
    members = [index for index, signature in enumerate(kernels.signatures) if is_attention(signature.type)]
    each = zip(members, _macs(kernels, members).tolist(), strict=True)
    return [Call(kernels.signatures[index], float(counts[index]), float(totals[index]), mac) for index, mac in each]


def _is_limited(product: MatMul | None, moved: float, busiest: float | None, mac: float | None) -> bool:
    """Whether memory limits a multiplication by its shapes; where these do not tell the work, as of several experts at
    once, whether counters show another unit busier than the cube."""
    if product is not None:
        return moved > product.balanced
    return busiest is not None and mac is not None and mac < busiest


def _call(kernels: Kernels, signature: int) -> str:
    """The operator that spends most time with this signature, and its input shapes."""
    mine = kernels.signature == signature
    longest = int(np.bincount(kernels.name[mine], kernels.duration[mine]).argmax())
    return call_text(kernels.names[longest], kernels.signatures[signature].input_shapes)


def call_text(name: str, shapes: str) -> str:
    """An operator with its input shapes, where these are known, for a message."""
    return ", ".join(filter(None, (ending(operator_name(name)), shapes)))


def _padding(product: MatMul, moved: float, busiest: float | None, mac: float | None) -> float:
    """Part of a multiplication's time that padding costs, as bytes and operations tell; no more than the cube unit's
    busy time pads, and nothing where counters show that another unit is busier."""
    told = product.padding(moved)
    if mac is None or busiest is None:
        return told
    return min(told, (1 - product.useful) * mac) if mac >= busiest else 0.0


def _framework_share(kernels: Kernels, members: Sequence[int], ours: Sequence[int]) -> float | None:
    """Part of a conversion's time in kernels whose names say that the framework inserted them."""
    mine = np.isin(kernels.signature, members)
    us = np.bincount(kernels.name[mine], kernels.duration[mine], len(kernels.names))
    total = us.sum()
    inserted = sum(us[i] for i in np.flatnonzero(us).tolist() if inserted_by_framework(kernels.names[i]))
    return float(inserted / total) if total > 0 else None


def _inside(kernels: Kernels, mine: Mask) -> Inside | None:
    """What of a conversion calls of the library do for themselves; None where no kernel's name tells such a call."""
    us = np.bincount(kernels.name[mine], kernels.duration[mine], len(kernels.names))
    times = np.bincount(kernels.name[mine], minlength=len(kernels.names))
    counts: Counter[str] = Counter()
    own = drawing = 0.0
    for i in np.flatnonzero(times).tolist():
        call = call_of(kernels.names[i])
        if not call or asks_to_convert(call):
            continue
        if draws(call):
            drawing += float(us[i])
        else:
            own += float(us[i])
            counts[call] += int(times[i])
    most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    told = ", ".join(f"{call} ({n})" for call, n in most)
    return Inside(own, told, drawing) if own or drawing else None


def _neighbours(kernels: Kernels, type_of: Ints, types: list[str], wanted: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Conversion type -> (types that run just before it, just after it) on the same stream: who feeds whom."""
    result: dict[int, tuple[str, str]] = {}
    known = np.flatnonzero(kernels.start >= 0)
    order = known[np.argsort(kernels.stream[known], kind="stable")]
    kinds, streams = type_of[order], kernels.stream[order]
    for t in wanted:
        at = np.flatnonzero(kinds == t)
        before, after = at[at > 0], at[at < len(order) - 1]
        before = before[streams[before - 1] == streams[before]]
        after = after[streams[after + 1] == streams[after]]
        result[t] = (_common(types, kinds[before - 1], t), _common(types, kinds[after + 1], t))
    return result


def _common(types: list[str], kinds: Ints, own: int) -> str:
    counts = sorted(Counter(kinds[kinds != own].tolist()).items(), key=lambda pair: (-pair[1], types[pair[0]]))
    return ", ".join(f"{types[t]} ({n})" for t, n in counts[:3])


def _operators(
    kernels: Kernels, type_of: Ints, types: list[str], step_of: Ints, steps: int, computing: Mask
) -> tuple[OperatorRow, ...]:
    """The operators that take longest. A collective is none: how long it lasts is its peers' matter."""
    names, of_name = kernels.operators()
    operator, duration, step_of = of_name[kernels.name][computing], kernels.duration[computing], step_of[computing]
    total = np.bincount(operator, duration, len(names))
    calls = np.bincount(operator, minlength=len(names))
    kind = np.zeros(len(names), np.int64)
    kind[operator] = type_of[computing]
    most = np.argsort(-total, kind="stable")[: min(MOST, int((calls > 0).sum()))]
    row_of = np.full(len(names), -1)
    row_of[most] = np.arange(len(most))
    chosen = np.flatnonzero(row_of[operator] >= 0)
    cell = row_of[operator[chosen]] * steps + step_of[chosen]
    by_step = sums(cell, duration[chosen], len(most) * steps).reshape(len(most), steps)
    return tuple(
        OperatorRow(names[i], types[kind[i]], int(calls[i]), float(total[i]), by_step[row])
        for row, i in enumerate(most.tolist())
        if names[i] and calls[i]  # a name that was lost is no operator, nor is one that only the set-up launched
    )
