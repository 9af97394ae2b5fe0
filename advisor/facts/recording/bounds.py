"""What no measurement can be (knowledge_base/bounds.yaml): bounds by unit and by name of fact."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from msgspec import Struct

from advisor.basics.resources import document
from advisor.basics.units import show
from advisor.facts.base import FactKind
from advisor.model import Fact


class Bounds(Struct, frozen=True):
    """Least and most that a fact of this kind can be; None where there is no bound."""

    least: float | None
    most: float | None
    counted: bool = False
    """The advisor counts it itself from what the files tell (operations from shapes): an impossible one is a wrong
    count, and no damage to the files."""


NONE = Bounds(None, None)


def impossible(item: Fact, kind: FactKind) -> str:
    """Why no measurement can give this value; "" where it can."""
    said = beyond(kind.name, kind.unit, item.value)
    return said and beyond(kind.name, kind.unit, item.value, f"{item.name} of {item.subject}")


def beyond(name: str, unit: str, value: object, called: str = "") -> str:
    """Why no fact of this name and unit can have this value; "" where it can, and of what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    bounds, slack = bounds_of(name, unit), rounding()
    if bounds.least is not None and value < bounds.least - slack:
        limit = f"below {show(bounds.least, unit)}"
    elif bounds.most is not None and value > bounds.most * (1 + slack):
        limit = f"above {show(bounds.most, unit)}"
    else:
        return ""
    return f"{called or name} would be {show(value, unit)}, which cannot be {limit}"


def rounding() -> float:
    """By which part numbers of two writers differ that are the same."""
    return float(_document()["slack"]["value"])


@cache
def bounds_of(name: str, unit: str) -> Bounds:
    """Bounds of the facts of this name."""
    for entry in _document()["bounds"]:
        if entry.get("unit") == unit or any(fnmatchcase(name, pattern) for pattern in entry.get("facts", ())):
            return Bounds(entry.get("least"), entry.get("most"), bool(entry.get("counted", False)))
    return NONE


@cache
def _document() -> dict[str, Any]:
    return dict(document("knowledge_base", "bounds.yaml"))
