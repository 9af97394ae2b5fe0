"""Baselines: files in a folder, no server. A git branch, an artifact or a shared disk will do.

    FOLDER/NAME/<time>-<kind>-<id>.json      one file per run or event, written once and never changed

Nothing is ever edited, so that any number of pipelines can add at the same time and a killed one leaves nothing half
done: a file appears under its name when it is whole. What the baseline is follows from reading all of them in order:
`run` is a run, `freeze` and `thaw` close and open it, `promote` starts a new level of the kinds of run that it brings,
before which no run of these kinds counts.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from advisor.basics.errors import AdvisorError, NoVerdict, UsageError
from advisor.basics.files import write_atomically
from advisor.gate.history.histories import Acceptance, History, Kinds, distinct, find_history, nearest
from advisor.gate.history.records import read_document, run_from_json, run_to_json, sealed
from advisor.gate.sample import Difference, Sample
from advisor.model import Problem

SCHEMA_VERSION = "1.1"
MAIN = "main"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EVENTS = "[0-9]*.json"


@dataclass(frozen=True)
class Reference:
    """Where a baseline lies: `FOLDER` or `FOLDER#NAME`."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        return self.folder / self.name

    def __str__(self) -> str:
        return f"{self.folder.as_posix()}#{self.name}"


@dataclass(frozen=True)
class Baseline:
    """What the files of one name say: a history for each kind of run, in the order in which they began."""

    reference: Reference
    histories: tuple[History, ...] = ()
    frozen: str | None = None
    """Why it takes no more runs; None where it does."""
    problems: tuple[Problem, ...] = ()
    """Files that could not be read."""
    copies: int = 0
    """Files that hold a run that another one holds already."""

    @property
    def runs(self) -> tuple[Sample, ...]:
        """Runs that count now, of all kinds."""
        return tuple(run for history in self.histories for run in history.runs)

    @property
    def earlier(self) -> tuple[Sample, ...]:
        """Runs of levels that a promotion has replaced, of all kinds."""
        return tuple(run for history in self.histories for run in history.earlier)


@dataclass(frozen=True)
class Added:
    """What became of a run that was to be added. `path` is None where it is there already, under `known`."""

    sample: Sample
    path: Path | None
    known: str = ""
    number: int = 0
    """How many runs its history has now."""
    apart: tuple[Difference, ...] = ()
    """Where it opened a history of its own: what tells it from the nearest one."""


def parse_reference(text: str) -> Reference:
    """`FOLDER#NAME`; the name is `main` where none is given. Raises UsageError."""
    folder, sign, name = text.rpartition("#")
    if not sign or "/" in name or "\\" in name:
        folder, name = text, MAIN
    if not folder or not _NAME.fullmatch(name):
        raise UsageError(
            f"{text!r} names no baseline", hint="FOLDER or FOLDER#NAME; names have letters, digits, '.', '_' and '-'"
        )
    if Path(folder).exists() and not Path(folder).is_dir():
        raise UsageError("is no folder", place=folder, hint="a baseline is a folder; `advisor baseline add` makes it")
    return Reference(Path(folder), name)


def names_in(folder: Path) -> list[str]:
    """Names of the baselines in a folder."""
    if not folder.is_dir():
        return []
    return sorted(
        each.name
        for each in folder.iterdir()
        if each.is_dir() and _NAME.fullmatch(each.name) and next(each.glob(_EVENTS), None) is not None
    )


def baselines_below(root: Path) -> list[Baseline]:
    """Every baseline in the folder and below it that has runs; hidden folders and links are passed over."""
    found = []
    for folder, folders, _ in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names_in(Path(folder)):
            if Path(folder, name).is_symlink():
                continue
            loaded = load_baseline(Reference(Path(folder), name))
            found += [loaded] if loaded.histories else []
    return found


def require_baseline(reference: Reference) -> None:
    """Raises UsageError where there is no such folder or no such name in it: a misspelt name is no empty baseline."""
    if not reference.folder.is_dir():
        raise UsageError(
            "no such baseline: the folder does not exist", place=str(reference),
            hint="`advisor baseline add PROFILE --baseline REF` makes one, and so does `advisor gate --record`",
        )  # fmt: skip
    if not reference.path.is_dir():
        names = names_in(reference.folder)
        there = f"there are: {', '.join(names)}" if names else "the folder holds no baseline"
        raise UsageError(
            f"no such baseline; {there}", place=str(reference),
            hint="`advisor baseline add PROFILE --baseline REF` makes one, and so does `advisor gate --record`",
        )  # fmt: skip


def load_baseline(reference: Reference, ignored: Sequence[str] = ()) -> Baseline:
    """Reads a baseline; an absent one is empty. Files that cannot be read are noted, not dropped silently. Fields of
    the key that `ignored` names do not keep runs apart."""
    events = _read_all(reference.path)
    histories, copies = _histories(events, ignored)
    return Baseline(reference, tuple(histories), _frozen(events), tuple(events.problems), copies)


def add_run(reference: Reference, sample: Sample) -> Path:
    """Writes a run's file, whatever is there already. Raises UsageError where the baseline is frozen."""
    refuse_frozen(reference)
    return _write(reference, "run", run_to_json(sample))


def add_runs(reference: Reference, samples: Sequence[Sample], ignored: Sequence[str] = ()) -> list[Added]:
    """Adds runs, each once: a run that is there already is not added again. One that cannot be compared with any run
    there opens a history of its own. Raises UsageError where the baseline is frozen."""
    refuse_frozen(reference)
    histories = list(load_baseline(reference, ignored).histories)
    added = []
    for sample in samples:
        history = find_history(sample, histories, ignored)
        same = next((run for run in (history.runs if history else ()) if distinct([sample], [run])[1]), None)
        if history is not None and same is not None:
            added.append(Added(sample, None, same.id, len(history.runs)))
            continue
        path = _write(reference, "run", run_to_json(sample))
        grown = History((sample,)) if history is None else replace(history, runs=(*history.runs, sample))
        others = () if history else tuple(nearest(sample, histories, ignored))
        histories = [grown if each is history else each for each in histories] if history else [*histories, grown]
        added.append(Added(sample, path, "", len(grown.runs), others))
    return added


def freeze(reference: Reference, reason: str, *, thaw: bool = False) -> Path:
    """Closes a baseline to further runs, or opens it again. Raises UsageError where there is none, NoVerdict where it
    has no runs."""
    require_baseline(reference)
    if not load_baseline(reference).runs:
        raise NoVerdict("has no runs", place=str(reference), hint="`advisor baseline add PROFILE --baseline REF` first")
    return _write(reference, "thaw" if thaw else "freeze", {"reason": reason})


def promote(source: Reference, target: Reference, reason: str) -> int:
    """Makes the runs of `source` the new level of `target`: runs of the same kinds that were there stay on disk and
    count no more. Returns their number. The runs count only once all of them are there."""
    require_baseline(source)
    runs = load_baseline(source).runs
    if not runs:
        raise NoVerdict("has no runs to promote", place=str(source))
    refuse_frozen(target)
    promotion = uuid.uuid4().hex
    for sample in runs:
        _write(target, "run", {**run_to_json(sample), "promotion": promotion})
    _write(target, "promote", {"id": promotion, "reason": reason, "source": str(source), "runs": len(runs)})
    return len(runs)


def refuse_frozen(reference: Reference) -> None:
    """Raises UsageError where the baseline takes no more runs."""
    frozen = _frozen(_read_all(reference.path, "[0-9]*-[ft][rh]*.json"))
    if frozen is not None:
        raise UsageError(
            f"is frozen: {frozen or 'no reason given'}",
            place=str(reference),
            hint="`advisor baseline freeze --thaw REF` opens it; `promote` into another name keeps both",
        )


def _write(reference: Reference, kind: str, content: Mapping[str, Any]) -> Path:
    """Writes one event under a name nobody else has; names sort by time."""
    from advisor.exchange import tool_version

    now = datetime.now(timezone.utc)
    added = now.isoformat(timespec="microseconds")
    path = reference.path / f"{now:%Y%m%dT%H%M%S.%fZ}-{kind}-{uuid.uuid4().hex[:12]}.json"
    document = {
        "schema_version": SCHEMA_VERSION, "kind": kind, "added": added, "advisor": tool_version(), **content,
    }  # fmt: skip
    try:
        reference.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror or error}", place=str(reference.path)) from None
    write_atomically(path, sealed(document))
    return path


@dataclass
class _Events:
    """What the files of a baseline say, in the order in which they were written."""

    order: list[tuple[Sample, str] | Mapping[str, str]] = field(default_factory=list)
    """A run with the id of the promotion that brought it (or ""), or another event."""
    problems: list[Problem] = field(default_factory=list)

    def marks(self, *kinds: str) -> Iterator[Mapping[str, str]]:
        return (event for event in self.order if not isinstance(event, tuple) and event["kind"] in kinds)


def _frozen(events: _Events) -> str | None:
    closing = list(events.marks("freeze", "thaw"))
    return closing[-1]["reason"] if closing and closing[-1]["kind"] == "freeze" else None


def _read_all(folder: Path, pattern: str = _EVENTS) -> _Events:
    events = _Events()
    for path in sorted(folder.glob(pattern)) if folder.is_dir() else ():
        try:
            document = read_document(path)
            version = str(document["schema_version"])
            if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
                raise UsageError(f"is of schema version {version}; this advisor reads {SCHEMA_VERSION}")
            if document["kind"] == "run":
                events.order.append((run_from_json(document, path.stem), str(document.get("promotion", ""))))
            else:
                names = ("kind", "added", "reason", "id", "source")
                events.order.append({name: str(document.get(name, "")) for name in names})
        except AdvisorError as error:
            events.problems.append(Problem(path.name, error.message))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            events.problems.append(Problem(path.name, f"no run of a baseline: {type(error).__name__}: {error}"))
    return events


def _histories(events: _Events, ignored: Sequence[str]) -> tuple[list[History], int]:
    """A history for each kind of run, and the number of copies left out. A promotion replaces the level of the kinds
    that it brings; runs whose promotion never came (it was killed) count nowhere."""
    kinds = Kinds(tuple(ignored))
    levels: list[_Level] = []
    promoted: dict[str, list[Sample]] = {}
    for event in events.order:
        if isinstance(event, tuple):
            sample, promotion = event
            if promotion:
                promoted.setdefault(promotion, []).append(sample)
            else:
                _level(levels, kinds.place(sample)).runs.append(sample)
        elif event["kind"] == "promote":
            fresh: dict[int, list[Sample]] = {}
            for sample in promoted.pop(event["id"], ()):
                fresh.setdefault(kinds.place(sample), []).append(sample)
            for index, runs in fresh.items():
                _level(levels, index).replace(runs, event)
    copies, histories = 0, []
    for level in levels:
        runs, left_out = distinct(level.runs)
        copies += len(left_out)
        histories.append(History(tuple(runs), tuple(level.earlier), tuple(level.accepted)))
    return histories, copies


@dataclass
class _Level:
    runs: list[Sample] = field(default_factory=list)
    earlier: list[Sample] = field(default_factory=list)
    accepted: list[Acceptance] = field(default_factory=list)

    def replace(self, runs: list[Sample], event: Mapping[str, str]) -> None:
        self.earlier += distinct(self.runs)[0]
        self.accepted.append(Acceptance(event["added"], event["reason"], event["source"], len(self.earlier)))
        self.runs = runs


def _level(levels: list[_Level], index: int) -> _Level:
    if index == len(levels):
        levels.append(_Level())
    return levels[index]
