"""How fast one rank's kernels were: each kind at its usual length, and steps at what their kernels usually take."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.basics.middle import middle_mean, middle_means
from advisor.basics.numbering import beginnings, in_groups
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Kernels

MOST_WORDS = 48
"""Kernel signatures kept for comparing speed: the most expensive ones."""
ENDS = (
    limit("lateness", "shortest"), limit("lateness", "short"), limit("lateness", "long"), limit("lateness", "longest"),
)  # fmt: skip
"""Quantiles of a signature's calls that tell whether all of them are slower, or whether more are of the long kind."""


def speeds(
    kernels: Kernels, chosen: Mask, steps: int
) -> tuple[dict[tuple[str, str], tuple[float, float]], dict[tuple[str, str], Floats], dict[str, float]]:
    """The most expensive signatures with their count a step and usual duration, and with `Course.ends`, and
    `Course.rest_us` of the others. Where no type is told (Level 0), the kernels' names tell which are alike, and their
    shapes are unknown."""
    typed = np.array([bool(s.type) for s in kernels.signatures], bool)[kernels.signature[chosen]]
    if 2 * typed.sum() > typed.size:
        keys, of = [(s.type, s.input_shapes) for s in kernels.signatures], kernels.signature
    else:
        operators, operator = kernels.operators()
        keys, of = [(name, "") for name in operators], operator[kernels.name]
    alike, duration = of[chosen], kernels.duration[chosen]
    totals = np.bincount(alike, weights=duration, minlength=len(keys))
    found, ends = {}, {}
    rest: dict[str, float] = {}
    ranked = np.argsort(-totals)
    for index in ranked[MOST_WORDS:]:
        if totals[index] > 0:
            rest[keys[index][0]] = rest.get(keys[index][0], 0.0) + float(totals[index]) / steps
    for index in ranked[:MOST_WORDS]:
        mine = duration[alike == index]
        if mine.size and totals[index] > 0:
            found[keys[index]] = (mine.size / steps, middle_mean(mine))
            ends[keys[index]] = np.quantile(mine, ENDS)
    return found, ends, rest


def expected(kernels: Kernels, chosen: Mask, order: list[int]) -> tuple[Floats, Floats]:
    """Per step: the kernels at what their type and shapes usually take, and as measured. A larger batch raises both, a
    slower card only what is measured."""
    shaped = kernels.shaped()
    if not (chosen & shaped).sum() > chosen.sum() / 2:
        return np.full(len(order), np.nan), np.full(len(order), np.nan)
    by_length = kernels.by_length()
    at = in_groups(kernels.signature, by_length[(chosen & shaped)[by_length]])
    signature, duration = kernels.signature[at], kernels.duration[at]
    first = beginnings(signature)
    usual = np.repeat(middle_means(duration, first), np.diff(np.append(first, len(signature))))
    step = kernels.step[at]
    size = int(max(order)) + 1
    sums = [np.bincount(step, values, size).astype(np.float64)[order] for values in (usual, duration)]
    return sums[0], sums[1]
