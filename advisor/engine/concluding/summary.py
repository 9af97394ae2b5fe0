"""The first screen: direction, headline, where the step goes."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.basics.units import rank_list, show
from advisor.engine.concluding.allclear import Doubt, leading_loss, lost_time, not_healthy, objection, would_tell
from advisor.facts.base import FactSet
from advisor.model import (
    COLLECTION,
    RUN,
    Check,
    Confidence,
    Direction,
    Finding,
    MissingEvidence,
    Outcome,
    Role,
    Severity,
    Summary,
    Text,
)

DIRECTIONS = {
    "computation": Text("computation", "计算"),
    "scheduling": Text("scheduling", "调度"),
    "communication": Text("communication", "通信"),
}
KINDS = {
    "rank": Text("rank", "rank"),
    "step": Text("step", "step"),
    "stage": Text("stage", "stage"),
    "operator": Text("operator", "算子"),
    "operator_type": Text("operator type", "算子类型"),
    "pipeline_op": Text("data operation", "数据处理操作"),
    "queue": Text("queue", "队列"),
    "collective": Text("collective", "集合通信"),
    "link": Text("link", "链路"),
    "host": Text("host", "主机"),
}
"""What people call the kinds of subjects."""
_BREAKDOWN = ("computing", "exposed_communication", "idle")


def summarise(
    findings: Sequence[Finding],
    checks: Sequence[Check],
    facts: FactSet,
    ranks: Sequence[int] = (),
    unusable: Sequence[str] = (),
    missing: Sequence[MissingEvidence] = (),
) -> Summary:
    """Direction of the root cause with the largest saving, else of the lost time; healthy or undetermined where there
    is neither.

    `ranks` are those of the profile, `unusable` its damaged files that gave nothing: a profile is not healthy because
    steps or files could not be read. `missing` is the evidence that was not collected, the most wanted first.
    """
    top = leading(findings)
    step_us = step_time(facts)
    breakdown = {name: value for name in _BREAKDOWN if (value := facts.number(f"step.{name}_share", RUN)) is not None}
    if facts.value("step.computing_includes_idle", RUN) is True:
        breakdown = {name: share for name, share in breakdown.items() if name != "computing"}
    waiting = facts.number("data.wait_share", RUN)
    if not breakdown and step_us is not None and waiting is not None:
        breakdown = {"data_wait": waiting, "own": 1.0 - waiting}
    if top is not None:
        return Summary(top.direction.value, _headline(top, step_us), step_us, breakdown)
    measured = {subject.id for subject in facts.subjects("rank") if facts.value("step.time_us", subject) is not None}
    unread = [rank for rank in ranks if str(rank) not in measured] if measured else []
    defects = facts.value("collection.problem_count", COLLECTION)
    tells = _most_wanted(missing)
    loss = leading_loss(facts)
    if loss is not None and step_us is not None:
        return Summary(loss.direction, lost_time(loss, _step(step_us), tells), step_us, breakdown)
    doubt = objection(facts, findings, ranks)
    direction, headline = _without_cause(findings, checks, step_us, breakdown, unread, doubt, tells)
    if unusable and (direction == "healthy" or doubt is not None):
        names = ", ".join(unusable[:3]) + (" …" if len(unusable) > 3 else "")
        direction = "undetermined"
        headline = Text(
            f"Nothing of weight was found, but nothing could be read of {names}.",
            f"未发现明显瓶颈，但以下文件无法读取：{names}。",
        )
    if direction == "healthy" and isinstance(defects, int) and defects:
        headline = Text(
            f"{headline.en} Problems met in the files: {defects}.", f"{headline.zh}读取文件时发现{defects}处问题。"
        )
    return Summary(direction, headline, step_us, breakdown)


def step_time(facts: FactSet) -> float | None:
    """Length of a step, microseconds. A recording without a schedule is one row for all its batches: then the time
    from batch to batch is the step."""
    batch, batches = facts.number("data.step_us", RUN), facts.number("data.batches", RUN)
    one_row = facts.value("step.interval_us", RUN) is None and facts.number("step.count", RUN) == 1
    if one_row and batch is not None and batches is not None and batches > 1:
        return batch
    return facts.number("step.time_us", RUN)


def leading(findings: Sequence[Finding]) -> Finding | None:
    """The root cause to start with: the largest saving among those of medium severity or more."""
    roots = [
        f
        for f in findings
        if f.role == Role.ROOT_CAUSE and f.direction != Direction.EVIDENCE and f.severity.rank >= Severity.MEDIUM.rank
    ]
    if not roots:
        return None
    return max(roots, key=lambda f: (f.saving.us_per_step if f.saving else 0.0, f.severity.rank, f.confidence.rank))


def _headline(top: Finding, step_us: float | None) -> Text:
    about = Text("", "")
    if top.subject.kind in KINDS:
        kind = KINDS[top.subject.kind]
        about = Text(f": {kind.en} {top.subject.id}", f"：{kind.zh} {top.subject.id}")
        if top.subject.kind == "rank" and len(top.subject.ranks) > 1:
            about = Text(f": ranks {rank_list(top.subject.ranks)}", f"：rank {rank_list(top.subject.ranks)}")
        elif top.subject.kind == "link" and "*" in top.subject.id:
            ranks = rank_list(top.subject.ranks)
            some = Text(f"ranks {ranks}" if len(top.subject.ranks) > 1 else f"rank {ranks}", f"rank {ranks}")
            if top.subject.id.startswith("*"):
                about = Text(f": all links into {some.en}", f"：进入{some.zh}的所有链路")
            else:
                about = Text(f": all links of {some.en}", f"：{some.zh}的所有链路")
    step = _step(step_us)
    gain = ("", "")
    if top.saving is not None:
        share = "" if top.saving.share_of_step is None else f" ({show(top.saving.share_of_step, 'ratio')})"
        amount = show(top.saving.us_per_step, "us") + share
        gain = (f" Up to {amount} of each step to gain.", f"每步最多可节省{amount}。")
        if top.remedies and top.remedies[0].brings_evidence:
            gain = (f" {amount} of each step at stake.", f"每步涉及{amount}。")
    sure = {
        Confidence.LOW: ("Possibly — the evidence is thin: ", "可能（证据不足）："),
        Confidence.MEDIUM: ("Probably: ", "很可能："),
        Confidence.HIGH: ("", ""),
    }[top.confidence]
    return Text(
        f"{sure[0]}{top.title.en}{about.en}.{step.en}{gain[0]}",
        f"{sure[1]}{top.title.zh}{about.zh}。{step.zh}{gain[1]}",
    )


def _step(step_us: float | None) -> Text:
    if step_us is None:
        return Text("", "")
    return Text(f" Step: {show(step_us, 'us')}.", f"单步{show(step_us, 'us')}。")


def _most_wanted(missing: Sequence[MissingEvidence]) -> Text:
    """The evidence that most rules wait for, with the setting that brings it."""
    if not missing:
        return Text("", "")
    first = missing[0]
    setting = (f" ({first.setting})", f"（{first.setting}）") if first.setting else ("", "")
    return Text(f"{first.evidence}{setting[0]}", f"{first.evidence}{setting[1]}")


def _without_cause(
    findings: Sequence[Finding],
    checks: Sequence[Check],
    step_us: float | None,
    breakdown: dict[str, float],
    unread: Sequence[int],
    doubt: Doubt | None,
    tells: Text,
) -> tuple[str, Text]:
    serious = [f for f in findings if f.severity.rank >= Severity.MEDIUM.rank]
    judged = sum(check.outcome in (Outcome.PASS, Outcome.FAIL) for check in checks)
    blind = sum(check.outcome == Outcome.NO_DATA for check in checks)
    if serious or step_us is None or not judged or not breakdown:
        why = serious[0].title if serious else Text("the evidence does not suffice", "证据不足")
        more = would_tell(tells)
        return "undetermined", Text(
            f"No direction can be named: {why.en}.{more.en}", f"无法判断方向：{why.zh}。{more.zh}"
        )
    if unread:
        names = ", ".join(map(str, unread[:5])) + (" …" if len(unread) > 5 else "")
        return "undetermined", Text(
            f"Nothing of weight was found, but no steps of rank {names} could be read.",
            f"未发现明显瓶颈，但无法读取rank {names}的迭代数据。",
        )
    if doubt is not None:
        return "undetermined", not_healthy(doubt)
    note = (f" {blind} checks had no data.", f"有{blind}项检查缺少数据。") if blind else ("", "")
    scope = (
        ("", "")
        if "computing" in breakdown or "exposed_communication" in breakdown
        else (" as far as the host's files show", "（仅就主机侧文件而言）")
    )
    return "healthy", Text(
        f"Nothing of weight holds the step back{scope[0]}: {judged} checks made.{note[0]}",
        f"未发现明显瓶颈{scope[1]}：已完成{judged}项检查。{note[1]}",
    )
