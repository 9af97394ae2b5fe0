"""The first screen: direction, headline, where the step goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import PurePath

from advisor.basics.units import MEASURED, NANOSECONDS, rank_list, show
from advisor.engine.concluding.allclear import Doubt, Loss, leading_loss, objection, terms
from advisor.engine.concluding.suspected import is_suspect, suspected_owner
from advisor.facts.account.spending import step_time
from advisor.facts.base import FactSet
from advisor.knowledge.savings import (
    allowed_by,
    is_event,
    is_remark,
    leading,
    loses_enough,
    outweighing,
    part_of_kernels,
    unowned_part,
    usual_error,
)
from advisor.knowledge.words import both, words
from advisor.model import (
    COLLECTION,
    LANGUAGES,
    RUN,
    Check,
    Confidence,
    Direction,
    Finding,
    MissingEvidence,
    Outcome,
    Role,
    Saving,
    Severity,
    Subject,
    Summary,
    Text,
)

_BREAKDOWN = ("computing", "exposed_communication", "idle")


def summarise(
    findings: Sequence[Finding],
    checks: Sequence[Check],
    facts: FactSet,
    ranks: Sequence[int] = (),
    unusable: Sequence[str] = (),
    missing: Sequence[MissingEvidence] = (),
) -> Summary:
    """Direction and headline of the step, and how much of the recorded time no step contains."""
    summary = _of_the_step(findings, checks, facts, ranks, unusable, missing)
    pause = next((f for f in findings if any(e.fact == "step.between_us" for e in f.evidence)), None)
    between, period = (facts.number(f"step.{name}_us", RUN) for name in ("between", "period"))
    if pause is None or pause.severity.rank < Severity.MEDIUM.rank or between is None or not period:
        return summary
    said = both("summary.between", share=show(between / period, "ratio"))
    if summary.direction not in ("healthy", "undetermined"):
        return replace(summary, headline=_sentences(summary.headline, said))
    said = said if summary.direction == "healthy" else _sentences(said, summary.headline)
    return replace(summary, direction=pause.direction.value, headline=said)


def _of_the_step(
    findings: Sequence[Finding],
    checks: Sequence[Check],
    facts: FactSet,
    ranks: Sequence[int],
    unusable: Sequence[str],
    missing: Sequence[MissingEvidence],
) -> Summary:
    """Direction of the root cause with the largest saving, else of the suspect that accounts for the lost time, else of
    that time; healthy or undetermined where there is none.

    `ranks` are those of the profile, `unusable` its damaged files that gave nothing: a profile is not healthy because
    steps or files could not be read. `missing` is the evidence that was not collected, the most wanted first.
    """
    top = leading(findings)
    step_us = step_time(facts)
    breakdown, host = _breakdown(facts), _host_breakdown(facts)
    summary = partial(Summary, step_time_us=step_us, breakdown=breakdown, host_breakdown={} if breakdown else host)
    benchmark = facts.value("recording.kind", RUN) == "kernel_benchmark"
    loss = None if benchmark else leading_loss(facts)  # the pauses between its launches are the benchmark's own
    if top is not None and not (loss is not None and _outweighs(loss, top, findings, facts)):
        return summary(top.direction.value, _headline(top, step_us, findings))
    measured = {subject.id for subject in facts.subjects("rank") if facts.value("step.time_us", subject) is not None}
    unread = [rank for rank in ranks if str(rank) not in measured] if measured else []
    defects = facts.value("collection.problem_count", COLLECTION)
    if loss is not None and (owner := suspected_owner(loss, findings)) is not None:
        return summary(owner.direction.value, _headline(replace(owner, confidence=Confidence.LOW), step_us, findings))
    if loss is not None and step_us is not None:
        said = both("summary.lost", share=show(loss.share, "ratio"), name=loss.name)
        said = _sentences(said, *([loss.mostly] if loss.mostly else []))
        said = _sentences(said, both("summary.step", time=show(step_us, "us", MEASURED)))
        return summary(loss.direction, _with_wanted(said, loss.tells), wanted=loss.wanted)
    doubt = objection(facts, findings, ranks)
    if not unusable and not unread and (told := _computes(breakdown, doubt, findings)) is not None:
        return summary(Direction.COMPUTATION.value, told)
    weighty = [f for f in findings if not _is_trifle(f, facts.number("operators.compute_us", RUN))]
    direction, headline = _without_cause(findings, weighty, checks, facts, breakdown or host, unread, doubt)
    if direction == "undetermined":
        if not (weighty or breakdown) and (largest := _largest_type(facts)) is not None:
            headline = _sentences(headline, largest)
        # what a doubt would be settled by may all be at hand; then what other rules wait for settles it no more
        settled = doubt is not None and doubt.suspect is None
        headline = _with_wanted(headline, doubt.tells if doubt and settled else _most_wanted(missing))
        summary = partial(summary, wanted=doubt.wanted if doubt and settled else ())
    silent = _silent(unusable, findings, direction)
    if silent and (direction == "healthy" or doubt is not None):
        names = ", ".join(silent[:3]) + (" …" if len(silent) > 3 else "")
        direction = "undetermined"
        judged = breakdown or host or any(f.direction is not Direction.EVIDENCE for f in findings)
        headline = both("summary.unread_files" if judged else "summary.nothing_read", files=names)
    if benchmark:
        direction, headline = _of_kernels(findings), both("summary.benchmark")
    if direction == "healthy" and facts.value("recording.kind", RUN) == "fragment":
        direction, headline = "undetermined", both("summary.undirected", why=both("summary.too_little"))
    if direction == "healthy" and isinstance(defects, int) and defects:
        headline = _sentences(headline, both("summary.problems", count=defects))
    return summary(direction, headline)


def _largest_type(facts: FactSet, category: str = "", least: float = 0.0) -> Text | None:
    """The operator type, of this category alone where one is named, that takes most of the kernel time, which is all
    that a table of sums tells; none that takes no more than the `least` share."""
    shares = {
        subject.id: share
        for subject in facts.of("operator_type.compute_share")
        if (share := facts.number("operator_type.compute_share", subject) or 0.0) > least
        and category in ("", facts.value("operator_type.category", subject))
    }
    name = max(sorted(shares), key=lambda each: shares[each], default="")
    return both("summary.largest", name=name, share=show(shares[name], "ratio")) if name else None


def _larger_type(noticed: Finding, facts: FactSet) -> Text | None:
    """The type that takes more of the kernel time than the one a finding is about, where no network lives on it."""
    if noticed.subject.kind != "operator_type":
        return None
    kernels_us = facts.number("operators.compute_us", RUN)
    own = max(part_of_kernels(noticed), noticed.weight_us / kernels_us if kernels_us else 0.0)
    return _largest_type(facts, "vector", own)


def _of_kernels(findings: Sequence[Finding]) -> str:
    """The direction of what kernels that work well spend their time on; undetermined where no cause is told at all."""
    told = (f for f in findings if f.role is Role.ROOT_CAUSE and f.direction is not Direction.EVIDENCE)
    return next((f.direction.value for f in told), "undetermined")


def _silent(unusable: Sequence[str], findings: Sequence[Finding], direction: str) -> list[str]:
    """The damaged files that told nothing. A kind of file that a finding was read from told something, whatever else it
    lost; but no finding makes a profile healthy that has damaged files."""
    telling = (finding for finding in findings if finding.direction is not Direction.EVIDENCE)
    cited = {each.source.file for finding in telling for each in finding.evidence if each.source is not None}
    read = {PurePath(file).name for file in cited}
    return [file for file in unusable if direction == "healthy" or PurePath(file).name not in read]


def _breakdown(facts: FactSet) -> dict[str, float]:
    """Shares of the step by what the device does."""
    shares = {name: value for name in _BREAKDOWN if (value := facts.number(f"step.{name}_share", RUN)) is not None}
    if facts.value("step.computing_includes_idle", RUN) is True:
        shares.pop("computing", None)
    gap = facts.number("step.interval_share", RUN)
    if shares and "idle" not in shares and gap is not None:
        shares["idle"] = gap  # the older step trace tells of the gap before each step alone
    return shares


def _host_breakdown(facts: FactSet) -> dict[str, float]:
    """Shares of the step by what the loop on the host does."""
    waiting = facts.number("data.wait_share", RUN)
    return {} if waiting is None or step_time(facts) is None else {"data_wait": waiting, "own": 1.0 - waiting}


def _computes(breakdown: Mapping[str, float], doubt: Doubt | None, findings: Sequence[Finding]) -> Text | None:
    """What to say where nearly all of the time is computation and the only suspect is one of it, or nearly all of it is
    one call: then the direction is arithmetic, however weak the evidence for the suspect."""
    if doubt is None or breakdown.get("computing", 0.0) < terms()["computes"]["value"]:
        return None
    suspect = doubt.suspect or next(filter(_is_nearly_all, findings), None)
    if suspect is None or suspect.direction is not Direction.COMPUTATION:
        return None
    about = both("summary.finding", title=suspect.title, about=_about(suspect.subject))
    said = both("summary.computes", share=show(breakdown["computing"], "ratio"))
    return _sentences(said, both("summary.surely_low", finding=about))


def _is_nearly_all(finding: Finding) -> bool:
    """Whether it is about a single operator that takes nearly all of the time."""
    shares = [each.value for each in finding.evidence if each.fact == "operator.step_share"]
    return any(isinstance(share, float) and share >= terms()["computes"]["value"] for share in shares)


def _outweighs(loss: Loss, top: Finding, findings: Sequence[Finding], facts: FactSet) -> bool:
    """Whether more time is lost in another direction than the leading cause costs, and no cause accounts for it. A
    likely cause stands back only behind far more, where the finding that shows the loss weighs little itself."""
    told = top.saving or top.at_stake
    share = told.share if told is not None else None
    if loss.direction == top.direction.value or share is None:
        return False
    shown = [finding for finding in findings if finding.verdict in loss.verdicts]
    likely = top.confidence != Confidence.LOW
    events = sum(
        f.saving.share or 0.0 for f in findings if f.saving and is_event(f) and f.direction.value == loss.direction
    )
    weak = likely and all(finding.severity.rank < Severity.MEDIUM.rank for finding in shown)
    causes = [f for f in findings if f.role == Role.ROOT_CAUSE]
    part = unowned_part(causes, weak=weak) if top.saving is not None else 1.0
    return bool(shown) and all(
        f.role != Role.SYMPTOM and part * (_without_owner(f, loss, facts) - events) > share for f in shown
    )


def _without_owner(finding: Finding, loss: Loss, facts: FactSet) -> float:
    """The part of the loss that no cause accounts for, as a share of the step: not what transfers need at the links'
    usual speed."""
    if finding.at_stake is not None and finding.at_stake.share is not None:
        return min(finding.at_stake.share, loss.share)
    names = [f"communication.exposed_{name}_share" for name in ("needed", "transfer")]
    told = (facts.number(name, RUN) for name in names if loss.direction == "communication")
    return max(loss.share - next((share for share in told if share is not None), 0.0), 0.0)


def _headline(top: Finding, step_us: float | None, findings: Sequence[Finding]) -> Text:
    said = [both("summary.finding", title=top.title, about=_about(top.subject))]
    if step_us is not None:
        said.append(both("summary.step", time=show(step_us, "us", MEASURED)))
    told = top.saving or top.at_stake
    if top.saving is not None and top.saving.lone_step:
        said.append(_once(top.saving))
    elif told is not None:
        key = ("gain" if top.saving else "at_stake") + ("" if told.share is None else "_share")
        amount = both(f"summary.{'up_to' if told.kind == 'upper_bound' else 'around'}", us=show(told.us, "us"))
        told_share = show(told.share or 0.0, "ratio")
        said.append(both(f"summary.{key}", amount=amount, us=show(told.us, "us"), share=told_share))
    other = _hidden_behind(top, findings)
    if other is not None and other.saving is not None and top.saving is not None and step_us:
        us = top.saving.us + (other.saving.after_others_us or 0.0)
        if us > (1 + usual_error("replay")) * (top.saving.range_us or (0.0, top.saving.us))[1]:
            amounts = {"us": show(us, "us"), "share": show(us / step_us, "ratio")}
            said.append(both("summary.jointly", id=other.id, **amounts))
    suspect = _larger_suspect(top, findings)
    if suspect is not None and suspect is not other:
        lost = suspect.saving or suspect.at_stake
        assert lost is not None
        about = both("summary.finding", title=suspect.title, about=_about(suspect.subject))
        amounts = {"us": show(lost.us, "us"), "share": show(lost.share or 0.0, "ratio")}
        said.append(both("summary.perhaps", id=suspect.id, finding=about, **amounts))
    said += _events(top, findings)
    return both(f"summary.surely_{top.confidence.value}", finding=_sentences(*said))


def _events(top: Finding, findings: Sequence[Finding]) -> list[Text]:
    """What one step alone lost besides what every step loses."""
    found = [f for f in findings if f is not top and f.role == Role.ROOT_CAUSE and is_event(f) and not is_event(top)]
    return [
        both("summary.event", id=f.id, amount=show(f.saving.once_us, "us"), count=f.saving.of_steps,
             step=f.saving.lone_step)
        for f in found if f.saving is not None and f.severity.rank >= Severity.MEDIUM.rank
    ]  # fmt: skip


def _once(saving: Saving) -> Text:
    """What the one step that loses it would gain: no step of the others does."""
    amount = both(f"summary.{'up_to' if saving.kind == 'upper_bound' else 'around'}", us=show(saving.once_us, "us"))
    return both("summary.gain_once", amount=amount, count=saving.of_steps, step=saving.lone_step)


def _larger_suspect(top: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The suspect that may lose more than the leading cause gives: its evidence is weak, its size is not."""
    told = top.saving or top.at_stake
    larger = [
        f for f in findings
        if f is not top and f.role != Role.SYMPTOM and is_suspect(f) and told is not None and f.weight_us > told.us
    ]  # fmt: skip
    named = [f for f in larger if f.subject.kind != "run"]  # what the whole run loses, its bar shows
    return max(named, key=lambda f: f.weight_us, default=None)


def _hidden_behind(top: Finding, findings: Sequence[Finding]) -> Finding | None:
    """Another cause that gives clearly more once the leading one is repaired than alone: each hides the other."""
    roots = [
        f
        for f in findings
        if f.role == Role.ROOT_CAUSE or (f.role == Role.CONTRIBUTING and f.confidence is not Confidence.LOW)
    ]
    roots = [f for f in roots if f.saving is not None and f.saving.range_us is not None]
    if not roots or roots[0].id != top.id:
        return None  # what others give is told after those above them
    after = {f.id: f.saving.after_others_us or 0.0 for f in roots[1:] if f.saving is not None}
    alone = {f.id: f.saving.range_us[1] for f in roots[1:] if f.saving is not None and f.saving.range_us is not None}
    hidden = [f for f in roots[1:] if round(after[f.id] - alone[f.id], NANOSECONDS) > 0]
    return max(hidden, key=lambda f: after[f.id], default=None)


def _most_wanted(missing: Sequence[MissingEvidence]) -> Text | None:
    """The evidence that most rules wait for, with the setting that brings it."""
    if not missing:
        return None
    first = missing[0]
    if not first.setting:
        return Text(first.evidence, first.evidence)
    return both("summary.evidence", file=first.evidence, setting=first.setting)


def _with_wanted(headline: Text, what: Text | None) -> Text:
    """The headline, and what would tell."""
    return headline if what is None else _sentences(headline, both("summary.would_tell", what=what))


def _sentences(*said: Text) -> Text:
    return reduce(lambda first, second: both("summary.sentences", first=first, second=second), said)


def named(finding: Finding) -> Text:
    """The finding's title, and what it is about: "Slow ranks compute longer than their peers: rank 2"."""
    return about(finding.title, finding.subject)


def about(name: Text, subject: Subject) -> Text:
    """The name with the subject behind it; alone where that is the whole run."""
    behind = _about(subject)
    return Text(*(name.get(lang) + behind.get(lang) for lang in LANGUAGES))


def _about(subject: Subject) -> Text:
    """What the leading finding is about, to stand behind its title; empty where it is the whole run."""
    subject = subject.as_said
    if subject.kind not in words(LANGUAGES[0])["headline_kinds"]:
        return Text("", "")
    ranks = rank_list(subject.ranks)
    if subject.kind == "rank" and len(subject.ranks) > 1:
        return both("summary.about_ranks", ranks=ranks)
    if subject.kind == "link" and "*" in subject.id:
        some = both("summary.ranks" if len(subject.ranks) > 1 else "summary.rank", ranks=ranks)
        return both(f"summary.about_links_{'into' if subject.id.startswith('*') else 'of'}", ranks=some)
    return both("summary.about", kind=both(f"headline_kinds.{subject.kind}"), id=subject.id)


def _origin(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """What a symptom follows from, where that is known: it is not told as if nothing were behind it."""
    return next((f for f in findings if f.id in finding.because), finding)


def _is_trifle(finding: Finding, kernels_us: float | None) -> bool:
    """Whether what it is about is too small a part of all kernels to matter, which is less of the time that passed."""
    share = finding.weight_us / kernels_us if kernels_us else 0.0
    return share > 0 and allowed_by(share) is Severity.LOW


def _without_cause(
    findings: Sequence[Finding],
    weighty: Sequence[Finding],
    checks: Sequence[Check],
    facts: FactSet,
    breakdown: Mapping[str, float],
    unread: Sequence[int],
    doubt: Doubt | None,
) -> tuple[str, Text]:
    step_us = step_time(facts)
    serious = [f for f in findings if f.severity.rank >= Severity.MEDIUM.rank]
    judged = sum(check.outcome in (Outcome.PASS, Outcome.FAIL) for check in checks)
    blind = sum(check.outcome == Outcome.NO_DATA for check in checks)
    if serious and serious[0].direction is not Direction.EVIDENCE and breakdown:
        known = _origin(serious[0], findings)
        found = both("summary.finding", title=known.title, about=_about(known.subject))
        return "undetermined", both("summary.beside", finding=found)
    if serious or step_us is None or not judged or not breakdown:
        why = serious[0].title if serious else both("summary.too_little")
        headline = both("summary.undirected", why=why)
        noticed = next((f for f in weighty if f.direction is not Direction.EVIDENCE and not is_remark(f)), None)
        if serious or noticed is None:
            return "undetermined", headline
        noticed = outweighing(noticed, weighty, facts)
        found = both("summary.finding", title=noticed.title, about=_about(noticed.subject))
        said = _sentences(headline, both("summary.noticed", finding=found))
        larger = None if breakdown else _larger_type(noticed, facts)
        return "undetermined", said if larger is None else _sentences(said, larger)
    if unread:
        names = ", ".join(map(str, unread[:5])) + (" …" if len(unread) > 5 else "")
        return "undetermined", both("summary.unread_ranks", ranks=names)
    if doubt is not None:
        clear = doubt.suspect is None and not any(map(loses_enough, findings))
        return "undetermined", both(f"summary.{'no_all_clear' if clear else 'not_certain'}", doubt=doubt.why)
    headline = both("summary.healthy", checks=judged)
    return "healthy", _sentences(headline, both("summary.no_data", count=blind)) if blind else headline
