"""JSON as it is found: cut short, with a byte order mark, with NaN, nested without end.

What stands before the damage is kept: the text is cut after its last complete value and the open brackets are closed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.sources.reference import Note
from advisor.sources.text.textfiles import LARGEST, read_text, require_file, why_unreadable

_DEEPEST = 200
LOOKED_THROUGH = 1 << 22
"""Characters of a document whose keys are looked at one by one: larger ones are lists of measurements."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
_HALF_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""One of the two escapes that are a character together, without the other."""
_CLOSER = {"{": "}", "[": "]"}


Pairs = list[tuple[str, Any]]


def decode(text: str, build: Callable[[Pairs], Any] | None = None) -> Any:
    """json.loads, but integers of thousands of digits, which nothing measures, are infinite instead of an error, and
    halves of a character, which no file can be written with, are U+FFFD."""
    if "\\ud" in text or "\\uD" in text:
        text = _HALF_CHARACTER.sub(r"\\ufffd", text)
    try:
        return json.loads(text, object_pairs_hook=build)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(
            text, object_pairs_hook=build, parse_int=lambda digits: int(digits) if len(digits) < 400 else math.inf
        )


def _decode_once(text: str) -> tuple[Any, list[str]]:
    """The document without the members that one object bears more than once with different values, and their names:
    readers disagree on which of them counts, so that none of them is known."""
    left_out: list[str] = []

    def build(pairs: Pairs) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            for key in dict.fromkeys(key for key, value in pairs if found[key] != value):
                left_out.append(key)
                del found[key]
        return found

    return decode(text, build), left_out


def load_json(path: Path, note: Note, *, whole: bool = False) -> Any:
    """The decoded file, or what of it precedes the first damage; None where nothing is readable, and, where only the
    `whole` can be trusted, where any of it is damaged."""
    file = str(path)
    try:
        if require_file(path) > LARGEST:
            note(file, f"is larger than {LARGEST >> 30} GiB and was not read")
            return None
        text = read_text(path).lstrip("\ufeff")
    except OSError as error:
        note(file, why_unreadable(error))
        return None
    if not text.strip("\x00 \t\r\n"):
        note(file, "is empty")
        return None
    try:
        data, again = _decode_once(text) if len(text) < LOOKED_THROUGH else (decode(text), [])
        if again:
            note(file, f"has the key {again[0][:40]!r} twice in one object, with different values; it was left out")
        if data is None:
            note(file, "holds nothing but null")
        return data
    except RecursionError:
        note(file, "is nested too deeply to be a profiler's file and was not read")
        return None
    except json.JSONDecodeError as error:
        damage = error
    if whole:
        note(file, f"is not valid JSON (line {damage.lineno}): truncated or still being written; it was not read")
        return None
    saved = salvage(text[: damage.pos])
    if saved is None:
        note(file, f"is no JSON: {damage.msg} in line {damage.lineno}")
    elif damage.pos >= len(text.rstrip()) - 1 or damage.msg.startswith("Unterminated string"):
        note(file, f"is cut short after {damage.pos} characters; what precedes the cut was kept")
    else:
        note(
            file, f"is damaged in line {damage.lineno}, column {damage.colno} ({damage.msg}); the part before was kept"
        )
    return saved


def salvage(text: str) -> Any:
    """The largest part of a broken document that ends with a complete value; None where there is none."""
    stack: list[str] = []
    end, open_at_end = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in _CLOSER:
            stack.append(_CLOSER[mark])
            if len(stack) > _DEEPEST:
                return None
        elif mark in "}]":
            if not stack or stack.pop() != mark:
                break
            end, open_at_end = token.end(), "".join(reversed(stack))
        elif mark == ",":
            end, open_at_end = token.start(), "".join(reversed(stack))
    if not end:
        return None
    try:
        return decode(text[:end] + open_at_end)
    except (json.JSONDecodeError, RecursionError):
        return None
