"""The gate's whole flow on one page: profiles → samples → decision; and what `baseline` shows."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.basics.errors import NoVerdict, UsageError
from advisor.gate.baselines import Reference, load_baseline
from advisor.gate.decision import decide
from advisor.gate.model import Case, Decision
from advisor.gate.policy import Policy
from advisor.gate.sample import Sample, differences, take_sample

if TYPE_CHECKING:
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet


def run_gate(
    profiles: Sequence[str],
    confirming: Sequence[str],
    baseline: Reference | None,
    policy: Policy,
    rules: RuleSet,
    options: Options,
    *,
    key: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    fail_on: str | None = None,
    today: datetime.date | None = None,
) -> Decision:
    """Measures each profile as one run and judges them. Raises UsageError and NoVerdict."""
    stored = load_baseline(baseline) if baseline is not None else None
    samples = take_samples((*profiles, *confirming), policy, rules, options, key, metadata)
    runs, again = samples[: len(samples) - len(confirming)], samples[len(samples) - len(confirming) :]
    case = Case(
        tuple(runs),
        tuple(again),
        None if baseline is None else str(baseline),
        stored.runs if stored else (),
        stored.problems if stored else (),
    )
    today = today or datetime.datetime.now(datetime.timezone.utc).date()
    return decide(case, policy, today=today, fail_on=fail_on)


def take_samples(
    profiles: Sequence[str],
    policy: Policy,
    rules: RuleSet,
    options: Options,
    key: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[Sample]:
    """One sample a profile. Raises UsageError where two are the same folder or look like ranks of one run, NoVerdict
    where they cannot be compared with each other."""
    _refuse_doubles(profiles)
    given = {**policy.key_values, **(key or {})}
    named = [*policy.table.metrics, *policy.table.budgets]
    named += [name for when in policy.table.when for name in (*when.metrics, *when.budgets)]
    samples = [take_sample(profile, rules, options, given, metadata, named) for profile in profiles]
    _refuse_mixture(samples, policy)
    return samples


def _refuse_doubles(profiles: Sequence[str]) -> None:
    seen: dict[Path, str] = {}
    for profile in profiles:
        where = Path(profile).resolve()
        if where in seen:
            raise UsageError("is named twice", place=profile, hint="each PROFILE is one run; measure another one")
        seen[where] = profile


def _refuse_mixture(samples: Sequence[Sample], policy: Policy) -> None:
    """All samples must be runs of the same thing."""
    first = samples[0]
    for other in samples[1:]:
        apart = differences(first.key, other.key, policy.key_ignored)
        if not apart:
            continue
        if set(first.info.ranks).isdisjoint(other.info.ranks):
            raise UsageError(
                f"has rank {other.key['ranks']}, {first.id} has rank {first.key['ranks']}",
                place=other.id,
                hint="each PROFILE is one whole run; for ranks of one run name the folder above them",
            )
        told = "; ".join(f"{d.field}: {d.before or 'unknown'} and {d.after or 'unknown'}" for d in apart[:6])
        raise NoVerdict(
            f"cannot be compared with {first.id}: {told}",
            place=other.id,
            hint="runs that differ on purpose are judged one by one, or with that field in gate.key.ignore",
        )
