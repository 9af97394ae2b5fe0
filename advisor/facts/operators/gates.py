"""Gated activations that run as single operators: Split → Swish → Mul in each layer where one kernel could do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.operators.kinds import is_fused_gate, is_gate, is_halving, is_product
from advisor.facts.operators.reduction import TypeRow


@dataclass(frozen=True)
class Gates:
    """The chains of one rank: one value a step, and the types of one chain in their order."""

    count: Floats
    total_us: Floats
    types: tuple[str, ...]


def gates_of(types: Mapping[str, TypeRow]) -> Gates | None:
    """The chains that the counts of types show; None where one kernel does it already, or where tensors are not cut and
    multiplied at least as often as they are activated. Types that also do other work stand with as many calls of mean
    length as there are chains."""
    if any(map(is_fused_gate, types)):
        return None
    parts = [[row for name, row in types.items() if chosen(name)] for chosen in (is_halving, is_gate, is_product)]
    if not all(parts):
        return None
    counts = [np.sum([row.count for row in rows], axis=0) for rows in parts]
    totals = [np.sum([row.total_us for row in rows], axis=0) for rows in parts]
    chains = counts[1]
    if not chains.sum() > 0 or any(count.sum() < chains.sum() for count in counts):
        return None
    us = sum(np.divide(t, c, out=np.zeros_like(t), where=c > 0) * np.minimum(chains, c)
             for t, c in zip(totals, counts, strict=True))  # fmt: skip
    often = (max(rows, key=lambda row: float(row.count.sum())).type for rows in parts)
    return Gates(chains, np.asarray(us), tuple(often))
