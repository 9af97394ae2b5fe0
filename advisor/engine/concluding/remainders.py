"""What a symptom loses beyond what its causes lose: a cause accounts for no more lost time than it loses itself.

Like is compared with like: a symptom of the whole run states a part of the typical step, and so does what removing a
cause gives. What one rank or one stage waits is time on another clock, and is not compared. The others wait for late
ranks in collectives, these do not wait for themselves: exposed communication, a mean over all ranks, has a part of it.

A cause that all ranks have is no symptom of what some ranks or links do worse, where its rule knows that it stays when
these do no worse than the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from advisor.knowledge.savings import materiality, unexplained_part
from advisor.knowledge.verdicts import only_waits
from advisor.knowledge.words import both
from advisor.model import Direction, Finding, Saving, Severity


class Remainder(Struct, frozen=True):
    """Lost time that the causes of a symptom do not account for."""

    lost: Saving
    mostly: bool
    """It is more than what they account for."""


def remainder(symptom: Finding, causes: Sequence[Finding], ranks: int = 0) -> Remainder | None:
    """What these causes leave of the symptom's lost time, a mean over so many `ranks`; None where they account for all
    of it that matters, or where nobody knows what the symptom or one of the causes loses. None of the causes explains
    another of them."""
    lost = symptom.at_stake
    told = [saving for cause in causes if (saving := _lost(cause, symptom, ranks)) is not None]
    if symptom.subject.kind != "run" or lost is None or lost.us <= 0 or not told or len(told) < len(causes):
        return None
    whole, shares = lost.share, [saving.share for saving in told if saving.share is not None]
    if whole and len(shares) == len(told):  # savings of the data pipeline are of its own step
        part = 1.0 - sum(shares) / whole
    else:
        part = 1.0 - sum(saving.us for saving in told) / lost.us
    if part <= unexplained_part() or (whole is not None and part * whole < materiality()[Severity.MEDIUM]):
        return None
    return Remainder(replace(_part_of(lost, part), basis=both("remainder.basis")), part > 1.0 - part)


_OF_SOME = ("rank", "host", "link")


def stays_beside(cause: Finding, other: Finding) -> bool:
    """Whether the other finding, a cause as well, is worth telling by itself once this one is repaired."""
    told = other.saving
    if told is None or not told.stays_us or not told.us or not _is_of_some(cause):
        return False
    return told.share is not None and told.share * told.stays_us / told.us >= materiality()[Severity.MEDIUM]


def left_beside(finding: Finding, repaired: Sequence[Finding]) -> Finding:
    """The finding with what it gives where these are repaired as well."""
    told = finding.saving
    if told is None or told.stays_us is None or not any(_is_of_some(each) for each in repaired):
        return finding
    return replace(finding, saving=replace(told, us_per_step=min(told.us, told.stays_us)))


def _is_of_some(cause: Finding) -> bool:
    """Whether it is what some ranks or links alone do worse, and a replay puts that right."""
    return cause.saving is not None and bool(cause.saving.removes) and cause.subject.kind in _OF_SOME


def _lost(cause: Finding, symptom: Finding, ranks: int) -> Saving | None:
    """What the cause loses: no less than its remedy gives back. Unknown of uneven stages: their work is moved, not
    removed, so the others wait for far more than the step gains. Of a cause for which the device waits, in idle time
    and in collectives, idle time shows the one part; of late ranks, those of so many that wait for them show it."""
    told = cause.saving or cause.at_stake
    if told is None or told.removes == "stages":
        return None
    if only_waits(cause.verdict) and symptom.direction is Direction.SCHEDULING and told.us:
        return _part_of(told, told.idle_us / told.us)
    if told.loses_us != told.us:
        share = told.share * told.loses_us / told.us if told.share is not None and told.us else None
        told = replace(
            told, us_per_step=told.loses_us, share_of_step=share, us_of_recording=None, share_of_recording=None
        )
    if ranks and symptom.direction is Direction.COMMUNICATION and _is_of_some(cause) and cause.subject.kind != "link":
        return _part_of(told, max(1 - len(cause.subject.ranks) / ranks, 0.0))
    return told


def _part_of(saving: Saving, part: float) -> Saving:
    def scaled(value: float | None) -> float | None:
        return None if value is None else value * part

    return replace(
        saving, us_per_step=scaled(saving.us_per_step), share_of_step=scaled(saving.share_of_step),
        us_of_recording=scaled(saving.us_of_recording), share_of_recording=scaled(saving.share_of_recording),
    )  # fmt: skip
