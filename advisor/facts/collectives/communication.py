"""Collectives: how long they transfer, how long they wait, for whom, and how much of both nothing hides (S20, S24, S25,
S36, S40, S41, S45).

Within one collective the last to arrive is inside for the transfer alone. Where members' files are missing, the
shortest stay at hand may still hold waiting for one of them: what exceeds the longest transfer of any member.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from advisor.basics.arrays import Mask
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.peers import medians_of_others
from advisor.facts.collectives.accumulation import accumulates
from advisor.facts.collectives.exchanges import (
    EXCHANGES,
    POINT_TO_POINT,
    Exchanges,
    are_assumed,
    reduce_exchanges,
)
from advisor.facts.collectives.exposure import (
    UNRECORDED,
    exposed_of,
    exposures,
    hidden_beside_attention,
    joints,
    longest_exposed,
    main_kind,
    quiet_steps,
    step_names,
)
from advisor.facts.collectives.inherent import link_limit, needed_parts
from advisor.facts.collectives.joints import Joint
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.size_classes import MANY_TIMES, small_beside_larger
from advisor.facts.collectives.workmates import (
    ARRIVALS,
    AWAITED,
    Behind,
    behind_absent,
    late_wait,
    measure_arrivals,
    received_us,
)
from advisor.facts.device.course import COURSE
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject


class _Sum(Struct):
    """All collectives of one role and kind, per step."""

    name: str = ""
    worst: float = -1.0
    count: float = 0.0
    pure: float = 0.0
    wait: float = 0.0
    absent: float = 0.0
    waited: float = 0.0
    """`absent` with what computation hides; `late`: of it, what only a late rank explains."""
    late: float = 0.0
    latency: float = 0.0
    size: float = 0.0
    ranks: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)
    """Ranks at hand that take part in the one that gives the name."""
    members: list[int] = field(default_factory=list)
    """Of each group."""
    sized: int = 0
    complete: bool = True
    waits_told: bool = False
    """Members are missing, and some operations tell how long they transfer: the rest is waiting for these."""


_COLLECTIVE = "collectives"
KINDS = (
    kind("communication.count", "count", "run", "collectives a rank takes part in, per step", needs=_COLLECTIVE),
    kind("communication.untold_ranks", "count", "run",
         "ranks at hand whose collectives are not told, where others' are: part of their exposed time may be waiting",
         needs=_COLLECTIVE),
    kind("communication.members_assumed", "bool", "run",
         "nothing but the numbers in the names of collectives tells who takes part in them: a rank without a profile "
         "may be waited for", needs="kernels|trace"),
    kind("communication.wait_share", "ratio", "run", "waiting in collectives for ranks at hand, share of the step",
         formula="median over ranks of Σ (elapsed − shortest elapsed of the same collective) ÷ step time",
         needs=_COLLECTIVE),
    kind("communication.transfer_share", "ratio", "run", "transfer in collectives, hidden or not, share of the step",
         formula="median over ranks of Σ shortest elapsed ÷ step time", needs=_COLLECTIVE),
    kind("communication.exposed_transfer_us", "us", "run", "transfer that nothing hides, per step",
         formula="median over ranks of Σ min(exposed, shortest elapsed) over collectives", needs=_COLLECTIVE),
    kind("communication.longest_us", "us", "run", "exposed time of the collective that takes most of it, per step",
         formula="largest over ranks and collectives", needs="kernels"),
    kind("communication.longest_name", "text", "run", "that collective", needs="kernels"),
    kind("communication.main_kind_us", "us", "run", "exposed time per step of the kind of collectives that takes "
         "most of it", formula="median over ranks of Σ exposed; without send and receive", needs="kernels"),
    kind("communication.main_kind", "text", "run", "that kind", needs="kernels"),
    kind("communication.edge_us", "us", "run", "transfer that no overlap can hide, per step: weights that the first "
         "layer needs, and the gradients that are ready last",
         formula="first AllGather and last gradient collective of a step, of data-parallel groups, the longest; all "
         "reductions where they average weights", needs=_COLLECTIVE),
    kind("communication.averages_weights", "bool", "run", "ranks train their weights apart and average them in some "
         "steps", formula="steps in which no rank communicates update weights as well", needs="collectives kernels"),
    kind("communication.exposed_transfer_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("communication.exposed_needed_share", "ratio", "run", "what the bytes of the exposed transfer need at the "
         "speed that the links reach, share of the step; where no bytes are told, all of it",
         formula="Σ over purposes of exposed × Σ min(size ÷ bandwidth of large messages, transfer) ÷ Σ transfer",
         needs="transports"),
    kind("communication.exposed_wait_share", "ratio", "run",
         "waiting for late ranks that nothing hides, share of the step",
         needs=_COLLECTIVE),
    kind("communication.exposed_without_bubble_share", "ratio", "run",
         "exposed communication without waiting for other stages, share of the step",
         needs="steps|cluster_phases|kernels"),
    kind("communication.absent_wait_us", "us", "run",
         "waiting that no rank at hand accounts for: somebody outside the files is late",
         formula="Σ over collectives with missing members of the shortest elapsed above the longest transfer",
         needs=_COLLECTIVE),
    kind("communication.absent_wait_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("communication.redistribution_us", "us", "run",
         "exposed transfer between operators of the sharded model, that between experts left out, per step (S22, S23)",
         needs=_COLLECTIVE),
    kind("communication.weights_us", "us", "run",
         "exposed transfer of weights that data-parallel ranks gather before they use them, per step; only where they "
         "scatter the gradients of as many",
         needs=_COLLECTIVE),
    kind("communication.gathers_behind_update", "bool", "run",
         "whether all that data-parallel ranks gather in a step begins behind its last reduced gradients",
         needs=_COLLECTIVE),
    kind("communication.updated_weights_us", "us", "run",
         "exposed transfer of weights that data-parallel ranks gather behind their update, per step",
         needs=_COLLECTIVE),
    kind("communication.weights_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("communication.context_us", "us", "run",
         "exposed exchange of keys and values between ranks that hold parts of one sequence, per step",
         needs=_COLLECTIVE),
    kind("communication.context_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("communication.context_hideable_us", "us", "run",
         "exposed hops of a ring that attention on the block before could hide, per step",
         formula="median over ranks of Σ over hops of min(exposed, shortest elapsed, attention that is free)",
         needs="collectives kernels"),
    kind("communication.exchange_us", "us", "run",
         "exposed exchange all with all, or with neighbours, that neither attention nor experts explain, per step",
         needs=_COLLECTIVE),
    kind("communication.exchange_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("communication.broadcast_us", "us", "run", "exposed broadcasts among data-parallel ranks, per step",
         needs="collectives kernels"),
    kind("communication.expert_us", "us", "run",
         "exposed transfer between experts, which exchange tokens by their nature, per step", needs=_COLLECTIVE),
    kind("communication.expert_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("communication.expert_needed_share", "ratio", "run",
         "what their bytes need of it at the speed that the links reach, share of the step",
         formula="exposed × Σ min(size ÷ bandwidth of large messages, transfer) ÷ Σ transfer", needs="transports"),
    kind("communication.sharding_needed_share", "ratio", "run",
         "what the bytes between sharded operators need of their exposed transfer at the speed that the links reach, "
         "share of the step", formula="as for the experts", needs="transports"),
    kind("communication.sharding_startup_share", "ratio", "run",
         "the part of redistribution in which no link moved data: start-up of the exchanges, share of the step",
         formula="exposed transfer × Σ (shortest elapsed − longest transit of any member) ÷ Σ shortest elapsed",
         needs="transports"),
    kind("communication.reshuffle_share", "ratio", "run",
         "the part of redistribution in AllGather and AlltoAll that no ReduceScatter answers, share of the step; where "
         "layers sum with AllReduce, in ReduceScatter too", needs=_COLLECTIVE),
    kind("communication.redistribution_share", "ratio", "run", "the same as a share of the step", needs=_COLLECTIVE),
    kind("collective.kind", "text", "collective", "allreduce, allgather, …", needs=_COLLECTIVE),
    kind("collective.role", "text", "collective", "what its group is for: data, tensor, expert, pipeline, context, "
         "exchange", needs=_COLLECTIVE),
    kind("collective.count", "count", "collective", "collectives of this kind and role a rank takes part in, per step",
         needs=_COLLECTIVE),
    kind("collective.transfer_us", "us", "collective", "their transfer, per step", formula="Σ shortest elapsed",
         needs=_COLLECTIVE),
    kind("collective.transfer_share", "ratio", "collective", "the same as a share of the step", needs=_COLLECTIVE),
    kind("collective.wait_us", "us", "collective", "waiting in them for ranks at hand, per step", needs=_COLLECTIVE),
    kind("collective.absent_wait_us", "us", "collective",
         "waiting in them that no rank at hand accounts for, no more than is exposed of them, per step: what the step "
         "gains at most where no absent rank is late, for their transfer may then be overlapped", needs=_COLLECTIVE),
    kind("collective.absent_wait_share", "ratio", "collective", "the same as a share of the step", needs=_COLLECTIVE),
    kind("collective.late_wait_share", "ratio", "collective",
         "part of that wait which only a late rank explains: it keeps all from beginning, whatever is to be moved; "
         "slow links of absent ranks make all wait between transfers, the longer the more is moved",
         formula="Σ wait × synchronization ÷ wait as booked, or where little is booked Σ max(wait − transit × mean "
                 "ratio of wait and transit, 0); ÷ Σ wait", needs=_COLLECTIVE),
    kind("collective.latency_us", "us", "collective",
         "their transfer in which no link moved data: start-up of each one, per step",
         formula="Σ (shortest elapsed − longest transit of any member)", needs="transports"),
    kind("collective.latency_share", "ratio", "collective", "the same as a share of their transfer",
         needs="transports"),
    kind("collective.size_bytes", "bytes", "collective", "what one of them moves on a rank, mean", needs="transports"),
    kind("collective.larger_bytes", "bytes", "collective",
         "size of the others of their kind, where these are by far the smaller ones and the most", needs="transports"),
    kind("collective.small_count", "count", "collective",
         "those of them that are many times smaller than the others, and told on their own, per step",
         needs="transports"),
    kind("collective.packet_bytes", "bytes", "collective", "mean size of the packets in which they move",
         formula="median over operations of size ÷ packets", needs="transports"),
    kind("collective.transport", "text", "collective", "what takes longest to move their bytes: HCCS, RDMA, …",
         needs="transports"),
    kind("collective.bandwidth_bytes_per_s", "bytes_per_s", "collective",
         "what they reach over this transport", formula="median over operations of Σ size ÷ Σ time of its transports",
         needs="transports"),
    kind("collective.link_limit_bytes_per_s", "bytes_per_s", "collective",
         "what a link of this transport carries (knowledge_base/links.yaml)", needs="transports"),
    kind("collective.large_bandwidth_bytes_per_s", "bytes_per_s", "collective",
         "what messages many times as large reach over the same transport in this run",
         formula="median of size ÷ time over operations with at least 8 times their size", needs="transports"),
    kind("collective.exposed_us", "us", "collective", "their transfer that nothing hides, per step",
         needs="collectives kernels"),
    kind("collective.exposed_share", "ratio", "collective", "the same as a share of the step",
         needs="collectives kernels"),
    kind("collective.reduce_share", "ratio", "collective", "share of their time spent reducing (S26)",
         needs=_COLLECTIVE),
    kind("collective.member_count", "count", "collective", "ranks in one of their groups", needs=_COLLECTIVE),
    kind("rank.wait_us", "us", "rank", "waiting in collectives for ranks at hand, per step", needs=_COLLECTIVE),
    kind("rank.last_arrival_share", "ratio", "rank",
         "share of all waiting in its collectives in which this rank came last",
         formula="Σ waiting of the others where it was inside shortest ÷ Σ waiting", needs=_COLLECTIVE),
    kind("rank.transfer_bytes", "bytes", "rank", "what the rank moves, per step", needs="transports"),
    kind("rank.transfer_ratio", "number", "rank", "the same against the median of its peers (S40)", needs="transports"),
    kind("rank.transfer_longer_us", "us", "rank", "how much longer its transfers take than its peers', per step",
         formula="Σ time of its transports − the median of its peers' sums, 0 at least", needs="transports"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the run, of each role and kind of collective, and of ranks."""
    step = facts.number("step.time_us", RUN)
    together = joints(run)
    sources = together[0].sources if together else ()
    yield from _exposed(run, step)
    if run.each(EXCHANGES):
        yield from fact("communication.members_assumed", RUN, are_assumed(run), *sources)
    if (longest := longest_exposed(run)) is not None:
        name, us, rank = longest
        own = steady(run)[rank].sources if rank in steady(run) else ()
        yield from fact("communication.longest_us", RUN, us, *own)
        yield from fact("communication.longest_name", RUN, name, *own)
    if (main := main_kind(run)) is not None:
        yield from fact("communication.main_kind", RUN, main[0])
        yield from fact("communication.main_kind_us", RUN, main[1])
    if not together:
        return
    sums = _sum(run, together)
    waits, caused, totals, pure = _of_ranks(together)
    n = len({s for j in together for s in j.steps})
    counts: dict[int, float] = defaultdict(float)
    for joint in together:
        for rank in joint.ranks:
            counts[rank] += float(joint.per_step.sum())
    yield from fact("communication.count", RUN, float(np.median(list(counts.values()))), *sources, samples=n)
    told = {rank for rank, exchanges in run.each(EXCHANGES).items() if len(exchanges.name)}
    yield from fact("communication.untold_ranks", RUN, len({r.rank for r in run.ranks} - told), *sources)
    _only_exposed(run, sums, facts)
    absent = sum(s.absent for s in sums.values())
    incomplete = any(s.waits_told for s in sums.values())
    if incomplete:
        yield from fact("communication.absent_wait_us", RUN, absent, *sources, samples=n)
    if step:
        yield from fact(
            "communication.wait_share", RUN, float(np.median(list(waits.values()))) / step, *sources, samples=n
        )
        yield from fact(
            "communication.transfer_share", RUN, float(np.median(list(pure.values()))) / step, *sources, samples=n
        )
        if incomplete:
            yield from fact("communication.absent_wait_share", RUN, absent / step, *sources, samples=n)
            behind = behind_absent(run, step) if absent >= AWAITED * step else None
            if behind is not None:
                yield from _facts_behind(behind, sources, n)
    yield from fact("communication.reshuffle_share", RUN, _reshuffled(run, sums, step), *sources, samples=n)
    yield from fact("communication.sharding_startup_share", RUN, _starting(run, sums, step), *sources, samples=n)
    for (role, kind_), total in sorted(sums.items()):
        yield from _facts_of_collective(run, role, kind_, total, step, n)
        yield from _facts_of_small(run, role, kind_, _subject(total), step, n)
    for rank, wait in sorted(waits.items()):
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("rank.wait_us", subject, wait, *sources, samples=n)
        if totals[rank] > 0:
            yield from fact("rank.last_arrival_share", subject, caused[rank] / totals[rank], *sources, samples=n)
    recorded = max((len(rank.steps) for rank in steady(run).values()), default=0)
    yield from measure_arrivals(together, step, recorded, received_us(run.each(EXCHANGES)))
    yield from _sizes(run)


def _edge_us(run: Run, averaged: bool) -> float:
    """The first gather and the last reduction of a step: nothing runs before the one and behind the other. All that is
    reduced, where weights are `averaged` that were updated before."""
    layout = partition(run)
    longest = {"first": 0.0, "last": 0.0}
    for joint in joints(run):
        end = {"allgather": "first", "allreduce": "last", "reducescatter": "last"}.get(joint.kind)
        if end is None or layout.role_of(joint.group) != "data" or not joint.is_whole:
            continue
        if averaged and end == "last":
            longest[end] = max(longest[end], float(joint.transfer_us @ joint.per_step))
            continue
        order = np.argsort(joint.ordinal, kind="stable")
        rows = {joint.steps[row]: row for row in (order if end == "last" else order[::-1]).tolist()}
        longest[end] = max(longest[end], float(np.median(joint.transfer_us[list(rows.values())])) * joint.share)
    return sum(longest.values())


def _exposed(run: Run, step: float | None) -> Iterator[Fact]:
    found = exposures(run)
    times = steady(run)
    known = [r for r in found if r in times and "exposed" in times[r].phases]
    if not known or not step:
        return
    sources = times[known[0]].sources_of("exposed")
    n = len(times[known[0]].steps)
    exposed = np.array([float(np.nanmean(times[r].phases["exposed"])) for r in known])
    bubble = np.array([found[r].bubble for r in known])
    yield from fact(
        "communication.exposed_without_bubble_share", RUN, float(np.mean(exposed - bubble)) / step, *sources, samples=n
    )
    if not joints(run) and not partition(run).ring:
        return
    # what nothing was recorded of may be waiting as well as transfer: ranks with collectives of their own tell
    known = [r for r in known if found[r].transfer.keys() != {UNRECORDED}] or known
    # a part of all steps' mean: no part is more than the whole
    transfer = min(float(np.median([sum(found[r].transfer.values()) for r in known])), float(np.max(exposed)))
    yield from fact("communication.exposed_transfer_us", RUN, transfer, *sources, samples=n)
    yield from fact("communication.exposed_transfer_share", RUN, transfer / step, *sources, samples=n)
    averaged = bool(quiet_steps(run)) and accumulates(run) is False
    yield from fact("communication.edge_us", RUN, min(_edge_us(run, averaged), transfer), *sources, samples=n)
    yield from fact("communication.averages_weights", RUN, averaged or None, *sources)
    wait = float(np.mean([found[r].wait for r in known]))
    yield from fact("communication.exposed_wait_share", RUN, wait / step, *sources, samples=n)
    sharded, experts, weights, context, exchanged = (
        float(np.median([found[r].transfer.get(role, 0.0) for r in known]))
        for role in ("tensor", "expert", "weights", "context", "exchange")
    )
    needed = needed_parts(run)
    if needed:
        # a median of its own could be more than that of the transfer
        parts = [sum(us * needed.get(role, 1.0) for role, us in found[r].transfer.items()) for r in known]
        share = min(float(np.median(parts)), transfer) / step
        yield from fact("communication.exposed_needed_share", RUN, share, *sources, samples=n)
    yield from fact("communication.redistribution_us", RUN, sharded, *sources, samples=n)
    yield from fact("communication.redistribution_share", RUN, sharded / step, *sources, samples=n)
    if "tensor" in needed:
        share = sharded * needed["tensor"] / step
        yield from fact("communication.sharding_needed_share", RUN, share, *sources, samples=n)
    behind = _gathers_behind(run)
    yield from fact("communication.gathers_behind_update", RUN, behind, *sources, samples=n)
    if weights > 0 and behind:
        yield from fact("communication.updated_weights_us", RUN, weights, *sources, samples=n)
    elif weights > 0 and _gathers_weights(run):
        yield from fact("communication.weights_us", RUN, weights, *sources, samples=n)
        yield from fact("communication.weights_share", RUN, weights / step, *sources, samples=n)
    if context > 0:
        yield from fact("communication.context_us", RUN, context, *sources, samples=n)
        yield from fact("communication.context_share", RUN, context / step, *sources, samples=n)
        yield from fact("communication.context_hideable_us", RUN, hidden_beside_attention(run), *sources, samples=n)
    if exchanged > 0:
        yield from fact("communication.exchange_us", RUN, exchanged, *sources, samples=n)
        yield from fact("communication.exchange_share", RUN, exchanged / step, *sources, samples=n)
    yield from fact("communication.broadcast_us", RUN, exposed_of(run, "data", "broadcast"), *sources, samples=n)
    if experts > 0:
        yield from fact("communication.expert_us", RUN, experts, *sources, samples=n)
        yield from fact("communication.expert_share", RUN, experts / step, *sources, samples=n)
        if "expert" in needed:
            share = experts * needed["expert"] / step
            yield from fact("communication.expert_needed_share", RUN, share, *sources, samples=n)


def _gathers_weights(run: Run) -> bool:
    """Whether what data-parallel ranks gather are weights: whoever holds a part of each weight reduces just that part
    of its gradient, so as much is scattered in a step as is gathered. Other gathers are somebody's own exchange."""
    layout, moved = partition(run), dict[str, float]()
    for joint in joints(run):
        if joint.kind in ("allgather", "reducescatter") and layout.role_of(joint.group) == "data":
            size = float(np.nansum(joint.size_bytes, axis=1) @ joint.per_step) / len(joint.ranks)
            moved[joint.kind] = moved.get(joint.kind, 0.0) + size
    told = "reducescatter" in moved and "allgather" in moved
    return told and moved["allgather"] >= limit("gradients", "gathered_part") * moved["reducescatter"]


def _gathers_behind(run: Run) -> bool:
    """Whether data-parallel ranks gather only what was just updated: no layer of the step waits for its weights."""
    layout = partition(run)
    begun: dict[str, dict[tuple[int, str], list[int]]] = {"allgather": {}, "reducescatter": {}}
    for joint in joints(run):
        if joint.kind in begun and layout.role_of(joint.group) == "data":
            for step, start in zip(joint.steps, joint.start_ns[:, 0].tolist(), strict=True):
                begun[joint.kind].setdefault((joint.ranks[0], step), []).append(start)
    return gathered_behind(begun["allgather"], begun["reducescatter"])


def gathered_behind(
    gathers: Mapping[tuple[int, str], Sequence[int]], scatters: Mapping[tuple[int, str], Sequence[int]]
) -> bool:
    """Whether in each step of each rank every gather begins behind the last reduction; of both the starts in
    nanoseconds, 0 where they are not told."""
    both = gathers.keys() & scatters.keys()
    return bool(both) and all(min(gathers[each]) > max(scatters[each]) > 0 for each in both)


def _reshuffled(run: Run, sums: dict[tuple[str, str], _Sum], step: float | None) -> float | None:
    """Exposed transfer between operators that only moves tensors to another layout, as a share of the step.

    Sharded layers sum with AllReduce, or with ReduceScatter and the AllGather that answers it; what else there is
    of AllGather and AlltoAll changes layouts. Where they sum with AllReduce, a ReduceScatter is the gradient of an
    AllGather that does so.
    """
    mine = {kind_: total.pure for (role, kind_), total in sums.items() if role == "tensor"}
    exposed = [e.transfer.get("tensor", 0.0) for e in exposures(run).values() if e.told]
    if not step or not exposed or sum(mine.values()) <= 0:
        return None
    gathered, scattered = mine.get("allgather", 0.0), mine.get("reducescatter", 0.0)
    summed = mine.get("allreduce", 0.0) >= scattered
    moved = mine.get("alltoall", 0.0) + (gathered + scattered if summed else max(gathered - scattered, 0.0))
    return float(np.median(exposed)) * moved / sum(mine.values()) / step


def _starting(run: Run, sums: dict[tuple[str, str], _Sum], step: float | None) -> float | None:
    """Exposed transfer between operators in which no link moved data, as a share of the step."""
    mine = [total for (role, _), total in sums.items() if role == "tensor"]
    exposed = [e.transfer.get("tensor", 0.0) for e in exposures(run).values() if e.told]
    pure = sum(total.pure for total in mine)
    if not step or not exposed or pure <= 0:
        return None
    return float(np.median(exposed)) * sum(total.latency for total in mine) / pure / step


def _sum(run: Run, together: list[Joint]) -> dict[tuple[str, str], _Sum]:
    """Per role and kind, the mean over ranks of what each spends in all its groups, a step."""
    layout = partition(run)
    sums: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    for joint in together:
        total = sums[layout.role_of(joint.group), joint.kind]
        pure = joint.pure_us
        with np.errstate(invalid="ignore"):
            transit = np.nanmax(np.where(np.isfinite(joint.transit_us), joint.transit_us, -1.0), axis=1)
        known = transit > 0 if not joint.complete else transit >= 0  # without a time of its own nothing tells a wait
        moving = transit if joint.complete else joint.transfer_us
        missing = np.where(known, np.maximum(pure - moving, 0.0), 0.0)
        part = joint.per_step * len(joint.ranks)
        total.count += float(part.sum())
        total.wait += float(np.median(part @ joint.wait_us))
        if joint.complete:
            total.pure += float(pure @ part)
            total.latency += float(missing @ part)
        else:
            total.pure += float(joint.transfer_us @ part)
            total.absent += float(missing @ part)
            total.waited += float(missing @ part)
            total.late += float(late_wait(joint, missing, transit) @ part)
            total.waits_told |= bool(known.any())
            total.complete = False
        sizes = joint.size_bytes[np.isfinite(joint.size_bytes)]
        if sizes.size:
            total.size, total.sized = total.size + float(sizes.mean()), total.sized + 1
        total.ranks |= set(joint.ranks)
        total.members.append(len(joint.members))
        worst = (joint.elapsed_us.max(axis=1)).argmax()
        longest = float(joint.elapsed_us.max(axis=1)[worst])
        if longest > total.worst:
            total.worst, total.name = longest, joint.names[worst]
    for (role, kind_), total in sums.items():
        for name in ("count", "pure", "wait", "absent", "latency"):
            setattr(total, name, getattr(total, name) / len(total.ranks))
        total.size /= max(total.sized, 1)
        mine = [j for j in together if j.kind == kind_ and layout.role_of(j.group) == role and total.name in j.names]
        total.named = {rank for joint in mine for rank in joint.ranks}
    return dict(sums)


def _only_exposed(run: Run, sums: dict[tuple[str, str], _Sum], facts: FactSet) -> None:
    """Cuts the wait for absent ranks to what is exposed: waiting beside computation costs nothing. Transfer stays in:
    nobody late, what is transferred behind the wait today may find computation to run beside."""
    left = facts.number("step.exposed_communication_us", RUN)
    for (role, kind_), total in sums.items():
        measured = exposed_of(run, role, kind_, waiting=True)
        most = measured if measured is not None else left
        total.absent = total.absent if most is None else min(total.absent, most)


def _of_ranks(together: list[Joint]) -> tuple[dict[int, float], dict[int, float], dict[int, float], dict[int, float]]:
    """Per rank: own waiting, others' waiting for it, all waiting in its collectives, transfer; a step's worth."""
    waits: dict[int, float] = defaultdict(float)
    caused: dict[int, float] = defaultdict(float)
    totals: dict[int, float] = defaultdict(float)
    pure: dict[int, float] = defaultdict(float)
    for joint in together:
        wait = joint.wait_us * joint.per_step[:, None]
        transfer = float(joint.transfer_us @ joint.per_step)
        last = np.argmin(joint.elapsed_us, axis=1)
        whole = wait.sum(axis=1)
        for column, rank in enumerate(joint.ranks):
            waits[rank] += float(wait[:, column].sum())
            caused[rank] += float(whole[last == column].sum())
            totals[rank] += float(whole.sum())
            pure[rank] += transfer
    return waits, caused, totals, pure


def _subject(total: _Sum) -> Subject:
    return Subject("collective", total.name, tuple(sorted(total.named)))


def _facts_behind(behind: Behind, sources: Sequence[Source], samples: int) -> Iterator[Fact]:
    """What ranks at hand can give back for certain lies behind the last wait for those without a profile."""
    told = {"": behind.us, "_idle": behind.idle_us, "_computing": behind.computing_us}
    for part, us in told.items():
        yield from fact(f"communication.behind_absent{part}_us", RUN, us, *sources, samples=samples)
    for name, us in behind.of_type.items():
        yield from fact("operator_type.behind_absent_us", Subject("operator_type", name), us, *sources, samples=samples)


def _facts_of_collective(run: Run, role: str, kind_: str, total: _Sum, step: float | None, n: int) -> Iterator[Fact]:
    subject = _subject(total)
    sources = joints(run)[0].sources
    yield from fact("collective.kind", subject, kind_, *sources)
    yield from fact("collective.role", subject, role, *sources)
    yield from fact("collective.count", subject, total.count, *sources, samples=n)
    yield from fact("collective.transfer_us", subject, total.pure, *sources, samples=n)
    yield from fact("collective.wait_us", subject, total.wait, *sources, samples=n)
    yield from fact("collective.member_count", subject, int(np.median(total.members)), *sources)
    if total.size > 0:
        yield from fact("collective.size_bytes", subject, total.size, *sources, samples=n)
        if total.complete:
            yield from fact("collective.latency_us", subject, total.latency, *sources, samples=n)
            if total.pure > 0:
                yield from fact("collective.latency_share", subject, total.latency / total.pure, *sources, samples=n)
    if total.waits_told:
        yield from fact("collective.absent_wait_us", subject, total.absent, *sources, samples=n)
        if total.waited > 0:
            yield from fact(
                "collective.late_wait_share", subject, min(total.late / total.waited, 1.0), *sources, samples=n
            )
    yield from _rates(run, subject, role, kind_, n)
    exposed = exposed_of(run, role, kind_)
    yield from fact("collective.exposed_us", subject, exposed, *sources, samples=n)
    if step:
        yield from fact("collective.transfer_share", subject, total.pure / step, *sources, samples=n)
        if exposed is not None:
            yield from fact("collective.exposed_share", subject, exposed / step, *sources, samples=n)
        if total.waits_told:
            yield from fact("collective.absent_wait_share", subject, total.absent / step, *sources, samples=n)
    reducing = run.each(EXCHANGES)
    parts = [
        ex.reduce_us / float(ex.elapsed_us.sum())
        for ex in reducing.values()
        if ex.reduce_us and ex.elapsed_us.sum() > 0
    ]
    if kind_ == "allreduce" and parts:
        yield from fact("collective.reduce_share", subject, float(np.median(parts)), *sources, samples=n)


def _facts_of_small(run: Run, role: str, kind_: str, whole: Subject, step: float | None, n: int) -> Iterator[Fact]:
    """The small ones, where most collectives of one role and kind are many times smaller than the others."""
    small = small_beside_larger(run, role, kind_)
    if small is None or small.name == whole.id:
        return
    subject = Subject("collective", small.name, small.ranks)
    sources = joints(run)[0].sources
    yield from fact("collective.kind", subject, kind_, *sources)
    yield from fact("collective.role", subject, role, *sources)
    values: dict[str, float | None] = {
        "collective.count": small.count,
        "collective.size_bytes": small.size_bytes, "collective.transfer_us": small.transfer_us,
        "collective.latency_us": small.latency_us, "collective.exposed_us": small.exposed_us,
        "collective.bandwidth_bytes_per_s": small.bandwidth,
        "collective.large_bandwidth_bytes_per_s": small.large_bandwidth, "collective.larger_bytes": small.larger_bytes,
    }  # fmt: skip
    if small.latency_us is not None and small.transfer_us > 0:
        values["collective.latency_share"] = small.latency_us / small.transfer_us
    if step:
        values["collective.transfer_share"] = small.transfer_us / step
        values["collective.exposed_share"] = None if small.exposed_us is None else small.exposed_us / step
    for name, value in values.items():
        yield from fact(name, subject, value, *sources, samples=n)
    yield from fact("collective.small_count", whole, small.count, *sources, samples=n)


def _rates(run: Run, subject: Subject, role: str, kind_: str, n: int) -> Iterator[Fact]:
    """Bandwidth of these collectives, and of much larger messages over the same transport.

    With messages of one size no fit tells start-up from bandwidth; another collective's messages do.
    """
    layout = partition(run)
    moving = [ex for ex in run.each(EXCHANGES).values() if ex.transport]
    words = {word: place for place, word in enumerate(sorted({word for ex in moving for word in ex.transport}))}
    parts: list[tuple[np.ndarray, ...]] = []
    for ex in moving:
        mine = _sized(ex) & (ex.kinds() == kind_)
        mine &= np.array([layout.role_of(group) == role for group in ex.groups])[ex.group]
        parts.append((
            _numbers_of(ex, words)[mine], ex.size_bytes[mine], ex.rates(mine),
            ex.packet_bytes[mine], ex.transport_us[mine],
        ))  # fmt: skip
    if not any(len(part[0]) for part in parts):
        return
    transport, size, rate, packet, lasts = (np.concatenate(each) for each in zip(*parts, strict=True))
    # all members end together, when the slowest transport has
    slowest = {w: float(np.median(lasts[transport == i])) for w, i in words.items() if (transport == i).any()}
    main = max(slowest, key=lambda word: slowest[word])
    chosen = transport == words[main]
    least = MANY_TIMES * np.median(size[chosen])
    large = [
        ex.rates(mine)
        for ex in moving
        if (mine := _sized(ex) & (ex.size_bytes >= least) & (_numbers_of(ex, words) == words[main])).any()
    ]
    sources = joints(run)[0].sources
    yield from fact("collective.transport", subject, main, *sources)
    yield from fact("collective.link_limit_bytes_per_s", subject, link_limit(main), *sources)
    yield from fact("collective.bandwidth_bytes_per_s", subject, float(np.median(rate[chosen])), *sources, samples=n)
    if np.isfinite(packet[chosen]).any():
        yield from fact("collective.packet_bytes", subject, float(np.nanmedian(packet[chosen])), *sources, samples=n)
    if large:
        rates = np.concatenate(large)
        reached = float(np.median(rates))
        yield from fact("collective.large_bandwidth_bytes_per_s", subject, reached, *sources, samples=len(rates))


def _sized(ex: Exchanges) -> Mask:
    return np.asarray(np.isfinite(ex.size_bytes) & (ex.transport_us > 0))


def _numbers_of(ex: Exchanges, words: dict[str, int]) -> npt.NDArray[np.int16]:
    return np.fromiter(map(words.__getitem__, ex.transport), np.int16, len(ex.transport))


def _sizes(run: Run) -> Iterator[Fact]:
    exchanges = run.each(EXCHANGES)
    layout = partition(run)
    moved, lasts, told = {}, {}, {}
    for rank, ex in exchanges.items():
        names = step_names(run, list(ex.steps))
        inside = np.array([s in names for s in ex.steps])[ex.step] & ~np.isin(ex.kinds(), POINT_TO_POINT)
        sized = inside & np.isfinite(ex.size_bytes)
        if sized.any():
            moved[rank] = float((ex.size_bytes * ex.weight)[sized].sum()) / max(len(names), 1)
            lasts[rank] = float(np.nansum((ex.transport_us * ex.weight)[sized])) / max(len(names), 1)
            told[rank] = round(ex.weight[sized].sum())
    for members in layout.peers().values():
        # ranks of one stage take part in equally many collectives: where fewer sizes are told, records are lost
        counts = Counter(told[r] for r in members if r in told)
        usual = max(counts, key=lambda count: (counts[count], count), default=0)
        known = [r for r in members if told.get(r) == usual]
        sizes, times = ({rank: of[rank] for rank in known} for of in (moved, lasts))
        usual_size, usual_time = medians_of_others(sizes), medians_of_others(times)
        for rank in known:
            subject, sources = Subject("rank", str(rank), (rank,)), exchanges[rank].sources
            yield from fact("rank.transfer_bytes", subject, sizes[rank], *sources)
            if usual_size[rank] > 0:
                yield from fact("rank.transfer_ratio", subject, sizes[rank] / usual_size[rank], *sources)
                yield from fact("rank.transfer_longer_us", subject, max(times[rank] - usual_time[rank], 0.0), *sources)


FAMILIES = (
    Family(
        "communication", (*KINDS, *ARRIVALS), measure, EXCHANGES.by(reduce_exchanges), ("collectives", "transports"),
        uses=(STEPS, COURSE, OPERATORS), after=("parallelism",),
    ),
)  # fmt: skip
