"""What the work of a recording is like: the type of kernel that takes most of its time, how often and how regularly it
is launched, and what repeats. Each function tells fields of `Recording` (evidence.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.device.kernel_time import Timeline
from advisor.facts.device.pipes import PIPE_NAMES
from advisor.facts.recording.counts import types_of
from advisor.facts.recording.kinds.clearing import clears
from advisor.facts.recording.limits import section, told_by
from advisor.facts.recording.steady import Steady, measured_in_a_row
from advisor.facts.recording.sums import whole_time
from advisor.facts.recording.tasks_alone import TasksAlone
from advisor.sources.streams.kernels import Kernels

if TYPE_CHECKING:
    import pandas as pd


def of_one_operator(kernels: Kernels) -> dict[str, Any]:
    """What `msprof op` says of its operator; of several, of the one that takes most time."""
    types, of = types_of(kernels)
    us = np.bincount(of, kernels.duration, len(types))
    top = int(us.argmax())
    mine = of == top
    signatures = np.unique(kernels.signature[mine])
    shares: dict[str, float] = {}
    for pipe, name in PIPE_NAMES.items():
        known = float(kernels.piped[pipe][signatures].sum())
        if known > 0:
            shares[name] = max(shares.get(name, 0.0), float(kernels.pipes[pipe][signatures].sum()) / known)
    unit = max(shares, key=shares.__getitem__, default="")
    blocks = kernels.block[mine & np.isfinite(kernels.block)]
    return {
        "type": types[top], "types": int((us > 0).sum()), "type_count": int(mine.sum()),
        "type_share": float(us[top] / us.sum()) if us.sum() else 0.0, "length_us": float(kernels.duration[mine].mean()),
        "blocks": int(blocks.max()) if blocks.size else 0, "unit": unit, "unit_share": shares.get(unit, 0.0),
    }  # fmt: skip


def of_statistic(frame: pd.DataFrame) -> dict[str, Any]:
    """The statistic by type, where no kernels one by one are at hand, or a part of them."""
    us = frame.groupby("type")["total_us"].sum().sort_values(ascending=False)
    total = max(float(us.sum()), whole_time(frame) or 0.0)  # rows may be missing, which their shares still tell
    if not len(us) or not total > 0:
        return {}
    counts = frame.groupby("type")["count"].sum() if "count" in frame else (us > 0).astype(float)
    top = str(us.index[0])
    count = 0 if "count" not in frame or counts[top] != counts[top] else int(counts[top])
    others = [launched for kind, launched in counts.dropna().items() if kind != top and not _fills(str(kind))]
    return {
        "type": top, "type_share": float(us.iloc[0]) / total, "type_count": count, "types": int((us > 0).sum()),
        "beside_count": int(max(others, default=0)), "unlisted": lacks_types(frame),
    }  # fmt: skip


def lacks_types(frame: pd.DataFrame) -> bool:
    """Whether the shares in the statistic by type tell of types that it does not list: it was cut to its first rows,
    or what is left of it was too little for a share."""
    if "share" in frame and (frame["share"] == 0).all() and frame["total_us"].sum() > 0:
        return True
    whole = whole_time(frame)
    return whole is not None and float(frame["total_us"].sum()) < (1 - section("witness")["cut_share"]) * whole


def of_timeline(timeline: Timeline) -> dict[str, Any]:
    """What the kernels that are judged are like, and what lies before them."""
    kernels, placed = timeline.kernels, timeline.placed
    types, of = types_of(kernels)
    told = _shares(types, of, kernels.duration, clears(kernels, types, of))
    mine = of == types.index(told["type"])
    told["measured_us"] = float(np.median(kernels.duration[mine]))
    apart = np.diff(np.sort(kernels.start[mine & (kernels.start >= 0)]))
    told["launch_us"] = float(np.median(apart)) / 1000 if apart.size else 0.0
    for key, alike in (("type_names", kernels.name), ("type_shapes", kernels.signature)):
        told[key] = int((np.bincount(alike[mine]) >= section("repetition")["executions"]).sum())
    if placed is not None and placed.steady is not None:
        known = kernels.start >= 0
        told |= _course(placed.steady, placed.set_up_ns, kernels.start[known], kernels.end[known])
        work = np.concatenate((np.zeros(1), np.cumsum(kernels.duration[known])))
        if _take_turns(kernels, placed.steady):
            told["measured"] = "in_turn"
        elif told["measured"] and measured_in_a_row(kernels.signature[known], work) is None:
            told["measured"] = ""  # kernels of one type on other inputs each time: layers of a network
    return told


def of_tasks(tasks: TasksAlone) -> dict[str, Any]:
    """The same of tasks that a timeline draws, where it alone tells what ran on the device."""
    told = _shares(tasks.kinds, tasks.kind, (tasks.end - tasks.start) / 1000, np.zeros(len(tasks.kinds), bool))
    return told | _course(tasks.steady, tasks.set_up_ns, tasks.start, tasks.end)


def _shares(types: list[str], of: Ints, duration: Floats, clearing: Mask) -> dict[str, Any]:
    """The kernel that takes most of the time. What only fills memory, or is `clearing` a cache before each launch of
    another kernel, is none that anybody measures; the shares are those of the rest then."""
    us, count = np.bincount(of, duration, len(types)), np.bincount(of, minlength=len(types))
    fills = np.array([_fills(each) for each in types], bool) | clearing
    works = us * (~fills & (count >= section("benchmark")["beside_fills"] * count[int(us.argmax())]))
    top = int((works if works.any() else us).argmax())
    whole = float((us * ~fills if works.any() else us).sum())
    others = count * ~fills
    others[top] = 0
    return {
        "type": types[top], "type_share": float(us[top] / whole) if whole else 0.0,
        "type_count": int(count[top]), "types": int((us > 0).sum()), "beside_fills": whole < float(us.sum()),
        "beside_count": int(others.max()),
    }  # fmt: skip


def _course(steady: Steady, set_up_ns: int, start: Ints, end: Ints) -> dict[str, Any]:
    """What lies before the steady part, and what repeats in it."""
    told: dict[str, Any] = {
        "set_up_us": set_up_ns / 1000, "repeats": steady.repeats, "loads": not steady.idle_told,
        "measured": "in_a_row" if steady.in_a_row else "",
    }  # fmt: skip
    if steady.repetition is not None:
        found = steady.repetition
        first = int(start[found.first - steady.first])
        last = int(end[: found.last - steady.first].max())
        told |= {
            "executions": found.executions, "execution_kernels": found.length,
            "execution_us": (last - first) / 1000 / found.executions,
        }  # fmt: skip
    return told


def _take_turns(kernels: Kernels, steady: Steady) -> bool:
    """Whether a few kernels with equal inputs and outputs are launched in turn, many times: whoever does so compares
    them."""
    limits, found = section("benchmark"), steady.repetition
    if found is None or found.executions < limits["launches"] or not 1 < found.length <= limits["in_turn"]:
        return False
    known = kernels.signature[kernels.start >= 0][found.first - steady.first : found.last - steady.first]
    each = [kernels.signatures[i] for i in np.unique(known).tolist()]
    shapes = {(s.input_shapes, s.output_shapes) for s in each}
    return not any(_fills(s.type) for s in each) and len(shapes) == 1 and all(next(iter(shapes)))


def _fills(kind: str) -> bool:
    """Whether kernels of that type only fill memory."""
    return bool(told_by("fills")(kind))
