"""Sums that a step table must obey whatever the training did: what breaks them is no measurement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.basics.intervals import measure, union
from advisor.basics.units import show
from advisor.facts.recording.limits import section
from advisor.sources.base import Rank
from advisor.sources.frames import is_word
from advisor.sources.streams.binaries import type_of_binary
from advisor.sources.streams.kernels import load_kernels
from advisor.sources.streams.rank_trace import load_trace

Sum = tuple[tuple[str, ...], tuple[str, ...]]

_EQUAL: tuple[Sum, ...] = ((("communication_us",), ("overlapped_us", "exposed_us")),)
"""(parts of one side, parts of the other): equal in every row."""
_BUBBLE: Sum = (("exposed_without_receive_us", "bubble_us"), ("exposed_us",))
"""Every writer takes the bubble from the exposed time, below nothing where receives wait side by side."""
_WHOLE: Sum = (("stage_us", "bubble_us"), ("computing_us", "exposed_us", "free_us"))
"""torch_npu's stages are the whole step. MindSpore clips Stage to the step on the host, and its Bubble adds up what
every receive lasts: receives that wait side by side, or reach into the next step, make more than the step has."""
_PHASES: Sum = (("interval_us", "fp_bp_us", "tail_us"), ("total_us",))
_CLUSTER: Sum = (("computation_us", "exposed_us"), ("stage_us", "receive_us"))
"""Both are the step of the older cluster analysis."""
_FULL = 1.02
"""Shares are rounded to a hundredth of a per cent; more than this is no sum of shares."""


_MILLI = 1000
"""Times in milliseconds under a heading that names no unit are so many times too short."""


def step_rows(rank: Rank) -> Any:
    """The step table in microseconds; None where there is none, or where no step can be as short as it tells. Its
    headings name no unit, so kernels are its witness: tables in milliseconds are told and read as such."""
    return rank.once(step_rows, lambda: _step_rows(rank))


def _step_rows(rank: Rank) -> Any:
    frame = rank.read("steps") if rank.has("steps") else None
    if frame is None or frame.empty or "computing_us" not in frame:
        return frame
    computing = frame["computing_us"].to_numpy(float, na_value=np.nan)
    if not np.nansum(computing) > 0:
        return frame
    witness, milli = _by_kernels(rank, frame), True
    if witness is None:
        witness, milli = _by_statistic(rank, frame)
    if witness is None:
        return frame
    place, other = rank.relative(rank.tables["steps"].paths[0]), rank.tables[witness].paths[0].name
    if not milli:
        text = (
            f"contradicts {other}: kernels there last longer than all that a step computes here; its rows are no steps"
        )
        rank.note(place, text, ("steps", witness))
        return None
    rank.note(place, f"tells milliseconds where others tell microseconds, as {other} shows: read as milliseconds")
    times = [name for name in frame.columns if name.endswith("_us")]
    return frame.assign(**{name: frame[name] * _MILLI for name in times})


def _is_milli(us: Floats, frame: Any) -> bool:
    """Whether these times are a thousand times what the rows compute, or compute and exchange."""
    share = section("contradiction")["computing_share"]
    alone = frame["computing_us"].to_numpy(float, na_value=np.nan)
    exposed = frame["exposed_us"].to_numpy(float, na_value=0.0) if "exposed_us" in frame else 0.0
    return any(bool((np.abs(us / _MILLI - told) <= share * told).all()) for told in (alone, alone + exposed))


def _by_kernels(rank: Rank, frame: Any) -> str | None:
    """The table of kernels, where it names the same steps and each of them has a thousand times as much to run. When
    kernels start decides: a length in another unit makes them overlap, not run for longer together."""
    kernels = load_kernels(rank) if rank.has("kernels") and "step" in frame else None
    if kernels is None or not (kernels.start >= 0).all():
        return None
    ran = {
        name: measure(union(kernels.start[mine], kernels.end[mine])) / 1000
        for index, name in enumerate(kernels.steps)
        if name and (mine := kernels.step == index).any()
    }
    both = frame[[str(name) in ran for name in frame["step"]]]
    us = np.array([ran[str(name)] for name in both["step"]])
    return "kernels" if len(both) and _is_milli(us, both) else None


def _by_statistic(rank: Rank, frame: Any) -> tuple[str | None, bool]:
    """(the statistic by type, whether the steps are in milliseconds) where most of its time is in calls that last
    longer than any step computes: then it is no longer recording of the same steps. In which of the two the unit is
    another one its kernels decide: no type is as short as a thousandth of what many of these last."""
    statistic, limits = statistic_of(rank), section("contradiction")
    if (
        statistic is None
        or not {"total_us", "count"} <= set(statistic)
        or ("steps" in statistic and (statistic["steps"] == 1).any())
    ):
        return None, False
    known = statistic[(statistic["total_us"] > 0) & (statistic["count"] > 0)]
    us, count = known["total_us"].to_numpy(float), known["count"].to_numpy(float)
    computing = frame["computing_us"].to_numpy(float, na_value=np.nan)
    longer = float(us[us > count * np.nanmax(computing)].sum())
    if us.sum() <= limits["lost_factor"] * np.nansum(computing) or 2 * longer <= us.sum():
        return None, False
    sums = frame[["computing_us", *(["exposed_us"] if "exposed_us" in frame else [])]].sum().to_frame().T
    short = float(count[us < _MILLI * limits["shortest_us"] * count].sum()) > limits["part_share"] * count.sum()
    return "operator_types", short and _is_milli(us.sum(keepdims=True), sums)


def tell_sums(rank: Rank, frame: Any, time: Any) -> bool:
    """Tells a step table whose columns contradict each other. `time` is each step's length, microseconds. False where
    they make two sums wrong in every row: they are not what their headings say."""
    equal = (*_EQUAL, _WHOLE) if rank.framework == "pytorch" else _EQUAL
    told = _told(frame)
    moved = _tell(rank, told, time, "steps", equal) > 1
    _tell(rank, told, time, "steps", (_BUBBLE,))
    _tell_computing(rank, frame, float(np.nansum(time)))
    _tell_lost(rank, frame)
    if "preparing_us" not in frame:
        return not moved
    preparing = frame["preparing_us"].to_numpy(float, na_value=np.nan)
    far = preparing > section("contradiction")["ahead_factor"] * time
    # a host that runs ahead began no step before the first: it leads by what was recorded since, at most
    ahead = np.cumsum(np.nan_to_num(time))[:-1] + (0.0 if far[:1].any() else np.nan_to_num(preparing[:1]).sum())
    far[1:] &= preparing[1:] > (1 + section("contradiction")["sum_share"]) * ahead
    wrong = int(far[1:].sum())  # before the first one a graph may be compiled
    if len(far) == 1 and far[0] and not _is_marked_so_long(rank, float(preparing[0])):
        wrong = 1
    if wrong:
        text = f"Preparing is many times the step in {wrong} of {len(frame)} rows: another unit, or another run"
        rank.note(rank.relative(rank.tables["steps"].paths[0]), f"contradicts itself: {text}", ("steps",))
    return not moved


def _tell_lost(rank: Rank, frame: Any) -> None:
    """Every row has every column, or none has it: where cells were lost, those behind may have moved."""
    for column, lost in _lost(frame).items():
        heading = ", ".join(rank.headings("steps", column)) or column
        text = f"{int(lost.sum())} of {len(frame)} rows lack {heading}: cells were moved or lost"
        rank.note(rank.relative(rank.tables["steps"].paths[0]), text)


def _lost(frame: Any) -> dict[str, Mask]:
    """The rows that lack a column which others have."""
    missing = {name: frame[name].isna().to_numpy(bool) for name in frame.columns if name != "step"}
    return {name: rows for name, rows in missing.items() if rows.any() and not rows.all()}


def moved_rows(rank: Rank, frame: Any, time: Floats) -> Mask:
    """The rows of a step table that lack a cell which others have, and whose sums are wrong: their cells stand in the
    wrong columns. They are told. `time` is each step's length, microseconds."""
    equal = (*_EQUAL, _WHOLE) if rank.framework == "pytorch" else _EQUAL
    told = _told(frame)
    wrong, lacking = np.zeros(len(frame), bool), np.zeros(len(frame), bool)
    for lost in _lost(frame).values():
        lacking |= lost
    for sums in (*equal, _BUBBLE):
        broken = _broken(told, time, sums)
        wrong |= False if broken is None else broken
    moved: Mask = lacking & wrong
    if moved.any():
        text = f"{int(moved.sum())} of {len(frame)} rows lack a cell and have sums that cannot be; left out"
        rank.note(rank.relative(rank.tables["steps"].paths[0]), text, ("steps",))
    return moved


def _is_marked_so_long(rank: Rank, preparing_us: float) -> bool:
    """Whether a mark in the timeline lasts as long as the host took before the first kernel: set-up in a lone step."""
    trace = load_trace(rank) if rank.has("trace") else None
    least = preparing_us * 1000 / (1 + section("contradiction")["sum_share"])
    return trace is not None and any(end - start >= least for _, start, end in trace.steps)


def _tell_computing(rank: Rank, frame: Any, length: float) -> None:
    """Steps compute for no longer than the kernels that the profiler's own statistic sums over the whole recording.
    `length` is that of all steps, microseconds."""
    statistic = statistic_of(rank)
    if statistic is None or not statistic["total_us"].notna().all() or "computing_us" not in frame:
        return
    limits, kernels = section("contradiction"), whole_time(statistic) or float(statistic["total_us"].sum())
    told = float(np.nansum(frame["computing_us"].to_numpy(float, na_value=np.nan)))
    if told > (1 + limits["computing_share"]) * kernels and told - kernels > limits["of_step"] * length:
        other = rank.tables["operator_types"].paths[0].name
        text = f"contradicts {other}: its steps compute for {show(told, 'us')}, all kernels take {show(kernels, 'us')}"
        rank.note(rank.relative(rank.tables["steps"].paths[0]), text, ("steps", "operator_types"))


def tell_phases(rank: Rank, frame: Any, time: Any) -> None:
    """The same of the older step trace."""
    _tell(rank, _told(frame), time, "step_phases", (_PHASES,))


def tell_cluster_phases(rank: Rank, frame: Any, time: Any) -> None:
    """The same of the older cluster analysis."""
    _tell(rank, _told(frame), time, "cluster_phases", (_CLUSTER,))


def statistic_of(rank: Rank) -> Any:
    """The statistic by type of operator, which kernels called by their binaries count for as well (several rows may be
    of one type), without rows whose cells were moved, None where nothing is left: a total that
    its number of calls and their mean do not make, and a number of calls that is no whole one, or a mean that is not
    between the shortest and the longest call; no word in place of the type. They are told, as are those of which only
    the mean is none of such calls."""
    return rank.once(statistic_of, lambda: _statistic(rank)) if rank.has("operator_types") else None


def operators_of(rank: Rank, table: str) -> Any:
    """`operators`, those of the training alone, or the statistic of their types; None where the rank has none."""
    if table == "operator_types":
        return statistic_of(rank)
    frame: Any = rank.read(table) if rank.has(table) else None
    return frame[frame["graph"] == 0] if has_evaluation(frame) else frame


def has_evaluation(frame: Any) -> bool:
    """Whether a table of operators lists those of an evaluation as well: a sum over both is nobody's."""
    return frame is not None and "graph" in frame and bool((frame["graph"] > 0).any())


def _statistic(rank: Rank) -> Any:
    frame = _with_totals(rank.read("operator_types"))
    if frame is not None:
        _tell_shares(rank, frame)
    if frame is not None and "type" in frame:
        frame = frame.assign(type=frame["type"].map(type_of_binary, na_action="ignore"))
    if frame is None or ("steps" in frame and (frame["steps"] == 1).any()):
        return frame
    count, mean, low, high = (
        frame[name].to_numpy(float, na_value=np.nan) if name in frame else np.full(len(frame), np.nan)
        for name in ("count", "avg_us", "min_us", "max_us")
    )
    share = 1 + section("contradiction")["sum_share"]
    beyond = (low > share * mean) | (mean > share * high)
    moved = _apart(frame) & ((count % 1 > 0) | beyond)
    odd = moved & False
    if "type" in frame:
        odd = np.array([isinstance(name, str) and not is_word(name) for name in frame["type"]], bool)
    file, whole = rank.relative(rank.tables["operator_types"].paths[0]), ~(moved | odd)
    for rows, why in (
        (moved, "have calls, means and totals that cannot be: cells were moved"),
        (odd, "have no word in place of their operator's type"),
    ):
        if rows.any():
            rank.note(file, f"{int(rows.sum())} of {len(frame)} rows {why}; left out", ("operator_types",))
    if (beyond := beyond & whole).any():
        text = f"{int(beyond.sum())} of {len(frame)} rows have a mean that is not between the shortest and longest call"
        rank.note(file, f"{text}: cells were moved")
    return frame[whole].reset_index(drop=True) if whole.any() else None


def _with_totals(frame: Any) -> Any:
    """The statistic with totals, which a number of calls and their mean make where their column is lacking; None where
    no row tells how long its type took: names and shares alone are no statistic."""
    if frame is None:
        return None
    total, count, mean = (
        frame[name].to_numpy(float, na_value=np.nan) if name in frame else np.full(len(frame), np.nan)
        for name in ("total_us", "count", "avg_us")
    )
    if np.isfinite(total).any():
        return frame
    return frame.assign(total_us=count * mean) if np.isfinite(count * mean).any() else None


def _apart(frame: Any) -> Mask:
    """The rows of a statistic whose total is not what the number of calls and their mean make."""
    if not all(column in frame for column in ("total_us", "count", "avg_us")):
        return np.zeros(len(frame), bool)
    total, count, mean = (frame[name].to_numpy(float, na_value=np.nan) for name in ("total_us", "count", "avg_us"))
    made = count * mean
    apart: Mask = np.abs(total - made) > section("contradiction")["sum_share"] * np.fmax(total, made) + count
    return apart


def tell_totals(rank: Rank, frame: Any, table: str) -> None:
    """Tells a statistic whose totals are not what its counts and means make."""
    wrong = int(_apart(frame).sum())
    if wrong > section("contradiction")["longer_share"] * len(frame):
        heading = ", ".join(rank.headings(table, "total_us", "count", "avg_us"))
        text = f"contradicts itself: {heading} do not agree in {wrong} of {len(frame)} rows"
        rank.note(rank.relative(rank.tables[table].paths[0]), text, (table,))


_ROUNDED = 0.5e-4
"""Shares are written to a hundredth of a per cent."""


def _tell_shares(rank: Rank, frame: Any) -> None:
    """Tells a statistic in whose rows time and share of the whole make different wholes, by a factor that no rounding
    makes: some of its times are in another unit."""
    if not {"share", "total_us"} <= set(frame):
        return
    us, share = (frame[name].to_numpy(float, na_value=np.nan) for name in ("total_us", "share"))
    known = np.isfinite(us) & np.isfinite(share)
    us, share = us[known], share[known]
    if not (share > 0).any():
        return
    wholes = us[share > 0] / share[share > 0]
    order = np.argsort(wholes)
    whole = wholes[order][np.searchsorted(np.cumsum(share[share > 0][order]), share[share > 0].sum() / 2)]
    other, factor = np.zeros(len(us), bool), section("contradiction")["lost_factor"]
    other |= us > factor * whole * (share + _ROUNDED)
    other |= factor * us < whole * (share - _ROUNDED)
    if other.any():
        headings = " and ".join(rank.headings("operator_types", "total_us", "share"))
        text = f"contradicts itself: {headings} do not agree in {int(other.sum())} of {len(frame)} rows"
        rank.note(rank.relative(rank.tables["operator_types"].paths[0]), text, ("operator_types",))


def aicpu_of(rank: Rank) -> Any:
    """The operators of the AI CPU, None where nothing tells of them. Handing one over and carrying it out are parts of
    its whole time: a table in which they are longer is told."""
    return rank.once(aicpu_of, lambda: _aicpu(rank))


def _aicpu(rank: Rank) -> Any:
    frame = rank.read("aicpu")
    if frame is not None and {"total_us", "dispatch_us", "compute_us"} <= set(frame):
        parts = frame[["dispatch_us", "compute_us"]].sum(axis=1)
        wrong = int((parts > (1 + section("contradiction")["part_share"]) * frame["total_us"]).sum())
        if wrong:
            text = f"{wrong} of {len(frame)} operators take less time than their parts: cells were moved"
            rank.note(rank.relative(rank.tables["aicpu"].paths[0]), text, ("aicpu",))
    return frame


def whole_time(frame: Any) -> float | None:
    """All kernel time as the shares in a statistic imply it, microseconds: rows that were cut off count in them."""
    if "share" not in frame:
        return None
    us, share = (frame[c].to_numpy(float, na_value=np.nan) for c in ("total_us", "share"))
    known = np.isfinite(us) & np.isfinite(share)
    part = float(share[known].sum())
    return float(us[known].sum()) / part if 0 < part <= _FULL else None


def is_excerpt(frame: Any) -> bool:
    """Whether rows of the statistic may have been cut off: its shares do not say that they are all there."""
    return "share" not in frame or not float(frame["share"].sum()) >= 1 - section("witness")["cut_share"]


def tell_overlap(rank: Rank, overlapped: Floats, computing: Floats, time: Floats) -> None:
    """Tells a step table in which more is overlapped than computes: in its row or, as writers count a collective whole
    where it begins, in later ones. All row by row, microseconds."""
    excess = overlapped - computing
    beyond = np.fmin(excess, np.cumsum(np.nan_to_num(excess)[::-1])[::-1])
    wrong = int((beyond > section("contradiction")["sum_share"] * np.fmax(np.abs(time), computing)).sum())
    if wrong:
        headings = [" + ".join(rank.headings("steps", name)) for name in ("overlapped_us", "computing_us")]
        text = f"contradicts itself: {headings[0]} is more than {headings[1]} in {wrong} of {len(time)} rows"
        rank.note(rank.relative(rank.tables["steps"].paths[0]), text, ("steps",))


def _tell(rank: Rank, told: Mapping[str, Floats], time: Any, table: str, equal: tuple[Sum, ...]) -> int:
    """How many of the sums are wrong in every row."""
    always = 0
    for left, right in equal:
        broken = _broken(told, time, (left, right))
        wrong = 0 if broken is None else int(broken.sum())
        if wrong:
            headings = [" + ".join(rank.headings(table, *side)) for side in (left, right)]
            place = rank.relative(rank.tables[table].paths[0])
            text = f"{headings[0]} is not {headings[1]} in {wrong} of {len(time)} rows"
            rank.note(place, f"contradicts itself: {text}", (table,))
            always += wrong == len(time)
    return always


def _told(frame: Any) -> dict[str, Floats]:
    """The columns of a step table that tell anything, NaN for rows that do not."""
    columns = {name: frame[name].to_numpy(float, na_value=np.nan) for name in frame.columns if name.endswith("_us")}
    return {name: values for name, values in columns.items() if not np.isnan(values).all()}


def _broken(told: Mapping[str, Floats], time: Floats, sums: Sum) -> Mask | None:
    """The rows in which the two sums differ; None where the table does not have them."""
    if not all(name in told for side in sums for name in side):
        return None
    one, other = (np.sum([told[name] for name in side], axis=0) for side in sums)
    if not np.nan_to_num(one).any():
        return None
    broken: Mask = np.abs(one - other) > section("contradiction")["sum_share"] * np.fmax(np.abs(time), other)
    return broken
