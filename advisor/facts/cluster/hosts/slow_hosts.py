"""Ranks that are late together: those of one host, and those of a pipeline's first stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.accounts import Accounts, accounts
from advisor.facts.cluster.groups import groups, joint_gain
from advisor.facts.cluster.lateness import ALIKE, Lateness, latenesses
from advisor.facts.cluster.peers import calls_of, kernel_speeds
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.collectives.workmates import uncompared
from advisor.facts.device.course import COURSE
from advisor.facts.host.dispatch import LAUNCHES
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Subject

REPLAYS = 6
"""Hosts whose mending is replayed, those with the greatest excess first."""

_NEEDS = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("host.slow_rank_share", "ratio", "host", "share of the host's ranks whose kernels are slower than elsewhere",
         needs="kernels"),
    kind("host.kernel_speed_ratio", "number", "host", "the same kernels take this many times as long on all its ranks",
         formula="lowest kernel_speed_ratio of its ranks", needs="kernels"),
    kind("host.late_cause", "text", "host",
         "compute, data, host, loop, or idle where no table tells data from host: what most of its ranks are late "
         "from, where others wait for them", needs=_NEEDS),
    kind("host.late_rank_share", "ratio", "host", "share of its ranks that others wait for because of that",
         formula="ranks late half as long as the host's median and longer, and those late from the same thing",
         needs=_NEEDS),
    kind("host.rank_count", "count", "host", "ranks of the host at hand", needs=_NEEDS),
    kind("host.uncompared_peers", "count", "host",
         "ranks of other hosts that do the same work, are not compared, and may be later than its own",
         formula="those that are not seen to wait for them in nearly all collectives that both are in",
         needs=_NEEDS),
    kind("host.elsewhere_share", "ratio", "host", "share of the ranks of other hosts that others wait for",
         needs=_NEEDS),
    kind("host.excess_us", "us", "host", "what its ranks do longer than their peers because of that, per step",
         formula="median over its ranks", needs=_NEEDS),
    kind("host.excess_share", "ratio", "host", "the same as a share of the step", needs=_NEEDS),
    kind("host.extra_work_us", "us", "host", "what its ranks compute per step that their peers do not have",
         formula="median of rank.extra_work_us over its late ranks whose operators are counted",
         needs="kernels|operator_types"),
    kind("host.extra_operators", "list", "host", "operator types that account for it on the one of these that has most",
         needs="kernels|operator_types"),
    kind("host.steadiness", "ratio", "host", "share of the steps in which its typical rank was late",
         formula="median over its ranks", needs=_NEEDS),
    kind("host.saving_us", "us", "host", "what the step gains where all its ranks do as their peers",
         formula="share of the later steps in which they are late × (joint replay of its ranks; without kernels the "
                 "lateness of its latest above the latest elsewhere)",
         needs=_NEEDS),
    kind("host.saving_share", "ratio", "host", "the same as a share of the step", needs=_NEEDS),
    kind("pipeline.first_wait_us", "us", "run",
         "how much longer than other ranks those of the first stage wait for data, where all of them do, per step",
         formula="median over the ranks of the first stage", needs=_NEEDS),
    kind("pipeline.first_wait_share", "ratio", "run", "the same as a share of the step", needs=_NEEDS),
    kind("pipeline.first_host_count", "count", "run", "hosts on which those ranks run", needs=_NEEDS),
    kind("pipeline.first_saving_us", "us", "run", "what the step gains where they wait no longer than the others",
         formula="as for a host", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Hosts whose ranks have slower kernels or are late from one cause; a first stage that waits for data."""
    layout, late, balance = partition(run), latenesses(run), accounts(run)
    yield from _speeds(run, layout)
    if balance is not None:
        yield from _late_hosts(run, facts, late, layout, balance)
        yield from _starved_first_stage(run, late, layout, balance.step_us)


def _by_host(layout: Partition, ranks: Iterable[int]) -> dict[str, list[int]]:
    """host -> its ranks among these, both in order; empty where all are on one host."""
    members: dict[str, list[int]] = {}
    for rank in sorted(ranks):
        if rank in layout.host:
            members.setdefault(layout.host[rank], []).append(rank)
    return dict(sorted(members.items())) if len(members) > 1 else {}


def _speeds(run: Run, layout: Partition) -> Iterator[Fact]:
    speeds = kernel_speeds(run)
    for host, ranks in _by_host(layout, layout.host).items():
        known = [speeds[r] for r in ranks if r in speeds]
        if known:
            subject = Subject("host", host, tuple(ranks))
            yield from fact("host.kernel_speed_ratio", subject, min(known), samples=len(known))
            yield from fact("host.slow_rank_share", subject, sum(s > 1 for s in known) / len(known), samples=len(known))


def _late_hosts(
    run: Run, facts: FactSet, late: dict[int, Lateness], layout: Partition, balance: Accounts
) -> Iterator[Fact]:
    """Hosts of several ranks that are late from one cause: the host is at fault, and its ranks gain jointly."""
    found: dict[str, tuple[str, float]] = {}
    members = {host: ranks for host, ranks in _by_host(layout, late).items() if len(ranks) > 1}
    for host, ranks in members.items():
        causes = Counter(late[r].cause for r in ranks if late[r].late_us > 0 and late[r].cause != "unknown")
        if causes:
            cause = min(causes, key=lambda name: (-causes[name], name))
            over = float(np.median([late[r].parts.get(cause, 0.0) for r in ranks]))
            found[host] = cause, max(over, 0.0)  # where one of its ranks is late, the others may be early
    worst = sorted(found, key=lambda host: (-found[host][1], host))[:REPLAYS]
    for host, (cause, over) in found.items():
        ranks = members[host]
        guilty = [late[r] for r in ranks if late[r].late_us > 0 and late[r].cause == cause]
        clearly = {entry.rank for entry in guilty if entry.parts[cause] >= over / ALIKE}
        slow = [entry for entry in guilty if clearly & set(groups(run).get(entry.rank, (entry.rank,)))]
        if not slow:  # those whom the cause costs most are not late for it
            continue
        others = [late[r] for r in late if layout.host.get(r) != host]
        steadiness = float(np.median([late[r].steadiness for r in ranks]))
        gain, _ = joint_gain(run, slow, replayed=host in worst)
        subject, n = Subject("host", host, tuple(ranks)), len(ranks)
        told = {facts.value("rank.late_cause", Subject("rank", str(entry.rank), (entry.rank,))) for entry in slow}
        cause = "loop" if told == {"loop"} else balance.told_as(cause)
        yield from fact("host.late_cause", subject, cause, samples=n)
        yield from fact("host.rank_count", subject, n)
        # those at hand on this host that are not compared are late with it, or wait for it
        mine = [rank for rank, of in layout.host.items() if of == host]
        unknown = uncompared(run, mine, set(balance.ranks))
        yield from fact("host.uncompared_peers", subject, None if unknown is None else len(unknown), samples=n)
        yield from fact("host.late_rank_share", subject, len(slow) / n, samples=n)
        yield from fact(
            "host.elsewhere_share", subject, sum(o.late_us > over / ALIKE for o in others) / max(len(others), 1)
        )
        yield from fact("host.excess_us", subject, over, samples=n)
        yield from fact("host.excess_share", subject, over / balance.step_us, samples=n)
        if cause == "compute":
            yield from _extra_work(run, facts, subject, slow)
        yield from fact("host.steadiness", subject, steadiness, samples=n)
        yield from fact("host.saving_us", subject, gain, samples=n)
        yield from fact("host.saving_share", subject, gain / balance.step_us, samples=n)


def _extra_work(run: Run, facts: FactSet, host: Subject, slow: Iterable[Lateness]) -> Iterator[Fact]:
    """What these ranks of a host have more to do than their peers, as far as their operators are counted."""
    counted = [Subject("rank", str(entry.rank), (entry.rank,)) for entry in slow if entry.rank in calls_of(run)]
    told = {rank: us for rank in counted if (us := facts.number("rank.extra_work_us", rank)) is not None}
    if told:
        most = max(told, key=lambda rank: told[rank])
        yield from fact("host.extra_work_us", host, float(np.median(list(told.values()))), samples=len(told))
        yield from fact("host.extra_operators", host, facts.value("rank.extra_operators", most), samples=1)


def _starved_first_stage(run: Run, late: dict[int, Lateness], layout: Partition, step_us: float) -> Iterator[Fact]:
    """Where every rank of a pipeline's first stage waits for data it is the data pipeline, not a rank of its own."""
    first = [late[r] for r in late if layout.stage[r] == 0]
    others = [late[r] for r in late if layout.stage[r] != 0]
    if len(first) < 2 or not others or any(entry.late_us <= 0 or entry.cause != "data" for entry in first):
        return
    over = float(np.median([entry.parts["data"] for entry in first]))
    hosts = {layout.host.get(entry.rank, "") for entry in first}
    yield from fact("pipeline.first_wait_us", RUN, over, samples=len(first))
    yield from fact("pipeline.first_wait_share", RUN, over / step_us, samples=len(first))
    yield from fact("pipeline.first_host_count", RUN, len(hosts))
    gain, _ = joint_gain(run, first)
    yield from fact("pipeline.first_saving_us", RUN, gain, samples=len(first))


FAMILIES = (
    Family("slow_hosts", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE, LAUNCHES), after=("parallelism", "cluster")),
)
