"""Steps of a rank of which nothing but its collectives is recorded: those of one step bear its name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.recording.windows import NAMELESS
from advisor.sources.base import Rank

_COURSES = ("steps", "step_phases", "cluster_phases", "iterations", "kernels", "operators", "operator_types", "trace")
"""Tables that tell how a rank's time passes better than its collectives alone."""


@dataclass(frozen=True)
class MeetingSteps:
    """Each step lasts from its first collective to the next step's; the last one is followed by nothing."""

    names: tuple[str, ...]
    time_us: Floats


def meeting_steps(rank: Rank) -> MeetingSteps | None:
    """The steps by the starts of collectives; None where another table tells of them, or these do not."""
    if any(rank.has(table) for table in _COURSES):
        return None
    return rank.once(meeting_steps, lambda: _meeting_steps(rank))


def _meeting_steps(rank: Rank) -> MeetingSteps | None:
    frame = rank.read("collectives")
    if frame is None or "step" not in frame or "start_ns" not in frame:
        return None
    known = frame[frame["start_ns"].notna() & (frame["start_ns"] > 0) & frame["step"].notna()]
    first = known.groupby("step")["start_ns"].min().sort_values()
    if len(first) < 2 or any(str(name) in NAMELESS for name in first.index):
        return None
    return MeetingSteps(tuple(map(str, first.index[:-1])), np.diff(first.to_numpy(float)) / 1000)
