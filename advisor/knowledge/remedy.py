"""A remedy as its file states it, before a finding fills in its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.basics.resources import resource
from advisor.model import Text, Verify


class RemedySpec(Struct, frozen=True):
    """A file of `knowledge_base/remedies/`; texts are templates."""

    id: str
    title: Text
    action: Text
    parameter: Mapping[str, str] = field(default_factory=dict)
    """framework, layout of its older versions, or "any" -> its name of the setting for `current` and `proposed`"""
    effort: str = ""
    brings_evidence: bool = False
    risk: Text | None = None
    verify: Verify | None = None
    snippet: Mapping[str, str] = field(default_factory=dict)
    """framework, or layout of its older versions -> code"""
    statements: tuple[str, ...] = ()
    path: Path = Path()
    line: int = 1

    def templates(self) -> Iterator[str]:
        for text in (self.title, self.action, self.risk):
            if text is not None:
                yield from (text.en, text.zh)
        yield from self.snippet.values()


def remedy_files(packs: Sequence[Path] = ()) -> Iterator[Path]:
    """Files of the shipped remedies and of those of these packs. Links that lead out of a folder are left out: a pack
    must not show files that are not its own."""
    for folder in (resource("knowledge_base", "remedies"), *(pack / "remedies" for pack in packs)):
        root = folder.resolve()
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path
