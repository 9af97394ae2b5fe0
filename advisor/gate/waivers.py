"""Waivers: what may fail for a while, for a reason, until a day."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from advisor.gate.model import Judgement, Result
from advisor.gate.tables import WaiverTable
from advisor.model import Subject

Note = tuple[str, Mapping[str, str]]


def waive(
    judgements: Sequence[Judgement], waivers: Sequence[WaiverTable], today: datetime.date
) -> tuple[tuple[Judgement, ...], tuple[Note, ...]]:
    """The judgements as the waivers leave them, and a note for each waiver that is over and was not needed.

    A waiver holds until the end of its day; afterwards it waives nothing, and the failure says so.
    """
    needed: set[int] = set()
    result = []
    for judgement in judgements:
        fitting = [i for i, waiver in enumerate(waivers) if _covers(waiver, judgement)]
        if judgement.result is Result.FAIL and fitting:
            needed.update(fitting)
            last = max((waivers[i] for i in fitting), key=lambda waiver: waiver.until)
            valid = last.until >= today
            judgement = replace(judgement, waiver=last, result=Result.WAIVED if valid else Result.FAIL)
        result.append(judgement)
    return tuple(result), tuple(_over([w for i, w in enumerate(waivers) if i not in needed], today))


def _over(waivers: Sequence[WaiverTable], today: datetime.date) -> Iterator[Note]:
    for waiver in waivers:
        if waiver.until < today:
            about = waiver.finding or waiver.metric or waiver.budget or ""
            yield "waiver_over", {"name": about, "until": waiver.until.isoformat(), "reason": waiver.reason}


def _covers(waiver: WaiverTable, judgement: Judgement) -> bool:
    if judgement.kind == "finding" and judgement.finding is not None and waiver.finding is not None:
        finding = judgement.finding
        named = fnmatchcase(finding.verdict, waiver.finding) or fnmatchcase(finding.rule, waiver.finding)
        return named and _about_subject(waiver.subject, finding.subject)
    wanted = {"metric": waiver.metric, "budget": waiver.budget}.get(judgement.kind)
    return wanted is not None and fnmatchcase(judgement.name, wanted)


def _about_subject(pattern: str, subject: Subject) -> bool:
    return any(fnmatchcase(text, pattern) for text in (subject.id, str(subject), f"{subject.kind}/{subject.id}"))
