"""Device memory from databases: over time, by operator, by module. Sizes are bytes, times ns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from advisor.sources.database.databaseframes import frame, lacks, texts
from advisor.sources.database.dbfile import open_database
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef

if TYPE_CHECKING:
    import pandas as pd

_PEAKS = {"allocated_bytes": "totalAllocated", "reserved_bytes": "totalReserved", "active_bytes": "totalActive"}


def _devices(numbers: Sequence[Any]) -> list[str | None]:
    return [None if number is None else f"NPU:{number}" for number in numbers]


@reader("db.memory")
def read_memory(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """MEMORY_RECORD of torch_npu; where it is absent NPU_MEM, which knows the whole process only (APP)."""
    with open_database(reference.paths[0]) as database:
        if database.has("MEMORY_RECORD", "timestamp"):
            found = database.select("MEMORY_RECORD", ["component", "timestamp", *_PEAKS.values(), "deviceId"])
            data: dict[str, Sequence[Any]] = {
                "component": texts(database, found.get("component", [])),
                "time_ns": found["timestamp"],
                "device": _devices(found.get("deviceId", [])),
            }
            data.update((name, found[column]) for name, column in _PEAKS.items() if column in found)
        elif database.has("NPU_MEM", "timestampNs", "hbm"):
            found = database.select("NPU_MEM", ["type", "timestampNs", "hbm", "deviceId"])
            data = {
                "component": texts(database, found.get("type", [])),
                "time_ns": found["timestampNs"],
                "reserved_bytes": found["hbm"],
                "device": _devices(found.get("deviceId", [])),
            }
        else:
            return None
    return frame("memory", {name: cells for name, cells in data.items() if cells}, reference, columns, note)


@reader("db.operator_memory")
def read_operator_memory(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """OP_MEMORY of torch_npu."""
    with open_database(reference.paths[0]) as database:
        if lacks(database, "OP_MEMORY", ("name", "size"), note):
            return None
        found = database.select("OP_MEMORY", ["name", "size", "allocationTime", "releaseTime", "deviceId"])
        names = texts(database, found["name"])
    data: dict[str, Sequence[Any]] = {"name": names, "size_bytes": found["size"]}
    pairs = (("allocated_ns", "allocationTime"), ("released_ns", "releaseTime"))
    data.update((name, found[column]) for name, column in pairs if column in found)
    if "deviceId" in found:
        data["device"] = _devices(found["deviceId"])
    return frame("operator_memory", data, reference, columns, note)


@reader("db.module_memory")
def read_module_memory(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """NPU_MODULE_MEM."""
    with open_database(reference.paths[0]) as database:
        if lacks(database, "NPU_MODULE_MEM", ("moduleId", "totalReserved"), note):
            return None
        found = database.select("NPU_MODULE_MEM", ["moduleId", "timestampNs", "totalReserved", "deviceId"])
        modules = database.names_of("ENUM_MODULE")
    data: dict[str, Sequence[Any]] = {
        "component": [modules.get(number, f"module {number}") for number in found["moduleId"]],
        "reserved_bytes": found["totalReserved"],
    }
    if "timestampNs" in found:
        data["time_ns"] = found["timestampNs"]
    if "deviceId" in found:
        data["device"] = _devices(found["deviceId"])
    return frame("module_memory", data, reference, columns, note)
