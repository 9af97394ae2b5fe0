"""The texts of a report, held against what no text may show."""

from __future__ import annotations

import re

from advisor.authoring.style import faults_of
from advisor.authoring.texts import told
from advisor.facts.registry import catalogue
from advisor.model import LANGUAGES, Report
from advisor.ruleset.files.loader import RuleSet


def faults_in(report: Report, rules: RuleSet) -> list[str]:
    """Every fault of the headline and of the findings in both languages, with the text."""
    facts = catalogue()
    found = []
    for lang in LANGUAGES:
        headline = report.summary.headline.get(lang)
        found += [f"headline {fault} | {headline}" for fault in faults_of(headline, lang, "", facts)]
        for finding in report.findings:
            for each in told(finding, rules.by_id[finding.rule], rules.remedies):
                text = each.text.get(lang)
                faults = faults_of(text, lang, each.source.get(lang), facts)
                found += [f"{finding.rule} {each.where} {fault} | {text}" for fault in faults]
    return found


_QUOTED = re.compile(r"`[^`\n]*`|'[^'\n]*'|\"[^\"\n]*\"|“[^”\n]*”|\[[^\]\n]*\]")
_CODE = re.compile(r"(?m)^\s*(?:from|import|for|with) .*$")
_SENTENCE = re.compile(r"(?<![\w./-])(?:[A-Za-z]+ ){3,}[A-Za-z]+(?![\w./-])")


def english_in(said: str) -> list[str]:
    """Runs of four English words and more, outside of code, names of files and what is quoted."""
    return _SENTENCE.findall(_QUOTED.sub("|", _CODE.sub("", said)))
