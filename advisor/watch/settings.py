"""Numbers of `knowledge_base/watch.yaml`, and what the user chose."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from advisor.knowledge.statements import document
from advisor.model import Severity


@cache
def number(name: str) -> float:
    """A number of knowledge_base/watch.yaml."""
    return float(document("watch.yaml")[name]["value"])


@dataclass(frozen=True)
class Settings:
    """What to watch and how. Times in seconds."""

    folder: Path
    output: Path
    poll_s: float = field(default_factory=lambda: number("poll"))
    settled_s: float = field(default_factory=lambda: number("settled"))
    longest_s: float = field(default_factory=lambda: number("longest_judging"))
    once: bool = False
    """Judge what is finished and end."""
    process: int | None = None
    """End with this process, the training."""
    severity: Severity = Severity.HIGH
    """A new root cause this severe is worth a call."""
    command: str | None = None
    webhook: str | None = None
    lang: str = "en"
    rules: tuple[str, ...] = ()
    config: str | None = None
    allowed: tuple[str, ...] = ()
