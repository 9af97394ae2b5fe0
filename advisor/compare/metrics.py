"""Quantities side by side, the noise between two runs, and who accounts for a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt

from advisor.compare.facts import FactTable, Key, key_of, number
from advisor.compare.model import Account, Matched, Metric
from advisor.facts.base import FactKind
from advisor.knowledge.comparison import settings
from advisor.model import Fact, Subject

_P95 = 1.645
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
_MEDIAN = 1.2533
"""Standard error of a median ÷ that of a mean, normal distribution: √(π/2)."""


def noise_of_step(old: FactTable, new: FactTable) -> float:
    """Relative change of the step below which nothing is claimed: what runs of one program differ by, or twice the
    standard error of the difference of two medians of steps (σ from `step.jitter`), whichever is larger."""
    least = settings().limits["least_change"]
    variance = 0.0
    for table in (old, new):
        jitter, count = table.number("step.jitter"), table.number("step.count")
        if jitter and count:
            variance += (_MEDIAN * jitter / _P95) ** 2 / count
    return max(least, 2 * sqrt(variance))


def metrics(old: FactTable, new: FactTable, kinds: Mapping[str, FactKind]) -> Iterator[Metric]:
    """The metrics of knowledge_base/comparison.yaml that at least one side has measured.

    Times have moved by more than the step's noise, shares by more than `least_change` of the whole.
    """
    noise, least = noise_of_step(old, new), settings().limits["least_change"]
    steps = [t.number(name) or 0.0 for t in (old, new) for name in ("step.time_us", "data.step_us")]
    floors = {"us": noise * max(steps), "ratio": least}
    for name in settings().metrics:
        kind = kinds.get(name)
        if kind is None:
            continue
        before, after = old.number(name), new.number(name)
        if before is not None or after is not None:
            yield Metric(
                name,
                kind.unit,
                kind.meaning,
                before,
                after,
                noise if kind.unit == "us" else least,
                floors.get(kind.unit, 0.0),
            )


def accounts(
    found: Sequence[Metric], old: FactTable, new: FactTable, findings: Sequence[Matched], step: Metric
) -> Iterator[Account]:
    """For each part of the step that moved by more than the step's noise: who moved with it, largest first."""
    limits = settings().limits
    floor = step.noise * max(step.before or 0.0, step.after or 0.0)
    for part, names in settings().accounts.items():
        metric = next((m for m in found if m.fact == part), None)
        if metric is None or metric.before is None or metric.after is None:
            continue
        change = metric.after - metric.before
        if abs(change) <= floor:
            continue
        candidates = [a for name in names for a in _changes(part, change, name, old, new)]
        telling = [
            a
            for a in candidates
            if a.change_us * change > 0 and abs(a.change_us) >= limits["account_share"] * abs(change)
        ]
        seen: set[Subject] = set()
        shown = 0
        moved: dict[str, float] = {}
        for each in candidates:
            moved[each.fact] = moved.get(each.fact, 0.0) + abs(each.change_us)
        for account in sorted(telling, key=lambda a: -abs(a.change_us)):
            if account.subject in seen or shown >= limits["accounts_shown"]:
                continue
            seen.add(account.subject)
            shown += 1
            yield replace(_with_findings(account, findings), share=abs(account.change_us) / moved[account.fact])


def _changes(part: str, change: float, name: str, old: FactTable, new: FactTable) -> Iterator[Account]:
    before, after = old.of(name), new.of(name)
    if not before or not after:
        return
    for key in sorted(set(before) | set(after)):
        a, b = _side(before, key), _side(after, key)
        if a is None and b is None:
            continue
        subject = (before.get(key) or after[key]).subject
        yield Account(part, change, name, subject, a, b)


def _side(facts: Mapping[Key, Fact], key: Key) -> float | None:
    return number(facts[key].value) if key in facts else None


def _with_findings(account: Account, findings: Sequence[Matched]) -> Account:
    ids = []
    for match in findings:
        if key_of(match.subject) != key_of(account.subject):
            continue
        if match.before is not None:
            ids.append(f"before/{match.before.id}")
        if match.after is not None and match.before is None:
            ids.append(f"after/{match.after.id}")
    return Account(
        account.part, account.part_change_us, account.fact, account.subject, account.before, account.after, tuple(ids)
    )
