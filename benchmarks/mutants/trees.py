"""Mutations of JSON files: types, keys, depth, numbers that are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.mutants.base import LESS, SAME, mutation, replace_file

_ODD: tuple[Any, ...] = (
    None, True, "", "abc", "NaN", [], {}, [[[]]], {"a": {"b": 1}}, float("nan"), float("inf"), -1, -1e300, 1e300, 0,
    10**40, "\u0000", "\ud800", "1e999", [1, 2], "x" * 100_000,
)  # fmt: skip
_DEPTH = 100_000
_MOST_PLACES = 20_000


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of the values of a document, breadth first, so many at most."""
    waiting = [data]
    count = 0
    for container in waiting:
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            count += 1
            if count > _MOST_PLACES:
                return
            yield container, key
            if isinstance(container[key], (dict, list)):
                waiting.append(container[key])


def _load(path: Path) -> Any:
    try:
        data = json.loads(path.read_bytes())
    except ValueError:
        return None
    return data if isinstance(data, (dict, list)) and data else None


def _store(path: Path, data: Any) -> None:
    replace_file(path, json.dumps(data).encode("utf-8", "surrogatepass"))


@mutation("json.odd_value", LESS, ".json")
def odd_value(path: Path, draw: Random) -> str | None:
    data = _load(path)
    if data is None:
        return None
    places = list(_places(data))
    for _ in range(draw.choice((1, 1, 5, 50))):
        container, key = draw.choice(places)
        odd = draw.choice(_ODD)
        container[key] = odd
    _store(path, data)
    return f"{str(odd)[:20]!r} for {str(key)[:40]!r}"


@mutation("json.same_odd_value", LESS, ".json")
def same_odd_value(path: Path, draw: Random) -> str | None:
    """Every value of one key becomes the same odd thing."""
    data = _load(path)
    if data is None:
        return None
    places = list(_places(data))
    chosen = draw.choice([key for container, key in places if isinstance(container, dict)] or [None])
    odd = draw.choice(_ODD)
    for container, key in places:
        if key == chosen and isinstance(container, dict):
            container[key] = odd
    _store(path, data)
    return f"{str(odd)[:20]!r} for every {str(chosen)[:40]!r}"


@mutation("json.delete_key", LESS, ".json")
def delete_key(path: Path, draw: Random) -> str | None:
    data = _load(path)
    if data is None:
        return None
    container, key = draw.choice(list(_places(data)))
    del container[key]
    _store(path, data)
    return f"{str(key)[:40]!r} deleted"


@mutation("json.rename_key", LESS, ".json")
def rename_key(path: Path, draw: Random) -> str | None:
    data = _load(path)
    if data is None:
        return None
    places = [(container, key) for container, key in _places(data) if isinstance(container, dict)]
    if not places:
        return None
    container, key = draw.choice(places)
    container[draw.choice(("", "x", key + " ", key.upper() + "_", "9" * 30))] = container.pop(key)
    _store(path, data)
    return f"{key[:40]!r} renamed"


@mutation("json.top", LESS, ".json")
def top(path: Path, draw: Random) -> str | None:
    text = draw.choice(("[]", "{}", "null", "3", '"text"', "[null]", "[[]]", '{"a": 1}', '{"traceEvents": []}', "NaN"))
    replace_file(path, text.encode())
    return f"holds {text}"


@mutation("json.wrapped", LESS, ".json")
def wrapped(path: Path, draw: Random) -> str | None:
    data = _load(path)
    if data is None:
        return None
    _store(path, draw.choice(([data], {"data": data}, [data, data])))
    return "wrapped in another value"


@mutation("json.deep", LESS, ".json")
def deep(path: Path, draw: Random) -> str | None:
    opener, closer = draw.choice((("[", "]"), ('{"a":', "}")))
    inner = path.read_text(errors="replace") if draw.random() < 0.5 else "1"
    end = closer * _DEPTH if draw.random() < 0.7 else ""
    replace_file(path, (opener * _DEPTH + inner + end).encode())
    return f"{_DEPTH} times {opener!r}"


@mutation("json.twice", LESS, ".json")
def twice(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    replace_file(path, data + draw.choice((b"", b"\n", b",")) + data)
    return "two documents in one file"


@mutation("json.joined_with_itself", LESS, ".json")
def joined_with_itself(path: Path, draw: Random) -> str | None:
    """A timeline whose events, or a part of them, stand there twice: in one list, or in two lists under one key."""
    data = _load(path)
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list) or not any(isinstance(event, dict) and "ph" in event for event in events):
        return None
    again = events[: len(events) // draw.choice((1, 2, 4))]
    if draw.random() < 0.5:
        _store(path, events + again)
        return f"{len(again)} of {len(events)} events twice"
    text = json.dumps({"traceEvents": again, "once more": events}).replace("once more", "traceEvents")
    replace_file(path, text.encode("utf-8", "surrogatepass"))
    return f"{len(again)} and {len(events)} events under one key"


@mutation("json.same_keys", LESS, ".json")
def same_keys(path: Path, draw: Random) -> str | None:
    """A key twice in one object, the second time with another number: readers disagree on which of them counts."""
    data = _load(path)
    found = [(c, k) for c, k in _places(data) if isinstance(c, dict) and type(c[k]) in (int, float)] if data else []
    if not found:
        return None
    container, key = draw.choice(found)
    container[f"{key}\ue000"] = container[key] * 10 + 1
    replace_file(path, json.dumps(data, ensure_ascii=False).replace("\ue000", "").encode())
    return f"{key!r} twice in one object"


@mutation("json.huge_number", LESS, ".json")
def huge_number(path: Path, draw: Random) -> str | None:
    data = _load(path)
    if data is None:
        return None
    container, key = draw.choice(list(_places(data)))
    container[key] = "@@@"
    digits = "9" * draw.choice((400, 5000, 1_000_000))
    replace_file(path, json.dumps(data).replace('"@@@"', digits, 1).encode("utf-8", "surrogatepass"))
    return f"a number of {len(digits)} digits for {str(key)[:40]!r}"


@mutation("json.respelled", SAME, ".json")
def respelled(path: Path, draw: Random) -> str | None:
    data = _load(path)
    if data is None:
        return None
    indent = draw.choice((None, 1, 4))
    text = json.dumps(data, indent=indent, ensure_ascii=draw.random() < 0.5, separators=draw.choice((None, (",", ":"))))
    replace_file(path, text.encode("utf-8", "surrogatepass"))
    return f"written with indent {indent}"


@mutation("json.shuffle_keys", SAME, ".json")
def shuffle_keys(path: Path, draw: Random) -> str | None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            draw.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    data = _load(path)
    if data is None:
        return None
    _store(path, shuffled(data))
    return "keys in another order"
