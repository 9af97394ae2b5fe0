"""Pipeline stages: their bubbles against the schedule's own minimum, and what to move where (S27-S31)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.accounts import accounts
from advisor.facts.cluster.lateness import Lateness, latenesses
from advisor.facts.cluster.link_gain import shortened
from advisor.facts.cluster.pipeline.stages import (
    OF_LAYERS,
    WORK,
    Stage,
    chunks,
    hops_us,
    is_interleaved,
    micro_batches,
    most_in_flight,
    reduce_work,
    room_for_hops,
    stages_in_order,
    stages_of,
)
from advisor.facts.cluster.replay import Change, corrections, gain, model
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.exposure import exposures
from advisor.facts.collectives.link_speed import links_of, slow_link
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.schedule import Evened, evened, pipeline_us
from advisor.facts.device.course import COURSE
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Source, Subject

_MOST_MICRO_BATCHES = 1024
"""Where even so many do not fit, something else is wrong with the numbers."""
_NEEDS = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("stage.index", "number", "stage", "pipeline stage, from 0"),
    kind("stage.computing_us", "us", "stage", "computation per step, median over its ranks", needs=_NEEDS),
    kind("stage.work_us", "us", "stage",
         "computation at the speed the same kernels have elsewhere: what the stage was given to do",
         formula="median of computing ÷ kernel speed ratio, the ratio not below 1; of two ranks the lesser; the least "
                 "computing where no ratio is known",
         needs=_NEEDS),
    kind("stage.work_ratio", "number", "stage", "its work against the mean of the stages (S28)", needs=_NEEDS),
    kind("stage.flop_ratio", "number", "stage", "its floating-point work against the mean of the stages",
         needs="flops"),
    kind("stage.calls_ratio", "number", "stage", "its computing kernels per step against the mean of the stages",
         formula="the least of its ranks ÷ mean over stages", needs="kernels"),
    kind("stage.apart_ranks", "count", "stage", "how many ranks of each stage show that it has more work",
         formula="ranks at hand of the stage that has fewest, where each rank of this one computes longer than all of "
                 "the others; else 0, and where a stage has no rank at hand",
         needs=_NEEDS),
    kind("stage.bubble_us", "us", "stage", "waiting for other stages, per step (S31)",
         formula="exposed time in Receive and batchSendRecv; Bubble or receive_alone_time where kernels are not told",
         needs=_NEEDS),
    kind("stage.bubble_share", "ratio", "stage", "the same as a share of the step", needs=_NEEDS),
    kind("stage.bubble_excess_share", "ratio", "stage", "bubble above the schedule's own minimum, share of the step",
         formula="bubble − pipeline.bubble_minimum_share of the step − 2 (m+p−1) transfers between stages; where "
                 "layers are known no less is the schedule's own than what stages need that no whole layer evens out",
         needs=_NEEDS),
    kind("rank.unneeded_wait_share", "ratio", "rank", "waiting in collectives beyond what its pipeline's schedule "
         "needs, share of the step: little of it, and nobody else sets the pace, whoever is absent",
         formula="exposed communication without transfers known from kernels − pipeline.bubble_minimum_share of the "
                 "step − 2 (m+p−1) transfers between stages", needs=_NEEDS),
    kind("stage.exposed_transfer_share", "ratio", "stage",
         "exposed transfer between its sharded operators, share of the step (S30)",
         needs="collectives"),
    kind("stage.layers", "count", "stage", "layers it holds: each runs the attention's backward kernel once for every "
         "micro-batch", formula="backward kernels of a fused attention a step ÷ micro-batches, where that is whole",
         needs="kernels"),
    kind("stage.move_share", "ratio", "stage",
         "part of its work, the transfers that its layers wait for with it, to hand to other stages so that all have "
         "the mean, or come as near to it as whole layers of equal stages can",
         needs=_NEEDS),
    kind("stage.move_layers", "count", "stage", "so many of its layers", needs="kernels"),
    kind("stage.move_to", "number", "stage", "the stage that takes on most of it: the one with the least work, or with "
         "which the schedule is over first where layers are known", needs=_NEEDS),
    kind("stage.saving_us", "us", "stage", "what the step gains where all stages have the mean of the work, or come as "
         "near to it as whole layers can",
         formula="replay of the step with every stage at that work, the transfers that layers wait for with it, and "
                 "gradients with them where layers are known; no more than step − (the schedule's own length "
                 "with such stages and each micro-batch's way between them + the least exposed transfer of gradients "
                 "and weights of a stage); without kernels, or where a rank of a stage is "
                 "absent, the schedule now against balanced; where m is unknown "
                 "as many as computing and bubble leave room for, p at least; the difference of largest and mean where "
                 "the bubble is not told either; of interleaved stages whose chunks are known the interleaved schedule",
         needs=_NEEDS),
    kind("stage.most_us", "us", "stage", "what the step gains at most: where stages hold several chunks of layers, the "
         "replay does not know which chunk has too many",
         formula="stage.saving_us; for interleaved stages of unknown chunks at least the gain of the schedule, now "
                 "against balanced",
         needs=_NEEDS),
    kind("stage.saving_share", "ratio", "stage", "the same as a share of the step", needs=_NEEDS),
    kind("stage.after_late_us", "us", "stage",
         "what the step gains by even stages once no rank is late and no link slow: while all wait for one of these, "
         "nobody waits for a stage",
         formula="replay with late ranks, slow links and stages put right, bounded as stage.saving_us − without the "
                 "stages",
         needs=_NEEDS),
    kind("stage.after_late_share", "ratio", "stage", "the same as a share of the step", needs=_NEEDS),
    kind("pipeline.micro_batches", "count", "run", "micro-batches per step, from the receives of a rank",
         needs="collectives"),
    kind("pipeline.chunks", "count", "run", "chunks of layers that each stage holds, of interleaved stages",
         formula="receives of an inner stage ÷ 2 micro-batches; these are its receives − those of the first and the "
                 "last stage", needs="collectives"),
    kind("pipeline.bubble_share", "ratio", "run", "waiting for other stages, share of the step, mean over stages",
         needs=_NEEDS),
    kind("pipeline.bubble_minimum_share", "ratio", "run", "the schedule's own bubble, share of the step",
         formula="(p−1) ÷ m of what the stages do besides waiting for each other, no more than (p−1) ÷ (m+p−1); "
                 "p stages, m micro-batches times chunks",
         needs="collectives"),
    kind("pipeline.handover_needed_share", "ratio", "run", "what the activations and their gradients need on their way "
         "through the stages, at the speed that the links reach, share of the step",
         formula="2 (m+p−1) × median of size ÷ bandwidth of large messages, no more than its transit",
         needs="transports"),
    kind("pipeline.in_flight", "count", "run", "micro-batches that the first stage has handed on and not got back, at "
         "most; one forward, one backward has as many as stages (S31)",
         formula="largest number of sends begun − receives ended of a rank in the first stage", needs="kernels"),
    kind("pipeline.stages_in_order", "count", "run", "stages of a pipeline at least, where ranks of it have no profile:"
         " with one forward, one backward as many as a rank has micro-batches on the way, and those before it",
         formula="largest over ranks of stage + (sends begun − receives ended of those with the next stage)",
         needs="collectives"),
    kind("pipeline.order_saving_us", "us", "run", "what the step gains where each stage goes on with the next forward "
         "as one forward, one backward allows",
         formula="step − the schedule run with what each stage does besides waiting − 2 (m+p−1) transfers",
         needs=_NEEDS),
    kind("pipeline.stages_whole", "bool", "run", "every rank at hand counts in its stage's work", needs=_NEEDS),
    kind("pipeline.work_spread", "ratio", "run", "(largest − mean) ÷ mean of the stages' work", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of every stage and of the pipeline."""
    step = facts.number("step.time_us", RUN)
    found = stages_of(run)
    if not found or step is None:
        return
    times, split = steady(run), partition(run)
    micro = micro_batches(run)
    deep = stages_in_order(run)
    yield from fact("pipeline.stages_in_order", RUN, deep)
    if len(found) < 2:
        sources = next(iter(times.values())).sources_of("computing")
        yield from fact("pipeline.micro_batches", RUN, micro, *sources)
        if deep and micro and found[0].bubble is not None:
            stages = max(deep, 0 if split.guessed else split.pipeline or 0)
            share = _unavoidable(stages, micro, [found[0].bubble], step)
            yield from fact("pipeline.bubble_minimum_share", RUN, share, *sources)
        return
    sources = next(iter(times.values())).sources_of("computing")
    n = min(len(t.steps) for t in times.values())
    p = split.pipeline or len(found)
    hops, needed = (2 * (micro + p - 1) * us / step if micro else 0.0 for us in hops_us(run))
    mean = float(np.mean([s.work for s in found]))
    if mean <= 0 or step <= 0:
        return  # columns of zeros: nothing was measured
    even = _even_split(run)
    most_given = max(zip(found, even, strict=True), key=lambda pair: pair[1].work - pair[0].given)[0]
    given, targets = [stage.given for stage in found], [each.work for each in even]
    parts = chunks(run)
    yield from fact("pipeline.micro_batches", RUN, micro if parts is None else parts[0], *sources)
    yield from fact("pipeline.chunks", RUN, None if parts is None else parts[1], *sources)
    counted = {rank for stage in found for rank in stage.ranks}
    yield from fact("pipeline.stages_whole", RUN, counted >= {rank.rank for rank in run.ranks})
    bubbles = [s.bubble for s in found if s.bubble is not None]
    least = _unavoidable(p, micro, bubbles, step) if micro and not split.apart else None
    yield from fact("pipeline.bubble_minimum_share", RUN, least, *sources)
    if needed and not split.apart:
        yield from fact("pipeline.handover_needed_share", RUN, needed, *sources)
    if bubbles:
        yield from fact("pipeline.bubble_share", RUN, float(np.mean(bubbles)) / step, *sources, samples=n)
    if micro and len(bubbles) == len(found) == p:
        own = [max(step - bubble, 0.0) for bubble in bubbles]
        yield from fact("pipeline.in_flight", RUN, most_in_flight(run), *sources, samples=n)
        shorter = step * (1 - hops) - pipeline_us(own, micro)
        yield from fact("pipeline.order_saving_us", RUN, max(shorter, 0.0), *sources, samples=n)
    yield from fact("pipeline.work_spread", RUN, max(s.work for s in found) / mean - 1, *sources, samples=n)
    flops = [s.flop for s in found if s.flop is not None]
    calls = [s.calls for s in found if s.calls]
    gained, stays = _replayed(run), 0.0
    broken = len({len(stage.ranks) for stage in found}) > 1  # whoever waits for an absent rank waits on in a replay
    if gained is None or broken:
        gained = _balanced(given, targets, micro or _least_fitting(found, p))
    most = gained
    if parts is not None:
        # which chunk has too many layers the replay does not know, the schedule does not need to
        most = gained = _interleaved(given, targets, *parts)
    elif is_interleaved(run):
        most = max(gained, _balanced(given, targets, micro))
    elif (room := room_for_evening(run)) is not None:
        most = gained = min(gained, room)
        if micro and all(each.layers for each in even):
            # what no whole layer evens out, the others wait for in any schedule
            stays = pipeline_us(given, _fitting(micro, [one.work for one in found], step)) - gained
    behind = _behind_others(run)
    furthest = max(stage.given - target for stage, target in zip(found, targets, strict=True))
    for stage, after in zip(found, even, strict=True):
        subject, target = Subject("stage", str(stage.index), stage.ranks), after.work
        yield from fact("stage.index", subject, stage.index)
        yield from fact("stage.computing_us", subject, stage.computing, *sources, samples=n)
        yield from fact("stage.work_us", subject, stage.work, *sources, samples=n)
        yield from fact("stage.work_ratio", subject, stage.work / mean, *sources, samples=n)
        yield from fact("stage.apart_ranks", subject, _witnesses(stage, found, p), *sources, samples=n)
        if stage.flop is not None and len(flops) == len(found) and any(flops):
            yield from fact("stage.flop_ratio", subject, stage.flop / float(np.mean(flops)))
        if stage.calls is not None and len(calls) == len(found):
            yield from fact("stage.calls_ratio", subject, stage.calls / float(np.mean(calls)))
        yield from fact("stage.exposed_transfer_share", subject, stage.exposed_transfer / step, *sources, samples=n)
        if stage.bubble is not None:
            yield from fact("stage.bubble_us", subject, stage.bubble, *sources, samples=n)
            yield from fact("stage.bubble_share", subject, stage.bubble / step, *sources, samples=n)
            if least is not None:
                inherent = max(least, (stays - stage.given) / step)
                excess = stage.bubble / step - inherent - hops
                yield from fact("stage.bubble_excess_share", subject, excess, *sources, samples=n)
        if least is not None:
            yield from _beyond(run, facts, stage, (least + hops) * step, step, sources)
        yield from fact("stage.layers", subject, stage.layers, *sources, samples=n)
        if stage.given <= target:
            yield from fact("stage.saving_share", subject, 0.0, *sources, samples=n)
        else:
            yield from fact("stage.move_share", subject, 1 - target / stage.given, *sources, samples=n)
            yield from fact("stage.move_to", subject, most_given.index, *sources)
            if stage.layers and after.layers:
                yield from fact("stage.move_layers", subject, stage.layers - after.layers, *sources, samples=n)
            part = (stage.given - target) / max(furthest, 1e-9)
            yield from fact("stage.saving_us", subject, gained * part, *sources, samples=n)
            yield from fact("stage.saving_share", subject, gained * part / step, *sources, samples=n)
            yield from fact("stage.most_us", subject, most * part, *sources, samples=n)
            if behind is not None:
                yield from fact("stage.after_late_us", subject, behind * part, *sources, samples=n)
                yield from fact("stage.after_late_share", subject, behind * part / step, *sources, samples=n)


def _interleaved(now: Sequence[float], then: Sequence[float], micro: int, parts: int) -> float:
    return max(pipeline_us(now, micro, chunks=parts) - pipeline_us(then, micro, chunks=parts), 0.0)


def _witnesses(stage: Stage, found: Sequence[Stage], stages: int) -> int:
    """Ranks of every stage at least that show this one to have more work: none where one of them does not, and where
    some of so many `stages` have no rank at hand."""
    others = [other for other in found if other is not stage]
    apart = min(stage.computing_of.values()) > max(max(other.computing_of.values()) for other in others)
    return min(len(each.ranks) for each in found) if apart and len(found) == stages else 0


@computed
def evened_stages(run: Run) -> dict[int, Change] | None:
    """What makes the stages' work as even as it can be; None where a stage's work is not known."""
    found = stages_of(run)
    if len(found) < 2 or any(stage.work <= 0 for stage in found):
        return None
    pairs = zip(found, _even_split(run), strict=True)
    computing = [(stage, max(even.work - stage.within * _growth(stage, even), 0.0)) for stage, even in pairs]
    return {rank: Change(us / stage.work) for stage, us in computing for rank in stage.ranks}


def _growth(stage: Stage, even: Evened) -> float:
    """Its layers once the stages are even ÷ its layers now; of its work where they are not known."""
    return even.layers / stage.layers if stage.layers and even.layers else even.work / stage.given


@computed
def _even_split(run: Run) -> list[Evened]:
    found = stages_of(run)
    return evened([stage.given for stage in found], [stage.layers for stage in found], micro_batches(run))


@computed
def moved_transfers(run: Run) -> dict[int, float]:
    """Meeting -> microseconds that it takes once the stages' work is even, where it is within a stage: what layers wait
    for goes with them, and so do the gradients of layers that are known. What a stage holds beside its layers stays,
    but how much that is only gradients tell that are reduced layer by layer."""
    step, found, layout = model(run), stages_of(run), partition(run)
    if step is None:
        return {}
    growth = {one.index: _growth(one, even) for one, even in zip(found, _even_split(run), strict=True)}
    told = {one.index for one in found if one.layers}
    moved, reduced = {}, defaultdict[int, list[int]](list)
    for meeting, events in enumerate(step.members):
        within = {layout.stage.get(rank, -1) for rank in events}
        stage = min(within)
        if not len(within) == 1 < len(events) or stage not in growth:
            continue
        purpose = layout.purpose(next(iter(step.kinds[meeting].values())), step.group[meeting])
        if purpose == "data":
            reduced[stage].append(meeting)
        if purpose in OF_LAYERS or stage in told:
            moved[meeting] = step.pure[meeting] * growth[stage]
    return moved | _moved_gradients(run, reduced)


def _moved_gradients(run: Run, reduced: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """The same for gradients (stage -> their meetings) that are reduced layer by layer: in each stage at least as many
    of one size as it has layers, beside what else it holds. Nothing where they are not."""
    step, found = model(run), stages_of(run)
    if step is None or not all(one.layers for one in found):
        return {}
    alike = {
        stage: [each for each in meetings if 2 * step.pure[each] >= max(step.pure[one] for one in meetings)]
        for stage, meetings in reduced.items()
    }
    a_layer = min((len(alike.get(one.index, ())) // one.layers for one in found if one.layers), default=0)
    moved: dict[int, float] = {}
    if not a_layer:
        return moved
    for one, even in zip(found, _even_split(run), strict=True):
        if one.layers and even.layers:
            more = (even.layers - one.layers) * a_layer / len(alike[one.index])
            moved |= {meeting: step.pure[meeting] * (1 + more) for meeting in alike[one.index]}
    return moved


def room_for_evening(run: Run, repaired: Collection[int] = ()) -> float | None:
    """Microseconds a step gains at most by even stages and by ranks that are `repaired` beside them: a replay knows who
    waited for whom, not who will. Even stages keep the schedule's own bubble, each micro-batch's way between them and
    the transfers behind the backward pass. None where stages or their order are not told."""
    found, balance, micro = stages_of(run), accounts(run), micro_batches(run)
    complete = len(found) == partition(run).pipeline and all(stage.given > 0 for stage in found)
    if balance is None or micro is None or is_interleaved(run) or not complete:
        return None
    lasts = [stage.lasts(repaired) for stage in found]
    targets = [us * even.work / one.given for one, us, even in zip(found, lasts, _even_split(run), strict=True)]
    step = float(np.nanmax(np.nanmean(balance.time, axis=1)))  # later stages may be timed from their first micro-batch
    fitting = _fitting(micro, [stage.work for stage in found], step)
    hop = hops_us(run)[0]
    hops = [hop if hop < room_for_hops(run) else 0.0] * (len(found) - 1)  # one that fills the step holds waiting
    least = pipeline_us(targets, fitting, hops) + min(one.behind for one in found)
    return max(step - least, 0.0)


def together(late: Mapping[int, Change], evened: Mapping[int, Change]) -> dict[int, Change]:
    """Late ranks on time, and the stages' work even."""
    both = {rank: late[rank].times(change) if rank in late else change for rank, change in evened.items()}
    return {**late, **both}


def _behind_others(run: Run) -> float | None:
    """Microseconds a step gains by even stages once nobody is late any more and no link slow: while all wait for one
    of these, nobody waits for a stage. None without a replay, or where nobody knows what a rank is late from."""
    step, evened = model(run), evened_stages(run)
    if step is None or evened is None or not set(evened) <= set(step.chains):
        return None
    late = [entry for entry in latenesses(run).values() if entry.late_us > 0 and entry.cause != "unknown"]
    slow = [link for link in links_of(run).values() if link.ratio is not None and link.ratio < slow_link()]
    repaired, shorter = corrections(run, late) if late else {}, shortened(run, step, slow) if slow else {}
    if repaired is None or not (repaired or shorter):
        return None
    moved = moved_transfers(run)
    pure = {number: min(us.get(number, np.inf) for us in (shorter, moved)) for number in shorter.keys() | moved.keys()}
    alone, both = gain(step, repaired, shorter), gain(step, together(repaired, evened), pure)
    if alone is None or both is None:
        return None
    room = None if shorter else room_for_evening(run, slow_among(late))
    return max((both if room is None else min(both, room)) - alone, 0.0)


def slow_among(late: Sequence[Lateness]) -> set[int]:
    """The ranks among these that compute too long."""
    return {entry.rank for entry in late if entry.cause == "compute"}


def _replayed(run: Run) -> float | None:
    """Microseconds a step gains where every stage has the mean of the work, by replay; None without one."""
    step, changes = model(run), evened_stages(run)
    if step is None or changes is None or not set(changes) <= set(step.chains):
        return None
    return gain(step, changes, moved_transfers(run))


def _unavoidable(stages: int, micro: int, bubbles: list[float], step: float) -> float:
    """The bubble of the schedule itself, share of the step: (p−1) micro-batches of what the stages do besides waiting
    for each other, for a step that something stretches needs no more of it; (p−1) ÷ (m+p−1) where nothing does."""
    formula = (stages - 1) / (micro + stages - 1)
    own = 1 - float(np.mean(bubbles)) / step if bubbles else 1.0
    return min((stages - 1) / micro * max(own, 0.0), formula)


def _fitting(micro: int, work_us: Sequence[float], step_us: float) -> int:
    """As many micro-batches as let the schedule fit into its step: where one operation sends and receives, operations
    tell only half of them."""
    while micro < _MOST_MICRO_BATCHES and pipeline_us(work_us, micro) > step_us:
        micro *= 2
    return micro


def _least_fitting(found: Sequence[Stage], stages: int) -> int | None:
    """The fewest micro-batches, no fewer than stages, whose schedule is over when the stages have computed and waited
    for each other: fewer would fill and drain for longer. None where the waiting is not told."""
    times = [stage.computing for stage in found]
    spans = [stage.computing + stage.bubble for stage in found if stage.bubble is not None]
    if not len(spans) == len(found) == stages:
        return None
    counts = range(stages, _MOST_MICRO_BATCHES + 1)
    place = bisect_left(counts, True, key=lambda micro: pipeline_us(times, micro) <= max(spans))
    return counts[place] if place < len(counts) else None


def _balanced(work: Sequence[float], targets: Sequence[float], micro: int | None) -> float:
    if micro is None:
        return max(work) - max(targets)
    return max(pipeline_us(work, micro) - pipeline_us(targets, micro), 0.0)


def _beyond(
    run: Run, facts: FactSet, stage: Stage, needed_us: float, step_us: float, sources: tuple[Source, ...]
) -> Iterator[Fact]:
    """What each rank of a stage waits beyond what the schedule needs: all that is exposed, less the transfers that its
    kernels tell apart."""
    exposed = exposures(run)
    for rank in stage.ranks:
        subject = Subject("rank", str(rank), (rank,))
        one, us = exposed.get(rank), facts.number("step.exposed_communication_us", subject)
        if one is not None and us is not None and one.told and one.bubble_told and one.bubble > 0:
            moved = sum(one.transfer.values()) if one.known else 0.0
            beyond = max(us - moved - needed_us, 0.0)
            yield from fact("rank.unneeded_wait_share", subject, beyond / step_us, *sources)


FAMILIES = (
    Family(
        "stages",
        KINDS,
        measure,
        WORK.by(reduce_work),
        ("flops",),
        uses=(STEPS, EXCHANGES, COURSE),
        after=("parallelism", "cluster"),
    ),
)
