"""Rules and records for engine tests, and the plainest possible engine to compare with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from advisor.engine.matching.base import OPERATORS, CompiledRule, Engine, Hit, Join, Pattern, Record, Test

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
        found = [
            (rule.priority, index, tuple(other.id for other in chosen), rule)
            for index, rule in enumerate(self.rules)
            for chosen in itertools.permutations(self.records, len(rule.patterns))
            if record in chosen and self._matches(rule, chosen)
        ]
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
def cases(
    draw: st.DrawFn, rules: int = 5, patterns: int = 3, records: int = 10
) -> tuple[list[CompiledRule], list[Record]]:
    """Rules and records of one small world: the fewer its types, fields and values, the more matches."""
    types = st.sampled_from(TYPES[: draw(st.integers(1, len(TYPES)))])
    fields = st.sampled_from(FIELDS[: draw(st.integers(1, len(FIELDS)))])
    few = st.sampled_from(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)))
    pool = draw(st.sampled_from((few, few, st.sampled_from(VALUES), _anything())))
    asked = draw(st.sampled_from((st.sampled_from(VALUES), pool)))
    made = [_rule(draw, number, patterns, types, fields, asked) for number in range(draw(st.integers(1, rules)))]
    contents = st.dictionaries(fields, pool, max_size=5)
    if draw(st.booleans()):
        contents = st.fixed_dictionaries(dict.fromkeys(FIELDS[:3], pool))
    drawn = draw(st.lists(st.tuples(types, contents), min_size=1, max_size=records))
    prefix = draw(st.sampled_from(("", "卡", "\udcff", "costarring")))
    return made, [Record(f"{prefix}{number}", type_, values) for number, (type_, values) in enumerate(drawn)]


def _rule(draw, number, patterns, types, fields, asked) -> CompiledRule:  # type: ignore[no-untyped-def]
    built: list[Pattern] = []
    numbers = st.one_of(st.sampled_from(NUMBERS), asked.map(lambda v: v if isinstance(v, float) else 0.5))
    for place in range(draw(st.integers(1, patterns))):
        terms = draw(st.lists(st.tuples(fields, st.sampled_from(OPERATORS)), max_size=2))
        tests = [Test(name, op, draw(asked if op in ("==", "!=") else numbers)) for name, op in terms]
        joins = []
        if built:
            alias = st.sampled_from([pattern.alias for pattern in built])
            joins = draw(st.lists(st.builds(Join, fields, st.sampled_from(OPERATORS), alias, fields), max_size=2))
        built.append(Pattern(f"m{place}" if place else "s", draw(types), tuple(tests), tuple(joins)))
    return CompiledRule(f"R{number}", tuple(built), draw(st.sampled_from((1, 50, 70000))))


def _anything() -> st.SearchStrategy[object]:
    return st.one_of(
        st.booleans(),
        st.text(st.characters(), max_size=20),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(-(2**70), 2**70),
    )


def crowd(
    random: Random, rules: int = 10, patterns: int = 4, records: int = 24
) -> tuple[list[CompiledRule], list[Record]]:
    """A large case of which much matches; what `cases` seldom draws."""
    types = random.sample(TYPES, random.randint(1, 4))
    fields = random.sample(FIELDS, random.randint(1, 5))
    pool = random.sample(VALUES, random.randint(1, 6))
    numbers = [value for value in pool if not isinstance(value, (bool, str))] or [0.0]
    made = []
    for number in range(rules):
        built: list[Pattern] = []
        for place in range(random.choice(range(1, patterns + 1))):
            tests, joins = [], []
            for _ in range(random.choice((0, 0, 1, 2))):
                op = random.choice(OPERATORS)
                tests.append(Test(random.choice(fields), op, random.choice(pool if op in ("==", "!=") else numbers)))
            for _ in range(random.choice((1, 1, 2, 3)) if built else 0):
                op, alias = random.choice((*OPERATORS, "==", "!=")), random.choice(built).alias
                joins.append(Join(random.choice(fields), op, alias, random.choice(fields)))
            built.append(Pattern(f"m{place}", random.choice(types), tuple(tests), tuple(joins)))
        made.append(CompiledRule(f"R{number}", tuple(built), random.choice((1, 50))))
    contents = [{name: random.choice(pool) for name in fields if random.random() < 0.9} for _ in range(records)]
    return made, [Record(f"{number}", random.choice(types), fields) for number, fields in enumerate(contents)]


def run(engine: Engine, given: Sequence[Record]) -> list[list[Hit]]:
    """The hits each record completes, in one run."""
    engine.begin()
    try:
        return [engine.add(record) for record in given]
    finally:
        engine.end()
