"""What the longest stage computes beside its layers and other stages do not: an embedding, a head, a loss. Each
micro-batch goes through every stage, so the one that takes longest sets the pace of all, and where its layers are fewer
than one too many no layer that moves evens that out.

Matrix products have to be done by somebody: at best all stages share them, as they do where head and embedding are cut
by vocabulary. What else it runs may take a small part of its time: gathers fused, tables cut, a loss in one kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.peers import kernel_speeds, weight
from advisor.facts.cluster.pipeline.relief import relief_us, relieved
from advisor.facts.cluster.pipeline.stages import Stage, micro_batches, stages_of
from advisor.facts.cluster.replay import Change
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.device.course import COURSE, Course
from advisor.facts.operators.kinds import (
    is_attention,
    is_expert,
    is_fused_exchange,
    is_grouped_product,
    is_matrix_product,
    is_update,
)  # fmt: skip
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Subject

KINDS = (
    kind("stage.beside_us", "us", "stage", "what the stage with the most work computes beside its layers in every "
         "micro-batch, and the others do not",
         formula="kernels of a type beyond those of the stage with the least work a layer, that many for each layer, "
                 "at the usual speed of its ranks; no more than the work beyond its layers", needs="kernels"),
    kind("stage.beside_operators", "list", "stage", "operator types that account for it, with the shapes of the "
         "longest", needs="kernels"),
    kind("stage.beside_saving_us", "us", "stage", "what the step gains at most where all stages share the matrix "
         "products among these, and the rest takes no time",
         formula="replay of the step with less of it in this stage; without kernels the schedule now against then",
         needs="kernels"),
    kind("stage.beside_saving_share", "ratio", "stage", "the same as a share of the step", needs="kernels"),
    kind("stage.beside_alone_share", "ratio", "stage", "the same where the matrix products stay as they are, share of "
         "the step", needs="kernels"),
)  # fmt: skip
EDGE = limit("lateness", "edge")
"""Part of it that a type has to have to be named."""
MOST_NAMED = 3


class Beside(Struct, frozen=True):
    """What one stage computes beside its layers, microseconds a step."""

    stage: Stage
    products: float
    rest: float
    operators: tuple[str, ...]

    def freed(self, stages: int, products: bool = True) -> dict[int, float]:
        """Stage -> microseconds it has less to do once the rest is gone and, or not, all of them share the products."""
        part = self.products / stages if products else 0.0
        own = self.rest + (self.products if products else 0.0)
        return {index: (own if index == self.stage.index else 0.0) - part for index in range(stages)}


@computed
def beside_layers(run: Run) -> Beside | None:
    """What the stage with the most work runs beside its layers; None where layers, kernels or shapes of a stage are not
    told, without which a head's products are like its layers', or where it runs nothing that the others do not."""
    stages, micro = stages_of(run), micro_batches(run)
    courses = run.each(COURSE)
    shaped = {rank for rank, course in courses.items() if any(shapes for _, shapes in course.speed)}
    told = [stage for stage in stages if stage.layers and shaped >= set(stage.ranks)]
    if not micro or len(told) < max(len(stages), 2):
        return None
    heavy = max(told, key=lambda stage: stage.given)
    usual = min(told, key=lambda stage: stage.given / (stage.layers or 1))
    grown = (heavy.layers or 1) / (usual.layers or 1)
    most = heavy.given - grown * usual.given
    if heavy is usual or most <= 0:
        return None
    other = usual.ranks[0]
    slower = {rank: max(kernel_speeds(run).get(rank, 1.0), 1.0) for rank in (*heavy.ranks, other)}
    mine = [_beyond(courses[rank], courses[other], grown, slower[rank] / slower[other]) for rank in heavy.ranks]
    skipped = _told_elsewhere(run, heavy.ranks)
    totals = {
        name: float(np.median([each.get(name, 0.0) / slower[rank]
                               for rank, each in zip(heavy.ranks, mine, strict=True)]))
        for name in {name: None for each in mine for name in each}
        if name not in skipped and _each_micro_batch(courses[heavy.ranks[0]], name, micro)
    }  # fmt: skip
    totals = {name: us for name, us in totals.items() if us > 0}
    whole = sum(totals.values())
    if not whole:
        return None
    fit = min(most / whole, 1.0)
    products = sum(us for name, us in totals.items() if _is_product(name))
    ranked = sorted((name for name in totals if totals[name] >= EDGE * whole), key=lambda name: (-totals[name], name))
    named = tuple(with_shapes(name, courses[heavy.ranks[0]], courses[other], grown) for name in ranked[:MOST_NAMED])
    return Beside(heavy, products * fit, (whole - products) * fit, named)


def _is_product(name: str) -> bool:
    return is_matrix_product(name) or is_attention(name) or is_grouped_product(name) or is_expert(name)


def _beyond(own: Course, other: Course, grown: float, pace: float) -> dict[str, float]:
    """Type -> microseconds a step that a rank's kernels take beyond so many times the other's, at its own speed."""
    more: dict[str, float] = defaultdict(float)
    for key in own.speed:
        more[key[0]] += _excess(key, own, other, grown)
    for key, entry in other.speed.items():
        if key not in own.speed:
            more[key[0]] -= grown * weight(entry) * pace
    return more


def _excess(key: tuple[str, str], own: Course, other: Course, grown: float) -> float:
    """Microseconds a step that kernels of a type and shape take beyond so many times as many as the other rank has."""
    count, lasts = own.speed[key]
    return (count - grown * other.speed.get(key, (0.0, 0.0))[0]) * lasts


def _each_micro_batch(course: Course, name: str, micro: int) -> bool:
    """Whether kernels of the type run as often as micro-batches, at least: what runs once a step holds up nobody in
    each of them."""
    return sum(count for (kind, _), (count, _) in course.speed.items() if kind == name) >= micro


def _told_elsewhere(run: Run, ranks: tuple[int, ...]) -> set[str]:
    """Types that are no work of the stage's own: updates of weights, exchanges, in which ranks wait, and what runs on
    the AI CPU, which is a fault by itself wherever it runs."""
    names = {name for rank in ranks for name, _ in run.each(COURSE)[rank].speed}
    aicpu = {
        name
        for rank in ranks
        if (found := run.each(OPERATORS).get(rank)) is not None
        for name, row in found.types.items()
        if row.aicpu.us > 0
    }
    return aicpu | {name for name in names if is_update(name) or is_fused_exchange(name)}


def with_shapes(name: str, own: Course, other: Course, grown: float) -> str:
    """The type with the shapes of which it runs longest beyond `grown` times what the other rank does: the layers' own
    may take longer in all."""
    beyond = [(_excess((kind, shapes), own, other, grown), shapes)
              for kind, shapes in own.speed if kind == name and shapes]  # fmt: skip
    return f"{name} ({max(beyond)[1]})" if beyond else name


def beside_changes(run: Run) -> Mapping[int, Change] | None:
    """What takes it off the stage; None where there is nothing."""
    found = beside_layers(run)
    return None if found is None else relieved(run, found.freed(len(stages_of(run)))) or None


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the stage that computes more beside its layers than others do."""
    step, found = facts.number("step.time_us", RUN), beside_layers(run)
    if not step or found is None:
        return
    count = len(stages_of(run))
    sources = next(iter(steady(run).values())).sources_of("computing")
    subject = Subject("stage", str(found.stage.index), found.stage.ranks)
    saving = relief_us(run, found.freed(count))
    alone = relief_us(run, found.freed(count, products=False))
    yield from fact("stage.beside_us", subject, found.products + found.rest, *sources)
    yield from fact("stage.beside_operators", subject, found.operators, *sources)
    yield from fact("stage.beside_saving_us", subject, saving, *sources)
    yield from fact("stage.beside_saving_share", subject, saving / step, *sources)
    yield from fact("stage.beside_alone_share", subject, alone / step, *sources)


FAMILIES = (
    Family(
        "beside_layers",
        KINDS,
        measure,
        uses=(STEPS, EXCHANGES, COURSE, OPERATORS),
        after=("parallelism", "stages"),
    ),
)
