"""The numbers that facts about a recording rest on (knowledge_base/recording.yaml)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from advisor.knowledge.statements import document


@cache
def section(name: str) -> dict[str, float]:
    """One section's numbers by name, without their origins."""
    return {key: float(entry["value"]) for key, entry in _document()[name].items()}


@cache
def told_by(work: str) -> re.Pattern[str]:
    """What tells this kind of work by names, whatever their case."""
    return re.compile("|".join(f"(?:{each})" for each in _document()["work"][work]), re.IGNORECASE)


@cache
def _document() -> dict[str, Any]:
    return dict(document("recording.yaml"))
