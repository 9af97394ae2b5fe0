"""The engine in plain Python: reference for the other one, and what runs where durable-rules cannot be installed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from advisor.engine.matching.alpha import AlphaIndex
from advisor.engine.matching.base import MAX_HITS, CompiledRule, EngineFailure, Hit, Record
from advisor.engine.matching.values import SWAPPED, Value, check_record, check_rules, holds

MAX_TRIALS = 50_000_000
"""Records that one rule may try in joins in a run, about half a minute: some joins search long and find little."""


@dataclass(frozen=True)
class Link:
    """A join seen from the pattern to be filled: its `field` op the `other` field of the pattern at `position`."""

    field: str
    op: str
    position: int
    other: str


@dataclass(frozen=True)
class Step:
    """Fill one pattern: look its records up by the first equality, if any, then test the other links."""

    position: int
    node: int
    lookup: Link | None
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Plan:
    """How to complete a rule when a record passes the literal tests of the pattern at `start`."""

    rule: int
    start: int
    steps: tuple[Step, ...]


@dataclass
class Memory:
    """Records that passed one node, in order of arrival, and by the values of the fields equalities ask for."""

    records: list[Item] = field(default_factory=list)
    by_field: dict[str, dict[Value, list[Item]]] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        self.records.append(item)
        for name, groups in self.by_field.items():
            value = item.fields.get(name)
            if value is not None:
                groups[value].append(item)


class Item:
    """A stored record: id and normalized fields."""

    __slots__ = ("fields", "id")

    def __init__(self, id_: str, fields: dict[str, Value]) -> None:
        self.id, self.fields = id_, fields


class PythonEngine:
    """`Engine` with literal tests indexed by value and equality joins indexed by field.

    The new record is tried in each pattern it passes; the other patterns are filled from earlier records, those that
    an equality ties to filled ones first. `max_hits` bounds the hits of a run and `max_trials` the records one rule
    tries in joins; beyond them `add` raises `EngineFailure` naming the rule.
    """

    name = "python"

    def __init__(self, rules: Sequence[CompiledRule], max_hits: int = MAX_HITS, max_trials: int = MAX_TRIALS) -> None:
        check_rules(rules)
        self.reason = ""
        self.rules = tuple(rules)
        self.max_hits, self.max_trials = max_hits, max_trials
        self._alpha = AlphaIndex()
        self._plans: dict[int, list[Plan]] = defaultdict(list)
        self._stored: dict[int, set[str]] = {}
        """Nodes whose records later ones are joined with, and the fields they are looked up by."""
        for index, rule in enumerate(self.rules):
            nodes = [self._alpha.node(pattern).number for pattern in rule.patterns]
            for start, node in enumerate(nodes):
                self._plans[node].append(self._plan(index, rule, start, nodes))
        self.begin()

    def _plan(self, index: int, rule: CompiledRule, start: int, nodes: list[int]) -> Plan:
        places = {pattern.alias: place for place, pattern in enumerate(rule.patterns)}
        links: dict[int, list[Link]] = defaultdict(list)
        for place, pattern in enumerate(rule.patterns):
            for join in pattern.joins:
                other = places[join.alias]
                links[place].append(Link(join.field, join.op, other, join.other))
                links[other].append(Link(join.other, SWAPPED[join.op], place, join.field))
        filled, steps = {start}, []
        while len(filled) < len(nodes):
            usable = {
                place: [link for link in links[place] if link.position in filled]
                for place in range(len(nodes))
                if place not in filled
            }
            place = min(usable, key=lambda p: (not any(k.op == "==" for k in usable[p]), not usable[p], p))
            lookup = next((link for link in usable[place] if link.op == "=="), None)
            rest = tuple(link for link in usable[place] if link is not lookup)
            steps.append(Step(place, nodes[place], lookup, rest))
            fields = self._stored.setdefault(nodes[place], set())
            if lookup:
                fields.add(lookup.field)
            filled.add(place)
        return Plan(index, start, tuple(steps))

    def begin(self) -> None:
        self._seen: set[str] = set()
        self._count = 0
        self._hits: Counter[int] = Counter()
        self._trials: Counter[int] = Counter()
        self._memories = {
            node: Memory(by_field={name: defaultdict(list) for name in sorted(fields)})
            for node, fields in self._stored.items()
        }

    def add(self, record: Record) -> list[Hit]:
        fields = check_record(record, self._seen)
        item = Item(record.id, fields)
        nodes = self._alpha.match(record.type, fields)
        found: list[tuple[int, int, tuple[str, ...]]] = []
        for node in nodes:
            for plan in self._plans[node.number]:
                rule = self.rules[plan.rule]
                bound: list[Item | None] = [None] * len(rule.patterns)
                bound[plan.start] = item
                for ids in self._complete(plan, 0, bound):
                    found.append((rule.priority, plan.rule, ids))
                    self._count += 1
                    self._hits[plan.rule] += 1
                    if self._count > self.max_hits:
                        self._fail(f"more than {self.max_hits} matches in one run", self._hits.most_common(1)[0][0])
        for node in nodes:
            if node.number in self._memories:
                self._memories[node.number].add(item)
        found.sort()
        return [self._hit(index, ids) for _, index, ids in found]

    def end(self) -> None:
        self.begin()

    def _hit(self, index: int, ids: tuple[str, ...]) -> Hit:
        rule = self.rules[index]
        return Hit(rule.key, tuple((pattern.alias, id_) for pattern, id_ in zip(rule.patterns, ids, strict=True)))

    def _complete(self, plan: Plan, depth: int, bound: list[Item | None]) -> Iterator[tuple[str, ...]]:
        """Ids in pattern order, once for every way to fill the patterns of the steps from `depth` on."""
        if depth == len(plan.steps):
            yield tuple(item.id for item in bound if item is not None)
            return
        step = plan.steps[depth]
        for item in self._candidates(step, bound):
            self._trials[plan.rule] += 1
            if self._trials[plan.rule] > self.max_trials:
                self._fail(f"its joins tried more than {self.max_trials} records in one run", plan.rule)
            if item in bound or not all(
                holds(link.op, item.fields.get(link.field), _filled(bound, link.position).fields.get(link.other))
                for link in step.links
            ):
                continue
            bound[step.position] = item
            yield from self._complete(plan, depth + 1, bound)
            bound[step.position] = None

    def _candidates(self, step: Step, bound: list[Item | None]) -> Sequence[Item]:
        memory = self._memories[step.node]
        if step.lookup is None:
            return memory.records
        value = _filled(bound, step.lookup.position).fields.get(step.lookup.other)
        return () if value is None else memory.by_field[step.lookup.field].get(value, ())

    def _fail(self, message: str, rule: int) -> None:
        raise EngineFailure(
            message, rule=self.rules[rule].key, hint="join its patterns by an equality, or narrow them with tests"
        )


def _filled(bound: list[Item | None], position: int) -> Item:
    item = bound[position]
    assert item is not None
    return item
