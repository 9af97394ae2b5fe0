"""Rule files → RuleSet. One broken file never loses the others; every defect is told with file, line and a hint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.errors import ConfigError, RuleError
from advisor.basics.quantity import in_unit
from advisor.basics.suggest import suggest
from advisor.config import Config
from advisor.facts.base import FactKind
from advisor.knowledge.remedy import RemedySpec
from advisor.model import Problem, Severity
from advisor.ruleset.files.compiled import compiled
from advisor.ruleset.files.found import rule_id_of
from advisor.ruleset.files.packs import resolve
from advisor.ruleset.rule import Ladder, Rule, fits_unit, frozen
from advisor.yamlfiles.faults import LintError


class RuleSet(Struct, frozen=True, dict=True):
    """Rules sorted by id, the remedies they may name, and what could not be loaded."""

    rules: tuple[Rule, ...] = ()
    remedies: Mapping[str, RemedySpec] = field(default_factory=dict)
    errors: tuple[LintError, ...] = ()
    notes: tuple[LintError, ...] = ()
    """What every report must say of the configuration that chose these rules."""
    mentions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """As of `Compiled`; a rule that is not in it is looked through."""

    @cached_property
    def by_id(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in self.rules}

    def uses_facts(self) -> frozenset[str]:
        """Names of all facts that the rules, their texts and their remedies mention."""
        return self._facts

    @cached_property
    def _facts(self) -> frozenset[str]:
        named = (self.mentions.get(rule.id) or rule.uses_facts(self.remedies) for rule in self.rules)
        return frozenset().union(*named)

    def broken(self) -> dict[str, str]:
        """Rules that could not be loaded: id, taken from the file's name, and the first reason."""
        reasons: dict[str, str] = {}
        for error in self.errors:
            if error.level == "error":
                name = rule_id_of(Path(error.file))
                if name not in self.by_id:
                    reasons.setdefault(name, error.message)
        return reasons

    def problems(self) -> tuple[Problem, ...]:
        """The errors and notes in the form reports show them."""
        return tuple(Problem(error.place, error.message) for error in (*self.notes, *self.errors))


def load_rules(
    directories: Sequence[Path] | None = None,
    *,
    config: Config | None = None,
    catalogue: Mapping[str, FactKind] | None = None,
    strict: bool = True,
) -> RuleSet:
    """The rules of these folders, or of the packs the configuration names, tuned and selected by it.

    Without a catalogue the facts are those that the advisor and its extractors measure, and rules that were read and
    checked once are not parsed again. Without `strict` a broken file becomes an entry of `errors`; with it, RuleError
    lists all of them. ConfigError where the configuration names a rule, parameter or pack that does not exist.
    """
    config = config or Config()
    if directories is None:
        directories, config = resolve(config)
    read = compiled(directories, catalogue)
    rules, remedies, errors = read.rules, {spec.id: spec for spec in read.remedies}, read.errors
    if strict and errors:
        raise RuleError(
            f"{len(errors)} defect{'s' if len(errors) > 1 else ''} in the rules\n"
            + "\n".join(map(str, sorted(errors))),
            hint="`advisor rules lint` checks rules",
        )
    tuned = select(configure(rules, config), config)
    return RuleSet(
        tuple(sorted(tuned, key=lambda rule: rule.id)), remedies, tuple(sorted(errors)), mentions=read.mentions
    )


def configure(rules: Iterable[Rule], config: Config) -> list[Rule]:
    """The rules with the configuration's parameters and severities. Raises ConfigError for names that do not exist."""
    by_id = {rule.id: rule for rule in rules}
    place = str(config.path or "")
    for key in ("params", "severities"):
        for name in getattr(config, key):
            if name not in by_id:
                near = suggest(name, by_id)
                hint = f"did you mean {near[0]}?" if near else "`advisor rules list` names all rules"
                raise ConfigError(f"{key}: there is no rule {name}", place=place, hint=hint)
    for name, values in config.params.items():
        by_id[name] = with_params(by_id[name], values, place or "configuration")
    for name, severity in config.severities.items():
        by_id[name] = replace(by_id[name], severity=Ladder(constant=Severity(severity)))
    return list(by_id.values())


def with_params(rule: Rule, values: Mapping[str, Any], origin: str) -> Rule:
    """The rule with other values for some of its parameters. Raises ConfigError where one does not exist or fit."""
    params = dict(rule.params)
    for name, given in values.items():
        if name not in params:
            near = suggest(name, params)
            hint = f"did you mean {near[0]}?" if near else "parameters: " + (", ".join(params) or "none")
            raise ConfigError(f"{rule.id} has no parameter {name}", place=origin, hint=hint)
        unit, shipped = params[name].unit, params[name].value
        value: Any = in_unit(given, unit)
        if not fits_unit(value, unit):
            raise ConfigError(f"{rule.id}: {name} = {value!r} is no value in {unit}", place=origin)
        if unit == "ratio" and isinstance(shipped, (int, float)) and shipped <= 1 < value:
            hint = f'a share: {value / 100:g} or "{value:g} %"' if value <= 100 else "a share lies between 0 and 1"
            raise ConfigError(f"{rule.id}: {name} = {value:g} is never reached by a share", place=origin, hint=hint)
        params[name] = replace(params[name], value=frozen(value), overridden=origin)
    return replace(rule, params=params)


def select(rules: Iterable[Rule], config: Config) -> list[Rule]:
    """The rules that `select` and `ignore` leave. Raises ConfigError for an entry that means none of them."""
    rules = list(rules)
    for entry in (*config.select, *config.ignore):
        if rules and not any(_means(entry, rule) for rule in rules):
            near = suggest(entry, [each for rule in rules for each in (rule.id, rule.verdict)])
            hint = f"did you mean {near[0]}?" if near else "an id, a prefix such as COMM, a verdict or a direction"
            raise ConfigError(f"{entry!r} means no rule", place=str(config.path or ""), hint=hint)
    kept = [rule for rule in rules if not config.select or any(_means(entry, rule) for entry in config.select)]
    return [rule for rule in kept if not any(_means(entry, rule) for entry in config.ignore)]


def _means(entry: str, rule: Rule) -> bool:
    """Whether an entry of `select` or `ignore` means this rule: by id (`*` allowed), prefix of the id, verdict,
    direction or status."""
    if entry in (rule.verdict, rule.direction.value, rule.status):
        return True
    return fnmatchcase(rule.id, entry) or (rule.id.startswith(entry) and entry.isalpha() and entry.isupper())
