"""What is of one origin is one finding with a list: one setting puts all types right that compute in float32."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.basics.units import rank_list, show
from advisor.facts.base import FactSet
from advisor.knowledge.words import both
from advisor.model import Evidence, Finding, Saving, Subject, Text

MOST_NAMED = 6
"""Subjects that the message names; the evidence has all."""


def stages_of(facts: FactSet) -> dict[int, str]:
    """rank -> the ranks that do the same work at the same time, by their word."""
    return {subject.ranks[0]: str(fact.value) for subject, fact in facts.of("rank.peer_group").items()}


def at_once(weighed: Iterable[tuple[Subject, float]], stages: Mapping[int, str]) -> float:
    """What these subjects lose in all, microseconds a step. Ranks of one stage lose it at the same time, and the most
    of them counts; stages wait for each other in turn. The calls of one type of operators are the same however many
    findings say what they lose: the most counts. What is of no rank, or of many in one figure, adds up."""
    rest, losses, calls = 0.0, dict[str, dict[int, float]](), dict[str, float]()
    for subject, us in weighed:
        if subject.kind == "operator_type":
            calls[subject.id] = max(calls.get(subject.id, 0.0), us)
            continue
        if subject.kind != "rank" or len(subject.ranks) != 1:
            rest += us
            continue
        (rank,) = subject.ranks
        ranks = losses.setdefault(stages.get(rank, ""), {})
        ranks[rank] = ranks.get(rank, 0.0) + us
    return rest + sum(calls.values()) + sum(max(ranks.values()) for ranks in losses.values())


def gathered_in_one(
    findings: Sequence[Finding], together: Collection[str], stages: Mapping[int, str] | None = None
) -> list[Finding]:
    """Findings of one of these rules as one, about the subject of most weight; the others in the order given."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for place, finding in enumerate(findings):
        key = origin_of(finding) if finding.rule in together else (str(place),)
        groups.setdefault(key, []).append(finding)
    return [group[0] if len(group) == 1 else _one(group, stages or {}) for group in groups.values()]


Origin = tuple[str, str, str]
"""Rule, verdict and kind of subject of findings that are told as one."""
Members = Mapping[Origin, Sequence[Subject]]
"""Origin -> all that its one finding is about."""


def origin_of(finding: Finding) -> Origin:
    """What a finding has in common with those that are told with it."""
    return finding.rule, finding.verdict, finding.subject.kind


def members_of(findings: Sequence[Finding], together: Collection[str]) -> Members:
    """The subjects of findings that are told as one."""
    found: dict[Origin, list[Subject]] = {}
    for finding in findings:
        if finding.rule in together:
            found.setdefault(origin_of(finding), []).append(finding.subject)
    return found


def _one(group: Sequence[Finding], stages: Mapping[int, str]) -> Finding:
    first, *others = sorted(group, key=lambda f: (-f.weight_us, -f.severity.rank, -_measured(f), f.subject))
    evidence: dict[Evidence, None] = {}
    for finding in (first, *others):
        evidence.update(dict.fromkeys(finding.evidence))
    ranks = tuple(sorted({rank for f in group for rank in f.subject.ranks}))
    return replace(
        first,
        subject=replace(first.subject, ranks=ranks) if first.subject.kind == "rank" else first.subject,
        message=both("summary.sentences", first=first.message, second=both("summary.also", subjects=_listed(others))),
        severity=max((f.severity for f in group), key=lambda s: s.rank),
        confidence=min((f.confidence for f in group), key=lambda c: c.rank),
        evidence=tuple(evidence),
        saving=_sum([(f.subject, f.saving) for f in (first, *others) if f.saving], stages),
        at_stake=_sum([(f.subject, f.at_stake) for f in (first, *others) if f.at_stake], stages),
        doubts=tuple(dict.fromkeys(doubt for f in (first, *others) for doubt in f.doubts)),
    )


def with_others_owned(first: Finding, group: Sequence[Finding], owned: Collection[str]) -> Finding:
    """The finding that stands for a group of one verdict and subject, where others of the group lose time of their own,
    measured under its owner: they are no witnesses of one loss, so each is told, and the gains add up."""
    others = [f for f in group if f.rule in owned and f.rule != first.rule] if first.rule in owned else []
    if not others:
        return first
    title, message, basis = first.title, first.message, first.saving.basis if first.saving else None
    for other in others:
        title = both("summary.apart", first=title, second=other.title)
        message = both("summary.sentences", first=message, second=other.message)
        if basis is not None and other.saving is not None:
            basis = both("summary.apart", first=basis, second=other.saving.basis)
    saving = _sum([(f.subject, f.saving) for f in (first, *others) if f.saving], {})
    saving = replace(saving, basis=basis) if saving is not None and basis is not None else saving
    return replace(first, title=title, message=message, saving=saving)


def _measured(finding: Finding) -> float:
    """What its first clause saw of its own subject: of findings of one rule that promise nothing, the largest tells
    most. What it saw of the run is the same for all of them."""
    own = (e.value for e in finding.evidence if e.subject == finding.subject)
    value = next(own, finding.evidence[0].value if finding.evidence else None)
    return float(value) if isinstance(value, int | float) else 0.0


def _listed(others: Sequence[Finding]) -> Text:
    """The names with what each weighs; of many the heaviest, and how many more there are; all of ranks."""
    ranks = tuple(rank for f in others for rank in f.subject.ranks)
    if all(f.subject.kind == "rank" for f in others) and ranks:
        return both("summary.ranks" if len(ranks) > 1 else "summary.rank", ranks=rank_list(tuple(sorted(ranks))))
    named = [
        both("summary.also_one", subject=f.subject.id, amount=show(f.weight_us, "us")) if f.weight_us
        else Text(f.subject.id, f.subject.id)
        for f in others[:MOST_NAMED]
    ]  # fmt: skip
    text = named[0]
    for name in named[1:]:
        text = both("summary.also_next", first=text, second=name)
    rest = len(others) - len(named)
    return both("summary.also_more", first=text, count=rest) if rest else text


def _sum(told: Sequence[tuple[Subject, Saving]], stages: Mapping[int, str]) -> Saving | None:
    """All of them together: what one setting gives, from the least of all of them to the most. An upper bound where any
    of them is one."""
    if not told:
        return None
    first = told[0][1]
    us = at_once([(subject, saving.us) for subject, saving in told], stages)
    kind = "upper_bound" if any(saving.kind == "upper_bound" for _, saving in told) else first.kind
    shares = [(subject, saving.share) for subject, saving in told if saving.share is not None]
    share = min(at_once(shares, stages), 1.0) if len(shares) == len(told) else None
    unsure = [(saving.us or 0.0, saving.error_share) for _, saving in told if saving.error_share is not None]
    whole = sum(each for each, _ in unsure)
    error = sum(each * part for each, part in unsure) / whole if whole > 0 else None
    limited = [saving.without_absent_us for _, saving in told if saving.without_absent_us is not None]
    without = min(sum(limited), us) if limited and us is not None else None
    uncovers = any(saving.shortened_us for _, saving in told)
    shorter = at_once([(subject, saving.shortened_us or saving.us) for subject, saving in told], stages)
    return replace(
        first, us_per_step=us, share_of_step=share, kind=kind, error_share=error, most_us=None,
        without_absent_us=without,
        shortened_us=shorter if uncovers else None,
    )  # fmt: skip
