"""Facts on paper: saved with the profile's description, judged again later without the profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from advisor.basics.errors import UsageError
from advisor.basics.files import LARGEST_DOCUMENT, read_own
from advisor.basics.jsonin import parsed
from advisor.basics.jsonout import shield_json
from advisor.facts.base import FactSet, Measured
from advisor.facts.recording.bounds import impossible
from advisor.facts.registry import catalogue
from advisor.model import Fact, Problem, ProfileInfo
from advisor.plain import from_plain, to_plain

SCHEMA_VERSION = "1.0"


def dump(measured: Measured) -> str:
    """Facts as JSON text, sorted, one document."""
    kinds = catalogue()
    document = {
        "schema_version": SCHEMA_VERSION,
        "profile": to_plain(measured.info),
        "tables": sorted(measured.tables),
        "unusable": list(measured.unusable),
        "facts": [
            {**to_plain(fact), "unit": kinds[fact.name].unit if fact.name in kinds else ""} for fact in measured.facts
        ],
        "problems": to_plain(measured.problems),
    }
    return shield_json(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)) + "\n"


def load(path: str | Path) -> Measured:
    """Reads what `dump` wrote. Raises UsageError for anything else, and for what no measurement can be."""
    try:
        document = parsed(read_own(path, LARGEST_DOCUMENT))
        if str(document["schema_version"]).partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
            raise UsageError(f"written by another version ({document['schema_version']})", place=str(path))
        facts, kinds = from_plain(document["facts"], tuple[Fact, ...]), catalogue()
        for fault in filter(None, (impossible(fact, kinds[fact.name]) for fact in facts if fact.name in kinds)):
            raise ValueError(fault)
        return Measured(
            from_plain(document["profile"], ProfileInfo),
            FactSet(facts),
            from_plain(document["problems"], list[Problem]),
            from_plain(document["tables"], frozenset[str]),
            from_plain(document.get("unusable", []), tuple[str, ...]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise UsageError(
            f"not a file of saved facts: {type(error).__name__}: {error}",
            place=str(path),
            hint="write one with `advisor facts PROFILE --save FILE`",
        ) from None


def catalogue_text(form: str) -> str:
    """The catalogue of fact kinds as a table for people, as JSON or as a Markdown table."""
    kinds = catalogue()
    if form == "text":
        return table([("fact", "unit", "of", "meaning"), *((k.name, k.unit, ", ".join(k.scopes), k.meaning) for k in
                     sorted(kinds.values(), key=lambda k: k.name))]) + f"{len(kinds)} facts\n"  # fmt: skip
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


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)
