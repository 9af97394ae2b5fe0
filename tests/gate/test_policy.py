"""The [gate] table: what is accepted, what is refused, what applies to whom."""

from __future__ import annotations

import datetime

import pytest

from advisor.basics.errors import ConfigError
from advisor.basics.quantity import read_quantity
from advisor.gate.metrics import defaults
from advisor.gate.policy import LOGGED
from advisor.model import Severity
from tests.helpers.profiles import policy


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"metircs": {}}, ["unknown key gate.metircs", "did you mean metrics?"]),
        ({"metrics": {"step.time_su": 0.1}}, ["step.time_su", "did you mean step.time_us?"]),
        ({"metrics": {"step.time_us": {"relatve": 0.1}}}, ["relatve", "did you mean relative?"]),
        ({"metrics": {"step.time_us": {"relative": -0.1}}}, ["relative", "positive"]),
        ({"metrics": {"step.time_us": float("nan")}}, ["relative", "positive"]),
        ({"metrics": {"step.time_us": {"absolute": "3 GB"}}}, ["absolute", "in us"]),
        ({"metrics": {"step.jitter": 0.1}}, ["step.jitter", "better"]),
        ({"budgets": {"step.time_us": "3 GB"}}, ["budgets.step.time_us", "in us"]),
        ({"budgets": {"step.time_us": {}}}, ["at_most or at_least"]),
        ({"budgets": {"step.overlapped_share": 0.5}}, ["step.overlapped_share", "at_least"]),
        ({"metrics": {"step.time_us": {"relative": 3}}}, ["relative", 'write "3 %"']),
        ({"budgets": {"step.time_us": {"at_most": -5}}}, ["at_most", "positive"]),
        ({"fail_on": "hihg"}, ["gate.fail_on", "'hihg' is none of low, medium, high, critical, never"]),
        ({"min_runs": 0}, ["gate.min_runs"]),
        ({"min_runs": "5"}, ["gate.min_runs"]),
        ({"statistics": {"windw": 3}}, ["windw", "did you mean window?"]),
        ({"when": [{"match": {"model": "a"}, "budgts": {}}]}, ["budgts", "did you mean budgets?"]),
        ({"when": [{"fail_on": "low"}]}, ["match", "missing"]),
        ({"waivers": [{"finding": "x", "until": "2026-01-01"}]}, ["reason", "missing"]),
        ({"waivers": [{"finding": "x", "reason": "y"}]}, ["until", "missing"]),
        ({"waivers": [{"finding": "x", "reason": "y", "until": "soon"}]}, ["until"]),
        ({"waivers": [{"reason": "y", "until": "2026-01-01"}]}, ["one of finding, metric, budget"]),
        ({"metircs": {}, "min_runs": "x"}, ["metircs", "min_runs"]),
    ],
)
def test_mistakes_are_named_with_a_suggestion(table, words):
    """A key that is silently ignored is a limit that silently does not hold."""
    with pytest.raises(ConfigError) as error:
        policy(**table)
    for word in words:
        assert word in str(error.value)


def test_dotted_keys_mean_the_metric_quoted_or_not():
    """TOML reads `step.time_us = …` as nested tables; everybody writes it."""
    for table in ({"step.time_us": 0.05}, {"step": {"time_us": 0.05}}, {"step": {"time_us": {"relative": "5 %"}}}):
        metric = policy(metrics=table).for_run({}).metrics[0]
        assert (metric.name, metric.limits.relative) == ("step.time_us", 0.05)


def test_sections_apply_by_model_count_and_metadata():
    """A 64-card run of another model has other limits than a unit test on one card."""
    rules = policy(
        fail_on="critical",
        when=[
            {"match": {"model": "llama-*"}, "metrics": {"step.time_us": 0.10}, "fail_on": "high"},
            {"match": {"world_size": ">= 64"}, "min_runs": 3, "budgets": {"memory.peak_bytes": "58 GB"}},
            {"match": {"metadata.branch": ["main", "release-*"]}, "fail_on": "low"},
        ],
    )
    plain = rules.for_run({"model": "bert", "world_size": "8"})
    assert (plain.fail_on, plain.min_runs, plain.budgets) == (Severity.CRITICAL, 5, ())
    llama = rules.for_run({"model": "llama-7b", "world_size": "64"})
    assert (llama.fail_on, llama.min_runs, llama.metrics[0].limits.relative) == (Severity.HIGH, 3, 0.10)
    assert llama.budgets[0].limit == 58e9
    assert rules.for_run({"model": "llama-7b", "metadata.branch": "release-2"}).fail_on is Severity.LOW
    assert rules.for_run({"model": "llama-7b"}, fail_on="medium").fail_on is Severity.MEDIUM


def test_a_named_metric_gates_and_false_takes_one_out():
    """Watched metrics can be made to count, counted ones to be watched."""
    rules = policy(metrics={"step.idle_us": "20 %", "step.time_us": False}).for_run({})
    by_name = {metric.name: metric for metric in rules.metrics}
    assert by_name["step.idle_us"].gates and by_name["step.idle_us"].required
    assert not by_name["step.time_us"].gates and not by_name["step.time_us"].required
    assert not by_name["step.computing_us"].gates


def test_statistics_can_be_overridden():
    """A noisy cluster needs a wider band."""
    limits = policy(statistics={"sigmas": 4.0, "relative": "5 %", "window": 30}).for_run({}).metrics[0].limits
    assert (limits.sigmas, limits.relative, limits.window) == (4.0, 0.05, 30)


def test_every_default_metric_has_a_fact_and_words():
    """A metric nobody measures would never be judged and nobody would notice."""
    from advisor.facts.registry import catalogue

    known = catalogue()
    for name, entry in defaults()["metrics"].items():
        assert entry["better"] in ("lower", "higher") and entry["en"] and entry["zh"]
        assert name in LOGGED or all(fact in known for fact in entry.get("facts", [name])), name


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("58 GB", "bytes", 58e9), ("1GiB", "bytes", 2**30), ("140 ms", "us", 140e3), ("5 %", "ratio", 0.05),
        (7, "us", 7.0), ("7", "us", 7.0), ("7 GB", "us", None), ("x", "us", None), (True, "us", None),
        (float("inf"), "us", None),
    ],
)  # fmt: skip
def test_quantities_are_read_with_their_units(text, unit, value):
    """Limits are written in the units people use."""
    assert read_quantity(text, unit) == value


def test_waiver_dates_may_be_dates_or_texts():
    """TOML has dates; people write quotes around them."""
    rules = policy(
        waivers=[
            {"finding": "x", "reason": "y", "until": datetime.date(2026, 5, 1)},
            {"metric": "step.time_us", "reason": "y", "until": "2026-05-01"},
        ]
    )
    assert [waiver.until for waiver in rules.waivers] == [datetime.date(2026, 5, 1)] * 2
