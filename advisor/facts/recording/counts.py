"""Two witnesses of which kernels ran: the kernels one by one, and the profiler's own statistic by type."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.basics.intervals import measure, union
from advisor.basics.units import show
from advisor.facts.recording.limits import section
from advisor.facts.recording.sums import statistic_of, step_rows, tell_totals
from advisor.sources.base import Rank
from advisor.sources.streams.binaries import type_of_binary
from advisor.sources.streams.kernels import Kernels, operator_name
from advisor.sources.streams.rank_trace import load_trace

if TYPE_CHECKING:
    import pandas as pd

HOST_CORE = "HostCpu"
"""What operator tables of MindSpore call the processor of the host."""
UNTYPED = "unknown"
"""The type of a kernel that has neither type nor name."""
_ENDS_WITH_TYPE = re.compile(r"aclnn\w*_([A-Z][A-Za-z0-9]*)|trans_([A-Z][A-Za-z0-9]*)(?:_\d+)?")
"""The operator library names a kernel call_kernel_Type, the graph compiler what it inserts trans_Type_number."""
_RUNNING = re.compile(r"(-op|__?)\d+(_\d+)*$")
"""What numbers the calls of one operator; a version (V2) belongs to its type."""


def is_cut(rank: Rank, kernels: Kernels) -> bool:
    """Whether the statistic counts clearly more kernels than stand one by one: then it counts, and the rest of a cut
    table shows neither shares nor gaps nor shapes. The difference is noted once."""
    return bool(rank.once(is_cut, lambda: _compare(rank, kernels)))


def executions_of_table(rank: Rank) -> int:
    """How many executions of the graph older MindSpore's tables of operators hold: each full name runs once in one, so
    it is how often most of them ran. 1 where the table is one execution's, or does not tell."""
    return rank.once(executions_of_table, lambda: _usual_count(rank)) or 1


def _usual_count(rank: Rank) -> int:
    frame = rank.read("operators") if rank.has("operators") else None
    if frame is None or "count" not in frame:
        return 1
    counts = frame["count"][(frame["core"] != HOST_CORE) & frame["count"].notna()].round()
    times, often = np.unique(counts.to_numpy(), return_counts=True)
    most = int(often.argmax()) if times.size else 0
    return int(times[most]) if times.size and 2 * often[most] > len(counts) else 1


def _compare(rank: Rank, kernels: Kernels) -> bool:
    if not rank.has("operator_types") or rank.tables["kernels"].reader != "kernels.csv":
        return False
    frame = statistic_of(rank)
    if frame is None or "count" not in frame:
        return False
    frame = frame[frame["type"].notna()]  # what names no type is nobody's time, and contradicts nobody
    if frame.empty:
        return False
    counted: Counter[str] = Counter()
    for name, count in zip(frame["type"], frame["count"], strict=True):
        if isinstance(name, str) and count == count:
            counted[name] += int(count)
    types, type_of = types_of(kernels)
    at_hand = Counter(dict(zip(types, np.bincount(type_of, minlength=len(types)).tolist(), strict=True)))
    lost, total = sum((counted - at_hand).values()), sum(counted.values())
    tell_totals(rank, frame, "operator_types")
    own = dict(zip(types, np.bincount(type_of, kernels.duration, len(types)).tolist(), strict=True))
    if not lost:
        _tell_times(rank, frame, own, section("contradiction")["statistic_share"])
        return False
    whole = {name: us * counted[name] / at_hand[name] for name, us in own.items() if at_hand[name] and counted[name]}
    _tell_times(rank, frame[frame["type"].isin(list(whole))], whole, section("contradiction")["sampled_share"])
    file = rank.relative(rank.tables["kernels"].paths[0])
    statistic = rank.tables["operator_types"].paths[0].name
    cut = lost > section("witness")["cut_share"] * total
    missing = "rows are missing" if lost > 1 else "a row is missing"
    text = f"holds {lost} kernel{'s' if lost > 1 else ''} fewer than {statistic} counts: {missing}"
    if cut:
        text += (
            f"; times by operator type come from {statistic}, and no idle time, step or shape is judged from these rows"
        )
    if cut and rank.has("steps"):
        text += f"; idle time comes from {rank.tables['steps'].paths[0].name}"
    rank.note(file, text)
    return cut


def _tell_times(rank: Rank, frame: pd.DataFrame, own: dict[str, float], share: float) -> None:
    """The kernels of the types that the statistic knows take the same time in both up to this share, or one holds
    another unit or run. `own` is the time of the kernels by type; of a cut table, what the rest makes of all calls."""
    if "total_us" not in frame or not frame["total_us"].notna().all():
        return
    told, listed = float(frame["total_us"].sum()), sum(own.get(name, 0.0) for name in set(frame["type"].dropna()))
    if abs(told - listed) > share * max(told, listed):
        statistic, place = rank.tables["operator_types"].paths[0].name, rank.relative(rank.tables["kernels"].paths[0])
        text = f"contradicts {statistic}: these kernels take {show(listed, 'us')}, there {show(told, 'us')}"
        rank.note(place, text, ("kernels", "operator_types"))


def covers_more(us: float, longest_us: float, computing_us: float, length_us: float) -> bool:
    """Whether a table sums up kernels of more than these steps: more than they last, or of one type on the device's
    cores, which follow each other, more than they compute. Kernels of several streams run beside each other."""
    factor = section("contradiction")["one_job_factor"]
    return us > factor * length_us or longest_us > factor * computing_us


def are_whole(counts: Floats, executions: int) -> bool:
    """Whether every type ran as often in each of so many executions."""
    return not np.any(counts % executions)


_UNTOLD = np.nan, 1
"""A share that nothing tells, of one step."""


def are_all(rank: Rank, kernels: Kernels, communication: Mask) -> bool:
    """Whether the step table, which has seen every kernel, tells of as much computing as these do: however few they
    are, there were no others."""
    computing = (kernels.start >= 0) & ~communication
    held, _ = _share(rank, "steps", kernels, computing)
    return abs(held - 1) <= section("witness")["computing_share"]


def held_computing(rank: Rank, kernels: Kernels, communication: Mask) -> float:
    """How many steps' computing time the kernels hold, of what the step table says of the same steps, or the profiler's
    own sum in the timeline; infinite where they lack no more of it than writers differ by. Whoever has seen them all
    counts, and the difference is noted once."""
    computing, limits = (kernels.start >= 0) & ~communication, section("witness")
    for table, doubt in (
        ("steps", " of the same steps: rows are missing, or these are other steps"),
        ("trace", ": rows are missing"),
    ):
        held, steps = _share(rank, table, kernels, computing)
        if held < 1 - limits["computing_share"]:
            file, witness = rank.relative(rank.tables["kernels"].paths[0]), rank.tables[table].paths[0].name
            text = f"holds {show(held, 'ratio')} of the computing time that {witness} tells{doubt}"
            unjudged = (
                "no idle time is" if held * steps >= limits["types_share"] else "neither operators nor idle time are"
            )
            rank.note(file, f"{text}; {unjudged} judged from the rest")
            return held * steps
    return np.inf


def _share(rank: Rank, table: str, kernels: Kernels, computing: Mask) -> tuple[float, int]:
    """What the computing kernels hold of the computing time that the table tells, and of how many steps; worked out
    once a rank, from interval unions over all kernels."""
    told = _share_of_steps if table == "steps" else _share_of_timeline
    share = rank.once(told, lambda: told(rank, kernels, computing)) if rank.has(table) else None
    return share or _UNTOLD


def _share_of_timeline(rank: Rank, kernels: Kernels, computing: Mask) -> tuple[float, int]:
    """What the kernels hold of the profiler's own sum; by a timeline's marks of steps whole ones that are lacking are
    told."""
    trace = load_trace(rank) if rank.tables["kernels"].reader == "kernels.csv" else None
    told = measure(trace.computing) / 1000 if trace and not trace.steps else 0.0
    return (_busy_us(kernels, computing) / told, 1) if told else _UNTOLD


def _share_of_steps(rank: Rank, kernels: Kernels, computing: Mask) -> tuple[float, int]:
    """(what the kernels hold of the computing time of those steps that both have, of all where no kernel names one, how
    many these are). Collectives alone say of themselves what they are cut to."""
    frame = step_rows(rank)
    if frame is None or "step" not in frame or "computing_us" not in frame:
        return _UNTOLD
    table = {str(step): float(us) for step, us in zip(frame["step"], frame["computing_us"], strict=True) if us == us}
    both = [
        (name, mine)
        for index, name in enumerate(kernels.steps)
        if name in table and (mine := computing & (kernels.step == index)).any()
    ]
    told, steps = sum(table[name] for name, _ in both), len(both)
    if computing.any() and not any(kernels.steps) and (kernels.start >= 0).all():
        both, told, steps = [("", computing)], sum(table.values()), len(table)
    return (sum(_busy_us(kernels, mine) for _, mine in both) / told, steps) if told else _UNTOLD


def _busy_us(kernels: Kernels, which: Mask) -> float:
    return measure(union(kernels.start[which], kernels.end[which])) / 1000


def types_of(kernels: Kernels) -> tuple[list[str], np.ndarray]:
    """(type names, type of each kernel). Level 0 names no types: the device kernel's name stands for it."""
    index: dict[str, int] = {}
    of_signature = np.array(
        [index.setdefault(s.type, len(index)) if s.type else -1 for s in kernels.signatures], np.int64
    )
    result = of_signature[kernels.signature]
    if (result < 0).any():
        of_name = np.array([index.setdefault(type_in_name(name), len(index)) for name in kernels.names], np.int64)
        result = np.where(result < 0, of_name[kernels.name], result)
    return list(index), result


def types_of_signatures(kernels: Kernels) -> list[str]:
    """The type of each signature; empty where none is told and kernels of several names share it."""
    if all(s.type for s in kernels.signatures):
        return [s.type for s in kernels.signatures]
    types, of = types_of(kernels)
    first, last = np.full(len(kernels.signatures), len(types)), np.full(len(kernels.signatures), -1)
    np.minimum.at(first, kernels.signature, of)
    np.maximum.at(last, kernels.signature, of)
    return [types[one] if one == other else "" for one, other in zip(first.tolist(), last.tolist(), strict=True)]


def type_in_name(name: str) -> str:
    """The type that a kernel's name tells, which is all of it but its place in a network and what numbers its calls."""
    last = name.rpartition("/")[2] if "/" in name else operator_name(name)
    if named := _ENDS_WITH_TYPE.fullmatch(last):
        return named.group(1) or named.group(2)
    return _RUNNING.sub("", type_of_binary(last)) or last or UNTYPED
