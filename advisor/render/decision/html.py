"""The decision as one HTML file: before and after side by side, both languages, no script, no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from advisor.basics.units import show
from advisor.compare.identity import Identity, identities
from advisor.gate.model import Decision, Judgement, Result, Verdict
from advisor.gate.sample import Sample
from advisor.model import LANGUAGES, RUN, Finding, Text
from advisor.render.decision import phrases as wording
from advisor.render.escaping import shorten
from advisor.render.report.html import render_page

_BADGES = {
    Result.PASS: "healthy", Result.FAIL: "critical", Result.NOT_CONFIRMED: "medium", Result.WAIVED: "medium",
    Result.WATCHED: "plain", Result.NOT_JUDGED: "plain",
}  # fmt: skip
_VERDICTS = {
    Verdict.PASS: "healthy",
    Verdict.FAIL: "critical",
    Verdict.INCONCLUSIVE: "medium",
    Verdict.RECORDED: "plain",
}
_PARTS = ("computing", "exposed_communication", "idle")


def render_html(decision: Decision, lang: str = "en", **_: Any) -> str:
    """The decision as one HTML document; `lang` is the language it opens in."""
    shown = [j for j in decision.judgements if j.result is not Result.NOT_JUDGED]
    return render_page(
        "gate.html",
        lang,
        styles=("style.css", "gate.css"),
        lines=False,
        decision=decision,
        badge=_VERDICTS[decision.verdict],
        headline=_two(lambda code: wording.headline(decision, code)),
        next_step=_two(lambda code: wording.next_step(decision, code)),
        extent=_two(lambda code: wording.extent(decision, code)),
        before=_side(decision.history),
        after=_side(decision.runs),
        differences=decision.differences,
        rows=[_row(judgement) for judgement in shown],
        causes=[
            (indent, _two(lambda code, i=i: wording.causes(decision, code)[i][1]))  # type: ignore[misc]
            for i, (indent, _) in enumerate(wording.causes(decision, lang))
        ],
        failed=[_failed(judgement) for judgement in decision.of(Result.FAIL) if judgement.finding is not None][:20],
        unsteady=[_two(lambda code, u=u: wording.unsteady(u, code)) for u in decision.unsteady],  # type: ignore[misc]
        unreadable=decision.unreadable[:50],
        before_findings=_findings(decision.history),
        after_findings=_findings(decision.runs),
        open=[_open(judgement) for judgement in decision.of(Result.NOT_JUDGED)],
        notes=[_two(lambda code, i=i: wording.notes(decision, code)[i]) for i in range(len(decision.notes))],  # type: ignore[misc]
        problems=decision.problems[:50],
    )


def _two(tell: Callable[[str], str]) -> Text:
    return Text(*(tell(code) for code in LANGUAGES))


def _open(judgement: Judgement) -> Text:
    return _two(lambda code: wording.about(wording.name_of(judgement, code), wording.reason(judgement, code), code))


def _failed(judgement: Judgement) -> dict[str, Any]:
    finding = judgement.finding
    assert finding is not None
    told = [wording.details(finding, code) for code in LANGUAGES]
    return {"name": _two(lambda code: wording.name_of(judgement, code)), "lines": list(map(Text, *told))}


def _row(judgement: Judgement) -> dict[str, Any]:
    found = judgement.comparison
    return {
        "name": _two(lambda code: shorten(wording.name_of(judgement, code), 200)),
        "before": wording.both_sides(found.before, found.after, judgement.unit)[0] if found is not None else "–",
        "after": wording.amount(judgement.value, judgement.unit)
        if found is None
        else wording.both_sides(found.before, found.after, judgement.unit)[1],
        "change": wording.change(judgement),
        "threshold": wording.threshold(judgement),
        "result": _two(lambda code: wording.result(judgement, code)),
        "reason": _two(lambda code: wording.reason(judgement, code)),
        "badge": _BADGES[judgement.result],
    }


def _side(samples: Sequence[Sample]) -> dict[str, Any] | None:
    """Step time and its parts, medians over the runs."""
    steps = _numbers(samples, "step.time_us")
    if not steps:
        return None
    step = median(steps)
    shares = {part: median(v) for part in _PARTS if (v := _numbers(samples, f"step.{part}_share"))}
    total = sum(shares.values())
    parts, at = [], 0.0
    for name, share in shares.items():
        width = 1000 * share / total if total > 0 else 0.0
        parts.append(
            {
                "name": name, "css": name, "x": round(at, 1), "width": round(width, 1),
                "share": show(share, "ratio"), "time": show(share * step, "us"),
            }
        )  # fmt: skip
        at += width
    names = ", ".join(shorten(sample.id, 80) for sample in samples[-6:])
    return {"step": show(step, "us"), "parts": parts, "extent": ("… " if len(samples) > 6 else "") + names}


def _numbers(samples: Sequence[Sample], name: str) -> list[float]:
    return [float(v) for s in samples if s.info.has_steps and isinstance(v := s.facts.value(name, RUN), (int, float))]


def _findings(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Findings that most of the runs have, the severe ones first."""
    identity = identities(sample.findings for sample in samples)
    by_identity: dict[Identity, list[Finding]] = {}
    for sample in samples:
        for key, finding in {identity(finding): finding for finding in sample.findings}.items():
            by_identity.setdefault(key, []).append(finding)
    common = [found[-1] for found in by_identity.values() if 2 * len(found) > len(samples)]
    return [
        {
            "severity": finding.severity.value,
            "title": _two(lambda code, f=finding: wording.placed(f, code)),  # type: ignore[misc]
            "rule": finding.rule,
        }
        for finding in sorted(common, key=lambda finding: -finding.severity.rank)
    ]
