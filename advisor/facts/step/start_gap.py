"""The device's idle time before a step's first kernel, and in which row of the step table it stands.

Where several steps are recorded, torch_npu's row runs from the step's first kernel to the next one's, the last row to
its own last kernel: the wait before a step stands in the row before it. Other writers' rows end with the step's own
kernels, and the wait stands nowhere; MindSpore clips `Free` to the step's window and so counts it in its own row,
except in the first. `Preparing` runs from the step's start on the host to its first kernel; where the host runs ahead
of the device, most of it is the step before still running. Kernels with their times decide, row by row; where there
are none, ranks of one job do, whose steps are of one length; else the row before holds the wait, unless the last row
idles as long as the others: then they idle within their steps, and their waits are not known.

Here every step owns the wait before it. The first recorded step follows nothing that was recorded: its wait is taken
to be what the steps after it show; where half of these and more wait far longer than the rest, nobody knows which it
is like, and it is left out. A lone step is left as its table tells it, unless the ranks' waits are what makes their
steps one as long as the other, or a timeline tells the wait (host/opening.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Mask
from advisor.facts.device.course import Course
from advisor.facts.device.drawn import drawn_alone
from advisor.facts.recording.limits import section
from advisor.facts.step.times import StepTimes
from advisor.model import Source


def settle(
    times: Mapping[int, StepTimes], courses: Mapping[int, Course], frameworks: Mapping[int, str]
) -> dict[int, StepTimes]:
    """All recorded steps with the phase `start_gap`, and time and idle that contain it.

    Ranks of which neither kernels nor `Preparing` tell it, and whole recordings in one row, stay as they are.
    """
    found = dict(times)
    guessed: list[int] = []
    lone: list[int] = []
    for rank, one in times.items():
        course = courses.get(rank)
        if one.table == "kernels":
            drawn = drawn_alone(one.sources)  # its own steps hold their waits
            if not drawn and course is not None and (gap := _from_kernels(one, course)) is not None:
                found[rank] = own_waits(one, gap, _holds_next(one, course), "kernels")
        elif one.table == "steps" and one.steps not in (("0",), ("",)):
            prepared = "preparing" in one.phases
            if is_host_window(one, frameworks.get(rank, "unknown")):
                found[rank] = _inside(one, course) if prepared else one
            elif course is not None and (gap := _from_kernels(one, course)) is not None:
                found[rank] = own_waits(one, gap, _holds_next(one, course), "kernels")
            elif prepared:
                (guessed if len(one.steps) > 1 else lone).append(rank)
    if len(lone) == len(times) and _lie_beside([times[rank] for rank in lone]):
        for rank in lone:
            gap = np.maximum(np.nan_to_num(times[rank].phases["preparing"]), 0.0)
            found[rank] = own_waits(times[rank], gap, np.zeros(1, bool), "preparing")
    if guessed:
        several = [times[rank] for rank in guessed]
        beside = False if _are_in_the_row_before(several) else _is_beside(several)
        inside = beside is None and _idle_to_the_end(several)
        if not inside and (beside is not None or not _is_ahead(several)):
            for rank in guessed:
                gap = np.maximum(np.nan_to_num(times[rank].phases["preparing"]), 0.0)
                holds = np.full(len(gap), beside is not True)
                if beside is not True:
                    gap[1:] = np.minimum(gap[1:], np.nan_to_num(times[rank].phases.get("idle", gap))[:-1])
                gap[0] = min(gap[0], _usual(gap[1:]))
                found[rank] = own_waits(times[rank], gap, holds, "preparing")
                if beside is None and _lacks_tail(times[rank]):
                    found[rank] = found[rank].without(found[rank].steps[-1:], "its row ends with its own last kernel")
    return found


_GAPS = {
    "preparing": Source("", ("preparing_us",), table="steps"),
    "kernels": Source("", ("start_ns", "duration_us"), table="kernels"),
    "trace": Source("", (), table="trace"),
}
"""What a gap rests on -> where it is read."""


def own_waits(one: StepTimes, gap: Floats, holds_next: Mask, gap_from: str) -> StepTimes:
    """Every step with the wait before it; rows that hold the next step's wait hand it on."""
    added = gap.copy()
    handed = np.where(holds_next[:-1], gap[1:], 0.0)
    if "idle" in one.phases:
        handed = np.minimum(handed, np.nan_to_num(one.phases["idle"])[:-1])
    added[:-1] -= handed
    phases = {**one.phases, "start_gap": gap}
    if "idle" in phases:
        phases["idle"] = phases["idle"] + added
    sources = one.sources if one.table == gap_from else (*one.sources, _GAPS[gap_from])
    return replace(one, phases=phases, time=one.time + added, gap_from=gap_from, sources=sources)


def is_host_window(one: StepTimes, framework: str) -> bool:
    """Whether the row is the step's window on the host: by the framework, else by the span that Stage tells."""
    if framework in ("mindspore", "pytorch"):
        return framework == "mindspore"
    stage = one.phases.get("stage")
    if stage is None or not np.nansum(stage) > 0:
        return False
    span = stage + np.nan_to_num(one.phases.get("bubble", np.zeros(len(stage))))
    return bool(np.nanmedian(np.abs(span / one.time - 1)) > section("start_gap")["same_share"])


def _inside(one: StepTimes, course: Course | None) -> StepTimes:
    """MindSpore: the wait is part of Free. A step's window begins on the host, `Preparing` before its first kernel:
    what the device waited longer, the loop spent at the end of the step before, and it stands in that row. The overlap
    analysis begins with the first kernel of all, so the wait before that one stands nowhere: as far as the first row
    is shorter than the others, it is added."""
    preparing = np.maximum(np.nan_to_num(one.phases["preparing"]), 0.0)
    idle = np.nan_to_num(one.phases.get("idle", np.zeros(len(one.time))))
    kernels = _from_kernels(one, course)
    gap = np.minimum(preparing if kernels is None else kernels, idle)
    added = np.zeros(len(gap))
    if kernels is not None and preparing.all():
        gap = np.minimum(gap, preparing)
        before = np.minimum(np.maximum(kernels - preparing, 0.0)[1:], (idle - gap)[:-1])
        added[1:] += before
        added[:-1] -= before
        gap[1:] += before
    length = one.time + added
    short = float(np.median(length[1:]) - length[0]) if len(gap) > 1 else np.inf
    added[0] += min(max(short, 0.0), preparing[0])
    gap[0] = min(preparing[0], idle[0] + added[0])
    phases = {**one.phases, "start_gap": gap}
    if "idle" in phases:
        phases["idle"] = phases["idle"] + added
    gap_from = "preparing" if kernels is None else "kernels"
    sources = (*one.sources, _GAPS[gap_from])
    return replace(one, phases=phases, time=one.time + added, gap_from=gap_from, sources=sources)


def _from_kernels(one: StepTimes, course: Course | None) -> Floats | None:
    """Idle from the end of the step before to the first kernel; None where the kernels are not those of these steps.
    A step that follows none is taken to wait as the others do, but no longer than its `Preparing` lets it."""
    limits = section("start_gap")
    if course is None:
        return None
    rows = _places(one, course)
    gap = np.array([course.lead_us[i] if i > 0 else np.nan for i in rows])
    if not np.isfinite(gap).any():
        return None
    computing = one.phases.get("computing")
    if computing is not None:
        own = np.array([course.computing_us[i] if i >= 0 else np.nan for i in rows])
        if (
            not abs(np.nansum(own) / max(float(computing[np.isfinite(own)].sum()), 1e-9) - 1)
            <= limits["computing_share"]
        ):
            return None
    known = np.isfinite(gap)
    unknown = np.full(len(gap), _usual(gap))
    if "preparing" in one.phases:
        preparing = np.maximum(np.nan_to_num(one.phases["preparing"]), 0.0)
        unknown = np.minimum(unknown, preparing + float(np.median(np.maximum(gap - preparing, 0.0)[known])))
    return np.where(known, gap, unknown)


def without_unknown_wait(
    times: dict[int, StepTimes], settled: Mapping[int, StepTimes], frameworks: Mapping[int, str]
) -> dict[int, StepTimes]:
    """Without the first recorded step where its wait may be either short or long: the mean of the others is what was
    recorded. On all ranks or none, for they are compared in the same steps."""
    for rank, one in times.items():
        before = settled.get(rank)
        opens = before is not None and before.steps[0] == one.steps[0]
        if not opens or is_host_window(one, frameworks.get(rank, "unknown")) or not _is_of_either_kind(one):
            return times
    reason = "the wait before it was not recorded, and the others wait differently long"
    return {rank: one.without(one.steps[:1], reason) for rank, one in times.items()}


def _is_of_either_kind(one: StepTimes) -> bool:
    """Whether the first step, which follows none, may have waited as long as one half of the others or as the rest of
    them, which wait far less: a loader whose workers deliver together serves every other step at once."""
    gap, limits = one.phases.get("start_gap"), section("start_gap")
    if gap is None or one.gap_from not in _GAPS or len(gap) <= limits["rows"]:
        return False
    known = np.sort(gap[1:])
    jump = int(np.argmax(np.diff(known))) + 1
    small, large = known[:jump], known[jump:]
    apart = large[0] - small[-1] > max(np.ptp(small), np.ptp(large), limits["telling_share"] * float(one.time.mean()))
    both = len(large) > 1 and len(small) <= len(large)
    return bool(apart and both and small[-1] < limits["now_and_then"] * large[0])


def _usual(gap: Floats) -> float:
    """The median of those that are known; of two the lesser, for one of them may be the exception. Where they come in
    two sizes, as with a pause now and then, that of the small ones: nobody adds a pause that was not recorded."""
    known = np.sort(gap[np.isfinite(gap)])
    jump = int(np.argmax(np.diff(known))) + 1 if len(known) > 1 else len(known)
    small, large = known[:jump], known[jump:]
    apart = large.size and large[0] - small[-1] > max(np.ptp(small), np.ptp(large))
    middle = float(np.percentile(known, 50, method="lower"))
    if apart and small[-1] < section("start_gap")["now_and_then"] * middle:
        return float(np.percentile(small, 50, method="lower"))
    return middle


def _places(one: StepTimes, course: Course) -> list[int]:
    place = {step: i for i, step in enumerate(course.steps)}
    return [place.get(step, -1) for step in one.steps]


def _holds_next(one: StepTimes, course: Course) -> Mask:
    """Which rows reach to the first kernel of the step after them, rather than to their own last kernel."""
    result = np.zeros(len(one.steps), bool)
    told = np.zeros(len(one.steps), bool)
    for row, i in enumerate(_places(one, course)[:-1]):
        if 0 <= i < len(course.steps) - 1 and course.steps[i + 1] == one.steps[row + 1]:
            own, wait = float(course.span_us[i]), float(course.lead_us[i + 1])
            result[row] = abs(one.time[row] - own - wait) < abs(one.time[row] - own)
            told[row] = True
    if told.any():  # kernels of the other rows are not at hand: one writer wrote them all
        result[:-1] |= ~told[:-1] & bool(result[told].mean() > 0.5)
    return result


def _lacks_tail(one: StepTimes) -> bool:
    """Whether the last row computes as much as the others and is shorter: it ends with its own last kernel, and
    nothing but the next step would tell how long it takes."""
    limits = section("start_gap")
    computing = one.phases.get("computing")
    if len(one.steps) < limits["rows"] or computing is None or not np.median(computing[:-1]) > 0:
        return False
    as_much = float(computing[-1]) > (1 - limits["computing_share"]) * float(np.median(computing[:-1]))
    return as_much and float(one.time[-1]) < (1 - limits["telling_share"]) * float(np.median(one.time[:-1]))


def _idle_to_the_end(times: list[StepTimes]) -> bool:
    """Whether the last rows, which no step follows, idle as long as the others: then these idle between their own
    kernels, and what they idle is not the wait for the step after them. Rows of one recording are read in one way:
    ranks that idle tell it for those that do not."""
    limits, told = section("start_gap"), []
    for one in times:
        idle = np.nan_to_num(one.phases.get("idle", np.zeros(len(one.time))))
        if len(idle) < limits["rows"]:
            continue
        usual, slack = float(np.median(idle[:-1])), limits["telling_share"] * float(np.median(one.time[:-1]))
        if usual > slack:
            told.append(float(idle[-1]) >= usual - slack)
    return 2 * sum(told) > len(told)


def _is_ahead(times: list[StepTimes]) -> bool:
    """Whether hosts are (almost) a whole step ahead of their devices: then `Preparing` is the step before running."""
    length, wait = _lengths(times)
    return not length.size or float(np.median(wait)) >= section("start_gap")["ahead_share"] * float(np.median(length))


def _are_in_the_row_before(times: list[StepTimes]) -> bool:
    """Whether each row idles at least as long as the next step waits, and the last row, which none follows, less than
    its own step does: then the waits stand in the rows before them."""
    limits, shown = section("start_gap"), 0
    for one in times:
        wait, idle = (np.nan_to_num(one.phases.get(name, np.zeros(len(one.time)))) for name in ("preparing", "idle"))
        slack = limits["telling_share"] * one.time
        holds = len(wait) > 1 and bool((idle[:-1] >= wait[1:] - slack[:-1]).all())
        shown += holds and bool(idle[-1] < wait[-1] - slack[-1])
    return 2 * shown > len(times)


def _is_beside(times: list[StepTimes]) -> bool | None:
    """Whether `Preparing` stands in no row, as ranks of one synchronous job show whose steps are of one length: if
    they wait differently long and the sum with the wait is what is equal, rather than the rows or the rows without the
    next step's wait, the rows lack it. None where they wait alike. The first step follows no other and is left out; a
    lone step shows nothing."""
    limits = section("start_gap")
    length, wait = _lengths(times)
    if (
        len(times) < 2
        or not length.size
        or not float(np.ptp(wait, axis=0).mean()) > limits["telling_share"] * float(length.mean())
    ):
        return None
    forms = [length + wait, length]
    if length.shape[1] > 1:
        forms = [form[:, :-1] for form in forms] + [(length + wait)[:, :-1] - wait[:, 1:]]
    beside, *others = (float(np.ptp(form, axis=0).mean()) for form in forms)
    return beside <= min(others)


def _lie_beside(times: list[StepTimes]) -> bool:
    """Whether the one row of each rank lacks its wait, as ranks of one synchronous job show that wait differently long:
    their rows are of different lengths, and each with its wait as long as the others'."""
    if len(times) < 2 or len({one.steps for one in times}) > 1:
        return False
    length = np.concatenate([one.time for one in times])
    wait = np.maximum(np.nan_to_num(np.concatenate([one.phases["preparing"] for one in times])), 0.0)
    slack = section("start_gap")["telling_share"] * float(length.mean())
    return bool(np.ptp(wait) > slack and np.ptp(length) > slack >= np.ptp(length + wait))


def _lengths(times: list[StepTimes]) -> tuple[Floats, Floats]:
    steps = [s for s in times[0].steps if all(s in t.steps for t in times)][1:]
    length = np.array([[t.time[t.steps.index(s)] for s in steps] for t in times])
    wait = np.nan_to_num(np.array([[t.phases["preparing"][t.steps.index(s)] for s in steps] for t in times]))
    return length, wait
