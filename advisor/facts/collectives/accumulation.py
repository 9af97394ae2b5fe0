"""Gradients that are reduced in every micro-batch: accumulated, they need it once a step.

One reduction of all gradients is a sequence of sizes. A step that repeats it, with forward and backward before every
repetition, sums the same gradients again and again. Equal buckets of one backward pass repeat as well, but there is a
whole forward pass before the first of them and none between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Mask
from advisor.facts.base import Run
from advisor.facts.collectives.exchanges import EXCHANGES, REDUCTIONS, Exchanges
from advisor.facts.collectives.exposure import quiet_steps
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.device.chain import Chain
from advisor.facts.device.course import COURSE
from advisor.facts.operators.reduction import OPERATORS
from advisor.knowledge.measuring import limit


class Again(Struct, frozen=True):
    """Reductions of all gradients in a step."""

    times: int
    """How often for one update of the weights; once is enough."""
    early_us: float | None = None
    """What all rounds but the last of each update expose on the rank that hides most, microseconds a step: what one
    round less in the others gives; the last one stays. None where nothing tells it of single collectives."""
    queued_bytes: tuple[float, ...] = ()
    """The sizes of one round, where rounds wait for those before them: what the last one exposes is then theirs too."""


def reduced_again(run: Run, among: Collection[int] | None = None) -> Again | None:
    """How often most ranks, or most `among` them, reduce all gradients for one update; None where nothing tells."""
    layout = partition(run)
    courses = run.each(COURSE)
    found: Counter[int] = Counter()
    early: dict[int, list[float]] = {}
    queued: dict[int, tuple[float, ...]] = {}
    for rank, ex in run.each(EXCHANGES).items():
        chain = courses[rank].chain if rank in courses and (among is None or rank in among) else None
        if chain is None or (course := _reductions(chain, ex, layout)) is None:
            continue
        if (times := repetitions(course.computed_us, course.size_bytes)) is None:
            continue
        # what each update of the weights needs is reduced for it: networks trained in turn, several updates a step
        updates = max(courses[rank].updates, 1)
        if times == 1 and (length := queued_round(course.start_us, course.size_bytes, courses[rank].forward_us)):
            again = max(courses[rank].passes // updates, 1)
            queued.setdefault(again, tuple(course.size_bytes[whole_gradients(course.size_bytes)][:length].tolist()))
            found[again] += 1
            continue
        again = max(times // updates, 1)
        found[again] += 1
        exposed = courses[rank].exposed_in((chain.step,))
        shares = [exposed.get(name) for name in course.names]
        if exposed and None not in shares:
            rounds = np.array(shares, float)[: len(shares) // times * times].reshape(times, -1).sum(axis=1)
            early.setdefault(again, []).append(float(np.delete(rounds, np.s_[again - 1 :: again]).sum()))
    times = max(found, key=lambda times: (found[times], -times), default=None)
    return None if times is None else Again(times, min(early.get(times, ()), default=None), queued.get(times, ()))


def accumulates(run: Run) -> bool | None:
    """Whether steps in which nothing is communicated update no weights: they accumulate gradients, each a micro-batch.
    False where all of them do: ranks train their weights apart and average them now and then, which no backward pass
    can hide. None where no kernels tell."""
    quiet, told = quiet_steps(run), run.each(OPERATORS).values()
    if not told or not all(quiet <= set(o.steps) for o in told):
        return None
    updates = np.concatenate([o.update_us[[step in quiet for step in o.steps]] for o in told])
    return True if not updates.any() else False if (updates > 0).all() else None


class UntilReduced(Struct, frozen=True):
    """What a step computes before its last reduction of gradients starts, microseconds: no backward pass is behind."""

    computed_us: float
    backward_us: float | None
    """Of this, behind the last forward pass; None where no kernel's name tells one."""
    between_us: float
    """Of this, behind the start of the first reduction."""


def until_reduced(run: Run, among: Collection[int] | None = None) -> list[UntilReduced]:
    """Of each rank, or each `among` them, whose kernels tell the course of a step."""
    layout = partition(run)
    courses = run.each(COURSE)
    found = []
    for rank, ex in run.each(EXCHANGES).items():
        chain = courses[rank].chain if rank in courses and (among is None or rank in among) else None
        if chain is None or (reductions := _reductions(chain, ex, layout)) is None:
            continue
        size = reductions.size_bytes
        if not len(size):
            continue
        whole = whole_gradients(size) if np.isfinite(size).all() else np.ones(len(size), bool)
        since, until = float(reductions.start_us[whole].min()), float(reductions.start_us[whole].max())
        forward = courses[rank].forward_us
        behind = _computed(chain, float(forward[-1, 1]), until) if len(forward) else 0.0
        between = _computed(chain, since, until)
        found.append(UntilReduced(_computed(chain, 0.0, until), behind or None, between))
    return found


def _computed(chain: Chain, begin_us: float, end_us: float) -> float:
    """What a step computes between these times, microseconds from its origin."""
    segment = chain.computes
    start, lasts = chain.start[segment], (chain.busy + chain.gap)[segment]
    inside = np.minimum(start + lasts, end_us) - np.maximum(start, begin_us)
    part = np.clip(inside, 0.0, None) / np.maximum(lasts, 1e-9)
    return float((chain.working[segment] * part).sum())


class _Reductions(Struct, frozen=True):
    """Some operations of one step, in order of their start."""

    computed_us: Floats
    """What the step has computed before each of them."""
    start_us: Floats
    """From the origin of the chain."""
    size_bytes: Floats
    names: tuple[str, ...]


def _reductions(chain: Chain, ex: Exchanges, layout: Partition) -> _Reductions | None:
    """The reductions of gradients in the course of the chain's step; None where not all of them are kept."""
    if chain.step not in ex.steps:
        return None
    chosen = np.isin(ex.kinds(), REDUCTIONS) & (ex.step == ex.steps.index(chain.step))
    chosen &= np.array([layout.role_of(group) == "data" for group in ex.groups])[ex.group]
    if not ex.keeps(chosen):
        return None
    sizes = {
        ex.names[name].rpartition("/")[2]: size
        for name, size in zip(ex.name[chosen].tolist(), ex.size_bytes[chosen].tolist(), strict=True)
    }
    at = np.array([i for i, name in enumerate(chain.name) if name in sizes], np.int64)
    computed = np.cumsum([0.0 if name else busy for name, busy in zip(chain.name, chain.busy.tolist(), strict=True)])
    names = tuple(chain.name[i] for i in at)
    return _Reductions(computed[at], chain.start[at], np.array([sizes[name] for name in names]), names)


def whole_gradients(size_bytes: Floats) -> Mask:
    """Which reductions are gradients: what is small against the largest is a loss or a norm."""
    large: Mask = size_bytes >= limit("accumulation", "gradient_share") * size_bytes.max()
    return large


def _recurs(size_bytes: Floats, length: int) -> bool:
    """Whether the sizes are one sequence of this length again and again."""
    same = limit("accumulation", "same_share")
    return not len(size_bytes) % length and np.allclose(size_bytes[length:], size_bytes[:-length], rtol=same)


def repetitions(computed_us: Floats, size_bytes: Floats) -> int | None:
    """How often these reductions of one step reduce the same gradients; None where sizes are not told.

    `computed_us` is what the step has computed before each of them.
    """
    if not len(size_bytes) or not np.isfinite(size_bytes).all():
        return None
    whole = whole_gradients(size_bytes)
    computed, size = computed_us[whole], size_bytes[whole]
    count = len(size)
    for length in range(1, count // 2 + 1):
        if not _recurs(size, length):
            continue
        last = computed[length - 1 :: length]
        apart = np.diff(last)
        usual = float(np.median(apart))
        regular = np.ptp(apart) <= limit("accumulation", "regular_share") * usual
        if regular and last[0] <= limit("accumulation", "lead_factor") * usual:
            return count // length
    return 1


def queued_round(start_us: Floats, size_bytes: Floats, forward_us: Floats) -> int:
    """How many reductions are one round of all gradients, where every pass of the step has one: the sequence of sizes
    recurs as often as there are forward passes, and the first round starts between the first of these and the last. 0
    where they are not so; gradients that are accumulated are reduced behind the last forward pass.
    """
    whole = whole_gradients(size_bytes)
    start, size = start_us[whole], size_bytes[whole]
    length, rest = divmod(len(size), max(len(forward_us), 1))
    if len(forward_us) < 2 or not length or rest or not _recurs(size, length):
        return 0
    between = (start[:length] >= forward_us[0, 1]) & (start[:length] < forward_us[-1, 0])
    return length if between.all() else 0
