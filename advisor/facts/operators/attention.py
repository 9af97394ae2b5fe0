"""Attention: how often it runs backward, and where it is written out, what runs between its two products instead of
inside one fused kernel."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.basics.arrays import Mask
from advisor.facts.device.kernel_time import Timeline
from advisor.facts.operators.kinds import is_attention, is_batched_product, is_between_products, is_cube, is_softmax


def backward_attentions(calls: Mapping[tuple[str, str], tuple[float, float]]) -> tuple[int, float]:
    """(how often a fused attention runs backward in a step, microseconds each), of (type, shapes) -> (kernels a step,
    microseconds): once for each layer and micro-batch, also where forward is computed again. (0, 0) without one."""
    own = [(count, us) for (kind, _), (count, us) in calls.items() if is_attention(kind) and "grad" in kind.lower()]
    many = sum(count for count, _ in own)
    return round(many), sum(count * us for count, us in own) / many if many else 0.0


def forward_attentions(calls: Mapping[tuple[str, str], tuple[float, float]]) -> int:
    """How often a fused attention runs forward in a step: twice for each layer and micro-batch where the backward pass
    computes forward again. 0 without one."""
    return round(sum(n for (kind, _), (n, _) in calls.items() if is_attention(kind) and "grad" not in kind.lower()))


def between_products(timeline: Timeline) -> Mask | None:
    """Which kernels run between two batched products with a softmax, or its gradient, among them, on one stream and
    with no other product between: scaling, mask, conversions, dropout and transposes as well, whatever they are called.
    None where the order is not told, where a fused attention runs, or where batches of matrices are not multiplied at
    least twice for each softmax."""
    kernels = timeline.kernels
    if not timeline.whole:
        return None
    kinds = kernels.signatures
    batched = np.array([is_batched_product(s.type) for s in kinds])[kernels.signature]
    softmax = np.array([is_softmax(s.type) for s in kinds])[kernels.signature]
    if any(is_attention(s.type) for s in kinds) or not softmax.any() or batched.sum() < 2 * softmax.sum():
        return None
    within = np.array([is_between_products(s.type) and "softmax" in s.type.lower() for s in kinds])[kernels.signature]
    other = np.array([is_cube(s) for s in kinds])[kernels.signature] & ~batched | timeline.communication
    order = np.lexsort((kernels.start, timeline.windows.of, kernels.stream))
    order = order[kernels.start[order] >= 0]
    stream, window = kernels.stream[order], timeline.windows.of[order]
    new = np.r_[True, (stream[1:] != stream[:-1]) | (window[1:] != window[:-1])]
    edge = batched[order] | other[order] | new
    part = np.cumsum(edge) - 1
    first = np.flatnonzero(edge)
    # between two batched products: such a one begins the part, and such a one, next to it on its stream, ends it
    begins = batched[order[first]]
    ends = np.r_[begins[1:] & ~new[first[1:]], False]
    holds = np.bincount(part, within[order], len(first)) > 0
    found = np.zeros(len(kernels), bool)
    found[order] = (begins & ends & holds)[part] & ~batched[order]
    return found
