"""The layouts that are known, in the order in which they are asked. A new one is a module here and a line below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing
from advisor.sources.layouts import ascend, cluster_output, legacy, loose, msprof, opprof


class Layout(Struct, frozen=True):
    """How profiles of one kind are recognised."""

    judge: Callable[[Listing], Judgement]
    """Whether a folder is of this layout, and why."""
    recognise: Callable[[Listing, Path], list[Rank]]
    """The ranks of such a folder; the path is the one that files are named relative to."""
    holds_all: bool = True
    """The folder holds all there is of its ranks: nothing below it is looked at."""
    by_files: bool = False
    """Known by single files, and therefore asked only where no folder was recognised."""
    single: bool = False
    """Its files mean something one by one, where a user names them."""
    knows: Callable[[str], bool] = lambda name: False
    """Whether a file's name is one of this layout's."""


LAYOUTS: tuple[Layout, ...] = (
    Layout(ascend.judge, ascend.recognise),
    Layout(msprof.judge, msprof.recognise),
    Layout(opprof.judge, opprof.recognise),
    Layout(cluster_output.judge, cluster_output.recognise, holds_all=False, single=True),
    Layout(legacy.judge, legacy.recognise, by_files=True, single=True, knows=legacy.is_known),
    Layout(loose.judge, loose.recognise, by_files=True, knows=loose.is_known),
)


def is_known(name: str) -> bool:
    """Whether a file of this name is one of a profile's."""
    return any(layout.knows(name) for layout in LAYOUTS)
