"""What `msprof op` writes about one operator: OPPROF_* with OpBasicInfo.csv, PipeUtilization.csv, L2Cache.csv, ….

One operator launched alone: how long it took, on how many cores, and which of their units were busy. There are no
steps, no gaps and no other operators in it. Several launches lie in numbered folders, and their files carry a stamp.
"""

from __future__ import annotations

from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing, file_paths
from advisor.sources.reference import TableRef
from advisor.sources.streams.one_operator import PIPES, kind_of, main_files, types_in
from advisor.sources.text.tablefiles import tables_of_file

READER = "kernels.opprof"
SIMULATION = (
    "it holds a simulation of one operator (msprof op simulator): the instructions of single cores, which MindStudio "
    "Insight shows; no device was measured, `msprof op` on one does that"
)
BESIDE = "lies beside what msprof op measured of one operator, and was left out: judge this file by itself"
_CORE = r"core[0-9]+\.(vec|cube)core[0-9]+"


def judge(listing: Listing) -> Judgement:
    """Whether the folder is a result of `msprof op`."""
    if main := main_files([listing.path / name for name in listing.files if kind_of(name)]):
        return Judgement("msprof", True, f"it holds {main[0].name}: one operator measured by msprof op")
    if listing.find_folders(_CORE):
        return Judgement("msprof", False, SIMULATION)
    return Judgement("msprof", False, "it holds no OpBasicInfo.csv and no other table of msprof op")


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """The operator of this folder as a rank with one kernel for each launch."""
    main = main_files([listing.path / name for name in listing.files if kind_of(name)])
    if not main:
        return []
    rank = Rank(0, listing.path, base=base, rank_known=False, layout="msprof")
    refer(rank, main)
    for name in listing.files:
        if not kind_of(name) and "kernels" in (tables_of_file(name, loose=True) or ((),))[0]:
            rank.note_path(str(listing.path / name), BESIDE)
    return [rank]


def operators_of(rank: Rank) -> set[str]:
    """The operators of a collection by name; empty where nothing tells them."""
    paths = rank.tables["kernels"].paths
    return set().union(*map(types_in, paths))


def counters_of(rank: Rank) -> set[str]:
    """What the collection tells of its operators: PipeUtilization, Memory, …, and OpBasicInfo where it names them."""
    folders = {path.parent for path in rank.tables["kernels"].paths}
    return {kind for folder in folders for path in file_paths(folder) if (kind := kind_of(path.name))}


def counts_units(rank: Rank) -> bool:
    """Whether the collection tells which units were busy."""
    return PIPES in counters_of(rank)


def refer(rank: Rank, paths: list[Path]) -> None:
    """Makes these launches the rank's kernels."""
    rank.tables["kernels"] = TableRef("kernels", tuple(paths), READER)
    rank.tables["operator_access"] = TableRef("operator_access", tuple(paths), "opprof.access")
