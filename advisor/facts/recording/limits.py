"""The numbers that facts about a recording rest on (knowledge_base/recording.yaml)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from advisor.knowledge.statements import document


@cache
def section(name: str) -> dict[str, float]:
    """One section's numbers by name, without their origins."""
    return {key: float(entry["value"]) for key, entry in _document()[name].items()}


@cache
def told_by(work: str) -> Callable[[str], bool]:
    """What tells whether a name, in whatever case, is of this kind of work. Names are written small first: a search
    that ignores case looks at every letter of tens of thousands of them."""
    pattern = re.compile("|".join(f"(?:{each})" for each in _document()["work"][work]))
    return lambda name: pattern.search(name.lower()) is not None


@cache
def _document() -> dict[str, Any]:
    return dict(document("recording.yaml"))
