"""Where a fact was read, for those whose family names no file or no columns: every number can be looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from advisor.facts.base import FactKind, Run
from advisor.model import Fact, Source
from advisor.sources.base import Rank
from advisor.tables import TABLES

_IDENTITY = {
    "profiler_metadata": ("distributed_args", "parallel_group_info"),
    "profiler_info": ("rank_id", "rank_size"),
}
"""Entries of the metadata that tell who took part."""


class Origins:
    """Completes sources from the tables that a kind of fact needs, or else from the folder that tells who took part."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def traced(self, item: Fact, kind: FactKind | None, tables: Sequence[str] = ()) -> Fact:
        """The fact, with a file and columns for each of its sources. `tables` are those that its family reads."""
        known = tuple(source for source in item.sources if source.file)
        if known and all(source.columns for source in known):
            return item if len(known) == len(item.sources) else replace(item, sources=known)
        needs = (*kind.needs, *tables) if kind is not None and kind.needs else ()
        sources = tuple(self._with_columns(source, needs) for source in known) or self._of_needs(item, needs)
        return replace(item, sources=sources or self._of_folders(item))

    def _with_columns(self, source: Source, needs: Iterable[str]) -> Source:
        tables = () if source.columns else self._tables.get(source.file, ())
        wanted = {table for need in needs for table in need.split("|")}
        chosen = [table for table in tables if table in wanted] or tables
        return replace(source, columns=source.columns or tuple(dict.fromkeys(c for t in chosen for c in _headings(t))))

    @cached_property
    def _tables(self) -> dict[str, tuple[str, ...]]:
        """file -> tables that are read from it."""
        found: dict[str, dict[str, None]] = {}
        for rank in self.run.ranks:
            for table, reference in rank.tables.items():
                for path in reference.paths:
                    found.setdefault(rank.relative(path), {})[table] = None
        return {file: tuple(tables) for file, tables in found.items()}

    def _of_needs(self, item: Fact, needs: Iterable[str]) -> tuple[Source, ...]:
        """The first table at hand."""
        for table in (table for need in needs for table in need.split("|")):
            rank = next((rank for rank in self._ranks(item) if rank.has(table)), None)
            if rank is not None:
                return (Source(rank.relative(rank.tables[table].paths[0]), _headings(table)),)
        return ()

    def _of_folders(self, item: Fact) -> tuple[Source, ...]:
        rank = next(iter(self._ranks(item)), None)
        if rank is None:
            return ()
        for entry, columns in _IDENTITY.items():
            if source := rank.source_of_info(entry, *columns):
                return (source,)
        file = rank.relative(rank.root)
        if file == "." or rank.root == rank.base:
            first = next((path for table in rank.tables.values() for path in table.paths), None)
            file = rank.relative(first) if first is not None else "."
        return (Source(file),)

    def _ranks(self, item: Fact) -> Iterable[Rank]:
        """Those that the fact is about; all where it is about none in particular."""
        own = sorted(self._places[rank] for rank in {*item.subject.ranks} if rank in self._places)
        return [self.run.ranks[place] for place in own] or self.run.ranks

    @cached_property
    def _places(self) -> dict[int, int]:
        return {rank.rank: place for place, rank in enumerate(self.run.ranks)}


def _headings(table: str) -> tuple[str, ...]:
    """The columns a table cannot do without, as its file heads them; all where none is marked."""
    columns = TABLES[table].columns if table in TABLES else ()
    chosen = [column for column in columns if column.required] or columns
    return tuple((column.headings or (column.name,))[0] for column in chosen)
