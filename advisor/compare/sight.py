"""What both sides can see. A table that one side lacks, or of which rows are missing, shows nothing there: what rests
on it is neither gone nor new, and its numbers are of other ranks or of another table. Such facts are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from advisor.compare.facts import FactTable
from advisor.facts.base import FactKind
from advisor.model import Fact, Finding
from advisor.tables import FILES

_STEPS = "step.count"
_NAMED = 4
"""Ranks named where many lack a file."""


@dataclass(frozen=True)
class Sight:
    """Facts of both sides without those that only one of them could measure alike."""

    old: FactTable
    new: FactTable
    lost: frozenset[str] = frozenset()
    """Names of facts that were measured before in tables that are gone or cut."""
    gained: frozenset[str] = frozenset()
    """Names of facts that are measured now in tables that were not there before, or not whole."""
    files: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Those tables, by the names that users know; either side's."""
    cut: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Tables of which rows are missing, either side's."""

    def unlike(self, finding: Finding) -> tuple[str, ...]:
        """The facts of this finding that the other side could not measure, or measured otherwise."""
        told = dict.fromkeys(evidence.fact for evidence in finding.evidence)
        return tuple(name for name in told if name in self.lost or name in self.gained)


def sight(old: FactTable, new: FactTable, kinds: Mapping[str, FactKind]) -> Sight:
    """What of these facts may be held against each other. Reports that do not say which tables they had are taken to
    have had the same ones."""
    before, after = _Tables(old), _Tables(new)
    if not before.ranks & after.ranks:
        return Sight(old, new)
    cut = {table for side in (before, after) for table, ranks in side.cut.items() if ranks & before.ranks & after.ranks}
    gone, come = before.beyond(after), after.beyond(before)
    lost, gained = (
        {name: told for name, told in _resting(side, tables, kinds) if told & (cut | other.keys())}
        for side, tables, other in ((old, before, gone), (new, after, come))
    )
    if _STEPS in {*lost, *gained} and old.number(_STEPS) != new.number(_STEPS):  # all that is of a step is of others
        lost, gained = (
            {name: told for name, told in _resting(side, tables, kinds) if told}
            for side, tables in ((old, before), (new, after))
        )
    return Sight(
        old.without(gained), new.without(lost), frozenset(lost), frozenset(gained),
        (before.named(gone, lost), after.named(come, gained)),
        (before.named(before.cut, lost), after.named(after.cut, gained)),
    )  # fmt: skip


class _Tables:
    """Tables of one side by the ranks that have them, and those of which rows are missing."""

    def __init__(self, facts: FactTable) -> None:
        self.ranks = frozenset(rank for _, rank in facts.of("rank.tables"))
        self.at_hand = _by_table(facts, "rank.tables")
        self.cut = _by_table(facts, "rank.cut_tables")

    def beyond(self, other: _Tables) -> dict[str, frozenset[str]]:
        """Tables that ranks of both sides have here and lack there, with these ranks."""
        shared = self.ranks & other.ranks
        found: dict[str, frozenset[str]] = {}
        for named, ranks in self.at_hand.items():
            if lacking := (ranks & shared) - other.at_hand.get(named, frozenset()):
                table = named.partition("/")[0]  # without a kind of its files, or a part of a step, it is another one
                found[table] = found.get(table, frozenset()) | lacking
        return found

    def named(self, tables: Mapping[str, frozenset[str]], resting: Mapping[str, set[str]]) -> tuple[str, ...]:
        """Files of those tables on which something rests that would else be compared; with the ranks, where these are
        not all."""
        told = set().union(*resting.values())
        return tuple(
            sorted({FILES.get(table, table) + self._of(ranks) for table, ranks in tables.items() if table in told})
        )

    def _of(self, ranks: frozenset[str]) -> str:
        if ranks == self.ranks:
            return ""
        few = sorted(ranks, key=lambda rank: (len(rank), rank))
        return f" (rank {', '.join(few[:_NAMED])}{' …' if len(few) > _NAMED else ''})"


def _by_table(facts: FactTable, name: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for (_, rank), item in facts.of(name).items():
        for table in item.value if isinstance(item.value, tuple) else ():
            found.setdefault(str(table), set()).add(rank)
    return {table: frozenset(ranks) for table, ranks in found.items()}


def _resting(facts: FactTable, tables: _Tables, kinds: Mapping[str, FactKind]) -> Iterator[tuple[str, set[str]]]:
    """(name of a fact, the tables that it was read from)."""
    for name in facts.names():
        kind = kinds.get(name)
        yield (
            name,
            {
                table
                for item in facts.of(name).values()
                for table in _read_from(item, tables, () if kind is None else kind.needs)
            },
        )


def _read_from(item: Fact, tables: _Tables, needs: Iterable[str]) -> Iterator[str]:
    """The tables of a fact. Read back from JSON it knows files alone, by whose names today's tables are told."""
    told = [source.table for source in item.sources if source.table]
    if told:
        yield from told
        return
    names = {PurePosixPath(source.file).name for source in item.sources}
    yield from (table for table in tables.at_hand if any(fnmatchcase(name, FILES.get(table, "")) for name in names))
    for need in needs:
        yield from [table for table in need.split("|") if table in tables.at_hand][:1]
