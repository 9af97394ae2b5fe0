"""Files given one by one, or lying in a folder that no layout knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing, list_folder, natural
from advisor.sources.layouts import ascend
from advisor.sources.layouts.devices import run_in_turn, sample_cells, span_of, split_devices
from advisor.sources.layouts.legacy import is_known as legacy_name
from advisor.sources.metadata import Metadata, as_int, read_metadata
from advisor.sources.text import tablefiles
from advisor.sources.text.contents import ENDINGS, name_by_content, name_despite_its_own

_STEP = "step id"


def judge(listing: Listing) -> Judgement:
    """Whether files of a profile lie in the folder itself."""
    known = [path.name for path in _known(listing.path, listing.files)]
    if known:
        return Judgement("files", True, f"it holds {known[0]}" + (f" and {len(known) - 1} more" if known[1:] else ""))
    return Judgement("files", False, "none of its files has the name or the headings of a profiler's file")


def is_known(name: str) -> bool:
    """Whether a file of this name is one of a profile's, also with a prefix that users added."""
    return bool(tablefiles.tables_of_file(name, loose=True) or re.fullmatch(tablefiles.DATABASE, name, re.IGNORECASE))


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """All files of a profile in this folder as one rank, or one for each that their names or their devices tell."""
    return ranks_of(listing.path, list(_known(listing.path, listing.files)), base)


MOST_OPENED = 64
"""Files of a folder, called as no profiler calls any, that are opened to see what they hold."""


def _known(folder: Path, names: Sequence[str]) -> dict[Path, str]:
    """The files of a profile, by name or else by content, with the names that they go by."""
    found = {folder / name: _by_headings(folder / name) or name for name in names if is_known(name)}
    others = (name for name in names if name.lower().endswith(ENDINGS) and folder / name not in found)
    for name in islice((name for name in others if not legacy_name(name)), MOST_OPENED):
        if (told := name_by_content(folder / name)) is not None:
            found[folder / name] = told
    return found


def _by_headings(path: Path) -> str | None:
    """The name that a table goes by which somebody saved under the name of another; None where its own will do."""
    tables, _ = tablefiles.tables_of_file(path.name, loose=True) or ((), "")
    csv = path.name.lower().endswith(".csv") and len(tables) == 1
    return name_despite_its_own(path, tables[0]) if csv else None


def ranks_of(folder: Path, files: Sequence[Path], base: Path) -> list[Rank]:
    """The ranks whose files lie side by side in one folder."""
    names = {folder / path.name: path.name for path in files} | _known(folder, [path.name for path in files])
    parts, left = _recordings(files, names)
    ranks: list[Rank] = []
    for number, part in parts:
        split = split_devices(build_rank(folder, part, base, names))
        if number is not None and len(split) == 1 and not split[0].rank_known:
            split[0].rank, split[0].rank_known = number, True
            ascend.link_ranks(split[0])
        ranks += split
    for path in left:
        ranks[0].note_path(str(path), f"belongs to none of the {len(parts)} recordings in its folder; left out")
    return ranks


Part = tuple[int | None, list[Path]]
"""The rank that a recording is, if that is told, and its files."""


def _recordings(files: Sequence[Path], names: Mapping[Path, str]) -> tuple[list[Part], list[Path]]:
    """The recordings, and what belongs to none of them. Where the same table is there several times, what varies in the
    names tells the recordings apart, and files of all kinds that have it in common belong together."""
    marks = {
        path: tablefiles.mark_of_file(path.name, None if names[path] == path.name else names[path]) for path in files
    }
    by_text: dict[str, list[Path]] = {}
    for path, mark in marks.items():
        by_text.setdefault(mark.text, []).append(path)
    kinds = {text: {kind for path in part for kind in marks[path].kinds} for text, part in by_text.items()}
    count = Counter(kind for of_part in kinds.values() for kind in of_part)
    mine = sorted((text for text in kinds if any(count[kind] > 1 for kind in kinds[text])), key=natural)
    parts = [by_text[text] for text in mine]
    kernels = [[path for path in part if "kernels" in marks[path].kinds] for part in parts]
    own = [marks[path] for part in parts for path in part]
    told = all(mark.number is not None and not mark.bracketed for mark in own)
    worded = any(mark.worded for mark in own)
    in_turn = not worded and run_in_turn([span_of(paths) for paths in kernels])
    if len(parts) < 2 or (in_turn and told and not _share_steps(kernels)):
        return ([(None, list(files))] if files else []), []
    named = [(marks[part[0]].number if told and not in_turn else None, part) for part in parts]
    return named, [path for text, part in by_text.items() if text not in mine for path in part]


def _share_steps(tables: Sequence[Sequence[Path]]) -> bool:
    """Whether two of these name more steps alike than the one in which a table may end and the next one begin."""
    named = [{cell for path in paths for (cell,) in sample_cells(path, (_STEP,)) if cell} for paths in tables]
    return any(len(one & two) > 1 for one, two in combinations(named, 2))


def build_rank(folder: Path, files: Sequence[Path], base: Path, names: Mapping[Path, str]) -> Rank:
    """One rank from these files of one folder, which go by these names; metadata lies beside or above."""
    rank = Rank(0, folder, base=base, rank_known=False)
    note = rank.note_path
    rank.tables = tablefiles.find_tables(files, loose=True, names=names)
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
