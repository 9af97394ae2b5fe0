"""What `msprof op` writes about one operator: OPPROF_* with OpBasicInfo.csv, PipeUtilization.csv, L2Cache.csv, ….

One operator launched alone: how long it took, on how many cores, and which of their units were busy. There are no
steps, no gaps and no other operators in it.
"""

from __future__ import annotations

from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing
from advisor.sources.reference import TableRef
from advisor.sources.streams.one_operator import BASIC


def judge(listing: Listing) -> Judgement:
    """Whether the folder is a result of `msprof op`."""
    if BASIC in listing.files:
        return Judgement("msprof", True, f"it holds {BASIC}: one operator measured by msprof op")
    return Judgement("msprof", False, f"it holds no {BASIC}")


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """The operator of this folder as a rank with one kernel."""
    if not judge(listing).recognised:
        return []
    rank = Rank(0, listing.path, base=base, rank_known=False, layout="msprof")
    rank.tables["kernels"] = TableRef("kernels", (listing.path / BASIC,), "kernels.opprof")
    return [rank]
