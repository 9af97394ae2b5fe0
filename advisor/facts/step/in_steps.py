"""Figures of device windows as parts of the step: one step, one length, and one idle time in every fact."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.facts.base import Run
from advisor.facts.step.steps import steady

_IDLE = "timeline.idle_us", "timeline.idle_share"


def in_steps(run: Run, rank: int, row: Mapping[str, float], window_us: float) -> dict[str, float]:
    """The row with its sums of gaps (microseconds per window) as the same share of the rank's step.

    Windows begin with a step's first kernel and the last one ends with its last, so that on average they are a little
    shorter than steps, which own the wait before them. Where the step's idle time is known, that is the idle time.
    """
    times = steady(run).get(rank)
    if times is None or not window_us > 0:
        return dict(row)
    step_us = float(np.mean(times.time))
    scaled = {name: value * step_us / window_us if _is_gap(name) else value for name, value in row.items()}
    idle = times.share("idle")
    if idle is not None and _IDLE[0] in scaled:
        scaled[_IDLE[0]], scaled[_IDLE[1]] = idle * step_us, idle
        scaled["timeline.short_gap_us"] = max(idle * step_us - scaled["timeline.long_gap_us"], 0.0)
    return scaled


def _is_gap(name: str) -> bool:
    """Whether the figure is a part of the window's idle time, and not the length of one thing."""
    ends = ("idle_us", "gap_us", "stall_us", "own_code_us", "queued_idle_us")
    return name.endswith(ends) and "longest" not in name
