"""Whether the evidence suffices to call a profile without findings healthy (knowledge_base/all_clear.yaml)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from advisor.basics.units import show
from advisor.facts.base import FactSet
from advisor.knowledge.statements import document
from advisor.model import RUN, Finding, Text

_UNKNOWN = {
    "scheduling": Text("idle time or waiting for data", "设备空闲或等待数据的时间"),
    "communication": Text("exposed communication", "未被掩盖的通信时间"),
}


def objection(facts: FactSet, findings: Sequence[Finding] = ()) -> Text | None:
    """Why this profile cannot be called healthy although no finding has weight; None where it can."""
    terms = _terms()
    doubted = [f for f in findings if f.saving and (f.saving.share_of_step or 0.0) >= terms["doubted"]["value"]]
    if doubted:
        title, share = doubted[0].title, show(doubted[0].saving.share_of_step, "ratio")  # type: ignore[union-attr]
        return Text(
            f"{share} of the step may be at stake ({title.en}), and the evidence is thin",
            f"单step可能有{share}的损失（{title.zh}），证据不足",
        )
    for direction, names in terms["measured"].items():
        alone = direction == "communication" and (facts.number("run.world_size", RUN) or 1) <= 1
        if not alone and all(facts.value(name, RUN) is None for name in names):
            unknown = _UNKNOWN[direction]
            return Text(f"{unknown.en} was not measured", f"未测得{unknown.zh}")
    waiting = facts.number("data.wait_share", RUN) or 0.0
    if waiting >= terms["waiting"]["value"]:
        share = show(waiting, "ratio")
        return Text(
            f"the loop waits for data {share} of the time, and the files do not tell why",
            f"训练循环有{share}的时间在等待数据，现有文件无法说明原因",
        )
    lost = _unexplained(facts)
    if lost < terms["unexplained"]["value"]:
        return None
    share = show(lost, "ratio")
    return Text(
        f"{share} of the step is exposed communication or idle, and the files do not tell why",
        f"单step的{share}为未掩盖的通信或空闲，现有文件无法说明原因",
    )


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
