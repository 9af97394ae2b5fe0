"""Whether a value read from outside has the types its dataclass declares.

Reports and facts are saved as JSON and read back from anywhere; a list where a text belongs must be told on reading,
not met somewhere in a page.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints


def require(value: Any, hint: Any, place: str = "") -> None:
    """Raises TypeError naming the place where the value, at any depth, is not of the type `hint`."""
    if hint is Any or hint is object:
        return
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if not any(_is(value, choice) for choice in arguments):
            raise TypeError(f"{place}: {_shown(value)} is not expected there")
        return
    if origin is tuple and arguments:
        _instance(value, tuple, place)
        endless = len(arguments) == 2 and arguments[1] is Ellipsis
        if not endless and len(value) != len(arguments):
            raise TypeError(f"{place}: {len(arguments)} values are expected")
        for inner, own in zip(value, (arguments[0],) * len(value) if endless else arguments, strict=True):
            require(inner, own, place)
        return
    if origin in (dict, Mapping):
        _instance(value, Mapping, place)
        for key, inner in value.items():
            require(key, arguments[0], place)
            require(inner, arguments[1], f"{place}.{key}")
        return
    kind = origin or hint
    if isinstance(kind, type):
        _instance(value, kind, place)
        if is_dataclass(kind) and not issubclass(kind, Enum):
            for name, own in _hints(kind).items():
                require(getattr(value, name), own, f"{place}.{name}")


def _is(value: Any, hint: Any) -> bool:
    try:
        require(value, hint)
    except TypeError:
        return False
    return True


def _instance(value: Any, kind: type, place: str) -> None:
    number = kind in (int, float)
    if (number and isinstance(value, bool)) or not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{place}: {_shown(value)} is no {kind.__name__}")


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:40]!r}"


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}
