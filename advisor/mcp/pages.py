"""Answers in pages: an agent pays for every character it is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

PAGE_BYTES = 12_000
"""Of a list in one answer; one entry goes along however large it is."""
LONGEST_TEXT = 60_000
"""Characters of a resource."""
LONGEST_REFUSAL = 1_000
"""Characters of a refusal: it repeats what was asked, and that may be of any length."""
_LONGEST_CURSOR = 9


def page(rows: Sequence[Any], offset: int, limit: int, name: str) -> dict[str, Any]:
    """The rows from `offset` on that fit into one answer, how many there are, and where the next page begins."""
    chosen: list[Any] = []
    size = 0
    for row in rows[offset : offset + limit]:
        size += len(json.dumps(row, ensure_ascii=False))
        if chosen and size > PAGE_BYTES:
            break
        chosen.append(row)
    after = offset + len(chosen)
    return {name: chosen, "total": len(rows), "next_offset": after if after < len(rows) else None}


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """A text that is not endless; says where it was cut."""
    return text if len(text) <= most else f"{text[:most]}\n…\n({len(text)} characters in all)\n"


def sendable(text: str) -> str:
    """A text that can be sent: bytes of a file's name that are no UTF-8 would end the connection."""
    return text.encode("utf-8", "replace").decode("utf-8")


def start_of(cursor: str | None) -> int | None:
    """Where the page of a list begins that a cursor names; None for a cursor that was never handed out."""
    text = cursor or "0"
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_CURSOR else None


def whole(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with `2.0` as 2: one number to JSON and to its schemas, none to count with."""
    return {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in arguments.items()}
