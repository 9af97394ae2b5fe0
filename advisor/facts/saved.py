"""Facts on paper: saved with the profile's description, judged again later without the profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.jsonout import shield_json
from advisor.conformity import require
from advisor.facts.base import FactSet, Measured
from advisor.facts.registry import catalogue
from advisor.model import Fact, Parallelism, Problem, ProfileInfo, Source, Subject, Text

SCHEMA_VERSION = "1.0"


def dump(measured: Measured) -> str:
    """Facts as JSON text, sorted, one document."""
    kinds = catalogue()
    document = {
        "schema_version": SCHEMA_VERSION,
        "profile": info_to_json(measured.info),
        "tables": sorted(measured.tables),
        "unusable": list(measured.unusable),
        "facts": [fact_to_json(fact, kinds[fact.name].unit if fact.name in kinds else "") for fact in measured.facts],
        "problems": [{"file": p.file, "problem": p.problem} for p in measured.problems],
    }
    return shield_json(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)) + "\n"


def load(path: str | Path) -> Measured:
    """Reads what `dump` wrote. Raises UsageError for anything else."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if str(document["schema_version"]).partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
            raise UsageError(f"written by another version ({document['schema_version']})", place=str(path))
        measured = Measured(
            info_from_json(document["profile"]),
            FactSet(fact_from_json(item) for item in document["facts"]),
            [Problem(str(p["file"]), str(p["problem"])) for p in document["problems"]],
            frozenset(map(str, document["tables"])),
            tuple(map(str, document.get("unusable", ()))),
        )
        require(measured.info, ProfileInfo, "profile")
        for fact in measured.facts:
            require(fact, Fact, fact.name)
        return measured
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise UsageError(
            f"not a file of saved facts: {type(error).__name__}: {error}",
            place=str(path),
            hint="write one with `advisor facts PROFILE --save FILE`",
        ) from None


def catalogue_text(form: str) -> str:
    """The catalogue of fact kinds as JSON or as a Markdown table."""
    kinds = catalogue()
    if form == "json":
        rows = [
            {
                "name": k.name, "unit": k.unit, "scopes": list(k.scopes), "meaning": k.meaning, "formula": k.formula,
                "needs": list(k.needs),
            }
            for k in kinds.values()
        ]  # fmt: skip
        return (
            shield_json(
                json.dumps(sorted(rows, key=lambda r: str(r["name"])), ensure_ascii=False, sort_keys=True, indent=1)
            )
            + "\n"
        )
    lines = ["| fact | unit | scope | meaning | how |", "|---|---|---|---|---|"]
    lines += [
        f"| `{k.name}` | {k.unit} | {', '.join(k.scopes)} | {k.meaning} | {k.formula} |"
        for k in sorted(kinds.values(), key=lambda k: k.name)
    ]
    return "\n".join(lines) + "\n"


def subject_to_json(subject: Subject) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "ranks": list(subject.ranks)}


def subject_from_json(item: Mapping[str, Any]) -> Subject:
    return Subject(str(item["kind"]), str(item["id"]), tuple(int(r) for r in item.get("ranks", ())))


def fact_to_json(fact: Fact, unit: str) -> dict[str, Any]:
    return {
        "name": fact.name,
        "unit": unit,
        "subject": subject_to_json(fact.subject),
        "value": _plain(fact.value),
        "samples": fact.samples,
        "sources": [{"file": s.file, "columns": list(s.columns), "steps": list(s.steps)} for s in fact.sources],
    }


def fact_from_json(item: Mapping[str, Any]) -> Fact:
    sources = tuple(Source(str(s["file"]), tuple(s["columns"]), tuple(s["steps"])) for s in item.get("sources", ()))
    return Fact(
        str(item["name"]), subject_from_json(item["subject"]), _frozen(item["value"]), int(item["samples"]), sources
    )


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def info_to_json(info: ProfileInfo) -> dict[str, Any]:
    parallel = info.parallelism
    return {
        "path": info.path, "framework": info.framework, "layout": info.layout, "ranks": list(info.ranks),
        "world_size": info.world_size, "steps": list(info.steps),
        "excluded_steps": [{"step": step, "reason": reason} for step, reason in info.excluded_steps],
        "parallelism": {
            "data": parallel.data, "tensor": parallel.tensor, "pipeline": parallel.pipeline, "expert": parallel.expert,
            "source": parallel.source,
        },
        "devices": list(info.devices), "versions": dict(sorted(info.versions.items())),
        "recording": info.recording, "has_steps": info.has_steps,
        "recording_reason": {"en": info.recording_reason.en, "zh": info.recording_reason.zh},
    }  # fmt: skip


def info_from_json(item: Mapping[str, Any]) -> ProfileInfo:
    return ProfileInfo(
        path=item["path"], framework=item["framework"], layout=item["layout"], ranks=tuple(item["ranks"]),
        world_size=item["world_size"], steps=tuple(item["steps"]),
        excluded_steps=tuple((e["step"], e["reason"]) for e in item["excluded_steps"]),
        parallelism=Parallelism(**item["parallelism"]), devices=tuple(item["devices"]), versions=dict(item["versions"]),
        recording=item.get("recording", "training_steps"), has_steps=item.get("has_steps", True),
        recording_reason=Text(**item.get("recording_reason", {"en": "", "zh": ""})),
    )  # fmt: skip
