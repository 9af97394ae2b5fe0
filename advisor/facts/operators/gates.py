"""What one kernel could do and several do, once in each layer: gated activations (Split → Swish → Mul), normalisations
(Pow → ReduceMean → Rsqrt → Mul), rotary embeddings (Slice → Neg → Concat → Mul → Add), products of one expert after
the other; what none need do: cutting, joining and
repeating tensors; and what the host waits for to know how large it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.facts.operators.kinds import (
    ACTIVATIONS,
    activation,
    is_attention,
    is_attention_gradient,
    is_batched_product,
    is_conversion,
    is_fused_gate,
    is_grouped_product,
    is_halving,
    is_joining,
    is_matrix_product,
    is_mean,
    is_negation,
    is_product,
    is_rearranging,
    is_root,
    is_router,
    is_scaling,
    is_shift,
    is_sizing,
    is_square,
    is_sum,
    is_total,
    is_transposing,
)
from advisor.facts.operators.types.row import TypeRow

Kind = Callable[[str], bool]
_NAMED = 4
"""So many types are named; more make a sentence too long."""


_GRADIENT: Mapping[Kind, int] = {
    is_product: 6, is_total: 2, is_square: 1, is_scaling: 2, is_sum: 1, is_conversion: 2,
}  # fmt: skip
"""What differentiating a normalisation that is written out adds: of each of its two products two, one of which is
summed for the weight or for each row's root; the root's third power, scaled and multiplied; the square's factor, scaled
and multiplied; the sum of both ways to the input."""
_COUNTED: tuple[Kind, ...] = (
    is_attention, is_batched_product, is_fused_gate, is_grouped_product, is_halving, is_joining, is_mean, is_negation,
    is_product, is_root, is_router, is_scaling, is_shift, is_sizing, is_square, is_sum, is_total,
)  # fmt: skip


def is_counted(kind: str) -> bool:
    """Whether the number of a type's calls tells here of chains, however short they are: a reciprocal root of one value
    a row takes a thousandth of what is normalised with it."""
    return bool(activation(kind)) or any(of(kind) for of in _COUNTED)


class Pieces(Struct, frozen=True):
    """The chains of one rank: one value a step, and the types of one chain in their order."""

    count: Floats
    total_us: Floats
    types: tuple[str, ...]
    activation: str = ""
    """What a gate lets through by; see `kinds.ACTIVATIONS`."""
    ordered: bool = False
    """Whether the order of the kernels shows them, not their numbers alone."""
    layers: Floats | None = None
    """Forward passes of the layers that they belong to, backward ones as the two that they take."""
    each: Mapping[Kind, float] = field(default_factory=dict)
    """How many calls of a kind belong to one chain."""
    gradients: Floats | None = None
    """How many of the chains are differentiated by single operators, too; None where that is not told."""
    between: str = " → "
    """What stands between the types: an arrow where they follow each other."""

    @property
    def text(self) -> str:
        """The types for people."""
        return self.between.join(self.types)


def gates_of(types: Mapping[str, TypeRow]) -> Pieces | None:
    """Gated activations in pieces, of the activation that takes longest; None where one kernel does it already, or
    where tensors are not cut and multiplied at least as often as they are activated: where no order is told, besides
    what other chains need."""
    if any(map(is_fused_gate, types)):
        return None
    found = [pieces for name in ACTIVATIONS if (pieces := _gates(types, name)) is not None]
    return max(found, key=lambda pieces: float(pieces.total_us.sum()), default=None)


def _gates(types: Mapping[str, TypeRow], name: str) -> Pieces | None:
    def activates(kind: str) -> bool:
        return activation(kind) == name

    pieces = _chains(types, activates, {is_halving: 1, activates: 1, is_product: 1})
    ordered = any(row.gating is not None for kind, row in types.items() if activates(kind))
    if pieces is None or not (
        ordered or all(_left(types, of) >= pieces.count.sum() for of in (is_halving, is_product))
    ):
        return None
    return replace(pieces, activation=name, ordered=ordered)


def _left(types: Mapping[str, TypeRow], kind: Kind) -> float:
    """How many calls of a kind the chains leave that are known by a type which nothing else has."""
    known = [chains for chains in (rotary_of(types), norms_of(types)) if chains is not None]
    taken = sum(chains.each.get(kind, 0) * float(chains.count.sum()) for chains in known)
    return float(_count([row for name, row in types.items() if kind(name)]).sum()) - taken


def rotary_of(types: Mapping[str, TypeRow]) -> Pieces | None:
    """Rotary embeddings in pieces: tensors are cut into halves, one of which is negated, joined the other way round,
    multiplied with the sines, and added to the product with the cosines. None where something is negated more often
    than there are cuts, joins, sums and twice as many products."""
    negated = _count([row for name, row in types.items() if is_negation(name)])
    halves = 2 if _count([row for name, row in types.items() if is_halving(name)]).sum() >= 2 * negated.sum() else 1
    return _chains(types, is_negation, {is_halving: halves, is_negation: 1, is_joining: 1, is_product: 2, is_sum: 1})


def norms_of(types: Mapping[str, TypeRow]) -> Pieces | None:
    """Normalisations in pieces; None where nothing is squared, averaged and multiplied as often as a reciprocal root is
    taken. What is converted before and behind, and the small number that is added, belong to them where there are as
    many, and so do their gradients."""
    forward = _chains(
        types, is_root, {is_square: 1, is_mean: 1, is_root: 1, is_product: 1},
        {is_conversion: 2, is_shift: 1, is_product: 1},
    )  # fmt: skip
    return None if forward is None else _with_gradients(types, forward)


def _with_gradients(types: Mapping[str, TypeRow], forward: Pieces) -> Pieces:
    """The normalisations with their gradients, where there is as much of all that these need: for each of them, or,
    where layers are computed again for backward, for as many as attention has gradients."""
    attentions = [row for name, row in types.items() if is_attention(name)]
    back = _count([row for row in attentions if is_attention_gradient(row.type)]).sum()
    passes = _count(attentions).sum() - back
    part = float(min(back / passes, 1.0)) if passes > 0 else 1.0 - bool(attentions)
    needed = {kind: each for kind, each in _GRADIENT.items() if kind is not is_conversion or kind in forward.each}
    calls = {**forward.each, **{kind: forward.each.get(kind, 0) + part * each for kind, each in needed.items()}}
    rows = {kind: [row for name, row in types.items() if kind(name)] for kind in calls}
    counts = {kind: _count(mine) for kind, mine in rows.items()}
    if not part or any(counts[kind].sum() < calls[kind] * forward.count.sum() for kind in needed):
        return forward
    us = sum(_time(rows[kind], counts[kind], each, forward.count) for kind, each in calls.items())
    return replace(forward, total_us=np.asarray(us), each=calls, gradients=part * forward.count)


def copies_of(types: Mapping[str, TypeRow]) -> Pieces | None:
    """What only rearranges tensors, longest first; None where nothing does. What runs on AI CPUs has other reasons, and
    what a gate or a rotary embedding cuts and joins goes with these. Transposes belong to it where cuts and joins take
    as long: by themselves they are told as conversions."""
    on_cores = {name: row for name, row in types.items() if not row.aicpu.us > 0}
    rows = [row for name, row in on_cores.items() if is_rearranging(name)]
    turned = [row for name, row in on_cores.items() if is_transposing(name)]
    if sum(float(row.total_us.sum()) for row in turned) <= sum(float(row.total_us.sum()) for row in rows):
        rows += turned
    if not rows:
        return None
    rows.sort(key=lambda row: -float(row.total_us.sum()))
    us, count = np.sum([row.total_us for row in rows], axis=0), np.sum([row.count for row in rows], axis=0)
    for chains in filter(None, (gates_of(types), rotary_of(types))):
        for kind in (is_halving, is_joining):
            mine = [row for row in rows if kind(row.type)]
            if mine:
                each, calls = chains.each.get(kind, 0), _count(mine)
                us = us - _time(mine, calls, each, chains.count)
                count = count - np.minimum(each * chains.count, calls)
    return Pieces(count, us, tuple(row.type for row in rows[:_NAMED]), between=", ")


def experts_of(types: Mapping[str, TypeRow]) -> Pieces | None:
    """Products of matrices in a network that picks experts in its layers and multiplies for none of them in a group;
    None in any other. Who picks the next token does so once in many layers."""
    if any(map(is_grouped_product, types)):
        return None
    attentions = [row for name, row in types.items() if is_attention(name)]
    grads = [row for row in attentions if is_attention_gradient(row.type)]
    routers = [row for name, row in types.items() if is_router(name)]
    products = [row for name, row in types.items() if is_matrix_product(name) and not is_batched_product(name)]
    if not (attentions and routers and products):
        return None
    passes, back = _count(attentions), _count(grads)
    forward = passes - back
    if 2 * _count(routers).sum() < forward.sum():
        return None
    products.sort(key=lambda row: -float(row.total_us.sum()))
    us = np.sum([row.total_us for row in products], axis=0)
    names = tuple(row.type for row in products[:_NAMED])
    return Pieces(_count(products), us, names, layers=forward + 2 * back, between=", ")


def sizing_of(types: Mapping[str, TypeRow]) -> Pieces | None:
    """What tells by its result how large it is, the most frequent type first; None where nothing does."""
    rows = sorted((row for name, row in types.items() if is_sizing(name)), key=lambda row: -float(row.count.sum()))
    if not rows:
        return None
    us = np.sum([row.total_us for row in rows], axis=0)
    return Pieces(_count(rows), us, tuple(row.type for row in rows[:_NAMED]), between=", ")


def _count(rows: list[TypeRow]) -> Floats:
    return np.asarray(np.sum([row.count for row in rows], axis=0)) if rows else np.zeros(1)


def _chains(
    types: Mapping[str, TypeRow], key: Kind, needed: Mapping[Kind, int], besides: Mapping[Kind, int] | None = None
) -> Pieces | None:
    """As many chains as there are calls of the `key` kind (where order tells: as gate something), where there are at
    least as many of each kind that is `needed`. Types that also do other work stand with as many calls of
    mean length as belong to the chains."""
    rows = {kind: [row for name, row in types.items() if kind(name)] for kind in (*needed, *(besides or {}))}
    counts = {kind: np.sum([row.count for row in mine], axis=0) for kind, mine in rows.items() if mine}
    if not all(rows[kind] for kind in needed):
        return None
    chains = np.sum([row.count if row.gating is None else row.gating for row in rows[key]], axis=0)
    if not chains.sum() > 0 or any(counts[kind].sum() < each * chains.sum() for kind, each in needed.items()):
        return None
    calls = dict(_calls(needed, besides or {}, counts, chains))
    us = sum(_time(rows[kind], counts[kind], each, chains) for kind, each in calls.items())
    often = (max(rows[kind], key=lambda row: float(row.count.sum())).type for kind in needed)
    return Pieces(chains, np.asarray(us), tuple(often), each=calls)


def _calls(
    needed: Mapping[Kind, int], besides: Mapping[Kind, int], counts: Mapping[Kind, Floats], chains: Floats
) -> Iterator[tuple[Kind, int]]:
    """How many calls of each kind belong to one chain."""
    for kind in dict.fromkeys((*needed, *besides)):
        each = needed.get(kind, 0) + besides.get(kind, 0)
        enough = kind in counts and counts[kind].sum() >= each * chains.sum()
        if enough or kind in needed:
            yield kind, each if enough else needed[kind]


def _time(rows: list[TypeRow], count: Floats, each: float, chains: Floats) -> Floats:
    total = np.sum([row.total_us for row in rows], axis=0)
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    return np.asarray(mean * np.minimum(each * chains, count))
