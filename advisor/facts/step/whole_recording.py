"""A recording without a schedule is one row of the step table: its batches are the steps.

MindSpore records the data pipeline only so, and what a step takes is what an engineer wants to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.facts.data.getnext import GetNext
from advisor.facts.data.loading import DataPipeline
from advisor.facts.step.times import StepTimes


def by_batch(
    times: Mapping[int, StepTimes], pipelines: Mapping[int, DataPipeline], fetches: Mapping[int, GetNext]
) -> dict[int, StepTimes]:
    """The times of a lone rank's only row, divided by the steps that it covers; everything else as it is.

    A sending thread runs ahead of the device, so where batches are sunk GetNext on the device counts the steps. A
    recording with collectives stays one row: what is known of those is per recording, too.
    """
    if len(times) != 1:
        return dict(times)
    ((rank, one),) = times.items()
    data, fetch = pipelines.get(rank), fetches.get(rank)
    if data is None or one.table != "steps" or one.steps not in (("0",), ("",)) or one.excluded:
        return dict(times)
    if any(one.phases[name].sum() > 0 for name in ("exposed", "overlapped") if name in one.phases):
        return dict(times)
    if data.mode == "iterator":
        steps = data.batches
    else:
        steps = fetch.count if fetch is not None and fetch.alone_us is not None else 0
    if steps < 2:
        return dict(times)
    phases = {name: values / steps for name, values in one.phases.items()}
    return {rank: replace(one, time=one.time / steps, phases=phases, covers=steps)}
