"""Which kernels belong to which step, where a step begins and ends, and what belongs to none.

Step ids on the kernels decide, else the marks of steps in the timeline, else executions of graphs. Kernels before the
first mark, and kernels without an id outside the steps' own kernels, are set-up, tear-down or something between: they
belong to no step. Where nothing marks steps, one window holds what is not set-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.units import whole
from advisor.facts.operators.kinds import is_conversion, is_update
from advisor.facts.recording.between import awaits_data
from advisor.facts.recording.counts import UNTYPED, types_of
from advisor.facts.recording.iterations import iterations_of
from advisor.facts.recording.limits import section, told_by
from advisor.facts.recording.steady import Steady, find_steady
from advisor.facts.recording.sums import step_rows
from advisor.knowledge.measuring import limit
from advisor.sources.base import Rank
from advisor.sources.streams.behind import first_asked
from advisor.sources.streams.kernels import Kernels
from advisor.sources.streams.rank_trace import load_trace
from advisor.sources.streams.trace import Trace

_BEHIND = limit("device_windows", "behind")
"""As of databases."""
NAMELESS = ("0", "")
"""How writers call the one row of a recording without steps."""


class Windows(Struct, frozen=True):
    """Device-side steps: step i lasts from its first kernel to the next one's first kernel; the last one, and one that
    is followed by what belongs to no step or by no neighbour, to its own last kernel's end. Times in nanoseconds; `of`
    is the step of each kernel."""

    names: tuple[str, ...]
    start: Ints
    end: Ints
    of: Ints


class Placed(Struct, frozen=True):
    """Kernels in their windows. `inside` says which of all kernels these are, `marks` what told the steps (kernels,
    trace, iterations, or nothing), `steady` what was found where nothing did."""

    windows: Windows
    inside: Mask
    marks: str = ""
    steady: Steady | None = None
    set_up_ns: int = 0
    """From the first kernel of all to the first that is judged, where nothing marks steps."""


def place(rank: Rank, kernels: Kernels, whole: bool, computes: Mask) -> Placed:
    """The windows of a rank's kernels; `whole` says whether these are all kernels of their time,
    `computes` which are no communication."""
    known = kernels.start >= 0
    every = np.ones(len(kernels), bool)
    if not known.any():
        return Placed(Windows(("0",), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(len(kernels), int)), every)
    named = np.array([bool(step) for step in kernels.steps])
    firsts = sorted(
        (int(kernels.start[mine].min()), i)
        for i in np.flatnonzero(named).tolist()
        if (mine := (kernels.step == i) & known).any()
    )

    @cache
    def steady() -> Steady:
        return _steady(kernels, known, computes)

    def span_the_run(marks: Sequence[str]) -> bool:
        told = not whole or not set(marks) <= {*NAMELESS} or is_marked(rank)
        return not told and _trains_again(kernels, steady(), known)

    names = [kernels.steps[i] for _, i in firsts]
    if firsts and not numbers_launches(rank, kernels) and not span_the_run(names):
        apart = rank.tables["kernels"].reader == "kernels.timelines" and not awaits_data(rank)
        return _placed(kernels, names, np.array([start for start, _ in firsts], np.int64), "kernels", apart)
    trace = load_trace(rank)
    if trace is not None and trace.steps and not span_the_run([name for name, *_ in trace.steps]):
        first = _on_device(trace, int(kernels.end[known].max()))
        if (kernels.start[known] >= first[0]).any():
            return _placed(kernels, [name for name, _, _ in trace.steps], first, "trace")
    if (by_graph := _in_iterations(rank, kernels)) is not None:
        return by_graph
    if not whole or is_marked(rank):
        return _placed(kernels, ["0"], np.array([kernels.start[known].min()]), "")
    return _recorded(kernels, steady(), known)


def _on_device(trace: Trace, last: int) -> Ints:
    """Where the marks of steps on the host lie on a device that is behind it, by the links from launch to start; as
    they are where it keeps up, or nothing is linked."""
    marks = np.array([start for _, start, _ in trace.steps], np.int64)
    lasts = np.array([end - start for _, start, end in trace.steps], np.int64)
    if len(marks) < 2 or not trace.launched.size or last - trace.steps[-1][2] <= _BEHIND * lasts.min():
        return marks
    asked = trace.called if trace.called.size else trace.launched
    begun = first_asked(asked, trace.started, marks, last)
    return begun if (np.diff(begun) > 0).all() else marks


def _steady(kernels: Kernels, known: Mask, computes: Mask) -> Steady:
    """What repeats of kernels that no step divides, and what lies before."""
    order = np.flatnonzero(known)
    kinds, nameless = _kinds(kernels)
    exactly = np.where(
        computes & ~nameless, kernels.name * len(kernels.signatures) + kernels.signature, -1 - kinds
    )  # fmt: skip
    exactly = np.unique(exactly, return_inverse=True)[1].astype(np.int64)
    return find_steady(
        kinds[order], kernels.start[order], kernels.end[order], computes[order], exactly[order],
        make_inputs(kernels, order),
    )  # fmt: skip


def _trains_again(kernels: Kernels, steady: Steady, known: Mask) -> bool:
    """Whether weights are updated in each of several equal passes that hold most of the work: what one mark spans is no
    step then, but the whole run. Micro-batches of a step repeat, too, and are followed by one update."""
    found, limits = steady.repetition, section("repetition")
    if found is None or found.executions < limits["executions"]:
        return False
    order = np.flatnonzero(known)
    within = order[found.first : found.last]
    one = np.unique(kernels.signature[within[: found.length]]).tolist()
    updates = {is_update(kernels.signatures[each].type) for each in one}
    held = float(kernels.duration[within].sum())
    return updates == {True, False} and held >= limits["covered_share"] * float(kernels.duration[known].sum())


def _recorded(kernels: Kernels, steady: Steady, known: Mask) -> Placed:
    """One window around what is judged of kernels that nothing divides."""
    order, inside = np.flatnonzero(known), ~known
    inside[order[steady.first : steady.last]] = True
    low = int(kernels.start[order[steady.first]])
    high = int(kernels.end[order[steady.first : steady.last]].max())
    of = np.zeros(int(inside.sum()), np.int64)
    return Placed(
        Windows(("0",), np.array([low]), np.array([high]), of), inside, "", steady, low - int(kernels.start[order[0]])
    )


_TELL_OF_STEPS = ("steps", "trace", "iterations")


def numbers_launches(rank: Rank, kernels: Kernels) -> bool:
    """Whether the ids are of launches, not of steps: nothing but one kernel on one input is in the table, one to an id,
    and nothing else tells of steps. No program's step is a single kernel."""
    if any(map(rank.has, _TELL_OF_STEPS)):
        return False
    alike = (kernels.name == kernels.name[0]).all() and (kernels.signature == kernels.signature[0]).all()
    numbered = [step for step in kernels.step.tolist() if kernels.steps[step]] if alike else []
    return bool(alike) and len(set(numbered)) == len(numbered)


def ran_alone(kernels: Kernels) -> bool:
    """Whether the waits that the profiler noted while it had every row fill the gaps between these, of which there are
    enough to be no chance: whatever the table lacks, nothing ran there."""
    if len(kernels) < section("repetition")["executions"] or not (kernels.start >= 0).all():
        return False
    gap = (kernels.start[1:] - np.maximum.accumulate(kernels.end)[:-1]) / 1000
    apart = np.abs(np.maximum(gap, 0) - kernels.wait[1:])  # a wait that is not told agrees with nothing
    limits = section("witness")
    return bool((gap > limits["noted_slack_us"]).any() and (apart <= limits["noted_slack_us"]).all())


def make_inputs(kernels: Kernels, order: Ints) -> Mask:
    """Which kernels, in this order, only make data out of nothing: they fill memory, with random numbers mostly, or
    convert what was filled just before."""
    fills, converts = (
        np.array([tells(signature.type) for signature in kernels.signatures])[kernels.signature[order]]
        for tells in (told_by("fills"), is_conversion)
    )
    before = np.maximum.accumulate(np.where(converts, -1, np.arange(len(order))))
    made: Mask = fills | (converts & (before >= 0) & fills[before])
    return made


def _kinds(kernels: Kernels) -> tuple[Ints, Mask]:
    """(type of each kernel, which have none): a kernel that nobody named is like no other, and repeats nothing."""
    types, of = types_of(kernels)
    nameless = of == types.index(UNTYPED) if UNTYPED in types else np.zeros(len(of), bool)
    return np.where(nameless, len(types) + np.arange(len(of)), of), nameless


def follows(names: Sequence[str], start: Sequence[float] | Ints = (), end: Sequence[float] | Ints = ()) -> list[bool]:
    """Of each step but the last whether the next one in the list follows it: between numbers that are farther apart
    than any others lies time that nobody recorded. Of three steps and more the nearest two tell how steps are counted:
    one by one, or in tens. Where numbers are left out, and between the steps' starts and ends lies time enough for
    the steps that would bear them, nobody can tell these from a wait."""
    numbers = [whole(name) for name in names]
    apart = [None if a is None or b is None else b - a for a, b in pairwise(numbers)]
    told = [difference for difference in apart if difference is not None and difference > 0]
    stride = min(told) if len(told) > 1 else 1
    near = [difference is None or difference == stride for difference in apart]
    if stride == 1 or not len(start):
        return near
    room = limit("course", "skipped_share") * (stride - 1)
    spans = zip(near, start, end, start[1:], strict=False)
    return [each and then - until < room * (until - since) for each, since, until, then in spans]


def is_marked(rank: Rank) -> bool:
    """Whether a table of steps, new or old, tells steps apart."""
    if rank.has("step_phases") or rank.has("cluster_phases"):
        return True
    frame = step_rows(rank)
    if frame is None or frame.empty or "step" not in frame:
        return False
    names = {str(name) if name is not None and name == name else "" for name in frame["step"]}
    return len(names) > 1 or not names <= set(NAMELESS)


def _in_iterations(rank: Rank, kernels: Kernels) -> Placed | None:
    """Steps by the executions of graphs; None where these hold no most of the work: they are a part of something."""
    told = iterations_of(rank)
    if told is None:
        return None
    placed = _placed(kernels, list(told.names), told.start, "iterations", last=told.end)
    held = float(kernels.duration[placed.inside].sum())
    return placed if held >= section("repetition")["covered_share"] * float(kernels.duration.sum()) > 0 else None


def _placed(
    kernels: Kernels, names: list[str], first: Ints, marks: str, apart: bool = False, last: Ints | None = None
) -> Placed:
    """Steps from their first instants: kernels that name a step keep it, the others go by their start. Steps that were
    recorded `apart`, each in a file of its own, end with their own last kernel; what starts after the `last` instant of
    a step is none of it."""
    index = {name: i for i, name in enumerate(names)}
    own = np.array([index.get(step, -1) for step in kernels.steps], np.int64)[kernels.step]
    known = kernels.start >= 0
    by_time = np.searchsorted(first, kernels.start, side="right") - 1
    inside = (own >= 0) | (by_time >= 0) | (~known if marks != "kernels" else False)
    if marks == "kernels":
        last = np.full(len(names), -1, np.int64)
        np.maximum.at(last, own[(own >= 0) & known], kernels.end[(own >= 0) & known])
    if last is not None:
        inside &= (own >= 0) | (kernels.start < last[np.maximum(by_time, 0)])
    of = np.where(own >= 0, own, np.maximum(by_time, 0))
    start, end, keep = [], [], []
    for i in range(len(names)):
        mine = (of == i) & known & inside
        if mine.any():
            keep.append(i)
            start.append(int(kernels.start[mine].min()))
            end.append(int(kernels.end[mine].max()))
    stray = kernels.start[known & ~inside]
    next_to = follows([names[i] for i in keep], start, end)
    for i in range(0 if apart else len(keep) - 1):
        between = int(np.searchsorted(stray, end[i]))
        alone = between == len(stray) or stray[between] >= start[i + 1]
        if alone and next_to[i]:
            end[i] = start[i + 1]
    position = np.full(len(names), 0, np.int64)
    position[keep] = np.arange(len(keep))
    told = tuple(names[i] for i in keep)
    of = position[of][inside]
    return Placed(Windows(told, np.array(start, np.int64), np.array(end, np.int64), of), inside, marks)


_COURSES = ("steps", "step_phases", "cluster_phases", "iterations", "kernels", "operators", "operator_types", "trace")
"""Tables that tell how a rank's time passes better than its collectives alone."""


class MeetingSteps(Struct, frozen=True):
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
