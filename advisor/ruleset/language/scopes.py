"""Which subject a fact of a rule stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache

from advisor.basics.suggest import suggest
from advisor.facts.base import FactKind
from advisor.model import SUBJECT_KINDS
from advisor.ruleset.language.expression import ExpressionError, FactRef

SINGLE = ("run", "collection")
"""Kinds with exactly one subject."""

IDENTITY = {
    "subject.id": FactKind("subject.id", "text", SUBJECT_KINDS, "the subject's name"),
    "subject.kind": FactKind("subject.kind", "text", SUBJECT_KINDS, "what the subject is"),
    "subject.ranks": FactKind("subject.ranks", "list", SUBJECT_KINDS, "global ranks the subject stands for"),
}
"""What every subject knows about itself without being measured."""


def fact_kind(name: str, catalogue: Mapping[str, FactKind]) -> FactKind:
    """The catalogue's line of this fact. Raises ExpressionError with the nearest names where there is none."""
    found = IDENTITY.get(name) or catalogue.get(name)
    if found is None:
        near = _nearest(name, (*catalogue, *IDENTITY))
        hint = f"did you mean {' or '.join(near)}?" if near else "`advisor facts list` names all facts"
        raise ExpressionError(f"there is no fact {name!r}", hint=hint)
    return found


@lru_cache(1024)
def _nearest(name: str, known: tuple[str, ...]) -> list[str]:
    """Kept, because what is missing from a catalogue is missing in every rule that names it."""
    return suggest(name, known) or _with_its_words(name, known) or get_close_matches(name, known, 3, 0.6)


def place(ref: FactRef, kind: str, catalogue: Mapping[str, FactKind]) -> str:
    """Where the fact is looked up for a subject of this kind: "self", "run", "collection", or
    "holder:KIND", the subject of that kind which holds the same ranks.

    Raises ExpressionError where the fact does not exist there.
    """
    scopes = fact_kind(ref.fact, catalogue).scopes
    if ref.alias:
        if ref.alias not in SUBJECT_KINDS:
            near = suggest(ref.alias, SUBJECT_KINDS)
            hint = f"did you mean {near[0]}?" if near else "use a kind of subject"
            raise ExpressionError(f"{ref.alias!r} in {ref.alias}:{ref.fact} is no kind of subject", hint=hint)
        if ref.alias not in scopes:
            raise _misplaced(ref, scopes, f"not of a {ref.alias}")
        if ref.alias == kind:
            return "self"
        return ref.alias if ref.alias in SINGLE else f"holder:{ref.alias}"
    if kind in scopes:
        return "self"
    for single in SINGLE:
        if single in scopes:
            return single
    raise _misplaced(ref, scopes, f"the rule is for {kind}")


def _misplaced(ref: FactRef, scopes: Sequence[str], why: str) -> ExpressionError:
    kinds = ", ".join(scopes)
    return ExpressionError(
        f"{ref.fact} is a fact of {kinds}; {why}",
        hint=f"compare peers (median, highest, count, …), write {scopes[0]}:{ref.fact} for the {scopes[0]} with the "
        "same rank",
    )


def peer_kind(refs: Sequence[FactRef], kind: str, catalogue: Mapping[str, FactKind]) -> str:
    """The kind of subject over which a peer function runs: the prefix of its facts, else the rule's own kind, else
    the only kind beside the run at which its facts exist. Raises ExpressionError where that is ambiguous."""
    named = {ref.alias for ref in refs if ref.alias and ref.alias not in SINGLE}
    unknown = named - set(SUBJECT_KINDS)
    if unknown or len(named) > 1:
        raise ExpressionError("a peer function looks at one kind of subject", hint="name it: median(rank:step.time_us)")
    candidates: set[str] | None = set(named) or None
    for ref in refs:
        scopes = set(fact_kind(ref.fact, catalogue).scopes)
        peers = scopes - set(SINGLE)
        if ref.alias in SINGLE or not peers:
            continue
        candidates = peers if candidates is None else candidates & peers
    if candidates and kind in candidates:
        return kind
    if candidates and len(candidates) == 1:
        return next(iter(candidates))
    if candidates:
        raise ExpressionError(
            f"peers of which kind: {' or '.join(sorted(candidates))}?",
            hint=f"name it: {sorted(candidates)[0]}:{refs[0].fact}",
        )
    raise ExpressionError("a peer function needs a fact of ranks, stages, …; this is one of the whole run")


def _with_its_words(name: str, known: Sequence[str]) -> list[str]:
    """The shortest fact that has all words of this name: step.exposed_share → step.exposed_communication_share."""
    words = set(re.split(r"[._]", name))
    return sorted(
        (each for each in known if words <= set(re.split(r"[._]", each))), key=lambda each: (len(each), each)
    )[:1]
