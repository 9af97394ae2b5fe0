"""The device's idle time before a step's first kernel, and whether the step table counts it as a part of the step.

`Preparing` runs from the step's start on the host to its first kernel. torch_npu's row is the span of the step's own
kernels, so the wait before them lies outside computing + exposed + free; MindSpore clips `Free` to the step's window
and so counts it, except in the first row. Where the host runs ahead of the device, most of `Preparing` is the step
before still running: kernels with their times tell, else ranks of one job do, whose steps are of one length.

The first recorded step follows nothing that was recorded, and its `Preparing` also holds the profiler's own start: it
is taken for no longer than the steps after it show, and a lone step is left as its table tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from advisor.facts.device.course import Course
from advisor.facts.step.times import Series, StepTimes

SAME = 0.01
"""Two sums over one step that differ by less are the same thing: the writers round and clip differently."""
SAME_KERNELS = 0.2
"""Kernels whose computing time differs by more from the step table's are not all of the step's."""
TELLING = 0.02
"""Waits that differ between ranks by less than this share of the step do not show what they are part of."""
AHEAD = 0.8
"""A host this share of a step and more before its device, on every rank, is a step ahead rather than late."""


def settle(
    times: Mapping[int, StepTimes], courses: Mapping[int, Course], frameworks: Mapping[int, str]
) -> dict[int, StepTimes]:
    """All recorded steps with the phase `start_gap`, and time and idle that contain it.

    Ranks whose table tells no `Preparing`, and whole recordings in one row, stay as they are.
    """
    found = dict(times)
    guessed: list[int] = []
    for rank, one in times.items():
        if one.table == "kernels":
            gap = _from_kernels(one, courses.get(rank))
            if gap is not None:
                found[rank] = _with_gap(one, gap, None, "kernels")
        elif one.table == "steps" and "preparing" in one.phases and one.steps not in (("0",), ("",)):
            if _counted(one, frameworks.get(rank, "unknown")):
                found[rank] = _inside(one, courses.get(rank))
            elif (gap := _from_kernels(one, courses.get(rank))) is not None:
                found[rank] = _with_gap(one, gap, gap, "kernels")
            else:
                guessed.append(rank)
    if guessed and _is_waiting([times[rank] for rank in guessed]):
        for rank in guessed:
            gap = np.maximum(np.nan_to_num(times[rank].phases["preparing"]), 0.0)
            gap[0] = min(gap[0], float(np.median(gap[1:])))
            found[rank] = _with_gap(times[rank], gap, gap, "preparing")
    return found


def _with_gap(one: StepTimes, gap: Series, added: Series | None, gap_from: str) -> StepTimes:
    phases = {**one.phases, "start_gap": gap}
    if added is None:
        return replace(one, phases=phases, gap_from=gap_from)
    if "idle" in phases:
        phases["idle"] = phases["idle"] + added
    return replace(one, phases=phases, time=one.time + added, gap_from=gap_from)


def _counted(one: StepTimes, framework: str) -> bool:
    """Whether computing + exposed + free contains the wait: by the framework, else by the span that Stage tells."""
    if framework in ("mindspore", "pytorch"):
        return framework == "mindspore"
    stage = one.phases.get("stage")
    if stage is None or not np.nansum(stage) > 0:
        return False
    span = stage + np.nan_to_num(one.phases.get("bubble", np.zeros(len(stage))))
    return bool(np.nanmedian(np.abs(span / one.time - 1)) > SAME)


def _inside(one: StepTimes, course: Course | None) -> StepTimes:
    """MindSpore: the wait is part of Free. Its overlap analysis begins with the first kernel of all, so the wait before
    that one is not: as far as the first row is shorter than the others, it is added."""
    preparing = np.maximum(np.nan_to_num(one.phases["preparing"]), 0.0)
    idle = np.nan_to_num(one.phases.get("idle", np.zeros(len(one.time))))
    kernels = _from_kernels(one, course)
    gap = np.minimum(preparing if kernels is None else kernels, idle)
    added = np.zeros(len(gap))
    short = float(np.median(one.time[1:]) - one.time[0]) if len(gap) > 1 else np.inf
    added[0] = min(max(short, 0.0), preparing[0])
    gap[0] = min(preparing[0], idle[0] + added[0])
    return _with_gap(one, gap, added, "preparing" if kernels is None else "kernels")


def _from_kernels(one: StepTimes, course: Course | None) -> Series | None:
    """Idle from the end of the step before to the first kernel; None where the kernels are not those of these steps.
    The first of consecutive steps has none before it: its `Preparing` stands, as far as the others show as much."""
    if course is None:
        return None
    place = {step: i for i, step in enumerate(course.steps)}
    rows = [place.get(step, -1) for step in one.steps]
    gap = np.array([
        course.lead_us[i] if i > 0 and _follows(course.steps[i - 1], course.steps[i]) else np.nan for i in rows
    ])  # fmt: skip
    if not np.isfinite(gap).any():
        return None
    computing = one.phases.get("computing")
    if computing is not None:
        own = np.array([course.computing_us[i] if i >= 0 else np.nan for i in rows])
        if not abs(np.nansum(own) / max(float(computing[np.isfinite(own)].sum()), 1e-9) - 1) <= SAME_KERNELS:
            return None
    usual = float(np.nanmedian(gap))
    told = np.maximum(np.nan_to_num(one.phases.get("preparing", np.full(len(gap), usual))), 0.0)
    return np.where(np.isfinite(gap), gap, np.minimum(told, usual))


def _follows(before: str, step: str) -> bool:
    """Between steps that are not neighbours lies time that nobody recorded."""
    return not (before.isdigit() and step.isdigit()) or int(step) == int(before) + 1


def _is_waiting(times: list[StepTimes]) -> bool:
    """Whether `Preparing` is time of its own, and not the step before still running.

    Ranks of one synchronous job have steps of one length: if they wait differently long and the sum with the wait is
    what is equal, the wait is part of the step. Where they wait alike, a host that is (almost) a whole step ahead
    shows that it runs ahead. The first step follows no other and is left out; a lone step shows nothing.
    """
    steps = [s for s in times[0].steps if all(s in t.steps for t in times)][1:]
    length = np.array([[t.time[t.steps.index(s)] for s in steps] for t in times])
    wait = np.nan_to_num(np.array([[t.phases["preparing"][t.steps.index(s)] for s in steps] for t in times]))
    if not length.size:
        return False
    if len(times) > 1 and float(np.ptp(wait, axis=0).mean()) > TELLING * float(length.mean()):
        return float(np.ptp(length + wait, axis=0).mean()) <= float(np.ptp(length, axis=0).mean())
    return float(np.median(wait)) < AHEAD * float(np.median(length))
