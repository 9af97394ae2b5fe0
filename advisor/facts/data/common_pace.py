"""Several ranks whose loaders together set the pace: with one of them mended, the step waits for the next.

A loader works on while its rank waits for others, so a rank that waits for its batch all the same is limited by its own
loader, however short that wait is: its batches come when they come. Mending another rank's loader brings a step forward
at most to the moment at which the last of the others had its batch. Whoever waits in a step because of something else
in the loop (no loader is seen there) waits as long after any mending, and bounds nothing.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Mask
from advisor.facts.base import Run, computed
from advisor.facts.cluster.accounts import Accounts, accounts
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.host.pace import AHEAD
from advisor.facts.host.timeline import IDLE
from advisor.knowledge.measuring import limit

BY_ITSELF = limit("loaders", "by_itself")
OWN, OFTEN = limit("loaders", "own"), limit("loaders", "often")
BY_CHANCE, EVEN = limit("loaders", "by_chance"), limit("loaders", "even")


class CommonPace(Struct, frozen=True):
    """The ranks behind the waits for data, two at least."""

    ranks: tuple[int, ...]
    gains: Floats
    """What each step gains with the loaders of all of them as fast as the others', microseconds."""
    alone_us: float
    """What it gains at most with the one mended that alone gives most."""
    waits: dict[int, Floats]
    """rank -> its wait for data in each step, microseconds."""
    everyone: bool
    """Nobody who waits for data is left: the others hardly do."""
    steps: tuple[str, ...]
    """Without a first recorded one that alone is spared."""
    even_lead_us: float | None
    """By how much the same one of them waits longest, where it does so by about as much in more steps than by chance,
    microseconds: batches that cost their loop as much every time look like loaders that keep step with one another."""

    @property
    def gain_us(self) -> float:
        """What the mean step gains."""
        return float(self.gains.mean())

    def wait_us(self, rank: int, step: str) -> float:
        """How long the rank waits for data in this step, on average where the step is not among those compared."""
        waits = self.waits[rank]
        return float(waits[self.steps.index(step)]) if step in self.steps else float(waits.mean())

    def reaching_us(self, step: str, replayed_us: float) -> float:
        """What the mean step gains where of this one as much is gained: what the rest hides behind other waiting is as
        long in every step."""
        if step not in self.steps:
            return min(self.gain_us, replayed_us)
        hidden = max(float(self.gains[self.steps.index(step)]) - replayed_us, 0.0)
        return float(np.maximum(self.gains - hidden, 0.0).mean())


@computed
def common_pace(run: Run) -> CommonPace | None:
    """The fewest ranks, the latest first, that together give nearly all that no wait for data would; None where one
    does so by itself, where nobody waits, or where all that load wait and nothing tells that they load ahead: what all
    share is nothing of some ranks then."""
    balance, layout = accounts(run), partition(run)
    if balance is None or not balance.data_known or len(balance.ranks) < 2:
        return None
    if not balance.synchronous(list(range(len(balance.ranks)))):
        return None
    waits, work = np.nan_to_num(balance.data), np.nan_to_num(balance.compute + balance.host)
    bound, steps = limited(waits, _seen(run, balance)), tuple(balance.steps)
    waiting = bound.sum(axis=0) > 0
    if len(steps) > 2 and not waiting[0] and waiting[1:].all():  # it lives on what was prepared before the recording
        waits, work, bound, steps = waits[:, 1:], work[:, 1:], bound[:, 1:], steps[1:]
    if len(layout.peers()) > 1:  # stages work one after another: only their beginnings are compared
        work = np.zeros(work.shape)
    every = [row for row in range(len(waits)) if bound[row].any()]
    whole = float(mended_us(waits, work, bound, every).mean())
    if len(every) < 2 or not whole > 0:
        return None
    chosen: list[int] = []
    alone, gained = 0.0, 0.0
    while gained < BY_ITSELF * whole:
        rest = [row for row in every if row not in chosen]
        gained, _, row = max((mended_us(waits, work, bound, [*chosen, r]).mean(), waits[r].sum(), r) for r in rest)
        chosen.append(row)
        alone = alone or gained
    ranks = [balance.ranks[row] for row in chosen]
    if len(chosen) < 2 or (_is_all_that_loads(layout, balance, ranks, every) and not _work_ahead(run, ranks)):
        return None
    told = {balance.ranks[row]: waits[row] for row in sorted(chosen)}
    gains = mended_us(waits, work, bound, chosen)
    return CommonPace(tuple(told), gains, alone, told, len(told) == len(every), steps, _even_lead_us(waits[chosen]))


def _is_all_that_loads(layout: Partition, balance: Accounts, chosen: Collection[int], rows: Collection[int]) -> bool:
    """Whether beside the chosen ranks none at hand loads, of the stages of which one of these rows is a rank; False
    where each of these stages has but one, so that none of them shares its loading with another."""
    held_up, here = {balance.ranks[row] for row in rows}, set(balance.ranks)
    stages = [here & set(members) for members in layout.peers().values() if held_up & set(members)]
    shared = not stages or any(len(members) > 1 for members in stages)
    return shared and set(chosen) >= held_up.union(*stages) & here


def _work_ahead(run: Run, ranks: Collection[int]) -> bool:
    """Whether each rank's timeline names a loader whose workers load beside the loop: a faster one than the others'
    would have batches in hand, so those that are all waited for are as slow as each other."""
    found = run.each(IDLE)
    return all(r in found and any(gap.host and AHEAD.search(gap.host) for gap in found[r].gaps) for r in ranks)


def _even_lead_us(waits: Floats) -> float | None:
    latest = int(waits.sum(axis=1).argmax())
    longer = waits[latest] - np.delete(waits, latest, axis=0).max(axis=0)
    chance, usual = len(waits) ** (1.0 - len(longer)), float(np.median(longer))
    return usual if chance <= BY_CHANCE and np.median(np.abs(longer - usual)) <= EVEN * usual else None


def limited(waits: Floats, seen: Floats) -> Mask:
    """Where each rank's own loader holds it up: it waits by more than a part of what the latest usually does, and a
    loader is seen to be waited for then; of a rank whose loader nobody sees, in most of its steps. `waits` and `seen`
    are microseconds, ranks by steps; NaN where not seen."""
    least = OWN * float(waits.max(axis=0).mean())
    known = np.isfinite(seen)
    long = np.where(known, np.minimum(waits, np.nan_to_num(seen)), waits) > least
    often = long.mean(axis=1) >= OFTEN
    return np.asarray(long & (known | often[:, None]) & (least > 0))


def mended_us(waits: Floats, work: Floats, bound: Mask, chosen: Collection[int]) -> Floats:
    """What each step gains, microseconds, where these rows wait no longer than those that no loader holds up. Before
    each step all ranks start together; `ahead` is by how much the mended run is there earlier, which another rank's
    late batch takes back."""
    own, mine = waits + work, np.zeros(len(waits), bool)
    mine[list(chosen)] = True
    ahead = [0.0]
    for step in range(waits.shape[1]):
        free, held = ~bound[:, step], bound[:, step] & ~mine
        least = np.minimum(waits[:, step], waits[free, step].min() if free.any() else 0.0)
        ends = float(own[:, step].max())
        rest = np.where(mine | held, least, waits[:, step]) + work[:, step]
        latest = ends - float(own[held, step].max()) if held.any() else np.inf
        ahead.append(min(ahead[-1] + ends - float(rest.max()), latest))
    return np.diff(ahead)


def _seen(run: Run, balance: Accounts) -> Floats:
    """What each rank's timeline shows of waiting for its loader before each step, microseconds; NaN where nothing.
    The wait may lie at the end of the row before."""
    found = np.full(balance.data.shape, np.nan)
    for rank, idle in run.each(IDLE).items():
        if rank in balance.ranks and idle.loader_us is not None:
            place = {step: i for i, step in enumerate(idle.steps)}
            row = balance.ranks.index(rank)
            for column, step in enumerate(balance.steps):
                at = [i for i in (place[step] - 1, place[step]) if i >= 0] if step in place else []
                found[row, column] = max((us for us in idle.loader_us[at].tolist() if us == us), default=np.nan)
    return found
