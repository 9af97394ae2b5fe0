"""The subjects of a profile and who is whose peer: what comparisons with peers run over, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from advisor.facts.base import FactKind, FactSet
from advisor.model import COLLECTION, RUN, Subject
from advisor.ruleset.language.arithmetic import normal, summary
from advisor.ruleset.language.expression import FactRef
from advisor.ruleset.language.scopes import IDENTITY, SINGLE, place


class Table:
    """The values of one expression for one group of peers, and statistics over them, computed when asked for."""

    __slots__ = ("_statistics", "numbers", "values")

    def __init__(self) -> None:
        self.values: dict[Subject, Any] | None = None
        self.numbers: list[float] = []
        self._statistics: dict[str, float | None] = {}

    def statistic(self, name: str) -> float | None:
        """A statistic of `arithmetic.summary` over the numbers."""
        if name not in self._statistics:
            self._statistics[name] = summary(name, self.numbers)
        return self._statistics[name]


class Column(Struct, frozen=True):
    """One fact as expressions see it, by subject; `single` is the subject it stands for in rules of another kind."""

    values: Mapping[Subject, Any]
    single: Subject | None = None


class Population:
    """Subjects by kind, by peer group and by rank, with a cache for statistics over them."""

    def __init__(self, facts: FactSet, catalogue: Mapping[str, FactKind]) -> None:
        self.facts, self.catalogue, self.size = facts, catalogue, len(facts)
        self.cache: dict[Any, Any] = {}
        self.places: dict[Any, str] = {}
        self._tables: dict[Any, Table] = {}
        self._columns: dict[tuple[str, str], Column | None] = {}
        self._by_kind: dict[str, list[Subject]] = {"run": [RUN], "collection": [COLLECTION]}
        self._known = {subject for fact in facts for subject in (fact.subject,)}
        for subject in sorted(self._known):
            if subject.kind not in SINGLE:
                self._by_kind.setdefault(subject.kind, []).append(subject)

    def table(self, key: Any) -> Table:
        """The values and statistics kept under this key."""
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = Table()
        return found

    def column(self, ref: FactRef, kind: str) -> Column | None:
        """The values of a fact named without an alias, for subjects of this kind; None where it is no plain look-up."""
        key = (ref.fact, kind)
        if key not in self._columns:
            where = "" if ref.fact in IDENTITY else place(ref, kind, self.catalogue)
            single = {"self": None, "run": RUN, "collection": COLLECTION}.get(where)
            values = {subject: normal(fact.value) for subject, fact in self.facts.of(ref.fact).items()}
            self._columns[key] = Column(values, single) if where else None
        return self._columns[key]

    def of_kind(self, kind: str) -> Sequence[Subject]:
        """Every subject of this kind, sorted."""
        return self._by_kind.get(kind, ())

    def all(self) -> list[Subject]:
        """Every subject there is."""
        return [subject for subjects in self._by_kind.values() for subject in subjects]

    def around(self, subject: Subject, kind: str) -> tuple[Any, Sequence[Subject]]:
        """The subjects of `kind` that a comparison made for `subject` runs over, and a key that names this choice:
        all of them for the run; its peer group among its own kind; those that share a rank with it otherwise."""
        if subject.kind in SINGLE:
            return (kind,), self.of_kind(kind)
        if subject.kind == kind:
            group = self.facts.value(f"{kind}.peer_group", subject)
            return (kind, "group", group), self._groups(kind).get(group, ())
        if not subject.ranks:
            return (kind,), self.of_kind(kind)
        return (kind, "ranks", subject.ranks), self._sharing(subject.ranks, kind)

    def holder(self, subject: Subject, kind: str) -> Subject | None:
        """The one subject of `kind` that holds all ranks of `subject`; None where there is none, or several."""
        key = ("holder", subject.ranks, kind)
        if key not in self.cache:
            ranks = set(subject.ranks)
            found = [each for each in self._sharing(subject.ranks, kind) if ranks <= set(each.ranks)] if ranks else []
            self.cache[key] = found[0] if len(found) == 1 else None
        known: Subject | None = self.cache[key]
        return known

    def _groups(self, kind: str) -> dict[Any, list[Subject]]:
        key = ("groups", kind)
        if key not in self.cache:
            groups: dict[Any, list[Subject]] = {}
            for subject in self.of_kind(kind):
                groups.setdefault(self.facts.value(f"{kind}.peer_group", subject), []).append(subject)
            self.cache[key] = groups
        known: dict[Any, list[Subject]] = self.cache[key]
        return known

    def _sharing(self, ranks: tuple[int, ...], kind: str) -> Sequence[Subject]:
        key = ("sharing", ranks, kind)
        if key not in self.cache:
            by_rank = self._by_rank(kind)
            self.cache[key] = sorted({each for rank in ranks for each in by_rank.get(rank, ())})
        known: list[Subject] = self.cache[key]
        return known

    def _by_rank(self, kind: str) -> dict[int, list[Subject]]:
        key = ("by rank", kind)
        if key not in self.cache:
            by_rank: dict[int, list[Subject]] = {}
            for subject in self.of_kind(kind):
                for rank in subject.ranks:
                    by_rank.setdefault(rank, []).append(subject)
            self.cache[key] = by_rank
        known: dict[int, list[Subject]] = self.cache[key]
        return known


_POPULATIONS: WeakKeyDictionary[FactSet, Population] = WeakKeyDictionary()


def population_of(facts: FactSet, catalogue: Mapping[str, FactKind]) -> Population:
    """The population of these facts, kept as long as they live and do not grow."""
    found = _POPULATIONS.get(facts)
    if found is None or found.size != len(facts) or found.catalogue is not catalogue:
        found = _POPULATIONS[facts] = Population(facts, catalogue)
    return found


def overlap(one: Subject, other: Subject) -> bool:
    """Whether two subjects share a rank; one without ranks stands for the whole run and shares with everything."""
    return not one.ranks or not other.ranks or bool(set(one.ranks) & set(other.ranks))
