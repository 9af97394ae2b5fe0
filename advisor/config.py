"""Configuration: `advisor.toml`, or `[tool.advisor]` of `pyproject.toml`. Unknown keys are errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from advisor.basics.errors import ConfigError
from advisor.basics.suggest import suggest
from advisor.model import ENGINES, LANGUAGES, SEVERITIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_RULE_KEYS = ("extend", "select", "ignore", "rules", "params", "severities")
_KEYS = (*_RULE_KEYS, "extractors", "lang", "engine", "models", "gate")


@dataclass(frozen=True)
class Config:
    """What a project wants of the advisor. Relative paths have been resolved against the file's folder."""

    extend: tuple[str, ...] = ("default",)
    """Packs: names of shipped ones or of entry points, or folders."""
    select: tuple[str, ...] = ()
    """Rule ids (with `*`), id prefixes, verdicts or directions to keep; empty: all."""
    ignore: tuple[str, ...] = ()
    rules: tuple[Path, ...] = ()
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """rule id -> parameter -> value"""
    severities: Mapping[str, str] = field(default_factory=dict)
    extractors: tuple[str, ...] = ()
    lang: str | None = None
    engine: str = "auto"
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """model -> the rule keys that differ for it"""
    gate: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None

    def for_model(self, model: str | None) -> Config:
        """The configuration with the section `[models.<model>]` merged in: lists are appended, tables updated."""
        if model is None:
            return self
        if model not in self.models:
            raise ConfigError(
                f"no section [models.{model}]", place=str(self.path or ""), hint=_near(model, self.models, "models")
            )
        return _merge(self, _rule_part(self.models[model], self.path, f"models.{model}."))

    def with_options(
        self,
        *,
        rules: Iterable[str | Path] = (),
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        lang: str | None = None,
        engine: str | None = None,
    ) -> Config:
        """The configuration with what the command line adds: folders and `ignore` are appended, the rest replaces."""
        return replace(
            self,
            rules=(*self.rules, *map(Path, rules)),
            select=tuple(select) or self.select,
            ignore=(*self.ignore, *ignore),
            lang=lang or self.lang,
            engine=engine or self.engine,
        )


def load_config(path: Path | None = None, start: Path | None = None) -> Config:
    """The configuration in this file, or the nearest one at or above `start` (default: the current folder); the
    default one where there is none. Raises ConfigError."""
    found = path or _nearest(start or Path.cwd())
    if found is None:
        return Config()
    table = _read(found)
    if found.name == "pyproject.toml":
        table = table.get("tool", {}).get("advisor", {})
    return parse_config(table, found)


def parse_config(table: Mapping[str, Any], path: Path | None = None) -> Config:
    """The configuration from parsed TOML. Raises ConfigError naming the key and the nearest known one."""
    _known(table, _KEYS, path)
    config = _merge(Config(path=path), _rule_part({k: v for k, v in table.items() if k in _RULE_KEYS}, path))
    models = _table(table, "models", path)
    for model, section in models.items():
        if not isinstance(section, dict):
            raise _wrong(path, f"models.{model}", "a table")
        _known(section, _RULE_KEYS, path, f"models.{model}.")
        _rule_part(section, path, f"models.{model}.")
    lang, engine = table.get("lang"), table.get("engine", "auto")
    if lang is not None and lang not in LANGUAGES:
        raise _wrong(path, "lang", " or ".join(LANGUAGES))
    if engine not in ENGINES:
        raise _wrong(path, "engine", " or ".join(ENGINES))
    extractors = tuple(_located(each, path) for each in _list(table, "extractors", path))
    gate = _table(table, "gate", path)
    return replace(config, models=models, lang=lang, engine=engine, extractors=extractors, gate=gate)


def _rule_part(table: Mapping[str, Any], path: Path | None, prefix: str = "") -> dict[str, Any]:
    """The checked keys that choose and tune rules."""
    part: dict[str, Any] = {}
    for key in ("extend", "select", "ignore"):
        if key in table:
            part[key] = tuple(_list(table, key, path, prefix))
    if "extend" in part:
        part["extend"] = tuple(_located(each, path) for each in part["extend"])
    if "rules" in table:
        base = path.parent if path else Path()
        part["rules"] = tuple(base / each for each in _list(table, "rules", path, prefix))
    if "params" in table:
        part["params"] = params = _table(table, "params", path, prefix)
        for rule, values in params.items():
            if not isinstance(values, dict):
                raise _wrong(path, f"{prefix}params.{rule}", "a table: COMM001 = {share = 0.15}")
    if "severities" in table:
        part["severities"] = severities = _table(table, "severities", path, prefix)
        for rule, severity in severities.items():
            if severity not in SEVERITIES:
                raise _wrong(path, f"{prefix}severities.{rule}", "one of " + ", ".join(SEVERITIES))
    return part


def _merge(config: Config, part: Mapping[str, Any]) -> Config:
    changes = dict(part)
    for key in ("ignore", "rules"):
        if key in part:
            changes[key] = (*getattr(config, key), *part[key])
    if "params" in part:
        merged = {rule: dict(values) for rule, values in config.params.items()}
        for rule, values in part["params"].items():
            merged.setdefault(rule, {}).update(values)
        changes["params"] = merged
    if "severities" in part:
        changes["severities"] = {**config.severities, **part["severities"]}
    return replace(config, **changes)


def _nearest(start: Path) -> Path | None:
    for folder in (start, *start.resolve().parents):
        if (folder / "advisor.toml").is_file():
            return folder / "advisor.toml"
        project = folder / "pyproject.toml"
        if project.is_file():
            return project if "advisor" in _read(project).get("tool", {}) else None
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        return document
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", place=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"no valid TOML: {error}", place=str(path)) from None


def _known(table: Mapping[str, Any], keys: tuple[str, ...], path: Path | None, prefix: str = "") -> None:
    for key in table:
        if key not in keys:
            hint = _near(key, keys, "known keys")
            raise ConfigError(f"unknown key {prefix}{key}", place=str(path or ""), hint=hint)


def _near(word: str, known: Any, what: str) -> str:
    near = suggest(word, list(known))
    return f"did you mean {near[0]}?" if near else f"{what}: {', '.join(known) or 'none'}"


def _wrong(path: Path | None, key: str, wanted: str) -> ConfigError:
    return ConfigError(f"{key} must be {wanted}", place=str(path or ""))


def _list(table: Mapping[str, Any], key: str, path: Path | None, prefix: str = "") -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(path, prefix + key, "a list of texts")
    return value


def _table(table: Mapping[str, Any], key: str, path: Path | None, prefix: str = "") -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(path, prefix + key, "a table")
    return value


def _located(entry: str, path: Path | None) -> str:
    """An entry that is a path (it has a slash, or ends in .py), resolved against the file's folder."""
    looks_like_path = "/" in entry or "\\" in entry or entry.endswith(".py") or entry in (".", "..")
    return str((path.parent if path else Path()) / entry) if looks_like_path else entry
