"""kernel_details.csv and op_summary_*.csv at full size: read in blocks into a compact columnar form.

A rank has hundreds of thousands of kernels and few kinds of them, so texts are kept once and numbers in arrays: some
40 bytes a kernel. Blocks are parsed by polars; a file that polars cannot be trusted with (other encodings, other
separators, quotes that never close) goes through the tolerant reader, which is slower and keeps the same rows.
"""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.knowledge.measuring import limit
from advisor.sources.base import Rank
from advisor.sources.coded import Coded
from advisor.sources.database.kernel_database import database_blocks
from advisor.sources.frames import ABSENT
from advisor.sources.older import legacy_events
from advisor.sources.older.device_timelines import timeline_frames
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.streams.alike import of_another_type, with_cores
from advisor.sources.streams.binaries import type_of_binary
from advisor.sources.streams.kernel_blocks import (
    CORE_TIMES,
    IN_BLOCKS,
    MARK,
    PIPES,
    PLACES,
    SHARES,
    VECTOR_BLOCKS,
    text_frames,
)  # fmt: skip
from advisor.sources.streams.kernel_cells import UNKNOWN, Block, cells_of, usable_columns, usable_rows
from advisor.sources.streams.launch_rows import halves, launchers
from advisor.sources.streams.one_operator import operator_frames
from advisor.sources.streams.tasks import orders_streams, task_frames
from advisor.sources.text.textfiles import TooLarge, require_file, why_unreadable
from advisor.tables import LARGEST, LONGEST_TEXT, TABLES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_NEVER = np.iinfo(np.int64).max
LARGEST_RATIO = 100.0
"""Counters of several cores may add up to more than one; nothing measured adds up to this."""


UNLIKE_CORES, STARTED_US = limit("core_times", "unlike"), limit("core_times", "started_us")
RAN_AWAY = limit("core_times", "ran_away")
_TELLS_CORES = limit("cores", "least_utilisation")


class Signature(Struct, frozen=True):
    """What a kernel was asked to do. Texts as in the file, without the quotes inside; empty where not told."""

    type: str
    core: str
    state: str
    input_shapes: str
    input_dtypes: str
    input_formats: str
    output_shapes: str
    output_dtypes: str


class Kernels(Struct):
    """All kernels of one rank, in order of start; those without a usable start come first with start -1.

    `start` and `end` are nanoseconds, `duration` microseconds; `signature`, `name`, `step` and `stream` are indices
    into the lists of the same name in the plural. `pipes[p][s]` is Σ duration × ratio over the kernels of signature s
    for pipe p, `piped[p][s]` Σ duration of those where the ratio is known.
    """

    start: Ints
    end: Ints
    duration: Floats
    signature: Ints
    name: Ints
    step: Ints
    stream: Ints
    block: Floats
    wait: Floats
    """What the profiler itself noted as time since the kernel before, microseconds; NaN where it did not."""
    signatures: list[Signature]
    names: list[str]
    steps: list[str]
    streams: list[str]
    pipes: dict[str, Floats]
    piped: dict[str, Floats]
    left_out: int = 0
    repeated: int = 0
    """Kernels that stand there again, with the same start, length, name and stream."""
    unlike_cores: float = 0.0
    """Part of the time of those whose cores' time is told in which the two are of no one unit."""

    _operators: tuple[list[str], Ints] | None = None
    _kinds: tuple[list[str], Ints] | None = None
    _by_length: Ints | None = None

    def __len__(self) -> int:
        return len(self.duration)

    def shaped(self) -> Mask:
        """Of which kernels the input shapes are told."""
        told: Mask = np.array([bool(s.input_shapes.strip('";N/A')) for s in self.signatures])
        return told[self.signature]

    def within(self, chosen: Mask) -> Kernels:
        """These kernels alone. Counters of pipes stay those of all kernels of a signature: they are sums."""
        columns = ("start", "end", "duration", "signature", "name", "step", "stream", "block", "wait")
        return replace(
            self, _operators=None, _by_length=None, **{name: getattr(self, name)[chosen] for name in columns}
        )

    def by_length(self) -> Ints:
        """Places of the kernels, the shortest first."""
        if self._by_length is None:
            self._by_length = np.argsort(self.duration, kind="stable")
        return self._by_length

    def operators(self) -> tuple[list[str], Ints]:
        """(operators, operator of each name): names without call stack, launch range and suffixes."""
        if self._operators is None:
            kinds, of_name = self.kinds()
            cut = np.array([operator_name(kind) != kind for kind in kinds], bool)[of_name].tolist()
            operators = [operator_name(name) if cuts else name for name, cuts in zip(self.names, cut, strict=True)]
            index: dict[str, int] = {}
            codes = np.array([index.setdefault(operator, len(index)) for operator in operators], np.int64)
            self._operators = list(index), codes
        return self._operators

    def kinds(self) -> tuple[list[str], Ints]:
        """(kinds, kind of each name): of names that only numbers tell apart, the first. Each collective and each node
        of a graph has numbers of its own, and nothing is told by them."""
        if self._kinds is None:
            index: dict[str, int] = {}
            codes = [index.setdefault(_NUMBER.sub("0", name), len(index)) for name in self.names]
            first: dict[int, str] = {}
            for name, code in zip(self.names, codes, strict=True):
                if name < first.setdefault(code, name):
                    first[code] = name
            self._kinds = [*first.values()], np.array(codes, np.int64)
        return self._kinds

    def named(self, says: Callable[[str], bool]) -> Mask:
        """Which kernels bear a name of which this holds, whatever the numbers in it."""
        kinds, of_name = self.kinds()
        holds: Mask = np.array([*map(says, kinds)], bool)[of_name[self.name]]
        return holds


class _Texts(dict[str, int]):
    """Indices of texts as they stand in the file, across blocks; texts that differ in quotes or blanks share one."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def __missing__(self, text: str) -> int:
        code = self[text] = self.index.setdefault(_clean(text), len(self.index))
        return code

    def encode(self, column: Coded) -> npt.NDArray[np.int32]:
        """Index of each text."""
        numbers: npt.NDArray[np.int32] = np.array([*map(self.__getitem__, column.told)], np.int32)[column.codes]
        return numbers


def _clean(text: str) -> str:
    """Without the quotes, blanks and tabs around each part; N/A is nothing."""
    if MARK in text:
        return MARK.join(map(_clean, text.split(MARK)))
    text = text.strip(' \t\r\n"')[:LONGEST_TEXT]
    return "" if text == "N/A" else text


class _Collector:
    """Takes canonical frames block by block."""

    def __init__(self, once: bool = False) -> None:
        self.once = once
        """Leave out kernels that stand there again: a join of damaged tables gives them, a text file may mean them."""
        self.signatures, self.names, self.steps, self.streams = _Texts(), _Texts(), _Texts(), _Texts()
        self.parts: list[tuple[npt.NDArray[Any], ...]] = []
        self.pipes: dict[str, Floats] = {pipe: np.zeros(0) for pipe in SHARES}
        self.piped: dict[str, Floats] = {pipe: np.zeros(0) for pipe in SHARES}
        self.unusable = self.impossible = self.stepless = self.moved = self.misplaced = self.of_another_type = 0

    def add(self, block: Block, unusable: int = 0) -> None:
        """Adds the kernels of a block, whose kinds are in the column `signature`. Those without a finite, non-negative
        duration or with an impossible step are left out and counted with those left out before."""
        self.unusable += unusable
        duration = block["duration_us"]
        if not duration.size:
            return
        signature = self.signatures.encode(block["signature"])
        nothing = Coded(np.zeros(duration.size, np.int64), [""])
        unknown = np.full(duration.size, np.nan)
        cores = [block[name] for name in CORE_TIMES if name in block]
        worked = np.fmax.reduce(cores) if cores else unknown
        self.parts.append((
            block.get("start_ns", np.full(duration.size, UNKNOWN)), duration, signature,
            *(texts.encode(block.get(name, nothing))
              for name, texts in (("name", self.names), ("step", self.steps), ("stream", self.streams))),
            _measured(block.get("block_num", unknown)), _counted(block, duration.size),
            _measured(worked), _measured(block.get("wait_us", unknown)),
        ))  # fmt: skip
        part = _parts_of_time(duration, *cores) if len(cores) == len(CORE_TIMES) else None
        for pipe in PIPES:
            if pipe not in block:
                continue
            ratio = block[pipe]
            known = np.isfinite(ratio) & (ratio >= 0) & (ratio <= LARGEST_RATIO)
            self.impossible += int((np.isfinite(ratio) & ~known).sum())
            if part is not None:
                ratio = ratio * part[pipe in _VECTOR_PIPES]
                if pipe == "scalar_ratio":
                    known &= ~part[2]  # there the cube core's scalar unit also waits for the vector cores
            self._share(pipe, ratio, known, duration, signature)
        if cores:
            known = np.isfinite(worked) & (worked > 0) & (duration > 0)
            ratio = np.minimum(worked / np.where(known, duration, 1.0), 1.0)
            self._share(IN_BLOCKS, ratio, known, duration, signature)
        if "mix_block_num" in block and "block_num" in block:
            cube, vector = block["block_num"], block["mix_block_num"]
            known = (cube >= 1) & (vector >= 1)
            self._share(VECTOR_BLOCKS, vector / np.where(known, cube, 1.0), known, duration, signature)
        if CORE_TIMES[0] in block and "cube_utilization" in block:
            worked, used = block[CORE_TIMES[0]], block["cube_utilization"] * duration
            known = (worked > 0) & (block["cube_utilization"] >= _TELLS_CORES) & (used > 0)
            self._share(PLACES, worked / np.where(known, used, 1.0), known, duration, signature)

    def _share(self, pipe: str, ratio: Floats, known: Mask, duration: Floats, signature: npt.NDArray[Any]) -> None:
        """Adds what part of each kernel's time a unit was busy, where that is known."""
        size = len(self.signatures.index)
        weight = np.where(known, duration, 0.0)
        self.pipes[pipe] = _grown(self.pipes[pipe], size)
        self.piped[pipe] = _grown(self.piped[pipe], size)
        self.pipes[pipe] += np.bincount(signature, weight * np.where(known, ratio, 0.0), size)
        self.piped[pipe] += np.bincount(signature, weight, size)

    def end_file(self, first: int) -> None:
        """Forgets the wait of the earliest kernel among the blocks from `first` on, which are those of one file: the
        profiler noted it since the row before, and each file begins with a row that has none before it."""
        starts = [int(start[start >= 0].min(initial=_NEVER)) for start, *_ in self.parts[first:]]
        if starts and (earliest := min(starts)) < _NEVER:
            start, *_, wait = self.parts[first + starts.index(earliest)]
            wait[start == earliest] = np.nan

    def finish(self) -> Kernels | None:
        """All blocks joined and ordered by start; None where nothing was usable."""
        if not self.parts:
            return None
        start, duration, signature, name, step, stream, block, counted, worked, wait = (
            np.concatenate(column) for column in zip(*self.parts, strict=True)
        )
        self.parts.clear()
        signatures = _without_cores_as_types(
            [Signature(type_of_binary(kind), *rest) for kind, *rest in (s.split(MARK) for s in self.signatures.index)]
        )
        order = np.argsort(start, kind="stable")
        work = ~np.array([orders_streams(each.core) for each in signatures], bool)
        if not work.all():
            order = order[work[signature[order]]]
            wait = np.full_like(wait, np.nan)  # noted since a task that is no kernel
            if not order.size:
                return None
        if (odd := _no_numbers(list(self.steps.index))).any():
            numbered = ~odd[step[order]]
            self.stepless = int((~numbered).sum())
            order = order[numbered]
        moved = _is_moved(signatures)[signature[order]]
        if moved.any():
            lost = moved & _is_outside(start[order], ~moved)
            self.moved, self.misplaced = int(moved.sum()), int(lost.sum())
            order = order[~lost]
        sound = order[~moved[~lost]] if moved.any() else order
        unlike = _unlike_cores(duration[sound], worked[sound])
        again = told_again(start[order], duration[order], name[order], stream[order])
        # starts that were rounded make other kernels begin together as well; without those it is one kernel told again
        told = int(again.sum())
        self.once = self.once or (told >= _TABLE and told > _TOGETHER * (_began_together(start[order]) - told))
        order = order[~again] if self.once else order
        cores, mine = [each.core for each in signatures], signature[order]
        beside = halves(cores, mine, start[order], duration[order], name[order], stream[order])
        beside |= launchers(cores, mine, counted[order], start[order], duration[order], name[order])
        order = order[~beside] if beside.any() else order
        lost = np.array([_NO_WORD.match(core) is not None for core in cores], bool)  # what only starts one has no core
        signature = with_cores(cores, lambda kind: replace(signatures[kind], core=""), signature, name, lost)
        start, duration = start[order], duration[order]
        self.of_another_type = of_another_type(
            [each.type for each in signatures], signature[order], list(self.names.index), name[order]
        )
        end = np.where(start >= 0, start + np.rint(duration * 1000).astype(np.int64), UNKNOWN)
        size = len(self.signatures.index)
        return Kernels(
            start, end, duration, signature[order], name[order], step[order], stream[order], block[order], wait[order],
            signatures,
            list(self.names.index), list(self.steps.index), list(self.streams.index),
            {pipe: _grown(total, size) for pipe, total in self.pipes.items()},
            {pipe: _grown(total, size) for pipe, total in self.piped.items()},
            self.unusable + self.stepless + self.misplaced, int(again.sum()), unlike,
        )  # fmt: skip


_VECTOR_PIPES = frozenset(("vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio"))


def _parts_of_time(duration: Floats, cube: Floats, vector: Floats) -> tuple[Floats, Floats, Mask]:
    """The part of each kernel's time in which its cube cores, and in which its vector cores worked, and where it uses
    both: only there a part is below 1. A cube core that starts, tells the vector cores to begin and ends was busy for
    nothing of the rest."""
    mixed = (cube > 0) & (vector > 0) & (duration > 0)
    per = np.where(mixed, duration, 1.0)
    first, second = (np.where(mixed, np.minimum(time / per, 1.0), 1.0) for time in (cube, vector))
    return first, second, mixed


def _unlike_cores(duration: Floats, worked: Floats) -> float:
    """Part of the time of kernels whose cores' time is told in which one of the two is too long for the other: starting
    and ending a kernel takes microseconds, and otherwise it lasts about as long as the core that works most. A counter
    that ran away is no unit, and says nothing of the kernel."""
    known = (worked > 0) & (duration > 0) & (worked < RAN_AWAY * duration)
    duration, worked = duration[known], worked[known]
    longer = np.maximum(duration, worked)
    unlike = (duration > UNLIKE_CORES * worked + STARTED_US) | (worked > UNLIKE_CORES * duration)
    return float(longer[unlike].sum() / longer.sum()) if longer.size else 0.0


def _is_outside(start: Ints, trusted: Mask) -> Mask:
    """Which starts lie outside the time of the trusted ones; of none where these tell of none."""
    known = start[trusted & (start >= 0)]
    if not known.size:
        return np.zeros(len(start), bool)
    outside: Mask = (start < known.min()) | (start > known.max())
    return outside


def _no_numbers(steps: Sequence[str]) -> Mask:
    """Which names of steps are no numbers where others are: what stands there is something else than a step."""
    numbers = [step.isdecimal() and step.isascii() for step in steps]
    return np.array([bool(step) and any(numbers) and not number for step, number in zip(steps, numbers, strict=True)])


def told_again(start: Ints, *others: npt.NDArray[Any]) -> Mask:
    """Which kernels, in order of start, repeat one of those with the same start: a device starts one kernel once."""
    repeated = np.zeros(len(start), dtype=bool)
    alike = np.zeros(len(start) + 1, dtype=bool)
    alike[1:-1] = (start[1:] == start[:-1]) & (start[1:] >= 0)
    places = np.flatnonzero(alike[1:] | alike[:-1])
    if places.size:
        columns = [column[places] for column in (*others, start)]
        order = np.lexsort(columns)
        same = [column[order][1:] == column[order][:-1] for column in columns]
        repeated[places[order[1:][np.all(same, axis=0)]]] = True
    return repeated


_TABLE = 100
"""So many kernels that are told again are a table that was put behind itself …"""
_TOGETHER = 10
"""… where they are so many times as many as others that begin at one time."""


def _began_together(start: Ints) -> int:
    """How many kernels, in order of start, begin with the one before."""
    return int(((start[1:] == start[:-1]) & (start[1:] >= 0)).sum())


def _counted(block: Block, size: int) -> Mask:
    """Which rows of a block any counter watched."""
    counted: Mask = np.zeros(size, bool)
    for pipe in PIPES:
        if pipe in block:
            counted |= np.isfinite(block[pipe])
    return counted


def _measured(numbers: Floats) -> npt.NDArray[np.float32]:
    """The numbers as float32, which holds no more than anything measures; what is beyond is unknown."""
    return np.where(np.abs(numbers) <= LARGEST, numbers, np.nan).astype(np.float32)


def _grown(array: Floats, size: int) -> Floats:
    return array if len(array) == size else np.concatenate((array, np.zeros(size - len(array))))


_FRAMES = {
    "kernels.timelines": timeline_frames,
    "kernels.opprof": operator_frames,
    "legacy.timeline": legacy_events.timeline_frames,
}


def _frames(reference: TableRef, path: Path, note: Note) -> Iterable[pl.DataFrame]:
    if reference.reader == "legacy.timeline_in_steps":
        return legacy_events.frames_in_steps(reference, note)
    if reference.reader == "kernels.tasks":
        return task_frames(path, note, reference.options.get("device"))
    if reader := _FRAMES.get(reference.reader):
        return reader(path, note)
    return text_frames(path, note, reference.options.get("device"))


def _blocks(reference: TableRef, path: Path, note: Note) -> Iterable[tuple[Block, int]]:
    """(usable kernels, how many are not) of a file, a block at a time."""
    if reference.reader == "kernels.db":
        return map(usable_columns, database_blocks(path, note, reference.options.get("device")))
    return map(usable_rows, _frames(reference, path, note))


def _without_cores_as_types(signatures: list[Signature]) -> list[Signature]:
    """The same without types where all of them only repeat the core: then names tell what kernels do."""
    if any(each.type != each.core for each in signatures):
        return signatures
    return [replace(each, type="") for each in signatures]


def load_kernels(rank: Rank) -> Kernels | None:
    """The rank's kernels, read once and kept until the rank forgets; None where there are none."""
    reference = rank.tables.get("kernels")
    return None if reference is None else rank.once(load_kernels, lambda: _load(reference, rank.note_path))


_ONCE = ("kernels.db", "kernels.timelines")
"""Readers whose kernels are tasks of the device, which starts each once."""


def _load(reference: TableRef, note: Note) -> Kernels | None:
    once = reference.reader in _ONCE
    collector = _Collector(once)
    for path in reference.paths:
        before, first = collector.unusable, len(collector.parts)
        try:
            require_file(path)
            for block, unusable in _blocks(reference, path, note):
                collector.add(block, unusable)
            collector.end_file(first)
        except OSError as error:
            note(str(path), why_unreadable(error))
        except sqlite3.DatabaseError as error:
            collector = _Collector(once)
            text = "is a damaged database; a part of its kernels would misrepresent the rest, none was used"
            note(str(path), f"{text}: {error}")
        except TooLarge as error:
            note(str(path), f"was not read: {error}")
        except (csv.Error, ValueError) as error:
            note(str(path), f"cannot be read: {type(error).__name__}: {str(error)[:200]}")
        if collector.unusable > before:
            note(str(path), f"{collector.unusable - before} kernels without a usable duration or step were left out")
    if collector.impossible:
        note(str(reference.paths[0]), f"{collector.impossible} shares of pipes or cores are no shares; left out")
    kernels = collector.finish()
    if collector.stepless:
        text = f"{collector.stepless} kernels have a step that is no number, as others' are; left out"
        note(str(reference.paths[0]), text)
    if kernels is not None and collector.unusable > len(kernels):
        note(str(reference.paths[0]), "has lost most of its kernels; the rest would misrepresent them, none was used")
        return None
    if kernels is not None and not once and _are_times_others(kernels):
        note(str(reference.paths[0]), "has numbers where its kernels' cores should be: cells were moved, and the times "
             "behind them are others'; none was used")  # fmt: skip
        return None
    if kernels is not None and collector.moved:
        text = f"{collector.moved} kernels have something else in a column of shapes, types of data or cores"
        lost = f"; those that begin at another time ({collector.misplaced}) are left out" if collector.misplaced else ""
        note(str(reference.paths[0]), f"{text}: cells were moved{lost}")
    if kernels is not None and collector.of_another_type:
        text = f"{collector.of_another_type} kernels bear another type than most of their name, or none: damaged cells"
        note(str(reference.paths[0]), text)
    if kernels is not None and reference.reader == "kernels.csv" and (strange := _of_no_stream(kernels)):
        note(str(reference.paths[0]), f"{strange} kernels are of a stream that is no number: damaged cells")
    if kernels is not None and reference.reader == "kernels.csv" and (word := _unknown_core(kernels)):
        note(str(reference.paths[0]), f"calls its kernels' cores {word}, and none by a known name: damaged cells")
    if kernels is not None and kernels.repeated:
        used = "each was used once" if collector.once else "all of them count"
        text = f"{kernels.repeated} kernels appear a second time with the same start, length and name; {used}"
        note(str(reference.paths[0]), text)
    return kernels


_LETTERS = re.compile(r"[A-Za-z_]{3,}|[A-Za-z];[A-Za-z]")
"""A word, as the names of types and formats are, or a list of letters: no shape holds one, save N/A."""


_FORMAT = re.compile(r"[\s\";]*(FORMAT_|FRACTAL_|N[CDHWL0-9]+\b|[0-9])")
"""How a list of formats or of sizes begins; no type of data does."""


_NO_WORD = re.compile(r"[^A-Za-z]|(?:inf|infinity|nan|true|false)\Z|\w{65}|[^;\[\]{}\"]*[;\[\]{}\"]", re.IGNORECASE)
"""What no maker calls a core."""


def _is_moved(signatures: Sequence[Signature]) -> Mask:
    """Of which kinds of kernels the shapes hold words, the types of data are formats, or the core is no word: the cells
    of their rows stand in the wrong columns. Exporters that do not quote the commas of a shape write such rows
    themselves: what stands before them in the row, the times among it, is right."""
    odd = [
        bool(_LETTERS.search(s.input_shapes + s.output_shapes))
        or any(map(_FORMAT.match, (s.input_dtypes, s.output_dtypes)))
        or _NO_WORD.match(s.core) is not None
        for s in signatures
    ]
    return np.array(odd, bool)


_FIGURE = re.compile(r"[0-9]+(\.[0-9]*)?")


def _are_times_others(kernels: Kernels) -> bool:
    """Whether most kernels' cores are numbers: the times, which stand behind the core, have moved with it."""
    numbered = np.array([_FIGURE.fullmatch(each.core) is not None for each in kernels.signatures], bool)
    return 2 * int(np.count_nonzero(numbered[kernels.signature])) > len(kernels)


_NO_STREAM = ABSENT | {"nan"}


def _of_no_stream(kernels: Kernels) -> int:
    """How many kernels have something else than a number or nothing for their stream, which its makers only number."""
    odd = [_FIGURE.fullmatch(text) is None and text.lower() not in _NO_STREAM for text in kernels.streams]
    return int(np.count_nonzero(np.array(odd, bool)[kernels.stream]))


_CORE = re.compile(r"AI|MIX|VEC|CUBE|HCCL|COMM|DSA|SQE|FFTS|UNKNOWN", re.IGNORECASE)
"""What is in the name of a core, or of what stands for one."""


def _unknown_core(kernels: Kernels) -> str:
    """What the cores of all kernels are called, where no name is a known one; empty where one is, or none is told."""
    told = sorted({each.core for each in kernels.signatures if each.core.lower() not in ABSENT})
    return "" if any(map(_CORE.search, told)) else ", ".join(told[:2])


_NUMBER = re.compile("[0-9]+")
_STACK = re.compile(r"\r?\n|File \"|\.py[:(][0-9]")
_STEP = re.compile(r"[_/#-]step[_#]?[0-9]+$", re.IGNORECASE)
_NODE = re.compile(r"-op[0-9]+(?=/)")
_LAUNCH = re.compile(r"(?:\w+::)+")


def _without_stack(name: str) -> str:
    """What stands before a call stack: before its first line end, `File "`, or file with a line number."""
    found = _STACK.search(name)
    if found is None:
        return name
    before = name[: found.start()]
    if found.group().startswith(".py"):
        cut = max(map(before.rfind, " \t\r\n\v\f;|,"))
        before = before[: cut + 1]
    return before.rstrip(" \t\r\n\v\f;|,")


def operator_name(name: str) -> str:
    """The operator a kernel belongs to: no call stack (S48), no launch range, device kernel, group or step suffix.

    `Kernel::KernelLaunch::Default/net/MatMul-op1/MatMulV2` and the same with a stack behind it are
    `Default/net/MatMul-op1`.
    """
    short = _without_stack(name) if ".py" in name or "\n" in name or 'File "' in name else name
    short = short.partition("@")[0]
    if "::" in short and (launch := _LAUNCH.match(short)):
        short = short[launch.end() :]
    if "step" in short or "Step" in short:
        short = _STEP.sub("", short)
    if "-op" in short and (node := _NODE.search(short)):
        short = short[: node.end()]
    return short or name


@reader("kernels.csv")
def read_csv_kernels(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The canonical frame with one row a kernel, for small needs; `load_kernels` is the way at full size."""
    from advisor.sources.text.csvfiles import read_files

    return read_files(TABLES["kernels"], reference.paths, columns, note, reference.options.get("device"))


@reader("kernels.opprof")
def read_one_operator(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The same of one operator that was measured alone."""
    return _table(columns, _cells_of_frames(operator_frames(path, note) for path in reference.paths))


@reader("kernels.tasks")
def read_tasks(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The same of a table of tasks."""
    device = reference.options.get("device")
    return _table(columns, _cells_of_frames(task_frames(path, note, device) for path in reference.paths))


@reader("kernels.timelines")
def read_timeline_kernels(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The same from the timelines of single iterations."""
    return _table(columns, _cells_of_frames(timeline_frames(path, note) for path in reference.paths))


@reader("kernels.db")
def read_database_kernels(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The same from the databases."""
    device = reference.options.get("device")
    blocks = (block for path in reference.paths for block in database_blocks(path, note, device))
    return _table(columns, ({name: cells_of(cells) for name, cells in block.items()} for block in blocks))


def _cells_of_frames(files: Iterable[Iterable[pl.DataFrame]]) -> Iterator[dict[str, list[Any]]]:
    return (frame.to_dict(as_series=False) for frames in files for frame in frames)


def _table(columns: Sequence[str] | None, parts: Iterable[dict[str, list[Any]]]) -> pd.DataFrame | None:
    import pandas as pd

    names = [name for name in TABLES["kernels"].names if columns is None or name in columns]
    frames = [pd.DataFrame({n: part.get(n, [None] * len(part["duration_us"])) for n in names}) for part in parts]
    return pd.concat(frames, ignore_index=True) if frames else None
