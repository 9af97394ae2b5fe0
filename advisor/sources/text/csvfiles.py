"""CSV files of every version, whatever happened to them on the way.

Columns are found by their headings, never by position. A damaged file gives what is still readable and says what is
lost; nothing is guessed into a wrong column.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.sources.frames import ABSENT, LONGEST_STEP, build_frame, to_step, wanted_columns
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.plaincsv import read_plain
from advisor.sources.text.textfiles import ends_inside_character, is_no_whole_text, lines_of, open_text
from advisor.tables import LONGEST_HEADING, MOST_COLUMNS, NUMBERED, TABLES, Column, Table

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_FIELD = 1 << 30
_REPEATING = ("memory", "module_memory", "kernels", "framework_operators")
"""Tables in which equal rows are nothing odd (samples, calls), or are told apart elsewhere."""
_NAMED_ONCE = ("operator_types", "host_api")
"""Tables of sums, which have one row for each name on each device, of each model."""
_NAMES = re.compile(r"(id|name)$")
_UNITS = {
    "ns": 1e-3, "us": 1.0, "μs": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6,
    "b": 1.0, "byte": 1.0, "bytes": 1.0, "kb": 1024.0, "mb": 1024.0**2, "gb": 1024.0**3,
    "%": 1.0,
}  # fmt: skip
_QUANTITIES = ("_us", "_bytes")
"""Ends of canonical names whose unit is 1 in `_UNITS`."""
_UNIT = re.compile(r"\((" + "|".join(map(re.escape, _UNITS)) + r")\)$")
_SHOWN = 8
_ROWS_COMPARED = 1_000_000
"""Rows among which repeated ones are sought: each costs memory until the file has been read."""


def split_heading(heading: str) -> tuple[str, str]:
    """(key, unit): `"Start Time(us)\\t"` and `start_time(us)` are both ("starttime", "us")."""
    key = re.sub(r"[\s_\-\"'\ufeff\x00]", "", heading).lower()
    unit = _UNIT.search(key)
    return (key[: unit.start()], unit.group(1)) if unit else (key, "")


class Match(Struct, frozen=True):
    """A canonical column found in a file: where, under which heading, and file value × scale = canonical value."""

    position: int
    heading: str
    scale: float


def match_columns(columns: Sequence[Column], heading: Sequence[str]) -> dict[str, Match]:
    """Canonical name -> match, for those columns that the heading row has. Units in brackets may differ."""
    places: dict[str, list[int]] = {}
    split = [split_heading(cell) for cell in heading]
    for position, (key, _) in enumerate(split):
        places.setdefault(key, []).append(position)
    found: dict[str, Match] = {}
    for column in columns:
        reference = split_heading(column.headings[0])[1] if column.headings else ""
        for known in column.headings:
            key, unit = split_heading(known)
            candidates = places.get(key)
            if not candidates:
                continue
            position = next((p for p in candidates if split[p][1] == unit), candidates[0])
            scale = _scale(column, reference, split[position][1])
            found[column.name] = Match(position, heading[position].strip("\ufeff \t\"'"), scale)
            break
    return found


def _scale(column: Column, reference: str, given: str) -> float:
    """Canonical value of one of the file. Headings that name no unit in any version are told one by those who export
    tables: the column's own name says in which unit it is then canonical."""
    if not given:
        return column.scale
    if reference:
        return column.scale * _UNITS[given] / _UNITS[reference]
    return _UNITS[given] if column.name.endswith(_QUANTITIES) else column.scale


def _lines(path: Path, note: Note) -> Iterator[str]:
    holes = 0
    with open_text(path) as stream:
        for line in lines_of(stream):
            holes += "\x00" in line
            yield line.replace("\x00", "") if "\x00" in line else line
    if holes:
        note(str(path), f"{holes} lines hold zero bytes, as where a block never reached the disk; that part is lost")


def _delimiter(line: str) -> str:
    """Commas, unless another mark is far more frequent: cells of comma-separated files often end in tabs."""
    other = max(";\t", key=line.count)
    return other if line.count(other) > 2 * line.count(",") else ","


_GROUPED = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_POINTED = re.compile(r"-?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)\.[0-9]+")
_COMMA = re.compile(r"-?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+(?:E[+-]?[0-9]+)?", re.IGNORECASE)
_ROWS_SAMPLED = 200
"""Rows by which it is decided what a comma in a number means."""


def _with_plain_numbers(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Rows of a file that no commas separate, whose numbers are as programs write them: spreadsheets write a comma for
    the decimal point where their language does, or group the thousands by it. A file has but one of these habits."""
    heading = next(rows, None)
    if heading is None:
        return
    yield heading
    lists = {place for place, cell in enumerate(heading) if "shape" in cell.lower()}
    sample = list(itertools.islice(rows, _ROWS_SAMPLED))
    cells = [cell.strip() for row in sample for place, cell in enumerate(row) if place not in lists and "," in cell]
    pointed = any(_POINTED.fullmatch(cell.strip()) for row in sample for cell in row)
    habit = _GROUPED if pointed else _COMMA
    if not any(habit.fullmatch(cell) for cell in cells):
        yield from sample
        yield from rows
        return
    marks = {ord(","): None} if pointed else {ord("."): None, ord(","): "."}
    for row in itertools.chain(sample, rows):
        yield [
            cell.translate(marks) if place not in lists and "," in cell and habit.fullmatch(cell.strip()) else cell
            for place, cell in enumerate(row)
        ]


def read_rows(path: Path, note: Note) -> Iterator[list[str]]:
    """The rows of a CSV file, heading first, blank lines left out.

    A quotation mark that is never closed would swallow the rest of the file; from such a line on, quotes are text.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    lines = _lines(path, note)
    first = next((line for line in lines if line.strip("\ufeff \t\r\n")), None)
    if first is None:
        return
    mark = _delimiter(first)
    rows = _rows_between(mark, first, lines, path, note)
    yield from rows if mark == "," else _with_plain_numbers(rows)


def _rows_between(mark: str, first: str, lines: Iterator[str], path: Path, note: Note) -> Iterator[list[str]]:
    opened: list[str] = []

    def feed() -> Iterator[str]:
        for line in itertools.chain([first], lines):
            opened.append(line)
            yield line

    rows = csv.reader(feed(), delimiter=mark)
    width = 0
    for row in rows:
        swallowed = len(opened)
        width = width or len(row)
        if swallowed > 1 and len(row) != width and _never_closed(opened):
            note(str(path), "a quotation mark is opened and never closed; the lines after it were read without quotes")
            yield from csv.reader(opened, delimiter=mark, quoting=csv.QUOTE_NONE)
            return
        opened.clear()
        if row and (row[0].strip() or any(map(str.strip, row))):
            yield row


def is_too_wide(heading: Sequence[str], path: Path, note: Note) -> bool:
    """Whether the heading has more cells than any table of a profile; noted, as the file cannot be used."""
    if len(heading) <= MOST_COLUMNS:
        return False
    note(str(path), f"its heading has {len(heading)} cells; no table of a profile has so many columns")
    return True


def _never_closed(lines: Sequence[str]) -> bool:
    return sum(line.count('"') for line in lines) % 2 == 1


def ends_inside_row(path: Path, short: bool) -> bool:
    """Whether the file's last row was cut: it is `short` of cells and has no line end, in any encoding, or it ends
    within a character."""
    with path.open("rb") as stream:
        first, size = stream.read(4), stream.seek(0, 2)
        stream.seek(max(0, size - 4))
        end = stream.read()
    open_end = bool(end) and not end.rstrip(b"\x00").endswith((b"\n", b"\r"))
    return is_no_whole_text(first, size) or (open_end and (short or ends_inside_character(end)))


class Once:
    """Tells rows that were there before, so that none counts twice."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self.again = 0

    def is_new(self, row: Sequence[str]) -> bool:
        """Whether no equal row came before."""
        key = hash(tuple(row))
        if key in self._seen:
            self.again += 1
            return False
        if len(self._seen) < _ROWS_COMPARED:
            self._seen.add(key)
        return True

    def tell(self, file: str, note: Note) -> None:
        if self.again:
            note(file, f"{self.again} rows stand there more than once; each was used once")


def read_columns(
    path: Path, note: Note, pick: Callable[[list[str]], list[int] | None], *, once: bool = True
) -> tuple[list[list[str | None]], int] | None:
    """(cells by picked column, rows) of one file; `pick` gets the heading and returns positions or None to give up.

    `once` leaves out rows that repeat an earlier one in every cell.
    """
    file = str(path)
    plain = read_plain(path, once=once)
    rows = iter(()) if plain else read_rows(path, note)
    heading = plain.heading if plain else next(rows, None)
    if heading is None:
        note(file, "is empty")
        return None
    if is_too_wide(heading, path, note):
        return None
    positions = pick(heading)
    if positions is None:
        return None
    width, picked = len(heading), [[] for _ in positions]  # type: tuple[int, list[list[str | None]]]
    count = short = shifted = wide = 0
    last_short, single = False, Once()
    if plain:
        picked, count = plain.columns(positions), len(plain.lines)
    for row in rows:
        if once and not single.is_new(row):
            continue
        if len(row) != width:
            if len(row) > width and any(cell.strip() for cell in row[width:]):
                shifted += 1
                continue
            short += len(row) < width
            wide += len(row) > width
        elif row == heading:
            continue
        last_short = len(row) < width
        count += 1
        for cells, position in zip(picked, positions, strict=True):
            cells.append(row[position] if position < len(row) else None)
    if count and ends_inside_row(path, last_short):
        for cells in picked:
            cells.pop()
        count, short = count - 1, short - last_short
        note(file, f"is cut short: the last row ends in the middle and was left out, {count} rows were kept")
    single.tell(file, note)
    if shifted:
        note(file, f"{shifted} rows have more cells than the heading has columns and were left out, {count} were kept")
    if 0 < 2 * wide < count:  # where most do, whoever wrote them ends each row with a mark
        note(file, f"{wide} of {count} rows have an empty cell more than the heading has columns: cells were moved")
    if short:
        note(file, f"{short} of {count} rows have fewer cells than the heading; the missing cells are taken as unknown")
    return picked, count


def read_file(table: Table, path: Path, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The canonical frame of one file, None where it has no row or none of the table's columns."""
    file = str(path)
    matches: dict[str, Match] = {}
    names: list[int] = []

    def pick(heading: list[str]) -> list[int] | None:
        known = match_columns(table.columns, heading)
        if not known:
            note(file, f"has none of the columns of this kind of file; found: {_some(heading)}")
            return None
        for column in table.columns:
            if column.required and column.name not in known:
                note(file, f"lacks the column {column.headings[0]}; found: {_some(heading)}")
        for length in (len(cell) for cell in heading if len(cell) > LONGEST_HEADING):
            note(file, f"its heading has a cell of {length} characters; what stands below it was not read")
        keys = [split_heading(cell) for cell in heading]
        for name in sorted({heading[m.position] for m in known.values()}):
            times = keys.count(split_heading(name))
            if times > 1:
                note(file, f"has the column {name.strip()} {times} times; the first was used")
        wanted = {column.name for column in wanted_columns(table, columns)}
        matches.update((name, match) for name, match in known.items() if name in wanted)
        named = all(column.name in known for column in table.columns if column.required and column.dtype == "str")
        if table.name in _NAMED_ONCE and named:  # rows without a name repeat none
            texts = {
                known[column.name].position
                for column in table.columns
                if column.name in known and column.dtype == "str"
            }
            names.extend(sorted(texts.union(i for i, (key, _) in enumerate(keys) if _NAMES.search(key))))
        return [*(match.position for match in matches.values()), *names]

    read = read_columns(path, note, pick, once=table.name not in _REPEATING)
    if read is None:
        return None
    picked, count = read
    if not count:
        note(file, "has a heading but no rows")
        return None
    if names:
        sole = told_once(list(zip(*picked[-len(names) :], strict=True)), file, table.name, note)
        picked = [list(itertools.compress(cells, sole)) for cells in picked[: len(matches)]]
        count = sum(sole)
        if not count:
            return None
    data = dict(zip(matches, picked, strict=True)) or {table.columns[0].name: [None] * count}
    for name, cells in data.items():
        if name.endswith("_us") and count and not any(cell is not None and cell.strip() for cell in cells):
            note(file, f"has nothing in the column {matches[name].heading}")
    if table.name == "operator_types" and "core" in data:
        lost = sum((cell or "").strip().lower() in ABSENT for cell in data["core"])
        if lost:
            note(file, f"{lost} of {count} operator types name no core: what ran on the AI CPU is known of the others")
    return build_frame(
        table, data, columns, note, file,
        headings={name: match.heading for name, match in matches.items()},
        scales={name: match.scale for name, match in matches.items()},
    )  # fmt: skip


def told_once(names: Sequence[Hashable], file: str, table: str, note: Note) -> list[bool]:
    """Which rows of a table of sums alone bear their name. Of those that share one nobody knows whose sums they are, or
    of which run: they are told and not to be used."""
    times = Counter(names)
    sole = [times[name] == 1 for name in names]
    if not all(sole):
        note(file, f"{sole.count(False)} rows bear the name of another row, and were left out", (table,))
    return sole


def _some(heading: Sequence[str]) -> str:
    names = [cell.strip("\ufeff \t")[:40] for cell in heading]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def read_files(
    table: Table, paths: Sequence[Path], columns: Sequence[str] | None, note: Note, device: str | None = None
) -> pd.DataFrame | None:
    """The frames of all slices of a table, one under the other; the rows of one device where several share them."""
    import pandas as pd

    wanted = columns if device is None or columns is None else (*columns, "device")
    frames = [frame for path in paths if (frame := read_file(table, path, wanted, note)) is not None]
    if not frames:
        return None
    found: pd.DataFrame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    if device is None:
        return found
    own: pd.DataFrame = found[found["device"].fillna(device).str.strip() == device].reset_index(drop=True)
    return own if columns is None else own.drop(columns=["device"])


@reader("csv.table")
def read_table_files(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Any table whose columns carry their headings in `advisor/tables.py`."""
    return read_files(TABLES[reference.table], reference.paths, columns, note, reference.options.get("device"))


@reader("csv.steps")
def read_steps(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """step_trace_time.csv; a profile without steps leaves the name empty. Several rows are several steps even where
    nothing names them: they are numbered in their order."""
    frame = read_files(TABLES["steps"], reference.paths, columns, note, reference.options.get("device"))
    if frame is None:
        return None
    if "step" in frame and len(frame) > 1 and frame["step"].isna().all():
        note(str(reference.paths[0]), "does not name its steps; its rows are numbered in their order")
        frame["step"] = [f"{NUMBERED}{row}" for row in range(1, len(frame) + 1)]
    elif "step" in frame:
        unnamed = frame["step"].isna()
        frame["step"] = [to_step(name) for name in frame["step"]]
        sums = unnamed | ~frame["step"].str.fullmatch("[0-9]+")
        if sums.any() and (~sums).sum() > 1:
            note(str(reference.paths[0]), f"{int(sums.sum())} rows name no step while the others do; left out as sums")
            frame = frame[~sums].reset_index(drop=True)
        odd = frame["step"].str.len() > LONGEST_STEP
        if odd.any():
            note(str(reference.paths[0]), f"{int(odd.sum())} rows name no step that anybody would; left out")
            frame = frame[~odd].reset_index(drop=True)
    return frame
