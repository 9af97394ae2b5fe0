"""One operator as `msprof op` measured it: OpBasicInfo.csv, and the shares of its units in PipeUtilization.csv."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.sources.reference import Note
from advisor.sources.text.textfiles import read_text

if TYPE_CHECKING:
    import polars as pl

BASIC, PIPES = "OpBasicInfo.csv", "PipeUtilization.csv"
_CORES = {"cube": "AI_CORE", "aicore": "AI_CORE", "vector": "AI_VECTOR_CORE", "mix": "MIX_AIC"}
_RATIOS = {
    "mac_ratio": ("aic_cube_ratio", "aic_mac_ratio"), "scalar_ratio": ("aic_scalar_ratio",),
    "mte1_ratio": ("aic_mte1_ratio",), "mte2_ratio": ("aic_mte2_ratio",), "fixpipe_ratio": ("aic_fixpipe_ratio",),
    "vec_ratio": ("aiv_vec_ratio",), "aiv_scalar_ratio": ("aiv_scalar_ratio",),
    "aiv_mte2_ratio": ("aiv_mte2_ratio",), "aiv_mte3_ratio": ("aiv_mte3_ratio",),
}  # fmt: skip
"""Shares of a unit by canonical name, and how versions of the file call them. A row is one block on one core."""


def operator_frames(path: Path, note: Note) -> Iterator[pl.DataFrame]:
    """The operator as one kernel without a start, with the shares of its units over all blocks."""
    import polars as pl

    rows = _rows(path, note)
    pipes = _rows(path.with_name(PIPES), note) if path.with_name(PIPES).is_file() else []
    for row in rows:
        duration = _number(row.get("Task Duration(us)"))
        if duration is None:
            note(str(path), "tells no Task Duration(us): how long the operator took is unknown")
            continue
        kind = row.get("Op Type", "").strip().lower()
        name = row.get("Op Name", "").strip()
        told: dict[str, list[object]] = {
            "name": [name], "type": [re.sub(r"_[0-9]+$", "", name)], "core": [_CORES.get(kind, "")],
            "duration_us": [duration], "block_num": [_number(row.get("Block Dim"))],
        }  # fmt: skip
        told |= {pipe: [_mean(pipes, names)] for pipe, names in _RATIOS.items()}
        texts = {"name": pl.String, "type": pl.String, "core": pl.String}
        yield pl.DataFrame(told, schema={key: texts.get(key, pl.Float64) for key in told})


def _mean(rows: Sequence[dict[str, str]], names: Sequence[str]) -> float | None:
    found = [value for row in rows for name in names if (value := _number(row.get(name))) is not None]
    return sum(found) / len(found) if found else None


def _rows(path: Path, note: Note) -> list[dict[str, str]]:
    try:
        rows = list(csv.DictReader(read_text(path).splitlines()))
    except csv.Error as error:
        note(str(path), f"cannot be read: {error}")
        return []
    return [{str(k).strip(): str(v or "").strip() for k, v in row.items() if k is not None} for row in rows]


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
