"""One rank's kernels by operator type and operator, reduced to kilobytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.base import Reduction
from advisor.facts.device.drawn import work_of, work_source
from advisor.facts.device.kernel_time import Sweep, Timeline, alone_us, only_us, sums, sweep
from advisor.facts.operators.attention import between_products
from advisor.facts.operators.gates import is_counted
from advisor.facts.operators.kinds import (
    activation,
    is_aicpu,
    is_attention,
    is_conversion,
    is_fused_update,
)  # fmt: skip
from advisor.facts.operators.longest import longest_calls
from advisor.facts.operators.patterns import (
    MOST,
    Outlier,
    SmallRuns,
    changing_operators,
    dynamic_share,
    gating,
    idle_before_us,
    outliers,
    small_runs,
    tail_us,
)
from advisor.facts.operators.shapes.backward import Call, backward_of
from advisor.facts.operators.shapes.losses import beside_losses, is_of_loss, loss_sizes
from advisor.facts.operators.shapes.patches import patches_of, product_of, product_speeds
from advisor.facts.operators.shapes.summed import gradient_sums
from advisor.facts.operators.types.cases import macs_of
from advisor.facts.operators.types.conversions import conversion_of, neighbours_of
from advisor.facts.operators.types.row import TypeRow, row_of
from advisor.facts.operators.updates import (
    SmallUpdates,
    find_updates,
    is_plain,
    of_optimizer,
    passes,
    small_updates,
    written_back,
)
from advisor.facts.recording.counts import types_of
from advisor.knowledge.cards import bandwidth
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels


class OperatorRow(Struct, frozen=True):
    """One operator (by name) on one rank, over the profile."""

    operator: str
    type: str
    calls: int
    total_us: float
    by_step_us: Floats = field(default_factory=lambda: np.zeros(0))
    """The same of each step; empty where only the sum is told."""


class Operators(Struct, frozen=True):
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
    update_late_us: Floats | None = None
    """Idle device directly before kernels of the update, per step; None where kernels are missing."""
    update_chain: int = 0
    """Separate kernels for each weight, where nothing but their place tells that they update it."""
    update_passes: float | None = None
    """How often the update's kernels read or write a tensor as large as all weights."""
    update_plain: bool = False
    """The update's kernels are lists' sums and products alone."""
    small_update: SmallUpdates | None = None
    """None where only sums tell of the update."""
    attention_us: Floats | None = None
    """Per step: kernels between the two products of an attention that is not fused; None where no order tells them."""
    gradient_sums: tuple[Floats, Floats] | None = None
    """Per step: kernels that only add a gradient to its sum, and microseconds in which only they run; None where there
    are none."""
    averaged: bool = False
    """Whether the sums are one step's average rather than the whole profile's."""
    executions: int = 0
    """Of how many steps they are sums, where the tables tell so by themselves."""
    aicpu_most_us: float = float("nan")
    """Σ over these steps: only AI CPU operators can have run for so long, where sums are all that is known."""
    problems: tuple[str, ...] = field(default_factory=tuple)

    @property
    def tells_shapes(self) -> bool:
        """Whether the recording holds what its kernels computed on: shapes or types of data (Level 1 and above)."""
        return any(row.shapes or row.dtypes for row in self.types.values())


OPERATORS = Reduction("operators", Operators)


class _ByType(Struct, frozen=True):
    """The kernels of a timeline, each with its type."""

    timeline: Timeline
    types: list[str]
    of: Ints

    def per_step(self, values: Floats | None, among: Mask | None = None) -> Floats:
        """Sums of `values` (None: the number of kernels) of each type in each step, of shape (types, steps)."""
        steps = len(self.timeline.windows.names)
        cell = self.of * steps + self.timeline.windows.of
        cell = cell if among is None else cell[among]
        return sums(cell, values, len(self.types) * steps).reshape(len(self.types), steps)

    def us(self, which: Mask) -> Floats:
        """Microseconds over the profile that these kernels take, by type."""
        return sums(self.of[which], self.timeline.kernels.duration[which], len(self.types))

    def are(self, kind: Callable[[str], bool]) -> Mask:
        """Which kernels are of a type of this kind."""
        return np.array([kind(name) for name in self.types])[self.of]


def reduce(rank: Rank) -> Operators | None:
    """The rank's kernels by type and operator, by their table or as the timeline alone draws them; None where there are
    none, or only a part of what a statistic counts."""
    timeline = work_of(rank)
    if timeline is None or not timeline.tells_types:
        return None
    kernels, of, steps = timeline.kernels, timeline.windows.of, len(timeline.windows.names)
    by = _ByType(timeline, *types_of(kernels))
    # what computes is on the way of all that computes next, also while a collective runs in the background
    segments = sweep(kernels, ~timeline.communication)
    updates, between = find_updates(timeline, by.types, by.of), between_products(timeline)
    small, in_runs = small_runs(timeline, by.of, by.types, updates.kernels)
    conversion = by.are(is_conversion)
    aicpu = np.array([is_aicpu(s) for s in kernels.signatures])[kernels.signature]
    parts = {
        "update": by.us(updates.kernels),
        "attention": np.zeros(len(by.types)) if between is None else by.us(between),
        "fusible": by.us(in_runs),
        "written_back": by.us(written_back(timeline, updates.kernels, conversion)),
        "optimizer": by.us(of_optimizer(timeline, by.types, by.of, updates.kernels)),
        "loss": by.us(beside_losses(kernels, by.of, by.types)),
    }
    card = str(rank.info.get("npu") or "")
    carries = bandwidth(card)

    def per_step(which: Mask) -> Floats:
        return sums(of[which], kernels.duration[which], steps)

    def only(which: Mask) -> Floats:
        """Time in which no other kernel computes; of a part of the kernels, their time."""
        return only_us(timeline, segments, which) if timeline.whole else per_step(which)

    alone = _alone(timeline, segments)
    size = len(kernels.signatures)
    summing = gradient_sums(kernels.signatures, np.bincount(kernels.signature, minlength=size))[kernels.signature]
    main, updating = ~timeline.communication, np.unique(by.of[updates.kernels])
    longest = updating[np.argsort(-by.us(np.ones(len(kernels), bool))[updating])]
    return Operators(
        timeline.windows.names,
        _types(by, alone, aicpu, parts, carries, card),
        _operators(kernels, by.of, by.types, of, steps, main),
        outliers(timeline, by.of, by.types),
        per_step(main),
        only(conversion),
        only(aicpu),
        only(updates.kernels),
        sums(of[updates.kernels], None, steps),
        tail_us(timeline, updates.kernels),
        small,
        any(is_fused_update(by.types[t]) for t in updating),
        ", ".join(by.types[t] for t in longest[:3]),
        (work_source(rank, "type", "duration_us", steps=timeline.windows.names),),
        any(s.input_shapes for s in kernels.signatures),
        dynamic_share(kernels, main),
        *changing_operators(kernels, main),
        whole=timeline.whole,
        update_total_us=per_step(updates.kernels),
        update_late_us=idle_before_us(timeline, updates.kernels) if timeline.whole else None,
        update_chain=updates.per_weight,
        update_passes=passes(kernels, updates.kernels),
        update_plain=is_plain([by.types[t] for t in updating]),
        small_update=small_updates(timeline, updates.kernels, carries),
        attention_us=None if between is None else per_step(between),
        gradient_sums=(sums(of[summing], None, steps), sums(of[summing], alone[summing], steps))
        if summing.any()
        else None,
    )


def _alone(timeline: Timeline, segments: Sweep) -> Floats:
    """Microseconds of each kernel beside which no other one computes; NaN where nobody knows when it ran."""
    kernels = timeline.kernels
    if timeline.whole:
        return alone_us(kernels, segments)
    return kernels.duration if (kernels.start >= 0).any() else np.full(len(kernels), np.nan)


def _types(
    by: _ByType, alone: Floats, aicpu: Mask, parts: Mapping[str, Floats], carries: float, card: str
) -> dict[str, TypeRow]:
    """The types that take longest, and those whose number tells something. `parts`: of what larger thing their time is
    a part, by type; `carries`: the card's memory bandwidth, bytes a second."""
    timeline, kernels, types = by.timeline, by.timeline.kernels, by.types
    size = len(kernels.signatures)
    counts, totals = sums(kernels.signature, None, size), sums(kernels.signature, kernels.duration, size)
    members = _members(by, size)
    calls, total_us, alone_us = by.per_step(None), by.per_step(kernels.duration), by.per_step(alone)
    chosen = [t for t in _chosen(types, total_us, members, kernels) if t in members]
    collective = set(by.of[timeline.communication].tolist())
    converting = [t for t in chosen if is_conversion(types[t])]
    neighbours = neighbours_of(kernels, by.of, types, converting)
    converts = {t: conversion_of(kernels, by.of == t, neighbours.get(t)) for t in converting}
    longest = longest_calls(timeline, by.of, chosen, np.ones(len(kernels), bool))
    on_aicpu = longest_calls(timeline, by.of, chosen, aicpu)
    gates = gating(timeline)
    gated = None if gates is None else by.per_step(None, gates)
    speeds = product_speeds(kernels.signatures, counts, totals) if any(map(product_of, kernels.signatures)) else {}
    attends, losses = _attentions(kernels, counts, totals), loss_sizes(kernels.signatures)
    rows = {}
    for t in chosen:
        name, mine = types[t], members[t]
        row = row_of(
            name, (calls[t], total_us[t], alone_us[t]), kernels, mine, (counts, totals), t in collective, carries
        )
        of_loss = sum(float(totals[s]) for s in mine if is_of_loss(kernels.signatures[s], losses))
        rows[name] = replace(
            row,
            parts={part: float(us[t]) + (of_loss if part == "loss" else 0.0) for part, us in parts.items()},
            aicpu=replace(row.aicpu, longest=tuple(on_aicpu.get(t, ()))),
            longest=tuple(longest.get(t, ())),
            gating=None if gated is None or not activation(name) else gated[t],
            converts=converts.get(t),
            backward=backward_of(name, attends),
            patches=patches_of(
                [kernels.signatures[s] for s in mine], counts[mine], totals[mine], speeds, carries, card
            ),
        )
    return rows


def _members(by: _ByType, signatures: int) -> dict[int, list[int]]:
    """Type -> the signatures of its kernels."""
    members: dict[int, list[int]] = defaultdict(list)
    for code in np.unique(by.of * signatures + by.timeline.kernels.signature).tolist():
        members[code // signatures].append(code % signatures)
    return members


def _chosen(types: list[str], totals: Floats, members: dict[int, list[int]], kernels: Kernels) -> list[int]:
    order = np.argsort(-totals.sum(axis=1), kind="stable").tolist()
    special = [
        t
        for t in order[MOST:]
        if is_conversion(types[t]) or any(is_aicpu(kernels.signatures[s]) for s in members.get(t, ()))
    ][:MOST]
    counted = [t for t in order[MOST:] if is_counted(types[t]) and t not in special]
    chosen: list[int] = order[:MOST] + special + counted
    return chosen


def _attentions(kernels: Kernels, counts: Floats, totals: Floats) -> list[Call]:
    """Every signature of a fused attention, forward or backward."""
    members = [index for index, signature in enumerate(kernels.signatures) if is_attention(signature.type)]
    each = zip(members, macs_of(kernels, members).tolist(), strict=True)
    return [Call(kernels.signatures[index], float(counts[index]), float(totals[index]), mac) for index, mac in each]


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
