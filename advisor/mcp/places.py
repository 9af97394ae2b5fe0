"""Which files an agent may have read: those below one folder, whatever links say."""

from __future__ import annotations

import os
from pathlib import Path

from advisor.basics.errors import UsageError

MOST_ENTRIES = 200_000
"""Names of a profile that are looked at for links; a larger folder is refused."""
State = tuple[int, int, int]


class Root:
    """The folder that every path is relative to and must lie in."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        if not self.folder.is_dir():
            raise UsageError("no such folder", place=str(folder), hint="name the folder that holds the profiles")

    def find(self, name: str) -> Path:
        """The file or folder of this name. Raises UsageError where it, or a link inside of it, lies elsewhere."""
        if not name.strip() or name.strip() == "-" or "\0" in name:
            raise UsageError("name a profile below the root", place=str(self.folder))
        try:
            path = (self.folder / name).resolve()
            inside, there = path.is_relative_to(self.folder), path.exists()
        except (OSError, RuntimeError, ValueError):
            inside, there = True, False
        if not inside:
            raise UsageError("lies outside of the root and is not read", place=name, hint=f"root: {self.folder}")
        if not there:
            raise UsageError("no such file or folder", place=name, hint=f"paths are relative to {self.folder}")
        self._refuse_links(path)
        return path

    def _refuse_links(self, path: Path) -> None:
        waiting, seen = [path] if path.is_dir() else [], 0
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_ENTRIES:
                        raise UsageError(
                            f"holds more than {MOST_ENTRIES} names; name a folder below it", place=str(path)
                        )
                    if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(self.folder):
                        raise UsageError("is a link that leads outside of the root", place=entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))


def state_of(path: Path) -> State:
    """Changes where anything in the profile does: number of files, bytes, newest change."""
    files = [path] if path.is_file() else [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    count = size = newest = 0
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        count, size, newest = count + 1, size + status.st_size, max(newest, status.st_mtime_ns)
    return count, size, newest
