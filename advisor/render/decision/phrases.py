"""How the gate says things, in both languages; every format takes its sentences from here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import reduce

from advisor.basics.units import EXACT, MEASURED, show, show_apart, signed, significant
from advisor.compare.changes import Change, Role, is_rounding
from advisor.gate.metrics import defaults, title_of
from advisor.gate.model import Decision, Judgement, Result, Unsteady, Verdict
from advisor.gate.sample import EVIDENCE, Difference
from advisor.knowledge.words import words
from advisor.model import Finding
from advisor.render.comparison.text import change_line
from advisor.render.conditions import telling, titled
from advisor.render.wording import change as proposal
from advisor.render.wording import check, where, word

_TOLD = 2
"""Reasons in the headline: what got worse, and the first cause found."""
_EVIDENCE = 2
_LISTED = 6
"""Runs that a command names one by one; more stand for themselves."""
_SMALL = 0.1
NOT_GATED = ("new_not_gated", "first_judged", "unsure")
"""Reasons of findings that are new to the reader and do not fail the gate."""


def say(lang: str, key: str, **values: object) -> str:
    """A word of the locale's group `gate`."""
    return word(lang, f"gate.{key}", **values)


def counted(lang: str, key: str, count: int, **values: object) -> str:
    """A word that depends on a number: "1 run", "5 runs"."""
    return say(lang, f"{key}_{'one' if count == 1 else 'many'}", count=count, **values)


def headline(decision: Decision, lang: str) -> str:
    """The one sentence: the verdict, and what it rests on; then what got worse and may not fail the gate."""
    text = _headline(decision, lang)
    told = [_what(j, lang) for j in decision.of(Result.WATCHED) if j.comparison is not None and j.comparison.worse]
    told = _some(told, lang) if decision.verdict is Verdict.PASS else []
    fresh = sum(judgement.reason == "new_not_gated" for judgement in decision.judgements)
    told += [counted(lang, "new_findings", fresh)] if fresh else []
    besides = [say(lang, "headline_not_gated", what=say(lang, "separator").join(told))] if told else []
    blind = [judgement for judgement in decision.of(Result.PASS) if _is_blind(judgement)]
    if blind and decision.verdict is Verdict.PASS:
        besides.append(say(lang, "headline_blind", limit=threshold(blind[0]), name=blind[0].title.get(lang)))
    return reduce(lambda first, second: say(lang, "headline_and", first=first, second=second), besides, text)


def _is_blind(judgement: Judgement) -> bool:
    """Whether the baseline's runs differ so much that only large changes show."""
    found = judgement.comparison
    return found is not None and found.noisy and found.threshold > defaults()["statistics"]["blind"] * abs(found.before)


def _headline(decision: Decision, lang: str) -> str:
    if decision.verdict is Verdict.RECORDED and decision.recorded is not None:
        done = decision.recorded.total >= decision.recorded.needed
        key = "headline_complete" if done else "headline_recorded"
        return say(lang, key, total=decision.recorded.total, needed=decision.recorded.needed)
    if decision.verdict is Verdict.PASS:
        waived = decision.of(Result.WAIVED)
        if waived:
            return counted(lang, "headline_waived", len(waived), what=_listed(waived, lang))
        if unconfirmed := decision.of(Result.NOT_CONFIRMED):
            return say(lang, "headline_unconfirmed", what=_listed(unconfirmed, lang))
        if decision.baseline is None:
            return say(lang, "headline_alone")
        key = "headline_judged" if decision.of(Result.NOT_JUDGED) else "headline_pass"
        if slight := [judgement for judgement in decision.of(Result.PASS) if judgement.reason == "slight"]:
            told = [say(lang, "what_slight", what=_what(each, lang), limit=threshold(each)) for each in slight]
            return say(lang, f"{key}_slight", what=_shortened(told, lang))
        return say(lang, key)
    if decision.verdict is Verdict.FAIL:
        return say(lang, "headline_fail", what=_listed(decision.of(Result.FAIL), lang))
    told = hindrances(decision, lang) or _open_reasons(decision.of(Result.NOT_JUDGED), lang)
    return say(lang, "headline_inconclusive", what=_shortened(told or [say(lang, "not_measured")], lang))


def _listed(judgements: Sequence[Judgement], lang: str) -> str:
    return _shortened([_what(judgement, lang) for judgement in judgements], lang)


def _shortened(told: Sequence[str], lang: str) -> str:
    return say(lang, "separator").join(_some(told, lang))


def _some(told: Sequence[str], lang: str) -> list[str]:
    """The first of them, the last one of these with how many more there are."""
    if len(told) <= _TOLD:
        return list(told)
    return [*told[: _TOLD - 1], say(lang, "and_more", what=told[_TOLD - 1], count=len(told) - _TOLD)]


def _what(judgement: Judgement, lang: str) -> str:
    if judgement.finding is not None:
        return say(lang, "what_finding", name=name_of(judgement, lang))
    name = judgement.title.get(lang)
    if judgement.kind == "budget":
        value = amount(judgement.value, judgement.unit)
        return say(lang, "what_budget", name=name, value=value, limit=limit(judgement))
    return say(lang, "what_metric", name=name, change=change(judgement))


def _open_reasons(judgements: Sequence[Judgement], lang: str) -> list[str]:
    """Why nothing was judged; a reason that several share is said once."""
    names: dict[str, list[str]] = {}
    for judgement in judgements:
        names.setdefault(reason(judgement, lang), []).append(judgement.title.get(lang))
    return [about(of[0], why, lang) if len(of) == 1 else why for why, of in names.items()]


def about(name: str, what: str, lang: str) -> str:
    """ "step time: these runs did not measure it"."""
    return say(lang, "about", name=name, what=what)


def amount(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit, MEASURED)


def limit(judgement: Judgement) -> str:
    """A budget's limit: "≤ 58 GB"."""
    sign = "≤" if judgement.at_most else "≥"
    limit = "–" if judgement.limit is None else show(judgement.limit, judgement.unit, EXACT)
    return f"{sign} {limit}"


def both_sides(before: float, after: float, unit: str) -> tuple[str, str]:
    """A metric before and now, with as many digits as their difference takes."""
    return show_apart(before, after, unit, MEASURED)


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
    if found is not None and judgement.reason in ("worse", "better", "slight"):
        effect = found.effect
        moved = signed(found.after - found.before, judgement.unit)
        relative = None if found.change is None else show(abs(found.change), "ratio")
        values["limit"] = threshold(judgement)
        values["change"] = moved if relative is None else say(lang, "aside", first=relative, second=moved)
        values["effect"] = (
            say(lang, "no_noise") if effect is None else say(lang, "effect", sigmas=significant(effect, 2))
        )
    text = say(lang, judgement.reason, **values)
    if judgement.waiver is None:
        return text
    key = "waived_until" if judgement.result is Result.WAIVED else "waiver_expired"
    waiver = say(lang, key, until=judgement.waiver.until.isoformat(), reason=judgement.waiver.reason)
    return say(lang, "with_waiver", text=text, waiver=waiver)


def outcome(judgement: Judgement, lang: str) -> str:
    """Result and reason in one: "failed: worse by 10 %"; the reason alone where it says both."""
    plain = judgement.result is Result.WATCHED and judgement.reason in ("same", *NOT_GATED)
    told = reason(judgement, lang)
    return told if plain else about(result(judgement, lang), told, lang)


def result(judgement: Judgement, lang: str) -> str:
    return say(lang, f"result_{judgement.result.value}")


def name_of(judgement: Judgement, lang: str) -> str:
    """What the judgement is about: a metric's title, or a finding with its subject."""
    title = judgement.title.get(lang)
    if judgement.finding is None:
        return title
    return placed(judgement.finding, lang)


def placed(finding: Finding, lang: str) -> str:
    """ "Communication is exposed (rank 3)"."""
    return say(lang, "aside", first=finding.title.get(lang), second=where(finding.subject, lang))


def brief(item: Difference, lang: str) -> str:
    """ "versions.cann: 8.1 → 8.2"."""
    unknown = say(lang, "unknown")
    return about(item.field, f"{item.before or unknown} → {item.after or unknown}", lang)


def difference(item: Difference, lang: str) -> str:
    """ "versions.cann: 8.1 → 8.2", with what it means where the name does not say it."""
    text = brief(item, lang)
    why = words(lang)["gate_fields"].get(item.field)
    return text if why is None else say(lang, "because", what=text, why=why)


def causes(decision: Decision, lang: str) -> list[tuple[int, str]]:
    """(indent, line) of what accounts for a change; rests that are mere rounding are left out."""
    return [(int(item.role is not Role.PART), cause(item, lang)) for item in decision.changes if not is_rounding(item)]


def cause(item: Change, lang: str) -> str:
    """ "operator type MatMul: 10 ms → 15 ms (+5 ms, 62 % of the change)"."""
    return change_line(item, title_of(item.fact), lang)


def unsteady(item: Unsteady, lang: str) -> str:
    """ "run 3: step time 130 ms, the others 100 ms (+30 %); it differs most in idle (+29 ms)"."""
    moved = signed(item.value / item.others - 1, "ratio") if item.others else "–"
    line = say(
        lang, "unsteady_line", run=item.run, metric=item.title.get(lang), value=show(item.value, item.unit),
        others=show(item.others, item.unit), change=moved,
    )  # fmt: skip
    if not item.changes:
        return line
    most = max(item.changes, key=lambda part: part.share)
    part = title_of(most.fact).get(lang)
    return say(lang, "unsteady_most", line=line, part=part, difference=signed(most.difference, "us"))


def details(finding: Finding, lang: str) -> list[str]:
    """What a reader needs of a finding: its message, what was measured, and the first thing to do."""
    lines = [finding.message.get(lang)]
    lines += [titled(evidence, finding.evidence, lang) for evidence in telling(finding.evidence)[:_EVIDENCE]]
    for remedy in finding.remedies[:1]:
        lines.append(say(lang, "remedy_line", action=f"{remedy.action.get(lang)} {proposal(remedy)}".strip()))
        if check(remedy, lang):
            lines.append(say(lang, "verify_line", check=check(remedy, lang)))
    return [line for line in lines if line]


def extent(decision: Decision, lang: str) -> str:
    """What was compared with what; empty where nothing was measured."""
    if not decision.runs:
        return ""
    runs = counted(lang, "runs", len(decision.runs))
    if decision.baseline is None:
        text = say(lang, "extent_alone", runs=runs)
    else:
        history = counted(lang, "runs", len(decision.history))
        text = say(lang, "extent", runs=runs, history=history, baseline=decision.baseline)
    if not decision.confirming:
        return text
    confirming = counted(lang, "confirming", len(decision.confirming))
    return say(lang, "extent_confirming", extent=text, confirming=confirming)


def next_step(decision: Decision, lang: str) -> str:
    """What to do; empty where nothing general helps."""
    if decision.verdict is Verdict.FAIL:
        if not decision.confirming:
            return say(lang, "next_confirm_steps" if _is_log(decision) else "next_confirm")
        return _accepting(decision, "next_accept", lang)
    if decision.verdict is Verdict.RECORDED and decision.recorded is not None:
        left = decision.recorded.needed - decision.recorded.total
        return say(lang, "next_recorded", left=left) if left > 0 else ""
    if decision.verdict is Verdict.PASS:
        faster = [j for j in decision.of(Result.PASS) if j.comparison is not None and j.comparison.better]
        return _accepting(decision, "next_promote", lang) if faster else ""
    hindrances = {key for key, _ in decision.hindrances}
    for key, step in (("not_comparable", "key"), ("baseline_damaged", "damaged"), ("some_unreadable", "unreadable")):
        if key in hindrances:
            return say(lang, f"next_{step}", count=len(decision.unreadable))
    if not decision.runs:
        return say(lang, "next_nothing") if decision.unreadable else ""
    reasons = {judgement.reason for judgement in decision.of(Result.NOT_JUDGED)}
    reasons |= {"few_history"} if "baseline_empty" in hindrances else set()
    if "divided" in reasons:
        return say(lang, "next_confirm_steps" if _is_log(decision) else "next_confirm")
    for key, step in (("no_baseline", "baseline"), ("few_runs", "runs"), ("few_history", "history")):
        if key in reasons:
            return say(lang, f"next_{step}", baseline=decision.baseline or "")
    return say(lang, "next_measured") if reasons else say(lang, "next_baseline")


def _is_log(decision: Decision) -> bool:
    """Whether the runs were judged by the step times of a log alone."""
    return EVIDENCE in decision.runs[0].key


def _accepting(decision: Decision, key: str, lang: str) -> str:
    """The commands that make the runs the new level of the baseline; empty where none was named."""
    if decision.baseline is None:
        return ""
    folder = decision.baseline.rpartition("#")[0]
    runs = [shlex.quote(run.id) for run in decision.runs]
    named = " ".join(runs) if len(runs) <= _LISTED else f"{runs[0]} …"
    steps = " --steps-only" if _is_log(decision) else ""
    target, source = shlex.quote(decision.baseline), shlex.quote(f"{folder}#accepted")
    commands = (
        f"advisor baseline add {named}{steps} --baseline {source} && "
        f'advisor baseline promote {source} {target} --reason "…"'
    )
    return say(lang, key, commands=commands)


def notes(decision: Decision, lang: str) -> list[str]:
    return [say(lang, key, **values) for key, values in decision.notes]


def hindrances(decision: Decision, lang: str) -> list[str]:
    """Why it cannot pass."""
    return [say(lang, key, **values) for key, values in decision.hindrances]
