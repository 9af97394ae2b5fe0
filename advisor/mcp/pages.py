"""Answers in pages: an agent pays for every character it is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

PAGE_BYTES = 12_000
"""Of a list in one answer; one entry goes along however large it is."""
LONGEST_TEXT = 60_000
"""Characters of a resource."""


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


def cut(text: str) -> str:
    """A text that is not endless; says where it was cut."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n…\n({len(text)} characters in all)\n"
