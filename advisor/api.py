"""The public functions, for scripts and notebooks: what the commands of the same names do, with objects for answers."""

from __future__ import annotations

import html
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from advisor import model
from advisor.facts.base import FactSet
from advisor.ruleset.files.loader import RuleSet
from advisor.sources.base import Profile

if TYPE_CHECKING:
    import pandas

    from advisor.compare.model import Comparison
    from advisor.config import Config
    from advisor.gate.model import Decision

Paths = str | Path | Sequence[str | Path]
"""One profile: a folder, an archive, or several files and folders that belong together."""

_FRAME_HEIGHT = 640
"""Pixels of a report in a notebook; readers drag it larger."""


class Report(model.Report):
    """The whole answer on one profile, which shows itself in a notebook."""

    def to_html(self, lang: str = "en") -> str:
        """The report as one HTML page that needs no network."""
        from advisor.render import render

        return render(self, "html", lang)

    def to_json(self) -> str:
        """The report as the JSON document of the contract."""
        from advisor.render import render

        return render(self, "json")

    def findings_frame(self, lang: str = "en") -> pandas.DataFrame:
        """One row a finding, in the order of the report; times in microseconds per step, shares of the step."""
        import pandas as pd

        names = (
            "id", "rule", "verdict", "direction", "role", "severity", "confidence", "subject_kind", "subject", "ranks",
            "title", "message", "saving_us", "saving_share", "because", "explains", "remedies",
        )  # fmt: skip
        frame: pd.DataFrame = pd.DataFrame(
            [_finding_row(finding, lang) for finding in self.findings], columns=list(names)
        )
        return frame

    def facts_frame(self) -> pandas.DataFrame:
        """One row a fact that the rules asked for: name, subject, value, unit, samples, and where it was read."""
        import pandas as pd

        from advisor.facts.registry import catalogue

        kinds = catalogue()
        names = ("fact", "subject_kind", "subject", "ranks", "value", "unit", "samples", "files")
        rows = [
            (f.name, f.subject.kind, f.subject.id, f.subject.ranks, f.value,
             kinds[f.name].unit if f.name in kinds else "", f.samples, tuple(source.file for source in f.sources))
            for f in self.facts
        ]  # fmt: skip
        frame: pd.DataFrame = pd.DataFrame(rows, columns=list(names))
        return frame

    def _repr_html_(self) -> str:
        """What a notebook shows: the HTML report in a frame of its own, so that neither changes the other's looks."""
        page = html.escape(self.to_html(), quote=True)
        return (
            f"<p><b>{html.escape(self.summary.headline.en)}</b></p>\n"
            f'<iframe sandbox="allow-scripts" style="width:100%;height:{_FRAME_HEIGHT}px;border:0;resize:vertical;'
            f'overflow:auto" title="advisor" srcdoc="{page}"></iframe>'
        )


def _finding_row(finding: model.Finding, lang: str) -> tuple[Any, ...]:
    saving = finding.saving
    return (
        finding.id, finding.rule, finding.verdict, finding.direction.value, finding.role.value, finding.severity.value,
        finding.confidence.value, finding.subject.kind, finding.subject.id, finding.subject.ranks,
        finding.title.get(lang), finding.message.get(lang), saving.us_per_step if saving else None,
        saving.share_of_step if saving else None, finding.because, finding.explains,
        tuple(remedy.id for remedy in finding.remedies),
    )  # fmt: skip


def _shown(report: model.Report) -> Report:
    return Report(**{each.name: getattr(report, each.name) for each in fields(model.Report)})


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, (str, Path)) else list(paths)


def load_profile(path: Paths) -> Profile:
    """Recognises what lies there; reads nothing but metadata. Raises UsageError where the path does not exist.

    An archive is unpacked into a temporary folder that is there as long as the profile is.
    """
    from advisor.sources.archives import opened
    from advisor.sources.discover import load_profile as load

    with ExitStack() as stack:
        given = stack.enter_context(opened(_listed(path)))
        profile = load(given.paths, shown=given.shown)
        profile.problems += given.problems
        weakref.finalize(profile, stack.pop_all().close)
        return profile


def load_rules(
    *directories: str | Path,
    config: str | Path | None = None,
    model: str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    allow_code: Sequence[str | Path] = (),
) -> RuleSet:
    """The rules that the configuration names (`config`, else the one found from here upwards), and further packs.

    `model`, `select` and `ignore` are those of the command line. `allow_code`: folders whose extractors may run, beside
    those of trusted ones (`advisor trust`). Raises RuleError with file and line; what is wrong with an extractor is
    told in the reports.
    """
    return _rules((), directories, config, model, select, ignore, allow_code)[0]


def _rules(
    profiles: Sequence[str | Path],
    directories: Sequence[str | Path] = (),
    file: str | Path | None = None,
    model: str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    allow_code: Sequence[str | Path] = (),
    required: Sequence[str] = (),
) -> tuple[RuleSet, Config]:
    from advisor.facts.extractors import load_extractors
    from advisor.ruleset.files.loader import load_rules as load
    from advisor.trust import settle

    settled = settle(file, profiles, allow_code)
    for key in (*required, *(("models",) if model else ())):
        settled.require(key)
    config = settled.config.for_model(model)
    warnings = load_extractors(config.extractors)
    config = config.with_options(rules=directories, select=select, ignore=ignore)
    rules = load(config=config)
    return replace(rules, errors=(*rules.errors, *warnings), notes=settled.notes), config


def advise(path: Paths, rules: RuleSet | None = None, jobs: int = 1) -> Report:
    """Analyses one profiler result. Where nothing was recognised the report has no ranks.

    `jobs` above 1 starts processes, 0 one a processor where the input is large; none runs the calling script again.
    """
    from advisor.pipeline import Options
    from advisor.pipeline import advise as run

    paths = _listed(path)
    return _shown(run(paths, rules or _rules(paths)[0], Options(jobs=jobs)))


def facts(path: Paths, names: Iterable[str] | None = None, jobs: int = 1) -> FactSet:
    """The facts measured in a profile, or these of them (`advisor facts list`). Raises NoVerdict where nothing was
    recognised."""
    from advisor.pipeline import Options, measure

    return measure(_listed(path), names, Options(jobs=jobs)).facts


def compare(
    before: str | Path | model.Report, after: str | Path | model.Report, rules: RuleSet | None = None, jobs: int = 1
) -> Comparison:
    """What a change did. Each side is a profile, a saved report, saved facts, or a Report."""
    from advisor.compare import compare as run
    from advisor.compare import read_report
    from advisor.pipeline import Options

    def side(given: str | Path | model.Report) -> model.Report:
        if isinstance(given, model.Report):
            return given
        return read_report(os.fspath(given), rules or _rules([given])[0], Options(jobs=jobs))

    return run(side(before), side(after))


def gate(
    profiles: Paths,
    baseline: str | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    rules: RuleSet | None = None,
    key: Mapping[str, str] | None = None,
    fail_on: str | None = None,
    jobs: int = 1,
) -> Decision:
    """Compares runs, one a profile, with a baseline (`FOLDER#NAME`), applies the policy, passes or fails.

    `policy` is a `[gate]` table; without one that of the configuration. `key`: fields that no profile tells (model,
    hardware, …). Raises UsageError and NoVerdict.
    """
    from advisor.facts.registry import catalogue
    from advisor.gate.flow import profile_sampler, run_gate
    from advisor.gate.history.baselines import parse_reference
    from advisor.gate.policy import read_policy
    from advisor.pipeline import Options

    paths = [os.fspath(each) for each in _listed(profiles)]
    known, config = _rules(paths, required=() if policy is not None else ("gate",))
    read = read_policy(config.gate if policy is None else policy, catalogue(), config.path)
    named = baseline
    if named is None and read.baseline:
        named = os.fspath(config.path.parent / read.baseline) if config.path and policy is None else read.baseline
    sampler = profile_sampler(read, rules or known, Options(jobs=jobs), dict(key or {}), {})
    return run_gate(paths, (), parse_reference(named) if named else None, read, sampler, fail_on=fail_on)
