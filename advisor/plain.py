"""The nouns of the model as JSON knows them, and back: what is read is typed at every depth, or refused with its place.

Reports and facts come back from anywhere; a list where a text belongs must be told on reading, not met in a page.
JSON has the fields of the dataclasses with their names; `_SPELT` lists the few that the public form spells otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import msgspec

from advisor.model import Evidence, Fact, Problem, ProfileInfo, Remedy, Report, Saving, Source, Summary

T = TypeVar("T")

_OWN = {Problem: ("lost", "doubted"), Report: ("promised",), Source: ("table",), Summary: ("wanted",)}
"""Fields that stay inside."""


def to_plain(value: Any) -> Any:
    """JSON's own types only: dataclasses as objects, tuples as lists, nothing infinite, no half characters."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {to_plain(str(key)): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    kind: type = type(value)
    if is_dataclass(kind):
        document = {name: to_plain(getattr(value, name)) for name in _names(kind)}
        return _SPELT[kind](document) if kind in _SPELT else document
    if hasattr(value, "item"):
        return to_plain(value.item())
    return to_plain(str(value))


@cache
def _names(kind: type) -> tuple[str, ...]:
    own = next((_OWN[base] for base in kind.__mro__ if base in _OWN), ())
    return tuple(field.name for field in fields(kind) if field.name not in own)


def from_plain(document: Any, kind: type[T]) -> T:
    """What `to_plain` made of a value of this kind; unknown fields are passed over. Raises ValueError that names
    the place where the document is not like that."""
    return msgspec.convert(_respelt(document), kind)


def _respelt(value: Any) -> Any:
    """The document with the fields of the dataclasses it stands for."""
    if isinstance(value, list):
        return [_respelt(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    found = {
        key: item if key == "charts" else _frozen(item) if key in _VALUES else _respelt(item)
        for key, item in value.items()
        if item is not None or key not in _ABSENT
    }
    if isinstance(excluded := value.get("excluded_steps"), list):
        found["excluded_steps"] = [(entry["step"], entry["reason"]) for entry in excluded]
    for name in ("basis", "risk"):
        if isinstance(text := value.get(name), str):
            zh = value.get(f"{name}_zh")
            found[name] = {"en": text, "zh": text if zh is None else zh}
    return found


_ABSENT = ("subject", "parallelism")
"""Fields whose null means that they are left out."""
_VALUES = ("value", "current", "proposed")
"""Fields that hold what a fact may hold: a list in JSON is a tuple."""


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


# --- what the public form spells otherwise ------------------------------------------------------------------------


def _steps(document: dict[str, Any]) -> dict[str, Any]:
    excluded = [{"step": step, "reason": reason} for step, reason in document["excluded_steps"]]
    return {**document, "excluded_steps": excluded}


def _where_told(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A field that is left out where it is empty: what nothing casts doubt on says nothing of it."""

    def spell(document: dict[str, Any]) -> dict[str, Any]:
        return {key: item for key, item in document.items() if item or key != name}

    return spell


def _two_texts(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A text of two languages as two fields, `name` and `name`_zh."""

    def spell(document: dict[str, Any]) -> dict[str, Any]:
        text = document[name] or {"en": None, "zh": None}
        return {**document, name: text["en"], f"{name}_zh": text["zh"]}

    return spell


_SPELT: dict[type, Callable[[dict[str, Any]], dict[str, Any]]] = {
    Fact: _where_told("doubted"),
    Evidence: _where_told("more_sources"),
    ProfileInfo: _steps,
    Saving: _two_texts("basis"),
    Remedy: _two_texts("risk"),
}
