"""Titles of facts, and words for values that are words."""

import re

import pytest

from advisor.basics.resources import resource
from advisor.facts.registry import catalogue
from advisor.knowledge.fact_titles import fact_title, fact_titles
from advisor.knowledge.values import say_value, value_words
from advisor.yamlfiles.document import read_document

HAN = re.compile("[\u4e00-\u9fff]")
SAME = ("recording", "framework", "layout")
"""Sets with names of products, which are the same in both languages."""


def test_every_fact_has_a_title_in_both_languages():
    """A report names what was measured in words; a title under a mistyped id would never be shown."""
    assert set(fact_titles()) == set(catalogue())
    for name, title in fact_titles().items():
        assert title.en and title.zh, name
        assert not HAN.search(title.en) and HAN.search(title.zh), name


def test_a_fact_is_called_by_its_title_in_each_language_and_else_by_its_id():
    """Readers see words, and of an unknown fact at least its id."""
    assert fact_title("rank.lateness_share", "en") == "lateness, share of the step"
    assert fact_title("rank.lateness_share", "zh") == "迟到时间占单步比例"
    assert fact_title("acme.own", "en") == "acme.own"


def test_every_fact_whose_value_is_a_word_has_words_or_is_a_name():
    """Who adds such a fact decides whether its values are names from the profile or words to be said."""
    words = {name for name, kind in catalogue().items() if kind.unit in ("text", "list")}
    data = read_document(resource("knowledge_base", "fact_words.yaml")).data
    assert set(data["facts"]) | set(data["names"]) == words
    assert not set(data["facts"]) & set(data["names"])


def test_every_word_is_said_in_both_languages():
    """A Chinese report never says "compute"."""
    data = read_document(resource("knowledge_base", "fact_words.yaml")).data
    for name, entries in data["sets"].items():
        for value, (english, chinese) in entries.items():
            assert english and chinese, (name, value)
            assert name in SAME or HAN.search(chinese), (name, value)


@pytest.mark.parametrize(
    ("fact", "lang", "text"),
    [
        ("rank.late_cause", "en", "longer computation"), ("rank.late_cause", "zh", "计算时间更长"),
        ("operator_type.pipe", "zh", "内存读入单元（MTE2）"), ("rank.host", "zh", "node1"),
    ],
)  # fmt: skip
def test_a_value_is_said_in_the_language_of_the_report(fact, lang, text):
    """Words are translated, names are not."""
    value = {"rank.late_cause": "compute", "operator_type.pipe": "memory (read)", "rank.host": "node1"}[fact]
    assert say_value(value, "text", lang, fact) == text


def test_a_mean_of_counts_says_that_it_is_one():
    """Nobody calls Cast 3.2 times."""
    assert say_value(3.2, "count", "en") == "about 3" and say_value(3.2, "count", "zh") == "约3"
    assert say_value(0.2, "count", "en") == "less than 1" and say_value(3.0, "count", "en") == "3"
    assert say_value(True, "bool", "zh") == "是" and say_value(("a", "b"), "list", "zh") == "a、b"


def test_words_are_of_facts_that_exist():
    """Words under a mistyped id would never be said."""
    assert set(value_words()) <= set(catalogue())
