"""What tools take and give, as JSON Schema; parts of the contract's own schema wherever it has them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from advisor.basics.resources import resource
from advisor.model import SUBJECT_KINDS

_PATH = {"type": "string", "minLength": 1}
_PAGED = {"offset": {"type": "integer", "minimum": 0}, "limit": {"type": "integer", "minimum": 1, "maximum": 200}}
PARTS = ("findings", "metrics", "effects", "accounts")


@cache
def contract() -> dict[str, Any]:
    """The schema of the JSON report."""
    text = resource("reports", "schemas", "report.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def _takes(required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def inputs() -> dict[str, dict[str, Any]]:
    """tool -> schema of its arguments."""
    return {
        "advise": _takes(["path"], {"path": _PATH, **_PAGED}),
        "explain": _takes(["rule"], {"rule": _PATH, "path": {"type": "string"}, **_PAGED}),
        "facts": _takes(
            ["path"],
            {"path": _PATH, "prefix": {"type": "string"}, "subject": {"enum": ["", *SUBJECT_KINDS]}, **_PAGED},
        ),
        "compare": _takes(
            ["before", "after"], {"before": _PATH, "after": _PATH, "part": {"enum": list(PARTS)}, **_PAGED}
        ),
        "whatif": _takes(
            ["path", "without"],
            {"path": _PATH, "without": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
        ),
        "doctor": _takes(["path"], {"path": _PATH, **_PAGED}),
        "rules_search": _takes([], {"query": {"type": "string"}, **_PAGED}),
    }


def _pages(name: str, items: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"type": "array", "items": items},
        "total": {"type": "integer"},
        "next_offset": {"type": ["integer", "null"]},
    }


def outputs() -> dict[str, dict[str, Any]]:
    """tool -> schema of its answer."""
    parts, shared = contract()["properties"], contract()["$defs"]
    text, words = shared["text"], shared["words"]
    report = {name: parts[name] for name in ("schema_version", "profile", "summary", "missing_evidence", "problems")}
    rule = {
        "id": {"type": "string"}, "verdict": {"type": "string"}, "direction": {"type": "string"},
        "for": {"type": "string"}, "title": text, "statements": words,
    }  # fmt: skip
    given: dict[str, dict[str, Any]] = {
        "advise": {**report, **_pages("findings", shared["finding"]), "report": {"type": "string"}},
        "explain": {"rule": {"type": "object"}, "profile": {"type": "object"}},
        "facts": _pages("facts", parts["facts"]["items"]),
        "compare": {"comparable": {"type": "boolean"}, "outcome": {"type": "string"}, "headline": text},
        "whatif": {
            "without": words, "step_time_us": {"type": "number"}, "step_time_without_us": {"type": "number"},
            "computing_share": {"type": "object"}, "next": {"type": ["string", "null"]},
        },
        "doctor": {
            "path": {"type": "string"}, "recognised": {"type": "boolean"}, "problems": parts["problems"],
            "missing": parts["missing_evidence"], **_pages("ranks", {"type": "object"}),
        },
        "rules_search": _pages("rules", {"type": "object", "properties": rule}),
    }  # fmt: skip
    return {
        name: {"type": "object", "properties": properties, "required": _required(name, properties), "$defs": shared}
        for name, properties in given.items()
    }


def _required(name: str, properties: dict[str, Any]) -> list[str]:
    return sorted(set(properties) - ({"profile"} if name == "explain" else set()))
