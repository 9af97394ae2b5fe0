"""Files given one by one, or lying in a folder that no layout knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing, list_folder
from advisor.sources.layouts import ascend
from advisor.sources.layouts.devices import split_devices
from advisor.sources.metadata import Metadata, as_int, read_metadata
from advisor.sources.text import tablefiles


def judge(listing: Listing) -> Judgement:
    """Whether files of a profile lie in the folder itself."""
    known = [name for name in listing.files if is_known(name)]
    if known:
        return Judgement("files", True, f"it holds {known[0]}" + (f" and {len(known) - 1} more" if known[1:] else ""))
    return Judgement("files", False, "none of its files has the name of a profiler's file")


def is_known(name: str) -> bool:
    """Whether a file of this name is one of a profile's, also with a prefix that users added."""
    return bool(tablefiles.tables_of_file(name, loose=True) or re.fullmatch(tablefiles.DATABASE, name, re.IGNORECASE))


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """All files of a profile in this folder as one rank, or one for each device that they name."""
    files = [listing.path / name for name in listing.files if is_known(name)]
    ranks: list[Rank] = []
    parts = _recordings(files)
    numbers = _numbers(parts)
    for part, number in zip(parts, numbers, strict=True):
        rank = build_rank(listing.path, part, base)
        if number is not None and not rank.rank_known:
            rank.rank, rank.rank_known = number, True
        ranks += split_devices(rank)
    return ranks


def _recordings(files: Sequence[Path]) -> list[list[Path]]:
    """The files of each recording: where the same table is there with several marks before or after its name, each is a
    recording of its own, and what carries none of them is nobody's."""
    by_mark: dict[tuple[str, str], list[Path]] = {}
    for path in files:
        before, after = tablefiles.mark_of_file(path.name)
        by_mark.setdefault((before.lower(), after), []).append(path)
    tables = Counter(table for part in by_mark.values() for table in tablefiles.find_tables(part, loose=True))
    if all(count < 2 for count in tables.values()):
        return [list(files)] if files else []
    shared = {table for table, count in tables.items() if count > 1}
    order = sorted(by_mark, key=lambda mark: mark[1] != "")  # of downloads the first one has no number
    return [by_mark[m] for m in order if shared & set(tablefiles.find_tables(by_mark[m], loose=True))]


def _numbers(parts: Sequence[Sequence[Path]]) -> list[int | None]:
    """The number of each recording's rank, as the ends of the files' names tell them: from 0, each once; else None."""
    found = [{tablefiles.number_of_file(path.name) for path in part} for part in parts]
    numbers = [mine.pop() if len(mine) == 1 else None for mine in found]
    told = len(parts) > 1 and None not in numbers and 0 in numbers and len(set(numbers)) == len(numbers)
    return numbers if told else [None] * len(parts)


def build_rank(folder: Path, files: Sequence[Path], base: Path) -> Rank:
    """One rank from these files of one folder; metadata is looked for beside them and one level up."""
    rank = Rank(0, folder, base=base, rank_known=False)
    note = rank.note_path
    rank.tables = tablefiles.find_tables(files, loose=True)
    databases = [path for path in files if path.suffix.lower() == ".db"]
    metadata = _metadata_near(folder, rank)
    identity = ascend.add_databases(rank, databases, metadata, note)
    ascend.add_identity(rank, metadata, identity, databases)
    if not rank.rank_known:
        numbers = {m.group(1) for path in files if (m := re.search(r"rank[_-]?([0-9]+)", path.name, re.IGNORECASE))}
        number = as_int(numbers.pop()) if len(numbers) == 1 else None
        if number is not None:
            rank.rank, rank.rank_known = number, True
    for table, ref in ascend.find_host_tables(folder, rank.rank if rank.rank_known else None, note).items():
        if named := tuple(path for path in ref.paths if path in files):
            rank.tables.setdefault(table, replace(ref, paths=named))
    ascend.link_ranks(rank)
    return rank


def _metadata_near(folder: Path, rank: Rank) -> Metadata:
    note = rank.note_path
    places = [list_folder(folder)]
    if folder.name == ascend.OUTPUT:
        places.append(list_folder(folder.parent))
    infos = [path for place in places for path in place.find(ascend.INFO)]
    metadatas = [path for place in places for path in place.find(ascend.METADATA)]
    if len(infos) > 1:
        infos = []
    rank.info_files = ascend.first_of(infos, metadatas)
    return read_metadata(infos, metadatas, note)
