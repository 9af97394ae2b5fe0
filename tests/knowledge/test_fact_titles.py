"""Titles of facts."""

from advisor.facts.registry import catalogue
from advisor.knowledge.fact_titles import fact_title, fact_titles


def test_every_title_is_of_a_fact_that_exists():
    """A title under a mistyped id would never be shown."""
    assert set(fact_titles()) <= set(catalogue())


def test_a_fact_is_called_by_its_title_in_each_language_and_else_by_its_id():
    """Readers see words, and of an unknown fact at least its id."""
    assert fact_title("rank.lateness_share", "en") == "lateness, share of the step"
    assert fact_title("rank.lateness_share", "zh") == "迟到时间占单步比例"
    assert fact_title("acme.own", "en") == "acme.own"
