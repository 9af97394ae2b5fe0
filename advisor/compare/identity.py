"""Which findings of several reports are the same one: those of one verdict about one subject. Rules tell them apart
only where one report has several such: the rule that reaches a verdict may be another one tomorrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from advisor.compare.facts import Key, key_of
from advisor.model import Finding

Identity = tuple[str, Key, int]
"""Verdict, subject, and which of several in one report it is."""


def identities(reports: Iterable[Iterable[Finding]]) -> Callable[[Finding], Identity]:
    """The identity of each finding of these reports. Two rules that stand beside each other in a report are two
    findings; one that stands where another stood is the same."""
    beside: dict[tuple[str, Key], dict[str, set[str]]] = {}
    for findings in reports:
        together: dict[tuple[str, Key], dict[str, None]] = {}
        for finding in findings:
            together.setdefault(_about(finding), {})[finding.rule] = None
        for about, rules in together.items():
            for rule in rules:
                beside.setdefault(about, {}).setdefault(rule, set()).update(rules)
    numbers = {about: _numbered(rules) for about, rules in beside.items()}

    def identity(finding: Finding) -> Identity:
        about = _about(finding)
        return (*about, numbers[about][finding.rule])

    return identity


def _about(finding: Finding) -> tuple[str, Key]:
    return finding.verdict, key_of(finding.subject)


def _numbered(beside: dict[str, set[str]]) -> dict[str, int]:
    """The smallest number for each rule that none has beside which it stands."""
    numbers: dict[str, int] = {}
    for rule, others in beside.items():
        taken = {numbers[other] for other in others if other in numbers}
        numbers[rule] = next(number for number in count() if number not in taken)
    return numbers
