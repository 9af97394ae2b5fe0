"""A stage that computes forward passes again which the others keep: with as many layers it has more work, which no
layer that moves evens out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.pipeline.stages import Stage, hops_us, micro_batches, stages_of
from advisor.facts.cluster.replay import Change, gain, model
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.schedule import pipeline_us
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
         formula="replay of the step with its work as theirs; no more than the schedule's own length leaves",
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


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the stages that compute more of their forward passes again than others with as many layers."""
    step, micro, again = facts.number("step.time_us", RUN), micro_batches(run), forward_again(run)
    stages = [stage for stage in stages_of(run) if stage.layers and again.keys() >= set(stage.ranks)]
    if not step or not micro or len(stages) < 2 or len(stages) < len(stages_of(run)):
        return
    sources = next(iter(steady(run).values())).sources_of("computing")
    parts = {stage.index: min(again[rank] for rank in stage.ranks) for stage in stages}
    for stage in stages:
        alike = [one for one in stages if one.layers == stage.layers and parts[one.index] < parts[stage.index]]
        if not alike:
            continue
        subject, usual = Subject("stage", str(stage.index), stage.ranks), float(np.median([one.work for one in alike]))
        beyond = parts[stage.index] - min(parts[one.index] for one in alike)
        yield from fact("stage.recomputed_share", subject, beyond, *sources)
        if stage.work > usual > 0:
            saving = _gained(run, stages, stage, usual, micro)
            yield from fact("stage.recompute_us", subject, stage.work - usual, *sources)
            yield from fact("stage.recompute_saving_us", subject, saving, *sources)
            yield from fact("stage.recompute_saving_share", subject, saving / step, *sources)


def _gained(run: Run, stages: list[Stage], heavy: Stage, usual_us: float, micro: int) -> float:
    """Microseconds a step gains where the heavy stage does what is usual."""
    hops = [hops_us(run)[0]] * (len(stages) - 1)
    now = [stage.given for stage in stages]
    then = [stage.given - (stage.work - usual_us if stage is heavy else 0.0) for stage in stages]
    schedule = max(pipeline_us(now, micro, hops) - pipeline_us(then, micro, hops), 0.0)
    step = model(run)
    if step is None or not set(heavy.ranks) <= set(step.chains):
        return schedule
    replayed = gain(step, {rank: Change(usual_us / heavy.work) for rank in heavy.ranks})
    return schedule if replayed is None else replayed


FAMILIES = (
    Family("recomputing", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("parallelism", "stages")),
)  # fmt: skip
