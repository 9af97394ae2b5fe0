"""Writing results whole or not at all, and reading what the advisor itself wrote, which somebody may have replaced."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from advisor.basics.errors import UsageError


def check_target(path: str | Path) -> None:
    """Raises UsageError where no file could be written under this name."""
    target = Path(path)
    if target.is_dir():
        raise UsageError("is a folder", place=str(target), hint="name a file to write to")
    if not target.parent.is_dir():
        raise UsageError("there is no such folder", place=str(target.parent), hint=f"mkdir -p {target.parent}")


def write_atomically(path: str | Path, text: str) -> None:
    """Writes UTF-8 text under its final name only once all of it is on disk. Raises UsageError with the reason."""
    target = Path(path)
    check_target(target)
    if target.exists() and not target.is_file():
        _write_through(target, text)
        return
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or Path())
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
        temporary = ""
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror or error}", place=str(target)) from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


LARGEST_DOCUMENT = 500_000_000
"""Bytes of a saved report or saved facts; those of ten thousand ranks have fewer."""


def read_own(path: str | Path, most_bytes: int) -> bytes:
    """A file of the advisor's own, whole. Never waits for a pipe or device under its name, and takes no more memory
    than it may: raises OSError where it is no plain file or larger than `most_bytes`."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError("is no plain file")
        if state.st_size > most_bytes:
            raise OSError(f"has {state.st_size} bytes: too many for such a file")
        return file.read(most_bytes)


def copy_folder(source: Path, target: Path) -> None:
    """Copies a shipped folder to a place that is new or empty. Raises UsageError with the reason."""
    if target.is_dir() and any(target.iterdir()):
        raise UsageError("is not empty", place=str(target), hint="name a new folder")
    try:
        shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror or error}", place=str(target)) from None


def _write_through(device: Path, text: str) -> None:
    """A pipe, terminal or /dev/null is written to; a file put in its place would destroy it."""
    try:
        with device.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror or error}", place=str(device)) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
