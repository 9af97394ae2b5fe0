"""How far savings are off, and what a direction can lose (knowledge_base/savings.yaml)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from advisor.knowledge.statements import document


@lru_cache(maxsize=1)
def _terms() -> dict[str, Any]:
    return dict(document("savings.yaml"))


def usual_error(way: str) -> float:
    """Part of a saving by which it is off, at most, known in this way: replay, comparison or estimate."""
    return float(_terms()["error"][way]["value"])


def pools() -> dict[str, list[list[str]]]:
    """direction -> lists of facts: of each the first measured counts, their sum is what the direction can lose."""
    return dict(_terms()["pools"])
