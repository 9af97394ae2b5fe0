"""Tables of another run that lie in a rank's folder: they are left out before anything is measured.

What is divided by the steps of one run must have run in them. The step table is what the others are held against: it
alone tells how long a step is, and sums of other steps, however right by themselves, say nothing about these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.basics.intervals import measure, union
from advisor.basics.units import show
from advisor.facts.device.kernel_time import exchanging, is_communication
from advisor.facts.operators.kinds import AICPU_CORES, is_fetch
from advisor.facts.recording.counts import are_whole, covers_more, is_cut, types_of
from advisor.facts.recording.limits import section
from advisor.facts.recording.sums import is_excerpt, statistic_of, step_rows, whole_time
from advisor.facts.recording.windows import NAMELESS
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, Signature, load_kernels
from advisor.sources.streams.rank_trace import load_trace

_APART = ": it tells of another run or of other steps"


class _Told(Struct, frozen=True):
    """What the step table tells of all its steps, microseconds."""

    file: str
    names: frozenset[str]
    count: int
    computing: float
    communication: float
    length: float


def leave_out_foreign(rank: Rank) -> None:
    """Takes the tables of other steps away from the rank, and tells so. Kernels are held against the step table first:
    where they are of one run, the statistic that bears them out is too."""
    if told := _told(rank):
        for table, fault in (("kernels", _of_kernels), ("trace", _of_timeline), ("collectives", _of_collectives)):
            _hold(rank, table, told, fault)
    if rank.has("kernels") and rank.has("operator_types") and (text := _unlike_kernels(rank)):
        # without steps nobody knows which of the two runs was asked about
        _leave_out(rank, "operator_types", text, () if told else ("kernels",))
    kernels = load_kernels(rank) if told and rank.has("kernels") and rank.has("operator_types") else None
    if told and (kernels is None or is_cut(rank, kernels)):
        _hold(rank, "operator_types", told, _of_statistic)


def _hold(rank: Rank, table: str, told: _Told, fault: Callable[[Rank, _Told], str]) -> None:
    apart = rank.has(table) and rank.tables[table].paths != rank.tables["steps"].paths
    if apart and (text := fault(rank, told)):
        _leave_out(rank, table, text)


def _leave_out(rank: Rank, table: str, text: str, doubted: tuple[str, ...] = ()) -> None:
    """Whatever was read so far may rest on it: the rank reads anew."""
    paths = rank.tables[table].paths
    rank.note(rank.relative(paths[0]), f"{text}; left out", doubted)
    rank.tables = {name: known for name, known in rank.tables.items() if known.paths != paths}
    rank.forget()


def _told(rank: Rank) -> _Told | None:
    frame = step_rows(rank)
    columns = ("computing_us", "exposed_us", "free_us")
    if frame is None or frame.empty or not {*columns} <= set(frame):
        return None
    computing, exposed, free = (float(np.nansum(frame[c].to_numpy(float, na_value=np.nan))) for c in columns)
    hidden = frame["overlapped_us"].to_numpy(float, na_value=np.nan) if "overlapped_us" in frame else np.zeros(1)
    names = {str(step) for step in frame["step"] if step is not None and step == step} if "step" in frame else set()
    file = rank.tables["steps"].paths[0].name
    told = _Told(
        file, frozenset(names), len(frame), computing, exposed + float(np.nansum(hidden)), computing + exposed + free
    )
    return told if computing > 0 else None


def _of_kernels(rank: Rank, told: _Told) -> str:
    """Why the kernels are those of other steps; empty where they may be of these."""
    kernels = load_kernels(rank)
    if kernels is None:
        return ""
    numbers = np.flatnonzero(np.bincount(kernels.step[kernels.step >= 0], minlength=len(kernels.steps)))
    names = {name for number in numbers.tolist() if (name := kernels.steps[number])}
    if _shared(told, names or _marks(rank)):  # most often, and what they compute is not asked for
        return ""
    computing = (kernels.start >= 0) & ~exchanging(kernels)
    us = measure(union(kernels.start[computing], kernels.end[computing])) / 1000
    if names:
        return _of_other_steps(told, names, us, told.computing, "computes for")
    if not us > section("contradiction")["one_job_factor"] * told.computing:
        return ""
    return f"computes for {show(us, 'us')}, all steps of {told.file} for {show(told.computing, 'us')}{_APART}"


def _of_timeline(rank: Rank, told: _Told) -> str:
    """The same of a timeline, by its marks of steps and what the profiler itself summed up."""
    trace, marks = load_trace(rank), _marks(rank)
    if trace is None or not marks:
        return ""
    if us := measure(trace.computing) / 1000:
        return _of_other_steps(told, marks, us, told.computing, "computes for")
    return _of_other_steps(told, marks, sum(end - start for _, start, end in trace.steps) / 1000, told.length, "lasts")


def _marks(rank: Rank) -> set[str]:
    trace = load_trace(rank) if rank.has("trace") else None
    return set() if trace is None else {name for name, _, _ in trace.steps}


def _of_collectives(rank: Rank, told: _Told) -> str:
    """The same of the file of collectives, which overlap each other."""
    frame = rank.read("collectives")
    if frame is None or not {"step", "elapsed_us"} <= set(frame):
        return ""
    us = float(np.nansum(frame["elapsed_us"].to_numpy(float, na_value=np.nan)))
    names = {str(step) for step in frame["step"] if step is not None and step == step}
    groups = frame["group"].nunique() if "group" in frame else 1
    many = section("contradiction")["collective_factor"] * max(groups, 1)
    return _of_other_steps(told, names, us, told.communication, "communicates for", many)


def _of_other_steps(
    told: _Told, names: set[str], us: float, steps_us: float, does: str, most: float | None = None
) -> str:
    """Tables may count steps from elsewhere: where none is in both, how much there is in one tells. `most` is how many
    times more than in the step table may be in a step of the other."""
    if not names or _shared(told, names) or told.names <= {*NAMELESS} or names <= {*NAMELESS}:
        return ""
    factor = section("contradiction")["one_job_factor"]
    each, steps_each = us / len(names), steps_us / told.count
    if each <= (most or factor) * steps_each and steps_each <= factor * each:
        return ""
    there = show(steps_each, "us")
    return f"names no step of {told.file}, and {does} {show(each, 'us')} a step where those take {there}{_APART}"


def _shared(told: _Told, names: set[str]) -> bool:
    return bool(told.names & names)


def _unlike_kernels(rank: Rank) -> str:
    """Why the statistic is not of the kernels beside it: each holds types that the other lacks. A table that was cut is
    a part of the whole, and one that was sorted and cut lacks what takes less than its last row."""
    kernels, frame = load_kernels(rank), statistic_of(rank)
    if kernels is None or frame is None or not {"total_us", "core", "type"} <= set(frame):
        return ""
    rows, (types, us) = _computing(frame), _types_us(kernels)
    least, whole, share = frame["total_us"].min(), rows["total_us"].sum(), section("contradiction")["unlike_share"]
    listed = set(frame["type"].dropna())
    unlisted = sum(own for name, own in zip(types, us.tolist(), strict=True) if name not in listed and own > least)
    absent = rows["total_us"][~rows["type"].isin(types)].sum()
    if unlisted <= share * us.sum() or absent <= share * whole:
        return ""
    part, file = show(unlisted / us.sum(), "ratio"), rank.tables["kernels"].paths[0].name
    return f"lacks types of operators that take {part} of the kernel time of {file}{_APART}"


def _types_us(kernels: Kernels) -> tuple[list[str], Floats]:
    """(types, their time) of the kernels that compute and whose type is told."""
    named = np.array([bool(s.type) and not is_communication(s) for s in kernels.signatures], bool)
    types, of = types_of(kernels)
    us: Floats = np.bincount(of, kernels.duration * named[kernels.signature], len(types)).astype(float)
    return types, us


def _of_statistic(rank: Rank, told: _Told) -> str:
    """Why the statistic by type is not one of these steps, or of whole ones more: kernels of one type follow each
    other, so that the type that takes longest runs no longer than the steps compute. Where it sums up less than they
    compute its rows are missing, and the step table stands."""
    frame = statistic_of(rank)
    if frame is None or not {"total_us", "core", "type"} <= set(frame) or not frame["total_us"].notna().all():
        return ""
    if "steps" in frame and (frame["steps"] == 1).any():
        return ""
    rows = _computing(frame)
    us, limits = rows["total_us"].to_numpy(float), section("contradiction")
    if not us.sum() > 0:
        return ""
    # shares of the whole tell of the rows that were cut off: then those at hand may be of these steps
    whole = max(float(us.sum()), whole_time(frame) or 0.0)
    on_cores = us[~rows["core"].isin(AICPU_CORES).to_numpy(bool)]
    if covers_more(whole, float(on_cores.max(initial=0.0)), told.computing, told.length):
        executions = round(whole / told.computing * told.count)
        if "count" in rows and are_whole(rows["count"].to_numpy(float, na_value=np.nan), executions):
            return ""
        text = f"tells of kernels of {show(whole, 'us')}"
        return f"{text}, all steps of {told.file} compute for {show(told.computing, 'us')}{_APART}"
    lacks = told.computing - whole
    fewer = lacks > limits["computing_share"] * whole and lacks > limits["of_step"] * told.length
    if fewer and is_excerpt(frame) and told.computing <= limits["lost_factor"] * whole:
        text = f"tells of kernels of {show(whole, 'us')}, the steps of {told.file} compute for "
        return f"{text}{show(told.computing, 'us')}: rows are missing, or it tells of another run"
    return ""


def _computing(frame: Any) -> Any:
    """The rows of operators that compute."""
    cores = [core if isinstance(core, str) else "" for core in frame["core"]]
    talks = [
        not isinstance(name, str) or is_fetch(name) or is_communication(Signature(name, core, "", "", "", "", "", ""))
        for name, core in zip(frame["type"], cores, strict=True)
    ]
    return frame[~np.array(talks, bool)]
