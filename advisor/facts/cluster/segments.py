"""Who computes longest between each two collectives: lateness that takes turns within a step (S16, S37, S64).

A hot expert is on another rank in each layer. Over the whole step all ranks compute equally long, and yet each
exchange waits for somebody. So ranks are compared in each stretch of computing between two collectives that computing
waits for, and the step is replayed with the uneven stretches even. What a slow card takes longer for its work is not
uneven work: each rank counts as if its card were as fast as the others. Whether they take turns, one step of few layers
tells by chance: the waits in the collectives of all recorded steps tell it better.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.accounts import accounts
from advisor.facts.cluster.peers import kernel_speeds, spread
from advisor.facts.cluster.replay import Change, blocks, gain, in_order, model, places, sequence
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.exposure import joints
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact

UNEVEN = limit("segments", "uneven")
"""A stretch is uneven where the rank that computes longest in it takes this many times as long as the median."""
APART = limit("segments", "apart")
"""And lies this many times what the ranks differ by in even stretches above the median."""
EVEN_PART = limit("segments", "even_part")
"""The part of the stretches that counts as even: those in which the ranks differ least."""


class Uneven(Struct, frozen=True):
    """The uneven stretches of one step; microseconds."""

    gain_us: float
    """What the step gains where each of them takes every rank of the stage equally long, with the same work in all."""
    over_us: float
    """What the last rank of each of them computes beyond the mean of its stage, together."""
    whole_us: float
    """What the rank that computes longest in all of them together computes beyond the mean of its stage: as much as
    `over_us` where it is last in each; less where others take their turn."""
    last: frozenset[int]
    """The ranks that compute longest in one of them or another."""
    count: int
    behind: str | None
    """The kind of collective that most of this lies behind."""
    changes: Mapping[int, Change] = field(default_factory=dict)
    """rank -> what evens its work out; a slow card stays as slow as it is."""
    before: frozenset[str] = frozenset()
    """Kinds of the collectives that wait behind them."""


NONE = Uneven(0.0, 0.0, 0.0, frozenset(), 0, None)


@computed
def uneven_segments(run: Run) -> Uneven | None:
    """The uneven stretches of the replayed step; None where the step cannot be replayed."""
    found = model(run)
    if found is None:
        return None
    changes: dict[int, Change] = {}
    speeds = kernel_speeds(run)
    over_us = whole_us = 0.0
    lasts: set[int] = set()
    behind: Counter[str] = Counter()
    before: set[str] = set()
    count = 0
    for members in partition(run).peers().values():
        ranks = [rank for rank in members if rank in found.chains]
        transfers = in_order([found.chains[rank] for rank in ranks])
        orders = {sequence(found.chains[rank], transfers) for rank in ranks}
        if len(ranks) < 3 or len(orders) > 1:
            continue
        order = orders.pop()
        work = np.array([blocks(found.chains[rank], transfers) / speeds.get(rank, 1.0) for rank in ranks])
        uneven = _uneven(work)
        mean, last = work.mean(axis=0), work.argmax(axis=0)
        above = np.where(uneven, work - mean, 0.0)
        whole_us += float(above.sum(axis=1).max())
        for place in np.flatnonzero(uneven).tolist():
            more = float(above[last[place], place])
            over_us += more
            lasts.add(ranks[last[place]])
            behind[order[place - 1] if place else ""] += more  # type: ignore[assignment]
            before.update(order[place : place + 1])
            count += 1
        even = np.where(uneven, mean, work)
        for rank, own, fair in zip(ranks, work, even, strict=True):
            factors = np.divide(fair, own, out=np.ones_like(own), where=own > 0)
            changes[rank] = Change(np.asarray(factors[places(found.chains[rank], transfers)]))
    if not count:
        return NONE
    most = behind.most_common(1)[0][0]
    gained = gain(found, changes) or 0.0
    return Uneven(gained, over_us, whole_us, frozenset(lasts), count, most or None, changes, frozenset(before))


def _uneven(work: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which stretches (columns) somebody computes clearly longer in than the others (rows). Where each rank has another
    part of the work none stands out: even stretches tell what the ranks differ by anyway."""
    median, most = np.median(work, axis=0), work.max(axis=0)
    apart = np.array([spread(column) or 0.0 for column in work.T]) / np.maximum(median, 1e-9)
    usual = float(np.quantile(apart[median > 0], EVEN_PART)) if (median > 0).any() else 0.0
    return np.asarray((most >= max(UNEVEN, 1 + APART * usual) * median) & (median > 0))


def whole_share(run: Run, found: Uneven) -> float:
    """The part that adds up over a step: by the replayed one, or less where the waits of all recorded steps show less.
    A slow card adds up in the waits, but not in this step, in which it counts as fast as the others."""
    late: dict[tuple[str, tuple[int, ...]], Floats] = defaultdict(lambda: np.zeros(1))
    over_us = 0.0
    for joint in joints(run):
        if joint.kind in found.before:
            waits = np.nan_to_num(joint.wait_us) * joint.behind[:, None]
            above = waits.mean(axis=1, keepdims=True) - waits  # later than the mean of those that meet there
            over_us += float(above.max(axis=1).sum())
            for step, row in zip(joint.steps, above, strict=True):
                late[step, joint.ranks] = late[step, joint.ranks] + row
    replayed = found.whole_us / found.over_us
    return min(replayed, sum(float(each.max()) for each in late.values()) / over_us if over_us > 0 else replayed, 1.0)


KINDS = (
    kind("segments.gain_us", "us", "run", "what the step gains where all ranks of a stage compute equally long between "
         "each two collectives, the work of all as it is",
         formula="replay of one step with each uneven stretch at the mean of the stage's ranks", needs="kernels"),
    kind("segments.gain_share", "ratio", "run", "the same as a share of the step", needs="kernels"),
    kind("segments.uneven_count", "count", "run", "stretches of computing between collectives that are uneven, of one "
         "step", needs="kernels"),
    kind("segments.late_ranks", "count", "run", "ranks that compute longest in one of them or another",
         needs="kernels"),
    kind("segments.whole_share", "ratio", "run", "part of what they are uneven by one after the other that they are "
         "uneven by together: 100 % where the same ranks are last in each, little where they take turns",
         formula="highest Σ of a rank's computing above the mean ÷ Σ of what the last of each stretch has above it; no "
                 "more than all steps show: highest Σ of a rank's arrivals behind the mean ÷ Σ of the last one's",
         needs="kernels"),
    kind("segments.behind", "text", "run", "kind of collective that most of it lies behind", needs="kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """What the stretches are uneven by, and whether one rank is behind it."""
    del facts
    found, balance, replayed = uneven_segments(run), accounts(run), model(run)
    if found is None or balance is None or replayed is None:
        return
    # the step that was replayed may be one of a few that are longer than the others
    share = found.gain_us / max(replayed.baseline_us, balance.step_us)
    sources = balance.sources.get(balance.ranks[0], ())
    yield from fact("segments.gain_us", RUN, share * balance.step_us, *sources)
    yield from fact("segments.gain_share", RUN, share, *sources)
    yield from fact("segments.uneven_count", RUN, found.count, *sources)
    if found.count:
        yield from fact("segments.late_ranks", RUN, len(found.last), *sources)
        yield from fact("segments.whole_share", RUN, whole_share(run, found), *sources)
        yield from fact("segments.behind", RUN, found.behind, *sources)


FAMILIES = (Family("segments", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("parallelism",)),)
