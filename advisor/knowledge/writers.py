"""Who writes which table, in which file, and the setting that brings it (`knowledge_base/writers.yaml`, S44).

Advice to collect something is worth what its profiler can do: what no setting of it brings is asked of nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from advisor.knowledge.statements import document
from advisor.tables import FILES


@dataclass(frozen=True)
class Written:
    """The file in which an engineer finds a table, and the setting of the profiler that brings it."""

    file: str
    setting: str


@cache
def written_by(layout: str, framework: str) -> Mapping[str, Written]:
    """Table -> file and setting, of the profiler that leaves profiles of this layout."""
    known = _document()
    name = known["layouts"].get(layout) or known["frameworks"].get(framework) or known["otherwise"]
    writer = known["writers"][name]
    usual = known["writers"][writer["like"]]["brings"] if "like" in writer else []
    found = {}
    for entry in (*known["anyone"], *usual, *writer["brings"]):
        for table in entry["tables"]:
            file = writer.get("files", {}).get(table, FILES.get(table, table))
            found[table] = Written(str(file), str(entry["setting"]))
    return MappingProxyType(found)


def called_there(told: str, layout: str, framework: str) -> str:
    """What such a profiler calls a file of today's, a remark behind it kept; empty where it writes nothing of the
    kind."""
    file, blank, remark = told.partition(" (")
    tables = [table for table, usual in FILES.items() if usual == file]
    writes = written_by(layout, framework)
    name = next((writes[table].file for table in tables if table in writes), "") if tables else file
    return name + blank + remark if name else ""


@cache
def _document() -> dict[str, Any]:
    return dict(document("writers.yaml"))
