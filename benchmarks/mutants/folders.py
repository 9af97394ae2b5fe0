"""Mutations of a profile's files and folders: missing, linked, unreadable, doubled, changing while they are read."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.mutants.base import LESS, OTHER, SAME, mutation

_RACE_S = 3.0
_LARGEST = 50_000_000


@mutation("file.missing", LESS)
def missing(path: Path, draw: Random) -> str | None:
    path.unlink()
    return "deleted"


@mutation("file.folder", LESS)
def folder(path: Path, draw: Random) -> str | None:
    path.unlink()
    path.mkdir()
    if draw.random() < 0.5:
        (path / path.name).write_text("x")
    return "is a folder"


@mutation("file.dangling", LESS)
def dangling(path: Path, draw: Random) -> str | None:
    path.unlink()
    path.symlink_to(draw.choice(("gone", path.name, "/dev/null", "/dev/full", "/proc/self/mem")))
    return f"is a link to {path.readlink()}"


@mutation("file.endless", LESS)
def endless(path: Path, draw: Random) -> str | None:
    """Devices and pipes that never end or never answer."""
    path.unlink()
    kind = draw.choice(("fifo", "/dev/zero", "/dev/urandom"))
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    return f"is {kind}"


@mutation("file.unreadable", LESS)
def unreadable(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    path.chmod(0)
    return "mode 000"


@mutation("file.link", SAME)
def link(path: Path, draw: Random) -> str | None:
    """The file lies elsewhere and is linked, as on shared storage."""
    target = path.parent / f".{path.name}.data"
    path.rename(target)
    path.symlink_to(target)
    return "is a link to the data"


@mutation("file.sparse", LESS)
def sparse(path: Path, draw: Random) -> str | None:
    """Eight gigabytes of nothing after the data, on disk almost for free."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    os.truncate(path, 8 << 30)
    return "8 GiB, mostly a hole"


def racing(name: str, change: Callable[[Path, bytes], None]) -> None:
    """Registers a change that another thread keeps making while the profile is read."""

    def apply(path: Path, draw: Random) -> str | None:
        data = path.read_bytes()
        if not data:
            return None
        path.unlink()
        path.write_bytes(data)
        end = time.monotonic() + _RACE_S

        def work() -> None:
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    change(path, data)
                time.sleep(0.0005)

        threading.Thread(target=work, daemon=True).start()
        return "changes while it is read"

    mutation(f"race.{name}", LESS)(apply)


def _grow(path: Path, data: bytes) -> None:
    if path.stat().st_size < _LARGEST:
        with path.open("ab") as stream:
            stream.write(data[:5000])


def _vanish(path: Path, data: bytes) -> None:
    if path.exists():
        path.unlink()
    else:
        path.write_bytes(data)


def _truncate(path: Path, data: bytes) -> None:
    size = path.stat().st_size
    os.truncate(path, size // 2) if size > 10 else path.write_bytes(data)


def _swap(path: Path, data: bytes) -> None:
    new = path.with_name(".new")
    new.write_bytes(data[: len(data) // 2])
    new.replace(path)


racing("grow", _grow)
racing("vanish", _vanish)
racing("truncate", _truncate)
racing("swap", _swap)


def _ranks(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and path.name.endswith(("_ascend_ms", "_ascend_pt")))


@mutation("folder.rank_missing", LESS, whole=True)
def rank_missing(root: Path, draw: Random) -> str | None:
    ranks = _ranks(root)
    if len(ranks) < 2:
        return None
    shutil.rmtree(draw.choice(ranks))
    return "one rank missing"


@mutation("folder.rank_empty", LESS, whole=True)
def rank_empty(root: Path, draw: Random) -> str | None:
    ranks = _ranks(root)
    if not ranks:
        return None
    chosen = draw.choice(ranks)
    shutil.rmtree(chosen)
    chosen.mkdir()
    return f"{chosen.name} empty"


@mutation("folder.rank_twice", SAME, whole=True)
def rank_twice(root: Path, draw: Random) -> str | None:
    ranks = _ranks(root)
    if not ranks:
        return None
    chosen = draw.choice(ranks)
    shutil.copytree(chosen, root / f"backup_{chosen.name}")
    return f"{chosen.name} twice"


@mutation("folder.nothing_written", LESS, whole=True)
def nothing_written(root: Path, draw: Random) -> str | None:
    """The files of a rank were created, and the disk was full: in place of what it had, or beside it a little later."""
    ranks = _ranks(root)
    if not ranks:
        return None
    chosen, later = draw.choice(ranks), draw.random() < 0.5
    if later:
        name = re.sub(r"\d{14,17}", lambda at: str(int(at[0]) + 10**5), chosen.name)
        if name == chosen.name:
            return None
        shutil.copytree(chosen, root / name)
        chosen = root / name
    for path in chosen.rglob("*"):
        if path.is_file() and not (later and path.name.startswith("profiler_")):
            path.unlink()
            path.touch()
    return f"all files of {chosen.name} of no length{', beside the ones before' if later else ''}"


@mutation("folder.loop", SAME, whole=True)
def loop(root: Path, draw: Random) -> str | None:
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    chosen = draw.choice(folders)
    (chosen / "loop").symlink_to(draw.choice((root, chosen, chosen / "loop")))
    return f"a loop in {chosen.name}"


@mutation("folder.many_links", SAME, whole=True)
def many_links(root: Path, draw: Random) -> str | None:
    """Links of links whose paths multiply: 8 levels of 8 links each."""
    inner = root / "many"
    inner.mkdir()
    for number in range(8):
        (inner / f"l{number}").symlink_to(inner)
    return "a folder of links to itself"


@mutation("folder.odd_names", SAME, whole=True)
def odd_names(root: Path, draw: Random) -> str | None:
    name = draw.choice(("a\nb", "\x1b[2J", "x" * 200, "名前", "-rf", "a b", "\udcff.csv", "<script>.csv"))
    (root / name).write_bytes(b"x")
    (root / f"{name}.d").mkdir()
    return f"a file called {name[:20]!r}"


@mutation("folder.renamed", OTHER, whole=True)
def renamed(root: Path, draw: Random) -> str | None:
    """The host is known by the folder's name alone."""
    ranks = _ranks(root)
    if not ranks:
        return None
    chosen = draw.choice(ranks)
    chosen.rename(root / f"copied {draw.randrange(9)} 副本{chosen.name[-10:]}")
    return f"{chosen.name} renamed"


@mutation("folder.unreadable", LESS, whole=True)
def folder_unreadable(root: Path, draw: Random) -> str | None:
    chosen = draw.choice([path for path in root.rglob("*") if path.is_dir()] or [root])
    chosen.chmod(0)
    return f"{chosen.name} mode 000"


@mutation("folder.stale_output", SAME, whole=True)
def stale_output(root: Path, draw: Random) -> str | None:
    if (root / "cluster_analysis_output").exists() or not _ranks(root):
        return None
    (root / "cluster_analysis_output").mkdir()
    return "an empty cluster_analysis_output"


@mutation("folder.other_rank", OTHER, whole=True)
def other_rank(root: Path, draw: Random) -> str | None:
    """Two files of different ranks change places."""
    ranks = _ranks(root)
    if len(ranks) < 2:
        return None
    a, b = draw.sample(ranks, 2)
    names = sorted(p.relative_to(a) for p in a.rglob("*") if p.is_file() and (b / p.relative_to(a)).is_file())
    if not names:
        return None
    name = draw.choice(names)
    data = (a / name).read_bytes(), (b / name).read_bytes()
    for path, content in zip((a / name, b / name), reversed(data), strict=True):
        path.unlink()
        path.write_bytes(content)
    return f"{name} of two ranks changed places"
