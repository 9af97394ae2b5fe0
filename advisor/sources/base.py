"""What a source hands on: ranks with references to tables, nothing read until a fact asks for it.

A layout module (`ascend.py`, `legacy.py`, `cluster_output.py`, …) recognises a folder, names its ranks and says which
file holds which canonical table. `Rank.read` calls the right reader, keeps what was readable and notes every problem.
Everything here can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from advisor.model import Parallelism, Problem, Source
from advisor.sources.headings import beginning_of, keys_of
from advisor.sources.readers import read_tables
from advisor.sources.reference import TableRef

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
_STEPWISE = frozenset(("steps", "step_phases", "cluster_phases"))
"""Tables with one row a step."""


@dataclass
class Rank:
    """One rank of a profile: who it is, what it has. `read` results are cached by table and columns."""

    rank: int
    root: Path
    tables: dict[str, TableRef] = field(default_factory=dict)
    layout: str = "files"
    framework: str = "unknown"
    rank_known: bool = True
    device: str | None = None
    devices: int = 1
    """Devices that its process drives, this one among them: what its host did was for all of them."""
    host: str | None = None
    info: dict[str, Any] = field(default_factory=dict)
    """profiler_info and profiler_metadata as found: settings, versions, environment (see sources/metadata.py)."""
    info_files: dict[str, Path] = field(default_factory=dict)
    """profiler_info, profiler_metadata -> the file (or database) that holds it."""
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Communication groups: name (or hash) -> global ranks."""
    unparsed: tuple[Path, ...] = ()
    """Raw data that nothing has parsed yet (PROF_* or FRAMEWORK without output)."""
    databases: tuple[Path, ...] = ()
    """Whether a table is read from them or not: what their rows show is told with the rank."""
    problems: list[Problem] = field(default_factory=list)
    base: Path = Path()
    """The profile folder the user named; problems and sources name files relative to it."""
    held: dict[Path, bytes] = field(default_factory=dict, repr=False, compare=False)
    """Files that had to be read to recognise the profile, for those who read their tables."""
    _told: set[Problem] = field(default_factory=set, repr=False, compare=False)
    _cache: dict[Hashable, object] = field(default_factory=dict, repr=False, compare=False)

    def has(self, table: str) -> bool:
        return table in self.tables

    def relative(self, path: Path) -> str:
        try:
            return path.relative_to(self.base).as_posix()
        except ValueError:
            return path.name

    def note(self, file: str, problem: str, doubted: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> None:
        """Tells a problem of a file once; `doubted` are the tables that cannot be relied on because of it, `failed` the
        families of facts that were not measured."""
        entry = Problem(file, problem, doubted=doubted, failed=failed)
        if len(self._told) != len(self.problems):
            self._told = set(self.problems)
        if entry not in self._told:
            self.problems.append(entry)
            self._told.add(entry)

    def note_path(self, path: str, problem: str, doubted: tuple[str, ...] = ()) -> None:
        """`note` for readers, which know a file by its path."""
        self.note(self.relative(Path(path)), problem, doubted)

    def read(self, table: str, columns: Iterable[str] | None = None) -> pd.DataFrame | None:
        """The canonical table, or None where the rank has no such file or nothing in it was readable."""
        reference = self.tables.get(table)
        if reference is None:
            return None
        wanted = None if columns is None else tuple(columns)
        if (table, None) in self._cache:
            wanted = None
        return self.once((table, wanted), lambda: self._read(reference, wanted))

    def _read(self, reference: TableRef, wanted: tuple[str, ...] | None) -> pd.DataFrame | None:
        """Reads a table; those that the same reading gives are kept beside it."""
        found = read_tables(replace(reference, held=self.held), wanted, self.note_path)
        for name, frame in found.items():
            known = self.tables.get(name, reference)
            if (known.reader, known.paths) != (reference.reader, reference.paths):
                continue
            if len(found) > 1:
                self._cache[name, None] = frame
            if frame is None or frame.empty:
                files = {self.relative(path) for path in reference.paths}
                self.problems = [replace(p, lost=(*p.lost, name)) if p.file in files else p for p in self.problems]
        frame = found[reference.table]
        return frame if frame is None or reference.table not in _STEPWISE else self._each_step_once(frame, reference)

    def _each_step_once(self, frame: pd.DataFrame, reference: TableRef) -> pd.DataFrame:
        """One row for each step: of rows that bear the same one with other numbers only one can be this rank's, of this
        run."""
        again = frame.duplicated("step") if "step" in frame else None
        if again is None or not again.any():
            return frame
        text = f"{int(again.sum())} rows bear the step of another row, with other numbers; the first of each was used"
        self.note_path(str(reference.paths[0]), text, (reference.table,))
        once: pd.DataFrame = frame[~again].reset_index(drop=True)
        return once

    def once(self, key: Hashable, make: Callable[[], T | None]) -> T | None:
        """What `make` returns, made once and kept until the rank forgets. Where it fails it is not tried again: the
        first who asked tells why, all others get None."""
        if key not in self._cache:
            self._cache[key] = None
            self._cache[key] = make()
        return cast("T | None", self._cache[key])

    def forget(self) -> None:
        """Drops what was read and kept: reductions hold what is needed."""
        self._cache.clear()
        self.held.clear()

    def source(self, table: str, *columns: str, steps: Iterable[str] = ()) -> Source:
        """Where a fact from this table was read, for its evidence. `columns` are canonical names; `facts/origins.py`
        puts what the file calls them in their place."""
        return Source(self.relative(self.tables[table].paths[0]), columns, tuple(steps), table=table)

    def headings(self, table: str, *columns: str) -> tuple[str, ...]:
        """What users know columns of a table by, for words about a file."""
        from advisor.tables import TABLES

        known = TABLES[table]
        return tuple((known.column(name).headings or (name,))[0] for name in columns)

    def source_of_info(self, entry: str, *columns: str) -> Source | None:
        """Where an entry of `info_files` was read, with those of its keys that it has; None where the rank has none."""
        path = self.info_files.get(entry)
        if path is None:
            return None
        beginning = self.once((beginning_of, path), lambda: beginning_of(path)) or ()
        return Source(self.relative(path), keys_of(beginning, columns))


MOST_FILES = 1000
"""Files named where many have the same problem."""


def say_once(problems: Iterable[Problem]) -> list[Problem]:
    """Problems by file; those that three files or more have alike are one, which names the others too."""
    files: dict[str, list[str]] = {}
    for entry in problems:
        files.setdefault(entry.problem, []).append(entry.file)
    told = []
    for text, found in files.items():
        first, *others = sorted(set(found))
        if len(others) < 2:
            told += [Problem(file, text) for file in (first, *others)]
            continue
        told.append(Problem(first, text, tuple(others[:MOST_FILES])))
    return sorted(told, key=lambda p: (p.file, p.problem))


@dataclass
class Profile:
    """Everything recognised under the paths a user named."""

    path: str
    ranks: list[Rank] = field(default_factory=list)
    layout: str = "files"
    framework: str = "unknown"
    world_size: int | None = None
    world_is_told: bool = False
    """The size was read somewhere; else it is the highest rank at hand, and more may have taken part."""
    world_is_stated: bool = False
    """A file gives the size as such; the groups of some ranks show how many there are at least."""
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parallelism: Parallelism = field(default_factory=Parallelism)
    versions: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    settings: list[dict[str, Any]] = field(default_factory=list)
    """Profiler configurations found, one a rank (schedule, level, activities, …)."""
