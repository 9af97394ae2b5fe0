"""Gradient AllReduce: how much of it backward hides, and how to split it so that it hides more (S19, S63)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, compress, pairwise
from statistics import median_low

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Mask
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.collectives.accumulation import (
    UntilReduced,
    accumulates,
    reduced_again,
    until_reduced,
    whole_gradients,
)
from advisor.facts.collectives.exchanges import EXCHANGES, REDUCTIONS
from advisor.facts.collectives.exposure import exposed_of, exposures, joints
from advisor.facts.collectives.joints import Joint
from advisor.facts.collectives.link_speed import differ, fit
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.course import COURSE
from advisor.facts.operators.kinds import shapes
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source

BACKWARD_SHARE = limit("gradients", "backward_work") / (1 + limit("gradients", "backward_work"))
"""Part of the computation that is backward."""
MOST_SEGMENTS = int(limit("gradients", "most_segments"))
APART = limit("gradients", "apart")
"""Largest ÷ smallest bucket from which their times tell what starting one takes."""
GRADIENT_SHARE = limit("accumulation", "gradient_share")
"""Of the largest reduction, below which one is no gradient."""
GRANULE = int(limit("gradients", "granule"))
"""Weights whose gradients are ready together: a layer's matrix and its bias or scale, at least."""
_OPTIMIZERS = ("adam", "momentum", "sgd", "lamb", "lars", "adagrad", "rmsprop", "ftrl", "applygradient")


class Split(Struct, frozen=True):
    """A proposal for all_reduce_fusion_config: the last weight of each segment, and what stays exposed."""

    indices: tuple[int, ...]
    exposed_us: float


def exposed_after(
    indices: Sequence[float], weights: float, backward_us: float, transfer_us: float, latency_us: float
) -> float:
    """What outlasts backward when gradients are reduced in these segments, microseconds.

    Gradients become ready evenly over backward; a segment starts when its last gradient is ready and the one before
    it has finished, and takes latency + its share of the transfer.
    """
    segments = (
        (backward_us * last / weights, latency_us + transfer_us * (last - begin) / weights)
        for begin, last in pairwise((0.0, *indices))
    )
    return _outlasting(segments, backward_us)


def exposed_promptly(buckets_us: Sequence[float], backward_us: float) -> float:
    """What outlasts backward when each of these buckets (their transfers, microseconds) is reduced as soon as its
    gradients are ready: of even buckets the last one, which nothing can hide."""
    whole = sum(buckets_us) or 1.0
    ready = (backward_us * moved / whole for moved in accumulate(buckets_us))
    return _outlasting(zip(ready, buckets_us, strict=True), backward_us)


def propose_fusion(present_us: Sequence[float], backward_us: float, start_up_us: float) -> tuple[int, float] | None:
    """(buckets, microseconds gained) of fewer and larger buckets than these (their transfers): those that leave least
    exposed. No more is gained than the start-ups that go; None where nothing is.

    Gradients become ready evenly over backward, with the present buckets as with the larger ones.
    """
    moving = sum(max(us - start_up_us, 0.0) for us in present_us)
    now = exposed_promptly(present_us, backward_us)
    found = [
        (count, min(now - exposed_promptly([start_up_us + moving / count] * count, backward_us), gone))
        for count in range(1, min(MOST_SEGMENTS, len(present_us) - 1) + 1)
        if (gone := (len(present_us) - count) * start_up_us) > 0
    ]
    best = max(found, key=lambda one: one[1], default=(0, 0.0))
    return best if best[1] > 0 else None


def _outlasting(segments: Iterable[tuple[float, float]], backward_us: float) -> float:
    """What outlasts backward of segments that run one by one, each from when it is ready; (ready, lasts) of each."""
    end = 0.0
    for ready, lasts in segments:
        end = max(end, ready) + lasts
    return max(end - backward_us, 0.0)


def propose_split(
    weights: int, backward_us: float, transfer_us: float, latency_us: float, present: Sequence[float] = ()
) -> Split | None:
    """The split that leaves least exposed with as few segments as give nearly all of the gain; None where it would be
    coarser than the one at present (its buckets' transfers, microseconds), or gain nothing on it.

    Segments end between granules: gradients of one layer are ready together, so that none of them can be hidden by
    another. Each further segment must hide a part of the whole that is worth its start-up.
    """
    whole = latency_us + transfer_us
    granules = max(weights // GRANULE, 1)
    best, left = None, exposed_promptly(present or (whole,), backward_us)
    for count in range(max(2, len(present)), min(MOST_SEGMENTS, granules) + 1):
        indices = _shrinking(count, granules, backward_us, transfer_us, latency_us)
        exposed = exposed_after(indices, granules, backward_us, transfer_us, latency_us)
        if left - exposed < limit("gradients", "worth") * whole:
            break
        best, left = Split((*(GRANULE * index for index in indices[:-1]), weights), exposed), exposed
    return best


def _shrinking(count: int, weights: int, backward_us: float, transfer_us: float, latency_us: float) -> tuple[int, ...]:
    """Segments such that each one finishes when the next becomes ready: the last is the smallest possible."""
    # A segment of n weights is hidden by backward over the next n' weights: latency + T n / W = B n' / W.
    rate_back, rate_move = backward_us / weights, transfer_us / weights
    low, high = 1e-6, float(weights)
    for _ in range(60):
        first = (low + high) / 2
        sizes, total = [first], first
        for _ in range(count - 1):
            sizes.append(max((latency_us + rate_move * sizes[-1]) / max(rate_back, 1e-9), 0.0))
            total += sizes[-1]
        if total > weights:
            high = first
        else:
            low = first
    sizes = [s * weights / total for s in sizes]
    ends = np.round(np.cumsum(sizes)).astype(int)
    ends[-1] = weights
    # each segment has a weight at least, also where so few are told that the small last ones round to none
    indices: list[int] = []
    for i, end in enumerate(ends.tolist()):
        indices.append(min(max(end, (indices or [0])[-1] + 1), weights - (count - 1 - i)))
    return tuple(indices)


class Gradients(Struct):
    """The gradient collectives of a typical rank, per step."""

    count: float
    transfer_us: float
    exposed_us: float | None
    size: float | None
    latency_us: float | None
    """None where all are of one size, which tells start-up from bandwidth of none."""
    start_up_us: float | None
    """The same where sizes are far apart and no member's file is missing: as good as a promise may rest on."""
    buckets_us: tuple[float, ...]
    """The transfer of each in the order of a step; empty where no single step tells."""
    share: float
    """Part of the steps that reduce any: in the others no backward pass hides anything, and nothing is to be hidden."""
    sources: tuple[Source, ...]
    samples: int


def gradients(run: Run, among: Collection[int] | None = None) -> Gradients | None:
    """Collectives over which gradients are summed: reductions of data-parallel groups, or of those `among` some ranks.

    Where a member's file is missing and no transit time was recorded, all may be waiting for that one: those are left
    out. Where they wait for it longer than they transfer, what is exposed is the waiting, and tells of no split. And
    where steps that reduce nothing may update weights, these are what is reduced in the others.
    """
    layout = partition(run)
    chosen = [
        j for j in joints(run)
        if j.kind in REDUCTIONS and layout.role_of(j.group) == "data"
        and (among is None or all(rank in among for rank in j.ranks))
        and ((j.complete and len(j.ranks) > 1) or np.isfinite(j.transit_us).any())
    ]  # fmt: skip
    if not chosen or (chosen[0].quiet and not accumulates(run)):
        return None
    per_rank: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    alphas, sure = [], []
    largest = max((float(np.nanmax(j.size_bytes)) for j in chosen if np.isfinite(j.size_bytes).any()), default=0.0)

    def whole(joint: Joint) -> Mask:
        """Without what is no gradient: a loss, a norm, the statistics that a normalisation shares in each layer."""
        told = np.where(np.isfinite(joint.size_bytes), joint.size_bytes, -1.0).max(axis=1)
        return np.asarray((told < 0) | (told >= GRADIENT_SHARE * largest))

    for joint in chosen:
        kept = whole(joint)
        part = joint.per_step[kept]
        shortest = joint.transfer_us
        if np.isfinite(joint.size_bytes).any(axis=1).all() and differ(sizes := np.nanmean(joint.size_bytes, axis=1)):
            alphas.append(fit(sizes, shortest)[0])
            if joint.complete and sizes.max() >= APART * sizes.min():
                sure.append(alphas[-1])
        for rank in joint.ranks:
            entry = per_rank[rank]
            entry[0] += float(part.sum())
            entry[1] += float(shortest[kept] @ part)
            entry[2] += float(np.nansum(joint.size_bytes[kept], axis=1) @ part) / len(joint.ranks)
    count, transfer, size = np.median(np.array(list(per_rank.values())), axis=0)
    found = exposures(run)
    # The last to arrive never waits, so what it exposes tells the order of work; the others are exposed by waiting.
    absent = sum(float((j.pure_us - j.transfer_us) @ j.per_step) for j in chosen)
    awaited = absent > sum(float(j.transfer_us @ j.per_step) for j in chosen)
    members = [found[r] for r in per_rank if r in found]
    # the last one's kernels may be those that are missing
    unclear = len({member.known for member in members}) > 1 or not all(member.told for member in members)
    small = sum(
        exposed_of(run, "data", reduction, rows=lambda joint: ~whole(joint)) or 0.0
        for reduction in sorted({j.kind for j in chosen if not whole(j).all()})
    )
    exposed = [] if awaited or unclear else [max(m.transfer.get("data", 0.0) - small, 0.0) for m in members]
    first = chosen[0]
    return Gradients(
        float(count), float(transfer), min(exposed, default=None), float(size) or None,
        float(np.median(alphas)) if alphas else None, float(np.median(sure)) if len(sure) == len(chosen) else None,
        _buckets(chosen, first.ranks[0]), max(j.share for j in chosen), first.sources, len(first.names),
    )  # fmt: skip


def _buckets(chosen: Sequence[Joint], rank: int) -> tuple[float, ...]:
    """The transfers of this rank's buckets in a step, in order of their start, microseconds: those of the step with the
    middle number of them."""
    found: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for joint in chosen:
        if rank in joint.ranks and joint.is_whole:
            column = joint.ranks.index(rank)
            sizes = np.nan_to_num(joint.size_bytes[:, column], nan=np.inf)
            rows = zip(joint.start_ns[:, column].tolist(), joint.transfer_us.tolist(), sizes.tolist(), strict=True)
            for step, row in zip(joint.steps, rows, strict=True):
                found[step].append(row)
    if not found:
        return ()
    by_number = sorted(found, key=lambda step: (len(found[step]), step))  # whatever order the file has them in
    _, transfers, of_size = zip(*sorted(found[by_number[len(found) // 2]]), strict=True)
    return tuple(compress(transfers, whole_gradients(np.array(of_size)).tolist()))


def count_weights(run: Run, collectives: float = 0.0, among: Collection[int] | None = None) -> int | None:
    """Trainable weights, of all ranks or some `among` them: the optimizer's kernels in a step, one a weight; None where
    they are fused or not told. A weight has one gradient, so that fewer of them than `collectives` are kernels of many
    weights each; and a matrix keeps its shape: kernels of flat arrays alone are buffers into which weights were laid
    one behind the other. Where no shapes are told, kernels no more than the segments of a split may be either.
    """
    courses = run.each(COURSE)
    counts = []
    for course in (course for rank, course in courses.items() if among is None or rank in among):
        updates = [
            (count, shape) for (name, shape), (count, _) in course.speed.items()
            if any(word in name.lower() for word in _OPTIMIZERS) and "foreach" not in name.lower()
        ]  # fmt: skip
        kernels = sum(count for count, _ in updates)
        told = [dimensions for _, shape in updates if any(dimensions := shapes(shape) or ())]
        single = any(len(each) > 1 for dimensions in told for each in dimensions) if told else kernels > MOST_SEGMENTS
        if kernels >= 2 and single:
            counts.append(kernels)
    count = round(median_low(counts)) if counts else 0  # a rank whose steps were lost counts too many
    return count if count and count >= collectives else None


def _computing(run: Run, among: Collection[int] | None = None) -> list[float]:
    """Forward and backward of each rank, or each `among` them, microseconds a step; the older trace names them so."""
    times = [times for rank, times in steady(run).items() if among is None or rank in among]
    for phase in ("computing", "fp_bp"):
        found = [share * float(np.median(t.time)) for t in times if (share := t.share(phase)) is not None]
        if found:
            return found
    return []


def _backward_us(run: Run, before: Sequence[UntilReduced], among: Collection[int] | None) -> float | None:
    """The course of backward in a step, microseconds; None where nothing tells what is computed."""
    computing = _computing(run, among)
    if not computing:
        return None
    done = min(float(np.median(computing)), float(np.median([b.computed_us for b in before] or [np.inf])))
    return BACKWARD_SHARE * done


def _done_last(run: Run, facts: FactSet) -> frozenset[int] | None:
    """Ranks of the stage that is done with its gradients last, for which the step waits; None where there are no
    stages, or some ranks' are not told, or no kernels tell what each of them exposes.

    The last backward pass reaches the first stage last: each later stage starts to reduce earlier by what those before
    it still compute of that pass.
    """
    layout = partition(run)
    ranks = run.each(EXCHANGES).keys()
    if (layout.pipeline or 1) < 2 or layout.guessed or layout.apart or not ranks <= layout.stage.keys():
        return None
    shown = exposures(run)
    if not all(rank in shown and shown[rank].known for rank in ranks):
        return None
    passes = forward_passes(run, facts) * (facts.number("pipeline.chunks", RUN) or 1)
    earlier, ends = 0.0, dict[frozenset[int], float]()
    for stage in sorted({layout.stage[rank] for rank in ranks}):
        among = frozenset(rank for rank in ranks if layout.stage[rank] == stage)
        found = gradients(run, among)
        backward = _backward_us(run, until_reduced(run, among), among)
        if backward is None or (found is not None and found.exposed_us is None):
            return None
        if found is not None:
            ends[among] = (found.exposed_us or 0.0) - earlier
        earlier += backward / passes
    return max(ends, key=lambda among: ends[among], default=None)


_NEEDS = "collectives"
KINDS = (
    kind("allreduce.count", "count", "run", "gradient collectives of a rank per step, as all of allreduce.* of the "
         "stage that is done with them last", needs=_NEEDS),
    kind("allreduce.transfer_us", "us", "run", "their transfer per step", formula="Σ shortest elapsed over members",
         needs=_NEEDS),
    kind("allreduce.repeats", "count", "run", "times a step reduces all gradients; once is enough",
         formula="repetitions of one sequence of sizes, a forward and a backward pass before each",
         needs="collectives kernels"),
    kind("allreduce.early_exposed_us", "us", "run",
         "what all these repetitions but the last expose on the rank that hides most, per step; where they queue, what "
         "is exposed beyond the last one behind its own backward pass",
         needs="collectives kernels"),
    kind("allreduce.size_bytes", "bytes", "run", "what one of them moves, mean", needs="transports"),
    kind("allreduce.exposed_us", "us", "run", "their transfer that nothing hides on the rank that hides most, per step",
         needs=_NEEDS),
    kind("allreduce.exposed_share", "ratio", "run", "the same as a share of the step", needs=_NEEDS),
    kind("allreduce.hidden_share", "ratio", "run", "part of their transfer that computation hides",
         formula="1 − exposed ÷ transfer", needs=_NEEDS),
    kind("allreduce.latency_us", "us", "run", "start-up of one of them", formula="α of transfer = α + size ÷ β",
         needs="transports"),
    kind("allreduce.backward_us", "us", "run", "course of backward, per step",
         formula="two thirds of what is computed before the last gradient collective starts", needs=_NEEDS),
    kind("allreduce.within_share", "ratio", "run", "part of the backward pass that is computed behind the start of the "
         "first gradient collective", needs="collectives kernels",
         formula="computed between the starts of the first and the last ÷ backward_us; the least of the ranks"),
    kind("allreduce.weight_count", "count", "run", "trainable weights",
         formula="optimizer kernels per step; none where they are flat buffers of many weights", needs="kernels"),
    kind("allreduce.prompt_exposed_us", "us", "run",
         "what stays exposed with the present split where each bucket is reduced as soon as its gradients are ready",
         formula="gradients ready evenly over backward, one bucket after the other; the last one stays", needs=_NEEDS),
    kind("allreduce.last_us", "us", "run", "transfer of the last one of a step, which no backward pass is left to hide",
         needs=_NEEDS),
    kind("allreduce.prompt_saving_us", "us", "run", "what the step gains with that",
         formula="exposed now − exposed then", needs=_NEEDS),
    kind("allreduce.proposed_split", "list", "run",
         "all_reduce_fusion_config that hides most (S63), never coarser than the present split",
         formula="segments that finish when the next becomes ready, gradients ready evenly over backward",
         needs=_NEEDS),
    kind("allreduce.proposed_exposed_us", "us", "run", "what stays exposed with it", needs=_NEEDS),
    kind("allreduce.saving_us", "us", "run", "what the step gains with it, or with the present split in time",
         formula="exposed now − the least that either leaves exposed", needs=_NEEDS),
    kind("allreduce.saving_share", "ratio", "run", "the same as a share of the step", needs=_NEEDS),
    kind("allreduce.fused_count", "count", "run", "buckets into which they would be fused with most gain",
         formula="fewer buckets of one size, gradients ready evenly over backward", needs="transports"),
    kind("allreduce.fusing_saving_us", "us", "run", "what the step gains with that",
         formula="least exposed with the present buckets − with those, no more than the start-ups that go and than is "
                 "exposed now", needs="transports"),
    kind("allreduce.hideable_us", "us", "run", "what the last backward pass could hide of the exposed, however split",
         formula="exposed, no more than this pass lasts − what it hides now; kernels named as gradients tell how long "
                 "it is at most", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the gradient collectives and the proposal."""
    among = _done_last(run, facts)
    found = gradients(run, among)
    step_us = facts.number("step.time_us", RUN)
    if found is None or step_us is None:
        return
    src, n = found.sources, found.samples
    yield from fact("allreduce.count", RUN, found.count, *src, samples=n)
    yield from fact("allreduce.transfer_us", RUN, found.transfer_us, *src, samples=n)
    again = reduced_again(run, among)
    if again is not None:
        yield from fact("allreduce.repeats", RUN, again.times, *src, samples=n)
        if not again.queued_bytes:
            yield from fact("allreduce.early_exposed_us", RUN, again.early_us, *src, samples=n)
    if found.size and found.count:
        yield from fact("allreduce.size_bytes", RUN, found.size / found.count, *src, samples=n)
    yield from fact("allreduce.latency_us", RUN, found.latency_us, *src, samples=n)
    weights = count_weights(run, found.count / (again.times if again is not None else 1), among)
    yield from fact("allreduce.weight_count", RUN, weights)
    if found.exposed_us is None or found.transfer_us <= 0:
        return
    yield from fact("allreduce.exposed_us", RUN, found.exposed_us, *src, samples=n)
    yield from fact("allreduce.exposed_share", RUN, found.exposed_us / step_us, *src, samples=n)
    yield from fact("allreduce.hidden_share", RUN, max(1 - found.exposed_us / found.transfer_us, 0.0), *src, samples=n)
    before = until_reduced(run, among)
    backward = _backward_us(run, before, among)
    if backward is None:
        return
    yield from fact("allreduce.backward_us", RUN, backward, *src, samples=n)
    if before and backward > 0:
        within = min(min(b.between_us for b in before) / backward, 1.0)
        yield from fact("allreduce.within_share", RUN, within, *src, samples=n)
    last = backward / forward_passes(run, facts)
    if named := [b.backward_us for b in before if b.backward_us is not None]:
        last = min(last, float(np.median(named)))
    last *= found.share  # of the mean step, as the transfer is
    if again is not None and again.queued_bytes:
        ends = np.cumsum(again.queued_bytes).tolist()
        stays = exposed_after(ends, ends[-1], last, found.transfer_us / again.times, 0.0)
        yield from fact("allreduce.early_exposed_us", RUN, max(found.exposed_us - stays, 0.0), *src, samples=n)
    present = tuple(us * found.share for us in found.buckets_us) if again is None or again.times == 1 else ()
    left = prompt = exposed_promptly(present or (found.transfer_us,), last)
    if present:
        yield from fact("allreduce.prompt_exposed_us", RUN, prompt, *src, samples=n)
        gain = max(found.exposed_us - prompt, 0.0)
        yield from fact("allreduce.prompt_saving_us", RUN, gain, *src, samples=n)
        yield from fact("allreduce.last_us", RUN, present[-1], *src, samples=n)
    starts = (found.start_up_us or 0.0) * found.share
    if present and starts and (fused := propose_fusion(present, last, starts)) is not None:
        yield from fact("allreduce.fused_count", RUN, fused[0], *src, samples=n)
        yield from fact("allreduce.fusing_saving_us", RUN, min(fused[1], found.exposed_us), *src, samples=n)
    split = propose_split(weights or 100, last, found.transfer_us, (found.latency_us or 0.0) * found.share, present)
    if split is not None:
        left = split.exposed_us
        yield from fact("allreduce.proposed_split", RUN, split.indices if weights else None, *src)
        yield from fact("allreduce.proposed_exposed_us", RUN, left, *src)
    saving = max(found.exposed_us - left, 0.0)
    yield from fact("allreduce.saving_us", RUN, saving, *src, samples=n)
    yield from fact("allreduce.saving_share", RUN, saving / step_us, *src, samples=n)
    hidden = max(found.transfer_us - found.exposed_us, 0.0)
    yield from fact("allreduce.hideable_us", RUN, min(found.exposed_us, max(last - hidden, saving)), *src, samples=n)


def forward_passes(run: Run, facts: FactSet) -> float:
    """Of one update: gradients are whole in the last backward pass only. 1 where neither a pipeline nor names tell."""
    if micro_batches := facts.number("pipeline.micro_batches", RUN):
        return micro_batches
    told = [course.passes / max(course.updates, 1) for course in run.each(COURSE).values() if course.passes]
    return max(float(np.median(told)), 1.0) if told else 1.0


FAMILIES = (
    Family("allreduce", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE, OPERATORS), after=("parallelism", "stages")),
)
