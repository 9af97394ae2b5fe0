"""Which files hold a table and who reads them, how a reader is called and tells what is wrong with its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd

Note = Callable[[str, str], None]
"""note(file, problem): how what is wrong with input is told."""


class Doubting(Protocol):
    """A `Note` that can be told what is in doubt as well: what readers are given."""

    def __call__(self, file: str, problem: str, doubted: tuple[str, ...] = (), /) -> None:
        """`doubted` are the tables that cannot be relied on because of it."""


Frames = dict[str, "pd.DataFrame | None"]
"""Table -> canonical frame, None where nothing of it was readable."""

Reader = Callable[["TableRef", "Sequence[str] | None", Doubting], "pd.DataFrame | Frames | None"]
"""read(reference, wanted columns or None for all, note) -> canonical frame, or None where nothing was readable; the
frames of several tables, with all their columns, where one reading of a file gives them all."""


@dataclass(frozen=True)
class TableRef:
    """Where one rank's canonical table lies: files in reading order and the reader that understands them."""

    table: str
    paths: tuple[Path, ...]
    reader: str
    """Name of a reader registered in `sources/readers.py`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    held: Mapping[Path, bytes] = field(default_factory=dict, repr=False, compare=False)
    """Files that were read already, when the profile was recognised: nothing is read twice."""
