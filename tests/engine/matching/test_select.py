"""Which matcher runs."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest
from engine_cases import run

from advisor.basics.errors import ConfigError, RuleError
from advisor.engine.matching.base import CompiledRule, Pattern, Record, Test
from advisor.engine.matching.select import LOOP, available_engine, make_engine

RULES = [CompiledRule("R", (Pattern("a", "rank"),))]
WIDE = [CompiledRule("wide", (Pattern("a", "rank", tuple(Test(f"f{n}", "==", "v") for n in range(300))),))]


@pytest.fixture
def no_durable(monkeypatch):
    """durable-rules as it is on Python 3.13: installed perhaps, never importable."""
    monkeypatch.setitem(sys.modules, "durable_rules_engine", None)
    monkeypatch.delitem(sys.modules, "advisor.engine.matching.durable", raising=False)


def test_the_loop_runs_where_durable_rules_is_missing(no_durable):
    """Nobody is left without a verdict for want of a C compiler, and doctor says what runs."""
    assert make_engine(RULES) is None
    assert available_engine() == LOOP


def test_durable_by_choice_is_not_replaced(no_durable):
    """Whoever asks for durable-rules gets it or is told how to."""
    with pytest.raises(ConfigError, match="pip install durable-rules"):
        make_engine(RULES, "durable")


def test_auto_takes_durable_rules_where_it_can():
    """The default engine is durable-rules."""
    try:
        import_module("durable_rules_engine")
    except ImportError:
        pytest.skip("durable-rules cannot be imported")
    engine = make_engine(RULES)
    assert engine.name == make_engine(RULES, "durable").name == "durable"
    assert len(run(engine, [Record("r", "rank", {})])[0]) == 1


def test_rules_beyond_durable_rules_are_left_to_the_loop():
    """A rule too wide for durable-rules is judged all the same."""
    assert make_engine(WIDE) is None


def test_choices_are_checked():
    """A misspelt engine or a malformed rule is an error, not a fallback."""
    with pytest.raises(ConfigError, match="durable, python"):
        make_engine(RULES, "drools")
    with pytest.raises(RuleError):
        make_engine(RULES * 2)
    assert make_engine(RULES, LOOP) is None
