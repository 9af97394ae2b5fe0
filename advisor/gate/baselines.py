"""Baselines: files in a folder, no server. A git branch, an artifact or a shared disk will do.

    FOLDER/NAME/<time>-<kind>-<id>.json      one file per run or event, written once and never changed

Nothing is ever edited, so that any number of pipelines can add at the same time and a killed one leaves nothing half
done: a file appears under its name when it is whole. What the baseline is follows from reading all of them in order:
`run` is a run, `freeze` and `thaw` close and open it, `promote` starts a new level, before which nothing counts.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from advisor.basics.errors import AdvisorError, UsageError
from advisor.basics.files import write_atomically
from advisor.facts.base import FactSet
from advisor.gate.metrics import defaults
from advisor.gate.sample import Sample, gate_facts
from advisor.model import COLLECTION, RUN, Fact, Problem, Subject

SCHEMA_VERSION = "1.0"
MAIN = "main"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


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
    """What the files of one name say. `runs` are those that count now, oldest first; `earlier` those of levels that a
    promotion has replaced."""

    reference: Reference
    runs: tuple[Sample, ...] = ()
    earlier: tuple[Sample, ...] = ()
    frozen: str | None = None
    """Why it takes no more runs; None where it does."""
    level: str = ""
    """Why the present level was promoted; empty where it never was."""
    problems: tuple[Problem, ...] = ()


def _frozen(events: _Events) -> str | None:
    closing = [mark for mark in events.marks if mark["kind"] in ("freeze", "thaw")]
    return closing[-1]["reason"] if closing and closing[-1]["kind"] == "freeze" else None


@dataclass
class _Events:
    runs: list[tuple[str, Sample]] = field(default_factory=list)
    """(id of the promotion that brought it or "", run)"""
    marks: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def parse_reference(text: str) -> Reference:
    """`FOLDER#NAME`; the name is `main` where none is given. Raises UsageError."""
    folder, sign, name = text.rpartition("#")
    if not sign or "/" in name or "\\" in name:
        folder, name = text, MAIN
    if not folder or not _NAME.fullmatch(name):
        raise UsageError(
            f"{text!r} names no baseline", hint="FOLDER or FOLDER#NAME; names have letters, digits, '.', '_' and '-'"
        )
    if Path(folder).is_file():
        raise UsageError("is a file", place=folder, hint="a baseline is a folder; `advisor baseline add` makes it")
    return Reference(Path(folder), name)


def names_in(folder: Path) -> list[str]:
    """Names of the baselines in a folder."""
    if not folder.is_dir():
        return []
    return sorted(
        each.name
        for each in folder.iterdir()
        if each.is_dir() and _NAME.fullmatch(each.name) and next(each.glob("[0-9]*.json"), None) is not None
    )


def load_baseline(reference: Reference) -> Baseline:
    """Reads a baseline; an absent one is empty. Files that cannot be read are noted, not dropped silently."""
    events = _read_all(reference.path)
    promotions = [mark for mark in events.marks if mark["kind"] == "promote"]
    current = promotions[-1] if promotions else None
    runs: list[Sample] = []
    earlier: list[Sample] = []
    for promotion, sample in events.runs:
        if current is None:
            counts = not promotion
        else:
            counts = promotion == current["id"] or (not promotion and sample.added > current["added"])
        (runs if counts else earlier).append(sample)
    return Baseline(
        reference,
        tuple(runs),
        tuple(earlier),
        _frozen(events),
        current["reason"] if current else "",
        tuple(events.problems),
    )


def add_run(reference: Reference, sample: Sample) -> Path:
    """Adds a run; returns its file. Raises UsageError where the baseline is frozen."""
    _refuse_frozen(reference)
    return _write(reference, "run", _run_to_json(sample))


def freeze(reference: Reference, reason: str, *, thaw: bool = False) -> Path:
    """Closes a baseline to further runs, or opens it again. Raises UsageError where there is none."""
    baseline = load_baseline(reference)
    if not baseline.runs:
        raise UsageError(
            "has no runs", place=str(reference), hint="`advisor baseline add PROFILE --baseline REF` first"
        )
    return _write(reference, "thaw" if thaw else "freeze", {"reason": reason})


def promote(source: Reference, target: Reference, reason: str) -> int:
    """Makes the runs of `source` the new level of `target`: what was there stays on disk and counts no more. Returns
    their number. The runs count only once all of them are there."""
    runs = load_baseline(source).runs
    if not runs:
        raise UsageError("has no runs to promote", place=str(source))
    _refuse_frozen(target)
    promotion = uuid.uuid4().hex
    for sample in runs:
        _write(target, "run", {**_run_to_json(sample), "promotion": promotion})
    _write(target, "promote", {"id": promotion, "reason": reason, "source": str(source), "runs": len(runs)})
    return len(runs)


def _refuse_frozen(reference: Reference) -> None:
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
    write_atomically(path, json.dumps(document, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n")
    return path


def _read_all(folder: Path, pattern: str = "[0-9]*.json") -> _Events:
    events = _Events()
    for path in sorted(folder.glob(pattern)) if folder.is_dir() else ():
        try:
            document = msgspec.json.decode(path.read_bytes())
            version = str(document["schema_version"])
            if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
                raise UsageError(f"is of schema version {version}; this advisor reads {SCHEMA_VERSION}")
            if document["kind"] == "run":
                events.runs.append((str(document.get("promotion", "")), _run_from_json(document, path)))
            else:
                events.marks.append(
                    {name: str(document.get(name, "")) for name in ("kind", "added", "reason", "id", "source")}
                )
        except AdvisorError as error:
            events.problems.append(Problem(path.name, error.message))
        except (OSError, msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            events.problems.append(Problem(path.name, f"no run of a baseline: {type(error).__name__}: {error}"))
    return events


def _run_to_json(sample: Sample) -> dict[str, Any]:
    """Facts and verdicts: the report's own form, with facts as `name -> subject -> value`."""
    from advisor.exchange import report_to_json

    report = report_to_json(replace(sample.report(), facts=(), problems=()), facts="none")
    for finding in report["findings"]:
        for evidence in finding["evidence"]:
            evidence["source"] = None
    checked: dict[str, list[str]] = {}
    for check in sample.checked:
        checked.setdefault(check.outcome.value, []).append(check.rule)
    kept = ("profile", "summary", "findings")
    return {
        "key": dict(sample.key),
        "metadata": dict(sample.metadata),
        "digest": sample.digest,
        "report": {name: report[name] for name in kept},
        "checked": checked,
        "facts": _facts_to_json(sample.facts),
    }


def _facts_to_json(facts: FactSet) -> dict[str, dict[str, list[Any]]]:
    """All numbers of the run, and the largest of those that explain changes: {name: {kind/id: [value, samples]}}.
    Words (shapes, say) are kept for the subjects that are."""
    explaining = gate_facts()
    limit = int(defaults()["kept_subjects"])
    kept: dict[str, list[Fact]] = {}
    for name in sorted({fact.name for fact in facts}):
        numbers = [f for f in facts.of(name).values() if _is_number(f.value)]
        own = [f for f in numbers if f.subject.kind in ("run", "rank") and (f.subject == RUN or name in explaining)]
        others = [f for f in numbers if f.subject.kind not in ("run", "rank") and name in explaining]
        kept[name] = [*own, *sorted(others, key=lambda f: -abs(float(f.value)))[:limit]]  # type: ignore[arg-type]
    subjects = {fact.subject for chosen in kept.values() for fact in chosen} | {COLLECTION}
    for name in explaining:
        words = [f for f in facts.of(name).values() if not _is_number(f.value) and f.subject in subjects]
        kept.setdefault(name, []).extend(words)
    return {
        name: {f"{f.subject.kind}/{f.subject.id}": [f.value, f.samples] for f in chosen}
        for name, chosen in kept.items()
        if chosen
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _run_from_json(document: Mapping[str, Any], path: Path) -> Sample:
    from advisor.exchange import SCHEMA_VERSION as REPORT_VERSION
    from advisor.exchange import report_from_json

    checked = [{"rule": rule, "outcome": outcome} for outcome, rules in document["checked"].items() for rule in rules]
    report = report_from_json({"schema_version": REPORT_VERSION, **document["report"], "checked": checked})
    return Sample(
        id=path.stem,
        key={str(name): str(value) for name, value in document["key"].items()},
        info=report.profile,
        summary=report.summary,
        facts=FactSet(_facts_from_json(document["facts"])),
        findings=report.findings,
        checked=report.checked,
        metadata={str(name): str(value) for name, value in document.get("metadata", {}).items()},
        added=str(document["added"]),
        digest=str(document.get("digest", "")),
    )


def _facts_from_json(document: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[Fact]:
    for name, entries in document.items():
        for place, (value, samples, *_) in entries.items():
            kind, _, identity = place.partition("/")
            ranks = (int(identity),) if kind == "rank" and identity.isdigit() else ()
            yield Fact(
                name, Subject(kind, identity, ranks), tuple(value) if isinstance(value, list) else value, int(samples)
            )
