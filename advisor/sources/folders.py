"""Looking at folders: one listing each, no crash on loops, missing permissions or thousands of entries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.model import Parallelism

DEEPEST = 6
"""Levels below the folder a user names that are looked into."""
DEEPEST_OF_DISK = 2
"""The same below the root of a file system, which holds anything, recordings of many runs among it."""
MOST_FOLDERS = 100_000
MOST_BARREN = 3_000
"""Folders one after another in which nothing is recognised: whoever names a whole disk, or /proc, is told so."""
MOST_BARREN_NAMES = 300_000
"""The same of the names in them."""
_FILE_ENDINGS = (".csv", ".json", ".txt", ".db")


_COPY = re.compile(
    r"^copy of |(?: ?\([0-9]{1,3}\)| ?- ?(?:copy|副本)| copy(?: [0-9]{1,2})?| 副本)+(?=\.[a-z0-9]+$)", re.IGNORECASE
)
_OF_COPIES = frozenset(" (-")
"""Characters of which one stands in whatever is added to a copy's name."""


def plain_name(name: str) -> str:
    """A file's name without what browsers and file managers add to a copy's: `x (1).json`, `x - Copy.csv`,
    `Copy of x.csv`."""
    return name if _OF_COPIES.isdisjoint(name) else _COPY.sub("", name)


_WORKER = re.compile(r"dp(\d{1,6})_pp(\d{1,6})_tp(\d{1,6})_(?:[a-z]+\d+_)*rank\d+_\d+_\d{14}", re.IGNORECASE)


def parallelism_of(folders: Sequence[Path]) -> Parallelism | None:
    """What a serving engine says of its partition in the names of its workers' folders; None where one of several is
    called otherwise, or where the places they name leave holes."""
    found = [next(filter(None, map(_WORKER.match, reversed(folder.parts))), None) for folder in folders]
    places = {tuple(map(int, match.groups())) for match in found if match}
    if len(folders) < 2 or len(places) != len(folders):
        return None
    data, pipeline, tensor = (max(axis) + 1 for axis in zip(*places, strict=True))
    if data * pipeline * tensor != len(places):
        return None
    return Parallelism(data=data, tensor=tensor, pipeline=pipeline, source="names of the workers' folders")


class Listing(Struct):
    """The names in one folder. `problem` says why it could not be listed."""

    path: Path
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def name(self) -> str:
        return self.path.name

    def find(self, pattern: str) -> list[Path]:
        """Files whose whole name matches the pattern, in natural order, without case; copies under other names last."""
        match = re.compile(pattern, re.IGNORECASE).fullmatch
        found = [name for name in self.files if match(plain_name(name))]
        return [self.path / name for name in sorted(found, key=lambda name: plain_name(name) != name)]

    def find_folders(self, pattern: str) -> list[Path]:
        match = re.compile(pattern, re.IGNORECASE).fullmatch
        return [self.path / name for name in self.folders if match(name)]


class Judgement(Struct, frozen=True):
    """Whether a layout knows a folder, and why: what `advisor doctor` prints."""

    layout: str
    recognised: bool
    reason: str


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key that puts slice_2 before slice_10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)[:64])


def list_folder(path: Path) -> Listing:
    """The folder's names in natural order. Links are followed; what is no folder counts as a file.

    A folder called like a file counts as both, so that the reader of that file says what is wrong.
    """
    listing = Listing(path)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    folder = entry.is_dir()
                except OSError:
                    folder = False
                if folder:
                    listing.folders.append(entry.name)
                if not folder or entry.name.endswith(_FILE_ENDINGS):
                    listing.files.append(entry.name)
    except PermissionError:
        listing.problem = "cannot be opened: permission denied; make it readable for this user"
    except OSError as error:
        listing.problem = f"cannot be listed: {error.strerror or error}"
    listing.files.sort(key=natural)
    listing.folders.sort(key=natural)
    return listing


def file_paths(folder: Path) -> list[Path]:
    """The files of a folder, by name."""
    return sorted(folder / name for name in list_folder(folder).files)


def is_folder(path: Path) -> bool:
    """Whether there is a folder that can be looked into; no exception where its parent is closed."""
    try:
        return path.is_dir()
    except OSError:
        return False


class Walk:
    """Folders from the top down, each at most once; `prune` keeps it out of those a layout has claimed, `recognised`
    tells that it is on the right track."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[tuple[Path, str]] = []
        self._pruned: set[Path] = set()
        self._barren = self._names = 0

    def recognised(self) -> None:
        self._barren = self._names = 0

    def prune(self, folder: Path) -> None:
        self._pruned.add(folder)

    def __iter__(self) -> Iterator[Listing]:
        seen: set[tuple[int, int]] = set()
        above = set(_above(self.root))
        waiting = [(self.root, 0)]
        deepest = DEEPEST if above else DEEPEST_OF_DISK
        if not above:
            text = f"is the root of a file system; only {deepest} levels of folders below it were looked at: "
            self.problems.append((self.root, text + "name the folder of one recording"))
        for path, depth in waiting:
            try:
                status = path.stat()
            except OSError as error:
                self.problems.append((path, f"cannot be opened: {error.strerror or error}"))
                continue
            key = (status.st_dev, status.st_ino)
            if key in seen:
                continue
            seen.add(key)
            if key in above:
                self.problems.append((path, "is a link to a folder that holds the profile itself; not followed"))
                continue
            listing = list_folder(path)
            if listing.problem:
                self.problems.append((path, listing.problem))
            if self._barren >= MOST_BARREN or self._names >= MOST_BARREN_NAMES:
                text = f"nothing was recognised in {self._barren} folders; the rest was not looked at: "
                text += "name the folder of one recording"
                self.problems.append((self.root, text))
                return
            self._barren += 1
            self._names += len(listing.files) + len(listing.folders)
            yield listing
            if path in self._pruned or not listing.folders:
                continue
            if depth >= deepest:
                if above:
                    self.problems.append((path, f"lies {deepest} levels deep; what is below was not looked at"))
                continue
            if len(waiting) > MOST_FOLDERS:
                self.problems.append((path, f"more than {MOST_FOLDERS} folders; the rest was not looked at"))
                return
            waiting.extend((path / name, depth + 1) for name in listing.folders if not name.startswith("."))


def _above(root: Path) -> Iterator[tuple[int, int]]:
    """The identities of the folders that hold this one."""
    for folder in root.resolve().parents:
        try:
            status = folder.stat()
        except OSError:
            continue
        yield status.st_dev, status.st_ino
