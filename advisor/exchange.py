"""The public JSON form of a report (`reports/schemas/report.schema.json`) and back again.

Units beside the values, no NaN or Infinity. Fields beyond the contract are additions; their removal or a change of
meaning needs a new `SCHEMA_VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.jsonin import parsed
from advisor.facts.recording.retold import faults, without_impossible
from advisor.knowledge.comparison import compared_facts
from advisor.model import RUN, Fact, Report
from advisor.plain import from_plain, to_plain

SCHEMA_VERSION = "1.1"


def tool_version() -> str:
    """Version of the installed package; "0" in a checkout that is not installed."""
    try:
        return metadata.version("advisor")
    except metadata.PackageNotFoundError:
        return "0"


def report_to_json(report: Report, *, facts: str = "compared") -> dict[str, Any]:
    """Plain dictionaries and lists of the contract; numbers that are not finite become null. `facts` says which facts
    go along: "none", those of the "run", these and what `advisor compare` explains a change with ("compared"), or
    "all"."""
    document = to_plain(replace(report, facts=tuple(_kept(report, facts))))
    return {"schema_version": SCHEMA_VERSION, "tool": {"name": "advisor", "version": tool_version()}, **document}


def _kept(report: Report, which: str) -> list[Fact]:
    if which == "all":
        return list(report.facts)
    names = compared_facts() | report.promised if which == "compared" else frozenset()
    return [fact for fact in report.facts if fact.name in names or (fact.subject == RUN and which != "none")]


def report_from_json(document: str | bytes | Mapping[str, Any]) -> Report:
    """The report a JSON text (or its parsed form) describes; unknown fields are passed over.

    Raises UsageError where the text is not a report of this `schema_version`, or what its verdict rests on is
    what no measurement can be; such facts and pictures are left out and told.
    """
    try:
        data = document if isinstance(document, Mapping) else parsed(document)
        version = str(data["schema_version"])
        if version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
            raise UsageError(f"report of schema version {version}", hint=f"this advisor reads {SCHEMA_VERSION}")
        report = from_plain({**data, "findings": data["findings"], "checked": data["checked"]}, Report)
        for fault in faults(report):
            raise ValueError(fault)
        report = without_impossible(report)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise UsageError(
            f"not a report of the advisor ({type(error).__name__}: {error})",
            hint="write one with: advisor advise PROFILE --format json:report.json",
        ) from error
    return replace(report, promised=frozenset(fact.name for fact in report.facts))
