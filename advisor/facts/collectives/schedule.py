"""What a pipeline's step takes when one stage has more to do: the schedule itself, run from the stages' work.

For profiles without kernels, which cannot be replayed. A slow stage fills part of its own bubble before it holds up
the others, so the step grows by less than the stage does; with few micro-batches by much less. One forward, one
backward: a stage takes in as many forwards as stages follow it, then alternates (PipeDream, "1F1B").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats
from advisor.facts.collectives.exchanges import kind_of
from advisor.facts.device.chain import Chain
from advisor.knowledge.measuring import limit

BACKWARD_SHARE = limit("gradients", "backward_work") / (1 + limit("gradients", "backward_work"))
"""Part of a micro-batch's work that is backward."""
NOTHING = 1e-9
"""What sums of the same numbers in another order differ by."""


def pipeline_us(work_us: Sequence[float], micro_batches: int, hops_us: Sequence[float] = (), chunks: int = 1) -> float:
    """Duration of a step whose stages compute this long in all, microseconds; a micro-batch takes so long on its way
    between each two stages, forward and backward (`hops_us`), or no time. Where each stage holds several `chunks` of
    layers, all as long, the last stage hands over to the first."""
    stages, m = len(work_us), max(micro_batches, 1)
    order = [_order(stage, stages, m) if chunks == 1 else _interleaved(stage, stages, m, chunks)
             for stage in range(stages)]  # fmt: skip
    cost = {True: 1 - BACKWARD_SHARE, False: BACKWARD_SHARE}
    done: dict[tuple[int, bool, int], float] = {}
    at, place = [0.0] * stages, [0] * stages
    moved = True
    while moved:
        moved = False
        for stage in range(stages):
            while place[stage] < len(order[stage]):
                forward, chunk, micro = order[stage][place[stage]]
                here = chunk * stages + stage
                source = here - 1 if forward else here + 1
                first = not 0 <= source < stages * chunks
                ready = done.get((source, forward, micro), 0.0 if first else None)
                if ready is None:
                    break
                if hops_us and not first:
                    ready += hops_us[min(stage, source % stages, stages - 2)]
                at[stage] = max(at[stage], ready) + work_us[stage] / m / chunks * cost[forward]
                done[here, forward, micro] = at[stage]
                place[stage] += 1
                moved = True
    return max(at, default=0.0)


class Schedule(Struct):
    """The ranks of each pipeline from the first stage to the last, and what each computes, microseconds a step."""

    pipelines: list[tuple[int, ...]]
    work: Mapping[int, float]
    micro_batches: int
    chunks: int
    hop_us: float
    lasts: dict[tuple[int, ...], float] = field(default_factory=dict)
    """Pipeline -> its step as measured."""

    def __post_init__(self) -> None:
        self.lasts = {ranks: self._length(ranks, {}) for ranks in self.pipelines}

    def _length(self, ranks: tuple[int, ...], parts: Mapping[int, float]) -> float:
        work = [self.work[rank] * parts.get(rank, 1.0) for rank in ranks]
        return pipeline_us(work, self.micro_batches, [self.hop_us] * (len(ranks) - 1), self.chunks)

    @property
    def step_us(self) -> float:
        """The longest pipeline, which all others wait for."""
        return max(self.lasts.values())

    def gain_us(self, parts: Mapping[int, float]) -> float:
        """Microseconds a step gains where these ranks compute so much of what they did."""
        then = [self._length(p, parts) if parts.keys() & set(p) else us for p, us in self.lasts.items()]
        return self.step_us - max(then)


class Evened(Struct, frozen=True):
    """A stage once the stages' work is as even as it can be: microseconds a step, and layers where they are known."""

    work: float
    layers: int | None


def evened(work_us: Sequence[float], layers: Sequence[int | None], micro_batches: int | None) -> list[Evened]:
    """The stages once their work is as even as it can be. Where layers are known they move whole, one after the other,
    as long as that makes the schedule shorter: from where they are, and from where the longest stage is as short as
    it gets. What a stage has more than its layers, its head or its embedding, stays; a layer takes what it takes in the
    stage that does least beside its layers, and every stage keeps one. Else the mean, which bounds any split."""
    held = [count for count in layers if count]
    if len(held) < len(layers) or not micro_batches:
        return [Evened(sum(work_us) / len(work_us), None)] * len(work_us)
    layer = min(us / count for us, count in zip(work_us, held, strict=True))
    now = [Evened(us, count) for us, count in zip(work_us, held, strict=True)]
    level = _shortest(now, layer, _unevenness)
    lasts = partial(_length, micro_batches=micro_batches)
    here, there = _shortest(now, layer, lasts), _shortest(level, layer, lasts)
    return here if lasts(here) < lasts(there) * (1 - NOTHING) else there


def _shortest(stages: list[Evened], layer: float, measure: Callable[[Sequence[Evened]], float]) -> list[Evened]:
    """The split in which no layer that moves makes the measure less."""
    while True:
        best = min(_splits(stages, layer), key=measure, default=stages)
        if measure(best) >= measure(stages) * (1 - NOTHING):
            return stages
        stages = best


def _unevenness(stages: Sequence[Evened]) -> float:
    """Sum of squares: least where no layer can go from a longer stage to one that stays shorter with it."""
    return sum(each.work**2 for each in stages)


def _splits(stages: Sequence[Evened], layer: float) -> Iterator[list[Evened]]:
    """Each way to hand one layer to another stage."""
    for source, target in permutations(range(len(stages)), 2):
        if (stages[source].layers or 0) > 1:
            split = list(stages)
            for stage, count in ((source, -1), (target, 1)):
                split[stage] = Evened(stages[stage].work + count * layer, (stages[stage].layers or 0) + count)
            yield split


def _length(stages: Sequence[Evened], micro_batches: int) -> float:
    return pipeline_us([each.work for each in stages], micro_batches)


def _order(stage: int, stages: int, m: int) -> list[tuple[bool, int, int]]:
    """(forward, chunk, micro-batch) in the order in which a stage runs them."""
    ahead = min(stages - 1 - stage, m)
    order = [(True, 0, i) for i in range(ahead)]
    for i in range(m - ahead):
        order += [(True, 0, ahead + i), (False, 0, i)]
    return order + [(False, 0, m - ahead + i) for i in range(ahead)]


def _interleaved(stage: int, stages: int, m: int, chunks: int) -> list[tuple[bool, int, int]]:
    """The same of several chunks, which take turns: as many micro-batches of each as there are stages (Megatron's
    interleaved schedule, whose micro-batches are a multiple of the stages)."""

    def unit(number: int, forward: bool) -> tuple[bool, int, int]:
        turn, place = divmod(number, stages * chunks)
        chunk = place // stages
        return forward, chunk if forward else chunks - 1 - chunk, turn * stages + place % stages

    whole = m * chunks
    ahead = min(2 * (stages - 1 - stage) + (chunks - 1) * stages, whole)
    order = [unit(i, True) for i in range(ahead)]
    for i in range(whole - ahead):
        order += [unit(ahead + i, True), unit(i, False)]
    return order + [unit(whole - ahead + i, False) for i in range(ahead)]


def in_flight(chain: Chain) -> int | None:
    """Micro-batches that the first stage has handed on and not yet got back, at most: each of its sends begins a
    micro-batch's way through the other stages, and the receive of its gradient ends it."""
    kinds = np.array([kind_of(name) if name else "" for name in chain.name])
    return most_under_way(chain.start[kinds == "send"], (chain.start + chain.busy)[kinds == "receive"])


def most_under_way(sent: Floats, back: Floats) -> int | None:
    """How many of those that were sent at these times were not yet back, at most. None where a stage does not send as
    often as it receives, as with interleaved or batched exchanges."""
    if not len(sent) or len(sent) != len(back):
        return None
    sent, back = np.sort(sent), np.sort(back)
    return int((np.arange(1, len(sent) + 1) - np.searchsorted(back, sent, "right")).max())


def guess_micro_batches(work_us: Sequence[float], bubble_us: Sequence[float]) -> int | None:
    """Micro-batches from what the busiest stage waits: it fills and drains the others, one micro-batch of each."""
    busiest = max(range(len(work_us)), key=lambda s: work_us[s])
    others = sum(work_us) - work_us[busiest]
    return max(round(others / bubble_us[busiest]), 1) if bubble_us[busiest] > 0 and others > 0 else None
