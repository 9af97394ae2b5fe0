"""Facts are declared once, in the `kind(…)` of their family: what is measured must be what was declared.

One check for the advisor's own families and for extractors. What fails it is left out and told as a problem of the
report; in tests (`STRICT`) a built-in family that fails it raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.basics.units import UNITS
from advisor.facts.base import FactKind, FactSet
from advisor.model import SUBJECT_KINDS, Fact, Subject

STRICT = False
"""Tests set it: a defect of a built-in family must not pass as a problem of the profile."""

_TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "bool": (bool,), "list": (tuple, list)}
"""Values by unit; of all other units they are finite numbers."""


class DeclarationError(Exception):
    """A built-in family yields what it has not declared."""


def kind_fault(kind: FactKind) -> str:
    """Why a declaration is refused; "" where it is sound."""
    if kind.unit not in UNITS:
        return f"there is no unit {kind.unit!r}"
    if not kind.scopes or set(kind.scopes) - set(SUBJECT_KINDS):
        return "its scopes are no kinds of subject"
    return "" if kind.meaning else "it has no meaning"


def fact_fault(item: Any, kinds: Mapping[str, FactKind], facts: FactSet) -> str:
    """Why a fact is refused by the family with these kinds, after these facts; "" where it is sound."""
    if not isinstance(item, Fact):
        return f"yields a {type(item).__name__}, not a fact"
    declared = kinds.get(item.name)
    if declared is None:
        return f"{item.name} is not among its kinds"
    if not isinstance(item.subject, Subject) or item.subject.kind not in declared.scopes:
        return f"{item.name} is a fact of {', '.join(declared.scopes)}, not of {item.subject}"
    if not _fits(item.value, declared.unit):
        what = declared.unit if declared.unit in _TYPES else "finite number"
        return f"{item.name}: {item.value!r} is no {what}"
    return f"{item.name} of {item.subject} is measured twice" if facts.get(item.name, item.subject) else ""


def _fits(value: Any, unit: str) -> bool:
    if unit in _TYPES:
        return isinstance(value, _TYPES[unit])
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0
