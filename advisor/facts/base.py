"""Facts: the catalogue of what can be measured, and how a family measures it.

A family is one module of `facts/`. It declares the facts it brings (`kinds`), reduces each rank's tables to a few
kilobytes (`reduce`: independent per rank, runs in worker processes) and turns the reductions of all ranks into facts
(`measure`: runs once). The pipeline asks only for families that a selected rule needs, so files nobody needs are
never opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.model import Fact, Problem, ProfileInfo, Source, Subject, Value
from advisor.sources.base import Profile, Rank


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


@dataclass
class Run:
    """All reductions of a profile: what `measure` functions work on."""

    profile: Profile
    reductions: dict[int, dict[str, Any]] = field(default_factory=dict)
    """rank -> family name -> what the family's `reduce` returned (absent where it returned None)."""

    @property
    def ranks(self) -> list[Rank]:
        return self.profile.ranks

    def each(self, family: str) -> dict[int, Any]:
        """rank -> reduction of this family, in rank order, only where there is one."""
        return {
            rank: self.reductions[rank][family] for rank in sorted(self.reductions) if family in self.reductions[rank]
        }


@dataclass(frozen=True)
class Family:
    """One module of facts. `uses` names families whose reductions `measure` reads, `fallbacks` those it reads only
    where the profile has none of `tables`."""

    name: str
    kinds: tuple[FactKind, ...]
    measure: Callable[[Run, FactSet], Iterable[Fact]]
    reduce: Callable[[Rank], Any] | None = None
    tables: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()


class FactSet:
    """Measured facts by name and subject, and the reasons for those that are absent."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, dict[Subject, Fact]] = {}
        self._count = 0
        self.absent: dict[str, str] = {}
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> None:
        """Keeps the fact; a second one of the same name and subject is a defect and replaces nothing."""
        by = self._facts.setdefault(fact.name, {})
        if fact.subject not in by:
            by[fact.subject] = fact
            self._count += 1

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


Catalogue = Mapping[str, FactKind]
