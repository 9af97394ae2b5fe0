"""A rank's timeline wherever it lies: in trace_view.json, or in the database that holds its kernels."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.database.trace_database import read_trace
from advisor.sources.streams.trace import Trace, stream_trace


def trace_source(rank: Rank) -> Source | None:
    """Where the rank's timeline lies: a file of its own, or the database that holds its kernels; None without any."""
    if rank.has("trace"):
        return Source(rank.relative(rank.tables["trace"].paths[0]), ("name", "ts", "dur"))
    reference = rank.tables.get("kernels")
    if reference is not None and reference.reader == "kernels.db":
        return Source(rank.relative(reference.paths[0]), ("CANN_API", "TASK"))
    return None


def load_trace(rank: Rank) -> Trace | None:
    """The rank's timeline, read once and kept until the rank forgets; None where there is none."""
    key = ("trace", "compact")
    if key not in rank._cache:

        def note(path: str, text: str) -> None:
            rank.note(rank.relative(Path(path)), text)

        rank._cache[key] = None
        if rank.has("trace"):
            rank._cache[key] = stream_trace(rank.tables["trace"].paths, note)
        elif trace_source(rank) is not None:
            rank._cache[key] = read_trace(rank.tables["kernels"].paths, note)
    return cast("Trace | None", rank._cache[key])
