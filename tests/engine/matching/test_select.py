"""Which engine runs, and that a report can say why."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest
from engine_cases import run

from advisor.basics.errors import ConfigError, RuleError
from advisor.engine.matching.base import CompiledRule, Pattern, Record, Test
from advisor.engine.matching.select import make_engine

RULES = [CompiledRule("R", (Pattern("a", "rank"),))]
WIDE = [CompiledRule("wide", (Pattern("a", "rank", tuple(Test(f"f{n}", "==", "v") for n in range(300))),))]


@pytest.fixture
def no_durable(monkeypatch):
    """durable-rules as it is on Python 3.13: installed perhaps, never importable."""
    monkeypatch.setitem(sys.modules, "durable_rules_engine", None)
    monkeypatch.delitem(sys.modules, "advisor.engine.matching.durable", raising=False)


def test_python_runs_where_durable_rules_is_missing(no_durable):
    """Nobody is left without a verdict for want of a C compiler; the report says which engine ran and why."""
    engine = make_engine(RULES)
    assert engine.name == "python"
    assert "durable_rules_engine" in engine.reason
    assert len(run(engine, [Record("r", "rank", {})])[0]) == 1


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
    assert (engine.name, engine.reason) == ("durable", "durable-rules can be imported")
    assert make_engine(RULES, "durable").reason == "chosen by configuration"
    assert len(run(engine, [Record("r", "rank", {})])[0]) == 1


def test_rules_beyond_durable_rules_run_on_python():
    """A rule too wide for durable-rules is judged all the same."""
    engine = make_engine(WIDE)
    assert engine.name == "python"
    assert engine.reason.startswith("durable-rules cannot be used here")
    assert len(run(engine, [Record("r", "rank", {f"f{n}": "v" for n in range(300)})])[0]) == 1


def test_choices_are_checked():
    """A misspelt engine or a malformed rule is an error, not a fallback."""
    with pytest.raises(ConfigError, match="durable, python"):
        make_engine(RULES, "drools")
    with pytest.raises(RuleError):
        make_engine(RULES * 2)
    engine = make_engine(RULES, "python", max_hits=7)
    assert (engine.name, engine.reason, engine.max_hits) == ("python", "chosen by configuration", 7)
