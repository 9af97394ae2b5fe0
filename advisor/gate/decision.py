"""The decision: every metric, budget and finding judged on its own, then pass, fail, or "could not tell".

Nothing measured is never a pass. What was not judged, and why, stands in the decision like what was.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.gate.changes import Explanation, explain
from advisor.gate.history.histories import History, distinct, find_history, nearest
from advisor.gate.judging.bench import Bench
from advisor.gate.judging.findings import judge_findings
from advisor.gate.judging.measures import judge_budgets, judge_metrics
from advisor.gate.judging.unsteady import find_unsteady
from advisor.gate.judging.waivers import waive
from advisor.gate.model import Case, Decision, Judgement, Note, Recorded, Result, Unsteady, Verdict
from advisor.gate.policy import Judging, Policy
from advisor.gate.sample import Sample
from advisor.model import Problem


def decide(case: Case, policy: Policy, *, today: datetime.date, fail_on: str | None = None) -> Decision:
    """Applies the policy. `case.runs` is not empty, and its runs (and confirming ones) are of one kind."""
    runs, copies = distinct(case.runs)
    again, repeated = distinct(case.confirming, runs)
    own = find_history(runs[0], case.histories, policy.key_ignored)
    stored = own.runs if own is not None else ()
    history, _ = distinct(stored, (*runs, *again))
    judging = policy.for_run(runs[0].attributes, fail_on)
    recording = case.recording and len(history) < judging.min_history
    apart = () if own is not None else tuple(nearest(runs[0], case.histories, policy.key_ignored))
    bench = Bench(
        tuple(runs), tuple(again), tuple(history), judging, case.baseline is not None, apart,
        max(0, case.allowed_unreadable - len(case.unreadable)), recording,
    )  # fmt: skip
    judged = (*judge_metrics(bench), *judge_budgets(bench), *judge_findings(bench))
    judgements, waivers = waive(judged, policy, today)
    hindrances = tuple(_hindrances(case, bench))
    found = explain(history[-judging.recent :], runs, judging.worth) if history else Explanation()
    return Decision(
        verdict=_verdict(judgements, hindrances, recording),
        judgements=judgements,
        changes=found.changes,
        runs=tuple(runs),
        confirming=tuple(again),
        history=tuple(history),
        baseline=case.baseline,
        differences=apart,
        notes=(*waivers, *_notes(case, bench, policy, found, stored, (copies, repeated))),
        problems=case.problems,
        hindrances=hindrances,
        unreadable=case.unreadable,
        unsteady=_unsteady(runs, history, judging),
        recorded=_recorded(runs, stored, judging) if recording else None,
    )


def stopped(message: str, baseline: str | None, profiles: Sequence[str]) -> Decision:
    """The answer where there is none: what stopped the gate before anything could be judged."""
    return _undecided(("stopped", {"what": message}), baseline, profiles)


def nothing_readable(unreadable: Sequence[Problem], baseline: str | None) -> Decision:
    """The answer where no run could be read."""
    why = ("none_readable", {"count": str(len(unreadable))})
    return replace(_undecided(why, baseline, [item.file for item in unreadable]), unreadable=tuple(unreadable))


def _undecided(why: Note, baseline: str | None, profiles: Sequence[str]) -> Decision:
    return Decision(
        Verdict.INCONCLUSIVE, (), (), (), (), (), baseline, hindrances=(why,), asked=tuple(profiles)
    )  # fmt: skip


def _hindrances(case: Case, bench: Bench) -> Iterator[Note]:
    """Why the gate cannot pass, whatever was judged: a baseline that was named and compares nothing, or runs that could
    not be read."""
    if len(case.unreadable) > case.allowed_unreadable:
        yield "some_unreadable", {"count": str(len(case.unreadable)), "allowed": str(case.allowed_unreadable)}
    if not bench.named:
        return
    few = len(bench.history) < bench.judging.min_history
    if case.problems and few:
        first = case.problems[0]
        yield (
            "baseline_damaged",
            {"count": str(len(case.problems)), "file": first.file, "problem": first.problem},
        )
    elif bench.recording:
        return
    elif bench.differences:
        yield "not_comparable", {}
    elif not bench.history:
        yield "baseline_empty", {}


def _verdict(judgements: Sequence[Judgement], hindrances: Sequence[Note], recording: bool) -> Verdict:
    """Fail where anything failed; pass where something was judged and nothing that had to be is missing.

    Metrics that too few runs leave open do not stand in the way of budgets and findings that were judged; a budget, a
    named metric or findings that could not be judged do, and so does a baseline with nothing comparable in it.
    """
    if any(j.result is Result.FAIL for j in judgements):
        return Verdict.FAIL
    if hindrances or any(j.required for j in judgements if j.result is Result.NOT_JUDGED):
        return Verdict.INCONCLUSIVE
    if recording:
        return Verdict.RECORDED
    judged = [j for j in judgements if j.result in (Result.PASS, Result.WAIVED, Result.NOT_CONFIRMED)]
    return Verdict.PASS if judged else Verdict.INCONCLUSIVE


def _recorded(runs: Sequence[Sample], stored: Sequence[Sample], judging: Judging) -> Recorded:
    fresh, _ = distinct(runs, stored)
    return Recorded(tuple(fresh), len(stored) + len(fresh), judging.min_history)


def _unsteady(runs: Sequence[Sample], history: Sequence[Sample], judging: Judging) -> tuple[Unsteady, ...]:
    """By the first metric that gates and tells runs apart."""
    gating = (metric for metric in judging.metrics if metric.gates)
    return next((found for metric in gating if (found := find_unsteady(runs, history, metric))), ())


def _notes(
    case: Case,
    bench: Bench,
    policy: Policy,
    found: Explanation,
    stored: Sequence[Sample],
    copies: tuple[Sequence[Sample], Sequence[Sample]],
) -> Iterator[Note]:
    """What a reader of the decision should know besides."""
    for sample in (*bench.runs, *bench.confirming):
        if sample.problems:
            problem = sample.problems[0]
            count = str(len(sample.problems))
            yield "damaged", {"run": sample.id, "count": count, "problem": f"{problem.file}: {problem.problem}"}
    for key, left_out in (("copies", copies[0]), ("copies_confirming", copies[1])):
        if left_out:
            yield key, {"count": str(len(left_out)), "first": left_out[0].id}
    same = len(stored) - len(bench.history)
    if same:
        yield "in_baseline", {"count": str(same)}
    others = sum(len(history.runs) for history in case.histories) - len(stored)
    if stored and others:
        yield "others", {"count": str(others), "all": str(others + len(stored))}
    for obstacle in found.obstacles:
        yield "differs", {"what": obstacle.what, "before": obstacle.before, "after": obstacle.after}
    for name in _unknown_attributes(policy, bench.runs[0], case.histories):
        yield "unknown_attribute", {"name": name}


def _unknown_attributes(policy: Policy, first: Sample, histories: Sequence[History]) -> list[str]:
    samples = (first, *(run for history in histories for run in history.runs))
    attributes = {name for sample in samples for name in sample.attributes}
    return sorted({name for when in policy.table.when for name in when.match} - attributes)
