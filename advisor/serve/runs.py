"""Saved reports of a folder: found, read once, and put in a row."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from advisor.basics.errors import UsageError
from advisor.model import RUN, Report

LARGEST_BYTES = 64_000_000
"""Larger JSON files are traces, not reports."""
_HEAD = 4096
_MARK = b'"advisor"'


@dataclass(frozen=True)
class SavedRun:
    """A report with where it lies; `key` names it in addresses, `time` is when the file was written (seconds)."""

    key: str
    name: str
    time: float
    report: Report


@dataclass(frozen=True)
class Metric:
    """A number of the whole run."""

    name: str
    unit: str
    value: float


@dataclass
class RunFolder:
    """All reports below a folder. Files are read again only when they change; those that are no reports are skipped."""

    root: Path
    _read: dict[Path, tuple[tuple[int, int], SavedRun | None]] = field(default_factory=dict)

    def runs(self) -> list[SavedRun]:
        """Newest first."""
        found = [run for path in self._candidates() if (run := self._load(path)) is not None]
        return sorted(found, key=lambda run: (-run.time, run.name))

    def get(self, key: str) -> SavedRun | None:
        """The run of this key; only files that were found below the folder have one."""
        return next((run for run in self.runs() if run.key == key), None)

    def _candidates(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            yield from (Path(folder, name) for name in sorted(files) if name.endswith(".json"))

    def _load(self, path: Path) -> SavedRun | None:
        from advisor.exchange import report_from_json

        try:
            state = path.stat()
            version = (state.st_mtime_ns, state.st_size)
            if path not in self._read or self._read[path][0] != version:
                report = None
                if state.st_size <= LARGEST_BYTES and _looks_like_a_report(path):
                    with suppress(UsageError):
                        report = report_from_json(path.read_bytes())
                self._read[path] = (version, None if report is None else self._name(path, state.st_mtime, report))
        except OSError:
            return None
        return self._read[path][1]

    def _name(self, path: Path, time: float, report: Report) -> SavedRun:
        name = path.relative_to(self.root).as_posix()
        return SavedRun(hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16], name, time, report)


def _looks_like_a_report(path: Path) -> bool:
    """Keys are sorted, so that a report ends with its tool; anything else is not worth parsing."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _HEAD))
        return _MARK in file.read()


def metrics(report: Report) -> dict[str, Metric]:
    """Numbers of the run that can be followed over runs: step time, shares of the step, facts of the run."""
    found: dict[str, Metric] = {}
    if report.summary.step_time_us is not None:
        found["step.time_us"] = Metric("step.time_us", "us", report.summary.step_time_us)
    for part, share in report.summary.breakdown.items():
        found[f"step.{part}_share"] = Metric(f"step.{part}_share", "ratio", share)
    for fact in report.facts:
        if fact.subject == RUN and isinstance(fact.value, (int, float)) and not isinstance(fact.value, bool):
            found.setdefault(fact.name, Metric(fact.name, _unit(fact.name), float(fact.value)))
    return found


def _unit(name: str) -> str:
    """The unit that the ending of a fact's name states; a plain number else."""
    endings = {"_us": "us", "_share": "ratio", "_bytes": "bytes", "_bytes_per_s": "bytes_per_s", "_ratio": "number"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "number")


def trend(runs: Sequence[SavedRun], metric: str) -> list[tuple[SavedRun, Metric]]:
    """The metric over the runs that have it, oldest first."""
    found = [(run, metrics(run.report).get(metric)) for run in runs]
    return sorted(((run, value) for run, value in found if value is not None), key=lambda pair: pair[0].time)
