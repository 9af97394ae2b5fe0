"""From cells as found (text, JSON numbers, database values) to the canonical frame of a table.

Every wanted column is present, in the table's order: float64 with NaN, nullable Int64 for `int` and `ns`, objects for
texts and tuples. What is no usable measurement becomes NA, and one note per column and kind of defect says how many.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.basics.arrays import Floats, Ints
from advisor.sources.coded import Coded
from advisor.sources.reference import Note
from advisor.tables import LARGEST, LONGEST_TEXT, Column, Table

if TYPE_CHECKING:
    import pandas as pd

NoneType = type(None)
_INT64 = 1 << 63
ABSENT = frozenset(("", "n/a", "na", "-", "--", "none", "null"))
"""Cells, in lower case, that say that nothing was measured."""
_SIGNED = frozenset(("exposed_without_receive_us", "overlapped_us", "stage_us"))
"""Columns the profiler itself computes as a difference, so that a negative value is no defect."""
_REMAINDER = 1e-6
"""What may be left below nothing where a writer subtracts sums of fractions that are equal: none of its own digits."""
_LAST_DIGIT = 1e-24
"""No less is left of such sums: doubles of a nanosecond and more have their last digit above it."""
_INSTANTS = ("start_us", "end_us")
"""Columns of instants: counted from 1970 they have a digit more than any duration."""
_MEASURES = ("_us", "_ns", "_bytes", "count", "packets", "operations", "share")

_COUNTED = ("count", "packets", "operations")
"""Whole numbers, which no subtraction leaves below nothing."""

_REASONS = {
    "text": "not numbers",
    "not finite": "NaN or infinite",
    "negative": "negative, which no time, size, count or share can be",
    "rounded": "rounded to less than a microsecond allows (a spreadsheet saved the file?)",
    "too large": "too large for a time, size or count",
    "no word": "no words, where a name should be",
    "long": f"longer than {LONGEST_TEXT} characters; only their beginning was used",
}
_WORDS = ("core", "type", "operation", "stage", "component")
"""Columns of names that no maker writes without a letter."""
_DAMAGE = ("text", "no word", "not finite", "negative", "too large")
"""Reasons no profiler gives: something damaged such a file, and its other rows may be damaged as well."""

_DIGITS = 30
"""No instant has more of them, whatever its unit."""
_BLANKS = "'\u00a0\u2009\u202f "
GROUPED = f"^-?[0-9]{{1,3}}(?:(?:,[0-9]{{3}})+[.][0-9]+|(?:[{_BLANKS}][0-9]{{3}})+(?:[.][0-9]+)?)$"
"""A number whose digits stand in groups of three, as spreadsheets show them. 12,345 is none: its comma may stand for a
decimal point."""
GROUPING = f"[,{_BLANKS}]"
"""What stands between the groups."""
_GROUPED = re.compile(GROUPED)
_GROUPING = re.compile(GROUPING)

LONGEST_STEP = 64
"""Characters of a step's name at most: what is longer is damage."""


class Unusable(ValueError):
    """A cell that holds something else than a measurement; the text names the reason."""


def wanted_columns(table: Table, columns: Iterable[str] | None) -> list[Column]:
    """The table's columns that were asked for, in the table's order."""
    if columns is None:
        return list(table.columns)
    names = set(columns)
    return [column for column in table.columns if column.name in names]


def ungrouped(text: str) -> str:
    """The digits of a number in groups of three without what stands between them; any other text as it is."""
    return _GROUPING.sub("", text) if _GROUPED.match(text.strip()) else text


def _unquoted(text: str) -> str:
    """The text without blanks and a pair of quotes that stays inside; a quote without its other belongs to it."""
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def to_float(cell: Any) -> float | None:
    """A finite number, None where the cell is empty; raises `Unusable`."""
    if cell is None:
        return None
    if isinstance(cell, (bool, list, tuple, dict)):
        raise Unusable("text")
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()) and cell.strip():
        if not _GROUPED.match(cell.strip()):
            raise Unusable("text")  # float() reads 1_000 and digits of other scripts; no profiler writes them
        cell = ungrouped(cell)
    try:
        value = float(cell)
    except OverflowError:
        raise Unusable("not finite") from None
    except (TypeError, ValueError):
        text = _unquoted(str(cell))
        if text.lower() in ABSENT:
            return None
        try:
            value = float(ungrouped(text))
        except ValueError:
            raise Unusable("text") from None
    if not math.isfinite(value):
        raise Unusable("not finite")
    return value


def to_ns(cell: Any, scale: int) -> int | None:
    """Exact integer nanoseconds of a decimal in units of `scale` ns; None where the cell is empty; raises `Unusable`.

    16 digits and 3 decimals are more than a float64 carries, so texts never pass through one.
    """
    if cell is None:
        return None
    if isinstance(cell, bool):
        raise Unusable("text")
    if isinstance(cell, int):
        return _bounded(cell * scale)
    text = _unquoted(cell) if isinstance(cell, str) else repr(cell)
    whole, _, decimals = text.partition(".")
    plain = whole.isdecimal() and whole.isascii() and len(whole) <= _DIGITS and (not decimals or decimals.isdecimal())
    if scale == 1000 and plain:
        return _bounded(int(whole) * 1000 + int((decimals + "000")[:3]))
    if text.lower() in ABSENT:
        return None
    try:
        number = Decimal(ungrouped(text))
    except (InvalidOperation, ValueError):
        raise Unusable("text") from None
    if not number.is_finite():
        raise Unusable("not finite")
    if isinstance(cell, str) and int(number.as_tuple().exponent) > 0:
        raise Unusable("rounded")
    if abs(number.adjusted()) > _DIGITS:
        raise Unusable("too large")
    return _bounded(int(number * scale))


def _bounded(number: int) -> int:
    if number < 0:
        raise Unusable("negative")
    if number >= _INT64:
        raise Unusable("too large")
    return number


def to_text(cell: Any) -> str | None:
    """The cell without blanks, tabs and the quotes that stay inside; None where it is empty or N/A."""
    if cell is None:
        return None
    text = _unquoted(str(cell))
    return None if text.lower() in ("", "n/a") else text[:LONGEST_TEXT]


def to_step(cell: Any) -> str:
    """A step's name: "step50", "50" and 50.0 are step 50; a profile without steps calls its only one "0"."""
    text = to_text(cell) or ""
    text = re.sub(r"^(?:ProfilerStep#|step[ _#]?)", "", text, flags=re.IGNORECASE)
    return re.sub(r"^([0-9]+)\.0+$", r"\1", text) or "0"


def _convert(column: Column, cells: Sequence[Any], scale: float) -> tuple[Any, Counter[str], Any]:
    """(array, defects, first bad cell) of one column: in one piece where all cells are as profilers write them, else
    cell by cell."""
    whole = _whole(column, cells, scale)
    return _each(column, cells, scale) if whole is None else (whole, Counter(), None)


def _whole(column: Column, cells: Sequence[Any], scale: float) -> Any:
    """The array of a column without any defect; None where each cell has to be looked at."""
    if not len(cells):
        return None
    if column.dtype == "str":
        return _texts(cells)
    if column.dtype not in ("float", "int", "ns"):
        return None
    if column.dtype == "ns":
        return _times(cells, int(scale))
    found = numbers(cells)
    if found is None:
        return None
    present = found[~np.isnan(found)]
    low, high = float(present.min(initial=0.0)), float(present.max(initial=0.0))
    if _measures(column) and (low < 0 or high * scale > _largest(column)):
        return None
    if column.dtype == "float":
        with np.errstate(over="ignore"):
            return found * scale
    return None if max(-low, high) >= 2**53 or (present % 1).any() else _nullable(found)


def _largest(column: Column) -> float:
    return 100 * LARGEST if column.name in _INSTANTS else LARGEST


def _measures(column: Column) -> bool:
    return column.name.endswith(_MEASURES) and column.name not in _SIGNED


def _texts(cells: Sequence[Any] | Coded) -> Any:
    told = cells.told if isinstance(cells, Coded) else cells
    if not set(map(type, told)) <= {str, NoneType}:
        return None
    known = {cell: to_text(cell) for cell in dict.fromkeys(told)}
    if any(cell is not None and len(cell) > LONGEST_TEXT for cell in known):
        return None
    if isinstance(cells, Coded):
        return Coded(cells.codes, [*map(known.__getitem__, told)]).texts()
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [*map(known.__getitem__, cells)]
    return texts


def numbers(cells: Sequence[Any]) -> Floats | None:
    """Cells that are all finite numbers, texts of such, or empty (NaN); None where any is something else."""
    if isinstance(cells, np.ndarray):
        found = np.asarray(cells, np.float64)
        return None if np.isinf(found).any() else found
    kinds = set(map(type, cells))
    texts: Sequence[Any]
    if kinds <= {str, NoneType}:
        if "".join(filter(None, cells)).translate(_NO_NUMBER):
            return None
        texts = ["nan" if cell is None or not cell or cell.isspace() else cell for cell in cells]
    elif kinds <= {int, float, NoneType}:
        texts = ["nan" if cell is None else cell for cell in cells] if NoneType in kinds else cells
    else:
        return None
    try:
        found = np.fromiter(map(float, texts), np.float64, len(texts))
    except (ValueError, OverflowError):
        return None
    return found if np.isfinite(found).sum() + list(texts).count("nan") == len(texts) else None


_NO_NUMBER = str.maketrans("", "", "0123456789.eE+- \t")


_MICROSECONDS = re.compile(r"[0-9]{1,16}\.[0-9]{3}(?:\n[0-9]{1,16}\.[0-9]{3})*")


def _times(cells: Sequence[Any], scale: int) -> Any:
    """Nanoseconds of numbers, or of texts that are all microseconds with three decimals, else None; a float's digits
    are those it is written with."""
    import pandas as pd

    if isinstance(cells, np.ndarray) and cells.dtype == np.float64:
        instants = _instants(cells) if scale == 1000 else None
        return None if instants is None else pd.array(instants, dtype="Int64")
    kinds = set(map(type, cells))
    if kinds == {int} and min(cells) >= 0 and max(cells) * scale < _INT64:
        return pd.array(np.array(cells, np.int64) * scale, dtype="Int64")
    if kinds == {float} and scale == 1000 and (instants := _instants(np.array(cells))) is not None:
        return pd.array(instants, dtype="Int64")
    whole = "\n".join(map(str.strip, cells)) if kinds == {str} and scale == 1000 else ""
    if not kinds <= {int, float} and not _MICROSECONDS.fullmatch(whole):
        return None
    try:
        found = map(int, whole.replace(".", "").split("\n")) if whole else (to_ns(cell, scale) for cell in cells)
        times = np.array([*found], np.int64)
    except (Unusable, OverflowError):
        return None
    return pd.array(times, dtype="Int64")


def _instants(cells: Floats) -> Ints | None:
    """Nanoseconds of microseconds; None where one may be written with more than one decimal: from 2**49 on (18 years)
    the shortest text that tells a float from its neighbours has one at most."""
    whole = np.floor(cells)
    if not ((cells < 2**53) & ((cells >= 2**49) | ((cells == whole) & (cells >= 0)))).all():
        return None
    instants: Ints = whole.astype(np.int64) * 1000 + np.rint((cells - whole) * 10).astype(np.int64) * 100
    return instants


def _nullable(numbers: Floats) -> Any:
    import pandas as pd

    absent = np.isnan(numbers)
    return pd.arrays.IntegerArray(np.where(absent, 0, numbers).astype(np.int64), absent)


def _each(column: Column, cells: Sequence[Any], scale: float) -> tuple[Any, Counter[str], Any]:
    """As `_convert`, cell by cell."""
    defects: Counter[str] = Counter()
    first: Any = None
    if isinstance(cells, np.ndarray):
        cells = [None if cell != cell else cell for cell in cells.tolist()]
    if column.dtype == "str":
        long = sum(isinstance(cell, str) and len(cell) > LONGEST_TEXT for cell in cells)
        if long:
            defects["long"] = long
        return np.array([to_text(cell) for cell in cells] or [], dtype=object), defects, first
    if column.dtype in ("ints", "list"):
        values = np.empty(len(cells), dtype=object)
        for i, cell in enumerate(cells):
            values[i] = tuple(map(int, re.findall(r"-?[0-9]+", cell))) if isinstance(cell, str) else cell
        return values, defects, first
    measure = _measures(column)
    numbers: list[Any] = [None] * len(cells)
    whole = int(scale)
    for i, cell in enumerate(cells):
        try:
            if column.dtype == "ns":
                numbers[i] = to_ns(cell, whole)
                continue
            value = to_float(cell)
            if value is None:
                continue
            if measure and -_REMAINDER < value < -_LAST_DIGIT and not column.name.endswith(_COUNTED):
                value = 0.0
            if measure and value < 0:
                raise Unusable("negative")
            if measure and value * scale > _largest(column):
                raise Unusable("too large")
            if column.dtype == "int":
                if not value.is_integer() or abs(value) >= 2**53:
                    raise Unusable("text")
                numbers[i] = int(value)
            else:
                numbers[i] = value * scale
        except Unusable as reason:
            defects[str(reason)] += 1
            first = cell if first is None else first
    if column.dtype == "float":
        return np.array([math.nan if n is None else n for n in numbers], dtype=np.float64), defects, first
    import pandas as pd

    return pd.array(numbers, dtype="Int64"), defects, first


def _absent(column: Column, length: int) -> Any:
    """A column of which the file tells nothing."""
    if column.dtype == "float":
        return np.full(length, np.nan)
    if column.dtype in ("int", "ns"):
        return _nullable(np.full(length, np.nan))
    return np.full(length, None, dtype=object)


def is_word(cell: str) -> bool:
    """Whether a text can name something: it has a letter, or is the dash of an empty cell, and is no number, a finite
    one or not."""
    try:
        float(cell)
    except ValueError:
        return cell == "-" or any(map(str.isalpha, cell))
    return False


def _are_words(cells: Iterable[Any]) -> bool:
    """Whether all cells are words without a digit: another column of this name, which damages none beside it."""
    return all(isinstance(cell, str) and is_word(cell) and not any(map(str.isdigit, cell)) for cell in cells)


def build_frame(
    table: Table,
    data: Mapping[str, Sequence[Any]],
    columns: Iterable[str] | None,
    note: Note,
    file: str,
    *,
    headings: Mapping[str, str] | None = None,
    scales: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """The canonical frame from lists of equal length by column name; columns without data are NA throughout.

    `headings` are the names users know the columns by, `scales` replaces a column's scale (1.0: already canonical).
    """
    length = max((len(cells) for cells in data.values()), default=0)
    result: dict[str, Any] = {}
    for column in wanted_columns(table, columns):
        cells = data.get(column.name)
        if cells is None:
            result[column.name] = _absent(column, length)
            continue
        scale = (scales or {}).get(column.name, 1.0 if scales is not None else column.scale)
        values, defects, first = _convert(column, cells, scale)
        result[column.name] = values
        heading = (headings or {}).get(column.name) or (column.headings or (column.name,))[0]
        if column.name in _WORDS and (odd := {cell for cell in dict.fromkeys(values) if cell and not is_word(cell)}):
            found = [cell for cell in values if cell in odd]
            defects["no word"], first = len(found), found[0]
        for reason, count in defects.items():
            shown = f", first {str(first)[:40]!r}" if reason in ("text", "no word") else ""
            end = "" if reason in ("long", "no word") else "; left out"
            doubted = (table.name,) if reason in _DAMAGE and not (reason == "text" and _are_words(cells)) else ()
            note(file, f"{count} of {length} values of {heading} are {_REASONS[reason]}{shown}{end}", doubted)
    import pandas as pd

    frame: pd.DataFrame = pd.DataFrame(result)
    return frame
