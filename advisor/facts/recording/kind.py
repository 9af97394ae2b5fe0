"""What kind of recording it is: training steps, inference, one kernel again and again, or something without steps.

A profile is evidence about a recording, not about a training. Marks of steps make steps, and nothing else does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.basics.arrays import Floats, Ints
from advisor.basics.units import show
from advisor.facts.base import FactSet, Family, Reduction, Run, computed, fact, kind
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.kernel_time import Timeline, is_collective, timeline_of
from advisor.facts.operators.reduction import PIPE_NAMES
from advisor.facts.recording.between import host_works
from advisor.facts.recording.counts import UNTYPED, executions_of_table, is_cut, types_of
from advisor.facts.recording.iterations import Graph, iterations_of
from advisor.facts.recording.limits import section, told_by
from advisor.facts.recording.steady import Steady, measured_in_a_row
from advisor.facts.recording.sums import whole_time
from advisor.facts.recording.tasks_alone import tasks_alone
from advisor.facts.recording.windows import is_marked, meeting_steps
from advisor.knowledge.words import both
from advisor.model import RUN, Fact, Text
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, load_kernels
from advisor.sources.streams.rank_trace import load_trace

if TYPE_CHECKING:
    import pandas as pd

    from advisor.sources.streams.trace import Trace

KINDS = (
    kind("recording.kind", "text", "run", "training_steps, inference, kernel_benchmark, unmarked or fragment",
         formula="marks of steps, names of kernels, and what repeats (knowledge_base/recording.yaml)"),
    kind("recording.has_steps", "bool", "run", "something marks steps: facts `step.*` are about one step, "
         "else about the whole recording that is judged"),
    kind("recording.is_set_up", "bool", "run", "much of it lies before first launches of kernels, and nothing repeats: "
         "no steady part is there to judge", needs="kernels"),
    kind("recording.set_up_us", "us", "run", "before it, up to the last first launch after a long gap: not judged",
         needs="kernels"),
    kind("recording.executions", "count", "run", "how often the same sequence of kernels ran; without marks",
         needs="kernels"),
    kind("recording.repeats", "bool", "run", "what ran again and again holds most of the kernel time, be it one "
         "sequence of kernels or one after another; without marks", needs="kernels"),
    kind("recording.execution_us", "us", "run", "from one execution to the next, on average", needs="kernels"),
    kind("recording.measured_type", "text", "run", "the kernel that a benchmark measures", needs="kernels"),
    kind("recording.launch_us", "us", "run", "from one launch of it to the next, in the middle", needs="kernels"),
    kind("recording.executes_model", "bool", "run", "the host executes a compiled model, without a framework",
         needs="host_api"),
    kind("recording.kernels", "count", "run", "kernels that stand one by one, of the rank with most of them; "
         "not told where a statistic counts more", needs="kernels"),
    kind("recording.device_tasks", "count", "run", "tasks of the device in the timeline, of the rank with most "
         "of them, where no kernels stand one by one", needs="trace"),
    kind("recording.stray_kernels", "count", "run", "kernels that belong to no step: before, between and after them",
         needs="kernels"),
)  # fmt: skip


@dataclass(frozen=True)
class Recording:
    """What one rank's files say about what was recorded."""

    marks: tuple[str, ...] = ()
    """What marks steps: steps, phases, kernels, trace, iterations, collectives."""
    cut: bool = False
    started: bool = True
    """Whether kernels, where they are at hand, tell when they started."""
    timed: bool = False
    """Whether anything tells when kernels ran."""
    framed: bool = False
    """Whether a framework's profiler wrote a table of steps, marked or not: a program, not a kernel, was recorded."""
    averaged: bool = False
    """Whether operator tables hold one step's average …"""
    summed: int = 1
    """… or the sum of this many executions."""
    trains: bool = False
    serves: str = ""
    """A kernel that only inference launches."""
    exchanges: bool = False
    """Whether ranks reduce something together, as gradients are."""
    only_exchanges: bool = False
    """Whether collectives ran and nothing computed, as the step table says as well."""
    offline: str = ""
    """A call of the host that executes a compiled model."""
    program: bool = False
    """Whether the host does work of its own between groups of launches."""
    marked_once: bool = False
    """Whether all kernels lie in the one step that is marked."""
    excerpt: bool = False
    """Whether a framework's profiler wrote the table of kernels, and none of its other tables is there."""
    named: bool = False
    """Whether kernels, all of them, have names to judge by."""
    type: str = ""
    """The type of kernel that takes most of the time of what is judged …"""
    type_share: float = 0.0
    type_count: int = 0
    beside_fills: bool = False
    """Whether kernels that only fill memory are left out of these shares."""
    types: int = 0
    """… and how many types there are."""
    launch_us: float = 0.0
    """From one launch of it to the next, in the middle."""
    type_names: int = 0
    """Names of kernels of that type that were launched again and again …"""
    type_shapes: int = 0
    """… and on how many inputs."""
    loads: bool = False
    """Whether much of it lies before first launches, and no steady part behind them."""
    set_up_us: float = 0.0
    measured: str = ""
    """Which kernels were measured, where there are several: in_a_row, one after the other, or in_turn on one input."""
    repeats: bool = False
    executions: int = 0
    execution_kernels: int = 0
    execution_us: float = 0.0
    stray: int = 0
    others: tuple[Graph, ...] = ()
    """Graphs that ran in turn with the one whose executions are the steps."""
    alone: bool = False
    """Whether it is the result of `msprof op`: one operator measured by itself."""
    length_us: float = 0.0
    blocks: int = 0
    unit: str = ""
    unit_share: float = 0.0
    """How long a launch of it took, on how many blocks, and which unit was busy for most of that."""
    kernels: int = 0
    """How many kernels there are to judge; 0 where they do not stand one by one, or only in part."""
    tasks: int = 0
    """How many tasks the timeline draws on the device, where it alone tells of that."""
    timeline_steps: tuple[str, ...] = ()
    """Steps that the timeline marks."""
    framework: str = ""
    """What the events in the timeline are of: pytorch, mindspore, or nothing known."""


RECORDING = Reduction("recording", Recording)
MOST_GRAPHS = 3
"""Graphs that are named beside the judged one."""


def _kinds(names: Iterable[str]) -> set[str]:
    """Of names that only a number at their end tells apart, the first one: each collective has a number of its own."""
    return set({name.rstrip("_0123456789"): name for name in sorted(names, reverse=True)}.values())


def reduce(rank: Rank) -> Recording | None:
    """What one rank's files say; None where it has neither kernels, nor steps, nor operators, nor a timeline."""
    wanted = {"steps", "step_phases", "cluster_phases", "kernels", "operator_types", "operators", "trace", "iterations"}
    if not wanted & set(rank.tables):
        return None if meeting_steps(rank) is None else Recording(marks=("collectives",), timed=True)
    timeline = timeline_of(rank)
    every = load_kernels(rank)
    marks = tuple(
        name
        for name, there in (
            ("steps", rank.has("steps") and is_marked(rank)),
            ("phases", rank.has("step_phases") or rank.has("cluster_phases")),
        )
        if there
    )
    steady = None if timeline is None or timeline.placed is None else timeline.placed.steady
    loads = steady is not None and not steady.idle_told
    cut = every is not None and (is_cut(rank, every) or (timeline is not None and not timeline.whole and not loads))
    started = every is None or bool((every.start >= 0).any())
    told: dict[str, object] = {"cut": cut, "started": started, "marks": marks, "loads": loads}
    told["framed"] = rank.has("steps")
    alone = every is not None and rank.tables["kernels"].reader == "kernels.opprof"
    told["kernels"] = 0 if every is None or (cut and not alone) else len(every.duration)
    told["timed"] = rank.has("steps") or (timeline is not None and not cut)
    names: set[str] = set()
    if every is not None:
        names = {*every.names, *(s.type for s in every.signatures)}
    if timeline is not None and timeline.placed is not None:
        placed = timeline.placed
        told["marks"] = (*marks, *filter(None, (placed.marks,)))
        told["stray"] = int((~placed.inside).sum()) if placed.marks else 0
        told |= _of_time(timeline)
        told["marked_once"] = bool(placed.marks) and len(placed.windows.names) == 1
        told["excerpt"] = not rank.has("steps") and rank.tables["kernels"].paths[0].name.startswith("kernel_details")
    if timeline is not None and timeline.whole:
        told["only_exchanges"] = bool(timeline.communication.all())
    if every is not None and alone:
        told |= {"alone": True} | _of_one(every)
    listed = False
    for table in ("operator_types", "operators"):
        frame = rank.read(table) if rank.has(table) else None
        if frame is not None:
            if table == "operator_types" and (cut or timeline is None):
                told |= _of_statistic(frame)
            listed = listed or (table == "operator_types" and bool(len(frame)))
            names |= {name for column in ("type", "name") if column in frame for name in frame[column].dropna()}
            told["averaged"] = told.get("averaged") or table == "operators" or (
                "steps" in frame and bool((frame["steps"] == 1).all())
            )  # fmt: skip
            told["summed"] = executions_of_table(rank)
    names = _kinds(names)
    trains = any(map(told_by("training"), names))
    if any(map(told_by("mindspore"), names)):
        told["framework"] = "mindspore"
    trace = load_trace(rank) if rank.has("trace") or not trains else None
    if trace is not None:
        told["timed"] = True
        told["timeline_steps"] = tuple(name for name, _, _ in trace.steps)
        trains = trains or any(told_by("training_host")(name) for _, name in trace.activities)
        told["framework"] = told.get("framework") or _framework(trace)
        told["tasks"] = 0 if every is not None else trace.device_tasks
        if (tasks := tasks_alone(rank)) is not None:
            told |= _of_work(tasks.kinds, tasks.kind, (tasks.end - tasks.start) / 1000)
            told |= _of_steady(tasks.steady, tasks.set_up_ns, tasks.start, tasks.end)
            told["program"] = host_works(trace, tasks.start, tasks.end)
        if timeline is not None and timeline.placed is not None:
            known = timeline.kernels.start >= 0
            told["program"] = host_works(trace, timeline.kernels.start[known], timeline.kernels.end[known])
        if every is None and (by := "trace" if trace.steps else "iterations" if trace.iterations else ""):
            told["marks"] = (*told["marks"], by)  # type: ignore[misc]
    if (timeline is None or not timeline.whole) and rank.has("iterations") and "iterations" not in told["marks"]:  # type: ignore[operator]
        counted = iterations_of(rank)
        if counted is not None and len(counted.names) > 1:
            told["marks"] = (*told["marks"], "iterations")  # type: ignore[misc]
            told["timed"] = True
    if "iterations" in told["marks"] and (executed := iterations_of(rank)) is not None:  # type: ignore[operator]
        told["others"] = executed.others
    calls = {name for _, name in trace.activities} if trace is not None else set[str]()
    listed_calls = rank.read("host_api") if rank.has("host_api") else None
    if listed_calls is not None and "name" in listed_calls:
        calls |= set(listed_calls["name"].dropna())
    told["offline"] = min(filter(told_by("inference_host"), calls), default="")
    serves = min(filter(told_by("inference"), names), default="")
    whole = every is not None and (listed or (not cut and any(every.names))) and not told.get("alone")
    named = whole or (every is None and bool(names))
    exchanges = any(map(told_by("gradient_exchange"), names))
    return Recording(trains=trains, serves=serves, exchanges=exchanges, named=named, **told)  # type: ignore[arg-type]


def _of_one(kernels: Kernels) -> dict[str, object]:
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


def _framework(trace: Trace) -> str:
    if any(name.startswith(("aten::", "torch::", "autograd::")) for _, name in trace.activities):
        return "pytorch"
    return "mindspore" if any(process == "MindSpore" for process, _ in trace.activities) else ""


@computed
def framework_of(run: Run) -> str:
    """The framework by its files, else by the events of its timeline."""
    if run.profile.framework != "unknown":
        return run.profile.framework
    return next((one.framework for one in run.each(RECORDING).values() if one.framework), "unknown")


def _of_statistic(frame: pd.DataFrame) -> dict[str, object]:
    """The same from the statistic by type, where no kernels one by one are at hand, or a part of them."""
    us = frame.groupby("type")["total_us"].sum().sort_values(ascending=False)
    total = max(float(us.sum()), whole_time(frame) or 0.0)  # rows may be missing, which their shares still tell
    if not len(us) or not total > 0:
        return {}
    counts = frame.groupby("type")["count"].sum() if "count" in frame else None
    count = 0 if counts is None or counts[us.index[0]] != counts[us.index[0]] else int(counts[us.index[0]])
    return {
        "type": str(us.index[0]), "type_share": float(us.iloc[0]) / total, "type_count": count,
        "types": int((us > 0).sum()),
    }  # fmt: skip


def _of_time(timeline: Timeline) -> dict[str, object]:
    """What the kernels that are judged are like, and what lies before them."""
    kernels, placed = timeline.kernels, timeline.placed
    types, of = types_of(kernels)
    told = _of_work(types, of, kernels.duration)
    mine = of == types.index(str(told["type"]))
    apart = np.diff(np.sort(kernels.start[mine & (kernels.start >= 0)]))
    told["launch_us"] = float(np.median(apart)) / 1000 if apart.size else 0.0
    for key, alike in (("type_names", kernels.name), ("type_shapes", kernels.signature)):
        told[key] = int((np.bincount(alike[mine]) >= section("repetition")["executions"]).sum())
    if placed is not None and placed.steady is not None:
        known = kernels.start >= 0
        told |= _of_steady(placed.steady, placed.set_up_ns, kernels.start[known], kernels.end[known])
        if _take_turns(kernels, placed.steady):
            told["measured"] = "in_turn"
        elif told["measured"] and measured_in_a_row(kernels.signature[known], _work(kernels.duration[known])) is None:
            told["measured"] = ""  # kernels of one type on other inputs each time: layers of a network
    return told


def _work(duration: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(duration)))


def _take_turns(kernels: Kernels, steady: Steady) -> bool:
    """Whether a few kernels with equal inputs and outputs are launched in turn, many times: whoever does so compares
    them."""
    limits, found = section("benchmark"), steady.repetition
    if found is None or found.executions < limits["launches"] or not 1 < found.length <= limits["in_turn"]:
        return False
    known = kernels.signature[kernels.start >= 0][found.first - steady.first : found.last - steady.first]
    each = [kernels.signatures[i] for i in np.unique(known).tolist()]
    shapes = {(s.input_shapes, s.output_shapes) for s in each}
    return not any(told_by("fills")(s.type) for s in each) and len(shapes) == 1 and all(next(iter(shapes)))


def _of_work(types: list[str], of: Ints, duration: Floats) -> dict[str, object]:
    """The kernel that takes most of the time. What only fills memory, to clear a cache before each launch of another
    kernel, is none that anybody measures; the shares are those of the rest then."""
    us, count = np.bincount(of, duration, len(types)), np.bincount(of, minlength=len(types))
    fills = np.array([told_by("fills")(each) for each in types])
    works = us * (~fills & (count >= section("benchmark")["beside_fills"] * count[int(us.argmax())]))
    top = int((works if works.any() else us).argmax())
    whole = float((us * ~fills if works.any() else us).sum())
    return {
        "type": types[top], "type_share": float(us[top] / whole) if whole else 0.0,
        "type_count": int(count[top]), "types": int((us > 0).sum()), "beside_fills": whole < float(us.sum()),
    }  # fmt: skip


def _of_steady(steady: Steady, set_up_ns: int, start: Ints, end: Ints) -> dict[str, object]:
    told: dict[str, object] = {
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


@dataclass(frozen=True)
class Told:
    """What was recorded, and why it is taken for that."""

    kind: str
    has_steps: bool
    reason: Text
    measured: str = ""
    """The type of kernel that a benchmark of one kernel measures."""


@computed
def recording_of(run: Run) -> Told:
    """What all ranks' files say together."""
    found = list(run.each(RECORDING).values())
    batches = run.each(DATA_PIPELINE)
    if not found:
        if batches:
            return Told("training_steps", True, both("recording.batches"))
        only = "only_collectives" if run.each(EXCHANGES) else "no_course"
        return Told("fragment", False, both(f"recording.{only if run.ranks else 'nothing'}"))
    marks = list(dict.fromkeys(mark for one in found for mark in one.marks))
    # batches divide what a rank did by itself; what ranks did together is told of the recording as a whole
    together = any(one.timed for one in found) and (len(found) > 1 or found[0].exchanges)
    steps = bool(marks or (batches and not together))
    why: list[Text] = []
    if marks:
        names = (both(f"recording_marks.{mark}") for mark in marks)
        why.append(both("recording.marks", marks=_joined(names, "recording.listed")))
    elif steps:
        why.append(both("recording.batches"))
    elif any(one.averaged for one in found):
        count = found[0].summed
        why_so = both("recording.sums", count=str(count)) if count > 1 else both("recording.averages")
        return Told("training_steps", True, why_so)
    else:
        why.append(both("recording.no_marks"))
    kind_of, because = _kind(found, steps)
    if steps and kind_of == "kernel_benchmark" and not found[0].alone:
        steps, why = False, [both("recording.marked_once")]
    why += because
    before = float(np.median([one.set_up_us for one in found]))
    if not steps and before > 0:
        why.append(both("recording.set_up", time=show(before, "us")))
    if others := next((one.others for one in found if one.others), ()):
        named = (
            both("recording.graph", graph=each.name, count=each.executions, time=show(each.mean_us, "us"))
            for each in others[:MOST_GRAPHS]
        )
        why.append(both("recording.graphs", graphs=_joined(named, "recording.listed")))
    elif stray := sum(one.stray for one in found):
        why.append(both("recording.stray", count=str(stray)))
    several = found[0].alone or found[0].measured or all(one.only_exchanges for one in found)
    measured = "" if kind_of != "kernel_benchmark" or several else found[0].type
    return Told(kind_of, steps, _joined(why, "recording.joined"), measured)


def _kind(found: list[Recording], steps: bool) -> tuple[str, list[Text]]:
    first = found[0]
    trains = any(one.trains for one in found)
    serves = next((one.serves for one in found if one.serves), "")
    offline = next((one.offline for one in found if one.offline), "")
    limits = section("benchmark")
    again = first.type_count >= (limits["launches"] if first.excerpt else section("repetition")["executions"]) or (
        first.types == 1 and first.kernels > 0 and first.named and not first.framed and not first.excerpt
    )
    alone = first.types <= limits["types"] and first.type_share >= limits["one_type_share"] and first.type != UNTYPED
    if not steps and all(one.only_exchanges for one in found):
        return "kernel_benchmark", [both("recording.only_exchanges")]
    alone = alone and not is_collective(first.type)  # a table of collectives is a part of a program's
    # one type under many names, or on other inputs each time, again and again: the layers of a network
    in_sequence = first.execution_kernels if first.executions else 0
    alone = alone and max(first.type_names, in_sequence) <= limits["types"]
    # one step that is marked around all launches of one kernel on one input divides nothing
    once = all(one.marked_once for one in found) and first.type_shapes == 1 and first.type_count >= limits["launches"]
    alone = alone and not any(one.offline or one.program for one in found)
    if first.alone:
        count = "blocks" if first.blocks > 1 else "block"
        blocks = both(f"recording.{count}", count=first.blocks) if first.blocks else Text("", "")
        share = show(first.unit_share, "ratio")
        unit = both("recording.unit", unit=first.unit, share=share) if first.unit else Text("", "")
        took = show(first.length_us, "us")
        said = "one_operator" if first.types < 2 else "operators"
        told = both(f"recording.{said}", type=first.type, types=first.types, time=took, blocks=blocks, unit=unit)
        return "kernel_benchmark", [told]
    if (once or not steps) and not trains and again and alone:
        share = show(first.type_share, "ratio")
        said = "one_kernel_beside_fills" if first.beside_fills else "one_kernel"
        because = both(f"recording.{said}", type=first.type, share=share, count=first.type_count)
        return "kernel_benchmark", [because]
    if not steps and not trains and not serves and first.measured and first.type != UNTYPED:
        return "kernel_benchmark", [both(f"recording.{first.measured}", types=first.types)]
    if not steps and not any(one.timed for one in found):
        return "fragment", [
            both("recording.cut" if any(one.cut and one.started for one in found) else "recording.no_course")
        ]
    if not steps and any(one.loads for one in found):
        return "unmarked", [both("recording.loads")]
    repeats = (
        [both("recording.repeats", length=str(first.execution_kernels), count=str(first.executions))]
        if first.executions and first.execution_kernels > 1 and not steps
        else []
    )
    if serves and not trains:
        return "inference", [*repeats, both("recording.serving", example=serves[:60])]
    if offline and not trains:
        return "inference", [*repeats, both("recording.offline", call=offline)]
    loops = steps or any(one.program and one.repeats for one in found)
    if loops and not trains and all(one.named and not one.exchanges for one in found):
        return "inference", [both("recording.forward")]
    return ("training_steps" if steps else "unmarked"), repeats


def _joined(parts: Iterable[Text], by: str) -> Text:
    return functools.reduce(lambda first, second: both(by, first=first, second=second), parts)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts about the recording as a whole."""
    del facts
    told = recording_of(run)
    found = list(run.each(RECORDING).values())
    yield from fact("recording.kind", RUN, told.kind)
    yield from fact("recording.has_steps", RUN, told.has_steps)
    yield from fact("recording.measured_type", RUN, told.measured or None)
    yield from fact("recording.launch_us", RUN, (told.measured and found[0].launch_us) or None)
    offline = told.kind == "inference" and any(one.offline for one in found)
    yield from fact("recording.executes_model", RUN, offline or None)
    yield from fact("recording.kernels", RUN, max((one.kernels for one in found), default=0) or None)
    yield from fact("recording.device_tasks", RUN, max((one.tasks for one in found), default=0) or None)
    yield from fact("recording.stray_kernels", RUN, sum(one.stray for one in found) or None)
    if told.has_steps or not found:
        return
    yield from fact("recording.is_set_up", RUN, any(one.loads for one in found) or None)
    yield from fact("recording.set_up_us", RUN, float(np.median([one.set_up_us for one in found])) or None)
    yield from fact("recording.executions", RUN, found[0].executions or None)
    yield from fact("recording.repeats", RUN, any(one.repeats for one in found) or None)
    yield from fact("recording.execution_us", RUN, found[0].execution_us or None)


_TABLES = ("kernels", "steps", "collectives")
FAMILIES = (Family("recording", KINDS, measure, RECORDING.by(reduce), _TABLES, uses=(DATA_PIPELINE,)),)
