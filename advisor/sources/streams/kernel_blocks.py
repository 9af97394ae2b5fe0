"""Kernels from CSV files in blocks: polars where it can be trusted, the tolerant reader elsewhere."""

from __future__ import annotations

import csv
import multiprocessing
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.sources.frames import ABSENT, GROUPED, GROUPING
from advisor.sources.reference import Note
from advisor.sources.text.textfiles import detect_encoding, ends_inside_character
from advisor.tables import LONGEST_HEADING, MOST_COLUMNS, TABLES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

BLOCK = 1 << 22
"""Bytes parsed at once: bounds memory; larger blocks are no faster."""
LONG_LINE = 1 << 20
"""Bytes; a longer line is looked at before a parser sees it, which needs some 500 bytes for each of its cells."""

SIGNATURE = ("type", "core", "state", "input_shapes", "input_dtypes", "input_formats", "output_shapes", "output_dtypes")
PIPES = (
    "mac_ratio", "scalar_ratio", "mte1_ratio", "mte2_ratio", "fixpipe_ratio",
    "vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "cube_utilization",
)  # fmt: skip
CORE_TIMES = ("cube_core_us", "vector_core_us")
"""How long cores of each kind worked: a ratio is a share of this, not of the kernel's time."""
IN_BLOCKS = "in_blocks"
"""The share of a kernel's time in which cores of either kind worked, among the shares of its units."""
VECTOR_BLOCKS = "vector_blocks"
"""The vector cores that a fused kernel uses for each of its cube cores, among the shares of its units."""
PLACES = "places"
"""How many places the rounds of a kernel have on the card's cube cores for each of its blocks, among the shares of its
units: its cores' time is that of a block times the rounds, its utilisation that of all blocks on all cores."""
SHARES = (*PIPES, IN_BLOCKS, VECTOR_BLOCKS, PLACES)
"""What is told of kernels as a part of their time."""
MEASURES = ("wait_us", "block_num", "mix_block_num", *PIPES, *CORE_TIMES)
"""Numbers that a kernel may lack."""
_NUMBERS = ("duration_us", *MEASURES)
_APART = ("mix_block_num",)
"""Those of which nothing else is made: what is damaged there leaves no doubt about the rest of the table."""
_WANTED = frozenset((*_NUMBERS, "device", "name", *SIGNATURE, "step", "stream", "start_ns"))
_SCALES = {c.name: c.scale for c in TABLES["kernels"].columns if c.dtype == "float" and c.scale != 1.0}
_VITAL = (
    ("start_ns", "Start Time(us)", "its kernels count in sums, not in the timeline"),
    ("name", "Name", "its operators are unknown"),
)
_START = r"^[0-9]{1,16}(\.[0-9]*)?$"


def text_frames(path: Path, note: Note, device: str | None = None) -> Iterator[pl.DataFrame]:
    """Canonical frames of the kernels in one CSV file, in its order; of one device where several share the file."""
    if device is None:
        yield from _all_frames(path, note)
        return
    import polars as pl

    for frame in _all_frames(path, note, told=True):
        own = pl.col("device").str.strip_chars(' \t"') == device if "device" in frame.columns else pl.lit(True)
        yield frame.filter(own)


def _all_frames(path: Path, note: Note, *, told: bool = False) -> Iterator[pl.DataFrame]:
    """The kernels of all devices; `told` says whether their column is needed."""
    fast = _fast_columns(path)
    if fast is not None and not told:
        fast[1].pop("device", None)
    if fast is not None:
        try:
            yield from _blocks(path, *fast, note)
            return
        except _Untrusted:
            pass
    from advisor.sources.text.csvfiles import read_file

    frame = read_file(TABLES["kernels"], path, None, note)
    if frame is not None:
        yield _from_pandas(frame)


class _Untrusted(Exception):
    """Nothing of this file has been handed on yet, and polars should not read it."""


def _from_pandas(frame: pd.DataFrame) -> pl.DataFrame:
    import polars as pl

    columns: dict[str, pl.Series] = {}
    for column in TABLES["kernels"].columns:
        values = frame[column.name]
        if column.dtype == "ns":
            known = values.notna()
            series = pl.Series([int(v) if k else None for v, k in zip(values, known, strict=True)], dtype=pl.Int64)
        elif column.dtype == "float":
            series = pl.Series(values.to_numpy(float, na_value=np.nan))
        else:
            known = values.notna()
            texts = [str(v).replace(MARK, " ") if k else None for v, k in zip(values, known, strict=True)]
            series = pl.Series(texts, dtype=pl.String)
        columns[column.name] = series
    return pl.DataFrame(columns)


def _fast_columns(path: Path) -> tuple[bytes, dict[str, int]] | None:
    """(heading line, position of each canonical column) where the file is plain UTF-8 with commas."""
    with path.open("rb") as stream:
        sample = stream.read(1 << 16)
    line, newline, _ = sample.partition(b"\n")
    if (
        not newline
        or line.count(b'"') % 2
        or b"\x00" in sample
        or detect_encoding(sample) not in ("utf-8", "utf-8-sig")
    ):
        return None
    if sample.count(b"\r") > sample.count(b"\r\n") + sample.endswith(b"\r"):
        return None  # some of its lines end in a way that polars takes for text
    heading = _headings(line)
    from advisor.sources.text.csvfiles import match_columns

    matches = match_columns(TABLES["kernels"].columns, heading)
    if "duration_us" not in matches or len(set(heading)) != len(heading) or max(map(len, heading)) > LONGEST_HEADING:
        return None
    if any(match.scale != TABLES["kernels"].column(name).scale for name, match in matches.items()):
        return None
    positions = {name: match.position for name, match in matches.items()}
    return line + newline, positions if len(set(positions.values())) == len(positions) else {}


def _headings(line: bytes) -> list[str]:
    return next(csv.reader([line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")]))


def _blocks(path: Path, line: bytes, positions: Mapping[str, int], note: Note) -> Iterator[pl.DataFrame]:
    if not positions:
        raise _Untrusted
    headings = [heading.strip() for heading in _headings(line)]
    width = len(headings)
    again = re.compile(b"^" + re.escape(line), re.MULTILINE)  # behind a row that was cut it is that row's end
    handed = False
    bad_starts = holes = wide = waits = 0
    grouped: frozenset[str] = frozenset()
    lacking: dict[str, int] = {}
    for column, shown, effect in _VITAL:
        if column not in positions:
            note(str(path), f"lacks the column {shown}: {effect}")
    for block in _whole_lines(path, len(line), width, note):
        if block is None:
            if handed:
                note(str(path), "a quotation mark is never closed; what follows it was left out")
                return
            raise _Untrusted
        begun = _beginnings(block)
        if line[0] in begun and line in block:
            block = again.sub(b"", block)  # tables put one below the other: the heading is no kernel
        if begun & _BLANK:
            block = b"\n".join(each for each in block.split(b"\n") if each.strip())  # blank lines are no kernels
        if b"\x00" in block:
            lines = block.split(b"\n")
            whole = [each for each in lines if b"\x00" not in each]
            holes += len(lines) - len(whole)
            block = b"\n".join(whole)
        if _has_long_line(block):
            lines = block.split(b"\n")
            fit = [each for each in lines if len(each) < LONG_LINE or each.count(b",") <= MOST_COLUMNS]
            wide += len(lines) - len(fit)
            block = b"\n".join(fit)
        frame = _parse(block, positions, width, grouped)
        if frame is not None and not handed:
            lacking, grouped = _lacking_cells(block, frame, positions, width)
            frame = _parse(block, positions, width, grouped) if grouped else frame
        if frame is None:
            if not handed:
                raise _Untrusted
            note(str(path), "a part of it is no CSV and was left out")
            yield _without_times(block.count(b"\n"))
            continue
        if not handed:
            for name, odd in lacking.items():
                column, seen = headings[positions[name]], len(frame)
                text = f"{odd} of the first {seen} values of {column} are not numbers; left out"
                note(str(path), text, () if name in _APART else ("kernels",))
        handed = True
        if "start_ns" in frame.columns:
            bad_starts += frame["start_ns"].null_count()
        waits += int(frame["wait_us"].is_finite().sum()) if "wait_us" in frame.columns else 0
        yield frame
    if not handed:
        note(str(path), "has a heading but no rows")
    if handed and not waits and "wait_us" in positions:
        note(str(path), f"holds no number in the column {headings[positions['wait_us']]}")
    if holes:
        note(str(path), f"{holes} lines hold zero bytes, as where a block never reached the disk; they were left out")
    if wide:
        note(str(path), f"{wide} lines have more than {MOST_COLUMNS} cells, which no kernel has; they were left out")
    if bad_starts:
        note(str(path), f"{bad_starts} kernels have no usable start time: they count in sums, not in the timeline")


_BLANK = frozenset(b"\r\n")


def _beginnings(block: bytes) -> set[int]:
    """The bytes that its lines begin with: what is rare at the beginning of a line need not be sought in all of it."""
    data = np.frombuffer(block, np.uint8)
    begun = np.bincount(data[np.flatnonzero(data[:-1] == _NEWLINE) + 1], minlength=256)
    return {block[0], *np.flatnonzero(begun).tolist()}


_NEWLINE = ord("\n")


def _without_times(rows: int) -> pl.DataFrame:
    """Kernels of which nothing is known, so that the others are not taken for all there were."""
    import polars as pl

    return pl.DataFrame({"duration_us": pl.Series([None] * rows, dtype=pl.Float64)})


def _has_long_line(block: bytes) -> bool:
    """Whether a line is longer than LONG_LINE; those of half that length may be taken for it."""
    size = len(block)
    for at in range(0, size, LONG_LINE // 2):
        end = block.find(b"\n", at)
        if (end if end >= 0 else size) - at > LONG_LINE // 2:
            return True
    return False


def _whole_lines(path: Path, skip: int, width: int, note: Note) -> Iterator[bytes | None]:
    """Blocks that end with a line outside quotes; None where a quotation mark stays open beyond reason."""
    with path.open("rb") as stream:
        at, size = skip, BLOCK
        while True:
            stream.seek(at)
            rest = stream.read(size)
            if len(rest) < size:
                break
            cut = _cut(rest)
            if cut:
                yield rest[:cut]
                at, size = at + cut, BLOCK
            elif size > 8 * BLOCK:
                yield None
                return
            else:
                size += BLOCK
    if not rest.strip():
        return
    if rest.count(b'"') % 2:
        cut = _cut(rest)
        if not cut:
            cut = rest.rfind(b"\n", 0, max(rest.find(b'"'), 0)) + 1
        if cut:
            yield rest[:cut]
        note(str(path), "is cut short: the last row ends in the middle and was left out")
        return
    last = rest.rfind(b"\n", 0, len(rest)) + 1
    if not rest.endswith(b"\n") and (_cells(rest[last:]) < width or ends_inside_character(rest[last:])):
        note(str(path), "is cut short: the last row ends in the middle and was left out")
        rest = rest[:last]
    if rest.strip():
        yield rest


def _cells(line: bytes) -> int:
    text = line.decode("utf-8", "replace").replace("\r", " ")
    return len(next(csv.reader([text]), []))


def _cut(data: bytes) -> int:
    """Position behind the last line end that lies outside quotes; 0 where there is none."""
    end = len(data)
    quotes = data.count(b'"')
    for _ in range(10_000):
        newline = data.rfind(b"\n", 0, end)
        if newline < 0:
            return 0
        quotes -= data.count(b'"', newline, end)
        if quotes % 2 == 0:
            return newline + 1
        end = newline
    return 0


MARK = "\x1f"
"""Stands between the texts of a signature, and therefore in none of them."""
_LONE_QUOTE = re.compile(rb',"(?:[,\r\n]|\Z)')
_LONE_QUOTE_FIRST = re.compile(rb'\n"(?:[,\r\n]|\Z)')
"""A cell that is nothing but a quotation mark: polars panics over it in a column of numbers. Two patterns that begin
with plain bytes are found many times faster than one with a choice."""


def _parse(data: bytes, positions: Mapping[str, int], width: int, grouped: Collection[str] = ()) -> pl.DataFrame | None:
    """A block as a frame; None where polars cannot read it. In the columns `grouped` something stands around or within
    numbers that they are told without."""
    first = any(positions.get(name) == 0 for name in _NUMBERS)
    if _LONE_QUOTE.search(data) or (first and _LONE_QUOTE_FIRST.search(data)):
        return None
    if MARK.encode() in data:
        data = data.replace(MARK.encode(), b" ")
    threads = "1" if multiprocessing.parent_process() is not None else "2"  # ranks run side by side already
    os.environ.setdefault("POLARS_MAX_THREADS", threads)
    import polars as pl

    order = sorted((name for name in positions if name in _WANTED), key=positions.__getitem__)
    numbers = [name for name in order if name in _NUMBERS]
    try:
        places = {name: positions[name] for name in order}
        frame = _read(data, places, width, [name for name in numbers if name not in grouped])
        if frame["duration_us"].null_count():  # blanks, tabs or quotes around numbers, or no numbers
            frame, grouped = _read(data, places, width), numbers
        frame = frame.with_columns(_plain(pl.col(name)).cast(pl.Float64, strict=False) for name in grouped)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    columns: list[pl.Expr | pl.Series] = [pl.col(name) * _SCALES[name] for name in order if name in _SCALES]
    if "start_ns" in order:
        columns.append(_nanoseconds(frame))
    return frame.with_columns(columns)


def _read(data: bytes, positions: Mapping[str, int], width: int, floats: Sequence[str] = ()) -> pl.DataFrame:
    """These columns of a block: numbers, null where a cell holds none, and all others as texts."""
    import polars as pl

    kinds = {positions[name]: pl.Float64 for name in floats}
    frame = pl.read_csv(
        data, has_header=False, columns=[*positions.values()],
        schema={str(i): kinds.get(i, pl.String) for i in range(width)}, ignore_errors=True,
        truncate_ragged_lines=True, encoding="utf8-lossy", raise_if_empty=False,
    )  # fmt: skip
    frame.columns = [*positions]
    return frame


def _plain(cells: pl.Expr) -> pl.Expr:
    """Texts without blanks, tabs and quotes around them, and numbers without what groups their digits."""
    import polars as pl

    bare = cells.str.strip_chars(' \t"')
    return pl.when(bare.str.contains(GROUPED)).then(bare.str.replace_all(GROUPING, "")).otherwise(bare)


def _lacking_cells(
    data: bytes, frame: pl.DataFrame, positions: Mapping[str, int], width: int
) -> tuple[dict[str, int], frozenset[str]]:
    """(column of numbers -> how many of its cells hold neither a number nor a word for nothing, the columns with cells
    that are numbers once quotes and what groups their digits are taken away)."""
    import polars as pl

    nulls = {name: frame[name].null_count() for name in frame.columns if name in _NUMBERS}
    lacking = {name: positions[name] for name, count in nulls.items() if count}
    if not lacking:
        return {}, frozenset()
    cells = _plain(pl.all())
    lost = cells.cast(pl.Float64, strict=False).is_null()
    texts = _read(data, dict(sorted(lacking.items(), key=lambda item: item[1])), width)
    left = texts.select(lost.sum()).row(0, named=True)
    odd = texts.select((lost & ~cells.str.to_lowercase().is_in([*ABSENT])).sum()).row(0, named=True)
    more = frozenset(name for name in lacking if left[name] < nulls[name])
    return {name: count for name, count in odd.items() if count}, more


def _nanoseconds(frame: pl.DataFrame) -> pl.Series:
    """Exact nanoseconds of microseconds with decimals; null where it is no such number."""
    import polars as pl

    texts = pl.col("start_ns").str.strip_chars(' \t"')
    plain, all_plain = frame.select(
        texts.str.replace(".", "", literal=True).cast(pl.Int64, strict=False),
        texts.str.contains(r"^[0-9]{1,16}\.[0-9]{3}$").all().alias("plain"),
    ).get_columns()
    if len(plain) and all_plain[0]:
        return plain
    parts = pl.when(texts.str.contains(_START)).then(texts).str.splitn(".", 2)
    whole = parts.struct.field("field_0").cast(pl.Int64, strict=False) * 1000
    decimals = parts.struct.field("field_1").fill_null("").str.pad_end(3, "0").str.slice(0, 3)
    return frame.select((whole + decimals.cast(pl.Int64, strict=False)).alias("start_ns"))["start_ns"]
