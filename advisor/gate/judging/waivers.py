"""Waivers: what may fail for a while, for a reason, until a day. A waiver of nothing that exists is an error; one that
is over, unused, soon to end or longer than the policy allows is told."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from advisor.basics.errors import ConfigError
from advisor.basics.suggest import suggest
from advisor.gate.metrics import defaults
from advisor.gate.model import Judgement, Note, Result
from advisor.gate.policy import Policy
from advisor.gate.tables import WaiverTable
from advisor.model import Subject


def check_waivers(policy: Policy, verdicts: Iterable[str], place: str = "") -> None:
    """Raises ConfigError where a waiver names a metric, budget, verdict or rule that does not exist. `verdicts` are the
    verdict words and rules known."""
    words = sorted(set(verdicts))
    metrics = sorted({*defaults()["metrics"], *policy.kinds})
    budgets = sorted({name for table in (policy.table, *policy.table.when) for name in table.budgets})
    faults = []
    for index, waiver in enumerate(policy.waivers):
        for kind, name, known in (
            ("finding", waiver.finding, words), ("metric", waiver.metric, metrics), ("budget", waiver.budget, budgets),
        ):  # fmt: skip
            if name is None or any(fnmatchcase(each, name) for each in known):
                continue
            near = suggest(name, known)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known[:8]) or 'none'}"
            faults.append(f"gate.waivers.{index}.{kind}: unknown {kind} {name} ({hint})")
    if faults:
        raise ConfigError("; ".join(faults), place=place)


def waive(
    judgements: Sequence[Judgement], policy: Policy, today: datetime.date
) -> tuple[tuple[Judgement, ...], tuple[Note, ...]]:
    """The judgements as the waivers leave them, and what to know about the waivers.

    A waiver holds until the end of its day; afterwards it waives nothing, and the failure says so.
    """
    needed: set[int] = set()
    result = []
    for judgement in judgements:
        fitting = [i for i, waiver in enumerate(policy.waivers) if _covers(waiver, judgement)]
        if judgement.result is Result.FAIL and fitting:
            needed.update(fitting)
            last = max((policy.waivers[i] for i in fitting), key=lambda waiver: waiver.until)
            valid = last.until >= today
            judgement = replace(judgement, waiver=last, result=Result.WAIVED if valid else Result.FAIL)
        result.append(judgement)
    return tuple(result), tuple(_notes(policy, needed, today))


def _notes(policy: Policy, needed: set[int], today: datetime.date) -> Iterator[Note]:
    for index, waiver in enumerate(policy.waivers):
        left = (waiver.until - today).days
        told = {
            "name": waiver.finding or waiver.metric or waiver.budget or "", "until": waiver.until.isoformat(),
            "reason": waiver.reason, "days": str(left),
        }  # fmt: skip
        if index not in needed:
            yield ("waiver_over" if left < 0 else "waiver_unused"), told
        elif 0 <= left <= defaults()["waivers"]["ending_days"]:
            yield "waiver_ending", told
        if policy.waiver_days is not None and left > policy.waiver_days:
            yield "waiver_long", {**told, "limit": str(policy.waiver_days)}


def _covers(waiver: WaiverTable, judgement: Judgement) -> bool:
    if judgement.kind == "finding" and judgement.finding is not None and waiver.finding is not None:
        finding = judgement.finding
        named = fnmatchcase(finding.verdict, waiver.finding) or fnmatchcase(finding.rule, waiver.finding)
        return named and _about_subject(waiver.subject, finding.subject)
    wanted = {"metric": waiver.metric, "budget": waiver.budget}.get(judgement.kind)
    return wanted is not None and fnmatchcase(judgement.name, wanted)


def _about_subject(pattern: str, subject: Subject) -> bool:
    return any(fnmatchcase(text, pattern) for text in (subject.id, str(subject), f"{subject.kind}/{subject.id}"))
