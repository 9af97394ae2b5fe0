"""What a command is started in: closed streams, encodings, environment, memory. Each has a clear word and a status."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from advisor.basics.errors import UsageError

_POLARS_THREADS = "POLARS_MAX_THREADS"


def prepare() -> None:
    """Makes the surroundings safe, or raises an error for people."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    threads = os.environ.get(_POLARS_THREADS)
    if threads is not None and not (threads.isascii() and threads.isdecimal() and int(threads) > 0):
        del os.environ[_POLARS_THREADS]
        print(f"advisor: {_POLARS_THREADS}={threads!r} is no number of threads; ignored", file=sys.stderr)
    try:
        Path.cwd()
    except OSError:
        raise UsageError("the working folder is gone", hint="change to a folder that exists") from None


def _open_closed_streams() -> None:
    """What was closed leads nowhere: else the next file that is opened would be taken for it, and written to."""
    closed = []
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            closed.append(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if 1 in closed:
        print("advisor: standard output is closed; nothing is shown there", file=sys.stderr)
