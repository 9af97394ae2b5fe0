"""Facts: the catalogue of what can be measured, and how a family measures it.

A family is one module of `facts/`. It declares the facts it brings (`kinds`), reduces each rank's tables to a few
kilobytes (`reduce`: independent per rank, runs in worker processes) and turns the reductions of all ranks into facts
(`measure`: runs once). The pipeline asks only for families that a selected rule needs, so files nobody needs are
never opened.

Reductions are asked for by typed keys (`run.each(STEPS)`), and what is derived from them once a run is a function
marked with `computed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, TypeVar, cast

from advisor.model import Fact, Problem, ProfileInfo, Source, Subject, Value
from advisor.sources.base import Profile, Rank

T = TypeVar("T")


@dataclass(frozen=True)
class FactKind:
    """One line of the catalogue (`docs/facts.md`)."""

    name: str
    unit: str
    scopes: tuple[str, ...]
    meaning: str
    formula: str = ""
    """How it is computed and where the formula comes from."""
    needs: tuple[str, ...] = ()
    """Canonical tables without which it cannot be measured (alternatives separated by "|")."""


@dataclass(frozen=True)
class Reduction(Generic[T]):
    """The key to what a family reduces from a rank: it stands beside the type of that object."""

    name: str
    """The family's."""
    type: type[T]
    settle: Callable[[dict[int, T]], dict[int, T]] | None = None
    """What ranks tell each other: all ranks' at once, before anyone asks."""

    def by(self, function: Callable[[Rank], T | None]) -> Reducer:
        """How a rank is reduced to it; the function returns None where the rank's tables tell nothing."""
        return Reducer(self, function)


@dataclass(frozen=True)
class Reducer:
    """Reduces one rank, independent of all others, in whichever process."""

    key: Reduction[Any]
    function: Callable[[Rank], object]

    def __call__(self, rank: Rank) -> object:
        found = self.function(rank)
        if found is not None and not isinstance(found, self.key.type):
            raise TypeError(f"{self.key.name} is reduced to a {type(found).__name__}, not a {self.key.type.__name__}")
        return found


@dataclass
class Run:
    """All reductions of a profile: what `measure` functions work on."""

    profile: Profile
    _reductions: dict[int, dict[Reduction[Any], object]] = field(default_factory=dict)
    """rank -> key -> what its reducer returned (absent where it returned None)."""
    _each: dict[Reduction[Any], dict[int, Any]] = field(default_factory=dict, repr=False, compare=False)
    """What `each` gave."""
    _derived: dict[Callable[[Run], Any], object] = field(default_factory=dict, repr=False, compare=False)
    """What `computed` functions returned."""

    @property
    def ranks(self) -> list[Rank]:
        return self.profile.ranks

    def keep(self, rank: int, reductions: Mapping[Reduction[Any], object]) -> None:
        """Adds one rank's reductions."""
        self._reductions.setdefault(rank, {}).update(reductions)
        self._each.clear()

    def each(self, key: Reduction[T]) -> dict[int, T]:
        """rank -> what it was reduced to, in rank order, only where there is something. The same object for all who
        ask: not to be changed."""
        if key not in self._each:
            found = {r: kept[key] for r, kept in sorted(self._reductions.items()) if key in kept}
            self._each[key] = key.settle(cast(dict[int, T], found)) if key.settle else found
        return cast(dict[int, T], self._each[key])

    def once(self, function: Callable[[Run], T], make: Callable[[Run], T]) -> T:
        """What is kept of this function; made where nothing is yet. For `computed`."""
        if function not in self._derived:
            self._derived[function] = make(self)
        return cast(T, self._derived[function])


def computed(make: Callable[[Run], T]) -> Callable[[Run], T]:
    """Marks a function of a run whose result is worked out once a run and shared by all who ask."""

    @wraps(make)
    def function(run: Run) -> T:
        return run.once(function, make)

    return function


@dataclass(frozen=True)
class Family:
    """One module of facts. `measure` reads the reductions that `uses` names, those of `fallbacks` only where the
    profile has none of `tables`, and facts of the families in `after`, which are measured before."""

    name: str
    kinds: tuple[FactKind, ...]
    measure: Callable[[Run, FactSet], Iterable[Fact]]
    reduce: Reducer | None = None
    tables: tuple[str, ...] = ()
    uses: tuple[Reduction[Any], ...] = ()
    fallbacks: tuple[Reduction[Any], ...] = ()
    after: tuple[str, ...] = ()
    built_in: bool = True
    """Extractors are not: what is wrong with them is told by the extractor's name and ends no test."""


class FactSet:
    """Measured facts by name and subject, and the reasons for those that are absent."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, dict[Subject, Fact]] = {}
        self._count = 0
        self.absent: dict[str, str] = {}
        self._doubted: set[str] = set()
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> None:
        """Keeps the fact; a second one of the same name and subject is a defect and replaces nothing."""
        by = self._facts.setdefault(fact.name, {})
        if fact.subject not in by:
            by[fact.subject] = fact
            self._count += 1
            self._doubted.update(fact.doubted)

    def replace(self, fact: Fact) -> None:
        """Puts the fact in the place of the one of the same name and subject."""
        self._facts[fact.name][fact.subject] = fact
        self._doubted.update(fact.doubted)

    @property
    def doubted(self) -> tuple[str, ...]:
        """Files on which facts rest although numbers in them are impossible or contradict each other."""
        return tuple(sorted(self._doubted))

    def get(self, name: str, subject: Subject) -> Fact | None:
        return self._facts.get(name, {}).get(subject)

    def value(self, name: str, subject: Subject, default: Value | None = None) -> Value | None:
        fact = self.get(name, subject)
        return default if fact is None else fact.value

    def number(self, name: str, subject: Subject) -> float | None:
        """The fact as a finite number; None where it is absent or something else."""
        value = self.value(name, subject)
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None

    def of(self, name: str) -> dict[Subject, Fact]:
        """All facts of this name by subject."""
        return self._facts.get(name, {})

    def has(self, name: str) -> bool:
        return bool(self._facts.get(name))

    def subjects(self, kind: str) -> list[Subject]:
        """Every subject of this kind that has a fact, sorted."""
        return sorted({s for by in self._facts.values() for s in by if s.kind == kind})

    def __iter__(self) -> Iterator[Fact]:
        for name in sorted(self._facts):
            for subject in sorted(self._facts[name]):
                yield self._facts[name][subject]

    def __len__(self) -> int:
        return self._count


@dataclass
class Measured:
    """A profile with its facts: what judging, comparing and saving start from."""

    info: ProfileInfo
    facts: FactSet
    problems: list[Problem] = field(default_factory=list)
    tables: frozenset[str] = frozenset()
    """Canonical tables at hand on at least one rank."""
    unusable: tuple[str, ...] = ()
    """Files that were there, were damaged, and gave no fact at all."""
    run: Run | None = None
    """Absent where the facts were saved earlier and only read back."""


def kind(name: str, unit: str, scopes: str, meaning: str, *, formula: str = "", needs: str = "") -> FactKind:
    """Short form for catalogues: scopes and needs are words separated by blanks."""
    return FactKind(name, unit, tuple(scopes.split()), meaning, formula, tuple(needs.split()))


def fact(name: str, subject: Subject, value: Value | None, *sources: Source, samples: int = 1) -> Iterator[Fact]:
    """Yields the fact where it could be measured: None, NaN and infinities are no measurement."""
    if value is None or (isinstance(value, float) and value - value != 0.0):
        return
    if hasattr(value, "item"):
        value = value.item()
    yield Fact(name, subject, value, samples, sources)


Told = dict[str, Value | None]
"""Values of one subject, by the ends of their facts' names; None where nothing tells them."""

Catalogue = Mapping[str, FactKind]
