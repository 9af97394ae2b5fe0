"""cluster_analysis.db: what a cluster analyser writes in place of its csv and json files, in their form."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.database.databases import STEP_COLUMNS
from advisor.sources.database.dbfile import open_database
from advisor.sources.frames import build_frame
from advisor.sources.reference import Note
from advisor.sources.text.cluster_summary import TABLE as SUMMARY
from advisor.sources.text.cluster_summary import as_steps, is_summary, read_summary
from advisor.sources.text.textfiles import why_unreadable
from advisor.tables import Table

if TYPE_CHECKING:
    import pandas as pd

FILE, ENDING = "cluster_analysis", ".db"
_TIMES = ("ClusterCommAnalyzerTime", "ClusterCommunicationTime")
_MOVED = ("ClusterCommAnalyzerBandwidth", "ClusterCommunicationBandwidth")
_LINKS = ("ClusterCommAnalyzerMatrix", "ClusterCommunicationMatrix")
_GROUPS = ("CommunicationGroup", "CommunicationGroupMapping")
"""Each with the name that the analyser gives it where it simplifies the data."""
_P2P = "p2p"
_ENTRIES = {
    "Start Timestamp(us)": ("start_timestamp",), "Elapse Time(ms)": ("elapsed_time", "elapse_time"),
    "Transit Time(ms)": ("transit_time",), "Wait Time(ms)": ("wait_time",),
    "Synchronization Time(ms)": ("synchronization_time",), "Idle Time(ms)": ("idle_time",),
}  # fmt: skip

Row = Mapping[str, Any]


def _rows(path: Path, tables: Sequence[str], note: Note) -> Iterator[Row]:
    """The rows of the first of these tables that is there, columns in small letters; each row once."""
    try:
        with open_database(path) as database:
            name = next((name for name in tables if database.has(name)), None)
            columns = [] if name is None else list(database.tables[name.lower()])
            found = {} if name is None else database.select(name, columns, distinct=True)
    except OSError as error:
        note(str(path), why_unreadable(error))
        return
    except sqlite3.DatabaseError as error:
        note(str(path), f"cannot be read as a database: {str(error)[:200]}")
        return
    for cells in zip(*found.values(), strict=True):
        yield dict(zip(found, cells, strict=True))


def is_coded(path: Path) -> bool:
    """Whether the steps of this file are read here, as those of a database or of its summary in text."""
    return path.suffix == ENDING or is_summary(path)


def _steps(path: Path, note: Note) -> list[Row]:
    """Of a database the rows of its table of steps, else of its summary; of a summary its rows."""
    if is_summary(path):
        return as_steps(read_summary(path, note))
    return list(_rows(path, ("ClusterStepTraceTime",), note)) or as_steps(_rows(path, (SUMMARY,), note))


def read_step_names(path: Path, note: Note) -> list[list[str]]:
    """Type and index of each row of the steps, below a heading."""
    rows = _steps(path, note)
    return [["type", "index"], *([str(row.get("type")), str(row.get("index"))] for row in rows)]


def read_step_frame(table: Table, path: Path, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The steps of all ranks in the columns of this table; None where there are none."""
    rows = _steps(path, note)
    names = STEP_COLUMNS | {"kind": "type", "index": "index"}
    data = {name: [row.get(column) for row in rows] for name, column in names.items() if rows and column in rows[0]}
    return build_frame(table, data, columns, note, str(path), headings={n: n for n in data}) if data else None


def read_groups(path: Path, note: Note) -> dict[str, Any] | None:
    """What communication_group.json would hold; None where the database has no table of groups."""
    rows = list(_rows(path, _GROUPS, note))
    listed = [
        {"rank_set": _members(row.get("rank_set")), **{n: row.get(n) for n in ("group_name", "group_id", "pg_name")}}
        for row in rows
    ]
    kinds = [str(row.get("type")) for row in rows]
    members = [(kind, one["rank_set"]) for kind, one in zip(kinds, listed, strict=True)]
    sets = {kind: [ranks for told, ranks in members if told == kind] for kind in ("collective", _P2P)}
    return {**sets, "comm_group_parallel_info": listed} if rows else None


def _members(text: Any) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]{1,9}", str(text))]


def _placed(rows: Iterator[Row], of: Mapping[str, str]) -> Iterator[tuple[str, str, str, Row]]:
    """(ranks of the group or p2p, step, operation@group) of each row, and the row."""
    for row in rows:
        group = str(row.get("group_name") or "")
        where = str(row.get("rank_set") or "") or of.get(group, "")
        yield where, str(row.get("step") or ""), f"{row.get('hccl_op_name')}@{group}", row


def _sections(path: Path, note: Note) -> dict[str, str]:
    """Group -> its ranks as text, or p2p."""
    rows = _rows(path, _GROUPS, note)
    return {
        str(row.get("group_name")): _P2P if row.get("type") == _P2P else str(row.get("rank_set") or "") for row in rows
    }


def read_communication(path: Path, note: Note) -> dict[str, Any]:
    """What cluster_communication.json would hold."""
    found: dict[str, Any] = {}
    of = _sections(path, note)
    for where, step, operation, row in _placed(_rows(path, _TIMES, note), of):
        entry = _entry(found, where, step, operation, str(row.get("rank_id")))
        entry["Communication Time Info"] = {
            heading: next((row[name] for name in names if name in row), None) for heading, names in _ENTRIES.items()
        }
    for where, step, operation, row in _placed(_rows(path, _MOVED, note), of):
        entry = _entry(found, where, step, operation, str(row.get("rank_id")))
        transport = str(row.get("band_type") or row.get("transport_type") or "")
        told = entry.setdefault("Communication Bandwidth Info", {}).setdefault(transport, {
            "Transit Size(MB)": row.get("transit_size"), "Transit Time(ms)": row.get("transit_time"),
            "Large Packet Ratio": row.get("large_packet_ratio"), "Size Distribution": {},
        })  # fmt: skip
        if row.get("package_size") and row.get("count"):
            told["Size Distribution"][str(row["package_size"])] = [row["count"], row.get("total_duration")]
    return found


def _entry(found: dict[str, Any], *places: str) -> dict[str, Any]:
    for place in places:
        found = found.setdefault(place, {})
    return found


def read_links(path: Path, note: Note) -> dict[str, Any]:
    """What cluster_communication_matrix.json would hold."""
    found: dict[str, Any] = {}
    for where, step, operation, row in _placed(_rows(path, _LINKS, note), _sections(path, note)):
        link = f"{row.get('src_rank')}-{row.get('dst_rank')}"
        _entry(found, where, step, operation)[link] = {
            "Transport Type": row.get("transport_type"), "Transit Size(MB)": row.get("transit_size"),
            "Transit Time(ms)": row.get("transit_time"), "Bandwidth(GB/s)": row.get("bandwidth"),
            "Op Name": row.get("op_name"),
        }  # fmt: skip
    return found
