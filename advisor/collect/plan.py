"""The one next collection that would decide most (S44): evidence that is missing, weighed by what is at stake."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from advisor.basics.units import show
from advisor.knowledge.statements import document
from advisor.knowledge.words import both
from advisor.knowledge.writers import LEFT, called_later, called_there, is_asked, written_by
from advisor.model import COLLECTION, RUN, Report, Text


@dataclass(frozen=True)
class Evidence:
    """Something the profiler can bring, and the settings that bring it."""

    name: str
    meaning: Text
    tables: tuple[str, ...]
    settings: dict[str, Any]
    relevance: str = ""
    """The fact that says how much of the step it is about."""


@lru_cache(maxsize=1)
def knowledge() -> dict[str, Any]:
    """knowledge_base/collection.yaml as it stands."""
    return dict(document("collection.yaml"))


def limit(name: str) -> float:
    """A number of knowledge_base/collection.yaml."""
    return float(knowledge()["limits"][name]["value"])


@lru_cache(maxsize=1)
def kinds_of_evidence() -> dict[str, Evidence]:
    """Every kind of evidence by name."""
    return {
        name: Evidence(
            name, Text(entry["meaning"]["en"], entry["meaning"]["zh"]), tuple(entry["tables"]), dict(entry["settings"]),
            entry.get("relevance", ""),
        )
        for name, entry in knowledge()["evidence"].items()
    }  # fmt: skip


def files_of(kind: Evidence, report: Report) -> tuple[str, ...]:
    """The files in which the profiler of this report leaves evidence of a kind; none where it cannot bring it."""
    writes = written_by(report.profile.layout, report.profile.framework)
    return tuple(writes[table].file for table in kind.tables if table in writes)


def weights(report: Report) -> dict[str, float]:
    """Kind of evidence -> rules that wait for it × share of the step it is about."""
    values = {fact.name: fact.value for fact in report.facts if fact.subject == RUN}
    waiting: dict[str, set[str]] = {}
    for missing in report.missing_evidence:
        for kind in kinds_of_evidence().values():
            if missing.evidence in files_of(kind, report):
                waiting.setdefault(kind.name, set()).update(missing.rules)
    found = {}
    for name, rules in waiting.items():
        share = values.get(kinds_of_evidence()[name].relevance)
        known = isinstance(share, (int, float)) and not isinstance(share, bool)
        found[name] = len(rules) * max(float(share) if known else 0.0, limit("default_relevance"))  # type: ignore[arg-type]
    return found


def next_evidence(report: Report) -> tuple[str, ...]:
    """Kinds of evidence of the next collection, what the headline misses before the most decisive; those that need
    another run are left out (data_process and schedule exclude one another)."""
    kinds, writer = kinds_of_evidence(), (report.profile.layout, report.profile.framework)
    wanted = {called_there(file, *writer) for file in report.summary.wanted} - {""}
    ordered = sorted(
        weights(report).items(), key=lambda item: (not wanted & {*files_of(kinds[item[0]], report)}, -item[1], item[0])
    )
    if not ordered:
        return ()
    first = kinds[ordered[0][0]]
    scheduled = "schedule" in first.settings
    least = min(limit("worthwhile") * max(weight for _, weight in ordered), ordered[0][1])
    return tuple(
        name for name, weight in ordered if weight >= least and ("schedule" in kinds[name].settings) == scheduled
    )


def next_collection(report: Report) -> Text:
    """One sentence: what to collect next and why; says so where nothing is missing."""
    values = {fact.name: fact.value for fact in report.facts if fact.subject == RUN}
    absent, missing = values.get("communication.absent_wait_share"), values.get("run.missing_ranks")
    if isinstance(absent, float) and isinstance(missing, int) and missing and absent >= limit("absent_wait"):
        said = "absent_unknown" if values.get("run.world_is_stated") is False else "absent_ranks"
        return both(f"collect.{said}", world=values.get("run.world_size"), share=show(absent, "ratio"))
    if values.get("recording.kind") == "kernel_benchmark":
        told = values.get("step.computing_share") == 0 or any(
            f.name == "operator_type.memory_rate" for f in report.facts
        )
        return both("collect.whole_program" if told else "collect.kernel_alone")
    if any(fact.name == "collection.records_device" and fact.value is False for fact in report.facts):
        return both("collect.device_too")
    if report.profile.framework == "unknown" and report.profile.layout == "msprof":
        return both(f"collect.{'marked_host' if values.get('recording.executes_model') else 'with_framework'}")
    if (later := _later(report)) is None:
        return _by_settings(report)
    file, version = later
    if not report.missing_evidence:
        return both("collect.later_alone", file=file, version=version)
    return both("collect.later", file=file, version=version, other=_by_settings(report))


def _later(report: Report) -> tuple[str, Text] | None:
    """What the headline misses and this profiler never writes, and the version that does; None where it can be had
    here, or nowhere."""
    writer = report.profile.layout, report.profile.framework
    if any(called_there(file, *writer) for file in report.summary.wanted):
        return None
    return next(filter(None, (called_later(file, *writer) for file in report.summary.wanted)), None)


def _by_settings(report: Report) -> Text:
    """What this profiler can bring."""
    written = _to_be_written(report)
    names = next_evidence(report)
    rest = tuple(name for name in names if name not in written)
    wanted = files_of(kinds_of_evidence()[names[0]], report) if names else ()
    left = [entry.evidence for entry in report.missing_evidence if entry.setting.startswith(LEFT)]
    files = ", ".join(left[:3]) or _absent(report, written)
    if names and files and (names[0] in written or not {*left}.isdisjoint(wanted)):
        alone = any(fact.name == "collection.database_only" and fact.value is True for fact in report.facts)
        copied = both("collect.text_beside" if alone else "collect.absent_files", files=files)
        return both("collect.absent_beside", files=copied, other=_described(report, rest)) if rest else copied
    names = rest
    if not names and report.missing_evidence:
        most = max(report.missing_evidence, key=lambda entry: len(entry.rules))
        return both("collect.setting", evidence=most.evidence, setting=most.setting)
    return _described(report, names) if names else both("collect.enough")


def _described(report: Report, names: tuple[str, ...]) -> Text:
    """The settings that bring these kinds of evidence, and how many rules wait for it."""
    kinds = kinds_of_evidence()
    rules = {
        rule
        for m in report.missing_evidence
        for rule in m.rules
        if any(m.evidence in files_of(kinds[name], report) for name in names)
    }
    meanings = reduce(
        lambda first, second: both("collect.and", first=first, second=second), (kinds[name].meaning for name in names)
    )
    key = "collect.next_one" if len(rules) == 1 else "collect.next_many"
    told = both(key, setting=describe(names, report.profile.layout), meanings=meanings, count=len(rules))
    if merged(names).get("schedule") and _processes_data(report):
        return both("collect.beside_data", other=told)
    return told


def _processes_data(report: Report) -> bool:
    """Whether this profile's settings record the data pipeline, which a schedule switches off."""
    told = ((fact.name, fact.subject, fact.value) for fact in report.facts)
    return any(one == ("collection.data_process", COLLECTION, True) for one in told)


def _to_be_written(report: Report) -> tuple[str, ...]:
    """Kinds of evidence that the settings of this profile asked for: the same settings bring nothing new."""
    told: dict[str, Any] = {
        fact.name.removeprefix("collection."): fact.value for fact in report.facts if fact.subject == COLLECTION
    }
    told["schedule"] = told.get("has_schedule")
    found = []
    for kind in kinds_of_evidence().values():
        # without a schedule the same files come, of the recording as a whole
        own = {name: value for name, value in kind.settings.items() if name != "schedule"} or kind.settings
        if all(is_asked(told, name, value) for name, value in own.items()):
            found.append(kind.name)
    return tuple(found)


def _absent(report: Report, kinds: tuple[str, ...]) -> str:
    """Files of these kinds of evidence that are missing, the most wanted first."""
    files = {file for name in kinds for file in files_of(kinds_of_evidence()[name], report)}
    return ", ".join([entry.evidence for entry in report.missing_evidence if entry.evidence in files][:3])


def merged(names: tuple[str, ...]) -> dict[str, Any]:
    """The settings that bring all of these kinds of evidence in one run."""
    settings: dict[str, Any] = {}
    for name in names:
        for key, value in kinds_of_evidence()[name].settings.items():
            settings[key] = max(settings.get(key, 0), value) if key == "level" else value
    if settings.get("data_process"):
        settings.pop("schedule", None)
    return settings


def describe(names: tuple[str, ...], layout: str = "") -> str:
    """The settings that bring these kinds of evidence as they are written: profiler_level=Level1, profile_memory=True;
    for the profiler that writes this layout, where that is an older one."""
    older = knowledge()["older"]
    if layout == older["layout"]:
        asked = [older["settings"][name] for name in kinds_of_evidence() if name in names and name in older["settings"]]
        return str(older["call"]).format(settings=", ".join(asked))
    settings, words = merged(names), []
    if "level" in settings:
        words.append(f"profiler_level=ProfilerLevel.Level{settings['level']}")
    words += [
        f"{key}=True" for key in ("data_process", "profile_memory", "l2_cache", "with_stack") if settings.get(key)
    ]
    words.append("schedule" if settings.get("schedule") else "no schedule")
    return ", ".join(words)
