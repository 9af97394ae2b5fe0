"""One run as the gate sees it: facts, verdicts, and the key that says with what it may be compared."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.basics.errors import UsageError
from advisor.basics.units import rank_list
from advisor.compare.facts import FactTable
from advisor.facts.base import FactSet
from advisor.gate.metrics import defaults, facts_of
from advisor.model import Check, Finding, Problem, ProfileInfo, Report, Summary

if TYPE_CHECKING:
    from advisor.facts.base import Measured
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet
    from advisor.sources.base import Profile


_USUAL = "training_steps"
"""What runs record; the key names what is something else."""
EVIDENCE = "evidence"
"""Field of the key of runs that were not profiled; where it differs no other field matters."""


@dataclass(frozen=True)
class Sample:
    """A run that was measured and judged. Two samples with one `digest` (of the facts) or one `content` (of the files)
    are of the same run, wherever its folder lies."""

    id: str
    key: Mapping[str, str]
    info: ProfileInfo
    summary: Summary
    facts: FactSet
    findings: tuple[Finding, ...] = ()
    checked: tuple[Check, ...] = ()
    problems: tuple[Problem, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    added: str = ""
    digest: str = ""
    content: str = ""
    version: str = ""
    """Of the advisor that measured and judged it."""

    @cached_property
    def table(self) -> FactTable:
        """The facts by name and subject, as comparisons ask for them."""
        return FactTable(self.facts)

    @property
    def attributes(self) -> dict[str, str]:
        """What `[[gate.when]]` may ask for: the key, and metadata as `metadata.NAME`."""
        return {**self.key, **{f"metadata.{name}": value for name, value in self.metadata.items()}}

    def report(self) -> Report:
        return Report(
            self.info, self.summary, self.findings, self.checked, (), self.problems, tuple(self.facts), "", {}
        )


def take_sample(
    path: str | Path,
    rules: RuleSet,
    options: Options,
    given: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    more_facts: Sequence[str] = (),
) -> Sample:
    """Measures and judges one profile. `given` are key fields that no profile tells (model, hardware, …).

    Raises NoVerdict where nothing was recognised.
    """
    from advisor.engine.judge import judge
    from advisor.exchange import tool_version
    from advisor.pipeline import measure

    wanted = {*rules.uses_facts(), *gate_facts(), *more_facts}
    measured = measure([path], wanted, options)
    report = judge(measured, rules, options.engine)
    facts = FactSet(report.facts)
    return Sample(
        id=str(path),
        key=key_of(measured, given or {}),
        info=report.profile,
        summary=report.summary,
        facts=facts,
        findings=report.findings,
        checked=report.checked,
        problems=report.problems,
        metadata=dict(metadata or {}),
        digest=digest_of(facts),
        content=content_of(measured.run.profile) if measured.run is not None else "",
        version=tool_version(),
    )


def gate_facts() -> set[str]:
    """Names of the facts that gate metrics and explanations are made of."""
    from advisor.knowledge.comparison import compared_facts

    metrics = (fact for name in defaults()["metrics"] for fact in facts_of(name))
    return {*compared_facts(), *metrics, defaults()["key"]["shapes"]["fact"]}


def digest_of(facts: FactSet) -> str:
    """The same for the same measurement, whatever folder it lies in and whatever else the rules asked for; empty where
    nothing was measured."""
    wanted = gate_facts()
    lines = sorted(f"{f.name} {f.subject.kind} {f.subject.id} {f.value!r}" for f in facts if f.name in wanted)
    return hashed("\n".join(lines).encode("utf-8", "replace")) if lines else ""


_END = 16_384
"""Bytes at either end of a file that tell it from others of its size."""


def content_of(profile: Profile) -> str:
    """The same for the same recorded files, whatever they are called; empty where they can no longer be read."""
    paths = {path for rank in profile.ranks for table in rank.tables.values() for path in table.paths}
    try:
        marks = sorted({_mark(path) for path in paths if path.is_file()})
    except OSError:
        return ""
    return hashed("\n".join(marks).encode()) if marks else ""


def _mark(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(_END)
        file.seek(max(0, size - _END))
        return f"{size} {hashed(head + file.read(_END))}"


def hashed(data: bytes) -> str:
    """A mark that two different measurements do not share."""
    return hashlib.sha256(data).hexdigest()


def key_of(measured: Measured, given: Mapping[str, str]) -> dict[str, str]:
    """Everything that must be equal for two runs to be compared, as a flat mapping; unknown fields are absent.

    Raises UsageError where `given` contradicts what the profile says of itself.
    """
    info = measured.info
    key: dict[str, str] = {
        "framework": info.framework,
        "layout": info.layout,
        "ranks": rank_list(info.ranks, limit=len(info.ranks) + 1),
        **{f"versions.{name}": value for name, value in info.versions.items()},
    }
    if info.recording != _USUAL:
        key["recording"] = info.recording
    if info.world_size is not None:
        key["world_size"] = str(info.world_size)
    for name in ("data", "tensor", "pipeline", "expert"):
        size = getattr(info.parallelism, name)
        if size is not None:
            key[f"parallelism.{name}"] = str(size)
    settings = measured.run.profile.settings if measured.run is not None else []
    if settings:
        key.update(_flat(settings[0], "profiler."))
    for name, value in given.items():
        if key.setdefault(name, value) != value:
            raise UsageError(f"the profile says {name} is {key[name]}, the key given says {value}", place=info.path)
    return dict(sorted(key.items()))


def _flat(table: Mapping[str, Any], prefix: str) -> dict[str, str]:
    ignored = defaults()["key"]["settings_ignored"]
    flat: dict[str, str] = {}
    for name, value in table.items():
        full = prefix + str(name)
        if full.removeprefix("profiler.") in ignored:
            continue
        if isinstance(value, Mapping):
            flat.update(_flat(value, full + "."))
        else:
            flat[full] = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return flat


@dataclass(frozen=True)
class Difference:
    """A field in which two keys differ; None where one of them does not have it."""

    field: str
    before: str | None
    after: str | None


def differences(before: Mapping[str, str], after: Mapping[str, str], ignored: Sequence[str] = ()) -> list[Difference]:
    """Fields that differ, except those `ignored` names (`*` allowed)."""
    return [
        Difference(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name) and not any(fnmatchcase(name, pattern) for pattern in ignored)
    ]
