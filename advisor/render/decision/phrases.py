"""How the gate says things, in both languages; every format takes its sentences from here."""

from __future__ import annotations

from advisor.basics.units import show, significant
from advisor.gate.changes import Change
from advisor.gate.metrics import title_of
from advisor.gate.model import Decision, Judgement, Result, Verdict
from advisor.model import RUN
from advisor.render.wording import where, word

_TOLD = 2
"""Reasons in the headline: what got worse, and the first cause found."""


def say(lang: str, key: str, **values: object) -> str:
    """A word of the locale's group `gate`."""
    return word(lang, f"gate.{key}", **values)


def headline(decision: Decision, lang: str) -> str:
    """The one sentence: the verdict, and what it rests on."""
    if decision.verdict is Verdict.PASS:
        partly = decision.of(Result.NOT_JUDGED)
        return say(lang, "headline_judged" if partly else "headline_pass")
    if decision.verdict is Verdict.FAIL:
        told = [_what(judgement, lang) for judgement in decision.of(Result.FAIL)]
    elif decision.differences:
        told = [say(lang, "not_comparable")]
    else:
        told = list(dict.fromkeys(_unjudged(judgement, lang) for judgement in decision.of(Result.NOT_JUDGED)))
        told = told or [say(lang, "not_measured")]
    what = say(lang, "separator").join(told[:_TOLD])
    if len(told) > _TOLD:
        what = say(lang, "and_more", what=what, count=len(told) - _TOLD)
    return say(lang, f"headline_{decision.verdict.value}", what=what)


def _what(judgement: Judgement, lang: str) -> str:
    name = judgement.title.get(lang)
    if judgement.finding is not None:
        return say(lang, "what_finding", name=f"{name} ({where(judgement.finding.subject, lang)})")
    if judgement.kind == "budget":
        return say(
            lang, "what_budget", name=name, value=amount(judgement.value, judgement.unit), limit=limit(judgement)
        )
    return say(lang, "what_metric", name=name, change=change(judgement))


def _unjudged(judgement: Judgement, lang: str) -> str:
    return f"{judgement.title.get(lang)}: {reason(judgement, lang)}"


def amount(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit)


def limit(judgement: Judgement) -> str:
    """A budget's limit: "≤ 58 GB"."""
    sign = "≤" if judgement.at_most else "≥"
    return f"{sign} {amount(judgement.limit, judgement.unit)}"


def signed(value: float, unit: str) -> str:
    """A difference with its sign: "+1.2 ms"."""
    return ("+" if value > 0 else "−" if value < 0 else "") + show(abs(value), unit)


def change(judgement: Judgement) -> str:
    """The change of a metric: relative where the baseline is not 0."""
    found = judgement.comparison
    if found is None:
        return "–"
    if found.change is None:
        return signed(found.after - found.before, judgement.unit)
    return signed(found.change, "ratio")


def threshold(judgement: Judgement) -> str:
    """From where on the metric fails: "+3.1 %"."""
    found = judgement.comparison
    if found is None:
        return limit(judgement) if judgement.limit is not None else "–"
    size = found.threshold if judgement.at_most else -found.threshold
    return signed(size / abs(found.before), "ratio") if found.before else signed(size, judgement.unit)


def reason(judgement: Judgement, lang: str) -> str:
    """Why the judgement came out as it did, with its waiver."""
    values: dict[str, object] = dict(judgement.values)
    if "severity" in values:
        values["severity"] = word(lang, f"severities.{values['severity']}")
    if judgement.kind == "budget":
        values.update(value=amount(judgement.value, judgement.unit), limit=limit(judgement))
    found = judgement.comparison
    if found is not None and judgement.reason in ("worse", "better"):
        effect = found.effect
        values["change"] = f"{change(judgement)} ({signed(found.after - found.before, judgement.unit)})"
        values["effect"] = (
            say(lang, "no_noise") if effect is None else say(lang, "effect", sigmas=significant(effect, 2))
        )
    text = say(lang, judgement.reason, **values)
    if judgement.waiver is not None:
        key = "waived_until" if judgement.result is Result.WAIVED else "waiver_expired"
        waiver = say(lang, key, until=judgement.waiver.until.isoformat(), reason=judgement.waiver.reason)
        text = f"{text}; {waiver}"
    return text


def result(judgement: Judgement, lang: str) -> str:
    return say(lang, f"result_{judgement.result.value}")


def name_of(judgement: Judgement, lang: str) -> str:
    """What the judgement is about: a metric's title, or a finding with its subject."""
    title = judgement.title.get(lang)
    if judgement.finding is None:
        return title
    return f"{title} ({where(judgement.finding.subject, lang)})"


def cause(item: Change, lang: str) -> str:
    """ "operator type MatMul 10 ms → 15 ms (+5 ms, 62 % of the change; operator_type.time_us)"."""
    if item.subject == RUN:
        about = title_of(item.fact).get(lang)
    else:
        about = where(item.subject, lang)
    share = say(lang, "accounts_for", share=show(item.share, "ratio"))
    moved = f"{show(item.before, 'us')} → {show(item.after, 'us')}"
    return f"{about}: {moved} ({signed(item.difference, 'us')}, {share}; {item.fact})"


def extent(decision: Decision, lang: str) -> str:
    """What was compared with what."""
    if decision.baseline is None:
        text = say(lang, "runs_alone", runs=len(decision.runs))
    else:
        text = say(lang, "runs", runs=len(decision.runs), history=len(decision.history), baseline=decision.baseline)
    if decision.confirming:
        text += ", " + say(lang, "confirming", count=len(decision.confirming))
    return text


def next_step(decision: Decision, lang: str) -> str:
    """What to do about a verdict that is not a pass; empty where nothing general helps."""
    if decision.verdict is Verdict.FAIL:
        return "" if decision.confirming else say(lang, "next_confirm")
    if decision.verdict is Verdict.PASS:
        return ""
    if decision.differences:
        return say(lang, "next_key")
    reasons = [judgement.reason for judgement in decision.of(Result.NOT_JUDGED)]
    for key, step in (("no_baseline", "baseline"), ("few_runs", "runs"), ("few_history", "history")):
        if key in reasons:
            return say(lang, f"next_{step}", baseline=decision.baseline or "")
    return say(lang, "next_measured") if reasons else say(lang, "next_baseline")


def notes(decision: Decision, lang: str) -> list[str]:
    return [say(lang, key, **values) for key, values in decision.notes]
