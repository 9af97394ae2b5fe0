"""The pipeline's schedule as a second witness of what computing less on some ranks gives.

A replay knows what a segment waited for, not what it needs: the input that lay ready for a slow stage is late for a
quick one. Of computing alone the schedule knows both; it counts where it reproduces the step that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from advisor.facts.base import Run
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.schedule import pipeline_us
from advisor.knowledge.measuring import limit

if TYPE_CHECKING:
    from advisor.facts.cluster.meetings import Model
    from advisor.facts.cluster.replay import Change

REPRODUCED = limit("replay", "schedule_reproduced")


@dataclass
class Schedule:
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


def schedule_of(run: Run) -> Schedule | None:
    """The schedule of this run's pipelines; None without any, where ranks are absent, and where it is not what the
    steps last: then something else than computing sets their length."""
    from advisor.facts.cluster.pipeline.stages import chunks, hops_us, micro_batches, stages_of
    from advisor.facts.step.steps import steady

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


def less_computing(found: Model, changes: Mapping[int, Change]) -> dict[int, float]:
    """rank -> the part of its computing that is left by these changes, of those that change it."""
    parts = {}
    for rank, change in changes.items():
        working = np.where(found.chains[rank].computes, found.chains[rank].working, 0.0)
        whole = float(working.sum())
        if whole > 0 and np.any(np.asarray(change.compute) != 1.0):
            parts[rank] = float((working * change.compute).sum()) / whole
    return parts
