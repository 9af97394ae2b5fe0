"""The numbers that facts about a recording rest on (knowledge_base/recording.yaml)."""

from __future__ import annotations

from functools import cache
from typing import Any

from advisor.knowledge.statements import document


@cache
def section(name: str) -> dict[str, float]:
    """One section's numbers by name, without their origins."""
    return {key: float(entry["value"]) for key, entry in _document()[name].items()}


@cache
def patterns(work: str) -> tuple[str, ...]:
    """The regular expressions that tell this kind of work by names."""
    return tuple(map(str, _document()["work"][work]))


@cache
def _document() -> dict[str, Any]:
    return dict(document("recording.yaml"))
