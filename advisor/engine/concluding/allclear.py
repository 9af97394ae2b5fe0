"""Whether the evidence suffices to call a profile without findings healthy (knowledge_base/all_clear.yaml)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from advisor.basics.units import show
from advisor.facts.base import FactSet
from advisor.knowledge.statements import document
from advisor.knowledge.words import both
from advisor.model import RUN, Finding, Text


def objection(facts: FactSet, findings: Sequence[Finding] = ()) -> Text | None:
    """Why this profile cannot be called healthy although no finding has weight; None where it can."""
    terms = _terms()
    doubted = [f for f in findings if f.saving and (f.saving.share_of_step or 0.0) >= terms["doubted"]["value"]]
    if doubted:
        share = show(doubted[0].saving.share_of_step, "ratio")  # type: ignore[union-attr]
        return both("all_clear.doubted", share=share, title=doubted[0].title)
    for direction, names in terms["measured"].items():
        alone = direction == "communication" and (facts.number("run.world_size", RUN) or 1) <= 1
        if not alone and all(facts.value(name, RUN) is None for name in names):
            return both(f"all_clear.unmeasured_{direction}")
    waiting = facts.number("data.wait_share", RUN) or 0.0
    if waiting >= terms["waiting"]["value"]:
        return both("all_clear.waiting", share=show(waiting, "ratio"))
    lost = _unexplained(facts)
    return None if lost < terms["unexplained"]["value"] else both("all_clear.unexplained", share=show(lost, "ratio"))


def _unexplained(facts: FactSet) -> float:
    """Share of the step: exposed communication less bubble and sharded layers' own, plus idle."""
    exposed = facts.number("communication.exposed_without_bubble_share", RUN)
    if exposed is None:
        exposed = facts.number("step.exposed_communication_share", RUN) or 0.0
    sharded = facts.number("communication.redistribution_share", RUN) or 0.0
    return max(exposed - sharded, 0.0) + (facts.number("step.idle_share", RUN) or 0.0)


@lru_cache(maxsize=1)
def _terms() -> dict[str, Any]:
    return dict(document("all_clear.yaml"))
