"""A stage that computes forward passes again which the others keep: with as many layers it has more work, which no
layer that moves evens out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.pipeline.relief import relief_us, relieved
from advisor.facts.cluster.pipeline.stages import Stage, micro_batches, stages_of
from advisor.facts.cluster.replay import Change
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.device.course import COURSE
from advisor.facts.operators.attention import backward_attentions, forward_attentions
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Subject

KINDS = (
    kind("stage.recomputed_share", "ratio", "stage",
         "part of its layers' forward passes that the backward pass computes again, beyond what the stage with as many "
         "layers does that recomputes least",
         formula="forward kernels of a fused attention ÷ its backward kernels − 1, the least of its ranks",
         needs="kernels"),
    kind("stage.recompute_us", "us", "stage", "its work above that of the stages with as many layers that compute less "
         "of them again", formula="work − median of theirs", needs="kernels"),
    kind("stage.recompute_saving_us", "us", "stage", "what the step gains where it does as much as they do",
         formula="replay of the step with its work as theirs; without kernels the schedule now against then",
         needs="kernels"),
    kind("stage.recompute_saving_share", "ratio", "stage", "the same as a share of the step", needs="kernels"),
)  # fmt: skip


def forward_again(run: Run) -> dict[int, float]:
    """rank -> part of its forward passes that runs once more before the backward pass; ranks without a fused attention,
    or whose kernels are not all at hand, are left out."""
    found = {}
    for rank, course in run.each(COURSE).items():
        forward, (backward, _) = forward_attentions(course.speed), backward_attentions(course.speed)
        if course.complete and forward >= backward > 0:
            found[rank] = forward / backward - 1
    return found


class Heavy(Struct, frozen=True):
    """A stage that computes more of its forward passes again than others with as many layers."""

    stage: Stage
    beyond: float
    """Part of its forward passes that it computes again and the one that does so least does not."""
    usual_us: float
    """The median of these others' work."""

    @property
    def freed(self) -> dict[int, float]:
        """What it has to do above what they have, microseconds a step; nothing where it has no more."""
        return {self.stage.index: self.stage.work - self.usual_us} if self.stage.work > self.usual_us > 0 else {}


@computed
def heavy_stages(run: Run) -> list[Heavy]:
    """The stages that recompute more than others; empty where layers or forward passes of one are not told."""
    again = forward_again(run)
    every = stages_of(run)
    stages = [stage for stage in every if stage.layers and again.keys() >= set(stage.ranks)]
    if len(stages) < max(len(every), 2):
        return []
    parts = {stage.index: min(again[rank] for rank in stage.ranks) for stage in stages}
    found = []
    for stage in stages:
        alike = [one for one in stages if one.layers == stage.layers and parts[one.index] < parts[stage.index]]
        if alike:
            least = min(parts[one.index] for one in alike)
            found.append(Heavy(stage, parts[stage.index] - least, float(np.median([one.work for one in alike]))))
    return found


def relieved_stages(run: Run) -> dict[int, Change] | None:
    """What makes all of them compute as much as the others; None where there is none."""
    return relieved(run, {index: us for heavy in heavy_stages(run) for index, us in heavy.freed.items()}) or None


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the stages that compute more of their forward passes again than others with as many layers."""
    step = facts.number("step.time_us", RUN)
    if not step or not micro_batches(run):
        return
    sources = next(iter(steady(run).values())).sources_of("computing")
    for heavy in heavy_stages(run):
        stage = heavy.stage
        subject = Subject("stage", str(stage.index), stage.ranks)
        yield from fact("stage.recomputed_share", subject, heavy.beyond, *sources)
        if heavy.freed:
            saving = relief_us(run, heavy.freed)
            yield from fact("stage.recompute_us", subject, stage.work - heavy.usual_us, *sources)
            yield from fact("stage.recompute_saving_us", subject, saving, *sources)
            yield from fact("stage.recompute_saving_share", subject, saving / step, *sources)


FAMILIES = (
    Family("recomputing", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("parallelism", "stages")),
)  # fmt: skip
