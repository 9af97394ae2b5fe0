"""Who writes which table, in which file, and the setting that brings it (`knowledge_base/writers.yaml`, S44).

Advice to collect something is worth what its profiler can do: what no setting of it brings is asked of nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from advisor.knowledge.statements import document
from advisor.model import Text
from advisor.tables import FILES

RECORDED = ("level", "activities", "profile_memory", "l2_cache", "data_process", "with_stack", "has_schedule")
"""The settings of which profiles tell, as facts about the collection name them."""

LEFT = "the whole result folder"
"""What is asked for instead of a setting where that was set."""


class Written(Struct, frozen=True):
    """The file in which an engineer finds a table, and the setting of the profiler that brings it."""

    file: str
    setting: str
    asked: tuple[tuple[str, Any], ...] = ()
    """The settings of a profile that asked for it, where these are recorded."""


@cache
def written_by(layout: str, framework: str, database_only: bool = False) -> Mapping[str, Written]:
    """Table -> file and setting, of the profiler that leaves profiles of this layout; where nothing but a database was
    asked for, what that has not comes as text beside it."""
    name = _writer_of(layout, framework)
    found = _brought_by(name)
    known = _document()["writers"]
    as_text = known[name].get("as_text") or known[known[name].get("like", name)].get("as_text")
    if not database_only or as_text is None:
        return found
    texts = {table: Written(found[table].file, str(as_text["setting"])) for table in as_text["tables"]}
    return MappingProxyType({**found, **texts})


def left_behind(writes: Mapping[str, Written], settings: Mapping[str, Any]) -> Mapping[str, Written]:
    """The same, where a profile's recorded settings asked for a file already: not the setting is missing, but the file
    that it brought."""
    return {
        table: Written(each.file, f"{LEFT} ({each.setting} was set)")
        if each.asked and all(is_asked(settings, name, value) for name, value in each.asked)
        else each
        for table, each in writes.items()
    }


def is_asked(settings: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether recorded settings ask for this one: a level no lower, activities no fewer, what is on."""
    told = settings.get(name)
    if name == "level":
        level = str(told or "")[-1:]
        return level.isdigit() and int(level) >= value
    if isinstance(value, tuple):
        return isinstance(told, list | tuple) and set(value) <= set(told)
    return told is value


@cache
def _brought_by(name: str) -> Mapping[str, Written]:
    known = _document()
    writer = known["writers"][name]
    usual = known["writers"][writer["like"]]["brings"] if "like" in writer else []
    found = {}
    for entry in (*known["anyone"], *usual, *writer["brings"]):
        for table in entry["tables"]:
            file = writer.get("files", {}).get(table, FILES.get(table, table))
            asked = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.get("asked", {}).items()}
            found[table] = Written(str(file), str(entry["setting"]), tuple(asked.items()))
    return MappingProxyType(found)


def called_there(told: str, layout: str, framework: str) -> str:
    """What such a profiler calls a file of today's, a remark behind it kept; empty where it writes nothing of the
    kind."""
    return _called(told, written_by(layout, framework))


def called_later(told: str, layout: str, framework: str) -> tuple[str, Text] | None:
    """What a later version of such a profiler calls a file that this one never writes, and the version; None where
    nobody writes it."""
    later = _document()["writers"][_writer_of(layout, framework)].get("later")
    name = "" if later is None else _called(told, _brought_by(later["writer"]))
    return (name, Text(later["named"]["en"], later["named"]["zh"])) if later is not None and name else None


def _called(told: str, writes: Mapping[str, Written]) -> str:
    file, blank, remark = told.partition(" (")
    tables = [table for table, usual in FILES.items() if usual == file]
    name = next((writes[table].file for table in tables if table in writes), "") if tables else file
    return name + blank + remark if name else ""


def _writer_of(layout: str, framework: str) -> str:
    known = _document()
    return str(known["layouts"].get(layout) or known["frameworks"].get(framework) or known["otherwise"])


@cache
def _document() -> dict[str, Any]:
    return dict(document("writers.yaml"))
