"""Which facts rest on tables that hold impossible numbers or contradict one another: the mark travels with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from advisor.facts.base import FactKind, FactSet, Family, Run
from advisor.model import Fact

_DESCRIBES = ("text", "bool", "list", "count")
"""Units of facts that describe a recording; times and shares beside them carry the doubt."""


def doubted_tables(run: Run) -> dict[str, dict[int, set[str]]]:
    """table -> rank -> files in which something about it cannot be."""
    found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for rank in run.ranks:
        for problem in rank.problems:
            for table in problem.doubted:
                found[table][rank.rank].add(problem.file)
    return found


def doubted_ranks(run: Run, table: str) -> frozenset[int]:
    """Ranks of which this table cannot be relied on."""
    return frozenset(rank.rank for rank in run.ranks for problem in rank.problems if table in problem.doubted)


def doubt(run: Run, item: Fact, tables: Iterable[str], text: str) -> None:
    """Tells that this fact of these tables cannot be, of every rank that it is about; of a run, of the ranks that have
    them. It is told of the file that it was read from; the others are doubted with it, for what it was held against may
    be wrong as well."""
    wanted = {alternative for table in tables for alternative in table.split("|")}
    read = {PurePath(source.file).name for source in item.sources}
    for rank in run.ranks:
        own = sorted(wanted & rank.tables.keys())
        if own and (not item.subject.ranks or rank.rank in item.subject.ranks):
            paths = [rank.tables[table].paths[0] for table in own]
            place = next((path for path in paths if path.name in read), paths[0])
            rank.note(rank.relative(place), text, tuple(own))


def mark(run: Run, facts: FactSet, chosen: Sequence[Family]) -> None:
    """Marks every fact with the doubted files that it rests on."""
    tables = doubted_tables(run)
    if not tables:
        return
    rests = {
        kind.name: tables_of(kind, family, chosen)
        for family in chosen
        for kind in family.kinds
        if kind.unit not in _DESCRIBES
    }
    for item in list(facts):
        if item.name in rests:
            files = _files(item, rests[item.name], tables)
            if files:
                facts.replace(replace(item, doubted=files))


def tables_of(kind: FactKind, family: Family, chosen: Sequence[Family]) -> frozenset[str]:
    """The tables that a fact of this family rests on, alternatives with them, and those of the reductions that the
    family uses: `chosen` are the families that make them."""
    makers = {maker.reduce.key: maker.tables for maker in chosen if maker.reduce is not None}
    needs = (alternative for need in kind.needs for alternative in need.split("|"))
    return frozenset(needs).union(family.tables, *(makers.get(key, ()) for key in family.uses))


def _files(item: Fact, rests: frozenset[str], tables: dict[str, dict[int, set[str]]]) -> tuple[str, ...]:
    found = {
        file
        for table in rests & tables.keys()
        for rank in item.subject.ranks or tables[table]
        for file in tables[table].get(rank, ())
    }
    return tuple(sorted(found))
