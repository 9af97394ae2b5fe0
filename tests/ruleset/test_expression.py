"""The expression language: what is read, what is refused, and that nothing else can happen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CATALOGUE

from advisor.basics.errors import RuleError
from advisor.ruleset.language.dimensions import Dimensions
from advisor.ruleset.language.expression import MAX_DEPTH, ExpressionError, parse, text_of

_WORDS = [
    "step.count",
    "rank:step.time_us",
    "x",
    "$p",
    "1.5",
    "2e3",
    "'a'",
    "true",
    "null",
    "(",
    ")",
    "[",
    "]",
    ",",
    "+",
    "-",
    "*",
    "/",
    "<",
    "<=",
    "==",
    "!=",
    "in",
    "not",
    "and",
    "or",
    "known",
    "median",
    "if",
    "min",
]


@given(st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join) | st.text(max_size=40))
@settings(max_examples=400)
def test_reading_never_fails_but_with_a_reason(source: str) -> None:
    """Whatever an author types is either an expression or an error that says why."""
    try:
        expr = parse(source)
    except RuleError as error:
        assert error.message
        return
    assert parse(text_of(expr)) == expr


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("step.count = 3", "write =="),
        ("a && b", "write and"),
        ("meidan(step.count)", "did you mean median?"),
        ("step.idle_share > 10%", "write 10 % as 0.10"),
        ("step.count > 3 step.count < 9", "and, or"),
        ("'open", "not closed"),
    ],
)
def test_mistakes_come_with_a_correction(source: str, hint: str) -> None:
    """The usual slips of people who know other languages are answered with what to write instead."""
    with pytest.raises(ExpressionError) as error:
        parse(source)
    assert hint in error.value.hint


@pytest.mark.parametrize("source", ["(" * 500 + "1" + ")" * 500, "-" * 3000, "not " * 400 + "x", "1" + "+1" * 900])
def test_huge_expressions_are_refused_or_flat(source: str) -> None:
    """An untrusted pack cannot exhaust the stack."""
    try:
        parse(source)
    except RuleError as error:
        assert "deep" in error.message or "long" in error.message or "characters" in error.message
    assert MAX_DEPTH < 100


@pytest.mark.parametrize(
    ("source", "unit"),
    [
        ("step.time_us / step.communication_us", "ratio"),
        ("step.idle_share * step.time_us", "us"),
        ("1 - step.idle_share", "ratio"),
        ("step.time_us / step.count", "us"),
        ("median(rank.compute_us)", "us"),
        ("spread(rank:step.time_us)", "ratio"),
        ("count(rank.wait_share)", "count"),
        ("median(link.bytes / link.time_us * 1e6) > lowest(link.bandwidth)", "bool"),
        ("if(step.count > 3, step.time_us, 0)", "us"),
        ("run.mode in ['graph', 'pynative']", "bool"),
        ("or_else(step.idle_share, 0) > 0.1", "bool"),
    ],
)
def test_units_follow_the_arithmetic(source: str, unit: str) -> None:
    """A computed value is shown, and checked, in the unit it really has."""
    assert Dimensions("run", CATALOGUE).unit(parse(source)) == unit


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("step.time_us > step.idle_share", "us"),
        ("step.time_us + step.idle_share > 1", "us"),
        ("run.mode > 3", "text"),
        ("run.mode == 3", "text"),
        ("median(link.bytes / link.time_us) > lowest(link.bandwidth)", "bytes/us"),
        ("rank.compute_us > 3", "a fact of rank"),
        ("median(step.count) > 3 and stage.index > 1", "a fact of stage"),
        ("step.cuont > 3", "there is no fact"),
        ("deviation(rank.compute_us) > 3", "a run is no rank"),
        ("not step.count", "not a condition"),
        ("x > 1", "there is no name x"),
        ("$y > 1", "there is no parameter $y"),
    ],
)
def test_nonsense_is_found_before_it_runs(source: str, message: str) -> None:
    """Comparing microseconds with ratios, or a fact that does not exist there, is an error when the rule is loaded."""
    with pytest.raises(ExpressionError) as error:
        Dimensions("run", CATALOGUE).unit(parse(source))
    assert message in error.value.message
