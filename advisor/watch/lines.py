"""One line a recording, for people who look at a terminal now and then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.basics.units import MEASURED, show, signed
from advisor.knowledge.words import word
from advisor.render.escaping import printable, shorten

_LONGEST_NAME = 48
_NAMED = 3


def line_of(line: Mapping[str, Any], lang: str) -> str:
    """Time, recording, step time and its change, direction, first cause, what is new and what is gone."""
    head = f"{str(line['time'])[11:19]}  {shorten(str(line['profile']), _LONGEST_NAME)}"
    if "error" in line:
        first = str(line["error"]).partition("\n")[0]
        return printable(f"{head}  {word(lang, 'watch.not_judged', reason=shorten(first, 160))}")
    parts = [_step(line, lang), word(lang, f"directions.{line['direction']}")]
    cause = line.get("cause")
    if cause:
        severity = word(lang, f"severities.{cause['severity']}")
        parts.append(word(lang, "watch.cause", cause=shorten(cause[lang], 110), severity=severity))
    for name in ("new", "resolved"):
        if line[name]:
            listed = word(lang, "watch.and").join(shorten(each, 60) for each in line[name][:_NAMED])
            more = len(line[name]) - _NAMED
            listed += word(lang, "watch.more", count=more) if more > 0 else ""
            parts.append(word(lang, f"watch.{name}", findings=listed))
    text = "  ".join(part for part in parts if part)
    alarm = word(lang, "watch.slower", limit=show(line["limit_us"], "us")) if "slower" in line["reasons"] else ""
    return printable(f"{head}  {text}{'  ' if alarm else ''}{alarm}")


def _step(line: Mapping[str, Any], lang: str) -> str:
    if line.get("step_time_us") is None:
        return word(lang, "watch.no_step")
    change = line.get("change")
    return show(line["step_time_us"], "us", MEASURED) + ("" if change is None else f" ({signed(change, 'ratio')})")
