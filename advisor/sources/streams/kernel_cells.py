"""What a block of usable kernels tells, column by column, whichever file it comes from."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.basics.arrays import Floats, Ints
from advisor.sources.coded import Coded
from advisor.sources.frames import LONGEST_STEP
from advisor.sources.streams.kernel_blocks import MARK, MEASURES, SIGNATURE
from advisor.tables import LARGEST

if TYPE_CHECKING:
    import polars as pl

Block = dict[str, Any]
"""Canonical column of kernels -> its cells: `start_ns` whole numbers, UNKNOWN where it is not told, other numbers
Floats, NaN where they are not told, texts `Coded`, empty where they are not told."""
UNKNOWN = -1


_NO_CORE = "UNKNOWN"
"""What msprof's tables say of tasks that no core ran."""


def usable_columns(columns: Block) -> tuple[Block, int]:
    """(the usable kernels of a block with their signatures, how many are not usable)."""
    duration = columns["duration_us"]
    usable = (duration >= 0) & (duration <= LARGEST)
    if "step" in columns:
        usable &= columns["step"].where(lambda name: len(name.encode()) <= LONGEST_STEP)
    chosen = np.flatnonzero(usable)
    nothing = Coded(np.zeros(duration.size, np.int64), [""])
    told = (columns.get(name, nothing) for name in SIGNATURE)
    columns["signature"] = reduce(lambda left, right: left.beside(right, lambda *both: MARK.join(both)), told)
    kept = {
        name: cells.chosen(chosen).in_order() if isinstance(cells, Coded) else cells[chosen]
        for name, cells in columns.items() if name not in SIGNATURE
    }  # fmt: skip
    return kept, duration.size - chosen.size


def usable_rows(frame: pl.DataFrame) -> tuple[Block, int]:
    """The same of a canonical frame. A task without a name that no core ran is no kernel: nothing is lost with it."""
    import polars as pl

    told = set(frame.columns)

    def column(name: str, unknown: object) -> pl.Expr:
        return pl.col(name).fill_null(unknown) if name in told else pl.lit(unknown).alias(name)

    usable = pl.col("duration_us").is_between(0, LARGEST)
    if "step" in told and frame["step"].dtype == pl.String:
        usable &= pl.col("step").fill_null("").str.len_bytes() <= LONGEST_STEP
    numbers = [name for name in MEASURES if name in told]
    kept = frame.filter(usable).select(  # one call for all: each costs 100 us
        "duration_us", column("start_ns", UNKNOWN).cast(pl.Int64),
        pl.concat_str([column(name, "") for name in SIGNATURE], separator=MARK).alias("signature"),
        *(column(name, "") for name in ("name", "step", "stream")), *(column(name, np.nan) for name in numbers),
    )  # fmt: skip
    lost = len(frame) - len(kept)
    if lost:
        nameless = (column("core", "") == _NO_CORE) & column("name", "").is_in(["", "N/A"])
        lost = frame.select((~usable.fill_null(False) & ~nameless).sum()).item()
    block: Block = {name: kept[name].to_numpy() for name in ("start_ns", "duration_us", *numbers)}
    return block | {name: _coded(kept[name]) for name in ("signature", "name", "step", "stream")}, lost


def _coded(texts: pl.Series) -> Coded:
    """Texts as numbers. Where few are alike, each is looked up."""
    import polars as pl

    unique = texts.unique(maintain_order=True)
    if len(unique) * 4 > len(texts):
        return Coded(np.arange(len(texts)), texts.to_list())
    return Coded(texts.cast(pl.Enum(unique)).to_physical().to_numpy(), unique.to_list())


def cells_of(column: Coded | Ints | Floats) -> list[Any]:
    """The cells of a block's column; None where it does not tell."""
    if isinstance(column, Coded):
        return [text or None for text in column]
    unknown = np.isnan(column) if column.dtype.kind == "f" else column == UNKNOWN
    return [None if lost else cell for cell, lost in zip(column.tolist(), unknown.tolist(), strict=True)]
