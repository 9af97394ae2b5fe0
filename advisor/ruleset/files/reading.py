"""Rule files as written → rules, with every defect of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor.basics.errors import RuleError
from advisor.facts.base import FactKind
from advisor.ruleset.files.builder import build_rule
from advisor.ruleset.files.found import rule_files, rule_id_of
from advisor.ruleset.files.schema import RuleModel
from advisor.ruleset.rule import Rule
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import Faults, LintError, of_error, validate


def read_rules(directories: Sequence[Path], catalogue: Mapping[str, FactKind]) -> tuple[list[Rule], list[LintError]]:
    """Every rule of these folders as written, and every defect of their files; a second rule of one id is one."""
    found: dict[str, Rule] = {}
    errors: list[LintError] = []
    for path in (path for directory in directories for path in rule_files(directory)):
        rule, faults = load_rule(path, catalogue)
        errors.extend(faults)
        if rule is None:
            continue
        if rule.id in found:
            errors.append(
                LintError(str(path), rule.line, f"a second rule {rule.id}", f"the first is {found[rule.id].path}")
            )
            continue
        found[rule.id] = rule
    return list(found.values()), errors


def load_rule(path: Path, catalogue: Mapping[str, FactKind]) -> tuple[Rule | None, list[LintError]]:
    """One rule file; None, with every defect, where it cannot be used."""
    try:
        document = read_document(path)
    except RuleError as error:
        return None, [of_error(error, path)]
    faults = Faults(document)
    model = validate(RuleModel, document, faults)
    if model is None:
        return None, faults.found
    if rule_id_of(path) != model.id:
        faults.add(("id",), f"the rule {model.id} stands in {path.name}", f"name the file {model.id}-<slug>.yaml")
    return build_rule(model, faults, catalogue), faults.found
