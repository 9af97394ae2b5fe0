"""What msprof exports by itself, without a framework's view of it: PROF_*/mindstudio_profiler_output, and of older
versions PROF_*/device_<n>/timeline and summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing, list_folder
from advisor.sources.layouts import ascend
from advisor.sources.layouts.devices import split_devices
from advisor.sources.metadata import Metadata
from advisor.sources.older import device_timelines
from advisor.sources.text import tablefiles

OUTPUT = "mindstudio_profiler_output"
_RECORDING = r"PROF_.+|OPPROF_.+|.+_ascend_(?:ms|pt)"
_DEVICE = r"device_[0-9]+"
_TIMELINE, _SUMMARY = "timeline", "summary"


def judge(listing: Listing) -> Judgement:
    """Whether the folder is a PROF_* folder or the export of one."""
    if listing.name == OUTPUT:
        return Judgement("msprof", True, f"it is an {OUTPUT} folder")
    if OUTPUT in listing.folders:
        return Judgement("msprof", True, f"it contains {OUTPUT}")
    if re.match(r"PROF_.", listing.name):
        if inner := listing.find_folders(_RECORDING):
            return Judgement("msprof", False, f"it is called PROF_* and gathers recordings such as {inner[0].name}")
        return Judgement("msprof", True, "it is a PROF_* folder")
    return Judgement("msprof", False, f"its name is not PROF_*, and it contains no {OUTPUT}")


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """Each device in this folder as a rank. A PROF_* folder that nothing exported is raw data."""
    if not judge(listing).recognised:
        return []
    root, devices = listing.path, listing.find_folders(_DEVICE)
    closed = [*_closed(devices)]
    if older := _older(listing, base):
        _tell(older[0], closed)
        return older
    export = list_folder(root / OUTPUT) if OUTPUT in listing.folders else listing
    rank = Rank(0, root, base=base, rank_known=False, layout="msprof")
    note = rank.note_path
    if export.problem:
        note(str(export.path), export.problem)
    rank.tables = tablefiles.find_tables(export.path / name for name in export.files)
    databases = [*listing.find(tablefiles.DATABASE), *export.find(tablefiles.DATABASE)]
    metadata = Metadata()
    identity = ascend.add_databases(rank, databases, metadata, note)
    ascend.add_identity(rank, metadata, identity, databases)
    rank.device = rank.device or (devices[0].name.partition("_")[2] if devices else None)
    if not rank.tables:
        rank.unparsed = () if closed else (root,)
    _tell(rank, closed)
    ranks = split_devices(rank)
    for one in ranks:
        ascend.link_ranks(one)
    return ranks


def _closed(devices: list[Path]) -> Iterator[Listing]:
    """Folders of devices, and those in them into which an older msprof exported, that cannot be opened."""
    for path in devices:
        device = list_folder(path)
        exported = (list_folder(path / name) for name in (_TIMELINE, _SUMMARY) if name in device.folders)
        yield from (folder for folder in (device, *exported) if folder.problem)


def _tell(rank: Rank, closed: list[Listing]) -> None:
    """What an older msprof exported lies in these folders, if anything."""
    for folder in closed:
        rank.note_path(str(folder.path), folder.problem)


def _older(listing: Listing, base: Path) -> list[Rank]:
    """One rank for each device that an older msprof exported into its own folder; none where it wrote a newer one."""
    if listing.name == OUTPUT or OUTPUT in listing.folders:
        return []
    ranks = []
    for folder in listing.find_folders(_DEVICE):
        timeline, summary = list_folder(folder / _TIMELINE), list_folder(folder / _SUMMARY)
        rank = Rank(0, folder, base=base, rank_known=False, layout="msprof", device=folder.name.partition("_")[2])
        rank.tables = tablefiles.find_tables(summary.path / name for name in summary.files)
        paths = [timeline.path / name for name in device_timelines.find_timelines(timeline.files)]
        if paths and "kernels" not in rank.tables:
            kept, others = device_timelines.of_one_model(paths)
            if others:
                names = ", ".join(others)
                text = f"holds iterations of several models, each a loop of its own; left out: model {names}"
                rank.note(rank.relative(timeline.path), text)
            rank.tables.update(device_timelines.references(kept))
        if rank.tables:
            ascend.link_ranks(rank)
            ranks.append(rank)
    return ranks
