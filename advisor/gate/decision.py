"""The decision: every metric, budget and finding judged on its own, then pass, fail or "could not tell".

Nothing measured is never a pass. What was not judged, and why, stands in the decision like what was.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from advisor.compare.facts import key_of
from advisor.gate.changes import Explanation, explain
from advisor.gate.metrics import Metric, title_of, value_of
from advisor.gate.model import Case, Decision, Judgement, Result, Verdict
from advisor.gate.policy import Budget, Judging, Policy
from advisor.gate.sample import Difference, Sample, differences
from advisor.gate.statistics import compare
from advisor.gate.waivers import waive
from advisor.model import Finding, Outcome, Role, Subject, Text

_Serious = dict[tuple[str, str, str], Finding]
"""Findings that count, by verdict, kind and id of their subject."""


def decide(case: Case, policy: Policy, *, today: datetime.date, fail_on: str | None = None) -> Decision:
    """Applies the policy. `case.runs` is not empty, and its runs (and confirming ones) have one key."""
    first = case.runs[0]
    judging = policy.for_run(first.attributes, fail_on)
    ignored = policy.key_ignored
    apart = [differences(other.key, first.key, ignored) for other in case.candidates]
    history = tuple(s for s, d in zip(case.candidates, apart, strict=True) if not d)
    nearest = min(apart, key=len) if apart and not history else []
    found = Explanation()
    if history:
        found = explain(history[-judging.window :], case.runs, judging.worth)
        work = [o for o in found.obstacles if o.what == _OTHER_WORK and o.what not in ignored]
        nearest = [Difference(o.what, o.before, o.after) for o in work]
    court = _Court(case, history, judging, not_comparable=bool(nearest))
    judgements, over = waive((*court.metrics(), *court.budgets(), *court.findings()), policy.waivers, today)
    verdict = _verdict(judgements, not_comparable=bool(nearest))
    notes = (*_notes(case, history, policy, first, found), *over)
    changes = () if nearest else found.changes
    return Decision(
        verdict, judgements, changes, case.runs, case.confirming, history, case.baseline, tuple(nearest), notes,
        case.problems,
    )  # fmt: skip


_OTHER_WORK = "batch"
"""The difference that no key tells and that makes times incomparable: a step does another amount of work."""


def _verdict(judgements: Sequence[Judgement], *, not_comparable: bool) -> Verdict:
    """Fail where anything failed; pass where something was judged and nothing that had to be is missing.

    Metrics that too few runs leave open do not stand in the way of budgets and findings that were judged; a budget, a
    named metric or findings that could not be judged do, and so does a baseline with nothing comparable in it.
    """
    if any(j.result is Result.FAIL for j in judgements):
        return Verdict.FAIL
    open_ = [j for j in judgements if j.result is Result.NOT_JUDGED]
    if not_comparable or any(j.required for j in open_):
        return Verdict.INCONCLUSIVE
    judged = [j for j in judgements if j.result in (Result.PASS, Result.WAIVED, Result.NOT_CONFIRMED)]
    return Verdict.PASS if judged else Verdict.INCONCLUSIVE


_TOO_FEW = ("no_baseline", "few_runs", "few_history")
"""Reasons for which a metric stays open without anything being wrong with it."""


@dataclass
class _Court:
    case: Case
    history: tuple[Sample, ...]
    judging: Judging
    not_comparable: bool

    def metrics(self) -> Iterator[Judgement]:
        for metric in self.judging.metrics:
            judgement = self._metric(metric)
            if judgement is not None:
                yield judgement

    def _metric(self, metric: Metric) -> Judgement | None:
        def get(samples: Iterable[Sample]) -> list[float]:
            values = (value_of(s.facts, metric.name, metric.lower_is_better) for s in samples)
            return [value for value in values if value is not None]

        before, after, confirming = get(self.history), get(self.case.runs), get(self.case.confirming)
        reason, values = self._why_open(metric, before, after)
        if reason:
            if not metric.gates or not (after or before or metric.required):
                return None
            return Judgement(
                "metric", metric.name, metric.title, Result.NOT_JUDGED, reason, values, metric.unit,
                value=median(after) if after else None,
                required=metric.required and reason not in _TOO_FEW,
            )  # fmt: skip
        found = compare(before, after, metric.limits, lower_is_better=metric.lower_is_better, confirming=confirming)
        result, reason = Result.PASS, "better" if found.better else "same"
        if found.worse:
            result, reason = Result.FAIL, "worse"
            if found.confirmed is False:
                result, reason = Result.NOT_CONFIRMED, "not_confirmed"
        if not metric.gates:
            result = Result.WATCHED
        return Judgement(
            "metric", metric.name, metric.title, result, reason, {}, metric.unit, found, found.after,
            at_most=metric.lower_is_better, required=metric.required,
        )  # fmt: skip

    def _why_open(
        self, metric: Metric, before: Sequence[float], after: Sequence[float]
    ) -> tuple[str, Mapping[str, str]]:
        """Why the metric cannot be judged; empty where it can."""
        needed, needed_before = self.judging.min_runs, self.judging.min_history
        if self.case.baseline is None:
            return "no_baseline", {}
        if not after:
            return "not_measured", {}
        if self.not_comparable:
            return "not_comparable", {}
        if len(after) < needed:
            return "few_runs", {"runs": str(len(after)), "needed": str(needed)}
        if self.history and not before:
            return "not_in_baseline", {}
        if len(before) < needed_before:
            return "few_history", {"runs": str(len(before)), "needed": str(needed_before)}
        return "", {}

    def budgets(self) -> Iterator[Judgement]:
        for budget in self.judging.budgets:
            yield self._budget(budget)

    def _budget(self, budget: Budget) -> Judgement:
        values = self._budget_values(budget, self.case.runs)
        title = title_of(budget.name)
        if not values:
            return Judgement(
                "budget", budget.name, title, Result.NOT_JUDGED, "not_measured", {}, budget.unit, limit=budget.limit,
                at_most=budget.at_most, required=True,
            )  # fmt: skip
        value = median(values)
        result, reason = Result.PASS, "within"
        if _breaks(value, budget):
            result, reason = Result.FAIL, "over" if budget.at_most else "under"
            again = self._budget_values(budget, self.case.confirming)
            if again and not _breaks(median(again), budget):
                result, reason = Result.NOT_CONFIRMED, "not_confirmed"
        return Judgement(
            "budget", budget.name, title, result, reason, {}, budget.unit, None, value, budget.limit, budget.at_most
        )

    @staticmethod
    def _budget_values(budget: Budget, samples: Sequence[Sample]) -> list[float]:
        return [v for s in samples if (v := value_of(s.facts, budget.name, budget.at_most)) is not None]

    def findings(self) -> Iterator[Judgement]:
        """Findings that most of the runs have, that are severe and certain enough, and that the baseline's runs do not
        have at that severity."""
        limit = self.judging.fail_on
        if limit is None:
            return
        title = Text("findings", "结论")
        judged = {c.rule for s in self.case.runs for c in s.checked if c.outcome in (Outcome.PASS, Outcome.FAIL)}
        if not judged and not any(s.findings for s in self.case.runs):
            yield Judgement("findings", "findings", title, Result.NOT_JUDGED, "no_rules", required=True)
            return
        serious = [self._serious(sample) for sample in self.case.runs]
        again = [self._serious(sample) for sample in self.case.confirming]
        known = [self._serious(sample) for sample in self.history[-self.judging.window :]]
        reached: list[Judgement] = []
        for identity in {identity for found in serious for identity in found}:
            having = [found[identity] for found in serious if identity in found]
            if 2 * len(having) <= len(serious):
                continue
            worst = max(having, key=lambda finding: finding.severity.rank)
            result, reason = self._about(identity, worst, known)
            if result is Result.FAIL and again and 2 * sum(identity in found for found in again) <= len(again):
                result, reason = Result.NOT_CONFIRMED, "not_confirmed"
            reached.append(Judgement("finding", worst.verdict, worst.title, result, reason, {}, finding=worst))
        yield from sorted(reached, key=_causes_first)
        if not any(judgement.result is Result.FAIL for judgement in reached):
            values = {"severity": limit.value, "count": str(len(judged))}
            yield Judgement("findings", "findings", title, Result.PASS, "no_findings", values)

    def _about(
        self, identity: tuple[str, str, str], finding: Finding, known: Sequence[Mapping[tuple[str, str, str], Finding]]
    ) -> tuple[Result, str]:
        if not self.judging.only_new or not known:
            return Result.FAIL, "finding_no_history" if self.judging.only_new else "every_finding"
        if sum(identity in found for found in known) > self.judging.known_share * len(known):
            return Result.WATCHED, "known"
        outcomes = {c.outcome for s in self.history for c in s.checked if c.rule == finding.rule}
        if not outcomes & {Outcome.PASS, Outcome.FAIL, Outcome.NOT_APPLICABLE}:
            return Result.WATCHED, "first_judged"
        return Result.FAIL, "new"

    def _serious(self, sample: Sample) -> _Serious:
        limit = self.judging.fail_on
        assert limit is not None
        return {
            (f.verdict, *key_of(f.subject)): f
            for f in sample.findings
            if f.status != "experimental"
            and f.severity.rank >= limit.rank
            and f.confidence.rank >= self.judging.min_confidence.rank
        }


def _causes_first(judgement: Judgement) -> tuple[bool, int, str, Subject]:
    finding = judgement.finding
    assert finding is not None
    return finding.role is not Role.ROOT_CAUSE, -finding.severity.rank, finding.verdict, finding.subject


def _breaks(value: float, budget: Budget) -> bool:
    return value > budget.limit if budget.at_most else value < budget.limit


def _notes(
    case: Case, history: Sequence[Sample], policy: Policy, first: Sample, found: Explanation
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What a reader of the decision should know besides."""
    for sample in (*case.runs, *case.confirming):
        if sample.problems:
            problem = sample.problems[0]
            count = str(len(sample.problems))
            yield "damaged", {"run": sample.id, "count": count, "problem": f"{problem.file}: {problem.problem}"}
    known = {sample.digest for sample in history if sample.digest}
    same = sum(sample.digest in known for sample in case.runs)
    if same:
        yield "in_baseline", {"count": str(same)}
    if history and len(history) < len(case.candidates):
        yield "others", {"count": str(len(case.candidates) - len(history)), "all": str(len(case.candidates))}
    for obstacle in found.obstacles:
        if obstacle.what != _OTHER_WORK:
            yield "differs", {"what": obstacle.what, "before": obstacle.before, "after": obstacle.after}
    attributes = {name for sample in (first, *case.candidates) for name in sample.attributes}
    unknown = sorted({name for when in policy.table.when for name in when.match} - attributes)
    for name in unknown:
        yield "unknown_attribute", {"name": name}
