"""The plain matcher: every rule is asked about every subject, stratum by stratum, until nothing new follows.

It runs where durable-rules cannot be had, and it is what durable-rules must agree with: it holds no idea of its own of
records, patterns or indexes, only the truth of conditions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from advisor.engine.matching.strata import Strata, asked
from advisor.facts.base import FactKind, FactSet
from advisor.model import Subject
from advisor.ruleset.language.conditions import All
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.board import Board
from advisor.ruleset.truth.evaluate import Scope

Match = tuple[Rule, Subject]

Tell = Callable[[Sequence[Match]], Sequence[str]]
"""Takes the matches of a round, enters their verdicts on the board, and returns these verdicts."""


def match(
    rules: Sequence[Rule],
    judged: Mapping[str, Sequence[Subject]],
    facts: FactSet,
    catalogue: Mapping[str, FactKind],
    strata: Strata,
    board: Board,
    tell: Tell,
) -> None:
    """Tells every rule with every subject it holds for, each once, in rounds. `judged`: rule id -> subjects that are
    ready; `board`: the verdicts reached so far.

    A rule is asked again only where a verdict it asks for was reached in the round before. Absence is certain within a
    stratum: whatever could reach the verdict lies below.
    """
    told: set[tuple[str, Subject]] = set()

    def holds(rule: Rule, subject: Subject) -> bool:
        whole = All((*rule.applies, rule.when))
        return Scope(rule, subject, facts, catalogue).truth(whole, board) is True

    for level in sorted(set(strata.of_rule.values())):
        here = [rule for rule in rules if strata.of_rule.get(rule.id) == level and judged.get(rule.id)]
        waiting: dict[str, list[Rule]] = defaultdict(list)
        for rule in here:
            for verdict in {verdict for condition in asked(rule) for verdict in condition.verdicts}:
                waiting[verdict].append(rule)
        due = here
        while due:
            found = [
                (rule, subject)
                for rule in due
                for subject in judged[rule.id]
                if (rule.id, subject) not in told and holds(rule, subject)
            ]
            told.update((rule.id, subject) for rule, subject in found)
            reached = set(tell(found)) if found else set()
            again = {rule.id for verdict in reached for rule in waiting[verdict]}
            due = [rule for rule in here if rule.id in again]
