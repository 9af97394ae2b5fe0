"""Rank folders of today's profilers: *_ascend_ms, *_ascend_pt, and those of dynamic profiling."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.sources.base import Rank
from advisor.sources.database.dbfile import find_database_tables
from advisor.sources.folders import Judgement, Listing, is_folder, list_folder, plain_name
from advisor.sources.metadata import INFO_ENTRY, METADATA_ENTRY, Metadata, add_metadata, as_int, read_metadata
from advisor.sources.reference import Note, TableRef
from advisor.sources.text import tablefiles

OUTPUT = "ASCEND_PROFILER_OUTPUT"
INFO = r"profiler_info(_[0-9]+)?\.json"
METADATA = r"profiler_metadata(_[0-9]+)?\.json"
_NAME = re.compile(r"(?P<host>.+)_(?P<pid>[0-9]+)_(?P<time>[0-9]{14,17})_ascend_(?:ms|pt)", re.IGNORECASE)
_DYNAMIC = re.compile(r"rank_?(?P<rank>[0-9]+)_start_?(?P<start>[0-9]+)_stop_?(?P<stop>[0-9]+)", re.IGNORECASE)
_RANK_WORD = re.compile(r"(?:^|[^a-z])rank[_-]?([0-9]+)(?![0-9])", re.IGNORECASE)
_RAW = r"PROF_.+"


def judge(listing: Listing) -> Judgement:
    """Whether the folder is one rank of a profile of MindSpore 2.x or torch_npu."""
    if listing.name in (OUTPUT, "FRAMEWORK"):
        return Judgement("ascend", True, f"it is the {listing.name} folder of a rank")
    if OUTPUT in listing.folders:
        return Judgement("ascend", True, f"it contains {OUTPUT}")
    if re.search(r"_ascend_(ms|pt)$", listing.name, re.IGNORECASE):
        return Judgement("ascend", True, "its name ends like that of a rank folder")
    infos = listing.find(INFO)
    if infos and (listing.find_folders(_RAW) or "FRAMEWORK" in listing.folders):
        return Judgement("ascend", True, f"it holds {infos[0].name} and raw data")
    if "FRAMEWORK" in listing.folders and listing.find_folders(_RAW):
        return Judgement("ascend", True, "it holds FRAMEWORK and PROF_* (raw data)")
    return Judgement("ascend", False, f"no {OUTPUT} in it, and its name does not end in _ascend_ms or _ascend_pt")


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """The rank in this folder, or nothing."""
    if not judge(listing).recognised:
        return []
    if listing.name in (OUTPUT, "FRAMEWORK"):
        root = listing.path.parent
        return [build_rank(list_folder(root) if root != listing.path else listing, base)]
    return [build_rank(listing, base)]


def build_rank(listing: Listing, base: Path) -> Rank:
    """One rank from its folder: identity from the most reliable source there is, tables by file name."""
    root = listing.path
    rank = Rank(0, root, base=base, rank_known=False)
    note = rank.note_path
    output = list_folder(root / OUTPUT) if is_folder(root / OUTPUT) else Listing(root / OUTPUT)
    if output.problem:
        note(str(output.path), output.problem)
    infos, metadatas = listing.find(INFO), listing.find(METADATA) + output.find(METADATA)
    rank.info_files = first_of(infos, metadatas)
    metadata = read_metadata(infos, metadatas, note)
    files = [output.path / name for name in output.files]
    rank.tables = tablefiles.find_tables(files)
    databases = [*output.find(tablefiles.DATABASE), *listing.find(tablefiles.DATABASE)]
    identity = add_databases(rank, databases, metadata, note)
    raw = listing.find_folders(_RAW)
    for folder in raw:
        for table, ref in _exported(folder, bool(output.files)).items():
            rank.tables.setdefault(table, ref)
    if not output.files and not rank.tables:
        rank.unparsed = tuple(raw) or tuple(p for p in (root / "FRAMEWORK",) if is_folder(p))
    add_identity(rank, metadata, identity, databases)
    for table, ref in find_host_tables(root, rank.rank if rank.rank_known else None, note).items():
        rank.tables.setdefault(table, ref)
    rank.device = rank.device or _device_of(raw)
    _add_folder_name(rank)
    rank.layout = _layout(rank, listing, output)
    link_ranks(rank)
    if not rank.tables and not rank.unparsed:
        note(str(root), "is a rank folder without any file of a profile; the profiler may have been stopped early")
    return rank


def first_of(infos: list[Path], metadatas: list[Path]) -> dict[str, Path]:
    """The files that `Rank.info_files` names."""
    return {name: paths[0] for name, paths in ((INFO_ENTRY, infos), (METADATA_ENTRY, metadatas)) if paths}


def add_databases(rank: Rank, paths: list[Path], metadata: Metadata, note: Note) -> dict[str, Any]:
    """Tables that only the databases hold (a text file of the same table wins), and who they say they are."""
    found, identity = find_database_tables(paths, note)
    rank.databases = tuple(paths)
    for table, ref in found.items():
        rank.tables.setdefault(table, ref)
    entries = {}
    for name, value in identity.get("metadata", {}).items():
        try:
            entries[name] = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            entries[name] = value
    if entries:
        raw = metadata.raw.get("profiler_metadata")
        rank.info_files.setdefault(METADATA_ENTRY, identity["metadata_file"])
        add_metadata(metadata, {**entries, **(raw or {})})
    return identity


def add_identity(rank: Rank, metadata: Metadata, identity: dict[str, Any], databases: list[Path]) -> None:
    """Rank number, device, host, groups: metadata first, then names, then what databases say."""
    suffix = next(
        (m.group(1) for p in databases if (m := re.search(r"profiler_([0-9]+)\.db$", plain_name(p.name)))), None
    )
    dynamic = _DYNAMIC.search(rank.root.name)
    word = _RANK_WORD.search(rank.root.name)
    candidates = (
        metadata.rank,
        as_int(suffix),
        as_int(dynamic.group("rank")) if dynamic else None,
        as_int(word.group(1)) if word else None,
        identity.get("rank"),
    )
    number = next((candidate for candidate in candidates if candidate is not None), None)
    if number is not None:
        rank.rank, rank.rank_known = number, True
    rank.device = metadata.device or identity.get("device")
    rank.host = identity.get("host")
    rank.framework = metadata.framework
    rank.groups = dict(metadata.groups)
    rank.info = {
        **metadata.raw,
        "settings": metadata.settings,
        "versions": metadata.versions,
        "group_names": metadata.group_names,
        "parallelism": metadata.parallelism,
        "world_size": max((n for n in (metadata.world_size, identity.get("world_size")) if n), default=None),
        "npu": identity.get("npu"),
        "schema": identity.get("schema", {}),
    }


def link_ranks(rank: Rank) -> None:
    """Gives the readers of communication tables what they need to name global ranks."""
    for table in ("collectives", "transports", "links"):
        ref = rank.tables.get(table)
        if ref is not None:
            options = {**ref.options, "rank": rank.rank, "groups": rank.groups}
            rank.tables[table] = TableRef(ref.table, ref.paths, ref.reader, options)


def started(rank: Rank) -> tuple[int, int, str]:
    """Sort key by age of a rank's data: time in the folder's name, time of collection, name."""
    name = _NAME.fullmatch(rank.root.name)
    dynamic = _DYNAMIC.search(rank.root.name)
    end = rank.info.get("profiler_info", {}).get("end_info", {})
    collected = as_int(str(end.get("collectionTimeEnd", ""))[:9]) if isinstance(end, dict) else None
    stamp = int(name.group("time").ljust(17, "0")) if name else 0
    return stamp, int(dynamic.group("start")) if dynamic else collected or 0, str(rank.root)


def ended_us(rank: Rank) -> float | None:
    """When the host ended the collection, microseconds since 1970; None where no file tells."""
    info = rank.info.get("profiler_info", {})
    end = info.get("end_info", {}) if isinstance(info, dict) else None
    ended = end.get("collectionTimeEnd") if isinstance(end, dict) else None
    return ended / 1000 if isinstance(ended, int) and ended > 0 else None


def process_of(root: Path) -> tuple[str, str] | None:
    """(host, process) that the name of a rank's folder tells; a process drives one device."""
    name = _NAME.fullmatch(root.name)
    return (name.group("host"), name.group("pid")) if name else None


def find_host_tables(root: Path, rank: int | None, note: Callable[[str, str], None]) -> dict[str, TableRef]:
    """Tables of the host in a rank folder: its data pipeline, and operators that ran on its processor."""
    from advisor.sources.layouts.legacy import find_host_operators
    from advisor.sources.minddata.minddata import find_minddata

    try:
        return {**find_host_operators(root / "FRAMEWORK", rank or 0), **find_minddata(root, rank)}
    except OSError as error:
        note(str(root), f"files of the data pipeline cannot be listed: {error.strerror or error}")
        return {}


def _exported(folder: Path, parsed: bool) -> dict[str, TableRef]:
    """Tables that msprof exported beside the framework's own, for those the latter lacks. Its timeline is that of the
    framework without the framework's events: where the framework `parsed` nothing, it is the only one."""
    exported = list_folder(folder / "mindstudio_profiler_output") if is_folder(folder) else Listing(folder)
    tables = tablefiles.find_tables(exported.path / name for name in exported.files)
    if parsed:
        tables.pop("trace", None)
    return tables


def _device_of(raw: list[Path]) -> str | None:
    for folder in raw:
        for device in list_folder(folder).find_folders(r"device_[0-9]+"):
            return device.name.partition("_")[2]
    return None


def _add_folder_name(rank: Rank) -> None:
    name = _NAME.fullmatch(rank.root.name)
    if name and rank.host is None:
        rank.host = name.group("host")


def _layout(rank: Rank, listing: Listing, output: Listing) -> str:
    name = listing.name.lower()
    databases = [path.name for path in output.find(tablefiles.DATABASE)]
    if name.endswith("_ascend_ms") or rank.framework == "mindspore" or any("mindspore" in d for d in databases):
        rank.framework = "mindspore"
        return "ascend_ms"
    if name.endswith("_ascend_pt") or rank.framework == "pytorch" or any("pytorch" in d for d in databases):
        rank.framework = "pytorch"
        return "ascend_pt"
    return "files"
