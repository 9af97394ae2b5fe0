"""Whether a finding rests on a part of the recording (knowledge_base/partial.yaml): then it is a suspicion, whatever
its measure.

What is not at hand may be the worse half, or show that the part at hand is nothing special. So the severity of such a
finding is low, which names no cause of weight, and the confidence in such a cause is low as well: what is doubted is
the evidence, not what the cause would cost. Nothing is cleared by it either (`allclear`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from advisor.basics.units import show
from advisor.facts.base import FactSet
from advisor.knowledge.statements import document
from advisor.knowledge.words import both
from advisor.model import RUN, Subject, Text, Value
from advisor.ruleset.rule import Rule


def is_partial(rule: Rule, subject: Subject, facts: FactSet) -> bool:
    """Whether a finding of this rule about this subject rests on a part of the recording."""
    return any(_resting(rule, subject, facts))


def reservations(rule: Rule, subject: Subject, facts: FactSet) -> tuple[Text, ...]:
    """Why it holds only if the rest looks alike, one sentence for each part that it rests on."""
    return tuple(
        both(f"partial.{part['name']}", count=show(_amount(facts.value(part["fact"], RUN)), "count"))
        for part in _resting(rule, subject, facts)
        if part.get("told", True)
    )


def _resting(rule: Rule, subject: Subject, facts: FactSet) -> Iterator[Mapping[str, Any]]:
    for part in _parts():
        if not _is_part(part, RUN, facts) or any(_is_whole(each, subject, facts) for each in part.get("unless", ())):
            continue
        if subject.kind not in part.get("subjects", (subject.kind,)):
            continue
        if rule.direction.value not in part.get("directions", (rule.direction.value,)):
            continue
        patterns = part.get("rests_on")
        if patterns is None or any(fnmatchcase(name, each) for name in rule.rests_on for each in patterns):
            yield part


def _is_whole(other: Mapping[str, Any], subject: Subject, facts: FactSet) -> bool:
    """Whether a fact of the finding's own subject, or of the run, tells that it does not rest on this part."""
    return any(_is_part(other, about, facts) for about in (subject, RUN))


def _is_part(part: Mapping[str, Any], subject: Subject, facts: FactSet) -> bool:
    value = facts.value(part["fact"], subject)
    if "in" in part:
        return value in part["in"]
    value = _amount(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if "below" in part and value >= part["below"]["value"]:
        return False
    return "above" not in part or bool(value > part["above"]["value"])


def _amount(value: Value | None) -> Value | None:
    """How much it is; of a list, how many."""
    return len(value) if isinstance(value, tuple) else value


@lru_cache(maxsize=1)
def _parts() -> tuple[Mapping[str, Any], ...]:
    return tuple(document("partial.yaml"))
