"""From many findings to few causes: which finding accounts for which, what role each has, in what order they stand.

A symptom under its cause is kept, without a saving of its own: what it costs is in the cause's, and a cause whose rule
states none has it from its symptoms. A cause of little weight cannot account for a symptom of much: it must itself be
of medium severity, or as severe as the symptom. And none accounts for more lost time than it loses: what is left of the
symptom then stands by itself (`remainders`), and so does a cause that would save clearly more than it. Whom only a
suspect would explain is a suspicion as well (`suspected`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from advisor.engine.concluding.gathered import Members, gathered_in_one, origin_of, with_others_owned
from advisor.engine.concluding.remainders import remainder, stays_beside
from advisor.engine.concluding.suspected import is_suspect, suspected
from advisor.knowledge.savings import unowned_part
from advisor.model import Confidence, Direction, Finding, Remedy, Role, Severity, Subject

_Item = TypeVar("_Item")
_Key = tuple[str | int, ...]
"""What findings are looked up by: a relation, a verdict, and what the relation compares."""

Explains = dict[str, tuple[tuple[str, str], ...]]
"""rule -> (verdict it explains, relation of subjects: same, any, overlapping or named)"""


def merge(
    findings: Sequence[Finding],
    general: Collection[str] = (),
    origins: Mapping[Subject, tuple[int, ...]] | None = None,
    together: Collection[str] = (),
    stages: Mapping[int, str] | None = None,
    owned: Collection[str] = (),
    disjoint: Collection[str] = (),
) -> list[Finding]:
    """One finding per verdict and subject, of `disjoint` rules one each: the surest stands, the others add evidence,
    remedies and references, and those of `owned` rules, whose time was measured under its owner, what they say and save
    as well. What a `general` rule says stands only where no other rule says more, and the surest not where another one
    that is no mere suspicion, and no less severe, loses clearly more: it is about a part of that.

    The same rule about the same kind and id on several ranks (one pipeline operation seen by eight processes) is one
    finding about all these ranks. So are findings about what is of one origin and can only be put right together:
    `origins` has the ranks that are late from one thing; uneven stages are always of one, and so is whatever a rule of
    `together` finds. `stages` tells which ranks lose time at once (`at_once`).
    """
    alike = origins or {}
    gathered = {
        (f.verdict, "rank", str(rank)): alike[f.subject]
        for f in findings if _removes(f) and f.subject in alike
        for rank in alike[f.subject]
    }  # fmt: skip
    leading: set[tuple[str, tuple[Any, ...]]] = set()
    """Rules that tell all ranks of a group in one finding: they know what the ranks have in common, their host say."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        key: tuple[Any, ...] = (finding.verdict, finding.subject.kind, finding.subject.id)
        if _removes(finding) == "stages":
            key = (finding.verdict, finding.subject.kind)
        elif _removes(finding) == "speed":  # a slow card is its own, whatever work it has in common with others
            key = (*key, "speed")
        elif _removes(finding) and finding.subject in alike:
            # those as late that break no rule of their own belong to it: repaired without them, nothing is won
            finding = replace(finding, subject=replace(finding.subject, ranks=alike[finding.subject]))
            key = (finding.verdict, "rank", finding.subject.ranks)
        elif key in gathered:  # another witness of the same, with no replay of its own
            whole = len(finding.subject.ranks) > 1 and finding.subject.ranks == gathered[key]
            key = (finding.verdict, "rank", gathered[key])
            leading |= {(finding.rule, key)} if whole else set()
        groups.setdefault(key, []).append(finding)
    for key, group in list(groups.items()):
        for finding in _apart(group, disjoint):
            group.remove(finding)
            groups.setdefault((*key, finding.rule), []).append(finding)
    groups = {key: group for key, group in groups.items() if group}
    merged = [
        with_others_owned(_merged(group, general, owned, {rule for rule, of in leading if of == key}), group, owned)
        for key, group in groups.items()
    ]
    return gathered_in_one(merged, together, stages)


def _apart(group: Sequence[Finding], disjoint: Collection[str]) -> list[Finding]:
    """Those of disjoint rules, each of which stands alone. Another rule beside them counts some of the same again: it
    belongs to the one that saves most."""
    own = [f for f in group if f.rule in disjoint]
    saving = [f for f in own if f.saving]
    most = max(saving, key=lambda f: f.weight_us, default=None) if len(own) < len(group) else None
    return [f for f in own if f is not most]


def _removes(finding: Finding) -> str:
    return finding.saving.removes if finding.saving is not None else ""


def _merged(
    group: list[Finding], general: Collection[str], owned: Collection[str], leading: Collection[str] = ()
) -> Finding:
    if len(group) == 1:
        return group[0]

    certain = [f for f in group if f.rule not in general and f.confidence is not Confidence.LOW]

    def place(f: Finding) -> tuple[Any, ...]:
        # what its own rule calls less severe loses that much at most, and not clearly
        most = max((o.weight_us for o in certain if o.severity.rank >= f.severity.rank), default=0.0)
        second = f.rule in general, f.rule not in leading, f.weight_us < unowned_part(weak=True) * most
        return (*second, -f.confidence.rank, -f.severity.rank, -f.weight_us, f.rule, f.subject)

    group = sorted(group, key=place)
    first = group[0]
    ranks = tuple(sorted({rank for f in group for rank in f.subject.ranks}))
    told = [f.saving for f in group if f.saving]
    # what is measured under its owner is no more severe for what others lose beside it
    alike = [
        f for f in group if f.confidence == first.confidence and (first.rule not in owned or f.rule not in general)
    ]
    # a replayed saving is known together with those of other findings, an estimate is not
    replayed = (s for s in told if s.removes and s.us >= unowned_part(weak=True) * first.weight_us)
    saving = next(replayed, told[0] if told else None)
    return replace(
        first,
        subject=replace(first.subject, ranks=ranks),
        severity=max((f.severity for f in alike), key=lambda s: s.rank),
        evidence=_unique(e for f in group for e in f.evidence),
        remedies=_by_id(r for f in group for r in f.remedies),
        statements=tuple(sorted({s for f in group for s in f.statements})),
        doubts=first.doubts,
        references=_unique(r for f in group for r in f.references),
        saving=saving,
        at_stake=None if saving else first.at_stake or next((f.at_stake for f in group if f.at_stake), None),
    )


def _unique(items: Iterable[_Item]) -> tuple[_Item, ...]:
    found: list[_Item] = []
    for item in items:
        if item not in found:
            found.append(item)
    return tuple(found)


def _by_id(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    first: dict[str, Remedy] = {}
    for remedy in remedies:
        first.setdefault(remedy.id, remedy)
    return tuple(first.values())


def _outweighs(cause: Finding, symptom: Finding) -> bool:
    return cause.severity.rank >= min(Severity.MEDIUM.rank, symptom.severity.rank)


def _stands_alone(cause: Finding, other: Finding, kind: str) -> bool:
    """Whether the other finding is a cause that loses, or shows lost, clearly more than this one, or that a replay says
    to gain on other ranks with this one still there: it is no symptom of it."""
    lost = other.saving or other.at_stake
    if kind != "cause" or cause.saving is None or lost is None:
        return False
    elsewhere = other.subject.ranks and not set(other.subject.ranks) & set(cause.subject.ranks)
    if elsewhere and cause.subject.ranks and _removes(cause) and _removes(other) and lost.loses_us > 0:
        return True
    return lost.loses_us * unowned_part(weak=True) > cause.saving.loses_us


class _Symptoms:
    """Findings by verdict, identity and rank: what `related` allows, without trying every pair."""

    def __init__(self, findings: Sequence[Finding], kinds: Mapping[str, str], types: Mapping[str, str]) -> None:
        self._by: dict[_Key, list[int]] = {}
        for place, finding in enumerate(findings):
            verdict, subject = finding.verdict, finding.subject
            keys: list[_Key] = [("any", verdict), ("same", verdict, subject.kind, subject.id)]
            if subject.kind == "operator" and subject.id in types and kinds.get(finding.rule) == "symptom":
                keys.append(("same", verdict, "operator_type", types[subject.id]))
            whole = subject.kind == "run" or not subject.ranks
            keys += (
                [("whole", verdict)] if whole else [("rank", verdict, rank) for rank in dict.fromkeys(subject.ranks)]
            )
            for key in keys:
                self._by.setdefault(key, []).append(place)

    def of(self, cause: Subject, verdict: str, relation: str) -> Sequence[int]:
        """Places, ascending, of the findings of this verdict that stand in the relation to the cause."""
        if relation == "same":  # told of several ranks together, it is about each of them
            names = {cause.id, *map(str, cause.ranks)} if cause.kind == "rank" else {cause.id}
            return sorted(place for name in names for place in self._by.get(("same", verdict, cause.kind, name), ()))
        if relation == "named":
            return sorted({place for rank in cause.ranks for place in self._by.get(("rank", verdict, rank), ())})
        if relation == "overlapping" and cause.kind != "run" and cause.ranks:
            places = set(self._by.get(("whole", verdict), ()))
            places.update(*(self._by.get(("rank", verdict, rank), ()) for rank in cause.ranks))
            return sorted(places)
        return self._by.get(("any", verdict), ())


def _reaches(causes: Sequence[Collection[int]], start: int, goal: int) -> bool:
    """Whether the goal is among the causes of `start`, their causes and so on."""
    if not causes[start]:
        return start == goal
    seen, pending = {start}, [start]
    while pending:
        place = pending.pop()
        if place == goal:
            return True
        fresh = [each for each in causes[place] if each not in seen]
        seen.update(fresh)
        pending += fresh
    return False


def assign_roles(
    findings: Sequence[Finding],
    explains: Explains,
    kinds: Mapping[str, str],
    types: Mapping[str, str] | None = None,
    heirs: Collection[str] = (),
    members: Members | None = None,
    apart: Collection[tuple[str, str]] = (),
    owned: Collection[str] = (),
    strangers: Collection[tuple[str, str]] = (),
    ranks: int = 0,
) -> list[Finding]:
    """Links causes with the symptoms they account for and gives every finding its role, in the report's order.

    `kinds` is each rule's own kind: cause, symptom or contributing. Two causes that would explain each other: the
    one with the larger saving explains, of equal ones that of more ranks: a host's links tell more than one card's.
    `types` is each operator's type: what is wrong with a type accounts for the same symptom of an operator that is of
    it. `heirs` are the rules that state no saving. Of a finding
    that is told of several subjects together, `members` has all of them: it accounts for the symptoms of each. `apart`
    has rules and the verdicts that they explain without losing any of the same time, `owned` those whose time was
    measured under its owner: no other cause explains it; `strangers` are rules of which the first does not explain the
    second, whatever its verdict. A symptom of the run is a mean over so many `ranks`, where that is known.
    """
    ordered = sorted(
        findings,
        key=lambda f: (
            kinds.get(f.rule) != "cause", -f.weight_us, -f.severity.rank, -len(f.subject.ranks), f.rule, f.subject,
        ),
    )  # fmt: skip
    symptoms = _Symptoms(ordered, kinds, types or {})
    causes: list[dict[int, None]] = [{} for _ in ordered]
    effects: list[list[int]] = [[] for _ in ordered]
    suspects: dict[int, dict[int, None]] = {}
    for i, cause in enumerate(ordered):
        suspect = is_suspect(cause)
        subjects = (members or {}).get(origin_of(cause), (cause.subject,))
        for verdict, relation in explains.get(cause.rule, ()):
            for j in sorted({place for each in subjects for place in symptoms.of(each, verdict, relation)}):
                if suspect and i != j:
                    suspects.setdefault(j, {})[i] = None
                fits = i != j and i not in causes[j] and ordered[j].rule not in owned and _outweighs(cause, ordered[j])
                fits = fits and (cause.rule, ordered[j].rule) not in strangers
                fits = fits and not _stands_alone(cause, ordered[j], kinds.get(ordered[j].rule, "cause"))
                fits = fits and not (kinds.get(ordered[j].rule) == "cause" and stays_beside(cause, ordered[j]))
                if fits and not _reaches(causes, i, j):
                    causes[j][i] = None
                    effects[i].append(j)
    _keep_at_home(ordered, causes, effects, kinds, members or {})
    partly = _keep_remainders(ordered, causes, effects, kinds, apart, ranks)
    for j, under in suspects.items():
        if not causes[j]:  # nobody is suspected of what accounts for it
            ordered[j] = suspected(ordered[j], [ordered[i] for i in under if not _reaches(causes, i, j)])
    roles = [_role(ordered[i], bool(causes[i]), kinds.get(ordered[i].rule, "cause")) for i in range(len(ordered))]
    roles = [Role.CONTRIBUTING if i in partly else role for i, role in enumerate(roles)]
    inherited = [
        _heir(ordered, effects, i) if roles[i] == Role.ROOT_CAUSE and finding.rule in heirs else finding
        for i, finding in enumerate(ordered)
    ]
    return _numbered(inherited, causes, effects, _without_trifles(inherited, roles))


def _keep_at_home(
    findings: Sequence[Finding],
    causes: Sequence[dict[int, None]],
    effects: Sequence[list[int]],
    kinds: Mapping[str, str],
    members: Members,
) -> None:
    """What ranks show that have a cause of their own, that cause explains: not what is wrong with other ranks or
    between them. What is about no ranks concerns all of them."""
    concerned = [
        {rank for each in members.get(origin_of(f), (f.subject,)) for rank in each.ranks} | set(f.subject.ranks)
        for f in findings
    ]
    for j, finding in enumerate(findings):
        ranks = set(finding.subject.ranks)
        if kinds.get(finding.rule) != "symptom" or not any(concerned[i] & ranks for i in causes[j]):
            continue
        for i in [i for i in causes[j] if concerned[i] and not concerned[i] & ranks]:
            del causes[j][i]
            effects[i].remove(j)


def _keep_remainders(
    findings: list[Finding],
    causes: Sequence[dict[int, None]],
    effects: Sequence[list[int]],
    kinds: Mapping[str, str],
    apart: Collection[tuple[str, str]],
    ranks: int,
) -> set[int]:
    """Leaves symptoms what their causes do not account for. Returns the places of those that are explained in part;
    what is explained by less than half is not explained."""
    partly = set()
    for i, finding in enumerate(findings):
        first = [findings[c] for c in causes[i] if not causes[i].keys() & causes[c].keys()]
        if kinds.get(finding.rule) != "symptom" or (left := remainder(finding, first, ranks)) is None:
            continue
        within = [cause for cause in first if (cause.rule, finding.verdict) not in apart]
        if within and (rest := remainder(finding, within, ranks)) is not None:
            findings[i] = replace(finding, at_stake=rest.lost)
        if not left.mostly:
            partly.add(i)
            continue
        for cause in causes[i]:
            effects[cause].remove(i)
        causes[i].clear()
    return partly


def _heir(findings: Sequence[Finding], effects: Sequence[Sequence[int]], cause: int) -> Finding:
    """The cause with the saving of what it explains, at any depth: a replayed one, else the largest."""
    below, pending = {cause}, [cause]
    while pending:
        fresh = [effect for effect in effects[pending.pop()] if effect not in below]
        below.update(fresh)
        pending += fresh
    told = [replace(f.at_stake, kind="upper_bound") if f.at_stake else f.saving
            for f in (findings[i] for i in sorted(below - {cause}))]  # fmt: skip
    best = max((saving for saving in told if saving), key=lambda s: (bool(s.removes), s.us), default=None)
    # the same ranks and links are not the cause's own: nothing tells what a replay would have to put right
    return findings[cause] if best is None else replace(findings[cause], saving=replace(best, removes=""))


def _role(finding: Finding, explained: bool, kind: str) -> Role:
    if explained:
        return Role.SYMPTOM
    if kind == "contributing" or finding.direction == Direction.EVIDENCE:
        return Role.CONTRIBUTING
    if kind == "symptom" and finding.severity == Severity.LOW:
        return Role.CONTRIBUTING
    return Role.ROOT_CAUSE


def _without_trifles(findings: Sequence[Finding], roles: Sequence[Role]) -> list[Role]:
    """Beside a root cause of weight, causes of low severity only contribute."""
    heavy = any(
        role == Role.ROOT_CAUSE and finding.severity.rank >= Severity.MEDIUM.rank
        for finding, role in zip(findings, roles, strict=True)
    )
    return [
        Role.CONTRIBUTING if heavy and role == Role.ROOT_CAUSE and finding.severity == Severity.LOW else role
        for finding, role in zip(findings, roles, strict=True)
    ]


_ROLE_ORDER = {Role.ROOT_CAUSE: 0, Role.CONTRIBUTING: 1, Role.SYMPTOM: 1}


def _numbered(
    findings: list[Finding], causes: Sequence[Iterable[int]], effects: Sequence[Iterable[int]], roles: list[Role]
) -> list[Finding]:
    findings = [replace(f, saving=None) if role == Role.SYMPTOM else f for f, role in zip(findings, roles, strict=True)]

    def place(i: int) -> tuple[Any, ...]:
        f = findings[i]
        gives, lost = (amount.us if amount is not None else 0.0 for amount in (f.saving, f.at_stake))
        return (_ROLE_ORDER[roles[i]], -gives, -lost, -f.severity.rank, -f.confidence.rank, f.rule, f.subject)

    order = sorted(range(len(findings)), key=place)
    number = {i: n for n, i in enumerate(order, 1)}

    def names(items: Iterable[int]) -> tuple[str, ...]:
        return tuple(f"F{n}" for n in sorted(number[i] for i in items))

    return [
        replace(findings[i], id=f"F{number[i]}", role=roles[i], because=names(causes[i]), explains=names(effects[i]))
        for i in order
    ]


def lower(confidence: Confidence, other: Confidence) -> Confidence:
    """The lesser of two confidences."""
    return min(confidence, other, key=lambda c: c.rank)
