"""From a match to a finding: capped severity, confidence, evidence, saving, remedies with values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from advisor.basics.errors import RuleError
from advisor.basics.units import NANOSECONDS, NBSP
from advisor.engine.concluding.allclear import some
from advisor.engine.concluding.doubted import doubted_files, failed_measures, lacks_failed
from advisor.engine.concluding.partial import is_partial, reservations
from advisor.engine.concluding.roots import lower
from advisor.facts.account.spending import step_time
from advisor.facts.base import FactKind, FactSet
from advisor.knowledge.measuring import limit
from advisor.knowledge.remedy import RemedySpec
from advisor.knowledge.savings import allowed_by
from advisor.knowledge.verdicts import verdict_words
from advisor.knowledge.words import both
from advisor.model import (
    LANGUAGES,
    RUN,
    Confidence,
    Direction,
    Finding,
    Remedy,
    Role,
    Saving,
    Severity,
    Subject,
    Text,
    Value,
)
from advisor.ruleset.files.loader import RuleSet
from advisor.ruleset.rule import RemedyUse, Rule, SavingSpec
from advisor.ruleset.truth.board import Reached
from advisor.ruleset.truth.evaluate import Scope
from advisor.ruleset.truth.templates import CODE, Variables, render
from advisor.ruleset.truth.trace import evidence


class Draft(Struct, frozen=True):
    """A rule has matched about a subject."""

    rule: Rule
    subject: Subject


def build(
    draft: Draft, facts: FactSet, catalogue: Mapping[str, FactKind], rules: RuleSet, findings: Sequence[Reached]
) -> Finding:
    """The finding of one match. Raises where a text cannot be filled in: the outcome is then error."""
    rule = draft.rule
    scope = Scope(rule, draft.subject, facts, catalogue)
    stake = _stake(rule, draft.subject, scope, facts)
    variables = Variables(scope)
    confidence, doubts = _confidence(rule, scope, findings, variables, facts)
    remedies = tuple(_remedies(rule, scope, rules.remedies, facts, variables))
    # what asks for another look promises nothing, however much is lost; where the owner of the time is known, that time
    # is what ending it can give at most, or about as often as it was seen
    owned = rule.saving is not None and _is_open(rule.saving) and confidence is not Confidence.LOW
    looks_further = bool(remedies) and remedies[0].brings_evidence and not owned
    open_ended = looks_further or (rule.saving is not None and rule.saving.kind == "at_stake")
    if stake is not None and not open_ended and _hangs_on_absent(rule.saving, facts):
        behind = _behind_absent(rule, scope.subject, stake, facts)
        stake = replace(stake, kind="upper_bound", without_absent_us=min(behind, stake.us))
    severity = _severity(rule, scope, stake)
    if is_partial(rule, scope.subject, facts):
        severity = Severity.LOW  # nobody can say whether it is always so
        # of a cause that is a suspicion, as the headline calls it; what a symptom measures is measured
        confidence = Confidence.LOW if rule.kind == "cause" else confidence
    return Finding(
        id="",
        rule=rule.id,
        verdict=rule.verdict,
        direction=rule.direction,
        role=Role.CONTRIBUTING,
        severity=severity,
        confidence=confidence,
        subject=_subject(rule, draft.subject),
        title=_text(rule.title, variables),
        message=_text(rule.message, variables),
        evidence=tuple(evidence(scope, findings)),
        saving=None if open_ended else stake,
        at_stake=replace(stake, kind="estimate") if open_ended and stake else None,
        remedies=remedies,
        statements=rule.statements,
        references=rule.references,
        doubts=doubts,
        status=rule.status,
    )


def _subject(rule: Rule, subject: Subject) -> Subject:
    """The subject in the verdict's own kind: a host whose ranks or links are all alike is told as its first one, with
    all its ranks, and a rank as the run with that rank, where the contract knows the verdict about such only."""
    word = verdict_words().get(rule.verdict)
    if word is None or not subject.ranks:
        return subject
    if word.of_run and subject.kind == "rank":
        return Subject(RUN.kind, RUN.id, subject.ranks)
    own = next((kind for kind in word.subjects if kind in ("rank", "link")), None)
    if subject.kind != "host" or own is None:
        return subject
    first = str(min(subject.ranks))
    return Subject(own, first if own == "rank" else f"{first}-*", subject.ranks)


def _text(text: Text, variables: Variables) -> Text:
    """The text with its values; one that a damaged file has lost is "unknown", and the verdict stands all the same."""
    try:
        return Text(*(render(text.get(lang), variables, lang).strip() for lang in LANGUAGES))
    except RuleError:
        return Text(*(render(text.get(lang), variables, lang, lenient=True).strip() for lang in LANGUAGES))


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


MOST = limit("slow_steps", "most")
"""Part of a loss that one step must have alone for it to be that step's event."""

_EVERYWHERE = ("run", "operator_type")
"""What these lose they lose in each micro-batch of every stage, unless ranks are named that alone lose it: the bubble
shrinks with it, and a bound counts that."""


def _stake(rule: Rule, subject: Subject, scope: Scope, facts: FactSet) -> Saving | None:
    """What the rule says is saved or at stake: never negative, never more than the step."""
    if rule.saving is None:
        return None
    amount = _number(scope.value(rule.saving.us))
    amount = None if amount is None else round(amount, NANOSECONDS)
    if amount is None or amount < 0 or (amount == 0 and not (rule.saving.removes or rule.saving.lost)):
        return None  # what a replay removes may give nothing alone, and much once another cause is gone
    step = _number(scope.value(rule.saving.step)) if rule.saving.step is not None else None
    row = _row(subject, facts)
    if step and row and facts.value("recording.has_steps", RUN) is False:  # of a batch, where the rest is of all
        amount, step = amount * row / step, row
    if not step and row:  # what the tables of the device tell is of a row, which may hold several steps
        step = step_time(facts) or row
        amount *= step / row
    everywhere = rule.subject_kind in _EVERYWHERE and not subject.ranks
    if rule.direction is Direction.COMPUTATION and _is_open(rule.saving) and everywhere:
        amount /= 1 - (facts.number("pipeline.bubble_minimum_share", RUN) or 0.0)
    if step:
        amount = min(amount, step)
    basis = _text(rule.saving.basis, Variables(scope))
    lost = _number(scope.value(rule.saving.lost)) if rule.saving.lost is not None else None
    error = _number(scope.value(rule.saving.error)) if rule.saving.error is not None else None
    idle = _number(scope.value(rule.saving.idle)) if rule.saving.idle is not None else None
    most = _number(scope.value(rule.saving.most)) if rule.saving.most is not None else None
    kind = "estimate" if rule.saving.kind == "at_stake" else rule.saving.kind
    if most is not None and round(most, NANOSECONDS) <= amount and error is not None and error >= 1:
        kind = "upper_bound"  # it may come to nothing, and to no more than this
    stays = _number(scope.value(rule.saving.stays)) if rule.saving.stays is not None else None
    share, within = amount / step if step else None, min(idle or 0.0, amount)
    once = _number(scope.value(rule.saving.once)) if rule.saving.once is not None else None
    steps = int(facts.number("step.count", RUN) or 1)
    alone = once is not None and steps > 1 and once >= MOST * amount > 0
    return Saving(
        amount, share, basis, removes=rule.saving.removes, kind=kind, lost_us=lost, error_share=error, idle_us=within,
        most_us=most, lone_step=str(facts.value("step.slow_steps", RUN) or "") if alone else "",
        of_steps=steps if alone else 1, stays_us=None if stays is None else min(max(stays, 0.0), amount),
    )  # fmt: skip


def _row(subject: Subject, facts: FactSet) -> float | None:
    """How long a row of the step table lasts: of the subject's own ranks, where nothing holds ranks together."""
    if subject.ranks and facts.value("recording.has_steps", RUN) is False:
        own = [facts.number("step.time_us", Subject("rank", str(rank), (rank,))) for rank in subject.ranks]
        if rows := [us for us in own if us is not None]:
            return max(rows)
    return _number(facts.value("step.time_us", RUN))


def _hangs_on_absent(saving: SavingSpec | None, facts: FactSet) -> bool:
    """Whether the step waits so long for ranks without a profile that what those at hand lose is certain to give back
    nothing: unless these have the same cause, it only makes the others wait longer. A replay knows of that wait."""
    told = facts.has("communication.behind_absent_us")
    return told and saving is not None and not saving.everyone and not saving.removes


def _behind_absent(rule: Rule, subject: Subject, stake: Saving, facts: FactSet) -> float:
    """The most that is certain: what the cause takes behind the last wait for ranks without a profile. Kernels take
    what they compute there, late launches and data what is idle there."""
    behind = facts.number("communication.behind_absent_us", RUN) or 0.0
    idle = facts.number("communication.behind_absent_idle_us", RUN)
    computing = facts.number("communication.behind_absent_computing_us", RUN)
    if rule.direction is Direction.SCHEDULING:
        return behind if idle is None else min(behind, idle)
    if rule.direction is not Direction.COMPUTATION or computing is None:
        return behind
    own = facts.number("operator_type.behind_absent_us", Subject(subject.kind, subject.id))
    return min(behind, min(computing, own if own is not None else computing) + min(stake.idle_us, idle or 0.0))


def _is_open(saving: SavingSpec) -> bool:
    """Whether the rule itself says that it may come to less, or how far it may be off."""
    return saving.kind == "upper_bound" or saving.error is not None


def _severity(rule: Rule, scope: Scope, stake: Saving | None) -> Severity:
    """The ladder's step that the measure reaches, not above what the share of the step at stake allows."""
    ladder = rule.severity
    at_stake = _number(scope.value(rule.impact)) if rule.impact is not None else None
    if at_stake is None and stake is not None:
        at_stake = stake.share
    if at_stake is None and rule.impact is not None:
        return Severity.LOW  # nobody can say what part of the step it is about
    allowed = Severity.CRITICAL if at_stake is None else allowed_by(at_stake)
    if ladder.constant is not None:
        return min(ladder.constant, allowed, key=lambda s: s.rank)
    reached = Severity.LOW
    measured = _number(scope.value(ladder.by)) if ladder.by is not None else None
    if ladder.by is None:
        return allowed if at_stake is not None else Severity.LOW
    if measured is not None:
        for severity, limit in ladder.steps:
            bound = _number(scope.value(limit))
            if bound is not None and (measured >= bound if ladder.worse == "higher" else measured <= bound):
                reached = severity
    return min(reached, allowed, key=lambda s: s.rank)


def _confidence(
    rule: Rule, scope: Scope, findings: Sequence[Reached], variables: Variables, facts: FactSet
) -> tuple[Confidence, tuple[Text, ...]]:
    confidence, doubts = rule.confidence, []
    for doubt in rule.doubts:
        if scope.truth(doubt.when, findings) is True:
            confidence = lower(confidence, doubt.confidence)
            doubts.append(_text(doubt.because, variables))
    if files := doubted_files(scope, facts, findings):
        confidence = lower(confidence, Confidence.LOW)
        doubts.append(both("all_clear.contradicts", files=some(files)))
    if lacks_failed(rule, facts):
        confidence = lower(confidence, Confidence.LOW)
        doubts.append(both("all_clear.failed_asked", names=some(failed_measures(facts))))
    if rule.direction != Direction.EVIDENCE:
        doubts += reservations(rule, scope.subject, facts)
    return confidence, tuple(doubts)


def _remedies(
    rule: Rule, scope: Scope, known: Mapping[str, RemedySpec], facts: FactSet, variables: Variables
) -> list[Remedy]:
    framework, layout = (str(facts.value(f"run.{name}", RUN) or "unknown") for name in ("framework", "layout"))
    remedies = []
    for use in rule.remedies:
        spec = known.get(use.id)
        if spec is not None and all(scope.truth(condition) is True for condition in use.when):
            remedies.append(_remedy(spec, use, scope, (layout, framework), variables))
    return remedies


def _remedy(spec: RemedySpec, use: RemedyUse, scope: Scope, writers: Sequence[str], variables: Variables) -> Remedy:
    values: dict[str, Any] = {name: scope.value(expr) for name, expr in use.values.items()}
    parameter = _of(spec.parameter, writers)
    if spec.parameter and parameter is None and writers[-1] != "unknown":  # a value of a setting that it does not have
        values |= dict.fromkeys(values.keys() & {"current", "proposed"})
    scope_variables = variables.with_values(
        values, {n: scope.rule.units.get(f"{use.id}.{n}", "number") for n in values}, use.values
    )
    snippet = _of(spec.snippet, writers) or ""

    def both(text: Text) -> Text:
        return Text(*(render(text.get(lang), scope_variables, lang, lenient=True).strip() for lang in LANGUAGES))

    return Remedy(
        id=spec.id,
        title=both(spec.title),
        action=both(spec.action),
        parameter=parameter,
        current=_whole(values.get("current")),
        proposed=_whole(values.get("proposed")),
        snippet=render(snippet, scope_variables, CODE, lenient=True).replace(NBSP, " "),
        verify=spec.verify,
        effort=spec.effort,
        risk=both(spec.risk) if spec.risk is not None else None,
        brings_evidence=spec.brings_evidence,
    )


def _of(told: Mapping[str, str], writers: Sequence[str]) -> str | None:
    """What is told for this layout (older versions are called differently), this framework or any; never another
    one's."""
    return next((text for writer in (*writers, "any") if (text := told.get(writer))), None)


def _whole(value: Any) -> Any:
    """What a user types: 12 workers, not 12.0."""
    if isinstance(value, tuple):
        return tuple(_whole(item) for item in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
