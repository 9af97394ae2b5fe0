"""A small catalogue and rules made from text, for tests of the rule language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advisor.facts.base import FactKind, FactSet, kind
from advisor.model import RUN, Fact, Subject
from advisor.ruleset.files.builder import build_rule
from advisor.ruleset.files.schema import RuleModel
from advisor.ruleset.rule import Rule
from advisor.yamlfiles.document import parse_document
from advisor.yamlfiles.faults import Faults, validate

PACK = Path(__file__).parents[1] / "ruleset" / "data" / "pack"

CATALOGUE: dict[str, FactKind] = {
    each.name: each
    for each in (
        kind("run.world_size", "count", "run", "ranks"),
        kind("run.framework", "text", "run", "framework"),
        kind("run.mode", "text", "run", "mode"),
        kind("step.count", "count", "run rank", "steps"),
        kind("step.time_us", "us", "run rank", "step time"),
        kind("step.idle_share", "ratio", "run rank", "idle"),
        kind("step.exposed_share", "ratio", "run rank", "exposed"),
        kind("step.overlapped_us", "us", "run", "hidden"),
        kind("step.communication_us", "us", "run", "communication"),
        kind("rank.compute_us", "us", "rank", "computation"),
        kind("rank.wait_share", "ratio", "rank", "waiting"),
        kind("rank.late", "bool", "rank", "late"),
        kind("rank.stage", "count", "rank", "its stage"),
        kind("rank.peer_group", "text", "rank", "role"),
        kind("stage.index", "count", "stage", "its number"),
        kind("stage.compute_us", "us", "stage", "computation"),
        kind("link.bytes", "bytes", "link", "transferred"),
        kind("link.time_us", "us", "link", "time"),
        kind("link.bandwidth", "bytes_per_s", "link", "bandwidth"),
        kind("run.versions", "list", "run", "versions"),
    )
}

_HEAD = """
id: T1
title: {en: a, zh: b}
verdict: acme/t
direction: computation
kind: cause
severity: low
message: {en: m, zh: m}
"""


def rule(text: str, subject_kind: str = "run", **replaced: str) -> Rule:
    """A rule with these keys beside the obligatory ones; raises AssertionError with the faults."""
    head = _HEAD
    for key, value in replaced.items():
        head = "\n".join(f"{key}: {value}" if line.startswith(f"{key}:") else line for line in head.splitlines())
    made, faults = faulty(f"{head}\nfor: {subject_kind}\n{text}")
    assert made is not None, faults
    return made


def faulty(text: str) -> tuple[Rule | None, list[Any]]:
    """A rule file's text, built; the faults met."""
    document = parse_document(text)
    faults = Faults(document)
    model = validate(RuleModel, document, faults)
    return (None if model is None else build_rule(model, faults, CATALOGUE)), faults.found


def facts(run: dict[str, Any] | None = None, **ranks: dict[str, Any]) -> FactSet:
    """Facts of the run, and of ranks r0=…, r1=…."""
    found = FactSet(Fact(name, RUN, value) for name, value in (run or {}).items())
    for name, values in ranks.items():
        number = int(name[1:])
        for fact, value in values.items():
            found.add(Fact(fact, Subject("rank", str(number), (number,)), value))
    return found


def rank(number: int) -> Subject:
    return Subject("rank", str(number), (number,))
