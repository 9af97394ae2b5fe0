"""What keeps durable-rules exact and alive: the forms written for it, its limits and its memory."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from engine_cases import crowd, run
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.matching.base import CompiledRule, EngineFailure, Join, Pattern, Record, Test
from advisor.engine.matching.shards import PATTERNS_PER_TYPE, PROPERTIES_PER_TYPE, deal_rules
from advisor.engine.matching.wire import ALIASES, GUARD, IDS, PROPERTIES, TYPE, Names, Tokens, hash_name, order_number

try:
    from advisor.engine.matching import durable
except ImportError:
    durable = None  # type: ignore[assignment]

needs_durable = pytest.mark.skipif(durable is None, reason="durable-rules cannot be imported")
COMPARISONS = {"$neq", "$lt", "$lte", "$gt", "$gte"}


def compared(term):
    """(property, right side) of a term, whatever its operator."""
    ((name, right),) = term.items()
    return compared(right) if name in COMPARISONS else (name, right)


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_every_conjunction_is_of_the_safe_form(seed):
    """Type first, joined properties exist, the always-true join last, nothing but conjunctions of plain terms: what
    durable-rules does else ranges from a wrong verdict to a dead process, and shows in few runs only."""
    rules, _ = crowd(Random(seed), rules=30)
    for shard in deal_rules(rules, Tokens()):
        definition = json.loads(shard.write_definition())
        assert definition.pop("s") == {"all": [{"m": {TYPE: 0}}]}
        for rule in definition.values():
            present: dict[str, set[str]] = {}
            for condition in rule["all"]:
                ((alias, body),) = condition.items()
                ((conjunction, terms),) = body.items()
                assert conjunction == "$and"
                assert list(terms[0]) == [TYPE] and isinstance(terms[0][TYPE], int)
                present[alias] = {GUARD} | {next(iter(term["$ex"])) for term in terms if "$ex" in term}
                joins = [compared(term) for term in terms if "$ex" not in term and isinstance(compared(term)[1], dict)]
                plain = [
                    compared(term) for term in terms if "$ex" not in term and not isinstance(compared(term)[1], dict)
                ]
                assert all(isinstance(literal, int) for _, literal in plain)
                for name, right in joins:
                    ((other, there),) = right.items()
                    assert name in present[alias] and there in present[other]
                if joins:
                    ((last, right),) = terms[-1].items()
                    assert last == GUARD and list(right.values()) == [GUARD]
                    assert [t for t in terms[-len(joins) :] if "$ex" in t] == []


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_shards_stay_below_the_limits(seed):
    """No fact meets more tests or carries more properties than durable-rules can take, and no rule is lost."""
    random = Random(seed)
    rules = [
        CompiledRule(
            f"R{n}",
            tuple(
                Pattern(
                    f"a{k}", random.choice("xyz"), tuple(Test(f"f{random.randrange(900)}", "!=", "v") for _ in range(9))
                )
                for k in range(random.randint(1, 15))
            ),
        )
        for n in range(120)
    ]
    shards = deal_rules(rules, Tokens())
    assert sorted(place for shard in shards for place in shard.rules) == list(range(120))
    for shard in shards:
        counts = Counter(p.type for place in shard.rules for p in rules[place].patterns)
        assert max(counts.values()) <= PATTERNS_PER_TYPE
        assert all(len(layout.properties) <= PROPERTIES_PER_TYPE for layout in shard.layouts.values())


def test_a_rule_beyond_the_limits_is_named():
    """A rule that only the python engine can hold says so when loaded."""
    wide = CompiledRule("wide", (Pattern("a", "rank", tuple(Test(f"f{n}", "==", "v") for n in range(300))),))
    joins = tuple(Join(f"f{n}", "==", "a", "x") for n in range(40))
    deep = CompiledRule("deep", (Pattern("a", "rank"), Pattern("b", "rank", (), joins)))
    for rule in (wide, deep):
        with pytest.raises(EngineFailure) as caught:
            deal_rules([rule], Tokens())
        assert caught.value.rule == rule.key


def test_generated_names_have_different_hashes():
    """durable-rules takes names of one hash for one name; "costarring" and "liquid" are such a pair."""
    assert hash_name("costarring") == hash_name("liquid")
    assert Names("r", ["r1"])[1] == "r2"
    names = [ALIASES[n] for n in range(15)] + [PROPERTIES[n] for n in range(PROPERTIES_PER_TYPE)]
    names += ["id", "sid", "$s", TYPE, GUARD]
    assert len({hash_name(name) for name in names}) == len(names)
    ids = [IDS[n] for n in range(100_000)]
    assert len({hash_name(name) for name in ids}) == len(ids)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_on_the_wire_sort_as_numbers(left, right):
    """Thresholds hold to the last bit."""
    assert (order_number(left) < order_number(right)) == (left < right)
    assert (order_number(left) == order_number(right)) == (left == right)
    assert order_number(math.nextafter(left, math.inf)) > order_number(left) or left == sys.float_info.max


@needs_durable
def test_tokens_of_one_hash_are_told_apart():
    """An equality join checks values, not only their hash bucket."""
    twins = {"left": 816606941, "right": 986016342}
    assert len({hash_name(str(token)) for token in twins.values()}) == 1
    rule = CompiledRule("R", (Pattern("h", "host"), Pattern("r", "rank", (), (Join("x", "==", "h", "x"),))))
    engine = durable.DurableEngine([rule])
    engine.begin()
    engine._tokens._known.update(twins)
    engine.add(Record("h", "host", {"x": "left"}))
    assert engine.add(Record("r1", "rank", {"x": "right"})) == []
    assert len(engine.add(Record("r2", "rank", {"x": "left"}))) == 1
    engine.end()


@needs_durable
def test_nothing_runs_in_the_background():
    """No timer thread of durable-rules is ever started, and its Python layer is not imported."""
    program = (
        "import threading, sys\n"
        "from advisor.engine.matching.durable import DurableEngine\n"
        "from advisor.engine.matching.base import CompiledRule, Pattern, Record\n"
        "e = DurableEngine([CompiledRule('R', (Pattern('a', 't'),))]); e.begin(); e.add(Record('r', 't', {}))\n"
        "print(threading.active_count(), 'durable' in sys.modules)\n"
    )
    assert python(program).split() == ["1", "False"]


@needs_durable
def test_sessions_without_joins_start_afresh():
    """Thousands of records that match cost no memory where no rule joins them."""
    program = MEMORY + (
        "e = DurableEngine([CompiledRule('R', (Pattern('a', 't', (Test('x', '>', -1.0),)),))], max_hits=10**6)\n"
        "e.begin()\n"
        "hits = sum(len(e.add(Record(f'r{n}', 't', {'x': float(n)}))) for n in range(30000))\n"
        "e.end(); print(hits, resident() - START)\n"
    )
    hits, grown = map(float, python(program).split())
    assert hits == 30_000
    assert grown < 60


@needs_durable
@pytest.mark.parametrize("renew", [False, True], ids=["one engine", "an engine per run"])
def test_three_hundred_runs_keep_no_memory(renew):
    """A service that advises all day does not grow."""
    program = MEMORY + (
        "rules = [CompiledRule(f'R{n}', (Pattern('h', 'host'), Pattern('r', 'rank', (Test('x', '>', n / 50),),\n"
        "         (Join('host', '==', 'h', 'name'),)))) for n in range(50)]\n"
        "records = [Record(f'h{n}', 'host', {'name': f'n{n}'}) for n in range(4)]\n"
        "records += [Record(f'r{n}', 'rank', {'host': f'n{n % 4}', 'x': 0.1}) for n in range(24)]\n"
        "e = DurableEngine(rules)\n"
        "for turn in range(300):\n"
        f"    e = DurableEngine(rules) if {renew} else e\n"
        "    e.begin()\n"
        "    hits = sum(len(e.add(r)) for r in records)\n"
        "    e.end()\n"
        "    START = resident() if turn == 50 else START\n"
        "print(hits, resident() - START)\n"
    )
    hits, grown = map(float, python(program).split())
    assert hits == 24 * 5
    assert grown < 10


@needs_durable
def test_runs_never_ended_are_limited():
    """The process outlives a caller that forgets to end its runs: durable-rules dies of the 1,025th."""
    program = (
        "from advisor.engine.matching.durable import DurableEngine\n"
        "from advisor.engine.matching.base import CompiledRule, EngineFailure, Pattern, Record\n"
        "engines = []\n"
        "try:\n"
        "    for n in range(1100):\n"
        "        engines.append(DurableEngine([CompiledRule('R', (Pattern('a', 't'),))]))\n"
        "        engines[-1].add(Record('r', 't', {}))\n"
        "except EngineFailure as error:\n"
        "    print(len(engines), error)\n"
        "for engine in engines: engine.end()\n"
        "print(len(engines[-1].add(Record('r', 't', {}))))\n"
    )
    assert python(program).splitlines() == ["1001 1000 runs of the same rules are open at once", "1"]


@needs_durable
def test_errors_of_the_core_are_engine_failures(monkeypatch):
    """An error inside durable-rules ends the run in a way the caller can answer with the other engine."""
    engine = durable.DurableEngine([CompiledRule("R", (Pattern("a", "t"),))])
    given_records = [Record("r", "t", {})]
    with monkeypatch.context() as patched:
        patched.setattr(durable.core, "assert_fact", lambda handle, fact: 1 / 0)
        with pytest.raises(EngineFailure, match="division by zero"):
            run(engine, given_records)
        patched.setattr(durable.core, "assert_fact", lambda handle, fact: (2, 0))
        with pytest.raises(EngineFailure, match="answered 2"):
            run(engine, given_records)
    assert len(run(engine, given_records)[0]) == 1


MEMORY = """
from advisor.engine.matching.durable import DurableEngine
from advisor.engine.matching.base import *
def resident():
    import gc, pathlib
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
START = resident()
"""


def python(program: str) -> str:
    """What the program prints in a fresh interpreter that turns warnings into errors."""
    if "resident" in program and not Path("/proc/self/statm").exists():
        pytest.skip("memory is read from /proc")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, check=True, capture_output=True, text=True
    ).stdout
