"""Operators as `msprof op` measured them, each by itself: OpBasicInfo.csv, PipeUtilization.csv and their kin.

A row of these files is one block on one core; an operator lasts as long as its slowest block. Files carry the time of
the launch in their names where several launches were measured.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.sources.folders import file_paths
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef, nothing
from advisor.sources.text.jsontext import decode
from advisor.sources.text.textfiles import read_text, why_unreadable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

BASIC, PIPES, MEMORY, CACHE = "OpBasicInfo", "PipeUtilization", "Memory", "L2Cache"
_BY_BLOCK = (PIPES, MEMORY, CACHE, "ArithmeticUtilization", "MemoryL0", "MemoryUB", "ResourceConflictRatio")
"""Files with a row a block, the most telling first."""
SUMMARY, HARDWARE = "summary.jsonl", "HardwareInfo.jsonl"
"""What npu-compute writes instead of OpBasicInfo.csv: a record a line, one of the operator and five of the machine."""
_OPERATOR = "OpInfoSummary"
_AMBIGUOUS = (MEMORY, CACHE)
"""Names that mean something in these folders alone."""
_FILE = re.compile(rf"({'|'.join((BASIC, *_BY_BLOCK))})(?:_[0-9]{{8,20}})?\.csv", re.IGNORECASE)
_CORES = {"cube": "AI_CORE", "aicore": "AI_CORE", "vector": "AI_VECTOR_CORE", "mix": "MIX_AIC"}
_RATIOS = {
    "mac_ratio": ("aic_cube_ratio", "aic_mac_ratio"), "scalar_ratio": ("aic_scalar_ratio",),
    "mte1_ratio": ("aic_mte1_ratio",), "mte2_ratio": ("aic_mte2_ratio",), "fixpipe_ratio": ("aic_fixpipe_ratio",),
    "vec_ratio": ("aiv_vec_ratio",), "aiv_scalar_ratio": ("aiv_scalar_ratio",),
    "aiv_mte2_ratio": ("aiv_mte2_ratio",), "aiv_mte3_ratio": ("aiv_mte3_ratio",),
}  # fmt: skip
"""Shares of a unit by canonical name, and how versions of the file call them."""
_HITS = ("r0_read_cache_hit", "r1_read_cache_hit", "read_close_hit", "read_far_hit")
_MISSES = (
    "r0_read_cache_miss_allocate", "r1_read_cache_miss_allocate",
    "read_close_miss", "read_far_miss", "read_close_victim", "read_far_victim",
)  # fmt: skip
"""Counters of reads through the second-level cache on either kind of core, and how versions of the file call them."""
_TIMES = ("aic_time(us)", "aiv_time(us)")
_COMPUTING = ("aic_cube_time(us)", "aic_mac_time(us)", "aiv_vec_time(us)")
_MOVING = ("aic_mte2", "aic_mte3", "aic_fixpipe", "aiv_mte2", "aiv_mte3")
_AS_SLOW = 0.95
"""A block that takes this part of the slowest one's time is one of those that the operator waits for."""
_LEAST_ISSUED, _MOST_WAITED = 0.25, 0.5
"""Parts of a scalar unit's time: where it hardly issues instructions it waits, and so it does where that is booked."""
_WELL_TOLD, _ROUNDED = 0.01, 0.001
"""Times and shares have six decimals: of such a size both are told to a thousandth."""
_SEVERAL = 3
"""Units that agree on what their shares are of; two might by chance."""
_GENERIC = re.compile(
    r"[0-9]+|OPPROF_.*|raw|default|reports?|op|profile?|output|artifacts|"
    r"perf|perfs|performance|docs|results?|"
    r"Memory(Detail|L0|UB)?|PipeUtilization|ArithmeticUtilization|ResourceConflictRatio|L2Cache|Roofline|Occupancy|"
    r"TimelineDetail|KernelScale|Source|(Op)?BasicInfo",
    re.IGNORECASE,
)
"""Folders that say how something was measured, not what: the profiler's own options among them."""
_NUMBERED = re.compile(
    r"(round|iter|iteration|run|trial|attempt|case|shape|sample|test|v|step)[-_. ]*[0-9]+", re.IGNORECASE
)
"""Folders that count what was tried, not what was measured."""
_BETWEEN_WORDS = re.compile(r"[-_. ]+")

_ADDED = re.compile(r"(_[0-9a-f]{32})?(_[0-9]+)?(_mix_ai[cv])?$")

Row = dict[str, str]


def kind_of(name: str) -> str | None:
    """OpBasicInfo, PipeUtilization, …, by the name of a file; None where it is none of them."""
    found = _FILE.fullmatch(name)
    return None if found is None else next(k for k in (BASIC, *_BY_BLOCK) if k.lower() == found.group(1).lower())


def main_files(paths: Sequence[Path]) -> list[Path]:
    """Of the files of one folder, those that stand for a launch each: OpBasicInfo, else the most telling other one."""
    for kind in (BASIC, *_BY_BLOCK):
        found = [path for path in paths if kind_of(path.name) == kind]
        if found:
            lone = kind in _AMBIGUOUS and not any(_heading(path).startswith("block_id") for path in found)
            return [] if lone else found
    return []


class Launch(Struct, frozen=True):
    """One launch of one operator: its time, and the rows of each of its files, slowest block first."""

    name: str
    core: str
    duration_us: float
    blocks: int | None
    rows: dict[str, list[Row]]
    clock_mhz: float = math.nan
    rated_mhz: float = math.nan
    timed: bool = True
    """Whether its own time is told; else its slowest block stands for it."""
    vectors: int | None = None
    """Vector cores that a launch on both kinds of cores has; its blocks are its cube cores."""

    @property
    def type(self) -> str:
        """The name without what the compiler adds: a hash, the number of the tiling, the core."""
        return type_of(self.name)


def type_of(name: str) -> str:
    """An operator's name without what the compiler adds."""
    return _ADDED.sub("", name) or name


def read_launches(path: Path, note: Note) -> Iterator[Launch]:
    """The launch that a main file stands for, with what lies beside it."""
    rows = {kind: _slowest_first(_rows(file, note)) for kind, file in _beside(path).items()}
    told = _most_telling(rows)
    blocks = len({row.get("block_id") for row in told}) or None
    basic = kind_of(path.name) == BASIC
    summary = [] if basic else [row for row in _records(path.parent, SUMMARY, note) if _is_timed(row)]
    if not basic and not summary:
        slowest = max((_time(row) for row in told), default=0.0)
        if slowest <= 0:
            note(str(path), "tells no time of any block: how long the operator took is unknown")
            return
        whole, name = _whole_time(rows.get(PIPES, []), slowest), _name_of(path)
        tells = "slowest block tells" if whole is None else "units' shares tell"
        called = "is called by its folder's name" if name else "has no name"
        note(str(path), f"{BASIC}.csv is missing: the operator {called}, and its {tells} its time")
        cores = {str(row.get("sub_block_id", ""))[:4].lower() for row in told}
        core = "MIX_AIC" if {"cube", "vect"} <= cores else "AI_CORE" if "cube" in cores else "AI_VECTOR_CORE"
        name, timed = name or f"unnamed_{core}_{blocks}_blocks", whole is not None
        yield Launch(name, core, whole or slowest, blocks, rows, timed=timed)
        return
    for row in summary or _rows(path, note):
        duration = _number(row.get("Task Duration(us)"))
        if duration is None:
            note(str(path), "tells no Task Duration(us): how long the operator took is unknown")
            continue
        dealt = _number(row.get("Block Dim") or row.get("Block Num"))
        name, kind = row.get("Op Name", "").strip() or _name_of(path), row.get("Op Type", "").strip().lower()
        clock, rated = (_number(row.get(f"{which} Freq")) or math.nan for which in ("Current", "Rated"))
        dealt_blocks = blocks if dealt is None else int(dealt)
        beside = _number(row.get("Mix Block Dim") or row.get("Mix Block Num"))
        vectors = None if beside is None else int(beside)
        yield Launch(name, _CORES.get(kind, ""), duration, dealt_blocks, rows, clock, rated, vectors=vectors)


def _most_telling(rows: Mapping[str, list[Row]]) -> list[Row]:
    """The rows of that file which tells most of the blocks; empty where none has any."""
    return next((rows[kind] for kind in _BY_BLOCK if rows.get(kind)), [])


def operator_frames(path: Path, note: Note) -> Iterator[pl.DataFrame]:
    """The operator as one kernel without a start, with the shares of its units in its slowest blocks."""
    import polars as pl

    for launch in read_launches(path, note):
        told: dict[str, list[object]] = {
            "name": [launch.name], "type": [launch.type], "core": [launch.core],
            "duration_us": [launch.duration_us], "block_num": [launch.blocks], "mix_block_num": [launch.vectors],
        }  # fmt: skip
        pipes = launch.rows.get(PIPES, [])
        told |= {pipe: [_share(pipes, names)] for pipe, names in _RATIOS.items()}
        told |= _scalar_work(pipes)
        texts = {"name": pl.String, "type": pl.String, "core": pl.String}
        yield pl.DataFrame(told, schema={key: texts.get(key, pl.Float64) for key in told})


@reader("opprof.access")
def read_access(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """What every launch moved to and from memory, and how its blocks compare; one row a launch."""
    import pandas as pd

    rows = []
    for path in reference.paths:
        for launch in read_launches(path, nothing):
            memory, cache = launch.rows.get(MEMORY, []), launch.rows.get(CACHE, [])
            times = [time for each in launch.rows.values() for row in each if (time := _time(row)) > 0]
            per_core = _times_by_core(_most_telling(launch.rows))
            rows.append(
                {
                    "name": launch.name, "type": launch.type, "core": launch.core,
                    "duration_us": launch.duration_us, "blocks": launch.blocks, "timed": launch.timed,
                    "slowest_us": max(times, default=math.nan),
                    "clock_mhz": launch.clock_mhz, "rated_mhz": launch.rated_mhz,
                    "mean_us": sum(per_core) / len(per_core) if per_core else math.nan,
                    "block_us": tuple(_times_by_block(_most_telling(launch.rows))),
                    "computing_us": tuple(_computing_times(_most_telling(launch.rows))),
                    "moved_kb": tuple(_moved(_most_telling(launch.rows))),
                    "vector_us": tuple(_vector_times(_most_telling(launch.rows))),
                    "fetch_share": _fetch_waits(launch.rows.get(PIPES, [])),
                    "read_kb": _sum(memory, ("read_main_memory_datas(KB)",)),
                    "write_kb": _sum(memory, ("write_main_memory_datas(KB)",)),
                    "hits": _sum(cache, tuple(f"{core}_{hit}" for core in ("aic", "aiv") for hit in _HITS)),
                    "misses": _sum(cache, tuple(f"{core}_{miss}" for core in ("aic", "aiv") for miss in _MISSES)),
                }
            )  # fmt: skip
    frame = pd.DataFrame(rows)
    return None if frame.empty else frame if columns is None else frame[[c for c in columns if c in frame]]


def types_in(path: Path) -> set[str]:
    """The operators that a main file stands for, by name, without reading what lies beside it where the name stands in
    it; empty where nothing tells them."""
    if kind_of(path.name) != BASIC:
        return {launch.type for launch in read_launches(path, nothing)}
    rows = _rows(path, nothing)
    timed = [row for row in rows if _number(row.get("Task Duration(us)")) is not None]
    return {type_of(row.get("Op Name", "").strip()) for row in timed}


def hardware_beside(path: Path, note: Note) -> Row:
    """What a file beside a launch tells of the machine, all its records in one; empty where there is none."""
    found: Row = {}
    for record in _records(path.parent, HARDWARE, note):
        found |= record
    return found


def _is_timed(row: Row) -> bool:
    return row.get("category") == _OPERATOR and _number(row.get("Task Duration(us)")) is not None


def _records(folder: Path, name: str, note: Note) -> list[Row]:
    """The records of a file with one in each line, values as text; versions write its name with either first letter."""
    found: list[Row] = []
    for path in (path for path in file_paths(folder) if path.name.lower() == name.lower()):
        try:
            records = [decode(line) for line in read_text(path).splitlines() if line.strip()]
        except OSError as error:
            note(str(path), why_unreadable(error))
            continue
        except (ValueError, RecursionError):
            note(str(path), "holds lines that are no JSON, and was left out")
            continue
        found += [
            {str(key): "" if value is None else str(value) for key, value in record.items()}
            for record in records
            if isinstance(record, dict)
        ]
    return found


def _beside(path: Path) -> dict[str, Path]:
    """The files with rows of blocks that belong to the same launch: of one stamp, where the main file has one."""
    stamp = path.stem.partition("_")[2]
    found: dict[str, Path] = {}
    for other in file_paths(path.parent):
        kind = kind_of(other.name)
        if kind in _BY_BLOCK and (not stamp or other.stem.partition("_")[2] == stamp):
            found.setdefault(kind, other)
    return found


def _name_of(path: Path) -> str:
    """What the folders call the operator: the nearest name that is no number, counts nothing and holds more than
    general words, without these. Collections of the same operator, one for each group of counters, lie in folders that
    they alone tell apart; empty where no folder tells more."""
    for folder in path.parents:
        if _NUMBERED.fullmatch(folder.name):
            continue
        words = _BETWEEN_WORDS.split(folder.name)
        telling = [word for word in words if not _GENERIC.fullmatch(word)]
        if not _GENERIC.fullmatch(folder.name) and telling:
            return folder.name if len(telling) == len(words) else "_".join(telling)
    return ""


def _time(row: Row) -> float:
    return max((_number(row.get(name)) or 0.0 for name in _TIMES), default=0.0)


def _slowest_first(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=_time, reverse=True)


def _times_by_core(rows: Sequence[Row]) -> list[float]:
    """The times of the blocks on the kind of core that takes longest: vector cores that wait are no blocks at work."""
    cubes = [time for row in rows if (time := _number(row.get(_TIMES[0])) or 0.0) > 0]
    vectors = [time for row in rows if (time := _number(row.get(_TIMES[1])) or 0.0) > 0]
    return max(cubes, vectors, key=lambda times: max(times, default=0.0))


def _times_by_block(rows: Sequence[Row]) -> list[float]:
    """How long each block runs on the slowest of its cores."""
    found: dict[str | None, float] = {}
    for row in rows:
        block = row.get("block_id")
        found[block] = max(found.get(block, 0.0), _time(row))
    return list(found.values())


def _computing_times(rows: Sequence[Row]) -> list[float]:
    """How long the cube and vector units of each block compute, in the order of its times; empty if untold."""
    return _summed_by_block(rows, lambda row: sum(_number(row.get(name)) or 0.0 for name in _COMPUTING))


def _moved(rows: Sequence[Row]) -> list[float]:
    """What each block's memory units move, in kB, in the order of its times: for how long, times how fast. Empty if
    untold."""

    def moved(row: Row) -> float:
        return sum(
            (_number(row.get(f"{unit}_time(us)")) or 0.0) * (_number(row.get(f"{unit}_active_bw(GB/s)")) or 0.0)
            for unit in _MOVING
        )

    return _summed_by_block(rows, moved)


def _summed_by_block(rows: Sequence[Row], told: Callable[[Row], float]) -> list[float]:
    """The sum of what the rows of each block tell, in the order of its times; empty where none tells anything."""
    found: dict[str | None, float] = {}
    for row in rows:
        found[row.get("block_id")] = found.get(row.get("block_id"), 0.0) + told(row)
    return list(found.values()) if any(found.values()) else []


def _vector_times(rows: Sequence[Row]) -> list[tuple[float, ...]]:
    """How long each vector core of a block runs, for every block to which vector cores belong."""
    found: dict[str | None, list[float]] = {}
    for row in rows:
        if (time := _number(row.get(_TIMES[1]))) is not None:
            found.setdefault(row.get("block_id"), []).append(time)
    return [tuple(times) for times in found.values()]


def _share(rows: Sequence[Row], names: Sequence[str]) -> float | None:
    """The mean share of a unit in the blocks that the operator waits for."""
    return _mean([(_time(row), value) for row in rows for name in names if (value := _busy(row, name)) is not None])


def _busy(row: Row, ratio: str) -> float | None:
    """The part of its block in which a unit was busy, between 0 and 1. Versions of the profiler divide by the block's
    time, or by the whole operator's, in which a core runs several blocks in turn: times say what is meant."""
    time = _number(row.get(ratio.replace("_ratio", "_time(us)")))
    block = _number(row.get(f"{ratio[:3]}_time(us)"))
    return _number(row.get(ratio)) if time is None or not block else min(max(time / block, 0.0), 1.0)


def _whole_time(rows: Sequence[Row], slowest: float) -> float | None:
    """How long the operator took, where the file divides by that: the time of each unit by its share is one and the
    same in all blocks, and longer than the slowest of them. None where it does not tell."""
    found = [
        time / share
        for row in rows for names in _RATIOS.values() for name in names
        if (share := _number(row.get(name))) and (time := _number(row.get(name.replace("_ratio", "_time(us)"))))
        and min(share, time) >= _WELL_TOLD
    ]  # fmt: skip
    whole = sum(found) / len(found) if len(found) >= _SEVERAL else 0.0
    agree = all(abs(each - whole) <= _ROUNDED * whole for each in found)
    return whole if agree and whole * (1 - _ROUNDED) > slowest else None


def _of_slowest(rows: Sequence[Row], names: Sequence[str]) -> float | None:
    """The mean of a counter over the blocks that the operator waits for; rows of the other cores do not tell it."""
    return _mean(
        [(_time(row), value) for row in rows for name in names if (value := _number(row.get(name))) is not None]
    )


def _mean(told: Sequence[tuple[float, float]]) -> float | None:
    """Of (time of a block, value), the mean over the slowest blocks."""
    slowest = max((time for time, _ in told), default=0.0)
    found = [value for time, value in told if time >= _AS_SLOW * slowest]
    return sum(found) / len(found) if found else None


def _scalar_work(rows: Sequence[Row]) -> dict[str, list[object]]:
    """The scalar units' shares without waiting. A cube core that shares its kernel with vector cores waits for them in
    its scalar unit; elsewhere time in which hardly any instruction was issued, or which was booked as waiting, is none
    of work."""
    mixed = any(_number(row.get(_TIMES[0])) for row in rows) and any(_number(row.get(_TIMES[1])) for row in rows)
    found: dict[str, list[object]] = {"scalar_ratio": [None]} if mixed else {}
    for pipe, core in (("scalar_ratio", "aic"), ("aiv_scalar_ratio", "aiv")):
        busy = _of_slowest(rows, (f"{core}_scalar_time(us)",))
        parts = [_of_slowest(rows, (f"{core}_scalar_{part}_time(us)",)) for part in ("single", "dual", "wait")]
        share = _share(rows, (f"{core}_scalar_ratio",))
        if pipe in found or not busy or share is None or parts[0] is None or parts[1] is None:
            continue
        issued, waited = parts[0] + parts[1], parts[2] or 0.0
        if issued < _LEAST_ISSUED * busy or waited > _MOST_WAITED * busy:
            found[pipe] = [share * min(issued / busy, 1.0)]
    return found


def _fetch_waits(rows: Sequence[Row]) -> float:
    """The part of the slowest blocks' time in which their scalar unit waits for instructions: those that run for the
    first time come from memory."""
    told = [
        (time, min(waits / time, 1.0))
        for row in rows
        for core in ("aic", "aiv")
        if (time := _number(row.get(f"{core}_time(us)"))) and time > 0
        and (waits := _number(row.get(f"{core}_scalar_wait_ib_time(us)"))) is not None and waits >= 0
    ]  # fmt: skip
    share = _mean(told)
    return math.nan if share is None else share


def _sum(rows: Sequence[Row], names: Sequence[str]) -> float:
    found = [value for row in rows for name in names if (value := _number(row.get(name))) is not None]
    return sum(found) if found else math.nan


def _heading(path: Path) -> str:
    try:
        return read_text(path, 1 << 12).lstrip("\ufeff \t")
    except (OSError, ValueError):
        return ""


def _rows(path: Path, note: Note) -> list[Row]:
    try:
        rows = list(csv.DictReader(read_text(path).splitlines()))
    except csv.Error as error:
        note(str(path), f"cannot be read: {error}")
        return []
    return [{str(k).strip(): str(v or "").strip() for k, v in row.items() if k is not None} for row in rows]


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
