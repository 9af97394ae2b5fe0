"""A recording without a schedule is one row of the step table: its batches are the steps.

MindSpore records the data pipeline only so, and what a step takes is what an engineer wants to read.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from advisor.facts.data.getnext import GetNext
from advisor.facts.data.loading import DataPipeline
from advisor.facts.recording.limits import section
from advisor.facts.step.from_kernels import KernelSteps
from advisor.facts.step.times import StepTimes


def by_batch(
    times: Mapping[int, StepTimes],
    pipelines: Mapping[int, DataPipeline],
    fetches: Mapping[int, GetNext],
    kernels: Mapping[int, KernelSteps],
) -> dict[int, StepTimes]:
    """The times of a lone rank's only row, divided by the steps that it covers; everything else as it is.

    A sending thread runs ahead of the device, so where batches are sunk the device counts the steps: by GetNext, or by
    the passes of its kernels where these are as many as the batches. What it waited while the pipeline started is no
    part of a step. A recording with collectives stays one row: what is known of those is per recording, too.
    """
    if len(times) != 1:
        return dict(times)
    ((rank, one),) = times.items()
    data, fetch = pipelines.get(rank), fetches.get(rank)
    if data is None or one.table not in ("steps", "kernels") or one.steps not in (("0",), ("",)) or one.excluded:
        return dict(times)
    if any(one.phases[name].sum() > 0 for name in ("exposed", "overlapped") if name in one.phases):
        return dict(times)
    if data.mode == "iterator":
        steps = data.batches
    elif fetch is not None and fetch.alone_us is not None:
        steps = fetch.count
    else:
        steps = _passes(data.batches, kernels.get(rank))
    if steps < 2:
        return dict(times)
    most = float(one.phases["idle"].sum()) if "idle" in one.phases else 0.0
    start = min(fetch.start_up_us, most) if fetch is not None else 0.0
    less = {"idle": start, "start_gap": start}
    phases = {name: np.maximum(values - less.get(name, 0.0), 0.0) / steps for name, values in one.phases.items()}
    return {rank: replace(one, time=(one.time - start) / steps, phases=phases, covers=steps)}


def _passes(batches: int, kernels: KernelSteps | None) -> int:
    """Passes of the same kernels, one for each batch; 0 where they are fewer or more than the batches, and a pass may
    be a part of a step or several."""
    passes = kernels.passes if kernels is not None else 0
    return passes if (1 - section("witness")["cut_share"]) * batches <= passes <= batches else 0
