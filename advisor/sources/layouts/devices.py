"""Several devices in one export: msprof writes the kernels of all devices of a process into one op_summary, told apart
by a column. Each device is a rank of its own: their kernels run side by side, not one after the other."""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.database import kernel_database
from advisor.sources.reference import TableRef
from advisor.sources.streams.hardware_lanes import devices_in

PER_DEVICE = ("kernels", "operator_types", "iterations", "steps")
"""Tables whose rows name their device."""
OF_HOST = ("host_api",)
"""Tables of what the process did on its host, for whichever device."""
_READERS = ("kernels.csv", "kernels.tasks", "kernels.db", "csv.table", "csv.steps")
"""Those that tell devices apart."""
HEADING = "device_id"
LONGEST_NUMBER = 5
"""Digits of a device's number at most: no machine has a hundred thousand, and what is longer is damage."""
MOST_SHOWN = 4
"""Files named in a note."""
_STARTS = "task start time(us)|start time(us)|task start time"
BLOCKS, BLOCK = 64, 1 << 14
"""Places of a file that are looked at, and bytes of each: a device that has one kernel in fifty is met."""


def split_devices(rank: Rank) -> list[Rank]:
    """One rank for each device that the rank's kernels (else its operator types) name; the rank itself where that is
    one, or where the rank is known: it has one device. What does not tell devices apart is left out, as a timeline of
    all of them is nobody's."""
    if not rank.rank_known and not any(name in rank.tables for name in PER_DEVICE):
        return _split_timeline(rank)
    told = [name for name in PER_DEVICE if name in rank.tables and rank.tables[name].reader in _READERS]
    if "steps" in told and len(devices_of(rank.tables["steps"].paths)) < 2:
        told.remove("steps")  # its writers name no device, or the one that the table is of
    table = next((name for name in PER_DEVICE if name in rank.tables), None)
    if rank.rank_known or table not in told:
        return [rank]
    devices = sorted(_devices(rank.tables[table]), key=lambda name: (len(name), name))
    if len(devices) < 2:
        return [rank]
    file = rank.relative(rank.tables[table].paths[0])
    kept = [*told, *(name for name in OF_HOST if name in rank.tables)]
    left = sorted({path.name for name in rank.tables.keys() - set(kept) for path in rank.tables[name].paths})
    if left:
        shown = ", ".join(left[:MOST_SHOWN]) + (f" and {len(left) - MOST_SHOWN} more" if left[MOST_SHOWN:] else "")
        text = f"holds {len(devices)} devices, each judged as a rank; not told apart by device and left out: {shown}"
        rank.note(file, text)
    return [_of_device(rank, device, kept, len(devices)) for device in devices]


def _of_device(rank: Rank, device: str, told: Sequence[str], devices: int) -> Rank:
    """One of so many devices of a rank as a rank of its own, with these of its tables."""
    tables = {name: rank.tables[name] for name in told}
    return replace(
        rank,
        device=device,
        devices=devices,
        tables={
            name: table if name in OF_HOST else replace(table, options={**table.options, "device": device})
            for name, table in tables.items()
        },
        info=dict(rank.info),
        problems=list(rank.problems),
        _told=set(),
        _cache={},
    )


def _split_timeline(rank: Rank) -> list[Rank]:
    """The same where a timeline alone tells of the devices: the numbers of its processes tell them apart."""
    reference = rank.tables.get("trace")
    if reference is None or reference.reader != "trace.json":
        return [rank]
    try:
        devices = sorted(set[int]().union(*(devices_in(path) for path in reference.paths)))
    except (OSError, ValueError):  # whoever reads the timeline tells what is wrong with it
        return [rank]
    if len(devices) < 2:
        return [rank]
    left = sorted({path.name for name, table in rank.tables.items() if name != "trace" for path in table.paths})
    beside = f"; not told apart by device and left out: {', '.join(left[:MOST_SHOWN])}" if left else ""
    text = f"holds {len(devices)} devices side by side, each judged as a rank{beside}"
    rank.note(rank.relative(reference.paths[0]), text)
    return [_of_device(rank, str(device), ["trace"], len(devices)) for device in devices]


def _devices(reference: TableRef) -> set[str]:
    if reference.reader != "kernels.db":
        return devices_of(reference.paths)
    try:
        return set().union(*(kernel_database.devices_of(path) for path in reference.paths))
    except (OSError, sqlite3.Error):  # whoever reads the table tells what is wrong with it
        return set()


def devices_of(paths: Iterable[Path]) -> set[str]:
    """The numbers in the column of devices, as far as samples of the files show; empty where there is none."""
    found: set[str] = set()
    for path in paths:
        try:
            found |= _sampled(path)
        except (OSError, csv.Error):  # whoever reads the table tells what is wrong with it
            continue
    return found


def _sampled(path: Path) -> set[str]:
    cells = {cell for (cell,) in sample_cells(path, (HEADING,)) if cell.isdecimal() and cell.isascii()}
    return {cell for cell in cells if len(cell) <= LONGEST_NUMBER}


def span_of(paths: Iterable[Path], blocks: int = BLOCKS) -> tuple[float, float] | None:
    """From the first to the last start of a kernel, as far as samples of the tables show (see `sample_cells`),
    microseconds; None where they tell none."""
    starts: list[float] = []
    for path in paths:
        try:
            cells = list(sample_cells(path, (_STARTS,), blocks))
        except (OSError, csv.Error):
            return None
        starts += [time for (cell,) in cells if (time := _number(cell)) is not None]
    return (min(starts), max(starts)) if starts else None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def run_in_turn(spans: Sequence[tuple[float, float] | None]) -> bool:
    """Whether all of these tell when their kernels ran, and no two ran at once."""
    known = sorted(span for span in spans if span is not None)
    return bool(known) and len(known) == len(spans) and all(one[1] <= two[0] for one, two in pairwise(known))


def sample_cells(path: Path, headings: Sequence[str], blocks: int = BLOCKS) -> Iterator[tuple[str, ...]]:
    """The cells under these headings (in small letters, alternatives separated by "|") in rows from the beginning, the
    end and so many blocks between them; nothing where one is absent."""
    if not path.is_file():
        return
    size = path.stat().st_size
    with path.open("rb") as stream:
        first = stream.read(BLOCK)
        names = [cell.strip("\ufeff \t").lower() for cell in _cells(first.partition(b"\n")[0])]
        at = [next((i for name in each.split("|") for i in _places(names, name)), -1) for each in headings]
        if -1 in at:
            return
        read = [first]
        for place in range(BLOCK, size, max(size // blocks, BLOCK)) if blocks else ():
            stream.seek(place)
            read.append(stream.read(BLOCK))
        stream.seek(max(size - BLOCK, 0))
        read.append(stream.read(BLOCK) if size > BLOCK else b"")
    for block in read:
        lines = block.splitlines()
        for line in lines[1:] if block.endswith(b"\n") else lines[1:-1]:
            cells = _cells(line)
            if len(cells) == len(names):
                yield tuple(cells[place].strip() for place in at)


def _places(names: Sequence[str], name: str) -> list[int]:
    return [names.index(name)] if name in names else []


def _cells(line: bytes) -> list[str]:
    return next(csv.reader([line.decode("utf-8", "replace").replace("\x00", "").replace("\r", "")]), [])
