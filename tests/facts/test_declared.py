"""A fact is declared once; what is measured must be what was declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from advisor.facts import declared, registry
from advisor.facts.base import FactSet, Family, Reduction, Run, kind
from advisor.facts.registry import connect, families
from advisor.model import RUN, Fact, Subject
from advisor.pipeline import Options, measure
from advisor.sources.base import Rank

EXAMPLE = "examples/slow-rank-pipeline"
KINDS = (kind("made.share", "ratio", "run", "x"), kind("made.word", "text", "run rank", "x"))
RANK = Subject("rank", "0", (0,))
REFUSED = {
    "made.shrae is not among its kinds": Fact("made.shrae", RUN, 0.5),
    "made.share: 'half' is no finite number": Fact("made.share", RUN, "half"),
    "made.share: True is no finite number": Fact("made.share", RUN, True),
    "made.share: nan is no finite number": Fact("made.share", RUN, float("nan")),
    "made.word: 0.5 is no text": Fact("made.word", RUN, 0.5),
    "made.share is a fact of run, not of rank 0": Fact("made.share", RANK, 0.5),
    "yields a float, not a fact": 0.5,
}


@pytest.fixture
def add_family(monkeypatch) -> Callable[[Iterable[Any]], None]:
    """Adds a built-in family that yields these."""

    def add(items: Iterable[Any]) -> None:
        def yielded(run: Run, facts: FactSet) -> Iterator[Any]:
            yield from items

        known = {**families(), "made": Family("made", KINDS, yielded)}
        monkeypatch.setattr(registry, "_built_in", lambda: known)

    return add


@pytest.mark.parametrize("reason", REFUSED)
def test_a_fact_other_than_declared_ends_a_test_and_is_a_problem_of_a_report(reason, add_family, monkeypatch) -> None:
    """A misspelt fact must not reach users as a fact, nor pass unseen."""
    add_family([REFUSED[reason], Fact("made.share", RUN, 0.25)])
    with pytest.raises(declared.DeclarationError, match="made: "):
        measure([EXAMPLE], ["made.share"], Options(jobs=1))
    monkeypatch.setattr(declared, "STRICT", False)
    measured = measure([EXAMPLE], ["made.share"], Options(jobs=1))
    assert reason in [problem.problem for problem in measured.problems]
    assert [fact.value for fact in measured.facts if fact.name.startswith("made.")] == [0.25]


def test_a_fact_measured_twice_is_refused(add_family, monkeypatch) -> None:
    """Which of the two is right, nobody knows: the first one stands and the second is told."""
    add_family([Fact("made.share", RUN, 0.5), Fact("made.word", RANK, "a"), Fact("made.word", RANK, "b")])
    with pytest.raises(declared.DeclarationError, match="word of rank 0 is measured twice"):
        measure([EXAMPLE], ["made.share"], Options(jobs=1))
    monkeypatch.setattr(declared, "STRICT", False)
    measured = measure([EXAMPLE], ["made.share"], Options(jobs=1))
    assert measured.facts.value("made.word", RANK) == "a"
    assert any("measured twice" in problem.problem for problem in measured.problems)


def _nothing(run: Run, facts: FactSet) -> Iterator[Fact]:
    return iter(())


def _reduce(rank: Rank) -> int:
    return rank.rank


NUMBER = Reduction("b", int)


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ([Family("a", (), _nothing, after=("steps",))], "comes after steps, but no such family"),
        ([Family("a", (), _nothing, after=("b",)), Family("b", (), _nothing)], "comes after b, but no such family"),
        ([Family("a", (), _nothing, uses=(NUMBER,))], "reads b, to which no family reduces"),
        ([Family("a", (), _nothing, fallbacks=(NUMBER,))], "reads b, to which no family reduces"),
        ([Family("a", (), _nothing, NUMBER.by(_reduce))], "the reduction of family a is named b"),
        ([Family("a", (), _nothing), Family("a", (), _nothing)], "two families are named a"),
        ([Family("a", KINDS, _nothing), Family("b", KINDS, _nothing)], "made.share of family b: two families"),
        ([Family("a", (kind("a.b", "furlongs", "run", "x"),), _nothing)], "no unit 'furlongs'"),
        ([Family("a", (kind("a.b", "us", "rnak", "x"),), _nothing)], "no kinds of subject"),
        ([Family("a", (kind("a.b", "us", "run", ""),), _nothing)], "no meaning"),
    ],
)
def test_a_family_that_does_not_fit_the_others_is_an_error(families: list[Family], message: str) -> None:
    """A mistyped name was silently skipped: its reductions were then missing where no other rule asked for them."""
    with pytest.raises(ValueError, match=message):
        connect(families)


def test_a_family_reads_reductions_of_families_measured_later() -> None:
    """All ranks are reduced before the first fact is measured; only facts come in order."""
    assert list(connect([Family("a", (), _nothing, uses=(NUMBER,)), Family("b", (), _nothing, NUMBER.by(_reduce))]))
