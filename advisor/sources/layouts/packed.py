"""Files of a profile that somebody compressed one by one: no reader opens them, so each is named.

Whoever sends a folder may make `kernel_details.csv.gz` of `kernel_details.csv`. Timelines (`trace_view.json.gz`) are
read as they are; whole archives are unpacked (`archives.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.folders import Listing, list_folder, plain_name
from advisor.sources.layouts import is_known
from advisor.sources.text.tablefiles import tables_of_file

ENDINGS = ("gz", "zst", "xz", "bz2", "lz4", "zip", "7z")
NOT_READ = (
    "is compressed by itself; not read "
    "(unpack it in its place, or pack the whole folder as .tar.gz or .zip and name that)"
)
_PACKED = re.compile(rf"(?P<inner>.+\.(?:csv|json|txt|db))\.(?:{'|'.join(ENDINGS)})", re.IGNORECASE)
_BESIDE = re.compile(
    r"cluster_\w+\.\w+|communication_group.*|profiler_(?:info|metadata).*|device_queue_\w+", re.IGNORECASE
)
"""Names that tell of a whole run, which no layout asks for file by file."""
_DEEPEST = 2
"""Levels below a rank's folder where its files lie: PROF_*/mindstudio_profiler_output."""


def unread_of_rank(rank: Rank) -> Iterator[Path]:
    """The compressed files of this rank's folder, but those that tell what it knows from another folder's file."""
    level = [rank.root]
    for depth in range(_DEEPEST + 1):
        below = [list_folder(folder) for folder in level]
        for listing in below:
            yield from (path for path in _packed(listing) if not _is_known_already(rank, path))
        level = [listing.path / name for listing in below for name in listing.folders] if depth < _DEEPEST else []


def unread_in(folders: Iterable[Path]) -> Iterator[Path]:
    """The compressed files of a profile in these folders."""
    for folder in folders:
        yield from _packed(list_folder(folder))


def is_packed(name: str) -> bool:
    """Whether a file of this name is one of a profile's, compressed by itself, that no reader opens."""
    found = _PACKED.fullmatch(plain_name(name))
    if found is None or tables_of_file(name, loose=True) is not None:
        return False
    return is_known(found["inner"]) or _BESIDE.fullmatch(found["inner"]) is not None


def _packed(listing: Listing) -> Sequence[Path]:
    beside = set(listing.files)
    return [listing.path / name for name in listing.files if is_packed(name) and _inner(name) not in beside]


def _is_known_already(rank: Rank, path: Path) -> bool:
    """Whether every table that it holds is read from another folder. Files of one folder are parts of one table."""
    told = tables_of_file(_inner(path.name))
    if told is None:
        return False
    read = [rank.tables.get(table) for table in told[0]]
    return all(ref is not None and all(file.parent != path.parent for file in ref.paths) for ref in read)


def _inner(name: str) -> str:
    return name.rpartition(".")[0]
