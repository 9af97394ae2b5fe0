"""Recordings in a watched folder: which folders belong to one, and whether it is finished. Looks at names, sizes and
times; opens nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.sources.archives import is_archive
from advisor.watch.settings import number

_RANK = re.compile(r"(?P<process>.+_\d+)_(?P<time>\d{14,17})_ascend_(?:ms|pt)", re.IGNORECASE)
_DYNAMIC = re.compile(r"(?P<before>.*?)rank_?(?P<rank>\d+)(?P<after>_start_?\d+_stop_?\d+.*)", re.IGNORECASE)
_RAW = re.compile(r"PROF_.*", re.IGNORECASE)
_PARSED = "ASCEND_PROFILER_OUTPUT"


@dataclass(frozen=True)
class Capture:
    """One recording: the folders of its ranks, or one folder or archive that holds them all. `key` is its name."""

    key: str
    paths: tuple[Path, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The entries of the watched folder that belong to it."""
        return tuple(path.name for path in self.paths)


@dataclass(frozen=True)
class State:
    """Changes where anything in a recording does."""

    files: int
    bytes: int
    newest_ns: int
    parsed: bool
    """False where raw data lie there that nobody has parsed yet."""


def find_captures(folder: Path, but: Path) -> list[Capture]:
    """The recordings there, oldest first. Ranks of one recording are those between two folders of one process; with
    dynamic profiling those of the same steps. Raises OSError where the folder cannot be listed."""
    ranks: list[tuple[str, str, Path]] = []
    groups: dict[str, list[Path]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(".") or path == but:
                continue
            match, dynamic = _RANK.fullmatch(entry.name), _DYNAMIC.fullmatch(entry.name)
            if match:
                ranks.append((match["time"].ljust(17, "0"), match["process"], path))
            elif dynamic:
                groups.setdefault(f"{dynamic['before']}{dynamic['after'].strip('_')}", []).append(path)
            elif _is_folder(entry) or is_archive(path):
                groups.setdefault(entry.name, []).append(path)
    found = [Capture(key, tuple(sorted(paths))) for key, paths in groups.items()]
    found += _between_repetitions(sorted(ranks))
    return sorted(found, key=lambda capture: (_oldest(capture), capture.key))


def _between_repetitions(ranks: list[tuple[str, str, Path]]) -> Iterator[Capture]:
    """Each process writes one folder a recording: where one appears again, the next recording begins."""
    seen: set[str] = set()
    paths: list[Path] = []
    for _, process, path in ranks:
        if process in seen:
            yield Capture(paths[0].name, tuple(paths))
            seen, paths = set(), []
        seen.add(process)
        paths.append(path)
    if paths:
        yield Capture(paths[0].name, tuple(paths))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether a recording may lie there; a link to what holds the watched folder leads back to all of them."""
    try:
        leads_back = entry.is_symlink() and Path(entry.path).parent.resolve().is_relative_to(Path(entry.path).resolve())
        return entry.is_dir() and not leads_back
    except (OSError, RuntimeError):
        return False


def _oldest(capture: Capture) -> int:
    try:
        return capture.paths[0].stat().st_mtime_ns
    except OSError:
        return 0


def state_of(capture: Capture) -> State | None:
    """How a recording looks now; None where it has vanished."""
    files = size = newest = 0
    raw = parsed = there = False
    for path in capture.paths:
        for entry, status in _walk(path):
            there = True
            name = Path(entry).name
            raw, parsed = raw or bool(_RAW.fullmatch(name)), parsed or name == _PARSED
            files, size, newest = files + 1, size + status.st_size, max(newest, status.st_mtime_ns)
            if files >= number("most_files"):
                return State(files, size, newest, True)
    return State(files, size, newest, parsed or not raw) if there else None


def _walk(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below, without following links; what vanishes meanwhile is left out."""
    waiting = [str(path)]
    while waiting:
        here = waiting.pop()
        try:
            yield here, os.lstat(here)
            if os.path.isdir(here) and not os.path.islink(here):  # noqa: PTH112, PTH114
                with os.scandir(here) as entries:
                    waiting.extend(entry.path for entry in entries)
        except OSError:
            continue
