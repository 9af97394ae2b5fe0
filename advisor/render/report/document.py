"""The report as JSON text: the public contract of `exchange.py`, laid out for reading."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from advisor.basics.jsonout import shield_json
from advisor.exchange import report_to_json
from advisor.model import Report


def render_json(report: Report, lang: str = "en", *, facts: str = "compared", **_: Any) -> str:
    """The report as JSON text. `facts` says which facts go along: "none", those of the "run", these and what
    `advisor compare` explains a change with ("compared"), or "all".

    Indented for reading, but for the series of pictures: one line each, or they would bury the findings.
    """
    document = report_to_json(report, facts=facts)
    entries = []
    for key in sorted(document):
        if key == "charts" and document[key]:
            series = [f"    {_dump(name)}: {_dump(document[key][name])}" for name in sorted(document[key])]
            text = "{\n" + ",\n".join(series) + "\n  }"
        else:
            text = _dump(document[key], indent=2).replace("\n", "\n  ")
        entries.append(f"  {_dump(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _dump(value: Any, indent: int = -1) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return shield_json(text if indent < 0 else msgspec.json.format(text, indent=indent))  # json's own takes ten times
