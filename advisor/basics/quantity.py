"""Numbers as people write them: "50 %", "200 us", "58 GB". They mean the same in every file and option."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_QUANTITY = re.compile(r"^\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%/]*)\s*$")
_SCALES: Mapping[str, Mapping[str, float]] = {
    "us": {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "bytes": {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30},
    "bytes_per_s": {"b/s": 1.0, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9},
    "ratio": {"%": 0.01},
}


def read_quantity(value: object, unit: str) -> float | None:
    """A number, or a text with a unit ("58 GB", "200 us", "5 %"), in the unit of a fact; None where it is neither."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value) if math.isfinite(value) else None
    match = _QUANTITY.match(str(value))
    if match is None:
        return None
    scale = 1.0 if not match[2] else _SCALES.get(unit, {}).get(match[2].lower())
    return None if scale is None else float(match[1]) * scale


def in_unit(value: object, unit: str) -> object:
    """A text that is a number with a unit as the number; everything else as it is."""
    if isinstance(value, str) and unit not in ("text", "list", "bool"):
        number = read_quantity(value, unit)
        return value if number is None else number
    return value
