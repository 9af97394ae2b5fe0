"""Runs without a profile: the step times of a training log, as CSV or JSON. The run is the sample, never the step."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from advisor.basics.errors import NoVerdict, UsageError
from advisor.facts.base import FactSet
from advisor.gate.metrics import defaults
from advisor.gate.sample import EVIDENCE, Sample, hashed
from advisor.model import RUN, Fact, ProfileInfo, Summary, Text

UNITS: Mapping[str, float] = {"us": 1.0, "ms": 1e3, "s": 1e6}
LARGEST_BYTES = 256_000_000
"""Step times of ten million steps; a larger file is something else."""
_WORDS = ("step_time", "step", "time", "duration", "step_duration", "iteration_time", "per_step_time", "batch_time")
_NAME = re.compile(rf"(?P<word>{'|'.join(_WORDS)})(?:_(?P<unit>us|ms|s|sec|seconds))?")
_HINT = 'a CSV with a column "step_time_ms" (or _us, _s), or JSON: {"step_time_ms": [101.2, 100.9, …]}'


def read_step_times(path: str, unit: str | None, key: Mapping[str, str], metadata: Mapping[str, str]) -> Sample:
    """A run by its step times. `unit` (us, ms, s) is for files whose column names none.

    Raises UsageError where there is no such file or no unit, NoVerdict where it holds no usable step times.
    """
    settings = defaults()["step_times"]
    steps = list(_microseconds(Path(path), unit))
    if len(steps) < settings["min_steps"]:
        raise NoVerdict(
            f"has {len(steps)} step times; {settings['min_steps']} are needed", place=path,
            hint="log more steps: a run of few steps says little of its step time",
        )  # fmt: skip
    step, mean = typical_step(steps), mean_step(steps)
    facts = FactSet([
        Fact("step.time_us", RUN, step, len(steps)), Fact("step.mean_us", RUN, mean, len(steps)),
        Fact("step.count", RUN, len(steps)),
    ])  # fmt: skip
    return Sample(
        id=path,
        key=dict(sorted({EVIDENCE: "step times", **key}.items())),
        info=ProfileInfo(path, "unknown", "step_times", (), None),
        summary=Summary("undetermined", Text("", ""), step),
        facts=facts,
        metadata=dict(metadata),
        digest=hashed(repr(steps).encode()),
    )


def typical_step(steps: Sequence[float]) -> float:
    """What a step of the run takes: the median of those after the warm-up."""
    return median(_warmed_up(steps))


def mean_step(steps: Sequence[float]) -> float:
    """What a step of the run takes with all pauses among them: the mean of those after the warm-up."""
    return fmean(_warmed_up(steps))


def _warmed_up(steps: Sequence[float]) -> Sequence[float]:
    return steps[int(defaults()["step_times"]["warm_up"] * len(steps)) :]


def _microseconds(path: Path, unit: str | None) -> Iterator[float]:
    """Every step's time. A time that no step can have is an error, not left out: the file is not what it seems."""
    name, values = _column(path, _text(path))
    if not values:
        raise NoVerdict("holds no step times", place=str(path), hint=_HINT)
    named = _NAME.fullmatch(_plain(name))
    told = named["unit"] if named else None
    chosen = {"sec": "s", "seconds": "s"}.get(told or "", told) or unit
    if chosen is None:
        raise UsageError(
            "does not say in which unit its step times are", place=str(path),
            hint="name the column step_time_ms (or _us, _s), or say --step-unit ms",
        )  # fmt: skip
    for number, value in enumerate(values, start=1):
        try:
            time = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            time = math.nan
        if not (math.isfinite(time) and time > 0):
            raise NoVerdict(f"step {number} has the time {str(value)[:40]!r}", place=str(path), hint=_HINT)
        yield time * UNITS[chosen]


def _text(path: Path) -> str:
    if not path.exists():
        raise UsageError("no such file or folder", place=str(path))
    if not path.is_file():
        raise NoVerdict("is no file of step times", place=str(path), hint=_HINT)
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise NoVerdict(f"is larger than {LARGEST_BYTES} bytes", place=str(path), hint=_HINT)
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise NoVerdict("is no text", place=str(path), hint=_HINT) from None
    except OSError as error:
        raise NoVerdict(f"cannot be read: {error.strerror or error}", place=str(path)) from None


def _column(path: Path, text: str) -> tuple[str, Sequence[Any]]:
    """Name and values of the step times, whatever form they are in."""
    start = text.lstrip()[:1]
    try:
        if start in ("[", "{"):
            return _of_json(path, _documents(text))
        return _of_table(path, list(csv.reader(text.splitlines())))
    except (ValueError, RecursionError, csv.Error) as error:
        raise NoVerdict(f"cannot be read: {error}", place=str(path), hint=_HINT) from None


def _documents(text: str) -> Any:
    """One JSON document, or one a line."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _of_json(path: Path, document: Any) -> tuple[str, Sequence[Any]]:
    if isinstance(document, Mapping):
        name = _chosen(path, [key for key, value in document.items() if isinstance(value, list)])
        return name, document[name]
    if document and all(isinstance(entry, Mapping) for entry in document):
        name = _chosen(path, list(document[0]))
        return name, [entry[name] for entry in document if name in entry]
    return "", document


def _of_table(path: Path, rows: list[list[str]]) -> tuple[str, Sequence[Any]]:
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return "", []
    if len(rows[0]) == 1 and _is_number(rows[0][0]):
        return "", [row[0] for row in rows]
    name = _chosen(path, rows[0])
    place = rows[0].index(name)
    return name, [row[place] if place < len(row) else "" for row in rows[1:]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _chosen(path: Path, names: Sequence[str]) -> str:
    """The column of the step times: one that names its unit before one that does not."""
    fitting = [(match, name) for name in names if (match := _NAME.fullmatch(_plain(name)))]
    fitting = [(match, name) for match, name in fitting if match["unit"] or match["word"] != "step"]
    if not fitting:
        raise NoVerdict(
            f"has no column of step times among {', '.join(names[:8]) or 'none'}", place=str(path), hint=_HINT
        )
    return min(fitting, key=lambda item: (item[0]["unit"] is None, _WORDS.index(item[0]["word"])))[1]


def _plain(name: str) -> str:
    """`Step Time (ms)` as `step_time_ms`."""
    return re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
