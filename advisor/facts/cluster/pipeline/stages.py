"""Pipeline stages: their work, their bubbles against the schedule's own minimum, and what to move where (S27-S31)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.facts.base import FactSet, Family, Reduction, Run, computed, fact, kind
from advisor.facts.cluster.accounts import accounts
from advisor.facts.cluster.lateness import Lateness, latenesses
from advisor.facts.cluster.peers import kernel_speeds
from advisor.facts.cluster.replay import Change, chained, corrections, gain, model
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, kind_of
from advisor.facts.collectives.exposure import exposures, step_names
from advisor.facts.collectives.inherent import link_rates
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.schedule import Evened, evened, in_flight, pipeline_us
from advisor.facts.device.course import COURSE, Course
from advisor.facts.operators.attention import backward_attentions
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank


@dataclass(frozen=True)
class Work:
    """Floating-point work of one rank's share of the model."""

    flop: float
    sources: tuple[Source, ...]


WORK = Reduction("stages", Work)
_MOST_MICRO_BATCHES = 1024
"""Where even so many do not fit, something else is wrong with the numbers."""
_OF_LAYERS = ("tensor", "context", "expert", "exchange")
"""Purposes of collectives that layers wait for: whoever takes on a layer takes on its transfers."""


def reduce_work(rank: Rank) -> Work | None:
    """FLOPs of the rank, where the older files tell."""
    frame = rank.read("flops")
    if frame is None or frame.empty or not (frame["flop"] > 0).any():
        return None
    return Work(float(frame["flop"].max()), (rank.source("flops", "flop"),))


@dataclass
class Stage:
    """One stage, medians over its ranks, microseconds a step."""

    index: int
    ranks: tuple[int, ...]
    computing: float
    computing_of: Mapping[int, float]
    """Rank -> its own computation."""
    bubble: float | None
    exposed_transfer: float
    """Between its sharded operators."""
    within: float
    """Exposed transfer that its layers wait for, of all purposes."""
    behind: float
    """Exposed transfer of gradients and weights."""
    work: float
    """Computation at the usual speed of its kernels: what the stage was given to do."""
    flop: float | None
    calls: float | None
    """Computing kernels a step that each of its ranks runs at least; None where a kernel table is absent or cut."""
    layers: int | None = None
    """Layers it holds; None where its kernels do not tell."""

    @property
    def given(self) -> float:
        """What moves with its layers: their computation, and the transfers they wait for."""
        return self.work + self.within

    def lasts(self, repaired: Collection[int] = ()) -> float:
        """What its slowest rank needs for that, where those `repaired` compute at the usual speed."""
        return max(self.work if rank in repaired else us for rank, us in self.computing_of.items()) + self.within


def stages_of(run: Run) -> list[Stage]:
    """The stages with ranks at hand, in order; empty without pipeline parallelism."""
    layout, balance = partition(run), accounts(run)
    if balance is None or (layout.pipeline or 1) < 2:
        return []
    exposed, speeds = exposures(run), kernel_speeds(run)
    row = {rank: i for i, rank in enumerate(balance.ranks)}
    works = run.each(WORK)
    courses = {rank: course for rank, course in run.each(COURSE).items() if course.complete}
    calls = {rank: float(np.median(course.kernels)) for rank, course in courses.items()}
    layers = _layers(run, courses)
    found = []
    for index, members in layout.peers().items():
        known = [r for r in members if r in row and np.isfinite(balance.compute[row[r]]).any()]
        if not known:
            continue
        bubbles = [exposed[r].bubble for r in known if r in exposed and exposed[r].bubble_told]
        sharded, within, behind = (
            _usual([sum(exposed[r].transfer.get(role, 0.0) for role in roles) for r in known if r in exposed])
            for roles in (("tensor",), _OF_LAYERS, ("data", "weights"))
        )
        flops = [works[r].flop for r in known if r in works]
        computing = {r: float(np.nanmedian(balance.compute[row[r]])) for r in known}
        found.append(
            Stage(
                index, tuple(known), float(np.median(list(computing.values()))), computing,
                float(np.median(bubbles)) if bubbles and any(e.bubble > 0 for e in exposed.values()) else None,
                sharded, within, behind,
                _typical([us / max(speeds.get(r, 1.0), 1.0) for r, us in computing.items()], not speeds.keys() & known),
                float(np.median(flops)) if flops else None,
                min(calls[r] for r in known) if calls.keys() >= set(known) else None,
                min(layers[r] for r in known) if layers.keys() >= set(known) else None,
            )
        )  # fmt: skip
    return found


def _layers(run: Run, courses: Mapping[int, Course]) -> dict[int, int]:
    """rank -> layers it holds, by its attention's backward kernels: each layer runs one for every micro-batch. Empty
    where some rank's layers take longer than another's: then nothing tells what moving one brings."""
    micro = micro_batches(run)
    if not micro or is_interleaved(run):
        return {}
    told = {rank: backward_attentions(course.speed) for rank, course in courses.items()}
    each = [us / max(kernel_speeds(run).get(rank, 1.0), 1.0) for rank, (_, us) in told.items()]
    if not each or not 0 < max(each) <= limit("layers", "alike") * min(each):
        return {}
    return {rank: count // micro for rank, (count, _) in told.items() if count >= micro and count % micro == 0}


def _usual(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else 0.0


def _typical(values: list[float], blind: bool) -> float:
    """Median; of two the lesser, for one slow rank must not stand for what the stage was given to do. So must half of
    them not, where nothing tells how fast their kernels are (`blind`): the fastest rank shows what the work needs."""
    return float(np.median(values)) if len(values) > 2 and not blind else min(values)


def micro_batches(run: Run) -> int | None:
    """Micro-batches per step: receives of a rank in the first or last stage, which receives once for each; of the
    operations that communication.json lists, else of the kernels. Of interleaved stages so many times as each passes a
    chunk: fill and drain take that part of its work."""
    if (told := chunks(run)) is not None:
        return told[0] * told[1]
    counts = [] if run.each(EXCHANGES) else _among_kernels(run)
    for ends, receives, both in _received(run):
        if receives:
            counts.append(receives / (1 if ends else 2))
        elif both and ends:
            counts.append(both / 2)
    return round(float(np.median(counts))) or None if counts else None


def _received(run: Run) -> list[tuple[bool, float, float]]:
    """Of each rank of a stage: whether that is the first or the last one, its receives a step, and those operations
    that send and receive in one."""
    layout, found = partition(run), []
    last = (layout.pipeline or 1) - 1
    for rank, ex in run.each(EXCHANGES).items():
        stage = layout.stage.get(rank)
        if stage is None or last < 1:
            continue
        names = step_names(run, list(ex.steps))
        inside = np.array([s in names for s in ex.steps])[ex.step] if len(ex.step) else np.empty(0, bool)
        receives, both = (
            int((inside & (ex.kinds() == kind)).sum()) * ex.scale / max(len(names), 1)
            for kind in ("receive", "batchsendrecv")
        )
        found.append((stage in (0, last), receives, both))
    return found


@computed
def chunks(run: Run) -> tuple[int, int] | None:
    """(micro-batches, chunks of layers a stage) where the last stage hands over to the first: an inner stage receives
    for each chunk and micro-batch twice, forward and backward, the first and the last one once less for each
    micro-batch. None where receives do not tell."""
    received = _received(run) if is_interleaved(run) else []
    inner, outer = ([count for ends, count, _ in received if ends is outside] for outside in (False, True))
    if not inner or not outer:
        return None
    twice = round(float(np.median(inner)))
    micro = twice - round(float(np.median(outer)))
    stages = partition(run).pipeline or 1
    # they take turns in groups of as many micro-batches as stages
    if micro < 1 or micro % stages or twice % (2 * micro) or twice < 4 * micro:
        return None
    return micro, twice // (2 * micro)


def _among_kernels(run: Run) -> list[float]:
    """Receives per step of each rank of the first and last stage, as far as its kernels show them by name."""
    layout = partition(run)
    ends = {0, (layout.pipeline or 1) - 1}
    found = []
    for rank, course in run.each(COURSE).items():
        if course.chain is not None and len(ends) > 1 and layout.stage.get(rank) in ends:
            found.append(float(sum(kind_of(name) == "receive" for name in course.chain.name if name)))
    return [count for count in found if count]


def most_in_flight(run: Run) -> int | None:
    """Micro-batches between the first stage's forward and backward at once, at most: with one forward, one backward as
    many as there are stages. None where no rank of the first stage tells."""
    layout = partition(run)
    chains = [c.chain for rank, c in run.each(COURSE).items() if c.chain is not None and layout.stage.get(rank) == 0]
    told = [] if is_interleaved(run) else [count for count in map(in_flight, chains) if count]
    return max(told, default=None)


def hops_us(run: Run) -> tuple[float, float]:
    """(what one transfer between stages takes, what its bytes need of it at the speed that the links reach),
    microseconds: medians of sends and exchanges."""
    times, least, rates = [], [], link_rates(run)
    for ex in run.each(EXCHANGES).values():
        moving = np.isin(ex.kinds(), ("send", "batchsendrecv")) & (ex.transit_us > 0)
        if moving.any():
            times.append(float(np.median(ex.transit_us[moving])))
            speed = np.array([rates.get(name, np.nan) for name in ex.transport])[moving] if ex.transport else np.nan
            needed = np.fmin(ex.size_bytes[moving] / speed * 1e6, ex.transit_us[moving])
            least.append(float(np.median(needed)))
    return (float(np.median(times)), float(np.median(least))) if times else (0.0, 0.0)


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
                 "the others; else 0",
         needs=_NEEDS),
    kind("stage.bubble_us", "us", "stage", "waiting for other stages, per step (S31)",
         formula="exposed time in Receive and batchSendRecv; Bubble or receive_alone_time where kernels are not told",
         needs=_NEEDS),
    kind("stage.bubble_share", "ratio", "stage", "the same as a share of the step", needs=_NEEDS),
    kind("stage.bubble_excess_share", "ratio", "stage", "bubble above the schedule's own minimum, share of the step",
         formula="bubble − pipeline.bubble_minimum_share of the step − 2 (m+p−1) transfers between stages; where "
                 "layers are known no less is the schedule's own than what stages need that no whole layer evens out",
         needs=_NEEDS),
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
                 "gradients longer by the layers that a stage takes on; no more than step − (the schedule's own length "
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
         "what the step gains by even stages once no rank is late: while all wait for a rank, nobody waits for a stage",
         formula="replay with late ranks and stages put right, bounded as stage.saving_us − with late ranks alone",
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
    times = steady(run)
    micro = micro_batches(run)
    if len(found) < 2:
        yield from fact("pipeline.micro_batches", RUN, micro, *next(iter(times.values())).sources_of("computing"))
        return
    sources = next(iter(times.values())).sources_of("computing")
    n = min(len(t.steps) for t in times.values())
    split = partition(run)
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
    behind = _behind_late(run)
    furthest = max(stage.given - target for stage, target in zip(found, targets, strict=True))
    for stage, after in zip(found, even, strict=True):
        subject, target = Subject("stage", str(stage.index), stage.ranks), after.work
        yield from fact("stage.index", subject, stage.index)
        yield from fact("stage.computing_us", subject, stage.computing, *sources, samples=n)
        yield from fact("stage.work_us", subject, stage.work, *sources, samples=n)
        yield from fact("stage.work_ratio", subject, stage.work / mean, *sources, samples=n)
        yield from fact("stage.apart_ranks", subject, _witnesses(stage, found), *sources, samples=n)
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


def _witnesses(stage: Stage, found: Sequence[Stage]) -> int:
    """Ranks of every stage at least that show this one to have more work: none where one of them does not."""
    others = [other for other in found if other is not stage]
    apart = min(stage.computing_of.values()) > max(max(other.computing_of.values()) for other in others)
    return min(len(each.ranks) for each in found) if apart else 0


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
    for goes with them. Of layers that a stage takes on the gradients are reduced there as well; what a stage that gives
    layers saves of these is known only where gradients are reduced layer by layer."""
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
        if purpose in _OF_LAYERS or (stage in told and growth[stage] > 1):
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
    least = pipeline_us(targets, fitting, [hops_us(run)[0]] * (len(found) - 1)) + min(one.behind for one in found)
    return max(step - least, 0.0)


def together(late: Mapping[int, Change], evened: Mapping[int, Change]) -> dict[int, Change]:
    """Late ranks on time, and the stages' work even."""
    both = {rank: late[rank].times(change) if rank in late else change for rank, change in evened.items()}
    return {**late, **both}


def _behind_late(run: Run) -> float | None:
    """Microseconds a step gains by even stages once nobody is late any more: while all wait for one rank, nobody waits
    for a stage. None without a replay, or where nobody knows what a rank is late from."""
    step, evened = model(run), evened_stages(run)
    late = [entry for entry in latenesses(run).values() if entry.late_us > 0 and entry.cause != "unknown"]
    repaired = corrections(run, late) if late else None
    if step is None or evened is None or repaired is None or not set(evened) <= set(step.chains):
        return None
    alone, both = gain(step, repaired), gain(step, together(repaired, evened), moved_transfers(run))
    if alone is None or both is None:
        return None
    room = room_for_evening(run, slow_among(late))
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


def is_interleaved(run: Run) -> bool:
    """Whether the last stage hands over to the first: then each holds several chunks of layers, and which of these has
    too many the replay does not know. It makes all of a stage alike shorter, and what it gains is no bound."""
    step, layout = chained(run), partition(run)
    last = (layout.pipeline or 1) - 1
    if step is None or last < 2:
        return False
    ends = {0, last}
    return any(
        {layout.stage.get(rank) for rank in events} == ends
        and all(kind_of(step.chains[rank].name[event]) in POINT_TO_POINT for rank, event in events.items())
        for events in step.members
    )


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
