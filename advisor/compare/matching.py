"""Findings of both sides: which remain, which are resolved, which are new, and of which nobody can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from advisor.compare.absent import OPERATORS, changed_hands, is_gone, is_none
from advisor.compare.facts import FactTable, key_of, number
from advisor.compare.identity import Identity, identities
from advisor.compare.model import Matched
from advisor.compare.sight import Sight
from advisor.knowledge.comparison import settings
from advisor.model import Check, Direction, Evidence, Finding, Outcome, Report, Value

_JUDGED = (Outcome.PASS, Outcome.FAIL)
_NAMED = 3
"""Facts named where several are missing."""
NOT_RUN = "the rule was not run"
"""Why a rule that the other side did not have said nothing."""
NOT_COMPARABLE = "the two cannot be compared"
"""Why nothing is said of a finding that the other side of another kind of run does not have."""

RENAMED = "other names take the time"
"""Why nothing is said of an operator whose time others have taken over that were not there before."""


def match_findings(before: Report, after: Report, seen: Sight, comparable: bool = True) -> Iterator[Matched]:
    """Every verdict about a subject, on whichever side it was reached: remaining, resolved, unjudged, new.

    Resolved means that a rule which reaches the verdict was judged afterwards, by the same evidence, and did not, and
    that what it measured is less. A rule without data has resolved nothing, unless the data is there and has none of
    what it asks for; and where the two sides are no runs of one training, nothing is. Nor is new what only another
    table shows, or what was as large before.
    """
    identity = identities((before.findings, after.findings))
    old, new = (_firsts(side, identity) for side in (before, after))
    then, now = ({check.rule: check for check in side.checked} for side in (before, after))
    for key, finding in old.items():
        if key in new:
            yield Matched(
                "remaining", finding.verdict, finding.subject, finding, new[key], _named(seen.unlike(finding))
            )
            continue
        reason = _reason(now.get(finding.rule), seen.new, seen.old, finding, seen, comparable)
        state, reason = _state("resolved", "unjudged", reason, finding, seen)
        yield Matched(state, finding.verdict, finding.subject, finding, None, reason)
    for key, finding in new.items():
        if key in old:
            continue
        reason = _reason(then.get(finding.rule), seen.old, seen.new, finding, seen, comparable)
        lost = comparable and not seen.lost.isdisjoint(seen.unlike(finding))
        state, reason = _state("new", "unjudged" if lost else "new", reason, finding, seen)
        yield Matched(state, finding.verdict, finding.subject, None, finding, reason)


def _reason(
    check: Check | None, here: FactTable, there: FactTable, finding: Finding, seen: Sight, comparable: bool
) -> str:
    """Why nobody can tell whether a finding of `there` is absent `here`; empty where one can."""
    if not comparable:
        return NOT_COMPARABLE
    return _unjudged(check, here, there, finding) or _named(seen.unlike(finding))


def _state(known: str, unknown: str, reason: str, finding: Finding, seen: Sight) -> tuple[str, str]:
    """What became of a finding of one side, and why it is not the plain answer."""
    if reason:
        return unknown, reason
    if changed_hands(finding.subject, seen.old, seen.new):
        return "unjudged", RENAMED
    own, other = (seen.old, seen.new) if known == "resolved" else (seen.new, seen.old)
    same = _named(as_large(finding, own, other))
    return ("remaining", same) if same else (known, "")


def as_large(finding: Finding, own: FactTable, other: FactTable) -> tuple[str, ...]:
    """The facts that the finding rests on, where none of them is clearly less on the other side, or another: what
    crosses a limit by a little, or is a smaller share of a longer step, is there all the same. Empty where something
    has changed, or where nothing tells."""
    if finding.direction == Direction.EVIDENCE or is_gone(finding.subject, own, other):
        return ()
    told: dict[str, None] = {}
    for evidence in finding.evidence:
        name, mine, theirs = _pair(evidence, own, other)
        if theirs is None:
            if any(kind == evidence.subject.kind for kind, _ in other.of(name)):
                return ()  # there is none of it any more
            continue
        if _is_less(name, mine, theirs):
            return ()
        told[name] = None
    return tuple(told)


def _pair(evidence: Evidence, own: FactTable, other: FactTable) -> tuple[str, Value, Value | None]:
    """The fact of an evidence and both values; of a share the time, where both sides know it."""
    key = key_of(evidence.subject)
    names = [evidence.fact]
    if evidence.fact.endswith("_share"):
        names = [evidence.fact.removesuffix("_share") + "_us", f"{evidence.subject.kind}.time_us", evidence.fact]
    for name in names:
        mine, theirs = own.of(name).get(key), other.of(name).get(key)
        if mine is not None and theirs is not None:
            return name, mine.value, theirs.value
    theirs = other.of(evidence.fact).get(key)
    return evidence.fact, evidence.value, None if theirs is None else theirs.value


def _is_less(name: str, mine: Value, theirs: Value) -> bool:
    """Whether a time fell, or anything else became another."""
    a, b = number(mine), number(theirs)
    if a is None or b is None:
        return mine != theirs
    change = (a - b) if name.endswith("_us") else abs(a - b)
    return change > settings().limits["fact_noise"] * max(abs(a), abs(b))


def _named(facts: tuple[str, ...]) -> str:
    return ", ".join(facts[:_NAMED])


def _mostly_gone(finding: Finding, here: FactTable) -> bool:
    """Whether all facts that a finding rests on were measured `here`, and one of them is hardly there any more."""
    pairs = [(number(found.value), here.of(found.fact).get(key_of(found.subject))) for found in finding.evidence]
    least = settings().limits["mostly_gone"]
    return all(fact is not None for _, fact in pairs) and any(
        value and fact is not None and (now := number(fact.value)) is not None and now < least * value
        for value, fact in pairs
    )


def _firsts(report: Report, identity: Callable[[Finding], Identity]) -> dict[Identity, Finding]:
    found: dict[Identity, Finding] = {}
    for finding in report.findings:
        found.setdefault(identity(finding), finding)
    return found


def _unjudged(check: Check | None, here: FactTable, there: FactTable, finding: Finding) -> str:
    """Why the rule said nothing; empty where it was judged. A rule that no longer applies has nothing to find, nor has
    one that asks for what there is none of, or for an operator that is gone. Nor has one left anything where all that
    the finding rests on was measured again, and most of it is gone, whatever else the rule asks for."""
    if check is None:
        return NOT_RUN
    if check.outcome in _JUDGED or check.outcome == Outcome.NOT_APPLICABLE:
        return ""
    if finding.subject.kind in OPERATORS and is_gone(finding.subject, there, here):
        return ""
    if check.missing and all(is_none(name, here, there) for name in check.missing):
        return ""
    if _mostly_gone(finding, here):
        return ""
    return _named(check.missing) or check.reason or check.outcome.value
