"""One run of a baseline as a file holds it, and back again. What comes back is checked: a file anybody may have written
must not decide with an impossible number."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from advisor.basics.errors import UsageError
from advisor.basics.files import read_own
from advisor.facts.base import FactSet
from advisor.facts.recording.bounds import impossible
from advisor.facts.registry import catalogue
from advisor.gate.metrics import defaults, facts_of
from advisor.gate.sample import Sample, gate_facts, hashed
from advisor.model import COLLECTION, RUN, Fact, Source, Subject

LARGEST_BYTES = 16_000_000
"""A larger file is no run: one has tens of kilobytes."""
_WORDS = ("text", "list", "bool")


def read_document(path: Path) -> dict[str, Any]:
    """The parsed JSON of a file. Raises UsageError where it cannot be read, is too large or no object."""
    try:
        document = msgspec.json.decode(read_own(path, LARGEST_BYTES))
    except OSError as error:
        raise UsageError(error.strerror or str(error)) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageError("is no run of a baseline")
    if document.pop("seal", None) not in (None, _seal(document)):
        raise UsageError("was changed after it was written")
    return document


def sealed(document: Mapping[str, Any]) -> str:
    """The text of a file: nothing in a baseline is ever edited, and the seal tells what was."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    return json.dumps({**plain, "seal": _seal(plain)}, ensure_ascii=False, sort_keys=True) + "\n"


def _seal(document: Mapping[str, Any]) -> str:
    return hashed(json.dumps(document, sort_keys=True).encode())


def run_to_json(sample: Sample) -> dict[str, Any]:
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
        "content": sample.content,
        "has_steps": sample.info.has_steps,
        "report": {name: report[name] for name in kept},
        "checked": checked,
        "facts": _facts_to_json(sample.facts),
    }


def _facts_to_json(facts: FactSet) -> dict[str, dict[str, list[Any]]]:
    """All numbers of the run, and the largest of those that explain changes: {name: {kind/id: [value, samples]}}; of
    what the gate compares also the names of the files it was read from. Words (shapes, say) are kept for the subjects
    that are."""
    explaining = gate_facts()
    compared = {fact for name in defaults()["metrics"] for fact in facts_of(name)}
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
        name: {f"{f.subject.kind}/{f.subject.id}": _entry(f, name in compared) for f in chosen}
        for name, chosen in kept.items()
        if chosen
    }


def _entry(fact: Fact, compared: bool) -> list[Any]:
    if not compared:
        return [fact.value, fact.samples]
    return [fact.value, fact.samples, [*dict.fromkeys(PurePosixPath(source.file).name for source in fact.sources)]]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def run_from_json(document: Mapping[str, Any], name: str) -> Sample:
    """The run that a file holds. Raises UsageError, KeyError, TypeError, ValueError, AttributeError or OverflowError
    where it is none, or holds numbers that no run can have."""
    from advisor.exchange import SCHEMA_VERSION as REPORT_VERSION
    from advisor.exchange import report_from_json

    checked = [{"rule": rule, "outcome": outcome} for outcome, rules in document["checked"].items() for rule in rules]
    report = report_from_json({"schema_version": REPORT_VERSION, **document["report"], "checked": checked})
    step = report.summary.step_time_us
    if step is not None:
        _require_possible("summary.step_time_us", step, "us")
    return Sample(
        id=name,
        key={str(name): str(value) for name, value in document["key"].items()},
        info=replace(report.profile, has_steps=document.get("has_steps") is not False),
        summary=report.summary,
        facts=FactSet(_facts_from_json(document["facts"])),
        findings=report.findings,
        checked=report.checked,
        metadata={str(name): str(value) for name, value in document.get("metadata", {}).items()},
        added=str(document["added"]),
        digest=str(document.get("digest", "")),
        content=str(document.get("content", "")),
        version=str(document.get("advisor", "")),
    )


def _facts_from_json(document: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[Fact]:
    kinds = catalogue()
    compared = {fact for name in defaults()["metrics"] for fact in facts_of(name)}
    for name, entries in document.items():
        unit = kinds[name].unit if name in kinds else ""
        for place, (value, samples, *files) in entries.items():
            if unit not in _WORDS and (unit or _is_number(value)):
                _require_possible(name, value, unit if name in compared else "")
            kind, _, identity = place.partition("/")
            ranks = (int(identity),) if kind == "rank" and identity.isdigit() else ()
            fact = Fact(
                name,
                Subject(kind, identity, ranks),
                tuple(value) if isinstance(value, list) else value,
                int(samples),
                tuple(Source(str(file)) for file in files[0]) if files else (),
            )
            if name in compared and name in kinds and (fault := impossible(fact, kinds[name])):
                raise UsageError(fault)
            yield fact


def _require_possible(name: str, value: Any, unit: str) -> None:
    """Numbers that are finite and, where they are an amount that the gate compares, not negative."""
    try:
        finite = _is_number(value) and math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise UsageError(f"{name} is no number")
    if unit in ("us", "bytes") and value < 0:
        raise UsageError(f"{name} is {value}: no run can have that")
