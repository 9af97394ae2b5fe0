"""JSON of the advisor's own, read back: what only looks like a number is none."""

from __future__ import annotations

import json
import math
from typing import Any

_DIGITS = 300
"""A number of more digits is no measurement, and too large for arithmetic."""


def parsed(document: str | bytes) -> Any:
    """The JSON text; what only looks like numbers (NaN, 1e999, 10**400) is refused with ValueError."""
    return json.loads(document, parse_constant=_refused, parse_float=_finite, parse_int=_whole)


def _refused(text: str) -> float:
    raise ValueError(f"{text[:20]} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)


def _whole(text: str) -> int:
    return int(text) if len(text) < _DIGITS else int(_refused(text))
