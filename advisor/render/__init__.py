"""Writes a `Report` in the format wanted. One module per format; nothing here reads a profile."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from advisor.basics.errors import UsageError
from advisor.model import Report

_HOME = {"json": "advisor.exchange"}

FORMATS = ("text", "json", "html", "markdown", "sarif", "junit", "github")


def render(report: Report, format: str, lang: str = "en", **options: Any) -> str:
    """The report in one of `FORMATS`, in `lang` ("en" or "zh") where the format is for people.

    Options a format does not know are ignored, so that a caller can pass one set to all:
    `color` and `width` (text), `facts` (json: "none", "run", "compared" or "all").
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}", hint=f"one of {', '.join(FORMATS)}")
    module = import_module(_HOME.get(format, f"advisor.render.report.{format}"))
    return str(getattr(module, f"render_{format}")(report, lang, **options))
