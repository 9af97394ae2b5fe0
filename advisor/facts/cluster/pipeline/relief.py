"""What a step gains where single stages of its pipeline have less to do."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.facts.base import Run
from advisor.facts.cluster.pipeline.stages import hops_us, micro_batches, stages_of
from advisor.facts.cluster.replay import Change, gain, model
from advisor.facts.collectives.schedule import pipeline_us


def relieved(run: Run, freed_us: Mapping[int, float]) -> dict[int, Change]:
    """What takes so many microseconds a step off each of these stages; below zero is what a stage takes on."""
    return {
        rank: Change(max(1 - freed_us[stage.index] / stage.work, 0.0))
        for stage in stages_of(run)
        if freed_us.get(stage.index) and stage.work > 0
        for rank in stage.ranks
    }


def relief_us(run: Run, freed_us: Mapping[int, float]) -> float:
    """Microseconds a step gains where each of these stages computes so much less: as replayed, else of the schedule."""
    step, changes = model(run), relieved(run, freed_us)
    if step is not None and set(changes) <= set(step.chains):
        replayed = gain(step, changes)
        if replayed is not None:
            return replayed
    stages, micro = stages_of(run), micro_batches(run) or 1
    hops = [hops_us(run)[0]] * (len(stages) - 1)
    now = [stage.given for stage in stages]
    then = [stage.given - freed_us.get(stage.index, 0.0) for stage in stages]
    return max(pipeline_us(now, micro, hops) - pipeline_us(then, micro, hops), 0.0)
