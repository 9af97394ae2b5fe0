"""What kind of recording it is: training steps, inference, one kernel again and again, or something without steps.

A profile is evidence about a recording, not about a training. Marks of steps make steps, and nothing else does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.units import show
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.kernel_time import is_collective
from advisor.facts.recording.counts import UNTYPED
from advisor.facts.recording.kinds.evidence import RECORDING, Recording, reduce, trains
from advisor.facts.recording.limits import section
from advisor.knowledge.words import both
from advisor.model import RUN, Fact, Subject, Text

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
    kind("recording.measured_us", "us", "run", "how long a launch of it takes, in the middle", needs="kernels"),
    kind("recording.launch_us", "us", "run", "from one launch of it to the next, in the middle", needs="kernels"),
    kind("recording.executes_model", "bool", "run", "the host executes a compiled model, without a framework",
         needs="host_api"),
    kind("recording.is_forward", "bool", "run", "nothing in it trains: kernels that only inference launches are there, "
         "or all kernels are known, and no gradients among them", needs="kernels"),
    kind("recording.kernels", "count", "run", "kernels that stand one by one, of the rank with most of them; "
         "not told where a statistic counts more", needs="kernels"),
    kind("recording.is_complete", "bool", "run", "whether the step table tells of as much computing as the kernels do, "
         "on every rank: there were no others", needs="kernels"),
    kind("recording.kernels_left", "count", "run", "kernels at hand of a table that lost others, of the rank with most",
         needs="kernels"),
    kind("rank.cut_tables", "list", "rank", "tables of this rank of which rows are missing: what is not in them may "
         "have been all the same"),
    kind("recording.is_picked", "bool", "run", "rows are missing between the kernels of some rank, and no statistic "
         "tells of all of them: shares are those of the rows at hand", needs="kernels"),
    kind("recording.device_tasks", "count", "run", "tasks of the device in the timeline, of the rank with most "
         "of them, where no kernels stand one by one", needs="trace"),
    kind("recording.stray_kernels", "count", "run", "kernels that belong to no step: before, between and after them",
         needs="kernels"),
)  # fmt: skip

MOST_GRAPHS = 3
"""Graphs that are named beside the judged one."""


@computed
def framework_of(run: Run) -> str:
    """The framework by its files, else by the events of its timeline."""
    if run.profile.framework != "unknown":
        return run.profile.framework
    return next((one.framework for one in run.each(RECORDING).values() if one.framework), "unknown")


class Told(Struct, frozen=True):
    """What was recorded, and why it is taken for that."""

    kind: str
    has_steps: bool
    reason: Text
    measured: str = ""
    """The type of kernel that a benchmark of one kernel measures."""
    is_set_up: bool = False
    """Much of it lies before first launches, and nothing repeats: what sets up is all that it shows."""


@computed
def recording_of(run: Run) -> Told:
    """What all ranks' files say together."""
    found = list(run.each(RECORDING).values())
    batches = [one for one in run.each(DATA_PIPELINE).values() if one.times is None or not one.times.is_ahead]
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
        numbered = "numbered" if found[0].numbered else "no_marks"
        why.append(both(f"recording.{'no_names' if any(one.framed for one in found) else numbered}"))
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
    sets_up = not steps and any(one.loads for one in found)
    return Told(kind_of, steps, _joined(why, "recording.joined"), measured, sets_up)


def _kind(found: list[Recording], steps: bool) -> tuple[str, list[Text]]:
    """The kind and what says so."""
    if (measured := _measured(found, steps)) is not None:
        return "kernel_benchmark", [measured]
    if not steps and not any(one.timed for one in found):
        cut = any(one.cut and one.started for one in found)
        return "fragment", [both("recording.cut" if cut else "recording.no_course")]
    if not steps and any(one.loads for one in found):
        return "unmarked", [both("recording.loads")]
    first, repeats = found[0], list[Text]()
    if first.executions and first.execution_kernels > 1 and not steps:
        repeats = [both("recording.repeats", length=str(first.execution_kernels), count=str(first.executions))]
    if any(one.trains for one in found):
        return ("training_steps" if steps else "unmarked"), repeats
    if serves := next((one.serves for one in found if one.serves), ""):
        return "inference", [*repeats, both("recording.serving", example=serves[:60])]
    if server := next((one.server for one in found if one.server), ""):
        return "inference", [*repeats, both("recording.server", folder=server[:60])]
    if offline := next((one.offline for one in found if one.offline), ""):
        return "inference", [*repeats, both("recording.offline", call=offline)]
    loops = steps or any(one.program and one.repeats for one in found)
    if loops and _is_forward(found):
        return "inference", [both("recording.forward")]
    return ("training_steps" if steps else "unmarked"), repeats


def _is_forward(found: list[Recording]) -> bool:
    """Whether kernels, or all of their names, tell that nothing trains."""
    if not found or any(one.trains for one in found):
        return False
    return any(one.serves for one in found) or all(one.named and not one.exchanges for one in found)


def _measured(found: list[Recording], steps: bool) -> Text | None:
    """What a benchmark measures; None where it is none."""
    first = found[0]
    if not steps and all(one.only_exchanges for one in found):
        return both("recording.only_exchanges")
    if first.alone:
        return _by_itself(first)
    if any(one.trains for one in found) and not (_stands_alone(first) and trains(first.type)):
        return None
    if _is_one_kernel(found, steps):
        said = "one_kernel_beside_fills" if first.beside_fills else "one_kernel"
        share = show(first.type_share, "ratio")
        return both(f"recording.{said}", type=first.type, share=share, count=first.type_count)
    if not steps and not any(one.serves for one in found) and first.measured and first.type != UNTYPED:
        return both(f"recording.{first.measured}", types=first.types)
    return None


def _by_itself(one: Recording) -> Text:
    """What `msprof op` measured."""
    blocks = unit = Text("", "")
    if one.blocks:
        blocks = both(f"recording.{'blocks' if one.blocks > 1 else 'block'}", count=one.blocks)
    if one.unit:
        unit = both("recording.unit", unit=one.unit, share=show(one.unit_share, "ratio"))
    said, took = "one_operator" if one.types < 2 else "operators", show(one.length_us, "us")
    return both(f"recording.{said}", type=one.type, types=one.types, time=took, blocks=blocks, unit=unit)


def _stands_alone(one: Recording) -> bool:
    """Whether nothing else is launched nearly as often as the kernel that takes most of the time. A gradient without a
    forward pass, and an update without gradients, are no training, whatever they are called."""
    return one.beside_count < section("benchmark")["beside_fills"] * one.type_count


def _is_one_kernel(found: list[Recording], steps: bool) -> bool:
    """Whether one kernel was launched again and again, and nothing else of a program ran around it."""
    first, limits = found[0], section("benchmark")
    # one step that is marked around all launches of one kernel on one input divides nothing
    once = all(one.marked_once for one in found) and first.type_shapes == 1 and first.type_count >= limits["launches"]
    if steps and not once:
        return False
    lone = first.types == 1 and first.kernels > 0 and first.named and not first.framed and not first.excerpt
    least = limits["launches"] if first.excerpt else section("repetition")["executions"]
    if first.type_count < least and not lone:
        return False
    if first.types > limits["types"] or first.unlisted or first.type_share < limits["one_type_share"]:
        return False
    if first.type == UNTYPED or is_collective(first.type):  # a table of collectives is a part of a program's
        return False
    # one type under many names, or on other inputs each time, again and again: the layers of a network
    in_sequence = first.execution_kernels if first.executions else 0
    return max(first.type_names, in_sequence) <= limits["types"] and not any(o.offline or o.program for o in found)


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
    yield from fact("recording.measured_us", RUN, (told.measured and found[0].measured_us) or None)
    yield from fact("recording.launch_us", RUN, (told.measured and found[0].launch_us) or None)
    offline = told.kind == "inference" and any(one.offline for one in found)
    yield from fact("recording.executes_model", RUN, offline or None)
    yield from fact("recording.is_forward", RUN, _is_forward(found) or None)
    yield from fact("recording.kernels", RUN, max((one.kernels for one in found), default=0) or None)
    yield from fact("recording.is_complete", RUN, (bool(found) and all(one.whole for one in found)) or None)
    yield from fact("recording.kernels_left", RUN, max((one.left for one in found), default=0) or None)
    yield from fact("recording.is_picked", RUN, any(one.picked for one in found) or None)
    for rank, one in run.each(RECORDING).items():
        yield from fact("rank.cut_tables", Subject("rank", str(rank), (rank,)), ("kernels",) if one.lost else None)
    yield from fact("recording.device_tasks", RUN, max((one.tasks for one in found), default=0) or None)
    yield from fact("recording.stray_kernels", RUN, sum(one.stray for one in found) or None)
    if told.has_steps or not found:
        return
    yield from fact("recording.is_set_up", RUN, told.is_set_up or None)
    yield from fact("recording.set_up_us", RUN, float(np.median([one.set_up_us for one in found])) or None)
    yield from fact("recording.executions", RUN, found[0].executions or None)
    yield from fact("recording.repeats", RUN, any(one.repeats for one in found) or None)
    yield from fact("recording.execution_us", RUN, found[0].execution_us or None)


_TABLES = ("kernels", "steps", "collectives")
FAMILIES = (Family("recording", KINDS, measure, RECORDING.by(reduce), _TABLES, uses=(DATA_PIPELINE,)),)
