"""The numbers that facts about a recording rest on (knowledge_base/recording.yaml)."""

from __future__ import annotations

from functools import cache
from typing import Any

from advisor.basics.resources import resource


@cache
def section(name: str) -> dict[str, float]:
    """One section's numbers by name, without their origins."""
    return {key: float(entry["value"]) for key, entry in document()[name].items()}


@cache
def document() -> dict[str, Any]:
    """The whole file."""
    import yaml

    text = resource("knowledge_base", "recording.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))
