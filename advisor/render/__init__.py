"""Writes what was found in the format wanted: a report, a gate's decision, a comparison of two reports.

`FORMATS` is the one place that lists formats. A new one is a module with a function `render_<format>(result, lang,
**options)` and its entry here; `advise`, `gate` and `compare`, their help and the tests read it from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from advisor.basics.errors import UsageError

FORMATS: Mapping[str, Mapping[str, str]] = {
    "text": {"report": "report.text", "decision": "decision.text", "comparison": "comparison.text"},
    "json": {"report": "report.document", "decision": "decision.text", "comparison": "comparison.text"},
    "html": {"report": "report.html", "decision": "decision.html", "comparison": "comparison.html"},
    "markdown": {"report": "report.markdown", "decision": "decision.markdown", "comparison": "comparison.text"},
    "sarif": {"report": "report.sarif", "decision": "decision.services"},
    "junit": {"report": "report.junit", "decision": "decision.services"},
    "trace": {"report": "report.trace"},
    "github": {"report": "report.github", "decision": "decision.services"},
}
"""format -> kind of result (the type's name in lower case) -> the module of this folder that writes it."""


def formats_of(kind: str) -> tuple[str, ...]:
    """The formats in which this kind of result can be shown: "report", "decision" or "comparison"."""
    return tuple(name for name, modules in FORMATS.items() if kind in modules)


def render(result: Any, format: str, lang: str = "en", **options: Any) -> str:
    """A Report, Decision or Comparison in one of its formats, in `lang` ("en" or "zh") where that is for people.

    Options a format does not know are ignored, so that a caller can pass one set to all: `color` and `width` (text),
    `facts` (a report as json: "none", "run", "compared" or "all"), `sides` (a comparison as html: its two reports).
    """
    kind = type(result).__name__.lower()
    known = formats_of(kind)
    if format not in known:
        raise UsageError(f"unknown format {format!r}", hint=f"one of {', '.join(known)}")
    from advisor.knowledge.fact_titles import titles_for  # `--help` asks this module for the formats only

    module = import_module(f"{__name__}.{FORMATS[format][kind]}")
    sides = {"report": ("profile",), "comparison": ("before", "after")}.get(kind, ())
    with titles_for(not sides or any(getattr(result, side).has_steps for side in sides)):
        return str(getattr(module, f"render_{format}")(result, lang, **options))
