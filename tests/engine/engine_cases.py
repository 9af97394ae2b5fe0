"""Rules and records for engine tests, and the plainest possible engine to compare with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from advisor.engine.base import OPERATORS, CompiledRule, Engine, Hit, Join, Pattern, Record, Test

TYPES = ("rank", "run", "costarring", "liquid", "id")
"""costarring and liquid have the same 32-bit FNV-1a hash."""
FIELDS = ("x", "step.idle_share", "costarring", "liquid", "id", "sid", "$s", "名称")
VALUES = (
    True,
    False,
    1,
    0,
    1.0,
    -0.0,
    "1",
    "1.0",
    "True",
    "true",
    "",
    "中文",
    'it\'s "quoted" \\ \n',
    "nul\0a",
    "nul\0b",
    "\ud800",
    1e-5,
    1.0000000000000002e-05,
    1e22,
    5e-324,
    1.7e308,
    -1e-7,
    -3.5,
    2**60,
)
NUMBERS = tuple(value for value in VALUES if not isinstance(value, (bool, str)))


class NaiveEngine:
    """Tries every combination of records, straight from the contract."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules, self.records = rules, list[Record]()

    def add(self, record: Record) -> list[Hit]:
        self.records.append(record)
        found = []
        for index, rule in enumerate(self.rules):
            for chosen in itertools.permutations(self.records, len(rule.patterns)):
                if record in chosen and self._matches(rule, chosen):
                    found.append((rule.priority, index, tuple(r.id for r in chosen), rule))
        found.sort(key=lambda hit: hit[:3])
        return [
            Hit(rule.key, tuple((p.alias, id_) for p, id_ in zip(rule.patterns, ids, strict=True)))
            for _, _, ids, rule in found
        ]

    def _matches(self, rule: CompiledRule, chosen: Sequence[Record]) -> bool:
        bound = {}
        for pattern, record in zip(rule.patterns, chosen, strict=True):
            bound[pattern.alias] = record.fields
            if record.type != pattern.type:
                return False
            if not all(_holds(record.fields.get(t.field), t.op, t.value) for t in pattern.tests):
                return False
            if not all(_holds(record.fields.get(j.field), j.op, bound[j.alias].get(j.other)) for j in pattern.joins):
                return False
        return True


def _holds(left: object, op: str, right: object) -> bool:
    kinds = {bool: "truth", str: "text", int: "number", float: "number"}
    if left is None or right is None or kinds[type(left)] != kinds[type(right)]:
        return False
    if kinds[type(left)] == "number":
        left, right = float(left), float(right)  # type: ignore[arg-type]
    elif op not in ("==", "!="):
        return False
    return bool(eval(f"left {op} right", {"left": left, "right": right}))


@st.composite
def compiled_rules(draw: st.DrawFn, most: int = 5, patterns: int = 3) -> list[CompiledRule]:
    """A few rules over few types and fields, so that much matches."""
    rules = []
    types, fields = st.sampled_from(TYPES[: draw(st.integers(1, 5))]), st.sampled_from(FIELDS)
    for number in range(draw(st.integers(1, most))):
        built: list[Pattern] = []
        for place in range(draw(st.integers(1, patterns))):
            asked = draw(st.lists(st.tuples(fields, st.sampled_from(OPERATORS)), max_size=2))
            tests = [Test(name, op, draw(_literals(op))) for name, op in asked]
            joins = []
            if built:
                alias = st.sampled_from([p.alias for p in built])
                joins = draw(st.lists(st.builds(Join, fields, st.sampled_from(OPERATORS), alias, fields), max_size=3))
            built.append(Pattern(f"m{place}" if place else "s", draw(types), tuple(tests), tuple(joins)))
        rules.append(CompiledRule(f"R{number}", tuple(built), draw(st.sampled_from((1, 50, 70000)))))
    return rules


def _literals(op: str) -> st.SearchStrategy[object]:
    return st.sampled_from(VALUES if op in ("==", "!=") else NUMBERS)


@st.composite
def records(draw: st.DrawFn, most: int = 10) -> list[Record]:
    """Records with some fields missing, from few values (dense) or any (sparse)."""
    pool = draw(st.sampled_from((st.sampled_from(VALUES[:5]), st.sampled_from(VALUES), _anything())))
    fields = st.dictionaries(st.sampled_from(FIELDS), pool, max_size=5)
    drawn = draw(st.lists(st.tuples(st.sampled_from(TYPES), fields), min_size=1, max_size=most))
    prefix = draw(st.sampled_from(("", "卡", "\udcff", "costarring")))
    return [Record(f"{prefix}{number}", type_, values) for number, (type_, values) in enumerate(drawn)]


def _anything() -> st.SearchStrategy[object]:
    return st.one_of(
        st.booleans(),
        st.text(st.characters(), max_size=20),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(-(2**70), 2**70),
    )


def run(engine: Engine, given: Sequence[Record]) -> list[list[Hit]]:
    """The hits each record completes, in one run."""
    engine.begin()
    try:
        return [engine.add(record) for record in given]
    finally:
        engine.end()
