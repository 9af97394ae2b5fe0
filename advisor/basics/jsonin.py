"""JSON of the advisor's own, read back: what only looks like a number is none."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""What may be half a character; pairs of them are whole ones."""
_DIGITS = 300
"""A number of more digits is no measurement, and too large for arithmetic."""


def parsed(document: str | bytes) -> Any:
    """The JSON text; what only looks like numbers (NaN, 1e999, 10**400) is refused with ValueError, and half
    characters, which no output can hold, are question marks."""
    text = document if isinstance(document, str) else document.decode("utf-8-sig", "surrogatepass")
    found = json.loads(text, parse_constant=_refused, parse_float=_finite, parse_int=_whole)
    return _whole_characters(found) if _HALF.search(text) else found


def _refused(text: str) -> float:
    raise ValueError(f"{text[:20]} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)


def _whole(text: str) -> int:
    return int(text) if len(text) < _DIGITS else int(_refused(text))


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    return [_whole_characters(item) for item in value] if isinstance(value, list) else value
