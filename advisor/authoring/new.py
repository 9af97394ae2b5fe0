"""A new rule from a few answers: a rule file that loads, and cases to go with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from advisor.authoring.cases import cases_path
from advisor.basics.errors import UsageError
from advisor.basics.files import write_atomically
from advisor.facts.base import FactKind
from advisor.knowledge.verdicts import verdict_words
from advisor.knowledge.words import both, word
from advisor.model import LANGUAGES, Text
from advisor.ruleset.language.scopes import SINGLE, fact_kind

OPERATORS = (">", ">=", "<", "<=")


@dataclass(frozen=True)
class NewRule:
    """What `advisor rules new` asks: the rule fires where `fact` `op` `threshold`."""

    id: str
    verdict: str
    fact: str
    op: str
    threshold: float
    title: str
    title_zh: str = ""
    direction: str = ""
    subject_kind: str = ""
    origin: str = ""


def write_rule(spec: NewRule, folder: Path, catalogue: Mapping[str, FactKind]) -> tuple[Path, Path]:
    """Writes the rule and its cases into the folder; returns both paths. Raises AdvisorError for answers that make no
    rule, and never overwrites a file."""
    if spec.op not in OPERATORS:
        raise UsageError(f"{spec.op!r} is no comparison", hint="one of " + " ".join(OPERATORS))
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", spec.id):
        raise UsageError(f"{spec.id!r} is no rule id", hint="letters and digits, such as ACME001")
    word = verdict_words().get(spec.verdict)
    if word is None and "/" not in spec.verdict:
        raise UsageError(
            f"there is no verdict {spec.verdict!r}", hint=f"a word of your own has a prefix: acme/{spec.verdict}"
        )
    kind = fact_kind(spec.fact, catalogue)
    subject = spec.subject_kind or _subject_kind(spec, kind, word.subjects if word else kind.scopes)
    direction = spec.direction or (word.direction if word else "computation")
    path = folder / f"{spec.id}-{_slug(spec.title)}.yaml"
    tests = cases_path(path)
    for each in (path, tests):
        if each.exists():
            raise UsageError("exists already", place=str(each), hint="choose another id or title")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(tests, _cases_text(spec, kind, subject))  # first: cases without a rule disturb nobody
    write_atomically(path, _rule_text(spec, kind, subject, direction))
    return path, tests


def _subject_kind(spec: NewRule, kind: FactKind, subjects: Sequence[str]) -> str:
    """What both the fact and the verdict are about."""
    for scope in kind.scopes:
        if scope in subjects:
            return scope
    raise UsageError(
        f"{spec.fact} is measured for each {' or '.join(kind.scopes)}, {spec.verdict} is about a "
        f"{' or '.join(subjects)}",
        hint="another fact (`advisor facts list`), or a verdict of your own such as acme/slow-save",
    )


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "rule"


def _rule_text(spec: NewRule, kind: FactKind, subject: str, direction: str) -> str:
    quote = partial(json.dumps, ensure_ascii=False)
    origin = spec.origin or word(LANGUAGES[0], "rules.new_origin")
    value, limit = f"{{{{ {spec.fact} }}}}", "{{ param.limit }}"
    title = Text(spec.title, spec.title_zh or spec.title)
    message = both("rules.new_message", title=title, value=value, limit=limit)
    worse = "" if spec.op.startswith(">") else "\n  worse: lower"
    return f"""id: {spec.id}
title: {{en: {quote(title.en)}, zh: {quote(title.zh)}}}
verdict: {spec.verdict}
direction: {direction}
kind: symptom                  # cause | symptom | contributing
status: experimental           # shown, never gates; say stable when you trust it
for: {subject}

params:
  limit: {{value: {_plain(spec.threshold)}, unit: {kind.unit}, origin: {quote(origin)}}}

needs: [{spec.fact}]
when: {spec.fact} {spec.op} $limit

severity:
  by: {spec.fact}
  medium: $limit{worse}

message:
  en: {quote(message.en)}
  zh: {quote(message.zh)}
"""


def _cases_text(spec: NewRule, kind: FactKind, subject: str) -> str:
    limit = spec.threshold
    beyond, within = (limit * 2 or 1.0, limit / 2 if limit else -1.0)
    if spec.op.startswith("<"):
        beyond, within = within, beyond

    def given(value: float) -> str:
        if subject in SINGLE:
            return f"{{{subject}: {{{spec.fact}: {value:g}}}}}"
        return f'{{{subject}: "0", {spec.fact}: {value:g}}}'

    at_limit = "fail" if "=" in spec.op else "pass"
    return f"""rule: {spec.id}
cases:
  - name: beyond the limit
    facts:
      - {given(beyond)}
    expect: {{outcome: fail}}
  - name: within the limit
    facts:
      - {given(within)}
    expect: {{outcome: pass}}
  - name: exactly at the limit
    boundary: true
    facts:
      - {given(limit)}
    expect: {{outcome: {at_limit}}}
"""


def _plain(number: float) -> str:
    """A number that every version of YAML reads as one."""
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else repr(number)
