"""From the evidence back to the rows of the files: what a reader looks up to see the measurement with own eyes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from advisor.facts.base import Run
from advisor.model import Evidence, Finding, Source
from advisor.sources.text.row_ranges import LARGEST, row_range
from advisor.sources.text.textfiles import read_text
from advisor.tables import TABLES, Column

MOST_FILES = 64
"""Files looked into; a thousand ranks that are late alike are told by the first of them."""
_Key = tuple[str, tuple[str, ...]]


def with_rows(findings: Sequence[Finding], run: Run) -> tuple[Finding, ...]:
    """The findings, their evidence with the first and last line of the steps it was measured from, and of a table in
    several files with the one that names what it is about."""
    findings = _in_slices(findings, run)
    wanted: dict[_Key, None] = {}
    for finding in findings:
        for item in finding.evidence:
            if item.source is not None and item.source.steps and item.source.file.lower().endswith(".csv"):
                wanted.setdefault((item.source.file, item.source.steps))
    chosen = list(wanted)[:MOST_FILES]
    places = _places(run, {file for file, _ in chosen})
    found = {
        (file, steps): rows
        for file, steps in chosen
        if file in places and (rows := row_range(*places[file], frozenset(steps))) is not None
    }
    return tuple(
        replace(finding, evidence=tuple(replace(i, source=_located(i.source, found)) for i in finding.evidence))
        for finding in findings
    )


_NAMED = ("operator_type", "operator", "collective")
"""Subjects that files know by the same name."""


def _in_slices(findings: Sequence[Finding], run: Run) -> tuple[Finding, ...]:
    slices = {
        (rank.relative(reference.paths[0]), table): (rank, reference.paths[:MOST_FILES])
        for rank in run.profile.ranks
        for table, reference in rank.tables.items()
        if len(reference.paths) > 1
    }

    @cache
    def place(file: str, table: str, name: str) -> str:
        rank, paths = slices[file, table]
        return next((rank.relative(path) for path in paths if _names(path, name)), file)

    def settled(item: Evidence) -> Evidence:
        source = item.source
        if source is None or item.subject.kind not in _NAMED or (source.file, source.table) not in slices:
            return item
        return replace(item, source=replace(source, file=place(source.file, source.table, item.subject.id)))

    return tuple(replace(finding, evidence=tuple(map(settled, finding.evidence))) for finding in findings)


def _names(path: Path, name: str) -> bool:
    """Whether a file holds a text; a large one, which nobody reads once more for this, may."""
    try:
        return path.stat().st_size > LARGEST or name in read_text(path)
    except (OSError, ValueError):
        return False


def _places(run: Run, files: set[str]) -> dict[str, tuple[Path, Column]]:
    """file as evidence names it -> its path and its column of steps."""
    places = {}
    for rank in run.profile.ranks:
        for name, reference in rank.tables.items():
            table = TABLES.get(name)
            if table is None or "step" not in table.names:
                continue
            file = rank.relative(reference.paths[0])
            if file in files:
                places[file] = reference.paths[0], table.column("step")
    return places


def _located(source: Source | None, found: dict[_Key, tuple[int, int]]) -> Source | None:
    rows = None if source is None else found.get((source.file, source.steps))
    return source if source is None or rows is None else replace(source, rows=rows)
