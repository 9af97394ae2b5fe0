"""What is wrong with a mutant's run, compared with that of its original."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Set
from typing import Any

from benchmarks.mutants.base import LESS, MEANING, OTHER, SAME, Mutation
from benchmarks.mutants.explained import explain, is_believable
from benchmarks.mutants.profiles import ARCHIVES
from benchmarks.mutants.runs import SEVERE, Outcome

SLOWEST_S = 30.0
LARGEST_BYTES = 1_500_000_000
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning)\b")
_CLOSE = 1e-6

_ABSENT_RANK = ("folder.rank_missing", "folder.rank_empty", "file.missing")
_GONE = ("file.missing", "race.vanish", "folder.rank_missing", "folder.rank_empty")
"""Mutations after which there is nothing that a problem could name: the report has to say what evidence it lacks."""
_SHORTER = ("bytes.cut_lines", "csv.delete_rows", "db.delete_rows")
"""Mutations that leave a believable file of a shorter measurement: what it says then is its own evidence."""
_CUT = (
    "bytes.cut", "bytes.cut_character", "bytes.cut_utf16", "bytes.zero_tail", "bytes.hole", "race.truncate",
    "race.swap",
)  # fmt: skip
"""The same, but seen: where a problem names the file, its verdicts rest on what the report says is left of it."""
_ORDERED = ("ascend_cluster_analyse",)
"""Files whose rows have no names: their order is their meaning."""
_FOLLOWS = ("waiting-on-slow-rank",)
"""Verdicts that an absent rank changes rightly: those left wait for somebody who is not there to be blamed."""

HARD = (
    "crash", "hang", "memory", "status", "report", "internal", "rule", "accusation", "confident", "changed",
    "healthier", "unexplained",
)  # fmt: skip
"""Kinds of flaw that fail a run; the others are counted and looked at."""
SOFT = ("shorter", "silent")


def flaws(
    mutation: Mutation, path: str, mutant: Outcome, intact: Outcome, true: Set[tuple[str, str]] = frozenset()
) -> Iterator[tuple[str, str]]:
    """(kind, text) of everything that must not be. `path` is the mutated file's place in the profile, "" for a folder;
    `true` are (verdict, subject) that the original deserves, whether it got them or not."""
    folder, _, file = path.rpartition("/")
    folder = folder.partition("/")[0]
    if mutant.exit is None:
        yield ("hang", "killed after the time limit") if mutant.signal == 9 else ("crash", f"signal {mutant.signal}")
        return
    if mutant.seconds > SLOWEST_S:
        yield "hang", f"{mutant.seconds:.0f} s"
    if mutant.peak_bytes > LARGEST_BYTES:
        yield "memory", f"{mutant.peak_bytes / 1e6:.0f} MB"
    if mutant.exit == 4 or "Traceback" in mutant.stderr:
        yield "crash", mutant.stderr.strip()[:300]
        return
    if mutant.exit in (2, 3) and file.endswith(ARCHIVES) and file in mutant.stderr:
        return  # an archive that is none, or cannot be unpacked, is named; there is nothing to report on
    if mutant.exit not in (0, 3):
        yield "status", f"{mutant.exit}: {mutant.stderr.strip()[:200]}"
        return
    if not mutant.readable:
        yield "report", f"no strict JSON (exit {mutant.exit}) {mutant.stderr.strip()[:200]}"
    known = {text for _, text in intact.problems}
    for place, problem in mutant.problems:
        if _EXCEPTION.search(problem) and problem not in known and not mutation.name.startswith("race."):
            yield "internal", f"{place}: {problem[:200]}"
    for error in sorted(set(mutant.errors) - set(intact.errors)):
        yield "rule", error[:200]
    yield from _verdicts(mutation, file, mutant, intact, true)
    yield from _evidence(mutation, file, folder, mutant, intact)


def accusations(outcome: Outcome) -> set[tuple[str, str]]:
    """(verdict, subject) of the findings that blame the training, not the collection."""
    return {
        (verdict, subject)
        for _, verdict, subject, severity, direction in outcome.findings
        if severity in SEVERE and direction != "evidence"
    }


def blamed(outcome: Outcome) -> set[tuple[str, str]]:
    """Those of them that a user is told to repair: what follows from a cause that is told as well is not."""
    return accusations(outcome) - outcome.symptoms


def _is_told(file: str, mutant: Outcome, intact: Outcome) -> bool:
    """Whether a problem that the intact profile does not have names the file."""
    return any(file in place or file in text for place, text in set(mutant.problems) - set(intact.problems))


def _is_left_out(folder: str, mutant: Outcome, intact: Outcome) -> bool:
    """Whether a new problem names the folder of the rank itself: as one that is left out."""
    new = set(mutant.problems) - set(intact.problems)
    return bool(folder) and any(place == folder or text.endswith(folder) for place, text in new)


def _verdicts(
    mutation: Mutation, file: str, mutant: Outcome, intact: Outcome, true: Set[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    if mutation.effect == OTHER:
        return
    if mutation.effect == MEANING:
        if not is_believable(mutation.name, mutant.done or ""):
            yield from _certainties(mutant, intact, true)
        return
    for verdict, subject in sorted(blamed(mutant) - accusations(intact) - true):
        if mutation.name in _ABSENT_RANK and verdict in _FOLLOWS:
            continue
        if verdict == "operator-hotspot" and subject.startswith("operator hcom_"):
            continue  # a collective that waits: its own text sends the reader to whom it waits for
        if verdict in _FOLLOWS and any(verdict == told for told, _ in accusations(intact)):
            continue  # somebody is waited for in both; which collective shows it most rests on what is left
        if subject.startswith("pipeline_op") and (verdict, _numbered(subject)) in {
            (told, _numbered(of)) for told, of in accusations(intact)
        }:
            continue  # the same operation, whose type is lost or another text: only its number is left
        if subject == "run run" and any(verdict == told for told, _ in accusations(intact)):
            continue  # the same verdict, less exactly placed
        shorter = mutation.name in _SHORTER or (mutation.name in _CUT and _is_told(file, mutant, intact))
        yield "shorter" if shorter else "accusation", f"{verdict} of {subject}"
    lost = accusations(intact) - accusations(mutant)
    if mutation.effect == SAME:
        for verdict, subject in () if _reordered(mutation, file) else sorted(lost):
            yield "changed", f"lost {verdict} of {subject}"
    elif lost and mutant.direction == "healthy":
        yield "healthier", f"healthy without {sorted(lost)[0]}"


def _numbered(operation: str) -> str:
    """A data operation without its type."""
    return re.sub(r" \S*(?=\(\d+\)$)", " ", operation)


def _reordered(mutation: Mutation, file: str) -> bool:
    return mutation.name == "csv.shuffle_rows" and file.rpartition("/")[2].startswith(_ORDERED)


def _certainties(mutant: Outcome, intact: Outcome, true: Set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What numbers that cannot be true lead to must not be certain."""
    new = blamed(mutant) - accusations(intact) - true
    for verdict, subject in sorted(new & mutant.confident):
        if subject == "run run" and any(verdict == told for told, _ in accusations(intact)):
            continue  # the same verdict, less exactly placed
        yield "confident", f"{verdict} of {subject}"
    if mutant.direction == "healthy" and intact.direction != "healthy":
        yield "healthier", "healthy although its numbers cannot be true"


def _evidence(
    mutation: Mutation, file: str, folder: str, mutant: Outcome, intact: Outcome
) -> Iterator[tuple[str, str]]:
    different = sorted(
        name
        for name in mutant.facts.keys() | intact.facts.keys()
        if not _equal(mutant.facts.get(name), intact.facts.get(name)) and not name.startswith("collection.")
    )
    if not different:
        return
    first = different[0]
    shown = f"{len(different)} facts differ, first {first}: {intact.facts.get(first)} → {mutant.facts.get(first)}"
    if mutation.effect == SAME:
        if not _reordered(mutation, file):
            yield "changed", shown
        return
    if mutation.effect == MEANING:
        told = not set(mutant.problems) <= set(intact.problems)
    elif mutation.effect == LESS:
        told = _is_told(file, mutant, intact) or _is_left_out(folder, mutant, intact)
        if mutation.name in _GONE:
            told = told or mutant.problems != intact.problems or mutant.missing != intact.missing
        if file.endswith(ARCHIVES):  # what it holds is told by its own name, and nothing in it ends with a status
            told = told or mutant.problems != intact.problems or mutant.exit != intact.exit
    else:
        return
    if not told:
        moved = accusations(mutant) != accusations(intact)
        reason = explain(mutation.name, file, mutant.done or "", verdicts_moved=moved)
        yield ("silent", f"{shown} ({reason})") if reason else ("unexplained", shown)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return math.isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE) if numbers else a == b
