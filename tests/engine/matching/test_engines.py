"""The contract of `Engine`, held by durable-rules."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from engine_cases import VALUES, NaiveEngine, cases, crowd, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.basics.errors import RuleError
from advisor.engine.matching.base import CompiledRule, EngineFailure, Join, Pattern, Record, RecordError, Test

try:
    from advisor.engine.matching.durable import DurableEngine
except ImportError:
    DurableEngine = None  # type: ignore[assignment,misc]

ENGINES = [
    pytest.param(
        DurableEngine,
        id="durable",
        marks=pytest.mark.skipif(DurableEngine is None, reason="durable-rules cannot be imported"),
    ),
]
each_engine = pytest.mark.parametrize("make", ENGINES)


def one(key="R", type_="rank", *tests, joins=()):
    return CompiledRule(key, (Pattern("a", type_, tests, joins),))


def pair(*joins, key="R"):
    return CompiledRule(key, (Pattern("a", "host"), Pattern("b", "rank", (), joins)))


@each_engine
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_hits_are_those_of_the_contract(make, case):
    """Each record brings exactly the hits, in exactly the order, that trying every combination brings."""
    rules, given_records = case
    naive = NaiveEngine(rules)
    assert run(make(rules), given_records) == [naive.add(record) for record in given_records]


@pytest.mark.skipif(DurableEngine is None, reason="durable-rules cannot be imported")
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_many_rules_match_as_one_by_one(seed):
    """Rules that share types and fields do not disturb each other, in whatever order the records come."""
    random = Random(seed)
    rules, given_records = crowd(random)
    few, given_records = random.sample(rules, min(len(rules), 8)), given_records[:9]
    for order in (given_records, random.sample(given_records, len(given_records))):
        naive = NaiveEngine(few)
        assert run(DurableEngine(few, max_hits=10**9), order) == [naive.add(record) for record in order]


@each_engine
def test_a_value_equals_only_values_of_its_type(make):
    """True, 1 and "1" are three values, in tests and in joins, for == and for !=."""
    for mine in VALUES:
        for other in VALUES:
            numbers = not isinstance(mine, (bool, str)) and not isinstance(other, (bool, str))
            comparable = numbers or type(mine) is type(other)
            for op, expected in (("==", comparable and mine == other), ("!=", comparable and mine != other)):
                fact = Record("r", "rank", {"x": mine})
                assert bool(run(make([one("R", "rank", Test("x", op, other))]), [fact])[-1]) == expected, (
                    mine,
                    op,
                    other,
                )
                host = Record("h", "host", {"y": other})
                assert bool(run(make([pair(Join("x", op, "a", "y"))]), [host, fact])[-1]) == expected, (mine, op, other)


@each_engine
def test_floats_are_ordered_exactly(make):
    """Neighbouring floats are told apart, whatever their notation."""
    numbers = sorted({-1e300, -1e-7, -5e-324, 0.0, 5e-324, 1e-5, 1.0000000000000002e-05, 0.1, 1.0, 1e16, 1e22, 1.7e308})
    for low, high in pairwise(numbers):
        for op, pairs in (("<", [(low, high)]), ("<=", [(low, high), (low, low)]), (">", [(high, low)])):
            hits = [
                bool(run(make([one("R", "rank", Test("x", op, b))]), [Record("r", "rank", {"x": a})])[0])
                for a, b in ((low, high), (low, low), (high, low))
            ]
            assert hits == [(a, b) in pairs for a, b in ((low, high), (low, low), (high, low))]


@each_engine
def test_absent_fields_fail_every_test(make):
    """What was not measured never fires a rule, not even by !=, and does not disturb later records."""
    rules = [one("T", "rank", Test("x", "!=", 1.0)), pair(Join("x", "!=", "a", "y"), key="J")]
    given_records = [
        Record("h0", "host", {}),
        Record("h1", "host", {"y": 1.0}),
        Record("r0", "rank", {}),
        Record("r1", "rank", {"x": 2.0}),
    ]
    hits = run(make(rules), given_records)
    assert hits[:3] == [[], [], []]
    assert [(hit.key, hit.bindings) for hit in hits[3]] == [("T", (("a", "r1"),)), ("J", (("a", "h1"), ("b", "r1")))]


@each_engine
def test_long_texts_differ_at_their_ends(make):
    """Texts of 4096 characters of any script are compared whole."""
    text = "通" * 4095
    rules = [one("R", "rank", Test("x", "==", text + "a"))]
    hits = run(make(rules), [Record("1", "rank", {"x": text + "a"}), Record("2", "rank", {"x": text + "b"})])
    assert [len(h) for h in hits] == [1, 0]


@each_engine
def test_a_record_fills_one_pattern_of_a_hit(make):
    """A rank is never compared with itself."""
    rule = CompiledRule("R", (Pattern("a", "rank"), Pattern("b", "rank", (), (Join("x", "==", "a", "x"),))))
    hits = run(make([rule]), [Record("1", "rank", {"x": 1}), Record("2", "rank", {"x": 1.0})])
    assert hits[0] == []
    assert [hit.bindings for hit in hits[1]] == [(("a", "1"), ("b", "2")), (("a", "2"), ("b", "1"))]


@each_engine
def test_hits_come_by_priority_then_definition_then_ids(make):
    """The order of findings can be told from the rules."""
    rules = [
        CompiledRule(key, (Pattern("h", "host"), Pattern("r", "rank")), priority)
        for key, priority in (("late", 60), ("b", 50), ("a", 50), ("first", -5), ("last", 70000))
    ]
    given_records = [Record(id_, "host", {}) for id_ in ("h2", "h10", "h1")] + [Record("r", "rank", {})]
    hits = run(make(rules), given_records)[-1]
    assert [hit.key for hit in hits[::3]] == ["first", "b", "a", "late", "last"]
    assert [hit.bindings[0][1] for hit in hits[:3]] == ["h1", "h10", "h2"]


@each_engine
def test_seven_hundred_rules_hold_at_once(make):
    """A large pack loses no match, however many of its rules fire on one record."""
    rules = [one(f"R{n}", "rank", Test("x", ">", -float(n) - 1)) for n in range(700)]
    rules += [CompiledRule(f"J{n}", (Pattern("h", "host"), Pattern("r", "rank"))) for n in range(100)]
    hits = run(make(rules), [Record("h", "host", {}), Record("r", "rank", {"x": 0.0})])
    assert [hit.key for hit in hits[1]] == [rule.key for rule in rules]


@each_engine
def test_six_hundred_identical_rules_hold_at_once(make):
    """Rules that ask the same all fire."""
    rules = [one(f"R{n}", "rank", Test("x", "==", "a"), Test("y", "==", True)) for n in range(600)]
    hits = run(make(rules), [Record("r", "rank", {"x": "a", "y": True})])
    assert len(hits[0]) == 600


@each_engine
def test_wide_records_and_rules_hold(make):
    """Thousands of fields in the records and hundreds in the rules do no harm."""
    rules = [one(f"R{n}", "rank", *(Test(f"f{n * 5 + k}", "==", k) for k in range(5))) for n in range(200)]
    fields = {f"f{n * 5 + k}": float(k) for n in range(400) for k in range(5)}
    assert len(run(make(rules), [Record("r", "rank", fields)])[0]) == 200


@each_engine
def test_many_types_hold(make):
    """A pack may speak of hundreds of types."""
    rules = [CompiledRule(f"R{n}", (Pattern("a", f"T{n}"), Pattern("b", f"T{n + 1}"))) for n in range(600)]
    hits = run(make(rules), [Record(f"r{n}", f"T{n}", {}) for n in range(601)])
    assert [len(h) for h in hits] == [0] + [1] * 600


@each_engine
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, None, [1.0], b"x", "x" * 4097, 1j])
def test_what_cannot_be_judged_is_refused(make, value):
    """A value that is no measurement ends in a message naming record and field, and the run goes on."""
    engine = make([one("R", "rank", Test("x", "==", 1.0))])
    engine.begin()
    with pytest.raises(RecordError, match=r"record 'r'.*field 'x'"):
        engine.add(Record("r", "rank", {"x": value}))
    assert len(engine.add(Record("r", "rank", {"x": 1.0}))) == 1
    engine.end()


@each_engine
def test_an_id_is_used_once_in_a_run(make):
    """Two records of one id would mix two findings up."""
    engine = make([one()])
    engine.begin()
    engine.add(Record("r", "rank", {}))
    with pytest.raises(RecordError, match="used before"):
        engine.add(Record("r", "host", {}))
    engine.end()
    assert run(engine, [Record("r", "rank", {})])[0]


@each_engine
@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([one(), one()], "another compiled rule"),
        ([CompiledRule("R", ())], "0 patterns"),
        ([CompiledRule("R", tuple(Pattern(f"a{n}", "rank") for n in range(16)))], "16 patterns"),
        ([CompiledRule("R", (Pattern("a", "rank"), Pattern("a", "rank")))], "used twice"),
        ([one("R", "rank", Test("x", "~", 1.0))], "unknown operator"),
        ([one("R", "rank", Test("x", "<", "a"))], "orders numbers only"),
        ([one("R", "rank", Test("x", ">", True))], "orders numbers only"),
        ([one("R", "rank", Test("x", "==", float("nan")))], "not a finite number"),
        ([one("R", "rank", joins=(Join("x", "==", "a", "y"),))], "no earlier pattern"),
        ([one("R", "rank", joins=(Join("x", "?", "b", "y"),))], "unknown operator"),
    ],
)
def test_rules_outside_the_grammar_are_refused(make, rules, message):
    """A rule no engine can hold is named when it is loaded, not when it fails to fire."""
    with pytest.raises(RuleError, match=message):
        make(rules)


@each_engine
def test_fifteen_patterns_hold(make):
    """The longest chain of the grammar fires once."""
    patterns = [Pattern("a0", "T0")]
    patterns += [Pattern(f"a{n}", f"T{n}", (), (Join("x", "==", f"a{n - 1}", "x"),)) for n in range(1, 15)]
    hits = run(make([CompiledRule("R", tuple(patterns))]), [Record(f"r{n}", f"T{n}", {"x": "k"}) for n in range(15)])
    assert [len(h) for h in hits] == [0] * 14 + [1]


@each_engine
def test_a_rule_that_explodes_is_stopped_and_named(make):
    """A cross product ends in an error naming its rule, not in an endless report; the engine can be used again."""
    engine = make([one("fine"), pair(key="product")], max_hits=500)
    given_records = [Record(f"{type_}{n}", type_, {}) for n in range(100) for type_ in ("host", "rank")]
    with pytest.raises(EngineFailure, match="more than 500 matches") as caught:
        run(engine, given_records)
    assert caught.value.rule == "product"
    assert len(run(engine, given_records[:4])[3]) == 3


@each_engine
def test_partial_matches_are_bounded(make):
    """A join of many patterns is stopped although it never completes a hit."""
    rule = CompiledRule(
        "wide", (*(Pattern(f"a{n}", "rank") for n in range(6)), Pattern("z", "rank", (Test("x", "==", "no"),)))
    )
    given_records = [Record(f"r{n}", "rank", {}) for n in range(300)]
    engine = make([rule])
    with pytest.raises(EngineFailure) as caught:
        run(engine, given_records)
    assert caught.value.rule == "wide"


PROGRAM = """
import sys
from advisor.engine.matching.base import *
from advisor.engine.matching.select import make_engine
rules = [CompiledRule(f"R{n}", (Pattern("h", "host"), Pattern("r", "rank", (Test(f"f{n % 7}", "!=", 1.0),),
         (Join("x", "==", "h", "x"),)))) for n in range(60)]
engine = make_engine(rules, sys.argv[1])
engine.begin()
for n in range(20):
    engine.add(Record(f"h{n}", "host", {"x": str(n % 3)}))
for n in range(20):
    fields = {"x": str(n % 3), **{f"f{k}": float(n % (k + 1)) for k in range(7)}}
    for hit in engine.add(Record(f"r{n}", "rank", fields)):
        print(hit.key, hit.bindings)
engine.end()
"""


@each_engine
def test_order_does_not_depend_on_the_hash_seed(make):
    """Two runs of one profile give the same report, byte for byte."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, make.name],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) > 1000
