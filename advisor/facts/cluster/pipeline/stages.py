"""Pipeline stages: what each was given to do, and the micro-batches and chunks of layers that pass through them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from advisor.facts.base import Reduction, Run, computed
from advisor.facts.cluster.accounts import accounts
from advisor.facts.cluster.meetings import build
from advisor.facts.cluster.peers import kernel_speeds
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, Exchanges, kind_of
from advisor.facts.collectives.exposure import exposures, step_names
from advisor.facts.collectives.inherent import link_rates
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.schedule import in_flight, most_under_way, pipeline_us
from advisor.facts.device.course import COURSE, Course
from advisor.facts.operators.attention import backward_attentions
from advisor.facts.step.steps import steady
from advisor.knowledge.measuring import limit
from advisor.model import Source
from advisor.sources.base import Rank


class Work(Struct, frozen=True):
    """Floating-point work of one rank's share of the model."""

    flop: float
    sources: tuple[Source, ...]


WORK = Reduction("stages", Work)
OF_LAYERS = ("tensor", "context", "expert", "exchange")
"""Purposes of collectives that layers wait for: whoever takes on a layer takes on its transfers."""


def reduce_work(rank: Rank) -> Work | None:
    """FLOPs of the rank, where the older files tell."""
    frame = rank.read("flops")
    if frame is None or frame.empty or not (frame["flop"] > 0).any():
        return None
    return Work(float(frame["flop"].max()), (rank.source("flops", "flop"),))


class Stage(Struct):
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
            for roles in (("tensor",), OF_LAYERS, ("data", "weights"))
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
    received = _received(run)
    # an inner rank receives from two sides, under names that may be the same: a file then lists one of both
    for ends, receives, both in [each for each in received if each[0]] or received:
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
            float(ex.weight[inside & (ex.kinds() == kind)].sum()) / max(len(names), 1)
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


def stages_in_order(run: Run) -> int | None:
    """As many stages as let a rank with a neighbour behind it have so many micro-batches on the way: with one forward,
    one backward as many as it and the stages behind it are. What ranks without a profile hand over to, nobody else
    tells. None where all ranks of the pipelines are at hand, and where no rank takes a gradient back before its last
    forward: it may have any number on the way."""
    exchanges, layout, most = run.each(EXCHANGES), partition(run), 0
    if not layout.chains or all(rank in exchanges for chain in layout.chains for rank in chain):
        return None
    for chain in layout.chains:
        for place, (rank, following) in enumerate(pairwise(chain)):
            ex: Exchanges | None = exchanges.get(rank)
            if ex is None:
                continue
            pair = [set(layout.groups.get(group, ())) == {rank, following} for group in ex.groups]
            mine, kinds = np.array(pair, bool)[ex.group], ex.kinds()
            if not ex.keeps(mine):
                continue
            for step in range(len(ex.steps)):
                onward, back = (mine & (ex.step == step) & (kinds == kind) for kind in ("send", "receive"))
                under_way = most_under_way(ex.start_ns[onward] / 1000, ex.start_ns[back] / 1000 + ex.elapsed_us[back])
                if under_way is not None and under_way < onward.sum():
                    most = max(most, place + under_way)
    return most or None


@computed
def hops_us(run: Run) -> tuple[float, float]:
    """(what one transfer between stages takes, what its bytes need of it at the speed that the links reach),
    microseconds: medians of sends and exchanges, no more than a way through all stages and back leaves room for in the
    step: what is longer holds waiting for the other side."""
    times, least, rates = [], [], link_rates(run)
    for ex in run.each(EXCHANGES).values():
        moving = np.isin(ex.kinds(), ("send", "batchsendrecv")) & (ex.transit_us > 0)
        if moving.any():
            times.append(float(np.median(ex.transit_us[moving])))
            speed = np.array([rates.get(name, np.nan) for name in ex.transport])[moving] if ex.transport else np.nan
            needed = np.fmin(ex.size_bytes[moving] / speed * 1e6, ex.transit_us[moving])
            least.append(float(np.median(needed)))
    if not times:
        return 0.0, 0.0
    room = room_for_hops(run)
    return min(float(np.median(times)), room), min(float(np.median(least)), room)


@computed
def room_for_hops(run: Run) -> float:
    """Microseconds that each hand-over takes at most: those before the last stage begins and behind its end are in
    nobody's shade. Infinite where the stages are not all at hand."""
    found, micro, parts = stages_of(run), micro_batches(run), chunks(run)
    if len(found) < 2 or len(found) != partition(run).pipeline or not micro:
        return np.inf
    step = max(float(np.median(times.time)) for times in steady(run).values())
    batches, held = parts or (micro, 1)
    computing = pipeline_us([stage.work for stage in found], batches, chunks=held)
    return max(step - computing, 0.0) / (2 * (len(found) - 1))


def is_interleaved(run: Run) -> bool:
    """Whether the last stage hands over to the first: then each holds several chunks of layers, and which of these has
    too many the replay does not know. It makes all of a stage alike shorter, and what it gains is no bound."""
    step, layout = build(run), partition(run)
    last = (layout.pipeline or 1) - 1
    if step is None or last < 2:
        return False
    ends = {0, last}
    return any(
        {layout.stage.get(rank) for rank in events} == ends
        and all(kind_of(step.chains[rank].name[event]) in POINT_TO_POINT for rank, event in events.items())
        for events in step.members
    )
