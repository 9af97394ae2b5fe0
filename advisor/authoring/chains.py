"""What lint looks for across rules: circles of explanations and of needs; and numbers and words that are not what they
seem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.basics.errors import RuleError
from advisor.facts.base import FactKind
from advisor.ruleset.language.conditions import All, Condition, FindingIs, Leaf, push_down
from advisor.ruleset.language.expression import Compare, Expr, FactRef, Literal, walk
from advisor.ruleset.rule import Rule
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import Faults, LintError

_COUNTED = ("count", "number")
"""Units in which a whole number means so many of them, and needs no origin."""
_LONGEST = 80
"""Characters of a value that are shown."""
_MOST_BITS = 10_000
"""Python writes out numbers of 4,300 digits at most."""


def find_loops(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """rule -> verdicts by which it explains its own, from it back to it. Verdicts that several rules reach do not
    count: one of them may well explain another."""
    reaching: dict[str, list[Rule]] = {}
    for rule in rules:
        reaching.setdefault(rule.verdict, []).append(rule)
    sole = {verdict: found[0] for verdict, found in reaching.items() if len(found) == 1}
    edges = {verdict: [s.verdict for s in rule.explains if s.verdict in sole] for verdict, rule in sole.items()}
    loops = {}
    for verdict, rule in sole.items():
        path = _way_back(verdict, edges)
        if path:
            loops[rule.id] = path
    return loops


def _way_back(start: str, edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    waiting: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        for following in edges.get(path[-1], ()):
            if following == start:
                return (*path, start)
            if following not in seen:
                seen.add(following)
                waiting.append((*path, following))
    return ()


def find_unreached(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """rule -> rules whose finding it needs and which, in the end, need its own: none of them is ever reached."""
    needs = {rule.id: list(_needed(push_down(All((*rule.applies, rule.when))))) for rule in rules}
    known, reached = {rule.verdict for rule in rules}, set[str]()
    waiting = list(rules)
    while True:
        ready = [rule for rule in waiting if all(set(v) & reached or not set(v) & known for v in needs[rule.id])]
        if not ready:
            break
        reached |= {rule.verdict for rule in ready}
        ids = {rule.id for rule in ready}
        waiting = [rule for rule in waiting if rule.id not in ids]
    return {
        rule.id: tuple(sorted(o.id for o in waiting if any(o.verdict in verdicts for verdicts in needs[rule.id])))
        for rule in waiting
    }


def _needed(condition: Condition) -> Iterator[tuple[str, ...]]:
    """Verdicts of which one must have been reached for the condition to hold, whatever else holds."""
    if isinstance(condition, All):
        for item in condition.items:
            yield from _needed(item)
    elif isinstance(condition, FindingIs) and not condition.absent:
        yield condition.verdicts


def bare_numbers(part: Condition, catalogue: Mapping[str, FactKind]) -> Iterator[float]:
    """Numbers in a condition that should be parameters: all but 0, 1, and how many there must be of something."""
    if not isinstance(part, Leaf) or not isinstance(part.expr, Compare):
        return
    told = [each for side in part.expr.operands for each in walk(side)]
    counted = all(_unit(each, catalogue) in _COUNTED for each in told)
    for each in told:
        number = each.value if isinstance(each, Literal) else None
        if not isinstance(number, (int, float)) or isinstance(number, bool) or number in (0, 1):
            continue
        if not counted or number != int(number):
            yield float(number)


def _unit(expr: Expr, catalogue: Mapping[str, FactKind]) -> str:
    """The unit of a fact; everything that is no fact goes with any."""
    if isinstance(expr, FactRef):
        kind = catalogue.get(expr.fact)
        return _COUNTED[0] if kind is None else kind.unit
    return _COUNTED[0]


def read_otherwise(path: Path) -> list[LintError]:
    """Values that tools of YAML 1.1 (editors, CI) read as something else: on, yes, 5e4, dates."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = read_document(path)
        theirs = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=loader)
    except (RuleError, yaml.YAMLError, OSError, ValueError, RecursionError):
        return []
    faults = Faults(document)
    for where, ours, other in _differences(document.data, theirs, ()):
        hint = f'quote it: "{ours[:_LONGEST]}"' if isinstance(ours, str) else "write 5.0e+4: with a point and a sign"
        read = "a number of thousands of digits" if _is_endless(other) else repr(other)
        faults.add(where, f"{repr(ours)[:_LONGEST]} is {read} for tools of YAML 1.1", hint, "warning")
    return faults.found


def _is_endless(value: Any) -> bool:
    """Whether Python writes out no such number."""
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def _differences(ours: Any, theirs: Any, where: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, (other, value) in zip(ours, theirs.items(), strict=False):
            if key != other or type(key) is not type(other):
                yield (*where, key), key, other
            yield from _differences(ours[key], value, (*where, key))
    elif isinstance(ours, list) and isinstance(theirs, list):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _differences(one, other, (*where, index))
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield where, ours, theirs
