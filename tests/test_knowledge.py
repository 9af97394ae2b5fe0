"""The documents are encoded whole: every statement is reached, every rule cites one, every verdict has a rule."""

from __future__ import annotations

import runpy
from functools import lru_cache

import pytest

from advisor.authoring.coverage import encodings, resolve_check
from advisor.basics.resources import resource
from advisor.facts.registry import catalogue
from advisor.knowledge.statements import cited, documents, other_tools, statements
from advisor.knowledge.verdicts import verdict_words
from advisor.ruleset.files.loader import RuleSet, load_rules


@lru_cache(maxsize=1)
def shipped() -> RuleSet:
    return load_rules([resource("rules")], catalogue=catalogue(), strict=False)


def test_all_statements_are_there():
    """S01 to S85, in English and Chinese, with document and section."""
    known = statements()
    assert list(known) == [f"S{number:02d}" for number in range(1, 86)]
    for statement in known.values():
        assert statement.document in documents(), statement.id
        assert statement.section and statement.text.en and statement.text.zh, statement.id
        assert statement.text.en != statement.text.zh, statement.id


def test_every_statement_is_reached():
    """Something measures, judges or checks what the documents say; a remedy alone would never be called for."""
    unreached = [name for name, encoding in encodings(shipped()).items() if not encoding.reached]
    assert unreached == []


def test_every_rule_cites_a_statement_that_exists():
    """A trusted rule without a source is somebody's opinion; one fresh from `rules new` is experimental."""
    for rule in shipped().rules:
        assert rule.statements or rule.status == "experimental", rule.id
        assert set(rule.statements) <= set(statements()), rule.id
        assert all(reference["document"] in documents() for reference in rule.references), rule.id
    for remedy in shipped().remedies.values():
        assert set(remedy.statements) <= set(statements()), remedy.id


def test_origins_and_traps_of_the_shipped_rules_stand_in_both_languages():
    """`explain --lang zh` shows them; a string that stands for both languages is for packs of one's own."""
    for rule in shipped().rules:
        said = [*(param.origin for param in rule.params.values()), *rule.false_positives]
        assert all(text.en != text.zh for text in said), rule.id


def test_sections_of_the_documents_have_a_name_in_both_languages():
    """Who reads English is not sent to a section named in Chinese, and the other way round."""
    for rule in shipped().rules:
        for reference in rule.references:
            title, section = cited(reference)
            assert title.en != reference["document"], rule.id
            assert section.en.isascii() and (section.en != section.zh or section.zh.isascii()), (rule.id, section)


def test_facts_and_checks_that_encode_statements_exist():
    """A renamed function or fact must not leave a statement unreached."""
    for statement in statements().values():
        assert set(statement.facts) <= set(catalogue()), statement.id
        for check in statement.checks:
            assert callable(resolve_check(check)), check


def test_every_verdict_has_a_rule_with_a_remedy():
    """A word of the contract that no rule reaches, or that leaves the reader alone, is a promise broken."""
    rules = shipped().rules
    for word in verdict_words():
        reaching = [rule for rule in rules if rule.verdict == word]
        assert reaching, word
        assert any(rule.remedies for rule in reaching), word


def test_every_remedy_says_how_to_check_it_and_what_it_risks():
    """A remedy whose effect cannot be seen cannot be compared."""
    for remedy in shipped().remedies.values():
        assert remedy.verify is not None and remedy.verify.fact in catalogue(), remedy.id
        assert remedy.risk is not None and remedy.effort, remedy.id


def test_every_remedy_is_used():
    """A remedy that no rule hands out is dead."""
    used = {use.id for rule in shipped().rules for use in rule.remedies}
    assert set(shipped().remedies) == used


def test_the_table_of_other_tools_names_what_exists():
    """Each check of theirs has rules, facts or functions of ours, or says why not."""
    for checks in other_tools().values():
        for check in checks:
            assert set(check.get("rules", ())) <= set(shipped().by_id), check["check"]
            assert set(check.get("facts", ())) <= set(catalogue()), check["check"]
            assert all(callable(resolve_check(path)) for path in check.get("checks", ())), check["check"]
            assert any(key in check for key in ("rules", "facts", "checks", "why_not")), check["check"]


def test_the_glossary_has_both_languages():
    """The words of reports are explained in the languages of reports."""
    import yaml

    glossary = yaml.safe_load(resource("knowledge_base", "glossary.yaml").read_text(encoding="utf-8"))
    assert all(entry["en"] and entry["zh"] for entry in glossary.values())


@pytest.mark.parametrize("page", ["rules.md", "facts.md", "coverage.md", "architecture.md"])
def test_generated_pages_are_current(page):
    """`make docs` was run after the last change of rules, facts, the knowledge base or the rooms."""
    script = resource("docs", "generate.py")
    if not script.is_file():
        pytest.skip("installed without docs")
    module = runpy.run_path(str(script))
    assert script.with_name(page).read_text(encoding="utf-8") == module["pages"]()[page]


def test_a_remedy_names_the_setting_of_the_framework_whose_code_it_shows():
    """Who types what `parameter` says finds it in the code beside it; another framework's name is not offered."""
    for remedy in shipped().remedies.values():
        for framework in remedy.snippet.keys() & remedy.parameter.keys() - {"any"}:
            assert remedy.parameter[framework] in remedy.snippet[framework], (remedy.id, framework)
        if remedy.snippet.keys() >= {"mindspore", "pytorch"} and "any" in remedy.parameter:
            assert all(remedy.parameter["any"] in code for code in remedy.snippet.values()), remedy.id
