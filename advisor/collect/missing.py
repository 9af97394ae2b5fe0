"""The configurations that bring what a report lacked, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from advisor.basics.units import show
from advisor.collect.plan import files_of, kinds_of_evidence, knowledge, merged, weights
from advisor.collect.write import write_configuration
from advisor.knowledge.words import word
from advisor.model import RUN, MissingEvidence, Report

_NO_COMMENTS = ("dynamic",)
"""Forms in which a remark cannot stand."""


@dataclass(frozen=True)
class Collection:
    """What to run next: the configurations as one text, and what else is to be said."""

    text: str
    remarks: tuple[str, ...]


def for_missing(report: Report, form: str, lang: str, framework: str | None = None, **given: Any) -> Collection:
    """Configurations for everything the rules of a report waited for, the most decisive first: one, or two where the
    data pipeline and single steps are both wanted (they exclude one another)."""
    wanted = [name for name, _ in sorted(weights(report).items(), key=lambda item: (-item[1], item[0]))]
    barred = [name for name in wanted if name in knowledge()["cannot"].get(form, ())]
    kinds = kinds_of_evidence()
    runs: dict[bool, list[str]] = {}
    for name in wanted:
        if name not in barred:
            runs.setdefault("data_process" in kinds[name].settings, []).append(name)
    framework = framework or (report.profile.framework if report.profile.framework != "unknown" else None)
    remarks: list[str] = []
    texts: list[str] = []
    for number, names in enumerate(runs.values(), 1):
        said = _said(report, names, form, number, len(runs), lang)
        text = write_configuration(_complete(names, form), framework, form, lang=lang, **given)
        if form in _NO_COMMENTS:
            remarks.append(said)
        else:
            text = f"# {said}\n{text}"
        texts.append(text)
    if barred:
        remarks.append(word(lang, "collect.cannot", form=form, meanings=_meanings(barred, lang)))
    remarks += [word(lang, "collect.other", evidence=m.evidence, setting=m.setting) for m in _others(report)]
    if absent := _absent(report.profile.ranks, report.profile.world_size):
        stated = not any(f.name == "run.world_is_stated" and f.value is False for f in report.facts)
        said = "collect.absent" if stated else "collect.absent_named"
        remarks.append(word(lang, said, **({"world": report.profile.world_size} if stated else {}), ranks=absent))
    if not wanted and not remarks:
        remarks.append(word(lang, "collect.nothing"))
    return Collection("\n".join(texts), tuple(remarks))


def _absent(ranks: Sequence[int], world: int | None) -> str:
    """The ranks of the run that have no profile, in short: "0, 2-7"; empty where none is known to be missing."""
    edges = [-1, *sorted(rank for rank in set(ranks) if rank < (world or 0)), world or 0]
    runs = [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def _others(report: Report) -> Iterator[MissingEvidence]:
    """Evidence that no setting of the profiler brings: other ranks, another tool, parsing."""
    known = {file for kind in kinds_of_evidence().values() for file in files_of(kind, report)}
    yield from (missing for missing in report.missing_evidence if missing.evidence not in known)


def _complete(names: list[str], form: str) -> list[str]:
    """With what every diagnosis needs: the next report must not lack what the last one had."""
    if merged(tuple(names)).get("data_process"):
        return names
    barred = knowledge()["cannot"].get(form, ())
    return [*names, *(each for each in knowledge()["usual"] if each not in names and each not in barred)]


def _said(report: Report, names: list[str], form: str, number: int, count: int, lang: str) -> str:
    """What a run brings, and what it costs."""
    kernels, size = step_bytes(report, _complete(names, form))
    order = list(knowledge()["slowdowns"])
    slowdown = max((knowledge()["cost"][name]["slowdown"] for name in names), key=order.index)
    key = "collect.run_data" if merged(tuple(names)).get("data_process") else "collect.run"
    return word(
        lang, key, number=number, count=count, meanings=_meanings(names, lang), size=show(size, "bytes"),
        kernels=f"{kernels:.0f}", slowdown=word(lang, f"collect.{slowdown}"),
    )  # fmt: skip


def step_bytes(report: Report, names: list[str]) -> tuple[float, float]:
    """(kernels of a step, bytes that a rank writes a step) with these kinds of evidence; the kernels are the report's
    where it tells them. The timeline comes with every recording of steps."""
    values = {fact.name: fact.value for fact in report.facts if fact.subject == RUN}
    kernels = _number(values.get("operators.kernel_count")) or float(knowledge()["usual_kernels"]["value"])
    collectives = _number(values.get("communication.count")) or 0.0
    costs = [knowledge()["cost"][name] for name in {*names, "steps"}]
    return kernels, sum(cost["kernel"] * kernels + cost["collective"] * collectives for cost in costs)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def _meanings(names: list[str], lang: str) -> str:
    return word(lang, "collect.list").join(kinds_of_evidence()[name].meaning.get(lang) for name in names)
