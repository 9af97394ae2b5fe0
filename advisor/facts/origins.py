"""Where a fact was read, for those whose family names no file or no columns: every number can be looked up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

from advisor.facts.base import FactKind, Run
from advisor.model import Fact, Source
from advisor.sources.base import Rank
from advisor.sources.headings import Beginning, beginning_of, headings_of
from advisor.tables import TABLES

_IDENTITY = {
    "profiler_metadata": ("distributed_args", "parallel_group_info"),
    "profiler_info": ("rank_id", "rank_size"),
}
"""Entries of the metadata that tell who took part."""


class Origins:
    """Completes sources: a fact names every table at hand that its kind needs, with what the file calls its columns,
    or else the folder that tells who took part. A family names the tables only where they differ from these."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._beginnings: dict[str, Beginning] = {}
        """A file's name without numbers -> what one such file tells of its columns."""
        self._headings: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
        """Table and such a name -> what the file calls the table's columns."""
        self._finished: dict[Source, Source] = {}
        """What was asked for -> the same in words of its file: facts of one table name few of its columns."""

    def traced(self, item: Fact, kind: FactKind | None, tables: Sequence[str] = ()) -> Fact:
        """The fact, with a file for each of its sources. `tables` are those that its family reads."""
        given = (
            source if source.file else self._of_need(item, source.table, source.columns) for source in item.sources
        )
        named = tuple(source for source in given if source is not None)
        told = {source.table for source in named} | {t for s in named if not s.table for t in self._read_from(s.file)}
        needs = () if kind is None else kind.needs
        lacking = (need for need in needs if told.isdisjoint(need.split("|")))
        found = [*(source for need in lacking if (source := self._of_need(item, need)) is not None), *named]
        if not found and needs:
            found += filter(None, [self._of_need(item, "|".join(tables))])
        sources = tuple(dict.fromkeys(map(self._written, found))) or self._of_folders(item)
        return item if sources == item.sources else replace(item, sources=sources)

    def _written(self, source: Source) -> Source:
        """The source with what its file calls the columns, and nothing of those that the file does not have."""
        if source not in self._finished:
            self._finished[source] = self._in_words_of_its_file(source)
        return self._finished[source]

    def _in_words_of_its_file(self, source: Source) -> Source:
        rank = self._read_from(source.file).get(source.table)
        if rank is None or not source.columns:
            return source
        path = rank.tables[source.table].paths[0]
        alike = re.sub(r"[0-9]+", "", path.name)
        if alike not in self._beginnings:
            self._beginnings[alike] = beginning_of(path)
        if (source.table, alike) not in self._headings:
            self._headings[source.table, alike] = headings_of(source.table, self._beginnings[alike])
        found = self._headings[source.table, alike]
        return replace(source, columns=tuple(dict.fromkeys(name for c in source.columns for name in found.get(c, ()))))

    def _of_need(self, item: Fact, need: str, columns: Sequence[str] = ()) -> Source | None:
        """The first of these tables that is at hand, with these columns, or those that the fact is named after if it
        has some, or those that it cannot do without, or all."""
        for table in need.split("|"):
            if (rank := next((rank for rank in self._ranks(item) if rank.has(table)), None)) is not None:
                return rank.source(table, *(columns or _columns(table, item.name)))
        return None

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
        """Those that the fact is about; where it is about none in particular, those whose files it names, then all."""
        own = sorted(self._places[rank] for rank in {*item.subject.ranks} if rank in self._places)
        if own:
            return [self.run.ranks[place] for place in own]
        named = (rank for source in item.sources for rank in self._read_from(source.file).values())
        return chain(named, self.run.ranks)

    def _read_from(self, file: str) -> Mapping[str, Rank]:
        """Table -> rank, for the tables that are read from a file."""
        return self._by_file.get(file, {})

    @cached_property
    def _by_file(self) -> dict[str, dict[str, Rank]]:
        found: dict[str, dict[str, Rank]] = {}
        for rank in self.run.ranks:
            for table, reference in rank.tables.items():
                for path in reference.paths:
                    found.setdefault(rank.relative(path), {}).setdefault(table, rank)
        return found

    @cached_property
    def _places(self) -> dict[int, int]:
        return {rank.rank: place for place, rank in enumerate(self.run.ranks)}


def _columns(table: str, fact: str) -> tuple[str, ...]:
    columns = TABLES[table].columns if table in TABLES else ()
    name = fact.rpartition(".")[2]
    alike = [c for c in columns if c.dtype != "str" and c.name.partition("_")[0] == name.partition("_")[0]]
    chosen = [c for c in columns if c.name == name] or alike or [c for c in columns if c.required] or columns
    return tuple(column.name for column in chosen)
