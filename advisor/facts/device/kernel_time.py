"""Kernels on the time axis: steps, unions, and the time in which a kernel runs alone.

What ran before the steps, between and after them is left out. Removing a kernel saves at most the time in which nothing
else ran; that is what "alone" means everywhere here.
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import EMPTY, Intervals, complement, longest_gaps, union
from advisor.facts.operators.kinds import AICPU_CORES, is_fused_exchange
from advisor.facts.recording.counts import are_all, held_computing, is_cut
from advisor.facts.recording.limits import section
from advisor.facts.recording.overhang import (
    tell_crowd,
    tell_short,
    tell_side_by_side,
    tell_unlike_cores,
    tell_waits,
)
from advisor.facts.recording.windows import Placed, Windows, place
from advisor.knowledge.measuring import limit
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, Signature, load_kernels

_COMMUNICATION_CORES = frozenset(("HCCL", "COMMUNICATION"))
_COMMUNICATION_NAME = re.compile(
    r"^(hcom_|hccl|allreduce|allgather|alltoall|reducescatter|broadcast_?$)", re.IGNORECASE
)
_COLLECTIVE = re.compile(r"^(.*/)?hcom_", re.IGNORECASE)
"""The communication library's own types and names, in whatever scope of a graph, whatever carries them out."""
_COMMUNICATION_END = ("AicpuKernel", "AivKernel")
"""Kernels that carry out collectives on AI CPU or vector cores: the profiler does not count them as computation."""
_ON_AICPU = re.compile(
    r"hcom\w*|RunAicpu(Rpc|Kfc)\w*|((all_?(reduce|gather|to_?all)|reduce_?scatter)(v|vc)?|broadcast|batch_?send_?recv)_?",
    re.IGNORECASE,
)
"""What the communication library starts on the AI CPU to carry collectives out: its server, its set-up, and kernels
that bear a collective's bare name. No operator that computes is called so, and none of them has an AI Core's."""


def is_collective(name: str) -> bool:
    """Whether a kernel's name or type is one of the communication library's own."""
    return _COLLECTIVE.match(name) is not None


def _exchanges_on_aicpu(kind: str) -> bool:
    """Whether an AI CPU task carries out an exchange: a collective's server, or the other half of a kernel that
    computes and exchanges in one, whose products no AI CPU computes."""
    return _ON_AICPU.fullmatch(kind) is not None or is_fused_exchange(kind)


def is_communication(signature: Signature, name: str = "") -> bool:
    """Whether a kernel is a collective or point-to-point operation."""
    if signature.core.upper() in _COMMUNICATION_CORES or is_collective(signature.type):
        return True
    if signature.core.upper() in AICPU_CORES and _exchanges_on_aicpu(signature.type):
        return True
    if signature.core:
        return signature.type.endswith(_COMMUNICATION_END)
    return bool(_COMMUNICATION_NAME.match(signature.type or name))


def exchanging(kernels: Kernels) -> Mask:
    """Which kernels are collectives or point-to-point operations."""
    kinds = np.array([is_communication(s) for s in kernels.signatures], bool)
    found: Mask = kinds[kernels.signature] | kernels.named(is_collective)
    bare = np.array([not s.core and not s.type for s in kernels.signatures], bool)[kernels.signature]
    if bare.any():
        found |= bare & kernels.named(lambda name: _COMMUNICATION_NAME.match(name) is not None)
    return found


def sums(index: Ints, values: Floats | None, size: int) -> Floats:
    """Per place 0 … size − 1 the sum of the values there, or their number where there are no values."""
    return np.bincount(index, values, size).astype(np.float64)


class Timeline(Struct, frozen=True):
    """One rank's kernels with what every family needs of them."""

    kernels: Kernels
    communication: Mask
    windows: Windows
    whole: bool = True
    """Whether the rows are all kernels of their time, and their gaps tell of the work. Hand-picked or filtered rows
    have durations and no gaps."""
    picked: bool = False
    """Whether rows are missing between these, and no statistic tells of all: nobody knows what part they are."""
    held: float = np.inf
    """How many steps' computing time they hold, where another table tells more of it; 0 where the statistic counts
    more kernels, by type."""
    complete: bool = False
    """Whether another table tells that there were no others, however few they are."""
    lost: bool = False
    """Whether rows are missing, whichever other table tells: types and shapes that are not here may have run."""
    placed: Placed | None = None
    """How the kernels were told from those that belong to no step; `kernels` holds only those that do."""

    @property
    def tells_types(self) -> bool:
        """Whether its kernels stand for all that ran: types of a small part of a step are those of the part."""
        return self.held >= section("witness")["types_share"]

    @property
    def is_scrap(self) -> bool:
        """Whether they are a small part of a step, by a table that tells nothing of the rest but its time."""
        return self.held > 0 and not self.tells_types


def timeline_of(rank: Rank) -> Timeline | None:
    """The rank's kernels on the time axis, kept until the rank forgets; None where there are none."""
    return rank.once(timeline_of, lambda: _place(rank))


def _place(rank: Rank) -> Timeline | None:
    kernels = load_kernels(rank)
    if kernels is None:
        return None
    communication = exchanging(kernels)
    held = 0.0 if is_cut(rank, kernels) else held_computing(rank, kernels, communication)
    counted, complete = held == np.inf, are_all(rank, kernels, communication)
    timed = _are_timed(kernels)
    gapless = _is_whole(kernels, communication)
    whole = timed and gapless and (not communication.all() or _computes_nothing(rank))
    picked = timed and not gapless and not rank.has("operator_types")
    alone = rank.tables["kernels"].reader == "kernels.opprof"  # measured by itself: there is no course to miss
    if counted and not whole and not alone:
        file = rank.relative(rank.tables["kernels"].paths[0])
        reason = "kernels are missing between the rows (waiting times contradict the gaps)"
        if communication.all():
            reason = "the rows are collectives alone, without what computes between them"
        if not timed:
            reason = (
                "start times or durations of kernels are lost (does a spreadsheet round them? Export the file again)"
                if (kernels.start >= 0).any()
                else "no kernel has a start time (no such column, or a spreadsheet rounds it? Export the file again)"
            )
        rank.note(file, f"{reason}: operators are judged, steps and idle time are not")
    if not alone:
        tell_crowd(rank, kernels, communication)
        tell_short(rank, kernels, communication)
        tell_unlike_cores(rank, kernels)
        tell_side_by_side(rank, kernels, communication)
        tell_waits(rank, kernels, communication)
    placed = place(rank, kernels, whole and counted, ~communication)
    told = placed.steady is None or placed.steady.idle_told
    if not placed.inside.all():
        kernels, communication = kernels.within(placed.inside), communication[placed.inside]
    kernels = replace(kernels, step=placed.windows.of, steps=list(placed.windows.names))
    lost = not complete and (not counted or (timed and not whole))
    return Timeline(
        kernels, communication, placed.windows, whole and counted and told, picked, held, complete, lost, placed
    )


MOST_LOST = limit("course", "most_lost")
"""Share of the kernels without a usable start or duration up to which the others still show when nothing ran."""


def _are_timed(kernels: Kernels) -> bool:
    """Whether so few lost their start or duration that the others still show when nothing ran: they are few of all, and
    the longest gaps, which each of them may have filled, are a small part of the recording."""
    known = kernels.start >= 0
    lost = kernels.left_out + int((~known).sum())
    ran = union(kernels.start[known], kernels.end[known])
    if not lost or not ran[0].size:
        return not lost
    filled = longest_gaps(ran, lost) <= MOST_LOST * (ran[1][-1] - ran[0][0])
    return bool(filled) and lost <= MOST_LOST * (len(kernels) + kernels.left_out)


def _computes_nothing(rank: Rank) -> bool:
    """Whether the step table, too, knows of communication and of no computing."""
    steps = rank.read("steps", ("computing_us", "communication_us")) if rank.has("steps") else None
    if steps is None or not {"computing_us", "communication_us"} <= set(steps):
        return False
    return bool((steps["computing_us"] == 0).all() and (steps["communication_us"] > 0).any())


def _is_whole(kernels: Kernels, communication: Mask) -> bool:
    """Compares the gaps between rows with the waiting times that the profiler noted when it still had every row. Of
    collectives it notes none, whatever stands there."""
    known = kernels.start >= 0
    start, end, wait = kernels.start[known], kernels.end[known], kernels.wait[known]
    if start.size < 2 or not np.isfinite(wait).any() or not wait[np.isfinite(wait)].any():
        return True
    gap = np.maximum(start[1:] - np.maximum.accumulate(end)[:-1], 0) / 1000
    noted = np.where(communication[known][1:], np.inf, np.nan_to_num(wait[1:], nan=np.inf))
    limits = section("witness")
    contradicted = float(gap[gap > 2 * noted + limits["noted_slack_us"]].sum())
    recorded = float(end.max() - start[0]) / 1000
    return contradicted <= gap.sum() / 2 or contradicted < limits["contradicted_share"] * recorded


def busy(timeline: Timeline, mask: Mask | None = None) -> Intervals:
    """The instants in which a kernel (of the mask) ran."""
    kernels = timeline.kernels
    chosen = kernels.start >= 0
    if mask is not None:
        chosen &= mask
    return union(kernels.start[chosen], kernels.end[chosen]) if chosen.any() else EMPTY


def idle_stretches(running: Intervals, first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """(start, end, window) of the stretches in which nothing runs, within the windows first … last in order; what lies
    between windows that were recorded apart is in none."""
    start, end = complement(running, int(first[0]), int(last.max()))
    window = np.clip(np.searchsorted(first, start, side="right") - 1, 0, len(first) - 1)
    inside = start < last[window]
    return start[inside], end[inside], window[inside]


class Sweep(Struct, frozen=True):
    """Between two consecutive starts or ends: how long, how many kernels run, and which one if it is alone."""

    length: Ints
    running: Ints
    which: Ints
    order: Ints
    """Position of each boundary's kernel."""
    sign: Ints


def sweep(kernels: Kernels, among: Mask | None = None) -> Sweep:
    """The segments between all starts and ends of kernels with a known start, of `among` where given."""
    known = np.flatnonzero(kernels.start >= 0 if among is None else (kernels.start >= 0) & among)
    time = np.concatenate((kernels.start[known], kernels.end[known]))
    index = np.concatenate((known, known))
    sign = np.concatenate((np.ones(known.size, np.int64), np.full(known.size, -1, np.int64)))
    order = np.argsort(time, kind="stable")
    time, index, sign = time[order], index[order], sign[order]
    return Sweep(np.diff(time), np.cumsum(sign)[:-1], np.cumsum(sign * index)[:-1], index, sign)


def alone_us(kernels: Kernels, segments: Sweep) -> Floats:
    """Per kernel: microseconds in which no other kernel of those swept ran."""
    single = segments.running == 1
    return sums(segments.which[single], segments.length[single] / 1000, len(kernels))


def only_us(timeline: Timeline, segments: Sweep, mask: Mask) -> Floats:
    """Per step: microseconds in which kernels of the mask ran and no others."""
    steps = len(timeline.windows.names)
    if not mask.any() or not segments.length.size:
        return np.zeros(steps)
    members = np.cumsum(np.where(mask[segments.order], segments.sign, 0))[:-1]
    chosen = (members > 0) & (members == segments.running)
    step = timeline.windows.of[segments.order[:-1]]
    return sums(step[chosen], segments.length[chosen] / 1000, steps)
