"""The numbers that facts are measured by (knowledge_base/measuring.yaml)."""

from __future__ import annotations

from functools import cache
from typing import Any

from advisor.knowledge.statements import document


def limit(section: str, name: str) -> float:
    """One number of a section, in the unit that its name tells."""
    return float(_document()[section][name]["value"])


@cache
def _document() -> dict[str, Any]:
    return dict(document("measuring.yaml"))
