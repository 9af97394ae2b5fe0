"""The words for users: both languages have all of them, and none stands in Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from advisor.knowledge.words import both, word, words
from advisor.model import LANGUAGES, Text

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "advisor").rglob("*.py"))
HAN = re.compile("[\u3000-\u9fff\uff00-\uffef]")
ELSEWHERE = {
    "advisor/authoring/style.py": "marks and letters that a lint looks for",
    "advisor/sources/folders.py": "what file managers add to the name of a copy",
    "advisor/render/escaping.py": "a class of characters that nobody sees, some of them from Asian scripts",
}
"""Modules with such letters that are no sentence, and why."""
ASKING = ("word", "both", "say")


GRAMMAR = ("without_steps", "of_batches")
"""What to look for in sentences of one language: each has its own."""


def _flat(tree, prefix=""):
    for key, value in tree.items():
        yield from _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]


def _slots(text):
    return sorted(set(re.findall(r"{\w+}", text)))


def test_both_locales_have_the_same_keys_and_placeholders():
    """A word missing in one language would show as its key, a slot missing in one would hide a number."""
    en, zh = (dict(_flat({k: v for k, v in words(lang).items() if k not in GRAMMAR})) for lang in ("en", "zh"))
    assert en.keys() == zh.keys()
    for key, text in en.items():
        assert isinstance(text, str) and _slots(text) == _slots(zh[key]), key


def test_a_group_of_words_has_one_file():
    """Two files with one group would let the later overwrite words of the earlier unseen."""
    for lang in LANGUAGES:
        files = sorted((ROOT / "reports" / "locales" / lang).glob("*.yaml"))
        groups = [group for path in files for group in yaml.safe_load(path.read_text(encoding="utf-8"))]
        assert len(groups) == len(set(groups)) and len(groups) > 10


def test_texts_of_the_knowledge_base_have_the_same_placeholders():
    """Sentences side by side in one file name the same values in both languages."""
    found = 0
    for path in sorted((ROOT / "knowledge_base").glob("*.yaml")):
        for key, pair in _pairs(yaml.safe_load(path.read_text(encoding="utf-8"))):
            found += 1
            assert _slots(pair["en"]) == _slots(pair["zh"]), (path.name, key)
    assert found > 30


def _pairs(tree, key=""):
    if isinstance(tree, dict):
        if tree.keys() == {"en", "zh"}:
            if isinstance(tree["en"], str):
                yield key, tree
        else:
            for name, value in tree.items():
                yield from _pairs(value, name)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_holds_no_chinese(path):
    """Every sentence has its two languages beside one another in data, where a reader of either can mend it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    chinese = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and HAN.search(node.value)
    ]
    assert not chinese or path.relative_to(ROOT).as_posix() in ELSEWHERE


def test_every_word_asked_for_exists():
    """A key that is misspelt would reach users as its own name."""
    asked = {
        (str(path.relative_to(ROOT)), node.args[index].value)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _called(node) in ASKING
        for index in range(min(2, len(node.args)))
        if isinstance(node.args[index], ast.Constant) and re.fullmatch(r"[a-z_]+\.[a-z_]+", str(node.args[index].value))
    }
    for template in sorted((ROOT / "reports" / "templates").glob("*.html")):
        keys = re.findall(r"""\bw\(\s*["']([a-z_]+\.[a-z_]+)["']\s*[,)]""", template.read_text(encoding="utf-8"))
        asked |= {(template.name, key) for key in keys}
    assert len(asked) > 200
    known = dict(_flat(words("en")))
    assert {key for _, key in asked if key not in known} == set()


def _called(node):
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def test_values_are_never_taken_for_slots():
    """A folder named {files} is shown as it is named; a text is said in the language of the sentence around it."""
    assert word("en", "doctor.nothing", path="{path}") == "{path}: no profiler output was recognised"
    told = both("all_clear.doubted", share="20 %", title=Text("A link is slow", "链路较慢"))
    assert "A link is slow" in told.en and "链路较慢" in told.zh


def test_what_a_locale_does_not_know_is_shown_as_it_is_written():
    """A pack's own direction, and a language nobody translated."""
    assert word("en", "directions.acme") == "acme" and words("fr") == words("en")
