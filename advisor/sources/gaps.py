"""What one rank lacks and the others have: a file that was lost, a table that was emptied, a column that is gone.

A rank alone cannot tell: a recording without communication has no communication either. Beside its neighbours it can.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.headings import beginning_of
from advisor.sources.text.textfiles import read_text
from advisor.tables import TABLES

USUAL = 0.5
"""What this share of the ranks has at least, the others should have too."""
_SHOWN = 6
_HEADINGS_READ = 128
"""Ranks whose headings are compared."""
_SHORT = 16
"""Bytes up to which a file is looked into; no file with an entry is shorter."""


def tell_gaps(ranks: Sequence[Rank]) -> None:
    """Notes, at each rank, which files, database tables and columns it lacks although most of its kind have them."""
    by_layout: dict[str, list[Rank]] = {}
    for rank in ranks:
        by_layout.setdefault(rank.layout, []).append(rank)
    for alike in by_layout.values():
        if len(alike) > 1:
            _tell_devices(alike)
            _tell_files(alike)
            _tell_hollow(alike)
            _tell_headings(alike)
            _tell_schemas([rank for rank in alike if rank.info.get("schema")])


def lacked_by_some(each: Iterable[Iterable[str]], count: int) -> list[str]:
    """The names that some of so many lack, although half of them have these; in order."""
    found = Counter(name for names in each for name in set(names))
    return sorted(name for name, times in found.items() if times < count and times >= USUAL * count)


def _tell_devices(ranks: Sequence[Rank]) -> None:
    known = sum(rank.device is not None for rank in ranks)
    if USUAL * len(ranks) <= known < len(ranks):
        for rank in ranks:
            if rank.device is None:
                name = f"profiler_info_{rank.rank}.json"
                rank.note(rank.relative(rank.root / name), "names no device, while the files of other ranks do")


def _tell_files(ranks: Sequence[Rank]) -> None:
    for table in lacked_by_some((rank.tables for rank in ranks), len(ranks)):
        example = next(rank for rank in ranks if table in rank.tables)
        path = example.tables[table].paths[0]
        if path.suffix == ".db":
            continue  # told by its tables
        for rank in ranks:
            if table not in rank.tables:
                name = _own_name(path, example, rank)
                if not _is_told(rank, name):
                    rank.note(name, f"is missing or unusable at rank {rank.rank}, while other ranks have it ({table})")


def _tell_hollow(ranks: Sequence[Rank]) -> None:
    """JSON files without an entry, as are written where nothing happened, beside those of ranks where much did."""
    for table in sorted({table for rank in ranks for table in rank.tables}):
        having = [rank for rank in ranks[:_HEADINGS_READ] if table in rank.tables]
        hollow = [rank for rank in having if _is_hollow(rank.tables[table].paths[0])]
        if hollow and len(hollow) <= (1 - USUAL) * len(having):
            for rank in hollow:
                file = rank.relative(rank.tables[table].paths[0])
                rank.note(file, f"holds nothing at rank {rank.rank}, while the files of other ranks do ({table})")


def _is_hollow(path: Path) -> bool:
    try:
        short = path.suffix == ".json" and path.is_file() and path.stat().st_size <= _SHORT
        return short and read_text(path, _SHORT).strip() in ("{}", "[]")
    except OSError:
        return False


def _tell_headings(ranks: Sequence[Rank]) -> None:
    """Columns that the text tables of other ranks have. Headings are read of as many ranks as takes no time."""
    for table in sorted({table for rank in ranks for table in rank.tables}):
        known = {heading for column in TABLES[table].columns for heading in column.headings}
        headings = {}
        for rank in ranks[:_HEADINGS_READ]:
            path = rank.tables[table].paths[0] if table in rank.tables else None
            if path is not None and path.suffix == ".csv" and (found := beginning_of(path)):
                cells = (cell.strip('\ufeff \t"') for cell in found)
                headings[rank.rank] = [name for name in cells if name in known]
        columns = lacked_by_some(headings.values(), len(headings))
        for rank in ranks:
            gone = [name for name in columns if rank.rank in headings and name not in headings[rank.rank]]
            if gone:
                file = rank.relative(rank.tables[table].paths[0])
                rank.note(file, f"lacks {_some(gone)}, which the files of other ranks have")


def _own_name(path: Path, example: Rank, rank: Rank) -> str:
    """What the file would be called at this rank."""
    try:
        inner = path.relative_to(example.root)
    except ValueError:
        return path.name
    own = re.sub(rf"_{example.rank}(?=[._])", f"_{rank.rank}", inner.name)
    return rank.relative(rank.root / inner.with_name(own))


def _is_told(rank: Rank, name: str) -> bool:
    return any(problem.file == name for problem in rank.problems)


def _tell_schemas(ranks: Sequence[Rank]) -> None:
    schemas = {rank.rank: rank.info["schema"] for rank in ranks}
    usual = lacked_by_some(schemas.values(), len(ranks))
    for rank in ranks:
        schema = schemas[rank.rank]
        lost: dict[str, list[str]] = {}
        for table in usual:
            if table not in schema:
                other = next(rank for rank in ranks if table in schemas[rank.rank])
                lost.setdefault(_own_name(Path(schemas[other.rank][table][0]), other, rank), []).append(table)
        for file, tables in lost.items():
            rank.note(file, f"has no rows of {_some(tables)}, which the databases of other ranks hold")
    for table in sorted({table for schema in schemas.values() for table in schema}):
        having = [rank for rank in ranks if table in schemas[rank.rank]]
        columns = lacked_by_some((schemas[rank.rank][table][1] for rank in having), len(having))
        for rank in having:
            path, own = schemas[rank.rank][table]
            gone = [column for column in columns if column not in own]
            if gone:
                rank.note(rank.relative(Path(path)), f"its table {table} lacks {_some(gone)}, which other ranks have")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
