"""A rank that is late in some of the steps only: medians over the steps hide what happens in fewer than half of them.

Each step is judged by itself. Steps in which the others wait for one rank, each far longer than any other rank ever has
more work than its peers, are that rank's; what they cost is the sum of these waits, as far as the steps are longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Mask
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.accounts import Accounts, accounts
from advisor.facts.cluster.peers import held_by_most, spread
from advisor.facts.cluster.steps.growth import kernel_ratio, main_part
from advisor.facts.cluster.steps.slow_steps import listing
from advisor.facts.cluster.steps.waits import own_above, own_unusual, parts_above, waited_for
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.course import COURSE, Course
from advisor.facts.step.apart import APART, FAR, FEW_SEEN, FLOOR, LONELY
from advisor.facts.step.times import STEPS
from advisor.model import Fact, Subject


class AtTimes(Struct, frozen=True):
    """A rank's late steps among others in which it is not; microseconds."""

    rank: int
    steps: tuple[str, ...]
    total: int
    waits: Floats
    """How long the others wait for it in each of these steps."""
    cost_us: float
    """What they cost, per step of the run."""
    part: str
    """What it has more of then than its peers: as step.slow_part."""
    kernel_ratio: float | None
    peers_idle_us: float
    """How long its peers idle in such a step, their median."""


@computed
def late_at_times(run: Run) -> dict[int, AtTimes]:
    """The ranks that are late in some of the steps only."""
    balance = accounts(run)
    return {} if balance is None else find(balance, partition(run).peers(), run.each(COURSE))


def find(balance: Accounts, peers: Mapping[int, list[int]], courses: Mapping[int, Course]) -> dict[int, AtTimes]:
    """rank -> its late steps, where these stand out from all that its peers differ by."""
    found: dict[int, AtTimes] = {}
    if len(balance.steps) < FEW_SEEN:
        return found
    for members in peers.values():
        rows = [balance.ranks.index(r) for r in members if r in balance.ranks]
        if len(rows) < 2 or not balance.synchronous(rows):
            continue
        late, over, parts = waited_for(balance, rows), own_above(balance, rows), parts_above(balance, rows)
        if not np.isfinite(late).all():
            continue
        unusual = own_unusual(balance, rows)
        idle = np.nan_to_num(balance.data[rows]) + balance.host[rows]
        for i, row in enumerate(rows):
            mask = _standing_out(late, over, unusual, i, FLOOR * balance.step_us)
            if mask is not None:
                alone = np.minimum(late[i], late[i] - np.max(np.delete(late, i, axis=0), axis=0))[mask]
                sums = {p: float(np.maximum(above[i], 0.0)[mask].sum()) for p, above in parts.items()}
                course = courses.get(balance.ranks[row])
                ratio = kernel_ratio(course, balance.steps, mask, mask)
                found[balance.ranks[row]] = AtTimes(
                    balance.ranks[row],
                    tuple(step for step, is_late in zip(balance.steps, mask, strict=True) if is_late),
                    len(mask), late[i][mask],
                    min(float(alone.sum()), _longer(balance, mask)) / len(mask),
                    main_part(sums, balance.compute[row], mask, mask, ratio), ratio,
                    float(np.median(np.delete(idle, i, axis=0), axis=0)[mask].mean()),
                )  # fmt: skip
    return found


def _standing_out(late: Floats, over: Floats, unusual: Floats, row: int, least: float) -> Mask | None:
    """The steps in which a rank is late by far more than any other rank has more work than its peers, or than is usual
    for it while a peer has no more, in any step, and than itself in the others; None where there are none, or none but
    the first, which may hold what starts the run. Few steps of few ranks show less of what they usually differ by, so
    that they must be farther apart."""
    others = np.delete(np.fmax(over, unusual), row, axis=0)
    usual = max(float(others.max()), least) * FAR * (1 + LONELY / over.size)
    mask: Mask = late[row] >= max(usual, APART * (spread(over.ravel()) or 0.0))
    if not mask[1:].any() or mask.all() or FAR * float(late[row][~mask].max()) > float(late[row][mask].min()):
        return None
    return mask


def _longer(balance: Accounts, late: Mask) -> float:
    """By how much all these steps and those right behind them, in which others may still wait, are longer than the
    usual ones: the shorter half of the others, for the first may hold a wait for what lies before the recording."""
    times = np.nanmedian(balance.time, axis=0)
    touched = late | np.concatenate(([False], late[:-1]))
    usual = times[~touched] if not touched.all() else times[~late]
    return float(np.maximum(times[touched] - held_by_most(usual.tolist()), 0.0).sum())


_NEEDS = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("rank.at_times_count", "count", "rank", "steps in which the others wait for it, where it is late in some only",
         formula="twice as late, at least, as any other rank has more own work than its peers, or than is usual for it "
                 "while a peer has no more, in any step, and as itself in the other steps", needs=_NEEDS),
    kind("rank.at_times_steps", "text", "rank", "the steps in which it is late", needs=_NEEDS),
    kind("rank.at_times_wait_us", "us", "rank", "how long the others wait for it in such a step", needs=_NEEDS),
    kind("rank.at_times_peers_idle_us", "us", "rank", "how long its peers idle in such a step themselves",
         formula="median of the others, mean over these steps", needs=_NEEDS),
    kind("rank.at_times_us", "us", "rank", "what its late steps cost, per step of the run",
         formula="Σ over these steps of its lateness above that of the next rank ÷ all steps, as far as these steps "
                 "and those behind them are longer than the usual ones", needs=_NEEDS),
    kind("rank.at_times_share", "ratio", "rank", "the same as a share of the run's time", needs=_NEEDS),
    kind("rank.at_times_part", "text", "rank", "what it has more of in them than its peers: as step.slow_part",
         needs=_NEEDS),
    kind("rank.at_times_kernel_ratio", "number", "rank",
         "its kernels take this many times as long in them as in its other steps",
         formula="Σ measured ÷ Σ at the median of type and shapes, late steps against the others", needs="kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the ranks that are late at times."""
    del facts
    balance = accounts(run)
    if balance is None:
        return
    length = float(np.nanmean(balance.time))
    for rank, found in late_at_times(run).items():
        subject, sources, n = Subject("rank", str(rank), (rank,)), balance.sources.get(rank, ()), found.total
        yield from fact("rank.at_times_count", subject, len(found.steps), *sources, samples=n)
        yield from fact("rank.at_times_steps", subject, listing(found.steps), *sources, samples=n)
        yield from fact("rank.at_times_wait_us", subject, float(found.waits.mean()), *sources, samples=n)
        yield from fact("rank.at_times_peers_idle_us", subject, found.peers_idle_us, *sources, samples=n)
        yield from fact("rank.at_times_us", subject, found.cost_us, *sources, samples=n)
        yield from fact("rank.at_times_share", subject, found.cost_us / length, *sources, samples=n)
        yield from fact("rank.at_times_part", subject, found.part, *sources, samples=n)
        yield from fact("rank.at_times_kernel_ratio", subject, found.kernel_ratio, *sources, samples=n)


FAMILIES = (Family("at_times", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("parallelism",)),)
