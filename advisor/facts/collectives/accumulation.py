"""Gradients that are reduced in every micro-batch: accumulated, they need it once a step.

One reduction of all gradients is a sequence of sizes. A step that repeats it, with forward and backward before every
repetition, sums the same gradients again and again. Equal buckets of one backward pass repeat as well, but there is a
whole forward pass before the first of them and none between them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.base import Run
from advisor.facts.collectives.exchanges import EXCHANGES, REDUCTIONS, Exchanges
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.course import COURSE, Chain
from advisor.knowledge.measuring import limit


@dataclass(frozen=True)
class Again:
    """Reductions of all gradients in a step."""

    times: int
    """How often for one update of the weights; once is enough."""
    early_us: float | None = None
    """What all rounds but the last of each update expose on the rank that hides most, microseconds a step: what one
    round less in the others gives; the last one stays. None where nothing tells it of single collectives."""


def reduced_again(run: Run) -> Again | None:
    """How often most ranks reduce all gradients for one update; None where nothing tells."""
    layout = partition(run)
    courses = run.each(COURSE)
    found: Counter[int] = Counter()
    early: dict[int, list[float]] = {}
    for rank, ex in run.each(EXCHANGES).items():
        chain = courses[rank].chain if rank in courses else None
        if chain is None or ex.scale > 1 or chain.step not in ex.steps:
            continue
        sums = np.isin(ex.kinds(), REDUCTIONS) & (ex.step == ex.steps.index(chain.step))
        sums &= np.array([layout.role_of(group) == "data" for group in ex.groups])[ex.group]
        computed, sizes, names = _course_of(chain, ex, sums)
        if (times := repetitions(computed, sizes)) is not None:
            # what each update of the weights needs is reduced for it: networks trained in turn, several updates a step
            updates = max(courses[rank].updates, 1)
            again = max(times // updates, 1)
            found[again] += 1
            exposed = courses[rank].exposed_in((chain.step,))
            shares = [exposed.get(name) for name in names]
            if exposed and None not in shares:
                rounds = np.array(shares, float)[: len(shares) // times * times].reshape(times, -1).sum(axis=1)
                early.setdefault(again, []).append(float(np.delete(rounds, np.s_[again - 1 :: again]).sum()))
    times = max(found, key=lambda times: (found[times], -times), default=None)
    return None if times is None else Again(times, min(early.get(times, ()), default=None))


def _course_of(chain: Chain, ex: Exchanges, chosen: np.ndarray) -> tuple[Floats, Floats, list[str]]:
    """(computed before it, size, name) of the chosen operations in order of their start, microseconds and bytes."""
    sizes = {
        ex.names[name].rpartition("/")[2]: size
        for name, size in zip(ex.name[chosen].tolist(), ex.size_bytes[chosen].tolist(), strict=True)
    }
    computed, before, moved, names = 0.0, [], [], []
    for name, busy in zip(chain.name, chain.busy.tolist(), strict=True):
        if not name:
            computed += busy
        elif name in sizes:
            before.append(computed)
            moved.append(sizes[name])
            names.append(name)
    return np.array(before), np.array(moved), names


def repetitions(computed_us: Floats, size_bytes: Floats) -> int | None:
    """How often these reductions of one step reduce the same gradients; None where sizes are not told.

    `computed_us` is what the step has computed before each of them. What is small against the largest is a loss or a
    norm and no gradient of its own.
    """
    if not len(size_bytes) or not np.isfinite(size_bytes).all():
        return None
    whole = size_bytes >= limit("accumulation", "gradient_share") * size_bytes.max()
    computed, size = computed_us[whole], size_bytes[whole]
    count = len(size)
    for length in range(1, count // 2 + 1):
        if count % length or not np.allclose(size[length:], size[:-length], rtol=limit("accumulation", "same_share")):
            continue
        last = computed[length - 1 :: length]
        apart = np.diff(last)
        usual = float(np.median(apart))
        regular = np.ptp(apart) <= limit("accumulation", "regular_share") * usual
        if regular and last[0] <= limit("accumulation", "lead_factor") * usual:
            return count // length
    return 1
