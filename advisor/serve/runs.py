"""Saved reports of a folder: found newest first, summed up when shown, read whole only when opened.

The folder may hold anything: what is no plain file of a report's size and form is passed over.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from advisor.basics.errors import UsageError
from advisor.basics.files import read_own
from advisor.facts.recording.bounds import beyond
from advisor.model import Report, Text
from advisor.render.report.outline import causes_and_symptoms

LARGEST_BYTES = 64_000_000
"""Larger JSON files are traces, not reports."""
_HEAD = 4096
_MARK = b'"advisor"'
_TYPES_TOLD = 3
_MODELS = 64
"""Models of one size that a run is compared with."""


@dataclass(frozen=True)
class Metric:
    """A number of the whole run."""

    name: str
    unit: str
    value: float


@dataclass(frozen=True)
class SavedRun:
    """What lists and trends need of a report; `key` names it in addresses, `time` is when the file was written
    (seconds)."""

    key: str
    name: str
    time: float
    profile: str
    direction: str
    headline: Text
    step_time_us: float | None
    causes: int
    symptoms: int
    size: tuple[str, ...]
    """Framework, ranks and how they are split: runs of another size are not compared."""
    types: frozenset[str]
    """Operator types that take most time: what the model is recognised by."""
    metrics: tuple[Metric, ...]
    searched: str


@dataclass(frozen=True)
class Group:
    """Runs of one model and size, newest first."""

    size: tuple[str, ...]
    types: tuple[str, ...]
    runs: tuple[SavedRun, ...]


@dataclass(frozen=True)
class Found:
    """A file that may be a report."""

    key: str
    path: Path
    name: str
    time: float
    version: tuple[int, int]


@dataclass
class RunFolder:
    """All reports below a folder. Files are summed up again only when they change."""

    root: Path
    _briefs: dict[str, tuple[tuple[int, int], SavedRun | None]] = field(default_factory=dict)

    def files(self) -> list[Found]:
        """What may be a report, newest first; no file is opened. What was told of files that are gone is forgotten."""
        found = sorted(self._candidates(), key=lambda found: (-found.time, found.name))
        there = {each.key for each in found}
        self._briefs = {key: told for key, told in self._briefs.copy().items() if key in there}
        return found

    def runs(self, files: Sequence[Found]) -> Iterator[SavedRun]:
        """The reports among these files."""
        for found in files:
            if (run := self._brief(found)) is not None:
                yield run

    def get(self, key: str) -> tuple[SavedRun, Report] | None:
        """The run of this key with its report; only files that were found below the folder have one."""
        from advisor.exchange import report_from_json

        found = next((found for found in self.files() if found.key == key), None)
        run = None if found is None else self._brief(found)
        if found is None or run is None:
            return None
        with suppress(UsageError, OSError):
            return run, report_from_json(read_own(found.path, LARGEST_BYTES))
        return None

    def _candidates(self) -> Iterator[Found]:
        root = self.root.resolve()
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in files:
                if not file.endswith(".json"):
                    continue
                path = Path(folder, file)
                try:
                    state = path.stat()
                    inside = not path.is_symlink() or path.resolve(strict=True).is_relative_to(root)
                except (OSError, RuntimeError):
                    continue
                if inside and stat.S_ISREG(state.st_mode) and state.st_size <= LARGEST_BYTES:
                    raw = path.relative_to(self.root).as_posix()
                    name = raw.encode("utf-8", "replace").decode()
                    key = hashlib.sha256(os.fsencode(raw)).hexdigest()[:16]
                    yield Found(key, path, name, state.st_mtime, (state.st_mtime_ns, state.st_size))

    def _brief(self, found: Found) -> SavedRun | None:
        known = self._briefs.get(found.key)
        if known is None or known[0] != found.version:
            run = None
            with suppress(OSError, msgspec.MsgspecError, ValueError, RecursionError):
                run = _summed_up(found)
            known = self._briefs[found.key] = (found.version, run)
        return known[1]


# --- what a list needs of a report, and nothing else ------------------------------------------------------------------


class _Words(msgspec.Struct):
    en: str = ""
    zh: str = ""


class _Subject(msgspec.Struct):
    kind: str = ""


class _Fact(msgspec.Struct):
    name: str
    subject: _Subject
    value: object = None


class _Split(msgspec.Struct):
    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None


class _Profile(msgspec.Struct):
    path: str = ""
    framework: str = ""
    ranks: list[int] = []
    world_size: int | None = None
    parallelism: _Split | None = None
    recording: str = ""


class _Summary(msgspec.Struct):
    direction: str
    headline: _Words
    step_time_us: float | None = None
    breakdown: dict[str, float] = {}


class _Finding(msgspec.Struct):
    id: str
    rule: str = ""
    verdict: str = ""
    role: str = ""
    title: _Words = msgspec.field(default_factory=_Words)
    because: list[str] = []
    explains: list[str] = []


class _Type(msgspec.Struct):
    name: str = ""


class _Charts(msgspec.Struct):
    operator_types: list[_Type] | None = None


class _Brief(msgspec.Struct):
    schema_version: str
    profile: _Profile
    summary: _Summary
    findings: list[_Finding]
    facts: list[_Fact] = []
    charts: _Charts = msgspec.field(default_factory=_Charts)


def _summed_up(found: Found) -> SavedRun | None:
    text = read_own(found.path, LARGEST_BYTES)
    if _MARK not in text[-_HEAD:]:  # keys are sorted: a report ends with its tool
        return None
    brief = msgspec.json.decode(text, type=_Brief)
    profile, summary = brief.profile, brief.summary
    parts = summary.breakdown.items()
    if beyond("step.time_us", "us", summary.step_time_us) or any(
        beyond(f"step.{k}_share", "ratio", v) for k, v in parts
    ):
        return None
    causes, symptoms = causes_and_symptoms([(f.id, f.role, f.because, f.explains) for f in brief.findings])
    headline = Text(summary.headline.en, summary.headline.zh)
    words = [found.name, profile.path, summary.direction, headline.en, headline.zh]
    for finding in brief.findings:
        words += [finding.verdict, finding.rule, finding.title.en, finding.title.zh]
    return SavedRun(
        found.key, found.name, found.time, profile.path, summary.direction, headline, summary.step_time_us, causes,
        symptoms, _size(profile), _types(brief), tuple(_metrics(brief)), " ".join(words).casefold(),
    )  # fmt: skip


def _size(profile: _Profile) -> tuple[str, ...]:
    split = profile.parallelism or _Split()
    parts = {"data": split.data, "tensor": split.tensor, "pipeline": split.pipeline, "expert": split.expert}
    known = [f"{name} {size}" for name, size in parts.items() if size is not None and size > 1]
    return (profile.framework, str(profile.world_size or len(profile.ranks)), ", ".join(known), profile.recording)


def _types(brief: _Brief) -> frozenset[str]:
    return frozenset(entry.name for entry in (brief.charts.operator_types or ())[:8])


def _metrics(brief: _Brief) -> Iterator[Metric]:
    """Numbers of the run that can be followed over runs: step time, shares of the step, facts of the run."""
    found: dict[str, Metric] = {}
    if brief.summary.step_time_us is not None:
        found["step.time_us"] = Metric("step.time_us", "us", brief.summary.step_time_us)
    for part, share in brief.summary.breakdown.items():
        found[f"step.{part}_share"] = Metric(f"step.{part}_share", "ratio", share)
    for fact in brief.facts:
        value = fact.value
        if fact.subject.kind == "run" and isinstance(value, (int, float)) and not isinstance(value, bool):
            with suppress(OverflowError):
                number = float(value)
                if not beyond(fact.name, unit := _unit(fact.name), number):
                    found.setdefault(fact.name, Metric(fact.name, unit, number))
    yield from found.values()


def _unit(name: str) -> str:
    """The unit that the ending of a fact's name states; a plain number else."""
    endings = {"_us": "us", "_share": "ratio", "_bytes": "bytes", "_bytes_per_s": "bytes_per_s", "_ratio": "number"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "number")


def grouped(runs: Sequence[SavedRun]) -> list[Group]:
    """The runs by size and model. The model is the same where most operator types are: of each size as many models are
    told apart so as a team has; beyond these, only runs of the very same types are of one."""
    groups: list[tuple[tuple[str, ...], frozenset[str], list[SavedRun]]] = []
    of_size: dict[tuple[str, ...], list[int]] = {}
    of_types: dict[tuple[tuple[str, ...], frozenset[str]], int] = {}
    for run in runs:
        place = of_types.get((run.size, run.types))
        if place is None:
            known = of_size.setdefault(run.size, [])
            place = next((each for each in known[:_MODELS] if _alike(groups[each][1], run.types)), len(groups))
            of_types[run.size, run.types] = place
            if place == len(groups):
                groups.append((run.size, run.types, []))
                known.append(place)
        groups[place][2].append(run)
    return [Group(size, tuple(sorted(types))[:_TYPES_TOLD], tuple(members)) for size, types, members in groups]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return 2 * len(one & other) > len(one | other)


def same_kind(runs: Sequence[SavedRun], key: str) -> list[SavedRun]:
    """The runs of the group that this run belongs to; all where there is no such run."""
    return next((list(group.runs) for group in grouped(runs) if key in {run.key for run in group.runs}), list(runs))


def trend(runs: Sequence[SavedRun], metric: str) -> list[tuple[SavedRun, Metric]]:
    """The metric over the runs that have it, oldest first."""
    found = [(run, next((each for each in run.metrics if each.name == metric), None)) for run in runs]
    return sorted(((run, value) for run, value in found if value is not None), key=lambda pair: pair[0].time)
