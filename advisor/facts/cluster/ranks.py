"""Which ranks are late, and why (see lateness.py for how they are compared)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.units import rank_list
from advisor.facts.account.utilisation import USE
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.accounts import Accounts, accounts
from advisor.facts.cluster.groups import group_gains, groups, late_one_by_one, paced_together
from advisor.facts.cluster.lateness import (
    Lateness,
    extra_work,
    latenesses,
    masked_us,
    slow_operators,
    speed_of,
    type_speeds,
    unlike_ways,
)
from advisor.facts.cluster.peers import calls_of, excess, kernel_speeds
from advisor.facts.cluster.replay import slow_besides
from advisor.facts.cluster.steps.turns import behind_idle_us
from advisor.facts.cluster.whatif import Cure, joint_saving
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.workmates import uncompared, waits_for_nobody
from advisor.facts.device.course import COURSE
from advisor.facts.host.dispatch import LAUNCHES
from advisor.facts.host.owners import COVERS
from advisor.facts.operators.kinds import (
    is_attention,
    is_fused_exchange,
    is_grouped_product,
    is_matrix_product,
)
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Source, Subject, Value

_NEEDS = "steps|step_phases|cluster_phases|kernels"
_AGAINST = "median over steady steps of the difference from the median of the other ranks of its stage"
KINDS = (
    kind("rank.computing_excess_us", "us", "rank", "computation above that of its peers, per step", formula=_AGAINST,
         needs=_NEEDS),
    kind("rank.computing_excess_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.data_wait_us", "us", "rank", "wait for data, per step",
         formula="Preparing, iteration gap, or idle before the first kernel; idle under the loader's call; GetNext",
         needs=_NEEDS),
    kind("rank.data_wait_excess_us", "us", "rank", "wait for data above that of its peers", formula=_AGAINST,
         needs=_NEEDS),
    kind("rank.data_wait_excess_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.peers_data_wait_us", "us", "rank", "what the peer that waits least for data waits all the same",
         formula="lowest of rank.data_wait_us over the peers that are not late alike, no more than any record tells of "
                 "such waits", needs=_NEEDS),
    kind("rank.data_wait_most_us", "us", "rank",
         "the most that a step of it can wait for data, whatever its device idles: the rest is the loop's own code",
         formula="lowest of Preparing, the loop's wait in dataset.csv and idle time under the loader's host events, "
                 "and time in GetNext", needs="steps|trace|batches"),
    kind("rank.launch_gap_us", "us", "rank", "idle between kernels with no communication running, per step; where all "
         "that its host does takes longer, with the idle time before the first one", needs=_NEEDS),
    kind("rank.launch_lead_us", "us", "rank", "the part of its launch lateness before the first kernel, where all that "
         "its host does takes longer", needs=_NEEDS),
    kind("rank.launch_lateness_us", "us", "rank", "the same above that of its peers: its host launches late",
         formula=_AGAINST, needs=_NEEDS),
    kind("rank.launch_lateness_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.idle_excess_share", "ratio", "rank", "idle time above that of its peers, share of the step (S35)",
         formula=_AGAINST, needs=_NEEDS),
    kind("rank.exposed_excess_us", "us", "rank",
         "exposed communication above that of its peers; negative: they wait for it",
         formula=_AGAINST, needs=_NEEDS),
    kind("rank.lateness_us", "us", "rank", "how long its peers wait for this rank, per step",
         formula="the lesser of own work above the peers' and their exposed communication above its own", needs=_NEEDS),
    kind("rank.lateness_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("communication.behind_idle_share", "ratio", "run",
         "waiting for ranks that are late because their devices idle longer, share of the step, mean over the ranks",
         formula="per stage: lateness of the latest of them × ranks that are not late; sum ÷ ranks; or the same of the "
                 "last rank of each step, mean over the steps: the larger", needs=_NEEDS),
    kind("lateness.last_gap_us", "us", "run",
         "idle time between kernels, per step, of the rank that others wait for longest, where it computes longer",
         formula="rank.launch_gap_us of the rank with the largest rank.lateness_us", needs=_NEEDS),
    kind("rank.late_cause", "text", "rank",
         "what it has more of than its peers: compute, data, host, idle where no table tells data from host, loop "
         "where it idles before its step and the files refute a wait for data, unknown, or none where nobody waits",
         needs=_NEEDS),
    kind("rank.late_owner", "text", "rank",
         "what its host did, other than loading data, while its device idles longer than its peers'",
         formula="host event that owns half of its long idle stretches, where these are half of that time and the wait "
         "for the loader is not", needs="trace"),
    kind("rank.lateness_steadiness", "ratio", "rank",
         "share of the steps in which its own work was above its peers' by half of the usual", needs=_NEEDS),
    kind("rank.in_turn_chance", "ratio", "rank",
         "how likely one of its peers were late in as many steps by chance, if all took turns",
         formula="number of peers × chance of as many steps and more, at the rate at which all are late by half as "
                 "much; 0 where no other is, and without those that are late with it in every step", needs=_NEEDS),
    kind("rank.lateness_deviation", "number", "rank", "lateness in robust standard deviations of its peers' own work",
         formula="excess ÷ (1.4826 × median absolute deviation of the peers' excesses)", needs=_NEEDS),
    kind("rank.kernel_speed_ratio", "number", "rank", "the same kernels take this many times as long as on other ranks",
         formula="weighted median over type and shapes of own median ÷ median of the others", needs="kernels"),
    kind("rank.measured_by", "text", "rank",
         "the ranks that show what the same calls need, where most ranks take longer for them",
         formula="the fastest ranks, a quarter of all and two at least, fewer than half, whose same calls take less "
                 "than those of all others by more than either kind differs", needs="kernels"),
    kind("rank.peer_clock_mhz", "mhz", "rank", "clock of the AI Core of its peers, of a rank that computes longer",
         formula="median over the other ranks of its stage of their clocks while kernels ran", needs="trace"),
    kind("rank.slow_operators", "list", "rank", "operator types that account for the longer computation (S37)",
         needs="kernels|operator_types"),
    kind("rank.type_speed_low", "number", "rank",
         "the operator types least slowed take this many times as long as on the peers, the same calls and shapes",
         formula="ratio of the types below which a twentieth of the kernel time lies", needs="kernels"),
    kind("rank.type_speed_high", "number", "rank",
         "the operator types most slowed take this many times as long as on the peers, the same calls and shapes",
         formula="ratio of the types above which a twentieth of the kernel time lies", needs="kernels"),
    kind("rank.matrix_speed", "number", "rank",
         "its matrix products take this many times as long as on the peers, the same calls", needs="kernels"),
    kind("rank.attention_speed", "number", "rank",
         "its attention takes this many times as long as on the peers, the same calls", needs="kernels"),
    kind("rank.other_speed", "number", "rank",
         "what is no product, attention or exchange takes this many times as long as on the peers, the same calls: "
         "most of it the memory limits", needs="kernels"),
    kind("rank.other_speed_low", "number", "rank", "the least slowed types of these", needs="kernels"),
    kind("rank.masked_us", "us", "rank",
         "what its attention takes per step beyond the peers' for the same calls, where its products take as long as "
         "theirs: more of its inputs is left by the mask, or their sequences are longer",
         formula="where attention is longer by three times as much as products and 3 % at least", needs="kernels"),
    kind("rank.flop_ratio", "number", "rank",
         "operations of its products and attention a step, as a multiple of the median of its peers",
         formula="Σ operations by shapes ÷ steps", needs="kernels"),
    kind("rank.extra_work_us", "us", "rank", "computation that its peers do not have: more calls, or other shapes",
         formula="Σ (own calls − peers' median calls) × time a call, over type and, where kernels tell them, shapes",
         needs="kernels|operator_types"),
    kind("rank.card_excess_us", "us", "rank", "what a rank that has more work computes longer because its card is slow "
         "as well", formula="computing × (1 − 1 ÷ rank.kernel_speed_ratio), where all types take longer alike",
         needs="kernels"),
    kind("rank.card_saving_us", "us", "rank", "what the step gains where that card is as fast as the others and keeps "
         "its work", needs="kernels"),
    kind("rank.card_saving_share", "ratio", "rank", "the same as a share of the step", needs="kernels"),
    kind("rank.fetching_us", "us", "rank", "time per step in which only GetNext runs, waiting for data",
         needs="kernels"),
    kind("rank.work_idle_us", "us", "rank", "idle time between kernels that its peers lack, part of its lateness",
         formula="own idle time × (1 − peers' median kernels ÷ own), at most what it idles more than they",
         needs="kernels"),
    kind("rank.work_idle_share", "ratio", "rank", "the same as a share of the step", needs="kernels"),
    kind("rank.extra_operators", "list", "rank", "operator types that account for it, with the shapes here",
         needs="kernels|operator_types"),
    kind("rank.work_by_types", "bool", "rank", "what it has more is told by tables that count each type of operator, "
         "of unknown shapes", needs="kernels|operator_types"),
    kind("rank.alike_ranks", "text", "rank", "the ranks late from the same part by about as much and about as often: "
         "one cause", needs=_NEEDS),
    kind("rank.alike_apart", "text", "rank", "the operator types that each of these ranks takes longer for, where they "
         "compute longer in unlike ways",
         formula="where the slowness of all but products and attention ÷ that of products differs by "
                 "knowledge_base/measuring.yaml, lateness.unlike", needs="kernels"),
    kind("rank.alike", "list", "rank", "the same ranks, one by one", needs=_NEEDS),
    kind("rank.alike_count", "count", "rank", "how many these are, itself among them", needs=_NEEDS),
    kind("rank.alike_least_us", "us", "rank", "what the one of these that is late least has more than its peers of the "
         "part that makes them late, per step", needs=_NEEDS),
    kind("rank.alike_most_us", "us", "rank", "the same of the one that is late most", needs=_NEEDS),
    kind("rank.alike_sum_us", "us", "rank", "what the others wait for these at most, per step: where each is late for "
         "collectives of its own", formula="Σ rank.lateness_us of ranks whose hosts are late, where it is not the gain",
         needs=_NEEDS),
    kind("rank.paced_alone_us", "us", "rank", "what the step gains at most with one rank's loader mended where its and "
         "those of the ranks late alike together set the pace",
         formula="before a step, a mended run is ahead by no more than by how much earlier the last of the others had "
                 "its batch; of the rank that gives most", needs="steps|trace"),
    kind("rank.paced_by_all", "bool", "rank", "no other rank waits for data but those late alike", needs="steps|trace"),
    kind("rank.work_is_alike", "bool", "rank",
         "those it is compared with surely do the same work: the partition is told, or kernels are compared one by "
         "one, or it is not late together with its neighbours, as a stage with more work is", needs=_NEEDS),
    kind("rank.uncompared_peers", "count", "rank",
         "ranks that do the same work, are not compared with it and not seen to arrive before it", needs=_NEEDS),
    kind("rank.is_last", "bool", "rank",
         "nobody absent can be later: in its collectives it waits for nobody, while the others wait for it",
         needs=_NEEDS),
    kind("rank.across_stages", "bool", "rank", "compared with the ranks of all stages, as its own has no other or is "
         "late as a whole", needs=_NEEDS),
    kind("rank.saving_us", "us", "rank", "what the step gains where the rank and those late alike do as their peers",
         formula="share of the later steps in which they are late × (replay of the step with the cause at their peers' "
                 "median; without kernels the lateness above the next late rank's, of late hosts what all collectives "
                 "with them make the others wait, where it is more)", needs=_NEEDS),
    kind("rank.saving_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.saving_basis", "text", "rank", "replay, schedule or comparison", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Every rank against its peers, and what fixing the late ones would save."""
    balance, layout = accounts(run), partition(run)
    if balance is None:
        return
    late, peers = latenesses(run), layout.peers()
    behind_idle = max(_behind_idle(late, peers), behind_idle_us(balance, peers))
    yield from fact("communication.behind_idle_share", RUN, behind_idle / balance.step_us)
    yield from fact("lateness.last_gap_us", RUN, _gap_of_last(balance, late), samples=len(balance.steps))
    of_rank = {rank: members for members in peers.values() for rank in members}
    together = _Together(run, facts, balance, late, of_rank)
    idling = _idling(balance, peers)
    for row, rank in enumerate(balance.ranks):
        most = _data_bound(run, facts, _subject(rank))
        yield from together.waits_of(row, rank, most)
        if (entry := together.entry_of(rank)) is None:
            speed = kernel_speeds(run).get(rank)
            yield from fact("rank.kernel_speed_ratio", _subject(rank), speed, *balance.sources.get(rank, ()))
            continue
        yield from together.lateness_of(entry, most)
        if rank in idling:
            share = idling[rank] / balance.step_us
            yield from fact("rank.idle_excess_share", _subject(rank), share, *balance.sources.get(rank, ()))
        if entry.late_us > 0 and entry.cause == "compute":
            yield from together.computing_of(row, entry)
        if rank in groups(run):
            yield from together.gains_of(entry)


class _Together(Struct, frozen=True):
    """The ranks side by side."""

    run: Run
    facts: FactSet
    balance: Accounts
    late: dict[int, Lateness]
    peers: Mapping[int, Sequence[int]]
    """rank -> the ranks that do the same work, itself among them."""

    def entry_of(self, rank: int) -> Lateness | None:
        """How late it is, of which `across` stages nothing is its own where nothing is gained; None where nobody knows.

        Of one that idles the replay alone tells whether other stages wait for it: its turn may not have come."""
        entry, group = self.late.get(rank), groups(self.run).get(rank)
        if entry is None or group is None or not entry.across or entry.cause == "compute":
            return entry
        return entry if group_gains(self.run)[group][0] > 0 else replace(entry, own_us=0.0)

    def waits_of(self, row: int, rank: int, most: float | None) -> Iterator[Fact]:
        """What it waits between kernels and for data, late or not; `most` is what bounds the latter."""
        subject, balance, n = _subject(rank), self.balance, len(self.balance.steps)
        sources = balance.sources.get(rank, ())
        gap = _launch_gap(balance, row, self.late.get(rank))
        yield from fact("rank.launch_gap_us", subject, gap, *sources, samples=n)
        if balance.data_known:
            yield from fact("rank.data_wait_us", subject, float(np.nanmedian(balance.data[row])), *sources, samples=n)
        yield from fact("rank.data_wait_most_us", subject, most, *sources, samples=n)

    def lateness_of(self, entry: Lateness, most: float | None) -> Iterator[Fact]:
        """How late it is, why, and who is to be asked; `most` bounds its wait for data."""
        run, balance, rank, n = self.run, self.balance, entry.rank, len(self.balance.steps)
        subject, sources = _subject(rank), balance.sources.get(rank, ())
        cause = balance.told_as(entry.cause)
        if cause == "data" and most is not None and most < COVERS * entry.parts["data"]:
            cause = "loop"
        yield from _facts_of(entry, cause, subject, balance.step_us, sources, n)
        yield from fact("rank.across_stages", subject, entry.across, *sources)
        if entry.late_us <= 0:
            return
        yield from fact("rank.is_last", subject, waits_for_nobody(run, rank), *sources)
        if cause in ("data", "host", "idle", "loop"):
            yield from fact("rank.late_owner", subject, _owner(self.facts, entry, subject), *sources)
        if not entry.across:
            unknown = uncompared(run, [rank], set(balance.ranks))
            yield from fact("rank.uncompared_peers", subject, None if unknown is None else len(unknown), *sources)
        if cause == "data":
            fetching = _fetching_us(run, rank)
            yield from fact("rank.fetching_us", subject, fetching or None, *sources, samples=n)
            group = groups(run).get(rank, (rank,))
            others = [peer for peer in self.peers[rank] if peer not in group and peer in balance.ranks]
            waits = [_waits_for_data(run, self.facts, balance, peer) for peer in others] if balance.data_known else []
            yield from fact("rank.peers_data_wait_us", subject, min(waits, default=None), *sources, samples=n)

    def computing_of(self, row: int, entry: Lateness) -> Iterator[Fact]:
        """Of one that computes longest: which of its types are slow, and what it does that its peers do not."""
        run, balance, rank, step_us = self.run, self.balance, entry.rank, self.balance.step_us
        subject, sources, n = _subject(rank), balance.sources.get(rank, ()), len(balance.steps)
        others = _compared(balance, rank, self.peers[rank])
        yield from fact("rank.measured_by", subject, _told_by(balance, others), *sources)
        yield from fact("rank.slow_operators", subject, slow_operators(run, rank, others) or None, *sources)
        yield from fact("rank.peer_clock_mhz", subject, _clock_of_others(self.facts, rank, others))
        low, high = type_speeds(run, rank, others) or (None, None)
        yield from fact("rank.type_speed_low", subject, low, *sources)
        yield from fact("rank.type_speed_high", subject, high, *sources)
        for name, chosen in (("matrix", is_matrix_product), ("attention", is_attention), ("other", _is_other)):
            yield from fact(f"rank.{name}_speed", subject, speed_of(run, rank, others, chosen), *sources)
        least = type_speeds(run, rank, others, _is_other)
        yield from fact("rank.other_speed_low", subject, least and least[0], *sources)
        yield from fact("rank.masked_us", subject, masked_us(run, rank, others) or None, *sources)
        yield from fact("rank.flop_ratio", subject, _flop_ratio(run, rank, others), *sources)
        more, where = extra_work(run, rank, others)
        # with less to do than its peers it has nothing that they do not have
        yield from fact("rank.extra_work_us", subject, max(more, 0.0), *sources)
        yield from fact("rank.extra_operators", subject, where or None, *sources)
        yield from fact("rank.work_by_types", subject, rank in calls_of(run) and not run.each(COURSE), *sources)
        if rank in slow_besides(run):
            own, gained = float(np.nanmedian(balance.compute[row])), joint_saving(run, [Cure("speed", subject)])
            yield from fact("rank.card_excess_us", subject, own * (1 - 1 / slow_besides(run)[rank]), *sources)
            yield from fact("rank.card_saving_us", subject, gained, *sources)
            yield from fact("rank.card_saving_share", subject, gained and gained / step_us, *sources)
        if entry.work_idle_us:
            yield from fact("rank.work_idle_us", subject, entry.work_idle_us, *sources, samples=n)
            yield from fact("rank.work_idle_share", subject, entry.work_idle_us / step_us, *sources, samples=n)

    def gains_of(self, entry: Lateness) -> Iterator[Fact]:
        """Of those that are late alike: who they are, how late, and what the step gains where they are on time."""
        run, balance, n = self.run, self.balance, len(self.balance.steps)
        layout, group = partition(run), groups(run)[entry.rank]
        subject, sources = _subject(entry.rank), balance.sources.get(entry.rank, ())
        gain, basis = group_gains(run)[group]
        alike_work = layout.is_told or entry.speed is not None or not _neighbours(group, balance.ranks)
        yield from fact("rank.work_is_alike", subject, alike_work, *sources)
        if len(group) > 1 and entry.cause == "compute":
            others = [member for member in self.peers[entry.rank] if member not in group]
            yield from fact("rank.alike_apart", subject, unlike_ways(run, group, others, _is_other), *sources)
        yield from fact("rank.alike_count", subject, len(group), *sources)
        yield from fact("rank.alike_ranks", subject, rank_list(group), *sources)
        pace = paced_together(run) if entry.cause == "data" else None
        if pace is not None and group == pace.ranks:
            sizes = [float(waits.mean()) for waits in pace.waits.values()]
            yield from fact("rank.paced_alone_us", subject, pace.alone_us, *sources, samples=n)
            yield from fact("rank.paced_by_all", subject, pace.everyone, *sources, samples=n)
        else:
            sizes = [self.late[r].parts.get(entry.cause, np.nan) for r in group]
        yield from fact("rank.alike_least_us", subject, min(sizes), *sources)
        yield from fact("rank.alike_most_us", subject, max(sizes), *sources)
        entries = [self.late[r] for r in group]
        summed = sum(each.late_us for each in entries) if late_one_by_one(entries) else 0.0
        yield from fact("rank.alike_sum_us", subject, summed if summed > gain else None, *sources)
        yield from fact("rank.alike", subject, group, *sources)
        yield from fact("rank.saving_us", subject, gain, *sources, samples=n)
        yield from fact("rank.saving_share", subject, gain / balance.step_us, *sources, samples=n)
        yield from fact("rank.saving_basis", subject, basis, *sources)


def _subject(rank: int) -> Subject:
    return Subject("rank", str(rank), (rank,))


def _compared(balance: Accounts, rank: int, members: Sequence[int]) -> list[int]:
    """The ranks of its stage that a rank is compared with: those that show what the work needs, where most are slow."""
    others = [member for member in members if member != rank]
    return [other for other in others if other in balance.shown] or others


def _told_by(balance: Accounts, others: Sequence[int]) -> str | None:
    """The ranks that it is measured by where most are slow; None where the median of all shows what is usual."""
    return rank_list(tuple(others)) if others and set(others) <= balance.shown else None


def _flop_ratio(run: Run, rank: int, others: Sequence[int]) -> float | None:
    """Operations a step of a rank ÷ those of its peers, the median; None where shapes do not tell them all."""
    uses, times = run.each(USE), steady(run)

    def flop(of: int) -> float:
        steps = uses[of].judged(times[of].steps)
        return sum(uses[of].by_step[step] for step in steps) / len(steps)

    told = [of for of in (rank, *others) if of in uses and of in times]
    theirs = float(np.median([flop(of) for of in told if of != rank])) if rank in told and len(told) > 2 else 0.0
    return flop(rank) / theirs if theirs > 0 else None


def _launch_gap(balance: Accounts, row: int, entry: Lateness | None) -> float:
    """Microseconds of a usual step that its device idles for its host: between kernels, and before the first one where
    all that the host does takes longer."""
    idle = balance.host[row]
    if entry is not None and entry.lead_us > 0:
        idle = idle + np.nan_to_num(balance.data[row])
    return float(np.nanmedian(idle))


def _gap_of_last(balance: Accounts, late: Mapping[int, Lateness]) -> float | None:
    """What the rank that others wait for longest idles between kernels in a usual step, where it computes longest; of
    one whose host is late that is its own matter."""
    last = max((e for e in late.values() if e.late_us > 0), key=lambda e: e.late_us, default=None)
    if last is None or last.cause != "compute" or balance.told_as("host") != "host":
        return None
    return _launch_gap(balance, balance.ranks.index(last.rank), last)


def _is_other(name: str) -> bool:
    return not (is_matrix_product(name) or is_attention(name) or is_grouped_product(name) or is_fused_exchange(name))


def _waits_for_data(run: Run, facts: FactSet, balance: Accounts, rank: int) -> float:
    """Microseconds of a usual step, no more than any record tells of such waits."""
    wait = float(np.nanmedian(balance.data[balance.ranks.index(rank)]))
    most = _data_bound(run, facts, _subject(rank))
    return wait if most is None else min(wait, most)


def _facts_of(
    entry: Lateness, cause: str, subject: Subject, step_us: float, sources: tuple[Source, ...], n: int
) -> Iterator[Fact]:
    for part, name in (("compute", "computing_excess"), ("data", "data_wait_excess"), ("host", "launch_lateness")):
        if part in entry.parts:
            yield from fact(f"rank.{name}_us", subject, entry.parts[part], *sources, samples=n)
            yield from fact(f"rank.{name}_share", subject, entry.parts[part] / step_us, *sources, samples=n)
    yield from fact("rank.launch_lead_us", subject, entry.lead_us or None, *sources, samples=n)
    yield from fact("rank.exposed_excess_us", subject, entry.exposed_us, *sources, samples=n)
    yield from fact("rank.lateness_us", subject, entry.late_us, *sources, samples=n)
    yield from fact("rank.lateness_share", subject, entry.late_us / step_us, *sources, samples=n)
    yield from fact("rank.late_cause", subject, cause if entry.late_us > 0 else "none", *sources, samples=n)
    yield from fact("rank.lateness_steadiness", subject, entry.steadiness, *sources, samples=n)
    yield from fact("rank.in_turn_chance", subject, entry.in_turn, *sources, samples=n)
    if entry.noise_us:
        yield from fact("rank.lateness_deviation", subject, entry.own_us / entry.noise_us, *sources, samples=n)
    yield from fact("rank.kernel_speed_ratio", subject, entry.speed, *sources)


def _data_bound(run: Run, facts: FactSet, subject: Subject) -> float | None:
    """`_most_for_data` of one rank, with what its kernels that fetch take."""
    (rank,) = subject.ranks
    return _most_for_data(facts, subject, _fetching_us(run, rank), lone=steady(run)[rank].recorded == 1)


def _fetching_us(run: Run, rank: int) -> float:
    """Time of a step in which only kernels ran that fetch a batch; 0 where no kernels are at hand."""
    course = run.each(COURSE).get(rank)
    return 0.0 if course is None else float(course.fetching_us.mean())


def _most_for_data(facts: FactSet, subject: Subject, fetching_us: float, *, lone: bool) -> float | None:
    """The most that a rank can wait for data, microseconds a step; None where no file bounds it.

    The loop fetches its batch within the step that the profiler marks, so a wait for data lies between the step's begin
    on the host and its first kernel, which is Preparing, or under the loader's call between kernels, and within the
    time that the loader or the iterator recorded.
    Where the host runs ahead, Preparing is longer than a step and bounds nothing that is shorter. Idle stretches lie
    between kernels: that of a `lone` step before the first kernel of all is none of them, and what the loader takes of
    the others bounds nothing."""
    names = ["step.preparing_us", "timeline.loader_idle_us"]
    if facts.value("data.mode", subject) == "iterator":  # a device that takes batches from its queue waits by itself
        names.append("data.wait_us")
    told = {name: facts.number(name, subject) for name in names}
    if told["step.preparing_us"]:
        told["step.preparing_us"] += facts.number("timeline.loader_within_us", subject) or 0.0
    if lone:
        del told["timeline.loader_idle_us"]
    bounds = [us for name, us in told.items() if us is not None and (us > 0 or name != "step.preparing_us")]
    return min(bounds) + fetching_us if bounds else None


def _owner(facts: FactSet, entry: Lateness, subject: Subject) -> Value | None:
    """The host event behind a rank's late starts, as its timeline tells; None where it tells none, or the loader's."""
    over = COVERS * max(entry.parts.get(part, 0.0) for part in ("data", "host"))
    loading = facts.number("timeline.loader_idle_us", subject)
    stretches = facts.number("timeline.long_gap_us", subject) or 0.0
    # a host that takes longer for all it does takes longer for this as well
    told = loading is not None and loading < over <= stretches and not entry.lead_us
    return facts.value("timeline.gap_owner", subject) if told else None


def _clock_of_others(facts: FactSet, rank: int, peers: Sequence[int]) -> float | None:
    """Middle clock of the AI Core of these ranks without one of them, MHz; None where no other's is recorded."""
    told = [facts.number("timeline.core_mhz_mean", _subject(r)) for r in peers if r != rank]
    known = [mhz for mhz in told if mhz is not None]
    return float(np.median(known)) if known else None


def _neighbours(group: tuple[int, ...], ranks: list[int]) -> bool:
    """Whether several ranks stand side by side among those at hand, as the ranks of a stage do."""
    first, last = ranks.index(min(group)), ranks.index(max(group))
    return last - first + 1 == len(group) > 1


def _behind_idle(late: Mapping[int, Lateness], peers: Mapping[int, Sequence[int]]) -> float:
    """Microseconds a step that a rank waits on average for peers that idle longer, not compute longer."""
    waited, ranks = 0.0, 0
    for members in peers.values():
        known = [late[rank] for rank in members if rank in late]
        idle = [entry.late_us for entry in known if entry.late_us > 0 and entry.cause not in ("compute", "unknown")]
        waited += max(idle, default=0.0) * sum(not entry.late_us > 0 for entry in known)
        ranks += len(known)
    return waited / max(ranks, 1)


def _idling(balance: Accounts, peers: dict[int, list[int]]) -> dict[int, float]:
    """rank -> idle time above that of its peers, microseconds a step."""
    found = {}
    for members in peers.values():
        known = [r for r in members if r in balance.ranks]
        over = excess(balance.idle[[balance.ranks.index(r) for r in known]]) if len(known) > 1 else ()
        found.update({rank: float(us) for rank, us in zip(known, over, strict=False) if np.isfinite(us)})
    return found


FAMILIES = (
    Family(
        "cluster",
        KINDS,
        measure,
        uses=(STEPS, EXCHANGES, COURSE, USE, LAUNCHES, OPERATORS),
        after=("parallelism", "timeline", "steps", "data_pipeline"),
    ),
)
