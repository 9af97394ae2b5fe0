"""What a saved report tells, held to what can be: it comes back from anywhere, and its numbers decide what people do.

Numbers that the verdict rests on (the step, its account, evidence, savings, repairs) refuse the report; facts and
pictures are left out and told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from advisor.facts.recording.bounds import beyond, impossible, rounding
from advisor.facts.registry import catalogue
from advisor.model import Accounting, Problem, Report, WhatIf

_ABSENT = -1
_NAMED = 5
"""Pictures named where some are left out: as many as a line holds."""
_UNITS = {"us": "us", "share": "ratio", "bytes": "bytes", "per_s": "per_s"}


def faults(report: Report) -> Iterator[str]:
    """Why its summary or its findings cannot be; nothing where they can."""
    yield from filter(None, _of_summary(report))
    yield from filter(None, _of_findings(report))
    if report.accounting is not None:
        yield from filter(None, _of_account(report.accounting))
    if report.whatif is not None:
        yield from filter(None, _of_repairs(report.whatif, {finding.id for finding in report.findings}))


def without_impossible(report: Report) -> Report:
    """The report without facts and pictures that no measurement can give; each kind of them is told."""
    kinds = catalogue()
    odd = [(fact, impossible(fact, kinds[fact.name])) for fact in report.facts if fact.name in kinds]
    gone = {id(fact): why for fact, why in odd if why}
    pictures = {name: why for name, series in report.charts.items() if (why := _of_picture(name, series))}
    if not gone and not pictures:
        return report
    told = []
    if gone:
        first = next(iter(gone.values()))
        told.append(f"{len(gone)} facts of this saved report cannot be and were left out: {first}")
    if pictures:
        named = ", ".join(sorted(pictures)[:_NAMED])
        told.append(f"pictures of this saved report show what cannot be and were left out: {named}")
    return replace(
        report,
        facts=tuple(fact for fact in report.facts if id(fact) not in gone),
        charts={name: series for name, series in report.charts.items() if name not in pictures},
        problems=(*report.problems, *(Problem(report.profile.path, text) for text in told)),
    )


def _of_summary(report: Report) -> Iterator[str]:
    summary = report.summary
    yield beyond("step.time_us", "us", summary.step_time_us)
    yield beyond("recording_us", "us", summary.recording_us)
    for part, share in (*summary.breakdown.items(), *summary.host_breakdown.items()):
        yield beyond(f"step.{part}_share", "ratio", share)


def _of_findings(report: Report) -> Iterator[str]:
    kinds = catalogue()
    for finding in report.findings:
        for lost in filter(None, (finding.saving, finding.at_stake)):
            called = f"the saving of {finding.id}"
            yield from (beyond("saving.us", "us", us, called) for us in (lost.us, lost.lost_us, *(lost.range_us or ())))
            shares = (lost.share_of_step, lost.share_of_recording)
            yield from (beyond("saving.step_share", "ratio", share, called) for share in shares)
        for item in finding.evidence:
            if item.fact in kinds:
                called = f"{item.fact} of {finding.id}"
                yield beyond(item.fact, kinds[item.fact].unit, item.value, called)


def _of_account(told: Accounting) -> Iterator[str]:
    parts = [told.useful_us, told.unexplained_us, *told.avoidable_us.values(), *told.unavoidable_us.values()]
    for us in (told.step_us, *parts, *told.unexplained_parts_us.values()):
        yield beyond("accounting.us", "us", us, "a part of the step")
    if abs(sum(parts) - told.step_us) > rounding() * told.step_us:
        yield "the account of the step would not sum to it, which cannot be"
    if use := told.use:
        for name, rate in (("use.flop_per_s", use.flop_per_s), ("use.peak_flop_per_s", use.peak_flop_per_s)):
            yield beyond(name, "flop_per_s", rate)
        for name, share in (("use.counted_share", use.counted_share), ("use.flops_share", use.model_flops_share)):
            yield beyond(name, "ratio", share)
        yield beyond("use.flop", "flop", use.flop)
        yield from (beyond("use.best_step_us", "us", us) for us in use.best_step_us or ())


def _of_repairs(told: WhatIf, findings: set[str]) -> Iterator[str]:
    choices = ["", *(",".join(told.causes[:count]) for count in range(1, len(told.causes) + 1))]
    if not findings.issuperset(told.causes) or not told.step_time_us.keys() >= set(choices):
        yield "repairs would be of causes that were not found, which cannot be"
        return
    whole = told.step_time_us[""]
    for us in told.step_time_us.values():
        yield beyond("whatif.us", "us", us, "the step without its causes")
        if us > whole * (1 + rounding()):
            yield "the step without a cause would be longer than with it, which cannot be"


def _of_picture(name: str, series: Any) -> str:
    """Why no measurement gives this picture; "" where it can be. Every number of a picture is an amount, or -1 where
    nothing was measured."""
    if isinstance(series, Mapping):
        found = (_of_picture(str(key), value) for key, value in series.items())
        return next(filter(None, found), "")
    if isinstance(series, list):
        return next(filter(None, (_of_picture(name, value) for value in series)), "")
    if series == _ABSENT:
        return ""
    unit = next((unit for ending, unit in _UNITS.items() if name == ending or name.endswith(f"_{ending}")), "count")
    return beyond(f"picture.{name}", unit, series)
