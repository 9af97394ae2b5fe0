"""Each rank against its peers (S15-S18, S21, S25, S29, S34, S35, S37).

In a synchronous step all peers take equally long, so a late rank has more of its own work and less exposed
communication than its peers: the others wait for it. What it has more of is why it is late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Mask
from advisor.basics.units import signed
from advisor.facts.base import Run, computed
from advisor.facts.cluster.accounts import PARTS, Accounts, accounts
from advisor.facts.cluster.peers import (
    calls_of,
    excess,
    kernel_speeds,
    others_median,
    spread,
    typical,
    usual_slowness,
    weight,
)  # fmt: skip
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.course import COURSE
from advisor.facts.host.owners import COVERS
from advisor.facts.host.pace import CALLS, slow_as_all, slow_hosts
from advisor.facts.host.timeline import IDLE
from advisor.facts.operators.kinds import is_attention, is_matrix_product
from advisor.knowledge.measuring import limit

APART, NOISE = limit("lateness", "apart"), limit("lateness", "noise")
"""A stage is slow as a whole where all its ranks are slower by this many times what ranks of a stage usually differ."""
ALIKE = limit("lateness", "alike")
"""Ranks whose lateness differs by more than this factor are not late from one thing."""
UNLIKE = limit("lateness", "unlike")
"""Products against everything else: cards on which these differ by this factor are not slow in one way."""

SEVERAL = int(limit("lateness", "several"))
"""Fewer long waits for data are no bursts."""


class Lateness(Struct):
    """One rank against its peers, microseconds a step."""

    rank: int
    parts: dict[str, float]
    own_us: float
    """Own work above the peers' median."""
    exposed_us: float | None
    """Exposed communication above the peers' median: negative on a rank that others wait for."""
    steadiness: float
    """Share of the steps in which the rank's own work was above its peers' by half of what it usually is."""
    noise_us: float | None
    speed: float | None = None
    recurrence: float = 1.0
    """What it is late on average over the steps, of what it usually is: below 1 where some steps are spared, above it
    where batches come in bursts, a long wait for several of them."""
    in_turn: float | None = None
    """How likely one of its peers were late in as many steps if all took turns; None where steps are not told apart."""
    work_idle_us: float = 0.0
    """Idle time between kernels that its peers do not have: it comes with more work, not from a slower host."""
    lead_us: float = 0.0
    """Part of `host` that lies before the first kernel: a slow host prepares its step for longer."""
    across: bool = False
    """Compared with the ranks of all stages, not of its own alone."""

    @property
    def late_us(self) -> float:
        """How long the peers wait for this rank."""
        waited = self.own_us if self.exposed_us is None else min(self.own_us, -self.exposed_us)
        return max(waited, 0.0)

    @property
    def cause(self) -> str:
        """The part that makes it late; unknown where none does."""
        best = max(self.parts, key=lambda p: self.parts[p], default="")
        return best if best and self.parts[best] > 0 else "unknown"


@computed
def latenesses(run: Run) -> dict[int, Lateness]:
    """Every rank against its peers; ranks without peers only where their kernels can be compared with others'."""
    balance, layout = accounts(run), partition(run)
    if balance is None:
        return {}
    speeds = kernel_speeds(run)
    usual = APART * _differing(speeds, layout.peers().values())
    row = {rank: i for i, rank in enumerate(balance.ranks)}
    above = {p: balance.part(p) - others_median(balance.part(p)) for p in ("data", "host")}
    above["compute"] = _slower(run, balance)
    waiting, gaps = excess(balance.part("data")), np.nan_to_num(typical(balance.part("host")))
    found: dict[int, Lateness] = {}
    for members in layout.peers().values():
        rows = [row[r] for r in members if r in row]
        slow_stage = min((speeds.get(balance.ranks[r], 0.0) for r in rows), default=0.0) > 1 + usual
        if not rows or not balance.synchronous(rows):  # a stage all of whose ranks are left out has no row
            continue
        # the first stage as a whole may wait for data, and all other stages wait behind it
        first = all(layout.stage[balance.ranks[r]] == 0 for r in rows)
        starved = first and balance.data_known and all(waiting[r] > 0 for r in rows)
        # where the loaders of its ranks tell their waits, stages that load nothing are no peers of theirs
        starved = starved and not (len(rows) > 1 and _loading_told(run, [balance.ranks[r] for r in rows]))
        # what hosts leave between kernels does not depend on what a stage computes either
        others = np.delete(gaps, rows)
        starved = starved or (others.size > 0 and gaps[rows].min() > ALIKE * others.max())
        peers = _with_work(run, balance, _among_peers(balance, rows, speeds)) if len(rows) > 1 else {}
        alone = len(rows) == 1 and not set(members) & set(balance.left_out)
        for r in rows:
            rank = balance.ranks[r]
            entry = peers.get(rank)
            if alone or slow_stage or starved:
                other = _alone(balance, r, speeds.get(rank), above)
                if entry is None or other.own_us > max(entry.own_us, 0.0):
                    entry = other
            if entry is not None:
                found[rank] = entry
    slow = slow_hosts(run).keys() | slow_as_all(run.each(CALLS), _doing(run, found))
    return {rank: _by_host(entry) if rank in slow else entry for rank, entry in sorted(found.items())}


def _doing(run: Run, late: Mapping[int, Lateness]) -> dict[int, str]:
    """rank -> what its host does during most of what it is late by before its first kernel, in each step."""
    idles, found = run.each(IDLE), {}
    for rank, entry in late.items():
        for one in idles[rank].owners if entry.parts.get("data", 0.0) > 0 and rank in idles else ():
            if np.isfinite(one.us).any() and float(np.nanmedian(one.us)) >= COVERS * entry.parts["data"]:
                found[rank] = one.name
    return found


def _by_host(entry: Lateness) -> Lateness:
    """The same where all that the host does takes longer: its launches are late before the first kernel, too."""
    lead = max(entry.parts.get("data", 0.0), 0.0)
    if not lead:
        return entry
    parts = {**entry.parts, "data": 0.0, "host": max(entry.parts.get("host", 0.0), 0.0) + lead}
    return replace(entry, parts=parts, lead_us=lead)


def _loading_told(run: Run, ranks: Sequence[int]) -> bool:
    idle = run.each(IDLE)
    return all(rank in idle and idle[rank].loader_us is not None for rank in ranks)


def _among_peers(balance: Accounts, rows: list[int], speeds: dict[int, float]) -> dict[int, Lateness]:
    among = balance.among(rows)
    own = sum((balance.part(p)[rows] for p in PARTS), np.zeros((len(rows), len(balance.steps))))
    parts = {p: excess(balance.part(p)[rows], among) for p in PARTS if p != "data" or balance.data_known}
    over = excess(own, among)
    exposed = excess(balance.exposed[rows], among)
    above = own - others_median(own, among)
    enough = np.maximum(np.nan_to_num(over) / 2, 0.0)[:, None]
    steadily = _part(above > enough, above)
    noise = spread(over)
    waits = balance.part("data")[rows]
    longer = waits - others_median(waits, among)
    waits = np.where(2 * longer > above, longer, np.nan)
    found: dict[int, Lateness] = {}
    for i, r in enumerate(rows):
        if np.isfinite(over[i]):
            entry = Lateness(
                balance.ranks[r], {p: float(v[i]) for p, v in parts.items() if np.isfinite(v[i])}, float(over[i]),
                float(exposed[i]) if np.isfinite(exposed[i]) else None, float(steadily[i]), noise,
                speeds.get(balance.ranks[r]),
                max(_recurrence(above[i], float(over[i])), _bursts(waits[i], float(over[i]))),
                _in_turn(above, i, float(over[i])),
            )  # fmt: skip
            if entry.cause == "data" and spared_first(above[i], entry.own_us):
                entry = replace(entry, steadiness=1.0, in_turn=_in_turn(above[:, 1:], i, entry.own_us))
            found[entry.rank] = entry
    return found


def _with_work(run: Run, balance: Accounts, peers: dict[int, Lateness]) -> dict[int, Lateness]:
    """The same ranks, without what they idle between kernels that their peers do not have: a host that launches twice
    as many kernels at its peers' pace is not late."""
    if len(peers) < 2:
        return peers
    courses, idles = run.each(COURSE), typical(balance.part("host"))
    ranks = list(peers)
    steady = {rank: [i for i, step in enumerate(courses[rank].steps) if step in balance.steps]
              for rank in ranks if rank in courses and courses[rank].complete}  # fmt: skip
    calls = np.array([[float(np.median(courses[r].kernels[steady[r]])) if steady.get(r) else np.nan] for r in ranks])
    for rank, own, others in zip(ranks, calls[:, 0].tolist(), others_median(calls)[:, 0].tolist(), strict=True):
        over = peers[rank].parts.get("host", 0.0)
        if over > 0 and others > 0 and own > others:
            idle = min(over, float(idles[balance.ranks.index(rank)]) * (1 - others / own))
            parts = {**peers[rank].parts, "host": over - idle}
            peers[rank] = replace(peers[rank], parts=parts, work_idle_us=idle)
    return peers


def _part(shown: Mask, of: Floats) -> Floats:
    """Share of each row's known steps in which it is so."""
    return np.asarray(shown.sum(axis=1) / np.maximum(np.isfinite(of).sum(axis=1), 1))


def _recurrence(above: Floats, usual: float) -> float:
    """What a rank is late on average over the steps ÷ what it usually is, 1 at most. A first recorded step that alone
    is spared lives on what was prepared before it, and does not count."""
    known = above[np.isfinite(above)]
    late = known > max(usual, 0.0) / 2
    if spared_first(above, usual):
        return 1.0
    if usual <= 0 or not len(known) or late.all():
        return float(late.mean()) if len(known) else 0.0
    return min(float(known[late].sum()) / (len(known) * usual), 1.0)


def spared_first(above: Floats, usual: float) -> bool:
    """Whether a rank is late by half of what it usually is in all steps but the first."""
    known = above[np.isfinite(above)]
    late = known > max(usual, 0.0) / 2
    return len(known) > 2 and not late[0] and bool(late[1:].all())


def _bursts(waits: Floats, usual: float) -> float:
    """What a rank waits for data on average ÷ what it is usually late, where it is late from that in all steps, and in
    several of them by more than twice as much; else 0."""
    if usual <= 0 or not len(waits) or not np.isfinite(waits).all() or (waits > ALIKE * usual).sum() < SEVERAL:
        return 0.0
    return float(waits.mean()) / usual


def _in_turn(above: Floats, row: int, usual: float) -> float | None:
    """How likely chance makes one of all rows exceed half of what this one usually does in as many steps, where others
    do as well and all of them may take turns; 0 where no other does. Where it is late in every step, others that are so
    by what is usual for themselves take no turns either, however much less that is. `above` is what each row has more
    of than the others in each step."""
    known = np.isfinite(above).sum(axis=1)
    if not known[row] or usual <= 0:
        return None
    counts = (above > usual / 2).sum(axis=1)
    own = np.nansum(above, axis=1) / np.maximum(known, 1)
    always = (own > 0) & ((above > own[:, None] / 2).sum(axis=1) == known)
    equals = ((counts < known) & ((counts == 0) | ~always)) | (counts[row] < known[row])
    equals[row] = True
    if counts[equals].sum() == counts[row]:
        return 0.0
    rate = float(counts[equals].sum() / known[equals].sum())
    return min(len(above) * _at_least(int(counts[row]), int(known[row]), rate), 1.0)


def _at_least(times: int, tries: int, rate: float) -> float:
    """Chance of so many hits and more, each with this chance."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, tries + 1)))))  # of a thousand: as logarithms
    hits = np.arange(times, tries + 1)
    ways = factorials[tries] - factorials[hits] - factorials[tries - hits]
    return float(np.exp(ways + hits * np.log(rate) + (tries - hits) * np.log1p(-rate)).sum())


def _alone(balance: Accounts, row: int, speed: float | None, above: dict[str, Floats]) -> Lateness:
    """A rank whose stage has no other, or is slow as a whole: the same kernels elsewhere, and the wait for data and the
    gaps between kernels of all ranks, which do not depend on what a stage computes, but where no communication was
    recorded may be its waiting for others. `above` is what each rank has more of these in each step."""
    told = {"compute": True, "data": balance.data_known and balance.communicates, "host": balance.communicates}
    known = {p: v for p, v in above.items() if np.isfinite(v[row]).any() and told[p]}
    parts = {p: float(typical(over[row : row + 1])[0]) for p, over in known.items()}
    if "compute" in parts and speed is not None:
        parts["compute"] = float(np.nanmedian(balance.compute[row])) * (1 - 1 / speed)
    own = sum(max(us, 0.0) for us in parts.values())
    entry = Lateness(balance.ranks[row], parts, own, None, 0.0, None, speed, across=True)
    if own <= 0:
        return entry
    usual, late = parts[entry.cause], above[entry.cause]
    steady = float((late[row] > usual / 2).mean())
    return replace(
        entry, steadiness=steady, recurrence=_recurrence(late[row], usual), in_turn=_in_turn(late, row, usual)
    )


def _slower(run: Run, balance: Accounts) -> Floats:
    """How much longer each rank computes in each step than if its kernels took as long as the same ones elsewhere."""
    courses, unknown, usual = run.each(COURSE), np.full(len(balance.steps), np.nan), usual_slowness(run)
    times = np.array([
        usual.get(rank, np.nan) * (courses[rank].pace(balance.steps) if rank in courses else unknown)
        for rank in balance.ranks
    ])  # fmt: skip
    return np.asarray(balance.compute * (1 - 1 / times))


def _differing(speeds: dict[int, float], stages: Iterable[Sequence[int]]) -> float:
    """How far a rank's kernels usually are from the median of its stage, as a share."""
    known = [[speeds[rank] for rank in members if rank in speeds] for members in stages]
    apart = [abs(speed / float(np.median(stage)) - 1) for stage in known if len(stage) > 1 for speed in stage]
    return float(np.median(apart)) if apart else 0.0


def slow_operators(run: Run, rank: int, others: list[int], most: int = 5) -> tuple[str, ...]:
    """Which operator types account for a rank's longer computation, largest first: "MatMulV2 +12 %" (S37). A type with
    less than a twentieth of what all of them have more is noise."""
    calls = calls_of(run)
    peers = [calls[r][0] for r in others if r in calls and r != rank]
    if rank not in calls or not peers:
        return ()
    totals: dict[str, list[float]] = {}
    for key, entry in calls[rank][0].items():
        theirs = [weight(p[key]) for p in peers if key in p]
        if theirs:
            total = totals.setdefault(key[0], [0.0, 0.0])
            total[0] += weight(entry)
            total[1] += float(np.median(theirs))
    ranked = sorted(totals.items(), key=lambda item: item[1][1] - item[1][0])
    whole = sum(max(mine - usual, 0.0) for mine, usual in totals.values())
    return tuple(
        f"{name} {signed(mine / usual - 1, 'ratio')}"
        for name, (mine, usual) in ranked[:most]
        if mine > 1.005 * usual > 0 and mine - usual >= EDGE * whole
    )


def type_speeds(
    run: Run, rank: int, others: list[int], chosen: Callable[[str], bool] | None = None
) -> tuple[float, float] | None:
    """(least, most): how many times as long as on its peers the operator types of a rank, or the chosen ones, take for
    the same calls, each type weighted by its time, without the twentieth at either end. Alike: the card is slow, not
    its work."""
    totals = {name: pair for name, pair in _same_calls(run, rank, others).items() if chosen is None or chosen(name)}
    ranked = sorted((mine / usual, usual) for mine, usual in totals.values() if usual > 0)
    if not ranked:
        return None
    mass = np.cumsum([usual for _, usual in ranked])
    low, high = (int(np.searchsorted(mass, mass[-1] * part)) for part in (EDGE, 1 - EDGE))
    return ranked[low][0], ranked[min(high, len(ranked) - 1)][0]


def speed_of(run: Run, rank: int, others: list[int], chosen: Callable[[str], bool]) -> float | None:
    """How many times as long as on its peers the chosen operator types of a rank take for the same calls."""
    told = [pair for name, pair in _same_calls(run, rank, others).items() if chosen(name)]
    usual = sum(pair[1] for pair in told)
    return sum(pair[0] for pair in told) / usual if usual > 0 else None


def unlike_ways(
    run: Run, group: Sequence[int], others: Sequence[int], is_other: Callable[[str], bool], most: int = 3
) -> str | None:
    """By which operator types each of these ranks is longer than the others, where that is not the same for all of
    them: one has slow cores, another slow memory, which types show that are no products. None where they are slow
    alike, or where nothing tells."""
    leans = []
    for rank in group:
        product, rest = (speed_of(run, rank, list(others), chosen) for chosen in (is_matrix_product, is_other))
        if not product or not rest:
            return None
        leans.append(rest / product)
    if max(leans) < UNLIKE * min(leans):
        return None
    return "; ".join(f"rank {rank}: {', '.join(slow_operators(run, rank, list(others), most))}" for rank in group)


def masked_us(run: Run, rank: int, others: Sequence[int]) -> float:
    """Microseconds a step that the attention of a rank takes beyond its peers' for the same calls, where its matrix
    products do not: how much of its inputs a mask leaves, and how long the sequences in them are, no shape tells. A
    slow card slows both. 0 where none of it is so."""
    mine = {chosen: [pair for name, pair in _same_calls(run, rank, list(others)).items() if chosen(name)]
            for chosen in (is_attention, is_matrix_product)}  # fmt: skip
    here, usual = (sum(pair[i] for pair in mine[is_attention]) for i in (0, 1))
    product, elsewhere = (sum(pair[i] for pair in mine[is_matrix_product]) for i in (0, 1))
    if not usual or not elsewhere or here / usual - 1 <= APART * max(product / elsewhere - 1, NOISE):
        return 0.0
    return here - usual


def _same_calls(run: Run, rank: int, others: list[int]) -> dict[str, tuple[float, float]]:
    """Operator type -> time of a rank's calls, and what they would take on its peers; those that both have."""
    courses = run.each(COURSE)
    own = courses.get(rank)
    peers = [courses[r] for r in others if r in courses and r != rank]
    totals: dict[str, tuple[float, float]] = {}
    for key, (count, lasts) in own.speed.items() if own is not None else ():
        theirs = [p.speed[key][1] for p in peers if key in p.speed]
        if theirs:
            mine, usual = totals.get(key[0], (0.0, 0.0))
            totals[key[0]] = mine + count * lasts, usual + count * float(np.median(theirs))
    return totals


EDGE = limit("lateness", "edge")
"""Part of the kernel time left out at either end of what its types take: one odd type does not speak for a card."""


def extra_work(run: Run, rank: int, others: Sequence[int], most: int = 3) -> tuple[float, tuple[str, ...]]:
    """Microseconds a step that a rank's calls take beyond those of its middle peer because there are more of them or
    their shapes are others, each at this rank's own speed, and the operator types that account for most of it with the
    shapes here.

    Each peer is compared as a whole: where no two ranks have the same shapes, as with experts, what all of them do is
    no extra work of any."""
    called, speeds = calls_of(run), kernel_speeds(run)
    peers = [r for r in others if r in called and r != rank]
    if rank not in called or not peers:
        return 0.0, ()
    told = dict.fromkeys(name for r in (rank, *peers) for name in (*(n for n, _ in called[r][0]), *called[r][1]))
    names = {name: i for i, name in enumerate(told)}
    more = np.zeros((len(peers), len(names)))
    own, own_rest = called[rank]
    calls: dict[tuple[str, str], list[float]] = {key: [] for key in own}
    for row, peer in enumerate(peers):
        (theirs, rest), pace = called[peer], speeds.get(rank, 1.0) / speeds.get(peer, 1.0)
        for key, (count, lasts) in own.items():
            usual = theirs.get(key, (0.0, 0.0))[0]
            more[row, names[key[0]]] += (count - usual) * lasts
            calls[key].append(usual)
        for key, entry in theirs.items():
            if key not in own:
                more[row, names[key[0]]] -= weight(entry) * pace
        for left, sign in ((own_rest, 1.0), (rest, -pace)):
            for name, us in left.items():
                more[row, names[name]] += sign * us
    totals = dict(zip(names, np.median(more, axis=0).tolist(), strict=True))
    largest: dict[str, tuple[float, str]] = {}
    for (name, shapes), (count, lasts) in own.items():
        beyond = count - float(np.median(calls[name, shapes]))
        if beyond > 0 and shapes:
            largest[name] = max(largest.get(name, (0.0, "")), (beyond * lasts, shapes))
    least = EDGE * max(sum(us for us in totals.values() if us > 0), 1e-9)  # less of it is noise
    ranked = sorted((name for name in totals if totals[name] >= least), key=lambda name: (-totals[name], name))
    listed = tuple(f"{name} ({largest[name][1]})" if name in largest else name for name in ranked[:most])
    return float(np.median(more.sum(axis=1))), listed
