"""Remedies: one file each, in `knowledge_base/remedies/` or in the `remedies/` folder of a pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from advisor.basics.errors import RuleError
from advisor.knowledge.remedy import RemedySpec, remedy_files
from advisor.model import Verify
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import Faults, LintError, of_error, validate
from advisor.yamlfiles.shapes import Model, TextModel, Word


class VerifyModel(Model):
    fact: str
    expect: str


class RemedyModel(Model):
    """One file of `remedies/`."""

    id: Word
    title: TextModel
    action: TextModel
    parameter: str | dict[str, str] = Field(default_factory=dict)
    effort: Literal["minutes", "hours", "days"]
    brings_evidence: bool = False
    risk: TextModel | None = None
    verify: VerifyModel | None = None
    snippet: dict[str, str] = Field(default_factory=dict)
    statements: list[str] = Field(default_factory=list)


def load_remedies(packs: Sequence[Path] = ()) -> tuple[dict[str, RemedySpec], list[LintError]]:
    """Every shipped remedy and those of these packs, by id, and what is wrong with their files."""
    remedies: dict[str, RemedySpec] = {}
    errors: list[LintError] = []
    for path in remedy_files(packs):
        spec, faults = load_remedy(path)
        errors.extend(faults)
        if spec is None:
            continue
        if spec.id in remedies:
            errors.append(
                LintError(str(path), spec.line, f"a second remedy {spec.id!r}", f"see {remedies[spec.id].path}")
            )
            continue
        remedies[spec.id] = spec
    return remedies, errors


def load_remedy(path: Path) -> tuple[RemedySpec | None, list[LintError]]:
    """One remedy file; None, with every defect, where it cannot be used."""
    try:
        document = read_document(path)
    except RuleError as error:
        return None, [of_error(error, path)]
    faults = Faults(document)
    model = validate(RemedyModel, document, faults)
    if model is None:
        return None, faults.found
    if path.stem != model.id:
        faults.add(("id",), f"the file is named {path.name}", f"name it {model.id}.yaml")
    spec = RemedySpec(
        id=model.id,
        title=model.title.text(),
        action=model.action.text(),
        parameter={"any": model.parameter} if isinstance(model.parameter, str) else dict(model.parameter),
        effort=model.effort,
        brings_evidence=model.brings_evidence,
        risk=model.risk.text() if model.risk else None,
        verify=Verify(model.verify.fact, model.verify.expect) if model.verify else None,
        snippet=dict(model.snippet),
        statements=tuple(model.statements),
        path=path,
        line=document.line(("id",)),
    )
    return spec, faults.found
