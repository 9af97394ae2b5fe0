"""Checks of a profiler configuration: a script, profiler_config.json, MS_PROFILER_OPTIONS (S49-S53, S84)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from advisor.collect.plan import knowledge, limit
from advisor.knowledge.statements import document
from advisor.knowledge.words import both, fill, word
from advisor.model import Text

DYNAMIC_NAME = "profiler_config.json"


@dataclass(frozen=True)
class Fault:
    """What is wrong, where, what follows from it, and the statement it offends."""

    level: str
    """error: the collection fails or misleads; warning: it leaves something out"""
    place: str
    message: Text
    hint: Text
    statement: str

    def show(self, lang: str) -> str:
        """One line and a hint."""
        level = both(f"fault_levels.{self.level}")
        line = word(
            lang, "collect.fault", place=self.place, level=level, message=self.message, statement=self.statement
        )
        return f"{line}\n  {self.hint.get(lang)}"


def fault(name: str, place: str, **slots: object) -> Fault:
    """The fault of this name (knowledge_base/collection_faults.yaml) at this place, its slots filled."""
    entry = _faults()[name]
    message, hint = (
        Text(fill(entry[part]["en"], "en", slots), fill(entry[part]["zh"], "zh", slots)) for part in ("message", "hint")
    )
    return Fault(entry["level"], place, message, hint, entry["statement"])


@lru_cache(maxsize=1)
def _faults() -> dict[str, Any]:
    return dict(document("collection_faults.yaml"))


def check_dynamic(document: Mapping[str, Any], name: str, total: int | None, ranks: int | None) -> Iterator[Fault]:
    """profiler_config.json, which starts a collection while training runs (S51, S53)."""
    if Path(name).name != DYNAMIC_NAME:
        yield fault("dynamic_name", name, expected=DYNAMIC_NAME)
    known = knowledge()["dynamic"]
    for key, value in document.items():
        if key not in known:
            yield fault("unknown_key", f"{name}: {key}", known=", ".join(known))
        elif not _fits(value, known[key]):
            yield fault("value_not_allowed", f"{name}: {key}", value=repr(value), allowed=_allowed(known[key]))
    first, last = document.get("start_step"), document.get("stop_step")
    for key, value in (("start_step", first), ("stop_step", last)):
        if value is None:
            yield fault("step_missing", f"{name}: {key}")
    if isinstance(first, int) and isinstance(last, int):
        if first < 0 or last < first:
            yield fault("steps_reversed", f"{name}: stop_step", first=first, last=last)
        elif total is not None and last >= total:
            yield from too_few_steps(f"{name}: stop_step", last, total)
        yield from too_many(f"{name}: stop_step", last - first + 1)
    if document.get("analyse_mode", -1) == -1:
        yield fault("raw_only", f"{name}: analyse_mode")
    if document.get("export_type") == 1:
        yield database_only(f"{name}: export_type")
    if document.get("profiler_level", 0) in (-1, 0) and (ranks or 0) > 1:
        yield low_level(f"{name}: profiler_level", ranks or 0)


def _fits(value: Any, allowed: Mapping[str, Any]) -> bool:
    if allowed["type"] == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return bool(allowed.get("from", value) <= value <= allowed.get("to", value))


def _allowed(allowed: Mapping[str, Any]) -> str:
    if allowed["type"] == "bool":
        return "true | false"
    return f"{allowed['from']} … {allowed['to']}" if "from" in allowed else "0, 1, 2, …"


def check_environment(options: Mapping[str, Any], name: str, ranks: int | None) -> Iterator[Fault]:
    """The value of MS_PROFILER_OPTIONS (S44, S52)."""
    if options.get("start") is not True:
        yield fault("not_started", f"{name}: start")
    if (ranks or 1) > 1:
        yield fault("single_device", name)
    for key in knowledge()["environment_refuses"]:
        if key in options:
            yield fault("refused_key", f"{name}: {key}", key=key)
    exports = options.get("export_type")
    if exports is not None and "text" not in str(exports).lower():
        yield database_only(f"{name}: export_type")


def check_schedule(place: str, values: Mapping[str, int], total: int | None) -> Iterator[Fault]:
    """A schedule's entries by name; those not set have the profiler's defaults (S49, S50, S84)."""
    for key, value in values.items():
        least = 1 if key == "active" else 0
        if value < least:
            yield fault("entry_too_small", place, key=key, value=value, least=least)
    repeat, active = values.get("repeat", 0), values.get("active", 1)
    if repeat == 0:
        yield fault("endless_repeat", place)
    needed = max(repeat, 1) * (values.get("wait", 0) + values.get("warmup", 0) + active) + values.get("skip_first", 0)
    if total is not None and needed >= total:
        yield from too_few_steps(place, needed, total)
    yield from too_many(place, active)


def too_few_steps(place: str, needed: int, total: int) -> Iterator[Fault]:
    """The training ends before the collection does (S50)."""
    yield fault("too_few_steps", place, needed=needed, total=total)


def too_many(place: str, steps: int) -> Iterator[Fault]:
    """More steps than help (S84)."""
    if steps > limit("most_steps"):
        yield fault("too_many_steps", place, steps=steps, most=f"{limit('most_steps'):.0f}")


def database_only(place: str) -> Fault:
    """Without text there are no step tables and no data pipeline files (S44)."""
    return fault("database_only", place)


def low_level(place: str, ranks: int) -> Fault:
    """Without level 1 there is nothing of communication (S44)."""
    return fault("low_level", place, ranks=ranks)
