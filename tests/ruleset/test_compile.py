"""Rules as patterns: the engine finds exactly what evaluation says."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Reached, decide, judged_of
from samples import CATALOGUE, PACK, facts, rank, rule

from advisor.engine.matching.base import Record
from advisor.engine.matching.program import compile_rules, finding_record, stratum_records
from advisor.engine.matching.strata import stratify
from advisor.facts.base import FactSet
from advisor.model import Fact, Subject
from advisor.ruleset.files.loader import load_rules
from advisor.ruleset.language.arithmetic import exact_limit
from advisor.ruleset.rule import Rule

durable = pytest.importorskip("advisor.engine.matching.durable", reason="durable-rules cannot be imported")


def engine_decides(rules: list[Rule], found: FactSet) -> set[tuple[str, Subject]]:
    """What matching records with patterns concludes, chained as the judge does it."""
    compiled = compile_rules(rules, judged_of(rules, found, CATALOGUE), found, CATALOGUE, stratify(rules))
    by_id = {each.id: each for each in rules}
    machine = durable.DurableEngine(compiled.rules)
    machine.begin()
    reached: list[Reached] = []

    def feed(records: list[Record]) -> None:
        while records:
            following = []
            for hit in [hit for record in records for hit in machine.add(record)]:
                name, subject = compiled.read(hit)
                new = Reached(name, by_id[name].verdict, subject)
                if new not in reached:
                    reached.append(new)
                    following.append(finding_record(new))
            records = following

    feed(list(compiled.records))
    for record in stratum_records(compiled, lambda: reached):
        feed([record])
    machine.end()
    return {(each.rule, each.subject) for each in reached}


_LEAVES = {
    "run": [
        "step.idle_share > 0.3", "not step.idle_share > 0.3", "run.mode == 'a'", "run.mode != 'a'",
        "run.world_size in [2, 4]",
        "step.time_us > 2 * median(rank:step.time_us)", "known(step.idle_share)", "highest(rank.compute_us) >= 3",
        "0.1 <= step.idle_share < 0.5",
    ],
    "rank": [
        "rank.compute_us > 2", "rank.late", "not rank.late", "ratio_to_median(rank.compute_us) > 1.1",
        "step.idle_share > run:step.idle_share", "run.world_size > 2", "rank.compute_us <= 3", "rank.stage == 0",
        "stage:stage.compute_us > 2", "or_else(rank.wait_share, 0) < 0.5", "subject.id in ['0', '1']",
    ],
}  # fmt: skip
_COUNT = [{"count": {"of": "rank", "where": ["rank.compute_us > 2"], "is": ">= 2"}}]
_VERDICTS = ("acme/v0", "acme/v1", "acme/v2", "acme/v3")


def _conditions(kind: str, position: int) -> st.SearchStrategy[Any]:
    leaves: list[Any] = [*_LEAVES[kind], *(_COUNT if kind == "run" else [])]
    earlier = _VERDICTS[:position]
    about = [
        {word: verdict, "on": on}
        for verdict, on in itertools.product(earlier, ("same", "any", "overlapping"))
        for word in ("finding", "no_finding")
    ]
    base = st.sampled_from([*leaves, *about, *leaves])
    return st.recursive(
        base,
        lambda inner: st.one_of(
            st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"not": inner}),
        ),
        max_leaves=5,
    )


def _yaml(condition: Any) -> str:
    if isinstance(condition, dict):
        return "{" + ", ".join(f"{key}: {_yaml(value)}" for key, value in condition.items()) + "}"
    if isinstance(condition, list):
        return "[" + ", ".join(map(_yaml, condition)) + "]"
    return f'"{condition}"'


@st.composite
def _rules(draw: st.DrawFn) -> list[Rule]:
    made = []
    for position in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["run", "rank"]))
        text = f"when: {_yaml(draw(_conditions(kind, position)))}"
        if draw(st.booleans()):
            text += f"\napplies: {_yaml([draw(_conditions(kind, position))])}"
        made.append(rule(text, kind, id=f"R{position}", verdict=_VERDICTS[draw(st.integers(position, 3))]))
    return made


_NUMBERS = st.sampled_from([0.0, 1, 2.0, 3, 4.0])
_RUN = st.fixed_dictionaries(
    {},
    optional={
        "step.idle_share": st.sampled_from([0.0, 0.1, 0.3, 0.4, 0.5]),
        "run.mode": st.sampled_from(["a", "b"]),
        "run.world_size": _NUMBERS,
        "step.time_us": _NUMBERS,
    },
)
_RANK = st.fixed_dictionaries(
    {},
    optional={
        "rank.compute_us": _NUMBERS,
        "rank.late": st.booleans(),
        "rank.stage": st.sampled_from([0, 1]),
        "rank.wait_share": st.sampled_from([0.2, 0.5]),
        "step.idle_share": st.sampled_from([0.0, 0.3, 0.4]),
        "step.time_us": _NUMBERS,
        "rank.peer_group": st.sampled_from(["x", "y"]),
    },
)


@given(_rules(), _RUN, st.lists(_RANK, max_size=4), st.lists(_NUMBERS, max_size=3))
@settings(max_examples=250)
def test_the_engine_finds_what_evaluation_finds(
    rules: list[Rule], run: dict[str, Any], ranks: list[dict[str, Any]], stages: list[float]
) -> None:
    """Patterns, alternatives, derived fields and strata lose nothing and invent nothing."""
    found = facts(run, **{f"r{number}": values for number, values in enumerate(ranks)})
    for number, compute in enumerate(stages):
        subject = Subject("stage", str(number), tuple(range(2 * number, 2 * number + 2)))
        found.add(Fact("stage.index", subject, number % 2))
        found.add(Fact("stage.compute_us", subject, compute))
    assert engine_decides(rules, found) == decide(rules, found, CATALOGUE)


def test_thresholds_stay_tests_of_the_engine() -> None:
    """A comparison of a fact with a threshold is matched by the engine, not in Python before it."""
    made = rule("when: [step.idle_share > 0.3, run.mode != 'a']")
    found = facts({"step.idle_share": 0.5, "run.mode": "b"})
    judged = judged_of([made], found, CATALOGUE)
    (compiled,) = compile_rules([made], judged, found, CATALOGUE, stratify([made])).rules
    assert [(t.field, t.op, t.value) for t in compiled.patterns[0].tests] == [
        ("step.idle_share", ">", exact_limit(">", 0.3)),
        ("run.mode", "!=", "a"),
    ]


def test_subjects_of_one_name_stay_apart() -> None:
    """The same operator on two ranks makes two records and two findings."""
    names = [Subject("rank", "0", (0,)), Subject("rank", "0", (1,))]
    found = FactSet(Fact("rank.compute_us", each, 5.0) for each in names)
    made = [rule("when: rank.compute_us > 2", "rank")]
    assert engine_decides(made, found) == {("T1", each) for each in names}


def test_rules_that_wait_for_their_own_silence_are_errors() -> None:
    """Two rules that each ask for the other's absence stand in no stratum, and the rest is still judged."""
    rules = [
        rule("when: [{no_finding: acme/b}]", id="A1", verdict="acme/a"),
        rule("when: [{no_finding: acme/a}]", id="B1", verdict="acme/b"),
        rule("when: run.world_size > 1", id="C1", verdict="acme/c"),
    ]
    found = facts({"run.world_size": 2})
    assert stratify(rules).circular == {"A1", "B1"}
    assert {name for name, _ in decide(rules, found, CATALOGUE)} == {"C1"}


def test_sample_rules_compile() -> None:
    """The peers, the holder and the count of the sample pack all reach the engine."""
    rules = list(load_rules([PACK], catalogue=CATALOGUE).rules)
    found = facts(
        None,
        **{
            f"r{n}": {"rank.compute_us": 2000.0 if n == 3 else 1000.0, "rank.stage": 0, "rank.wait_share": 0.5}
            for n in range(4)
        },
    )
    stage = Subject("stage", "0", (0, 1, 2, 3))
    for name, value in (("stage.index", 0), ("stage.compute_us", 1000.0)):
        found.add(Fact(name, stage, value))
    assert engine_decides(rules, found) == decide(rules, found, CATALOGUE) == {("TEST002", rank(3))}
