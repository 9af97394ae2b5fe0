"""Which findings of several reports are the same one: those of one verdict about one subject. Rules tell them apart
only where one report has several such, or where they rest on nothing in common: the rule that reaches a verdict may be
another one tomorrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from advisor.compare.facts import Key, key_of
from advisor.model import Finding

Identity = tuple[str, Key, int]
"""Verdict, subject, and which of several in one report it is."""


def identities(reports: Iterable[Iterable[Finding]]) -> Callable[[Finding], Identity]:
    """The identity of each finding of these reports. Two rules that stand beside each other in a report are two
    findings, and so are two that measured different things; else one that stands where another stood is the same."""
    beside: dict[tuple[str, Key], dict[str, set[str]]] = {}
    measured: dict[str, set[str]] = {}
    for findings in reports:
        together: dict[tuple[str, Key], dict[str, None]] = {}
        for finding in findings:
            together.setdefault(_about(finding), {})[finding.rule] = None
            measured.setdefault(finding.rule, set()).update(evidence.fact for evidence in finding.evidence)
        for about, rules in together.items():
            for rule in rules:
                beside.setdefault(about, {}).setdefault(rule, set()).update(rules)
    numbers = {about: _numbered(rules, measured) for about, rules in beside.items()}

    def identity(finding: Finding) -> Identity:
        about = _about(finding)
        return (*about, numbers[about][finding.rule])

    return identity


def _about(finding: Finding) -> tuple[str, Key]:
    return finding.verdict, key_of(finding.subject)


def _numbered(beside: dict[str, set[str]], measured: dict[str, set[str]]) -> dict[str, int]:
    """The smallest number for each rule that none has which is another finding's."""
    numbers: dict[str, int] = {}
    for rule, others in beside.items():
        mine = measured[rule]
        unlike = (other for other in numbers if mine and measured[other] and mine.isdisjoint(measured[other]))
        taken = {numbers[other] for other in (*others, *unlike) if other in numbers}
        numbers[rule] = next(number for number in count() if number not in taken)
    return numbers
