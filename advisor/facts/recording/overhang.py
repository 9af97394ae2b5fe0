"""Durations against starts, and starts against starts: a recording ends soon after its last event begins, a device runs
few things at once, and its table and its timeline are of one time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.basics.units import show
from advisor.facts.recording.limits import section
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels
from advisor.sources.streams.trace import Trace


def tell_overhang(rank: Rank, trace: Trace, kernels: Kernels) -> None:
    """Notes where most of the time of the host's events lies behind the last instant at which anything began, on the
    host or on the device: only durations in another unit, or of another recording, do that."""
    host, limits = trace.host, section("contradiction")
    if not rank.has("trace") or len(host) < limits["compared"]:
        return
    begins = (host.start, trace.launched, trace.started, kernels.start, kernels.end)
    last = max(int(times.max(initial=0)) for times in begins)
    length = float((host.end - host.start).sum())
    behind = float(np.clip(host.end - np.maximum(host.start, last), 0, None).sum())
    if behind > limits["behind_share"] * length:
        text = (
            f"contradicts itself: its host events take {show(length / len(host) / 1000, 'us')} on average, and "
            f"{show(behind / length, 'ratio')} of their time lies behind the last start of all"
        )
        rank.note(rank.relative(rank.tables["trace"].paths[0]), text, ("trace",))


def tell_apart(rank: Rank, trace: Trace, kernels: Kernels) -> None:
    """Notes where the kernels of the table ran at another time than those of the timeline: none of its links meets them
    then, and both cannot be of one recording."""
    known = kernels.start[kernels.start >= 0]
    if not known.size or not trace.started.size or not rank.has("kernels"):
        return
    limits = section("contradiction")
    off = abs(float(np.median(known)) - float(np.median(trace.started))) / 1000
    if off > max(limits["apart_us"], limits["apart_factor"] * float(np.ptp(trace.started)) / 1000):
        text = f"was recorded {show(off, 'us')} apart from the timeline: another run, or another clock"
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels", "trace"))


def tell_crowd(rank: Rank, kernels: Kernels, communication: npt.NDArray[np.bool_]) -> None:
    """Notes kernels that would have to run many at once, more than a device has streams for: their durations or their
    starts are in another unit."""
    known = (kernels.start >= 0) & ~communication
    if not known.any():
        return
    start, length = kernels.start[known], (kernels.end - kernels.start)[known]
    at_once = float(length.sum()) / max(float(np.ptp(start) + length.max()), 1.0)
    if at_once > section("contradiction")["at_once"]:
        text = f"contradicts itself: by their starts and durations {at_once:.0f} kernels ran at once, on average"
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels",))
