"""The pipeline's schedule as a second witness of what computing less on some ranks gives.

A replay knows what a segment waited for, not what it needs: the input that lay ready for a slow stage is late for a
quick one. Of computing alone the schedule knows both; it counts where it reproduces the step that was measured.
"""

from __future__ import annotations

import numpy as np

from advisor.facts.base import Run
from advisor.facts.cluster.pipeline.stages import chunks, hops_us, micro_batches, stages_of
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.schedule import Schedule
from advisor.facts.step.steps import steady
from advisor.knowledge.measuring import limit

REPRODUCED = limit("replay", "schedule_reproduced")


def schedule_of(run: Run) -> Schedule | None:
    """The schedule of this run's pipelines; None without any, where ranks are absent, and where it is not what the
    steps last: then something else than computing sets their length."""
    stages, micro, pipelines = stages_of(run), micro_batches(run), partition(run).chains
    work = {rank: us for stage in stages for rank, us in stage.computing_of.items()}
    if len(stages) < 2 or not micro or not pipelines or any(rank not in work for p in pipelines for rank in p):
        return None
    interleaved = chunks(run)
    batches, parts = interleaved or (micro, 1)
    found = Schedule(list(pipelines), work, batches, parts, hops_us(run)[0])
    step = float(np.median([np.median(times.time) for times in steady(run).values()]))
    lasts = found.step_us + max(stage.behind for stage in stages)
    return found if abs(lasts - step) <= REPRODUCED * step else None
