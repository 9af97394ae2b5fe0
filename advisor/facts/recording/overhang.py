"""Durations against starts, and starts against starts: a recording ends soon after its last event begins, a device runs
few things at once, waits for no longer than it is recorded, and its table and its timeline are of one time."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Mask
from advisor.basics.numbering import distinct
from advisor.basics.units import show
from advisor.facts.recording.limits import section
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels
from advisor.sources.streams.trace import Trace

LINKED_NS = 1000
"""Between a kernel's start in the table and at the end of its link: writers round to a microsecond at most."""


def tell_overhang(rank: Rank, trace: Trace, kernels: Kernels) -> None:
    """Notes where most of the time of the host's events lies behind the last instant at which anything began, on the
    host or on the device: only durations in another unit, or of another recording, do that. What was open when the
    recording ended, a script that sleeps before it stops the profiler, ends with it, all at once."""
    host, limits = trace.host, section("contradiction")
    if not rank.has("trace") or len(host) < limits["compared"]:
        return
    begins = (host.start, trace.launched, trace.started, kernels.start, kernels.end)
    last = max(int(times.max(initial=0)) for times in begins)
    length = float((host.end - host.start).sum())
    beyond = np.clip(host.end - np.maximum(host.start, last), 0, None)
    mostly = np.sort(host.end[beyond > limits["behind_share"] * (host.end - host.start)])
    first = min(int(times[times >= 0].min(initial=last)) for times in begins)
    ends = 1 + int((np.diff(mostly) > limits["of_step"] * (last - first)).sum())
    behind = float(beyond.sum())
    if behind > limits["behind_share"] * length and ends > limits["compared"]:
        text = (
            f"contradicts itself: its host events take {show(length / len(host) / 1000, 'us')} on average, and "
            f"{show(behind / length, 'ratio')} of their time lies behind the last start of all"
        )
        rank.note(rank.relative(rank.tables["trace"].paths[0]), text, ("trace",))


def tell_steps(rank: Rank, trace: Trace) -> None:
    """Notes where the marks of most steps end long after the next one begins: a loop ends one step before the next."""
    first: dict[str, tuple[int, int]] = {}
    for step, begin, end in trace.steps:
        first.setdefault(step, (begin, end))
    limits, times = section("contradiction"), np.array(sorted(first.values())).reshape(-1, 2)
    apart, lasts = np.diff(times[:, 0]), np.diff(times, axis=1)[:-1, 0]
    if not rank.has("trace") or len(apart) < limits["compared"]:
        return
    if np.median(lasts / np.fmax(apart, 1)) > limits["one_job_factor"]:
        text = (
            f"contradicts itself: its steps last {show(float(np.median(lasts)) / 1000, 'us')} and begin "
            f"{show(float(np.median(apart)) / 1000, 'us')} after each other"
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


def tell_unlinked(rank: Rank, trace: Trace, kernels: Kernels) -> None:
    """Notes where next to no kernel of the table begins when the timeline says that one did that the host launched,
    although it tells of as many: the table, or the timeline, is another rank's. A graph that is launched as a whole
    has a link or two, and says nothing of its kernels."""
    limits, known = section("contradiction"), np.sort(kernels.start[kernels.start >= 0])
    if not rank.has("kernels") or not known.size or not trace.started.size:
        return
    low, high = max(known[0], trace.started.min()), min(known[-1], trace.started.max())
    inside = known[(known >= low) & (known <= high)]
    links = distinct(trace.started[(trace.started >= low) & (trace.started <= high)])
    if min(len(inside), len(links)) < limits["linked"] or len(links) < limits["linked_most"] * len(inside):
        return
    right = np.minimum(np.searchsorted(links, inside), len(links) - 1)
    nearest = np.minimum(np.abs(links[right] - inside), np.abs(links[np.maximum(right - 1, 0)] - inside))
    met = int((nearest <= LINKED_NS).sum())
    if met < limits["linked_share"] * len(inside):
        text = (
            f"contradicts {_timeline(rank)}: of its {len(inside)} kernels {met} begin when the timeline says that a "
            "launched one did: one of them is another rank's"
        )
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels", "trace"))


def _timeline(rank: Rank) -> str:
    return rank.tables["trace"].paths[0].name if rank.has("trace") else "the timeline"


def tell_crowd(rank: Rank, kernels: Kernels, communication: Mask) -> None:
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


def tell_short(rank: Rank, kernels: Kernels, communication: Mask) -> None:
    """Notes kernels most of which are shorter than any device could start one: their durations are in another unit."""
    length = kernels.duration[~communication]
    length, limits = length[length > 0], section("contradiction")
    middle = float(np.median(length)) if len(length) >= limits["side_by_side"] else np.inf
    if middle < limits["started_us"]:
        text = (
            f"contradicts itself: half of its kernels last {show(middle, 'us')} or less, and starting one takes longer"
        )
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels",))


def tell_unlike_cores(rank: Rank, kernels: Kernels) -> None:
    """Notes kernels that last many times as long as their cores work, or as short: a column, or a part of one, is in
    another unit."""
    if kernels.unlike_cores > section("contradiction")["unlike_share"]:
        text = (
            f"contradicts itself: {show(kernels.unlike_cores, 'ratio')} of the time of its kernels is theirs whose "
            "duration and whose cores' time are of different size"
        )
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels",))


def tell_side_by_side(rank: Rank, kernels: Kernels, communication: Mask) -> None:
    """Notes kernels that would run beside others of their own stream, which begins one when the one before has ended:
    the durations of a part of them are in another unit."""
    named = np.array([bool(stream) for stream in kernels.streams], bool)
    known = np.flatnonzero((kernels.start >= 0) & ~communication & named[kernels.stream])
    limits, known = section("contradiction"), known[np.argsort(kernels.stream[known].astype(np.int16), kind="stable")]
    start, end, stream = kernels.start[known], kernels.end[known], kernels.stream[known]
    beside = np.minimum(end[:-1], end[1:]) - start[1:]
    following = stream[1:] == stream[:-1]
    beside = beside[(beside > 0) & following]
    whole = float((end - start).sum())
    enough = min(limits["side_by_side"], max(limits["compared"], limits["side_by_side_most"] * following.sum()))
    if len(beside) >= enough and float(beside.sum()) > limits["stream_share"] * whole:
        text = (
            f"contradicts itself: {show(float(beside.sum()) / whole, 'ratio')} of the time of its kernels lies behind "
            "the start of the next one on their stream, which begins when they have ended"
        )
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels",))


def tell_waits(rank: Rank, kernels: Kernels, communication: Mask) -> None:
    """Notes waits that do not fit into the recording: those before the kernels of one stream follow each other, and
    only the first one's can lie before it. Of collectives the profiler notes none."""
    known = np.flatnonzero((kernels.start >= 0) & ~communication)
    wait, stream = np.nan_to_num(kernels.wait[known]).astype(float), kernels.stream[known]
    if not wait.any():
        return
    wait[np.unique(stream, return_index=True)[1]] = 0.0
    noted, length = float(np.bincount(stream, wait).max()), float(np.ptp(kernels.start[known])) / 1000
    if noted > (1 + section("contradiction")["part_share"]) * length + section("witness")["noted_slack_us"]:
        text = (
            f"contradicts itself: the waits before its kernels are {show(noted, 'us')} long, and its kernels start "
            f"within {show(length, 'us')}"
        )
        rank.note(rank.relative(rank.tables["kernels"].paths[0]), text, ("kernels",))
