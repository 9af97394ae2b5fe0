"""The keys and fields by which records of subjects and findings meet."""

from __future__ import annotations

from typing import Any

from advisor.facts.base import FactSet
from advisor.model import Subject
from advisor.ruleset.language.arithmetic import normal


def field_of(facts: FactSet, fact: str, subject: Subject) -> Any:
    """The value of a subject's own fact as records hold it: number as float, text or truth value."""
    if fact.startswith("subject."):
        value: Any = getattr(subject, fact.removeprefix("subject."), None)
    else:
        value = facts.value(fact, subject)
    value = normal(value)
    return None if isinstance(value, tuple) else value


def key_of(subject: Subject) -> str:
    """A text that tells subjects apart: kind, id and ranks."""
    return f"{subject.kind}:{subject.id}{ranks_of(subject)}"


def ranks_of(subject: Subject) -> str:
    """A text that names the ranks of a subject, "*" where it stands for the whole run."""
    return "[" + ",".join(map(str, subject.ranks)) + "]" if subject.ranks else "*"
