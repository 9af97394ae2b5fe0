"""task_time_*.csv of msprof: every task of the device, of which the kernels are those that ran on a core.

It is written where nothing more was recorded than how long tasks took, and stands for the kernels where no table of
operators is there. Events, waiting and profiling tasks order the streams and are no work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.sources.reference import Note
from advisor.sources.streams.kernel_blocks import text_frames

if TYPE_CHECKING:
    import polars as pl

_CORE = r"^(?:KERNEL_)?(AI_?CORE|AI_?CUBE|AI_?VECTOR_?CORE|VECTOR_?CORE|AIV|AI_?VEC|AIC|MIX_AIC|MIX_AIV|AI_?CPU)$"
_CORES = re.compile(rf"{_CORE}|^(DSA(?:_SQE)?)$")
"""Cores, and the engine that draws random numbers."""
_HASH = r"(_[0-9a-f]{32}.*|_[0-9]+)?(_mix_ai[cv])?$"
"""What the compiler adds to an operator's type: a hash of its inputs, or the number of its tiling."""
_PLAIN = {"AICORE": "AI_CORE", "AIC": "AI_CORE", "AICPU": "AI_CPU", "AIV": "AI_VECTOR_CORE", "AIVEC": "AI_VECTOR_CORE"}
_ORDERS = re.compile(
    r"^(?:\w+_)?(?:event|notify)_(?:wait|record|reset)(?:_\w+)?$|^(?:stream_)?wait_(?:event|value)|^place_?holder(?:_sqe)?$|"
    r"^(?:mem_)?write_value(?:_sqe)?$|^(?:\w+_)?(?:end_graph|maintenance)$",
    re.IGNORECASE,
)


def orders_streams(task: str) -> bool:
    """Whether a task, by its type or by its name, only lets streams wait for each other: the time in it is no work."""
    return bool(_ORDERS.match(task))


@lru_cache(1 << 10)
def core_of(task: str) -> str:
    """The core that a task of this type ran on, as tables of kernels call it; empty of what no core ran, or where it is
    not told."""
    found = _CORES.match(task.strip(' \t"').upper())
    core = "" if found is None else found[1] or found[2]
    return _PLAIN.get(core, core)


def task_frames(path: Path, note: Note, device: str | None = None) -> Iterator[pl.DataFrame]:
    """Canonical frames of the kernels among the tasks of one file."""
    import polars as pl

    for frame in text_frames(path, note, device):
        if "core" not in frame.columns:
            note(str(path), "does not tell which tasks are kernels; it was not used")
            return
        core = pl.col("core").str.strip_chars(' \t"').str.to_uppercase().str.extract(_CORE, 1)
        kept = frame.with_columns(core.replace(_PLAIN).alias("core")).filter(pl.col("core").is_not_null())
        if kept.is_empty():
            continue
        if "name" in kept.columns:
            name = pl.col("name").fill_null("").str.strip_chars(' \t"')
            named = pl.when(name.is_in(["", "N/A"])).then(pl.col("core")).otherwise(name)
            kept = kept.with_columns(named.alias("name"), named.str.replace(_HASH, "").alias("type"))
        yield kept
