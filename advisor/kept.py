"""What was made from shipped files and rules once is kept in the user's cache, so that no run makes it again.

Entries lie in the user's own folder (`$XDG_CACHE_HOME/advisor/…`, else `~/.cache/…`), are used only where nobody else
could have written them, and can be deleted at any time. Whatever is wrong with one, there is none.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

log = logging.getLogger("advisor")


@lru_cache(maxsize=1)
def program() -> tuple[tuple[str, int, int], ...]:
    """The advisor's own files: with another version the same rule may mean something else."""
    root = Path(__file__).parent
    found: list[tuple[str, int, int]] = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                path = f"{folder}/{name}"
                status = os.stat(path)  # noqa: PTH116 - hundreds of files: a Path for each takes as long as the rest
                found.append((path, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def own_folder(name: str) -> Path | None:
    """The cache's folder of this name, made where it is absent; None where it is not the user's alone, or not to be
    had."""
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME") or "")
        place = (named if named.is_absolute() else Path.home() / ".cache") / "advisor" / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place if _is_own(place.lstat(), stat.S_ISDIR) else None
    except (OSError, RuntimeError):
        return None


def _is_own(status: os.stat_result, kind: Any) -> bool:
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return bool(kind(status.st_mode)) and mine and not (os.name == "posix" and status.st_mode & 0o022)


def load(path: Path) -> bytes | None:
    """What `store` wrote there, whole; None where there is nothing of the kind."""
    try:
        if not _is_own(path.lstat(), stat.S_ISREG):
            return None
        digest, _, body = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    except OSError:
        log.debug("the kept entry %s cannot be read", path, exc_info=True)
        return None
    return body if hashlib.sha256(body).hexdigest().encode() == digest else None


def store(path: Path, body: bytes) -> None:
    """Writes an entry whole or not at all; a cache that cannot be written is none."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        Path(temporary).replace(path)
        temporary = ""
    except OSError:
        log.debug("nothing was kept in %s", path, exc_info=True)
    finally:
        if temporary:
            with suppress(OSError):
                Path(temporary).unlink()


def prune(place: Path, pattern: str, most: int) -> None:
    """Leaves the latest entries, no more than `most`."""
    dated = []
    for path in place.glob(pattern):
        with suppress(OSError):
            dated.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(dated, reverse=True)[most:]:
        with suppress(OSError):
            path.unlink()
