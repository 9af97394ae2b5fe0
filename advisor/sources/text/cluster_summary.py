"""ClusterTimeSummary: the cluster analyser's newer account of each rank's steps, in the columns of its older one.

It is a table of cluster_analysis.db, or cluster_time_summary_*.csv in a folder of that name. Its idle time leaves out
the copies that run beside nothing else; the older account, and everything else here, counts them as idle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor.sources.folders import Listing, list_folder
from advisor.sources.reference import Note

TABLE, FILE = "ClusterTimeSummary", r"cluster_time_summary(?:_[0-9]+)?\.csv"
_STEPS = {
    "index": "rank", "step": "step", "computing": "computation",
    "communication_not_overlapped": "communicationnotoverlapcomputation",
    "overlapped": "communicationoverlapcomputation", "communication": "communication", "stage": "steptime",
}  # fmt: skip
"""Column of the older table of steps -> the summary's, without what only spells it; times in microseconds."""
_IDLE, _COPIES = "free", "memorynotoverlapcomputationcommunication"

Row = Mapping[str, Any]


def find_summary(listing: Listing) -> Path | None:
    """The newest summary among these files, or in the folder that the analyser makes for it among these."""
    inside = [path for folder in listing.find_folders(TABLE) for path in list_folder(folder).find(FILE)]
    return next(reversed([*inside, *listing.find(FILE)]), None)


def is_summary(path: Path) -> bool:
    """Whether a file is such a summary, by its name."""
    return re.fullmatch(FILE, path.name, re.IGNORECASE) is not None


def read_summary(path: Path, note: Note) -> Iterator[Row]:
    """The rows of the file by their columns' names."""
    from advisor.sources.text.csvfiles import read_rows

    rows = iter(read_rows(path, note))
    heading = next(rows, [])
    for cells in rows:
        yield dict(zip(heading, cells, strict=False))


def as_steps(rows: Iterable[Row]) -> list[Row]:
    """Each row in the columns of the older table."""
    found: list[Row] = []
    for row in rows:
        told = {_plain(name): value for name, value in row.items()}
        steps = {name: told[own] for name, own in _STEPS.items() if own in told}
        if _IDLE in told:
            steps["free"] = _sum(told[_IDLE], told.get(_COPIES))
        found.append({"type": "rank", **steps})
    return found


def _plain(name: str) -> str:
    """A column's name without its unit and whatever the text form puts between its words."""
    return re.sub(r"\(.*\)|[^a-z]", "", name.lower())


def _sum(idle: Any, copies: Any) -> Any:
    """Idle time with the copies; as it stands where one of them is no number."""
    try:
        return float(idle) + float(copies or 0.0)
    except (TypeError, ValueError):
        return idle
