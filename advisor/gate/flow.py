"""The gate's whole flow on one page: profiles or step times → samples → decision, and what is put into a baseline."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.basics.errors import NoVerdict, UsageError
from advisor.gate.decision import decide, nothing_readable
from advisor.gate.history.baselines import Reference, add_runs, load_baseline, refuse_frozen, require_baseline
from advisor.gate.history.histories import apart
from advisor.gate.judging.readings import value_of
from advisor.gate.metrics import defaults
from advisor.gate.model import Case, Decision, Verdict
from advisor.gate.policy import Policy
from advisor.gate.sample import Sample, take_sample
from advisor.model import Problem

if TYPE_CHECKING:
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet

Sampler = Callable[[str], Sample]
"""Makes a sample of what a user named. Raises NoVerdict where nothing can be read there."""


def profile_sampler(
    policy: Policy,
    rules: RuleSet,
    options: Options,
    key: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Sampler:
    """Measures a profile with everything that policy and rules ask for."""
    given = {**policy.key_values, **(key or {})}
    named = [*policy.table.metrics, *policy.table.budgets]
    named += [name for when in policy.table.when for name in (*when.metrics, *when.budgets)]
    return lambda path: take_sample(path, rules, options, given, metadata, named)


def run_gate(
    profiles: Sequence[str],
    confirming: Sequence[str],
    baseline: Reference | None,
    policy: Policy,
    sampler: Sampler,
    *,
    fail_on: str | None = None,
    today: datetime.date | None = None,
    allow_unreadable: int = 0,
    record: bool = False,
) -> Decision:
    """Measures each profile as one run and judges them; with `record`, puts them into a baseline that is too short to
    judge by. Raises UsageError and NoVerdict."""
    if record and baseline is None:
        raise UsageError("there is no baseline to record into", hint="name one: --baseline FOLDER#NAME")
    if baseline is not None and record:
        refuse_frozen(baseline)
    elif baseline is not None:
        require_baseline(baseline)
    stored = load_baseline(baseline, policy.key_ignored) if baseline is not None else None
    _refuse_doubles((*profiles, *confirming))
    runs, unreadable = take_samples(profiles, sampler)
    again, unread = take_samples(confirming, sampler)
    if not runs:
        return nothing_readable((*unreadable, *unread), None if baseline is None else str(baseline))
    refuse_parts([*runs, *again])
    _refuse_mixture([*runs, *again], policy)
    case = Case(
        tuple(runs),
        tuple(again),
        None if baseline is None else str(baseline),
        stored.histories if stored else (),
        stored.problems if stored else (),
        (*unreadable, *unread),
        allow_unreadable,
        record,
    )
    today = today or datetime.datetime.now(datetime.timezone.utc).date()
    decision = decide(case, policy, today=today, fail_on=fail_on)
    if baseline is not None and decision.verdict is Verdict.RECORDED and decision.recorded is not None:
        add_runs(baseline, decision.recorded.runs, policy.key_ignored)
    return decision


def take_samples(profiles: Sequence[str], sampler: Sampler) -> tuple[list[Sample], list[Problem]]:
    """One sample a profile, and those in which no run could be read. Raises UsageError where there is no such file."""
    samples: list[Sample] = []
    unreadable: list[Problem] = []
    for profile in profiles:
        try:
            samples.append(sampler(profile))
        except NoVerdict as error:
            unreadable.append(Problem(profile, error.message))
    return samples, unreadable


def require_measured(sample: Sample) -> None:
    """Raises NoVerdict where a run has nothing that a later one could be compared with."""
    if any(value_of(sample, name) is not None for name in defaults()["metrics"]):
        return
    told = sample.info.recording_reason.en or "; ".join(f"{p.file}: {p.problem}" for p in sample.problems[:2])
    raise NoVerdict(
        "none of the gate's metrics was measured; nothing was added" + (f" ({told})" if told else ""),
        place=sample.id,
        hint="`advisor doctor` tells what is missing",
    )


def _refuse_doubles(profiles: Sequence[str]) -> None:
    seen: dict[Path, str] = {}
    for profile in profiles:
        where = Path(profile).resolve()
        if where in seen:
            raise UsageError("is named twice", place=profile, hint="each PROFILE is one run; measure another one")
        seen[where] = profile


def refuse_parts(samples: Sequence[Sample]) -> None:
    """Raises UsageError where two samples look like ranks of one run."""
    first = samples[0]
    for other in samples[1:]:
        if first.info.ranks and other.info.ranks and set(first.info.ranks).isdisjoint(other.info.ranks):
            raise UsageError(
                f"has rank {other.key['ranks']}, {first.id} has rank {first.key['ranks']}",
                place=other.id,
                hint="each PROFILE is one whole run; for ranks of one run name the folder above them",
            )


def _refuse_mixture(samples: Sequence[Sample], policy: Policy) -> None:
    """All samples must be runs of the same thing."""
    first = samples[0]
    for other in samples[1:]:
        differences = apart(first, other, policy.key_ignored)
        if differences:
            told = "; ".join(f"{d.field}: {d.before or 'unknown'} and {d.after or 'unknown'}" for d in differences[:6])
            raise NoVerdict(
                f"cannot be compared with {first.id}: {told}",
                place=other.id,
                hint="runs that differ on purpose are judged one by one, or with that field in gate.key.ignore",
            )
