"""A remedy as its file states it, before a finding fills in its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.model import Text, Verify


@dataclass(frozen=True)
class RemedySpec:
    """A file of `knowledge_base/remedies/`; texts are templates."""

    id: str
    title: Text
    action: Text
    parameter: str | None = None
    effort: str = ""
    brings_evidence: bool = False
    risk: Text | None = None
    verify: Verify | None = None
    snippet: Mapping[str, str] = field(default_factory=dict)
    """framework -> code"""
    statements: tuple[str, ...] = ()
    path: Path = Path()
    line: int = 1

    def templates(self) -> Iterator[str]:
        for text in (self.title, self.action, self.risk):
            if text is not None:
                yield from (text.en, text.zh)
        yield from self.snippet.values()
