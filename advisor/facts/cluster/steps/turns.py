"""Who was last in each step, and from what: waiting that no single rank causes, but many in turn (S16, S35, S64).

A loader that stalls now and then, batches of uneven size or pauses of the host hit another rank each time. No rank
stands out over the steps, yet nearly every step waits for somebody. So each step is judged by itself: the rank with
most work of its own and least waiting is late, and what it has more of than its peers is why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.accounts import PARTS, Accounts, accounts
from advisor.facts.cluster.steps.waits import parts_above, waited_for
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.course import COURSE
from advisor.facts.host.owners import COVERS
from advisor.facts.host.timeline import IDLE
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Subject

MOST_OF = limit("turns", "most_of")
"""Part of the waiting that the steps hold in which somebody is late."""


class Last(Struct, frozen=True):
    """Who was last in one step: how long its peers waited for it, and what it had more of."""

    step: int
    rank: int
    us: float
    alone_us: float
    """What of it ends if this rank alone were on time: the next to last is waited for as well."""
    cause: str
    again: float
    """Share of the other steps in which it is late as well, by half as much at least."""
    together_us: float
    """What all its peers together wait for it: those that are late as well wait for less."""


def last_ones(balance: Accounts, peers: dict[int, list[int]]) -> list[Last]:
    """For each step the rank that its peers waited for longest; of several stages the one where they waited most."""
    found: dict[int, Last] = {}
    for members in peers.values():
        rows = [balance.ranks.index(r) for r in members if r in balance.ranks]
        if len(rows) < 2 or not balance.synchronous(rows):
            continue
        late, above = waited_for(balance, rows), parts_above(balance, rows)
        for step in np.flatnonzero(np.isfinite(late).any(axis=0)).tolist():
            row = int(np.nanargmax(late[:, step]))
            us, following = (max(float(v), 0.0) for v in np.sort(np.nan_to_num(late[:, step], nan=0.0))[:-3:-1])
            cause = max(above, key=lambda p: float(np.nan_to_num(above[p][row, step], nan=-np.inf)))
            if step not in found or us > found[step].us:
                others = np.delete(late[row], step)
                again = float((others > us / 2).mean()) if others.size else 0.0
                together = float(np.maximum(us - np.maximum(np.nan_to_num(late[:, step]), 0.0), 0.0).sum())
                found[step] = Last(step, balance.ranks[rows[row]], us, us - following, cause, again, together)
    return [found[step] for step in sorted(found)]


def behind_idle_us(balance: Accounts, peers: dict[int, list[int]]) -> float:
    """What a rank waits in the mean step for one that idles longer than others, microseconds; mean over all ranks."""
    found = [last.together_us for last in last_ones(balance, peers) if last.cause != "compute"]
    return sum(found) / (len(balance.steps) * len(balance.ranks))


def late_steps(waits: Sequence[float]) -> int:
    """The fewest steps that hold nearly all of these waits, one a step."""
    together = np.cumsum(sorted(waits, reverse=True))
    return min(int(np.searchsorted(together, MOST_OF * together[-1])) + 1, len(waits))


def _gain(balance: Accounts, peers: dict[int, list[int]], cause: str) -> float:
    """What the mean step gains where no rank has more of the cause than is usual in its stage: of waits for data none,
    of computation an equal part of the step's, for work that one rank is spared is another's. A stage lasts as long as
    the work of the rank that has most of it, and a step is longer by what the stage loses that loses most."""
    gains = [np.zeros(len(balance.steps))]
    for members in peers.values():
        rows = [balance.ranks.index(r) for r in members if r in balance.ranks]
        if len(rows) > 1 and balance.synchronous(rows):
            own = sum((balance.part(p)[rows] for p in PARTS), np.zeros((len(rows), len(balance.steps))))
            part = balance.part(cause)[rows]
            usual = np.full(part.shape[1], 0.0 if cause == "data" else float(np.nanmedian(part)))
            if cause == "compute":
                usual = np.fmax(usual, part.mean(axis=0))
            mended = own - np.maximum(part - usual, 0.0)
            known = np.isfinite(own).any(axis=0)
            gain = np.zeros(len(balance.steps))
            gain[known] = np.nanmax(own[:, known], axis=0) - np.nanmax(mended[:, known], axis=0)
            gains.append(gain)
    return float(np.max(gains, axis=0).mean())


def _as_told(run: Run, balance: Accounts) -> Accounts:
    """What lies before the first kernels counts for the hosts where every rank's timeline tells of its loader, and for
    hardly any of it: what pauses there (garbage collection, the loop's own code) is no wait for data."""
    idle = run.each(IDLE)
    loaders = [idle[rank].loader_us if rank in idle else None for rank in balance.ranks]
    told = [float(np.nanmean(us)) for us in loaders if us is not None and np.isfinite(us).any()]
    if not balance.data_known or len(told) < len(balance.ranks):
        return balance
    waits = np.nan_to_num(balance.data)
    if sum(told) >= COVERS * float(np.maximum(waits - np.median(waits), 0.0).mean(axis=1).sum()):
        return balance
    return replace(balance, data=np.zeros(waits.shape), host=balance.host + waits)


_NEEDS = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("lateness.wait_us", "us", "run", "how long ranks wait for whichever peer is last, per step",
         formula="mean over steps of the lesser of the last rank's own work above its peers' and their exposed "
                 "communication above its own", needs=_NEEDS),
    kind("lateness.wait_share", "ratio", "run", "the same as a share of the step", needs=_NEEDS),
    kind("lateness.cause", "text", "run", "compute, data or host: what the last ranks mostly had more of",
         needs=_NEEDS),
    kind("lateness.cause_share", "ratio", "run", "part of that waiting that it accounts for", needs=_NEEDS),
    kind("lateness.one_rank_share", "ratio", "run", "part of that waiting that one rank on time would end, at most",
         formula="highest rank.late_alone_share", needs=_NEEDS),
    kind("lateness.same_ranks_share", "ratio", "run", "how far the waiting is for ranks that are late in every step",
         formula="share of the other steps in which a step's last rank is late by half as much, weighted by the "
                 "waiting", needs=_NEEDS),
    kind("rank.late_alone_share", "ratio", "rank", "part of all waiting for the last that ends with this rank on "
         "time", formula="Σ over steps in which it is last of its lateness above that of the next", needs=_NEEDS),
    kind("lateness.late_ranks", "count", "run", "ranks that were last for this cause in one step or another",
         needs=_NEEDS),
    kind("lateness.late_steps", "count", "run", "the fewest steps in which nearly all of that waiting lies",
         needs=_NEEDS),
    kind("lateness.step_count", "count", "run", "steps judged", needs=_NEEDS),
    kind("lateness.data_free_us", "us", "run", "what the mean step gains where no rank waits for data: what all "
         "wait, and what they lose waiting for the one that waits longest",
         formula="mean over steps of the largest own work now and without it", needs=_NEEDS),
    kind("lateness.saving_us", "us", "run", "what the mean step gains where nobody has more of the cause than usual",
         formula="mean over steps of the largest own work now and with the cause at the median of all ranks and steps, "
                 "waits for data at 0, computation at no less than the step's mean over ranks",
         needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The waiting of all steps by cause and by rank."""
    del facts
    measured, layout = accounts(run), partition(run)
    if measured is None:
        return
    balance, peers = _as_told(run, measured), layout.peers()
    found = last_ones(balance, peers)
    total = sum(last.us for last in found)
    n = len(found)
    if not n:
        return
    sources = balance.sources.get(balance.ranks[0], ())
    length = float(np.nanmean(balance.time))
    yield from fact("lateness.step_count", RUN, n, *sources, samples=n)
    yield from fact("lateness.wait_us", RUN, total / n, *sources, samples=n)
    yield from fact("lateness.wait_share", RUN, total / n / length, *sources, samples=n)
    if balance.data_known:
        yield from fact("lateness.data_free_us", RUN, _gain(balance, peers, "data"), *sources, samples=n)
    if total <= 0:
        return
    by_cause: dict[str, float] = defaultdict(float)
    by_rank: dict[int, float] = defaultdict(float)
    for last in found:
        by_cause[last.cause] += last.us
        by_rank[last.rank] += last.alone_us
    cause = max(by_cause, key=lambda c: by_cause[c])
    mine = [last for last in found if last.cause == cause and last.us > 0]
    yield from fact("lateness.cause", RUN, cause, *sources, samples=n)
    yield from fact("lateness.cause_share", RUN, by_cause[cause] / total, *sources, samples=n)
    yield from fact("lateness.one_rank_share", RUN, max(by_rank.values()) / total, *sources, samples=n)
    if n > 1:
        same = sum(last.us * last.again for last in found) / total
        yield from fact("lateness.same_ranks_share", RUN, same, *sources, samples=n)
    for rank in balance.ranks:
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("rank.late_alone_share", subject, by_rank[rank] / total, *sources, samples=n)
    if mine:
        yield from fact("lateness.late_steps", RUN, late_steps([last.us for last in mine]), *sources, samples=n)
    yield from fact("lateness.late_ranks", RUN, len({last.rank for last in mine}), *sources, samples=n)
    yield from fact("lateness.saving_us", RUN, _gain(balance, peers, cause), *sources, samples=n)


FAMILIES = (Family("turns", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE, IDLE), after=("parallelism",)),)
