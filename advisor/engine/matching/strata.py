"""In which order rules must be judged so that "no finding" means what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from advisor.ruleset.language.conditions import All, FindingIs, parts, push_down
from advisor.ruleset.rule import Rule

CIRCULAR = "depends, through other rules, on the absence of its own verdict"
"""Why a rule that stands in no stratum cannot be judged."""


class Strata(Struct, frozen=True):
    """Rule id -> stratum, verdict -> the stratum from which its absence is certain, and rules that depend on the
    absence of what they (through others) conclude themselves."""

    of_rule: Mapping[str, int]
    complete: Mapping[str, int]
    circular: frozenset[str]


def asked(rule: Rule) -> list[FindingIs]:
    """The conditions on findings, with `not` worked in."""
    whole = push_down(All((*rule.applies, rule.when)))
    return [part for part in parts(whole) if isinstance(part, FindingIs)]


def stratify(rules: Sequence[Rule]) -> Strata:
    """Strata of these rules: a rule comes after all that can reach a verdict whose absence it asks for, and not before
    those that can reach a verdict whose presence it asks for."""
    reaching: dict[str, list[str]] = {}
    for rule in rules:
        reaching.setdefault(rule.verdict, []).append(rule.id)
    edges: dict[str, dict[str, bool]] = {rule.id: {} for rule in rules}
    for rule in rules:
        for condition in asked(rule):
            for other in (other for verdict in condition.verdicts for other in reaching.get(verdict, ())):
                edges[rule.id][other] = edges[rule.id].get(other, False) or condition.absent
    circular: set[str] = set()
    levels: dict[str, int] = {}
    for component in _components(edges):
        members = set(component)
        if any(absent and other in members for rule in component for other, absent in edges[rule].items()):
            circular |= members
            continue
        outside = [
            levels[other] + absent
            for rule in component
            for other, absent in edges[rule].items()
            if other not in members and other in levels
        ]
        levels.update(dict.fromkeys(component, max(outside, default=0)))
    complete = {
        verdict: max((levels[rule] for rule in ids if rule in levels), default=-1) + 1
        for verdict, ids in reaching.items()
    }
    return Strata(levels, complete, frozenset(circular))


def _components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan, without recursion), each after those it points to."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    open_: set[str] = set()
    found: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        open_.add(root)
        while work:
            node, following = work[-1]
            other = next(following, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[str] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                    open_ -= set(component)
                    found.append(component)
            elif other not in index:
                index[other] = low[other] = len(index)
                stack.append(other)
                open_.add(other)
                work.append((other, iter(edges[other])))
            elif other in open_:
                low[node] = min(low[node], index[other])
    return found
