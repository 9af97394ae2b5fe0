"""What was recognised, what is missing, which setting brings it and which rules wait for it. Reads no large file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.basics.jsonout import shield_json
from advisor.engine.concluding.evidence import waiting_for
from advisor.engine.judge import rule_needs
from advisor.facts.registry import catalogue
from advisor.knowledge.messages import translated
from advisor.knowledge.values import say_value
from advisor.knowledge.words import word
from advisor.knowledge.writers import left_behind, written_by
from advisor.model import MissingEvidence
from advisor.render.escaping import printable
from advisor.sources.base import Profile, say_once
from advisor.sources.folders import Walk
from advisor.sources.metadata import is_database_only

if TYPE_CHECKING:
    from advisor.ruleset.files.loader import RuleSet
    from advisor.sources.archives import Opened

FOLDERS_SHOWN = 20
RANKS_SHOWN = 8
"""More ranks than this are told as a number."""


@dataclass
class Diagnosis:
    path: str
    recognised: bool
    layout: str = ""
    framework: str = ""
    ranks: list[dict[str, object]] = field(default_factory=list)
    world_size: int | None = None
    missing: tuple[MissingEvidence, ...] = ()
    """Tables no rank has, and the rules that cannot be judged without them."""
    problems: list[dict[str, Any]] = field(default_factory=list)
    unparsed: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    """Folders that no layout recognised, and why; only where nothing was recognised at all."""
    empty: bool = False
    """There is no file at all."""
    engine: str = ""


def examine(paths: Sequence[str | Path], rules: RuleSet) -> Diagnosis:
    """Looks at the profile's folders and file names; opens nothing but metadata."""
    from advisor.sources.archives import opened

    with opened(paths) as given:
        return _examined(given, rules)


def _examined(given: Opened, rules: RuleSet) -> Diagnosis:
    from advisor.engine.matching.select import available_engine
    from advisor.sources.database.dbfile import note_odd_rows
    from advisor.sources.discover import load_profile

    profile = load_profile(given.paths, shown=given.shown)
    for rank in profile.ranks:
        note_odd_rows(rank)
    profile.problems += given.problems
    tables = {table for rank in profile.ranks for table in rank.tables}
    ranks: list[dict[str, object]] = [
        {
            "rank": rank.rank,
            "folder": rank.relative(rank.root) or ".",
            "layout": rank.layout,
            "known": rank.rank_known,
            "evidence": {
                name: [rank.relative(path) for path in reference.paths]
                for name, reference in sorted(rank.tables.items())
            },
        }
        for rank in profile.ranks
    ]
    problems = [*profile.problems, *(p for rank in profile.ranks for p in rank.problems), *rules.problems()]
    return Diagnosis(
        path=profile.path,
        recognised=bool(profile.ranks),
        layout=profile.layout,
        framework=profile.framework,
        ranks=ranks,
        world_size=profile.world_size,
        missing=waiting_for(
            ((rule.id, rule_needs(rule)) for rule in rules.rules),
            catalogue(),
            tables,
            left_behind(
                written_by(profile.layout, profile.framework, any(map(is_database_only, profile.settings))),
                profile.settings[0] if profile.settings else {},
            ),
        ),
        problems=[{"file": p.file, "problem": p.problem, "also": list(p.also)} for p in say_once(problems)],
        unparsed=_unparsed(profile),
        passed_over=[] if profile.ranks else _passed_over(given.paths),
        empty=not profile.ranks and not any(_holds_files(path) for path in given.paths),
        engine=available_engine(),
    )


def _passed_over(paths: Sequence[str | Path]) -> list[str]:
    from advisor.sources.discover import explain_folders

    return [
        f"{recognition.folder}: {judgement.layout}: {judgement.reason}"
        for recognition in explain_folders(paths)[:FOLDERS_SHOWN]
        for judgement in recognition.judgements
    ]


def _holds_files(path: str | Path) -> bool:
    return not Path(path).is_dir() or any(listing.files for listing in Walk(Path(path)))


def _unparsed(profile: Profile) -> list[str]:
    return [rank.relative(path) for rank in profile.ranks for path in rank.unparsed]


def show(diagnosis: Diagnosis, form: str, lang: str) -> str:
    """The diagnosis as text or JSON."""
    if form == "json":
        document = {**vars(diagnosis), "missing": [vars(m) for m in diagnosis.missing]}
        return shield_json(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1)) + "\n"
    say = partial(word, lang)
    if diagnosis.empty:
        return printable(say("doctor.empty", path=diagnosis.path)) + "\n"
    lines = [_recognised(diagnosis, lang)]
    for rank in diagnosis.ranks[:RANKS_SHOWN]:
        evidence = rank["evidence"]
        assert isinstance(evidence, dict)
        names = ", ".join(sorted({Path(path).name for paths in evidence.values() for path in paths}))
        key = "doctor.rank" if rank["known"] else "doctor.rank_guessed"
        lines.append("  " + say(key, rank=rank["rank"], folder=rank["folder"], files=names))
    if len(diagnosis.ranks) > RANKS_SHOWN:
        lines.append("  " + say("doctor.more_ranks", count=len(diagnosis.ranks) - RANKS_SHOWN))
    lines += [f"  {reason}" for reason in diagnosis.passed_over]
    if diagnosis.unparsed:
        lines.append(say("doctor.unparsed"))
        lines += [f"  {path}" for path in diagnosis.unparsed[:RANKS_SHOWN]]
        lines.append(
            "  mindspore.profiler.profiler.analyse(<folder>)   /   torch_npu.profiler.profiler.analyse(<folder>)"
        )
    if diagnosis.missing and diagnosis.recognised:
        lines.append(say("doctor.missing"))
        for m in diagnosis.missing:
            rules = ", ".join(m.rules[:6]) + (" …" if len(m.rules) > 6 else "")
            setting = m.setting or "-"
            told = {"evidence": translated(m.evidence, lang), "setting": translated(setting, lang)}
            lines.append("  " + say("doctor.missing_line", **told, count=len(m.rules), rules=rules))
    if diagnosis.problems:
        lines.append(say("doctor.problems"))
        for each in diagnosis.problems:
            file = f"{each['file']} (+{len(each['also'])})" if each["also"] else each["file"]
            lines.append("  " + say("doctor.problem", file=file, problem=translated(str(each["problem"]), lang)))
    lines.append(say("doctor.engine", engine=diagnosis.engine))
    return "\n".join(printable(line) for line in lines) + "\n"


def _recognised(diagnosis: Diagnosis, lang: str) -> str:
    if not diagnosis.recognised:
        return word(lang, "doctor.nothing", path=diagnosis.path)
    framework = say_value(diagnosis.framework, "text", lang, "run.framework")
    layout = say_value(diagnosis.layout, "text", lang, "run.layout")
    return word(
        lang, "doctor.recognised", path=diagnosis.path, framework=framework, layout=layout,
        ranks=len(diagnosis.ranks), world=diagnosis.world_size or len(diagnosis.ranks),
    )  # fmt: skip
