"""The texts of rules as users read them: rendered on the rules' own cases, and checked for what no text may show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.authoring.cases import cases_path, default_judge, facts_of, given_finding, load_cases
from advisor.authoring.style import faults_of, lang_of, words_of
from advisor.basics.errors import AdvisorError
from advisor.basics.resources import resource
from advisor.facts.base import FactKind
from advisor.knowledge.remedy import RemedySpec
from advisor.model import LANGUAGES, Finding, Text
from advisor.ruleset.files.loader import RuleSet, with_params
from advisor.ruleset.rule import Rule
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import Faults, LintError


@dataclass(frozen=True)
class Told:
    """A text of a finding: the file and the place in it that it comes from, and what became of it."""

    file: Path
    where: tuple[Any, ...]
    source: Text
    text: Text


def told(finding: Finding, rule: Rule, remedies: Mapping[str, RemedySpec]) -> Iterator[Told]:
    """Every text of a finding beside the template it was made from."""
    yield Told(rule.path, ("title",), rule.title, finding.title)
    yield Told(rule.path, ("message",), rule.message, finding.message)
    saving = finding.saving or finding.at_stake
    if rule.saving is not None and saving is not None:
        yield Told(rule.path, ("saving", "basis"), rule.saving.basis, saving.basis)
    own = Text(*(" ".join(doubt.because.get(lang) for doubt in rule.doubts) for lang in LANGUAGES))
    for doubt in finding.doubts if rule.doubts else ():
        yield Told(rule.path, ("doubts",), own, doubt)
    for remedy in finding.remedies:
        spec = remedies.get(remedy.id)
        if spec is None:
            continue
        yield Told(spec.path, ("title",), spec.title, remedy.title)
        yield Told(spec.path, ("action",), spec.action, remedy.action)
        if spec.risk is not None and remedy.risk is not None:
            yield Told(spec.path, ("risk",), spec.risk, remedy.risk)


def rendered(
    rule: Rule, remedies: Mapping[str, RemedySpec], catalogue: Mapping[str, FactKind]
) -> Iterator[tuple[str, Finding]]:
    """(case, finding) for every case with facts in which the rule fires; cases that cannot be run have their own
    defects."""
    path = cases_path(rule.path)
    model = load_cases(path)[0] if path.is_file() else None
    judge = default_judge(catalogue)
    for case in model.cases if model is not None else ():
        if case.facts is None or case.expect.outcome != "fail":
            continue
        try:
            asked = with_params(rule, case.params, case.name) if case.params else rule
            facts = facts_of(case.facts, catalogue)
            given = [given_finding(entry, facts) for entry in case.findings]
            findings, _ = judge(RuleSet((asked,), remedies), facts, given)
        except AdvisorError:
            continue
        yield from ((case.name, finding) for finding in findings if finding.rule == rule.id)


def lint_texts(
    rules: Sequence[Rule], remedies: Mapping[str, RemedySpec], catalogue: Mapping[str, FactKind]
) -> list[LintError]:
    """What the texts of these rules and of their remedies would show that no text may, each with the case. A warning
    in a pack of somebody's own, whose style is theirs."""
    found: dict[tuple[str, int, str], LintError] = {}
    for rule in rules:
        noted = Faults(read_document(rule.path))
        for where, lang, text in _strings(noted.document.data, (), ""):
            for fault in words_of(text, lang):
                noted.add(where, f"the text ({lang}) {fault}", "", "warning")
        found |= {(error.file, error.line, error.message): error for error in noted.found}
        for case, finding in rendered(rule, remedies, catalogue):
            for each in told(finding, rule, remedies):
                for lang in LANGUAGES:
                    for fault in faults_of(each.text.get(lang), lang, each.source.get(lang), catalogue):
                        noted = Faults(read_document(each.file))
                        hint = f"rule {rule.id}, case “{case}”: {_excerpt(each.text.get(lang), fault)}"
                        noted.add(each.where, f"the text ({lang}) {fault}", hint, "warning")
                        error = noted.found[0]
                        found.setdefault((error.file, error.line, error.message), error)
    return list(found.values())


def lint_words(level: str = "error") -> list[LintError]:
    """Words in the knowledge base, the locales and the templates for which the glossary has another."""
    found: list[LintError] = []
    for path in sorted(resource("knowledge_base").rglob("*.yaml")):
        if path.name not in _ABOUT_WORDS:
            found += _words_in(path, LANGUAGES[1] if path.name in _CHINESE else "", level)
    for lang in LANGUAGES:
        for path in sorted(resource("reports", "locales", lang).glob("*.yaml")):
            found += _words_in(path, lang, level)
    for path in sorted(resource("reports", "templates").glob("*.html")):
        found += _words_on(path, level)
    return found


_NO_WORDS = re.compile(r"\{[{%#].*?[#%}]\}|<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL)
"""What of a template nobody reads: slots, programs and marks."""


def _words_on(page: Path, level: str) -> Iterator[LintError]:
    """Words that stand in a template itself instead of a locale."""
    text = _NO_WORDS.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for fault in words_of(line, lang_of(line)):
            yield LintError(str(page), number, fault, "words of pages stand in reports/locales", level)


_ABOUT_WORDS = ("glossary.yaml", "style.yaml", "documents.yaml")
"""Files that hold words that are not written, and names that others gave."""
_CHINESE = ("messages.yaml", "help.yaml")
"""Files whose values are Chinese, and whose keys are the English of programs."""
_PATTERNS = ("without_steps", "of_batches")
"""Keys of what is looked for in sentences, and is none."""


def _words_in(path: Path, lang: str, level: str) -> Iterator[LintError]:
    noted = Faults(read_document(path))
    for where, language, text in _strings(noted.document.data, (), lang):
        for fault in words_of(text, language):
            noted.add(where, fault, "", level)
    return iter(noted.found)


def _strings(tree: Any, where: tuple[Any, ...], lang: str) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """(place, language, text) of what is said in a language: under `en` and `zh`, in pairs, or in a file of one."""
    if isinstance(tree, str):
        if lang:
            yield where, lang, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key not in _PATTERNS:
                yield from _strings(value, (*where, key), key if key in LANGUAGES else lang)
    elif isinstance(tree, list):
        pair = not lang and len(tree) == len(LANGUAGES) and all(isinstance(item, str) for item in tree)
        for index, item in enumerate(tree):
            yield from _strings(item, (*where, index), LANGUAGES[index] if pair else lang)


def _excerpt(text: str, fault: str, most: int = 160) -> str:
    """The part of the text in which the quoted fault lies."""
    _, _, quoted = fault.partition("“")
    at = max(text.find(quoted.rpartition("”")[0]), 0)
    start = max(0, at - most // 2)
    return ("…" if start else "") + text[start : start + most].strip() + ("…" if len(text) > start + most else "")
