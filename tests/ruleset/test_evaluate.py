"""What expressions and conditions come to."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CATALOGUE, PACK, facts, rank, rule

from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Subject
from advisor.ruleset.files.loader import RuleSet, load_rules
from advisor.ruleset.language.arithmetic import compare, exact_limit
from advisor.ruleset.language.expression import parse
from advisor.ruleset.truth.evaluate import Readiness, Scope, readiness
from advisor.ruleset.truth.trace import evidence, trace

_RANKS = facts(
    {"step.time_us": 100.0, "run.world_size": 4, "run.versions": ("a", "b")},
    r0={"rank.compute_us": 10, "rank.peer_group": "x", "step.time_us": 90.0},
    r1={"rank.compute_us": 20, "rank.peer_group": "x"},
    r2={"rank.compute_us": 60, "rank.peer_group": "x"},
    r3={"rank.compute_us": 1000, "rank.peer_group": "y"},
)


def _value(source: str, subject: Subject = RUN, found: FactSet = _RANKS) -> object:
    return Scope(rule("when: 1 > 0", subject.kind), subject, found, CATALOGUE).value(parse(source))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("median(rank.compute_us)", 20.0),
        ("ratio_to_median(rank.compute_us)", 3.0),
        ("share_of_sum(rank.compute_us)", 60 / 90),
        ("deviation(rank.compute_us)", 40 / (1.4826 * 10)),
        ("spread(rank.compute_us)", 50 / 30),
        ("highest(rank.compute_us) - lowest(rank.compute_us)", 50.0),
        ("run:step.time_us", 100.0),
        ("step.time_us", None),
        ("or_else(step.time_us, run:step.time_us)", 100.0),
        ("count(rank.compute_us)", 3.0),
        ("mean(rank.compute_us)", 30.0),
        ("subject.id", "2"),
        ("run.world_size", 4.0),
        ("'b' in run:run.versions", True),
        ("len(run.versions)", 2.0),
    ],
)
def test_a_rank_is_compared_with_its_peers_only(source: str, expected: object) -> None:
    """A rank of another role does not make its peers look fast or slow."""
    value = _value(source, rank(2))
    assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_the_run_looks_at_all_ranks() -> None:
    """In a rule for the run, peers are everybody."""
    assert _value("highest(rank.compute_us)") == 1000.0
    assert _value("count(rank:step.time_us)") == 1.0


def test_a_stage_looks_at_its_own_ranks() -> None:
    """In a rule for stages, ranks elsewhere in the pipeline do not count; a rank finds the stage that holds it."""
    stage = Subject("stage", "0", (0, 1))
    found = FactSet([*_RANKS, Fact("stage.compute_us", stage, 77.0)])
    assert _value("highest(rank.compute_us)", stage, found) == 20.0
    assert _value("stage:stage.compute_us", rank(1), found) == 77.0
    assert _value("stage:stage.compute_us", rank(3), found) is None


@pytest.mark.parametrize(
    "source",
    [
        "1 / 0",
        "step.idle_share",
        "step.idle_share + 1",
        "sqrt(-1)",
        "1e300 * 1e300",
        "spread(rank.wait_share)",
        "min(1, step.idle_share)",
        "if(step.idle_share > 1, 1, 2)",
    ],
)
def test_what_cannot_be_computed_is_unknown(source: str) -> None:
    """No number is invented where one is missing, infinite or undefined."""
    assert _value(source) is None


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("step.idle_share > 0.1", None),
        ("not step.idle_share > 0.1", None),
        ("step.idle_share > 0.1 or step.time_us > 1", True),
        ("step.idle_share > 0.1 and step.time_us < 1", False),
        ("step.idle_share > 0.1 and step.time_us > 1", None),
        ("known(step.idle_share)", False),
        ("run.framework == 'x'", None),
        ("50 <= step.time_us < 100", False),
    ],
)
def test_unknown_is_neither_true_nor_false(condition: str, truth: bool | None) -> None:
    """A rule never fires, nor is silent with confidence, because of a fact nobody measured."""
    made = rule(f"when: {condition}")
    assert Scope(made, RUN, _RANKS, CATALOGUE).truth(made.when) is truth


def test_a_count_is_unknown_only_where_it_could_change() -> None:
    """Two of three ranks certainly waiting are 'at least two', whatever the third does."""
    found = facts(None, r0={"rank.wait_share": 0.5}, r1={"rank.wait_share": 0.5}, r2={"rank.compute_us": 1.0})
    for limit, truth in ((">= 2", True), (">= 3", None), (">= 4", False), ("== 2", None), ("== 5", False)):
        made = rule(f"when: [{{count: {{of: rank, where: [rank.wait_share > 0.3], is: '{limit}'}}}}]")
        assert Scope(made, RUN, found, CATALOGUE).truth(made.when) is truth, limit


def test_readiness_tells_no_data_from_not_applicable() -> None:
    """Nothing measured is never reported as fine, and names the fact that would help."""
    made = rule("applies: [run.world_size > 1]\nneeds: [step.idle_share]\nwhen: step.idle_share > 0.1")

    def state(**values: float) -> Readiness:
        return readiness(
            made, RUN, facts({name.replace("__", "."): value for name, value in values.items()}), CATALOGUE
        )

    assert state(run__world_size=1).state == "not_applicable"
    assert state(run__world_size=2).missing == ("step.idle_share",)
    assert state(step__idle_share=0.5) == state(step__idle_share=0.1)
    assert state(step__idle_share=0.5).missing == ("run.world_size",)
    assert state(run__world_size=2, step__idle_share=0.0).state == "ready"


def test_a_when_that_stays_unknown_is_no_data() -> None:
    """A forgotten `needs` does not turn missing evidence into a pass."""
    made = rule("when: step.idle_share > 0.1")
    assert readiness(made, RUN, _RANKS, CATALOGUE).state == "no_data"


def test_evidence_holds_every_breached_clause_with_threshold() -> None:
    """The reader sees all that is wrong at once, each against its limit, in the unit of the value beside it."""
    made = rule(
        "params: {share: {value: 0.1, unit: ratio, origin: sample}}\n"
        "when:\n  - any: [step.idle_share > $share, step.time_us > 5e6, not: run.world_size >= 8]\n"
        "  - 0.2 <= step.idle_share < 0.9"
    )
    found = facts({"step.idle_share": 0.5, "step.time_us": 3.0, "run.world_size": 4})
    seen = {each.fact: each.condition for each in evidence(Scope(made, RUN, found, CATALOGUE))}
    assert seen == {"step.idle_share": "> 0.1, >= 0.2, < 0.9", "run.world_size": "< 8"}


def test_evidence_names_the_alternative_that_was_breached() -> None:
    """A comparison that stands back where its fact is unknown shows its fact and limit; the alternatives beside it that
    hold nothing show nothing."""
    made = rule(
        "params: {share: {value: 0.1, unit: ratio, origin: sample}}\n"
        "when:\n  - any:\n"
        "      - 'or_else(step.exposed_share > $share, false)'\n"
        "      - 'or_else(step.idle_share > $share, false)'"
    )
    found = facts({"step.idle_share": 0.5, "step.exposed_share": 0.0})
    seen = {each.fact: each.condition for each in evidence(Scope(made, RUN, found, CATALOGUE))}
    assert seen == {"step.idle_share": "> 0.1"}


def test_evidence_is_what_the_condition_rests_on() -> None:
    """The limit stands at the fact that is compared, not at the one it is multiplied by; a factor of one that comes of
    something unmeasured changes nothing, and what it rests on is no evidence."""
    made = rule("let:\n  beside: 1 - or_else(step.exposed_share, 0)\nwhen: [beside * step.idle_share > 0.1]")

    def seen(exposed: float) -> list[str]:
        found = facts({"step.idle_share": 0.5, "step.exposed_share": exposed})
        told = evidence(Scope(made, RUN, found, CATALOGUE))
        assert [bool(each.condition) for each in told] == [True] + [False] * (len(told) - 1)
        return [each.fact for each in told]

    assert seen(0.0) == ["step.idle_share"]
    assert seen(0.4) == ["step.idle_share", "step.exposed_share"]


def test_the_trace_shows_silent_clauses_too() -> None:
    """`explain` shows why a rule did not fire: each clause with the value it saw."""
    made = rule("when: [step.time_us > 5e6, run.world_size > 2]")
    clauses = trace(Scope(made, RUN, _RANKS, CATALOGUE))
    assert [(c.text, c.truth, c.threshold) for c in clauses if c.part == "when"] == [
        ("step.time_us > 5000000", False, "> 5\xa0s"),
        ("run.world_size > 2", True, "> 2"),
    ]


_FACTS = st.dictionaries(
    st.sampled_from(["step.time_us", "step.idle_share", "run.world_size", "run.mode", "run.versions", "step.count"]),
    st.one_of(st.floats(), st.integers(), st.booleans(), st.text(max_size=3), st.just((1, "a")), st.just(10**400)),
)
_SOURCES = st.sampled_from([
    "step.time_us / step.count", "step.time_us * 1e300 * 1e300", "run.mode == 'a'", "len(run.versions)",
    "1 in run.versions", "max(step.time_us, step.time_us)", "round(step.idle_share)", "median(rank:step.time_us)",
    "deviation(rank:step.time_us)", "not (step.count > 1)", "step.count in [1, 2]", "if(step.count > 1, 1, 2)",
])  # fmt: skip


@given(_FACTS, _FACTS, _SOURCES)
@settings(max_examples=300)
def test_evaluation_is_total(run: dict, own: dict, source: str) -> None:
    """Whatever was measured, of whatever type, no expression raises and no infinity comes out."""
    found = facts(run, r0=own, r1={})
    subject = rank(0) if "deviation" in source else RUN
    value = _value(source, subject, found)
    assert not isinstance(value, float) or math.isfinite(value)


def test_loading_names_all_facts_a_rule_mentions() -> None:
    """The pipeline reads what texts, savings and remedies need, not only conditions."""
    rules = load_rules([PACK], catalogue=CATALOGUE)
    assert {"step.time_us", "step.count", "step.exposed_share"} <= rules.by_id["TEST001"].uses_facts(rules.remedies)
    assert {"stage.compute_us", "rank.peer_group"} <= rules.uses_facts()


def test_what_only_rounding_tells_apart_stands_at_its_limit():
    """A mean of kernels that are all 60 % busy is 60 %, however floating point sums them up."""
    mean = sum([0.6] * 10) / 10
    assert mean != 0.6
    assert [compare(op, mean, 0.6) for op in ("<", "<=", ">", ">=")] == [False, True, False, True]
    assert compare("<", 0.5999, 0.6) is True


_EXACT = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_NUMBERS = st.floats(-1e300, 1e300, allow_subnormal=False)


@given(st.sampled_from(sorted(_EXACT)), _NUMBERS, st.floats(-3e-9, 3e-9), _NUMBERS)
def test_who_compares_exactly_finds_what_rounding_finds(op: str, limit: float, off: float, far: float) -> None:
    """Engines compare exactly: a number a rounding below the limit stood at it in one of them and not in the other."""
    for left in (limit, limit * (1 + off), math.nextafter(limit, 0), far, *_beside(exact_limit(op, limit))):
        assert _EXACT[op](left, exact_limit(op, limit)) is compare(op, left, limit)


def _beside(number: float) -> tuple[float, ...]:
    return math.nextafter(number, -math.inf), number, math.nextafter(number, math.inf)


@pytest.mark.parametrize("engine", ["durable", "python"])
def test_every_engine_takes_what_only_rounding_tells_apart_for_the_limit(engine: str) -> None:
    """One core of five that idles is a fifth, also where it is written as 1 - 0.8."""
    at_limit = facts({"step.time_us": 100 * (1 - 0.8)})
    rules = RuleSet((rule("when: step.time_us >= 20", "run"),), {})
    assert [finding.rule for finding in decide(rules, at_limit, engine=engine, catalogue=CATALOGUE).findings] == ["T1"]
