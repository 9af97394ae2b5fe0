"""Who is late, and why: facts of ranks and hosts (see lateness.py for how they are compared)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.exposure import exposures
from advisor.facts.lateness import Accounts, Lateness, accounts, extra_work, kernel_speeds, latenesses, slow_operators
from advisor.facts.parallelism import Partition, partition
from advisor.facts.peers import excess
from advisor.facts.schedule import guess_micro_batches, pipeline_us
from advisor.facts.stages import micro_batches
from advisor.model import RUN, Fact, Source, Subject

REPLAYS = 6
"""Sets of late ranks whose mending is replayed, the latest first."""

_NEEDS = "steps|step_phases|cluster_phases|kernels"
_AGAINST = "median over steady steps of the difference from the median of the other ranks of its stage"
KINDS = (
    kind("rank.computing_excess_us", "us", "rank", "computation above that of its peers, per step", formula=_AGAINST,
         needs=_NEEDS),
    kind("rank.computing_excess_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.data_wait_us", "us", "rank", "wait for data before the first kernel, per step",
         formula="Preparing, iteration gap, or idle before the first kernel, and time in GetNext", needs=_NEEDS),
    kind("rank.data_wait_excess_us", "us", "rank", "wait for data above that of its peers", formula=_AGAINST,
         needs=_NEEDS),
    kind("rank.data_wait_excess_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.launch_gap_us", "us", "rank", "idle between kernels with no communication running, per step",
         needs=_NEEDS),
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
    kind("rank.late_cause", "text", "rank",
         "compute, data, host, unknown, or none on a rank nobody waits for: what it has more of than its peers",
         needs=_NEEDS),
    kind("rank.lateness_steadiness", "ratio", "rank",
         "share of the steps in which its own work was above its peers' by half of the usual", needs=_NEEDS),
    kind("rank.lateness_deviation", "number", "rank", "lateness in robust standard deviations of its peers' own work",
         formula="excess ÷ (1.4826 × median absolute deviation of the peers' excesses)", needs=_NEEDS),
    kind("rank.kernel_speed_ratio", "number", "rank", "the same kernels take this many times as long as on other ranks",
         formula="weighted median over type and shapes of own median ÷ median of the others", needs="kernels"),
    kind("rank.slow_operators", "list", "rank", "operator types that account for the longer computation (S37)",
         needs="kernels"),
    kind("rank.extra_work_us", "us", "rank", "computation that its peers do not have: more calls, or other shapes",
         formula="Σ (own calls − peers' median calls) × time a call, over type and shapes", needs="kernels"),
    kind("rank.extra_operators", "list", "rank", "operator types that account for it, with the shapes here",
         needs="kernels"),
    kind("rank.saving_us", "us", "rank", "what the step gains where the rank does as its peers",
         formula="replay of the step with the cause at its peers' median; without kernels the lateness above the next "
                 "late rank's", needs=_NEEDS),
    kind("rank.saving_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.saving_basis", "text", "rank", "replay, schedule or comparison", needs=_NEEDS),
    kind("host.slow_rank_share", "ratio", "host", "share of the host's ranks whose kernels are slower than elsewhere",
         needs="kernels"),
    kind("host.kernel_speed_ratio", "number", "host", "the same kernels take this many times as long on all its ranks",
         formula="lowest kernel_speed_ratio of its ranks", needs="kernels"),
    kind("host.late_cause", "text", "host",
         "compute, data or host: what most of its ranks are late from, where others wait for them", needs=_NEEDS),
    kind("host.late_rank_share", "ratio", "host", "share of its ranks that others wait for because of that",
         needs=_NEEDS),
    kind("host.rank_count", "count", "host", "ranks of the host at hand", needs=_NEEDS),
    kind("host.elsewhere_share", "ratio", "host", "share of the ranks of other hosts that others wait for",
         needs=_NEEDS),
    kind("host.excess_us", "us", "host", "what its ranks do longer than their peers because of that, per step",
         formula="median over its ranks", needs=_NEEDS),
    kind("host.excess_share", "ratio", "host", "the same as a share of the step", needs=_NEEDS),
    kind("host.steadiness", "ratio", "host", "share of the steps in which its typical rank was late",
         formula="median over its ranks", needs=_NEEDS),
    kind("host.saving_us", "us", "host", "what the step gains where all its ranks do as their peers",
         formula="joint replay of its ranks; without kernels the lateness of its latest above the latest elsewhere",
         needs=_NEEDS),
    kind("host.saving_share", "ratio", "host", "the same as a share of the step", needs=_NEEDS),
    kind("pipeline.first_wait_us", "us", "run",
         "how much longer than other ranks those of the first stage wait for data, where all of them do, per step",
         formula="median over the ranks of the first stage", needs=_NEEDS),
    kind("pipeline.first_wait_share", "ratio", "run", "the same as a share of the step", needs=_NEEDS),
    kind("pipeline.first_host_count", "count", "run", "hosts on which those ranks run", needs=_NEEDS),
    kind("pipeline.first_saving_us", "us", "run", "what the step gains where they wait no longer than the others",
         formula="joint replay of its ranks, as for a host", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Every rank against its peers, and what fixing the late ones would save."""
    balance, layout = accounts(run), partition(run)
    if balance is None:
        return
    late = latenesses(run)
    step_us = balance.step_us
    savings = _savings(run, late, layout)
    peers = layout.peers()
    idling = _idling(balance, peers)
    for row, rank in enumerate(balance.ranks):
        subject = Subject("rank", str(rank), (rank,))
        sources = balance.sources.get(rank, ())
        n = len(balance.steps)
        yield from fact("rank.launch_gap_us", subject, float(np.nanmedian(balance.host[row])), *sources, samples=n)
        if balance.data_known:
            yield from fact("rank.data_wait_us", subject, float(np.nanmedian(balance.data[row])), *sources, samples=n)
        entry = late.get(rank)
        if entry is None:
            continue
        yield from _facts_of(entry, subject, step_us, sources, n)
        if rank in idling:
            yield from fact("rank.idle_excess_share", subject, idling[rank] / step_us, *sources, samples=n)
        if entry.late_us > 0 and entry.cause == "compute":
            names = slow_operators(run, rank, peers[layout.stage[rank]])
            yield from fact("rank.slow_operators", subject, names or None, *sources)
            more, where = extra_work(run, rank, peers[layout.stage[rank]])
            yield from fact("rank.extra_work_us", subject, more, *sources)
            yield from fact("rank.extra_operators", subject, where or None, *sources)
        if rank in savings:
            gain, basis = savings[rank]
            yield from fact("rank.saving_us", subject, gain, *sources, samples=n)
            yield from fact("rank.saving_share", subject, gain / step_us, *sources, samples=n)
            yield from fact("rank.saving_basis", subject, basis, *sources)
    yield from _facts_of_hosts(run, layout)
    yield from _late_hosts(run, late, layout, step_us)
    yield from _starved_first_stage(run, late, layout, step_us)


def _late_hosts(run: Run, late: dict[int, Lateness], layout: Partition, step_us: float) -> Iterator[Fact]:
    """Hosts of several ranks that are late from one cause: the host is at fault, and its ranks gain jointly."""
    members: dict[str, list[int]] = {}
    for rank, host in layout.host.items():
        if rank in late:
            members.setdefault(host, []).append(rank)
    if len(members) < 2:
        return
    for host, ranks in sorted(members.items()):
        if len(ranks) < 2:
            continue
        causes = Counter(late[r].cause for r in ranks if late[r].late_us > 0 and late[r].cause != "unknown")
        if not causes:
            continue
        cause = min(causes, key=lambda name: (-causes[name], name))
        slow = [late[r] for r in ranks if late[r].late_us > 0 and late[r].cause == cause]
        others = [late[r] for r in late if r not in ranks]
        over = float(np.median([late[r].parts.get(cause, 0.0) for r in ranks]))
        gain = _joint_saving(run, slow, others)
        subject, n = Subject("host", host, tuple(sorted(ranks))), len(ranks)
        yield from fact("host.late_cause", subject, cause, samples=n)
        yield from fact("host.rank_count", subject, n)
        yield from fact("host.late_rank_share", subject, len(slow) / n, samples=n)
        yield from fact(
            "host.elsewhere_share", subject, sum(o.late_us > over / 2 for o in others) / max(len(others), 1)
        )
        yield from fact("host.excess_us", subject, over, samples=n)
        yield from fact("host.excess_share", subject, over / step_us, samples=n)
        yield from fact("host.steadiness", subject, float(np.median([late[r].steadiness for r in ranks])), samples=n)
        yield from fact("host.saving_us", subject, gain, samples=n)
        yield from fact("host.saving_share", subject, gain / step_us, samples=n)


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
    yield from fact("pipeline.first_saving_us", RUN, _joint_saving(run, first, others), samples=len(first))


def _joint_saving(run: Run, slow: list[Lateness], others: list[Lateness]) -> float:
    """What the step gains where all these ranks do as their peers, microseconds."""
    from advisor.facts.replay import what_if_late

    replayed = what_if_late(run, slow)
    if replayed is not None:
        return replayed
    return max(max(entry.late_us for entry in slow) - max((o.late_us for o in others), default=0.0), 0.0)


def _facts_of(entry: Lateness, subject: Subject, step_us: float, sources: tuple[Source, ...], n: int) -> Iterator[Fact]:
    for part, name in (("compute", "computing_excess"), ("data", "data_wait_excess"), ("host", "launch_lateness")):
        if part in entry.parts:
            yield from fact(f"rank.{name}_us", subject, entry.parts[part], *sources, samples=n)
            yield from fact(f"rank.{name}_share", subject, entry.parts[part] / step_us, *sources, samples=n)
    yield from fact("rank.exposed_excess_us", subject, entry.exposed_us, *sources, samples=n)
    yield from fact("rank.lateness_us", subject, entry.late_us, *sources, samples=n)
    yield from fact("rank.lateness_share", subject, entry.late_us / step_us, *sources, samples=n)
    yield from fact("rank.late_cause", subject, entry.cause if entry.late_us > 0 else "none", *sources, samples=n)
    yield from fact("rank.lateness_steadiness", subject, entry.steadiness, *sources, samples=n)
    if entry.noise_us:
        yield from fact("rank.lateness_deviation", subject, entry.own_us / entry.noise_us, *sources, samples=n)
    yield from fact("rank.kernel_speed_ratio", subject, entry.speed, *sources)


def _idling(balance: Accounts, peers: dict[int, list[int]]) -> dict[int, float]:
    """rank -> idle time above that of its peers, microseconds a step."""
    found = {}
    for members in peers.values():
        known = [r for r in members if r in balance.ranks]
        over = excess(balance.idle[[balance.ranks.index(r) for r in known]]) if len(known) > 1 else ()
        found.update({rank: float(us) for rank, us in zip(known, over, strict=False) if np.isfinite(us)})
    return found


def _savings(run: Run, late: dict[int, Lateness], layout: Partition) -> dict[int, tuple[float, str]]:
    """What each late rank costs. Ranks about as late as each other gain only together, so each gets its part of what
    mending all of them gives; the worst are replayed."""
    from advisor.facts.replay import what_if_late

    found: dict[int, tuple[float, str]] = {}
    worst = sorted((r for r in late if late[r].late_us > 0), key=lambda r: -late[r].late_us)
    replays: dict[tuple[int, ...], float | None] = {}
    for rank in worst:
        alike = tuple(sorted(r for r in worst if 2 * late[r].late_us >= late[rank].late_us >= late[r].late_us / 2))
        if alike not in replays and len(replays) < REPLAYS:
            replays[alike] = what_if_late(run, [late[r] for r in alike])
        replayed = replays.get(alike)
        if replayed is not None:
            found[rank] = (replayed / len(alike), "replay")
            continue
        others = [late[r].late_us for r in late if r not in alike and layout.stage[r] == layout.stage[rank]]
        gain, basis = max(late[rank].late_us - max(others, default=0.0), 0.0), "comparison"
        scheduled = _scheduled(run, [late[r] for r in alike], layout)
        if scheduled is not None and scheduled < gain:
            gain, basis = scheduled, "schedule"
        found[rank] = (gain / len(alike), basis)
    return found


def _scheduled(run: Run, late: list[Lateness], layout: Partition) -> float | None:
    """What the pipeline's step gains where these ranks compute as long as their peers, by its schedule; None where the
    ranks are late from something else, or where neither files nor bubbles tell the micro-batches."""
    balance = accounts(run)
    if balance is None or (layout.pipeline or 1) < 2 or {entry.cause for entry in late} != {"compute"}:
        return None
    over = {entry.rank: max(entry.parts["compute"], 0.0) for entry in late}
    computing = {r: float(us) for r, us in zip(balance.ranks, np.nanmedian(balance.compute, axis=1), strict=True)}
    stages = [[r for r in members if r in computing] for members in layout.peers().values()]
    if len(stages) != layout.pipeline or not all(stages):
        return None
    now = [max(computing[r] for r in members) for members in stages]
    then = [max(computing[r] - over.get(r, 0.0) for r in members) for members in stages]
    found = exposures(run)
    bubbles = [min((found[r].bubble for r in members if r in found), default=0.0) for members in stages]
    micro = micro_batches(run) or guess_micro_batches(now, bubbles)
    return pipeline_us(now, micro) - pipeline_us(then, micro) if micro else None


def _facts_of_hosts(run: Run, layout: Partition) -> Iterator[Fact]:
    speeds = kernel_speeds(run)
    members: dict[str, list[int]] = {}
    for rank, host in layout.host.items():
        members.setdefault(host, []).append(rank)
    if len(members) < 2:
        return
    for host, ranks in sorted(members.items()):
        known = [speeds[r] for r in sorted(ranks) if r in speeds]
        if known:
            subject = Subject("host", host, tuple(sorted(ranks)))
            yield from fact("host.kernel_speed_ratio", subject, min(known), samples=len(known))
            yield from fact("host.slow_rank_share", subject, sum(s > 1 for s in known) / len(known), samples=len(known))


FAMILIES = (Family("cluster", KINDS, measure, uses=("steps", "communication", "replay", "parallelism")),)
