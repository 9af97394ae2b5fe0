"""What one rank's files say about what was recorded: what marks its steps, what ran, and what only training, inference
or a benchmark does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from advisor.facts.base import Reduction
from advisor.facts.device.drawn import work_of
from advisor.facts.device.kernel_time import Timeline, timeline_of
from advisor.facts.operators.kinds import is_fused_update
from advisor.facts.recording.between import host_works
from advisor.facts.recording.counts import executions_of_table, is_cut
from advisor.facts.recording.iterations import Graph, iterations_of
from advisor.facts.recording.kinds.framework import by_events, by_tables
from advisor.facts.recording.kinds.work import lacks_types, of_one_operator, of_statistic, of_tasks, of_timeline
from advisor.facts.recording.limits import told_by
from advisor.facts.recording.sums import operators_of
from advisor.facts.recording.tasks_alone import tasks_alone
from advisor.facts.recording.windows import is_marked, meeting_steps, numbers_launches, ran_alone
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, load_kernels
from advisor.sources.streams.rank_trace import load_trace
from advisor.sources.streams.trace import Trace


class Recording(Struct, frozen=True):
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
    server: str = ""
    """The rank's folder, where a serving engine named it."""
    columns: tuple[str, ...] = ()
    """Of tables that are not the same without them, the columns that tell steps apart or add up: "steps/step"."""
    exchanges: bool = False
    """Whether ranks reduce something together, as gradients are."""
    hands_over: bool = False
    """Whether the host calls for sending to single ranks, or for receiving from them."""
    only_exchanges: bool = False
    """Whether collectives ran and nothing computed, as the step table says as well."""
    offline: str = ""
    """A call of the host that executes a compiled model."""
    program: bool = False
    """Whether the host does work of its own between groups of launches."""
    marked_once: bool = False
    """Whether all kernels lie in the one step that is marked."""
    numbered: bool = False
    """Whether ids of steps on the kernels number launches of one of them."""
    excerpt: bool = False
    """Whether a framework's profiler wrote the table of kernels, by its name or ids of steps in it, none of its other
    tables is there, and nothing tells that no other kernel ran between launches that are numbered."""
    picked: bool = False
    """Whether kernels are missing between these, and nothing tells what they are of all."""
    lost: bool = False
    """Whether rows of the table of kernels are missing, whatever tells it."""
    named: bool = False
    """Whether kernels, all of them, have names to judge by."""
    type: str = ""
    """The type of kernel that takes most of the time of what is judged …"""
    type_share: float = 0.0
    type_count: int = 0
    beside_fills: bool = False
    """Whether kernels that only fill memory are left out of these shares."""
    beside_count: int = 0
    """How often any other type was launched that does more than fill memory …"""
    types: int = 0
    """… and how many types there are."""
    unlisted: bool = False
    """Whether the statistic that tells this leaves types out: nobody knows how many there are."""
    launch_us: float = 0.0
    """From one launch of it to the next, in the middle …"""
    measured_us: float = 0.0
    """… and how long one takes."""
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
    whole: bool = False
    """Whether the step table tells that there were no others."""
    left: int = 0
    """How many kernels are at hand of a table that lost others, where no statistic of the profiler counts them."""
    tasks: int = 0
    """How many tasks the timeline draws on the device, where it alone tells of that."""
    timeline_steps: tuple[str, ...] = ()
    """Steps that the timeline marks."""
    framework: str = ""
    """What the events in the timeline are of: pytorch, mindspore, or nothing known."""


RECORDING = Reduction("recording", Recording)
_TELLING = frozenset(
    ("steps", "step_phases", "cluster_phases", "kernels", "operator_types", "operators", "trace", "iterations")
)
"""Tables any of which tells what was recorded."""


def reduce(rank: Rank) -> Recording | None:
    """What one rank's files say; None where it has neither kernels, nor steps, nor operators, nor a timeline."""
    if not _TELLING & rank.tables.keys():
        return None if meeting_steps(rank) is None else Recording(marks=("collectives",), timed=True)
    kernels, timeline = load_kernels(rank), timeline_of(rank)
    told = _of_kernels(rank, kernels, timeline)
    names, listed = _names_in_tables(rank)
    told |= _of_operators(rank, counts=told["cut"] or timeline is None)
    work = work_of(rank) if kernels is None else None
    if (ran := kernels or (work.kernels if work else None)) is not None:
        names |= {*ran.kinds()[0], *(s.type for s in ran.signatures)}
    names = _kinds(names)
    # where no kernel is named, the interfaces that the host launched them by
    work_names = names or {name for name in _calls(rank, None) if name.startswith("aclnn")}
    told["trains"] = any(map(trains, work_names)) or _ends_backward(rank)
    told["serves"] = min(filter(told_by("inference"), work_names), default="")
    told["server"] = next(filter(told_by("server_folder"), _folders(rank)), "")
    told["exchanges"] = any(map(told_by("gradient_exchange"), names))
    told["framework"] = "mindspore" if any(map(told_by("mindspore"), names)) else by_tables(rank)
    if kernels is None:
        told["named"] = bool(names) and (listed or not rank.has("operator_types"))
    else:
        told["named"] = (listed or (not told["cut"] and any(kernels.names))) and not told["alone"]
    trace = load_trace(rank) if rank.has("trace") or not told["trains"] else None
    if trace is not None:
        told |= _of_trace(rank, trace, kernels, timeline, told)
        told["named"] = told["named"] and not (work and trace.cut)  # what trains may stand behind the cut
    told |= _of_iterations(rank, timeline, told["marks"])
    told["columns"] = tuple(_columns(rank, kernels))
    told["offline"] = min(filter(told_by("inference_host"), _calls(rank, trace)), default="")
    return Recording(**told)


_PARTS = {
    "steps": ("step", "computing_us", "exposed_us", "overlapped_us", "free_us"),
    "step_phases": ("step", "total_us", "interval_us", "fp_bp_us", "tail_us"),
    "operator_types": ("count", "total_us"),
}
"""Columns without which the others of a table are told otherwise."""


def _columns(rank: Rank, kernels: Kernels | None) -> Iterator[str]:
    for table, parts in _PARTS.items():
        frame = rank.read(table) if rank.has(table) else None
        if frame is not None:
            yield from (f"{table}/{column}" for column in parts if column in frame and frame[column].notna().any())
    if kernels is not None and any(kernels.steps):
        yield "kernels/step"


def _folders(rank: Rank) -> Iterator[str]:
    """Names of the folders in which the rank's tables lie."""
    for path in dict.fromkeys(path.parent for table in rank.tables.values() for path in table.paths):
        yield from path.parts


def trains(name: str) -> bool:
    """Whether only training launches kernels of that name: gradients, and updates of the weights."""
    return told_by("training")(name) or is_fused_update(name)


def _ends_backward(rank: Rank) -> bool:
    """Whether the older step trace has work behind the end of backward, which only training has."""
    frame = rank.read("step_phases") if rank.has("step_phases") else None
    return frame is not None and "tail_us" in frame and bool((frame["tail_us"] > 0).mean() > 0.5)


def _of_kernels(rank: Rank, kernels: Kernels | None, timeline: Timeline | None) -> dict[str, Any]:
    """What stands one by one, and what the table of steps says beside it."""
    steady = None if timeline is None or timeline.placed is None else timeline.placed.steady
    loads = steady is not None and not steady.idle_told
    cut = kernels is not None and (is_cut(rank, kernels) or (timeline is not None and not timeline.whole and not loads))
    alone = kernels is not None and rank.tables["kernels"].reader == "kernels.opprof"
    marks = []
    framed = rank.has("steps") and rank.read("steps") is not None
    if framed and is_marked(rank):
        marks.append("steps")
    if rank.has("step_phases") or rank.has("cluster_phases"):
        marks.append("phases")
    told: dict[str, Any] = {
        "marks": tuple(marks), "cut": cut, "loads": loads, "alone": alone, "framed": framed,
        "started": kernels is None or bool((kernels.start >= 0).any()),
        "timed": framed or (timeline is not None and not cut),
        "kernels": 0 if kernels is None or (cut and not alone) else len(kernels.duration),
    }  # fmt: skip
    if kernels is not None and cut and not alone and not rank.has("operator_types"):
        told["left"] = len(kernels.duration)
    if kernels is not None and timeline is not None and timeline.placed is not None:
        placed = timeline.placed
        told |= {} if timeline.is_scrap else of_timeline(timeline)
        told["whole"] = timeline.complete and not cut
        told["marks"] = (*marks, *filter(None, (placed.marks,)))
        told["stray"] = int((~placed.inside).sum()) if placed.marks else 0
        told["marked_once"] = bool(placed.marks) and len(placed.windows.names) == 1
        told |= _of_ids(rank, kernels)
    told["picked"] = timeline is not None and timeline.picked
    told["lost"] = timeline is not None and timeline.lost
    if timeline is not None and timeline.whole:
        told["only_exchanges"] = bool(timeline.communication.all())
    return told | (of_one_operator(kernels) if kernels is not None and alone else {})


def _of_ids(rank: Rank, kernels: Kernels) -> dict[str, Any]:
    """What ids of steps on the kernels say of the table in which these stand."""
    has_ids = any(kernels.steps)
    numbered = has_ids and numbers_launches(rank, kernels)
    by_framework = has_ids or rank.tables["kernels"].paths[0].name.startswith("kernel_details")
    alone = numbered and ran_alone(kernels)
    return {"numbered": numbered, "excerpt": not rank.has("steps") and by_framework and not alone}


def _of_operators(rank: Rank, counts: bool) -> dict[str, Any]:
    """What tables of operators say of the executions in them and, where the statistic `counts`, of the work."""
    told: dict[str, Any] = {}
    for table in ("operator_types", "operators"):
        frame = operators_of(rank, table)
        if frame is None:
            continue
        if table == "operator_types" and counts:
            told |= of_statistic(frame)
        one_step = "steps" in frame and bool((frame["steps"] == 1).all())
        told["averaged"] = told.get("averaged", False) or table == "operators" or one_step
        told["summed"] = executions_of_table(rank)
    return told


def _names_in_tables(rank: Rank) -> tuple[set[str], bool]:
    """Types and names in the tables of operators, and whether the statistic by type lists all of them."""
    names, listed = set[str](), False
    for table in ("operator_types", "operators"):
        frame = operators_of(rank, table)
        if frame is not None:
            listed = listed or (table == "operator_types" and bool(len(frame)) and not lacks_types(frame))
            names |= {name for column in ("type", "name") if column in frame for name in frame[column].dropna()}
    return names, listed


def _of_trace(
    rank: Rank, trace: Trace, kernels: Kernels | None, timeline: Timeline | None, known: dict[str, Any]
) -> dict[str, Any]:
    """What the timeline adds to what is `known` from the tables."""
    told: dict[str, Any] = {
        "timed": True,
        "timeline_steps": tuple(name for name, _, _ in trace.steps),
        "trains": known["trains"] or any(told_by("training_host")(name) for _, name in trace.activities),
        "framework": known["framework"] or by_events(trace),
        "hands_over": any(told_by("handover_host")(name) for _, name in trace.activities),
        "tasks": 0 if kernels is not None else trace.device_tasks,
    }
    if (tasks := tasks_alone(rank)) is not None:
        told |= of_tasks(tasks)
        told["program"] = host_works(trace, tasks.start, tasks.end)
    if timeline is not None and timeline.placed is not None:
        started = timeline.kernels.start >= 0
        told["program"] = host_works(trace, timeline.kernels.start[started], timeline.kernels.end[started])
    if kernels is None and (by := "trace" if trace.steps else "iterations" if trace.iterations else ""):
        told["marks"] = (*known["marks"], by)
    return told


def _of_iterations(rank: Rank, timeline: Timeline | None, marks: tuple[str, ...]) -> dict[str, Any]:
    """Executions of graphs, which mark steps where neither kernels nor a timeline tell them."""
    told: dict[str, Any] = {}
    if "iterations" not in marks and (timeline is None or not timeline.whole) and rank.has("iterations"):
        counted = iterations_of(rank)
        if counted is not None and len(counted.names) > 1:
            told = {"marks": (*marks, "iterations"), "timed": True}
    if "iterations" in told.get("marks", marks) and (executed := iterations_of(rank)) is not None:
        told["others"] = executed.others
    return told


def _calls(rank: Rank, trace: Trace | None) -> set[str]:
    """What the host did, by the timeline and by the statistic of its calls."""
    calls = {name for _, name in trace.activities} if trace is not None else set[str]()
    listed = rank.read("host_api") if rank.has("host_api") else None
    return calls if listed is None or "name" not in listed else calls | set(listed["name"].dropna())


def _kinds(names: Iterable[str]) -> set[str]:
    """Of names that only a number at their end tells apart, the first one: each collective has a number of its own."""
    return set({name.rstrip("_0123456789"): name for name in sorted(names, reverse=True)}.values())
