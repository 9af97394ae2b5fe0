"""Findings of the runs against those of the history: which are new, and which of them may fail the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from advisor.compare.identity import Identity
from advisor.compare.sight import sight
from advisor.facts.registry import catalogue
from advisor.gate.judging.bench import Bench
from advisor.gate.metrics import defaults
from advisor.gate.model import Judgement, Result
from advisor.gate.sample import Sample
from advisor.model import Finding, Outcome, Role, Severity, Subject, Text

_NAMED = 4
"""Rules named where many lack evidence."""
_Found = dict[Identity, Finding]


def judge_findings(bench: Bench) -> Iterator[Judgement]:
    """Findings that most of the runs have: those the policy gates, then those that are new and not gated."""
    judged = {c.rule for s in bench.runs for c in s.checked if c.outcome in (Outcome.PASS, Outcome.FAIL)}
    limit = bench.judging.fail_on
    title = Text(**defaults()["findings"]["title"])
    if limit is not None and not judged and not any(s.findings for s in bench.runs):
        yield Judgement("findings", "findings", title, Result.NOT_JUDGED, "no_rules", required=True)
        return
    reached = list(_gated(bench, limit)) if limit is not None else []
    yield from sorted(reached, key=_causes_first)
    if limit is not None and not any(judgement.result is Result.FAIL for judgement in reached):
        values = {"severity": limit.value, "count": str(len(judged))}
        reason = "no_findings" if _window(bench) else "no_findings_at_all"
        yield Judgement("findings", "findings", title, Result.PASS, reason, values)
    if limit is not None and (lost := _lost(bench)):
        values = {"count": str(len(lost)), "rules": ", ".join(lost[:_NAMED])}
        yield Judgement("findings", "evidence", title, Result.NOT_JUDGED, "evidence_lost", values, required=True)
    told = {bench.identity(judgement.finding) for judgement in reached if judgement.finding is not None}
    yield from sorted(_not_gated(bench, told), key=_causes_first)


def _lost(bench: Bench) -> list[str]:
    """Rules that every run of the baseline could judge and none of these runs can, for want of a fact that was measured
    there (a newer rule may want others): less evidence is no all-clear."""
    window = _window(bench)
    if not window or bench.recording:
        return []
    measured = set.intersection(*({fact.name for fact in sample.facts} for sample in window))
    judged = [{c.rule for c in s.checked if c.outcome in (Outcome.PASS, Outcome.FAIL)} for s in window]
    blind = [
        {c.rule for c in s.checked if c.outcome is Outcome.NO_DATA and measured.intersection(c.missing)}
        for s in bench.runs
    ]
    return sorted(set.intersection(*judged, *blind))


def _gated(bench: Bench, limit: Severity) -> Iterator[Judgement]:
    """Severe and certain enough, in most of the runs, and not in the history at that severity."""
    serious = lambda f: (  # noqa: E731
        f.status != "experimental"
        and f.severity.rank >= limit.rank
        and f.confidence.rank >= bench.judging.min_confidence.rank
    )
    runs, known = _each(bench, bench.runs, serious), _each(bench, _window(bench), serious)
    again = _each(bench, bench.confirming, serious)
    for identity, worst in _common(runs).items():
        result, reason = _about(bench, identity, worst, known)
        if result is Result.FAIL and again and 2 * sum(identity in found for found in again) <= len(again):
            result, reason = Result.NOT_CONFIRMED, "not_confirmed"
        yield Judgement("finding", worst.verdict, worst.title, result, reason, {}, finding=worst)


def _about(bench: Bench, identity: Identity, finding: Finding, known: Sequence[_Found]) -> tuple[Result, str]:
    if bench.recording:
        return Result.WATCHED, "finding_recorded"
    if not bench.judging.only_new or not known:
        return Result.FAIL, "finding_no_history" if bench.judging.only_new else "every_finding"
    if sum(identity in found for found in known) > bench.judging.known_share * len(known):
        return Result.WATCHED, "known"
    return (Result.FAIL, "new") if _could_have(bench, finding) else (Result.WATCHED, "first_judged")


def _not_gated(bench: Bench, told: set[Identity]) -> Iterator[Judgement]:
    """Of medium severity and more, new against the history (or without one, severe enough), and let through by the
    policy: nobody is to miss them."""
    least = Severity(defaults()["findings"]["shown_from"]).rank
    window, limit = _window(bench), bench.judging.fail_on
    for identity, worst in _common(_each(bench, bench.runs, lambda f: f.severity.rank >= least)).items():
        if identity in told:
            continue
        if not window:  # nothing to be new against: severe enough, but not certain enough
            if limit is not None and worst.severity.rank >= limit.rank:
                yield Judgement("finding", worst.verdict, worst.title, Result.WATCHED, "unsure", {}, finding=worst)
            continue
        known = _each(bench, window, lambda f, rank=worst.severity.rank: f.severity.rank >= rank)  # type: ignore[misc]
        if sum(identity in found for found in known) > bench.judging.known_share * len(known):
            continue
        reason = "new_not_gated" if _could_have(bench, worst) else "first_judged"
        yield Judgement("finding", worst.verdict, worst.title, Result.WATCHED, reason, {}, finding=worst)


def _could_have(bench: Bench, finding: Finding) -> bool:
    """Whether the rule was judged in the history, or would have been, had there been anything of what it looks for: one
    that never had its evidence there found nothing new."""
    outcomes = {c.outcome for s in bench.history for c in s.checked if c.rule == finding.rule}
    if outcomes & {Outcome.PASS, Outcome.FAIL, Outcome.NOT_APPLICABLE}:
        return True
    having = next(run for run in bench.runs if finding in run.findings)
    return any(_found_none(sample, having, finding) for sample in _window(bench))


def _found_none(sample: Sample, having: Sample, finding: Finding) -> bool:
    """Whether this run of the history has all tables that the finding of a later run was read from, by the same version
    of the advisor: of an event that never happened there is nothing to measure."""
    blind = any(c.rule == finding.rule and c.outcome is Outcome.NO_DATA for c in sample.checked)
    if not blind or not sample.version or sample.version != having.version:
        return False
    tabled = all(side.table.of("rank.tables") for side in (sample, having))
    return tabled and not sight(sample.table, having.table, catalogue()).unlike(finding)


def _window(bench: Bench) -> tuple[Sample, ...]:
    return bench.history[-bench.judging.window :]


def _each(bench: Bench, samples: Sequence[Sample], wanted: Callable[[Finding], bool]) -> list[_Found]:
    return [{bench.identity(f): f for f in sample.findings if wanted(f)} for sample in samples]


def _common(runs: Sequence[_Found]) -> _Found:
    """What more than half of the runs have, each as severe as it is in more than half of them."""
    common: _Found = {}
    for identity in dict.fromkeys(identity for found in runs for identity in found):
        having = [found[identity] for found in runs if identity in found]
        if 2 * len(having) > len(runs):
            common[identity] = sorted(having, key=lambda f: -f.severity.rank)[len(runs) // 2]
    return common


def _causes_first(judgement: Judgement) -> tuple[bool, int, str, Subject]:
    finding = judgement.finding
    assert finding is not None
    return finding.role is not Role.ROOT_CAUSE, -finding.severity.rank, finding.verdict, finding.subject
