"""Configuration: `advisor.toml`, or `[tool.advisor]` of `pyproject.toml`. Unknown keys are errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.errors import ConfigError
from advisor.basics.files import read_own
from advisor.basics.suggest import suggest

if TYPE_CHECKING:
    from advisor.configtable import RulesTable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_RULE_KEYS = ("extend", "select", "ignore", "rules", "params", "severities")


class Config(Struct, frozen=True):
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
        return _merge(self, self.models[model])

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
    from advisor.configtable import checked  # pydantic: a tenth of a second that most runs do without

    found = checked(table, str(path or ""))
    config = _merge(Config(path=path), _rule_part(found, path))
    models = {model: _rule_part(section, path) for model, section in found.models.items()}
    extractors = tuple(_located(each, path) for each in found.extractors)
    return replace(config, models=models, lang=found.lang, engine=found.engine, extractors=extractors, gate=found.gate)


def _rule_part(table: RulesTable, path: Path | None) -> dict[str, Any]:
    """The keys that choose and tune rules, those that were given, as `Config` holds them."""
    base = path.parent if path else Path()
    part: dict[str, Any] = {key: getattr(table, key) for key in table.model_fields_set if key in _RULE_KEYS}
    part.update({key: tuple(part[key]) for key in ("select", "ignore") if key in part})
    if "extend" in part:
        part["extend"] = tuple(_located(each, path) for each in part["extend"])
    if "rules" in part:
        part["rules"] = tuple(base / each for each in part["rules"])
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
        document: dict[str, Any] = tomllib.loads(read_own(path, _LARGEST_BYTES).decode("utf-8-sig"))
        return document
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", place=str(path)) from None
    except RecursionError:
        raise ConfigError("is nested too deeply for a configuration", place=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"no valid TOML: {error}", place=str(path)) from None


def _near(word: str, known: Any, what: str) -> str:
    near = suggest(word, list(known))
    return f"did you mean {near[0]}?" if near else f"{what}: {', '.join(known) or 'none'}"


def _located(entry: str, path: Path | None) -> str:
    """An entry that is a path (it has a slash, or ends in .py), resolved against the file's folder."""
    looks_like_path = "/" in entry or "\\" in entry or entry.endswith(".py") or entry in (".", "..")
    return str((path.parent if path else Path()) / entry) if looks_like_path else entry


_LARGEST_BYTES = 1_000_000
"""Of a configuration; a larger file under its name is something else."""
_LANGUAGE = re.compile(r"""^\s*lang\s*=\s*["'](\w+)["']""", re.MULTILINE)


def language_in(path: Path | None = None, start: Path | None = None) -> str | None:
    """The language that this file asks for, or the nearest configuration at or above `start`; told even where the rest
    of it cannot be read, for that is told in this language as well."""
    try:
        found = path or _nearest(start or Path.cwd())
        text = read_own(found, _LARGEST_BYTES).decode("utf-8-sig", "replace") if found else ""
    except (ConfigError, OSError):
        return None
    if found is not None and found.name == "pyproject.toml":
        text = text.partition("[tool.advisor]")[2]
    match = _LANGUAGE.search(text.partition("\n[")[0])
    return match[1] if match else None
