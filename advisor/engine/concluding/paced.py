"""What other causes give while a data loader, or a host, that is behind sets the pace: the loop then waits for its
batch, or for its launch, by as much longer, until that one keeps up. And what such a loader gives where other ranks are
late as well: no more than the step gains once its ranks come no later than those.

What shorter kernels give where collectives run beside them: no more than the step gains by a replay, since what they
hid is waited for. Where no replay tells, what they take less is the most that the step gains.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from advisor.basics.units import show
from advisor.engine.concluding.gathered import origin_of
from advisor.facts.account.shortened import PARTS
from advisor.facts.base import FactSet
from advisor.knowledge.savings import allowed_by, usual_error
from advisor.knowledge.verdicts import LAUNCHES_LATE, PIPELINE_SLOW, frees, is_of_loading, is_of_the_loop
from advisor.knowledge.words import both
from advisor.model import RUN, Confidence, Direction, Finding, Saving, Subject

_ELSEWHERE = (Direction.COMPUTATION, Direction.COMMUNICATION)
"""Where a step loses what a loader takes back; of what the host does, only what the loop itself does: the rest may be
the loading."""
_TYPES = ("operator_type", "operator")


def in_step_with_the_slowest(
    findings: Sequence[Finding], facts: FactSet, launching: Collection[str] = ()
) -> list[Finding]:
    """The findings with what each gives alone beside whatever sets the pace: late ranks, the data pipeline, loaders,
    launches. Of several that do, the first holds the others' gains. Rules of `launching` take launches away."""
    told = list(findings)
    for pace in (among_late_ranks, at_the_pipelines_pace, at_the_loaders_pace):
        told = pace(told, facts)
    return at_the_hosts_pace(told, facts, launching)


def at_the_loaders_pace(findings: Sequence[Finding], facts: FactSet) -> list[Finding]:
    """The findings with what they give alone, where one of them is that batches come late: certainly, or what else is
    found is as doubtful."""
    held = facts.number("loaders.held_share", RUN) or 0.0
    behind = [f.confidence for f in findings if is_of_loading(f.verdict) and f.saving is not None]
    certain = any(confidence is not Confidence.LOW for confidence in behind)
    taken = [_is_held(f) and (certain or f.confidence is Confidence.LOW) for f in findings]
    if not held or not behind or not any(taken):
        return list(findings)
    return [_held(f, held) if less else _no_event(f) for f, less in zip(findings, taken, strict=True)]


def at_the_pipelines_pace(findings: Sequence[Finding], facts: FactSet) -> list[Finding]:
    """The findings with what they give alone beside a pipeline that makes a batch only so often: none comes sooner for
    being asked earlier. That holds the loop's own causes; and what devices do sooner, where one finding certainly is
    that data operations are behind."""
    left_us = _beyond(facts, "data.step_us", "data.pipeline_limit_us")
    asked = [_no_more(f, left_us, "loading", "pipeline") if _is_of_loop(f) else f for f in findings]
    return _at_pace(asked, PIPELINE_SLOW, "loading", lambda _: left_us)


def at_the_hosts_pace(findings: Sequence[Finding], facts: FactSet, launching: Collection[str] = ()) -> list[Finding]:
    """The findings with what they give alone, where one of them certainly is that a host launches late: of work that
    nothing waits for, devices that are done sooner wait for the next launch; nor is a step shorter than what a host
    needs for it that launches all the time. Rules of `launching` take launches away, so that the host is done sooner
    as well: it is behind because one takes longer than its kernel."""
    most = _beyond(facts, "step.time_us", "dispatch.bound_us"), facts.number("dispatch.awaited_us", RUN)

    def left_us(finding: Finding) -> float | None:
        return min((us for us in (*most, _awaited_us(finding, facts)) if us is not None), default=None)

    return _at_pace(findings, LAUNCHES_LATE, "launching", left_us, launching)


def _beyond(facts: FactSet, step: str, bound: str) -> float | None:
    """How much longer the step is than what bounds it, microseconds; None where the two are not known."""
    step_us, bound_us = facts.number(step, RUN), facts.number(bound, RUN)
    return max(step_us - bound_us, 0.0) if step_us and bound_us is not None else None


def _awaited_us(finding: Finding, facts: FactSet) -> float | None:
    """How long the finding's operator type runs in work that anything waits for, microseconds a step."""
    of_type = facts.value("operator.type", finding.subject) or finding.subject.id
    return facts.number("operator_type.awaited_us", Subject("operator_type", str(of_type)))


def _at_pace(
    findings: Sequence[Finding],
    verdict: str,
    holder: str,
    left_us: Callable[[Finding], float | None],
    but: Collection[str] = (),
) -> list[Finding]:
    """The findings, of which none `but` those of these rules gives more than is left of it until `holder` keeps up;
    unchanged where no finding of this verdict is certain."""
    behind = (f for f in findings if f.verdict == verdict and f.saving is not None)
    if not any(f.confidence is not Confidence.LOW for f in behind):
        return list(findings)
    return [
        _no_more(f, left_us(f), holder) if f.rule not in but and f.direction in _ELSEWHERE and _may_be_held(f) else f
        for f in findings
    ]


def _no_more(finding: Finding, left_us: float | None, holder: str, told: str = "") -> Finding:
    """The finding, which gives no more than this until `holder` keeps up; the sentence `held_by_<told>` says why."""
    saving = finding.saving
    assert saving is not None and saving.us_per_step is not None
    if left_us is None or saving.us_per_step <= left_us:
        return finding
    sentence = both(f"summary.held_by_{told or holder}", us=show(left_us, "us"))
    less = _lessened(saving, left_us / saving.us_per_step, holder)
    return replace(finding, saving=less, message=both("summary.sentences", first=finding.message, second=sentence))


def among_late_ranks(findings: Sequence[Finding], facts: FactSet) -> list[Finding]:
    """The findings with what data operations of some ranks alone give while the step waits for others, too."""
    return [_among_others(f, facts) if f.subject.kind == "pipeline_op" else f for f in findings]


def _among_others(finding: Finding, facts: FactSet) -> Finding:
    saving, ranks = finding.saving, [Subject("rank", str(rank), (rank,)) for rank in finding.subject.ranks]
    some = 0 < len(ranks) < (facts.number("run.rank_count", RUN) or 1)
    late = all(facts.value("rank.late_cause", rank) == "data" for rank in ranks)
    if saving is None or not saving.us_per_step or not some or not late or not is_of_loading(finding.verdict):
        return finding
    name, subject = ("rank.saving_us", ranks[0]) if len(ranks) == 1 else ("lateness.data_free_us", RUN)
    most = facts.number(name, subject)
    if most is None or most >= saving.us_per_step:
        return finding
    left = most / saving.us_per_step
    less = replace(
        saving, us_per_step=most, share_of_step=None if saving.share_of_step is None else saving.share_of_step * left,
        lost_us=saving.loses_us, removes="data",
    )  # fmt: skip
    sentence = both("summary.among_late", us=show(most, "us"))
    return replace(finding, saving=less, message=both("summary.sentences", first=finding.message, second=sentence))


def kept_up(finding: Finding) -> Finding:
    """The finding with what it gives once the loader keeps up."""
    saving = finding.saving
    if saving is None or saving.keeping_up_us is None:
        return finding
    return replace(finding, saving=replace(saving, us_per_step=saving.keeping_up_us))


def taken_back(chosen: Sequence[Finding], gained_us: float) -> float:
    """What a loader or a host that is behind takes back of what these findings give together, microseconds a step;
    nothing where it is among what is mended."""
    told = [
        (f.saving.us, f.saving.keeping_up_us)
        for f in chosen
        if f.saving and f.saving.keeping_up_us and not any(frees(each.verdict, f.saving.held_by) for each in chosen)
    ]
    if not told:
        return 0.0
    return min(gained_us, sum(full for _, full in told)) * max(1 - us / full for us, full in told)


def _is_of_loop(finding: Finding) -> bool:
    return is_of_the_loop(finding.verdict) and _may_be_held(finding)


def _is_held(finding: Finding) -> bool:
    return (finding.direction in _ELSEWHERE or is_of_the_loop(finding.verdict)) and _may_be_held(finding)


def _may_be_held(finding: Finding) -> bool:
    saving = finding.saving
    told = saving is not None and not saving.lone_step and bool(saving.us_per_step) and not saving.held_by
    return told and not is_of_loading(finding.verdict)


def _no_event(finding: Finding) -> Finding:
    """A wait for data that holds back what else is mended concerns every step, also where one alone was seen to."""
    if finding.saving is None or not is_of_loading(finding.verdict):
        return finding
    return replace(finding, saving=replace(finding.saving, lone_step="", of_steps=1))


def _held(finding: Finding, held: float) -> Finding:
    saving = finding.saving
    assert saving is not None
    less = _lessened(saving, 1 - held, "loading")
    sentence = both("summary.paced", share=show(held, "ratio"))
    return replace(finding, saving=less, message=both("summary.sentences", first=finding.message, second=sentence))


def _lessened(saving: Saving, left: float, holder: str) -> Saving:
    """The saving of which this part is left until `holder` keeps up."""
    return replace(_part_of(saving, left), keeping_up_us=saving.us_per_step, held_by=holder)


def _part_of(saving: Saving, left: float) -> Saving:
    """The saving of which this part is left, of what it loses as before."""
    assert saving.us_per_step is not None
    return replace(
        saving, us_per_step=saving.us_per_step * left,
        share_of_step=None if saving.share_of_step is None else saving.share_of_step * left,
        most_us=None if saving.most_us is None else saving.most_us * left, lost_us=saving.loses_us,
    )  # fmt: skip


def beside_collectives(findings: Sequence[Finding], facts: FactSet, together: Collection[str] = ()) -> list[Finding]:
    """The findings with what each gives alone once the collectives beside its kernels are waited for. What rules of
    `together` find goes at once: each takes back what the others uncover as well."""
    whole: dict[tuple[str, ...], float] = {}
    for finding in findings:
        if finding.rule in together and finding.saving is not None and _shortens(finding):
            whole[origin_of(finding)] = whole.get(origin_of(finding), 0.0) + finding.saving.us
    return [
        _uncovering(f, facts, whole.get(origin_of(f), 0.0)) if _shortens(f) else f
        for f in findings
    ]  # fmt: skip


def _shortens(finding: Finding) -> bool:
    """Whether it promises shorter kernels of each step, on all ranks, that no replay of its own has weighed."""
    saving = finding.saving
    told = saving is not None and bool(saving.us_per_step) and not saving.removes and not saving.lone_step
    return told and finding.direction is Direction.COMPUTATION and finding.subject.kind in (*_TYPES, "run")


def _uncovering(finding: Finding, facts: FactSet, whole_us: float) -> Finding:
    saving, ratio = finding.saving, _kept(finding, facts, whole_us)
    assert saving is not None
    if ratio is None:
        return _at_most(finding, saving, facts)
    if ratio >= 1 - usual_error("replay"):
        return finding
    bound = saving.kind == "upper_bound"
    if bound:  # no bound without what the replay that tells it is off
        ratio = min(ratio * (1 + usual_error("replay")), 1.0)
    less = replace(_part_of(saving, ratio), shortened_us=saving.us, idle_us=saving.idle_us * ratio)
    allowed = finding.severity if less.share is None else allowed_by(less.share)
    told = "summary.uncovers_at_most" if bound else "summary.uncovers"
    sentence = both(told, full=show(saving.us, "us"), us=show(less.us, "us"))
    return replace(
        finding, saving=less, message=both("summary.sentences", first=finding.message, second=sentence),
        severity=min(finding.severity, allowed, key=lambda s: s.rank),
    )  # fmt: skip


def _at_most(finding: Finding, saving: Saving, facts: FactSet) -> Finding:
    """Where nobody knows when collectives could start, and computing hides more of them than a saving is usually off
    anyway, an estimate is but a bound."""
    hidden_us = facts.number("step.overlapped_us", RUN) or 0.0
    if saving.kind != "estimate" or hidden_us <= usual_error("estimate") * saving.us:
        return finding
    basis = both("summary.apart", first=saving.basis, second=both("summary.may_uncover"))
    return replace(finding, saving=replace(saving, kind="upper_bound", basis=basis))


def _kept(finding: Finding, facts: FactSet, whole_us: float) -> float | None:
    """Of what the finding's kernels take less the part that the step gains; None where no replay tells."""
    assert finding.saving is not None
    us = finding.saving.us
    of_run, computing_us = facts.value("step.kept_ratios", RUN), facts.number("step.computing_us", RUN)
    if finding.subject.kind == "run":
        return _between(of_run, us, computing_us)
    kind = Subject("operator_type", str(facts.value("operator.type", finding.subject) or finding.subject.id))
    own = _between(facts.value("operator_type.kept_ratios", kind), us, facts.number("operator_type.time_us", kind))
    alone, joint = (_between(of_run, each, computing_us) for each in (us, max(whole_us, us)))
    return own * joint / alone if own and joint and alone else own


def _between(ratios: object, us: float, of_us: float | None) -> float | None:
    """The ratio where so much of this time goes: gains between two parts lie on the line between theirs."""
    if not isinstance(ratios, tuple) or not of_us or us <= 0:
        return None
    told = [float(ratio) for ratio in ratios]
    part = min(us / of_us, PARTS[-1])
    if part <= PARTS[0]:
        return told[0]
    return float(np.interp(part, PARTS, np.multiply(PARTS, told))) / part
