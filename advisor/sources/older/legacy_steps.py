"""The older step trace: step_trace_raw_*_detail_time.csv.

One row a step in device ticks of 10 ns. A step starts where the previous one ended, so

    iteration_interval = fp_point - start_point     fp_and_bp = bp_point - fp_point
    tail = end_point - bp_point                     total = end_point - start_point

and the first step, whose start is its fp_point, has no measured interval (it reads 0). The row called `-`, `0` or
nothing is the profiler's average. Inference traces have `fp` and neither bp nor tail. Behind these columns follow
triples a collective: `stream_<id>_<n>_<operation>`, `…_start_point`, `…_end_point`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from advisor.basics.units import WHOLE
from advisor.sources.older.legacy_files import find, numbers, read_sheet, texts, to_numbers
from advisor.sources.reference import Note

if TYPE_CHECKING:
    import pandas as pd

TICK_US = 0.01

_POINTS = {"start_us": "start_point", "fp_start_us": "fp_point", "bp_end_us": "bp_point", "end_us": "end_point"}
_REACHED = {"fp_start_us": ("start_us", "interval_us"), "bp_end_us": ("fp_start_us", "fp_bp_us"),
            "end_us": ("bp_end_us", "tail_us")}  # fmt: skip
"""A point that no column holds is where the part before it ends, in a trace of all parts."""
_BEGINNING = "stream_"
_ENDS = ("_start_point", "_end_point")
_STREAM = re.compile(r"^stream_(?P<stream>[^_]+)_(?P<index>[0-9]+)_(?P<name>.+)$")


class StepSheet(Struct, frozen=True):
    """The rows of one step trace that are steps (or its average row), still in ticks and text."""

    path: Path
    frame: pd.DataFrame
    average: bool = False

    def _ticks(self, note: Note, *names: str) -> pd.Series | None:
        return numbers(self.frame, names, self.path, note)

    def phases(self, note: Note) -> dict[str, Any]:
        """Columns of step_phases, microseconds. Rows that don't add up are mended from their points or left out."""
        points = {name: self._ticks(note, heading) for name, heading in _POINTS.items()}
        parts: dict[str, pd.Series | None] = {
            "total_us": self._ticks(note, "total"),
            "interval_us": self._ticks(note, "iteration_interval"),
            "fp_bp_us": self._ticks(note, "fp_and_bp", "fp"),
            "tail_us": self._ticks(note, "tail"),
        }
        start, end = points["start_us"], points["end_us"]
        if parts["total_us"] is None and start is not None and end is not None:
            parts["total_us"] = (end - start).where(end >= start)
        for name, (before, part) in _REACHED.items():
            reached, passed = points[before], parts[part]
            if points[name] is None and reached is not None and passed is not None and parts["tail_us"] is not None:
                points[name] = reached + passed
        keep = None
        if self.average:
            total = parts["total_us"]
            if total is not None and not total.iloc[0] > 0:
                parts, points = _zeros_unknown(parts), _zeros_unknown(points)
        else:
            parts, keep = self._mend(parts, points, note)
        data: dict[str, Any] = {"step": texts(self.frame, "step_num")}
        data.update({n: v * TICK_US for n, v in {**parts, **points}.items() if v is not None and v.notna().any()})
        if keep is not None:
            data = {name: values[keep] for name, values in data.items()}
        if not self.average and len(data["step"]) == 1 and "interval_us" in data and data["interval_us"].iloc[0] == 0:
            note(str(self.path), "holds one step, and the gap before a first step is not measured")
            del data["interval_us"]
        return data

    def _mend(
        self, parts: dict[str, pd.Series | None], points: dict[str, pd.Series | None], note: Note
    ) -> tuple[dict[str, pd.Series | None], pd.Series | None]:
        total, interval, middle, tail = parts.values()
        if total is None or interval is None or middle is None or tail is None:
            return parts, None if total is None else total > 0
        wrong = ~((interval + middle + tail - total).abs() <= 3)
        if not wrong.any():
            return parts, total > 0
        start, fp, bp, end = points.values()
        if start is None or fp is None or bp is None or end is None:
            usable = ~wrong & (total > 0)
            self._report(wrong, "are left out", note)
            return parts, usable
        ordered = (start <= fp) & (fp <= bp) & (bp <= end)
        mended = {"total_us": end - start, "interval_us": fp - start, "fp_bp_us": bp - fp, "tail_us": end - bp}
        self._report(wrong & ordered, "are taken from its points in time", note)
        self._report(wrong & ~ordered, "are left out", note)
        parts = {name: values.where(~wrong, mended[name]) for name, values in parts.items() if values is not None}
        return parts, (~wrong | ordered) & (parts["total_us"] > 0)  # type: ignore[operator]

    def _report(self, rows: pd.Series, outcome: str, note: Note) -> None:
        if rows.any():
            steps = ", ".join(texts(self.frame, "step_num")[rows].head(5))  # type: ignore[index]
            note(str(self.path), f"phases of step {steps} do not add up to its total; they {outcome}")

    def collectives(self, note: Note) -> dict[str, Any]:
        """Columns of step_collectives: one row a step and operation. `stream_<id>_<n>_` is taken off the name."""
        import pandas as pd

        columns = {str(heading) for heading in self.frame.columns}
        told = {c.removesuffix(_ENDS[0]).removesuffix(_ENDS[1]) for c in columns if c.startswith(_BEGINNING)}
        labels = sorted(label for label in told if sum(label + ending in columns for ending in ("", *_ENDS)) > 1)
        if not labels:
            return {"step": pd.Series(dtype=object), "name": pd.Series(dtype=object)}
        lengths, starts, ends = (self._stacked(labels, ending, note) for ending in ("", *_ENDS))
        lengths = lengths.fillna(ends - starts)
        starts, ends = starts.fillna(ends - lengths), ends.fillna(starts + lengths)
        span = ends - starts
        bad = span.isna() | (span < 0) | ((lengths - span).abs() > 3)
        mostly = bool(bad.sum() > len(bad) / 2)  # the rest would misrepresent them
        if bad.any():
            left = "most of them, so that none was used" if mostly else "they are left out"
            text = f"{int(bad.sum())} collectives have a start, end and duration that disagree; {left}"
            note(str(self.path), text, ("step_collectives",))
        streams, names = zip(*map(split_label, labels), strict=True)
        steps = texts(self.frame, "step_num")
        table = pd.DataFrame(
            {
                "step": pd.concat([steps] * len(labels), ignore_index=True),
                "name": pd.Series(names, dtype=object).repeat(len(self.frame)).reset_index(drop=True),
                "stream": pd.Series(streams, dtype=object).repeat(len(self.frame)).reset_index(drop=True),
                "start_us": starts * TICK_US,
                "end_us": ends * TICK_US,
                "duration_us": span * TICK_US,
            }
        )[~bad & (not mostly)]
        return {str(name): table[name].reset_index(drop=True) for name in table.columns}

    def _stacked(self, labels: Sequence[str], ending: str, note: Note) -> pd.Series:
        """The cells of these columns one below the other: one conversion instead of one per operation. Nothing where
        there is no such column: the other two of the three tell it."""
        import pandas as pd

        absent = pd.Series("", index=self.frame.index, dtype=object)
        cells = pd.concat([self.frame.get(label + ending, absent) for label in labels], ignore_index=True)
        return to_numbers(cells, f"stream_*{ending}", self.path, note)


def _zeros_unknown(columns: dict[str, pd.Series | None]) -> dict[str, pd.Series | None]:
    """An average row without a total was filled up with zeros."""
    return {name: None if values is None else values.where(values > 0) for name, values in columns.items()}


def split_label(label: str) -> tuple[str, str]:
    """`stream_48_0_Receive-op663` -> ("48", "Receive-op663"); a label without operation stays whole."""
    match = _STREAM.match(label)
    if match:
        return match["stream"], match["name"]
    parts = label.split("_")
    return (parts[1] if len(parts) > 1 else ""), label


def _plain(heading: object) -> str:
    """The heading of a collective's column with its fixed parts in small letters, as other columns are found whatever
    their letters; the operation's name stays."""
    text = str(heading)
    if not text.lower().startswith(_BEGINNING):
        return text
    ending = next((each for each in _ENDS if text.lower().endswith(each)), "")
    return _BEGINNING + text[len(_BEGINNING) : len(text) - len(ending)] + ending


def read_step_sheet(path: Path, note: Note, average: bool = False) -> StepSheet | None:
    """The step rows of a trace, or its average row; None where there is none."""
    frame = read_sheet(path, note)
    if frame is None:
        return None
    frame = frame.rename(columns=_plain)
    heading = find(frame, "step_num")
    if heading is None:
        note(str(path), "has no column step_num; it was not read")
        return None
    names = frame[heading].str.strip()
    is_average = names.isin(["-", "", "0"])
    if average:
        rows = frame[is_average].tail(1)
        return StepSheet(path, rows.reset_index(drop=True), True) if len(rows) else None
    is_step = names.str.fullmatch(WHOLE) & ~is_average
    odd = ~is_step & ~is_average
    if odd.any():
        note(
            str(path),
            f"{int(odd.sum())} rows have no step number (first: {names[odd].iloc[0][:40]!r}); they are left out",
        )
    rows = frame[is_step].reset_index(drop=True)
    if rows.empty:
        note(str(path), "holds no step")
        return None
    return StepSheet(path, rows)
