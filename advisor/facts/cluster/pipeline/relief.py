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
    """Microseconds a step gains where each of these stages computes so much less: as replayed, no more than by the
    schedule of what the stages' ranks usually compute. What a slow rank's stage gains beyond that is the rank's."""
    stages, micro = stages_of(run), micro_batches(run) or 1
    hops = [hops_us(run)[0]] * (len(stages) - 1)
    now = [stage.given for stage in stages]
    then = [stage.given - freed_us.get(stage.index, 0.0) for stage in stages]
    usual = max(pipeline_us(now, micro, hops) - pipeline_us(then, micro, hops), 0.0)
    step, changes = model(run), relieved(run, freed_us)
    replayed = gain(step, changes) if step is not None and set(changes) <= set(step.chains) else None
    return usual if replayed is None else min(replayed, usual)
