"""Whether a finding rests on files that hold impossible numbers or contradict one another, or lacks what a defect kept
from being measured."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.base import FactSet
from advisor.facts.registry import families
from advisor.model import COLLECTION, RUN, Fact, Subject
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.board import Board, Reached
from advisor.ruleset.truth.evaluate import Scope


def doubted_files(scope: Scope, facts: FactSet, findings: object) -> tuple[str, ...]:
    """The doubted files behind the facts of a finding, and behind the findings it builds on."""
    if not facts.doubted:
        return ()
    rule = scope.rule
    names = set(rule.uses_facts())
    if rule.saving is not None:
        names.add("step.time_us")
    own = {scope.subject, RUN, COLLECTION}
    files = {
        file
        for name in names
        for item in facts.of(name).values()
        if item.doubted and (rule.looks_at_peers or item.subject in own or _holds(scope.subject, item.subject))
        for file in item.doubted
    }
    if isinstance(findings, Board):
        wanted = {verdict for part in rule.findings() for verdict in part.verdicts}
        files.update(file for verdict in wanted for reached in findings.of(verdict) for file in _of(reached, facts))
    return tuple(sorted(files))


def failed_measures(facts: FactSet) -> tuple[str, ...]:
    """Families of facts that a defect of the advisor kept from being measured, or from being measured as a whole."""
    told = facts.value("run.failed_measures", RUN)
    return tuple(str(name) for name in told) if isinstance(told, tuple) else ()


def lacks_failed(rule: Rule, facts: FactSet) -> bool:
    """Whether the rule asks for a fact that failed to be measured: what it would have said may refute the finding."""
    known, asked = families(), rule.uses_facts()
    return any(kind.name in asked for name in failed_measures(facts) if name in known for kind in known[name].kinds)


def _holds(one: Subject, other: Subject) -> bool:
    """Whether one of them is a host, stage or operator of the other one's rank."""
    return bool(set(one.ranks) & set(other.ranks))


def _of(reached: Reached, facts: FactSet) -> Iterator[str]:
    """Files of a finding's evidence that are doubted."""
    for each in getattr(reached, "evidence", ()):
        item: Fact | None = facts.get(each.fact, each.subject)
        yield from () if item is None else item.doubted
