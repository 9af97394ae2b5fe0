"""Files that a profiler, a copy or a synchronisation still writes: what was read is a part, or of two states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.sources.base import Rank

_State = tuple[int, int, int] | None


@contextmanager
def watched(rank: Rank) -> Iterator[None]:
    """Notes which of the rank's files changed, and which of its folders lost or gained files, while this lasts; what
    rests on such a file cannot be relied on."""
    tables: dict[Path, list[str]] = defaultdict(list)
    for name, reference in sorted(rank.tables.items()):
        for path in reference.paths:
            tables[path].append(name)
    folders = {path.parent for path in tables}
    before = {path: _state(path) for path in (*tables, *folders)}
    try:
        yield
    finally:
        changed = False
        for path, names in tables.items():
            if _state(path) != before[path]:
                text = "changed while it was read; run again once the profiler has finished writing"
                rank.note(rank.relative(path), text, tuple(names))
                changed = True
        for folder in sorted(folders):
            if not changed and _state(folder) != before[folder]:
                text = "gained or lost files while it was read; run again once the profiler has finished writing"
                rank.note(rank.relative(folder), text)


def _state(path: Path) -> _State:
    """Which file this is, its size and the time of its last change; None where it is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
