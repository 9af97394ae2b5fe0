"""Which files hold a table and who reads them, how a reader is called and tells what is wrong with its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd


class Note(Protocol):
    """How readers tell what is wrong with their input: the file, the problem."""

    def __call__(self, file: str, problem: str, doubted: tuple[str, ...] = (), /) -> None:
        """`doubted` are the tables that cannot be relied on because of it."""


def nothing(file: str, problem: str, doubted: tuple[str, ...] = (), /) -> None:
    """A `Note` for those who look at a file that another reader reads as well and tells of."""


class Notes:
    """A `Note` that keeps what it is told, for whoever knows later whom it concerns."""

    def __init__(self) -> None:
        self._told: list[tuple[str, str, tuple[str, ...]]] = []

    def __call__(self, file: str, problem: str, doubted: tuple[str, ...] = (), /) -> None:
        """Keeps it."""
        self._told.append((file, problem, doubted))

    def holds(self, text: str) -> bool:
        """Whether something was told in these words."""
        return any(text in problem for _, problem, _ in self._told)

    def tell(self, note: Note, *, doubting: bool = True) -> None:
        """Passes all of it on, with or without what is in doubt because of it."""
        for file, problem, doubted in self._told:
            note(file, problem, doubted if doubting else ())


Frames = dict[str, "pd.DataFrame | None"]
"""Table -> canonical frame, None where nothing of it was readable."""

Reader = Callable[["TableRef", "Sequence[str] | None", Note], "pd.DataFrame | Frames | None"]
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
