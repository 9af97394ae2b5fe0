"""`advisor.toml` as people write it: its keys and their types. `config.py` makes the configuration of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from advisor.basics.errors import ConfigError
from advisor.basics.suggest import suggest

Names = list[str]


class RulesTable(BaseModel):
    """What chooses and tunes rules; also what may differ from model to model."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    extend: Names = Field(default_factory=list, description="packs: names of shipped ones or of entry points, folders")
    select: Names = Field(default_factory=list, description="rule ids (with *), id prefixes, verdicts or directions")
    ignore: Names = Field(default_factory=list)
    rules: Names = Field(default_factory=list, description="folders with further rules")
    params: dict[str, dict[str, Any]] = Field(default_factory=dict, description="rule id → parameter → value")
    severities: dict[str, Literal["low", "medium", "high", "critical"]] = Field(default_factory=dict)


class ConfigTable(RulesTable):
    """The whole file."""

    extractors: Names = Field(default_factory=list)
    lang: Literal["en", "zh"] | None = None
    engine: Literal["auto", "durable", "python"] = "auto"
    models: dict[str, RulesTable] = Field(default_factory=dict)
    gate: dict[str, Any] = Field(default_factory=dict)


def checked(table: Mapping[str, Any], place: str) -> ConfigTable:
    """The table with its types. Raises ConfigError that names the first wrong key and what belongs there."""
    try:
        return ConfigTable.model_validate(dict(table))
    except ValidationError as error:
        message, hint = _told(error.errors(include_url=False)[0])
        raise ConfigError(message, place=place, hint=hint) from None


def _told(fault: Any) -> tuple[str, str]:
    parts = [str(part) for part in fault["loc"] if isinstance(part, str)]
    key = ".".join(parts)
    if fault["type"] == "extra_forbidden":
        known = list((RulesTable if parts[0] == "models" else ConfigTable).model_fields)
        near = suggest(parts[-1], known)
        return f"unknown key {key}", f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
    if fault["type"] == "literal_error":
        return f"{key} must be {fault['ctx']['expected']}".replace("'", ""), ""
    if fault["type"] in ("dict_type", "model_type"):
        example = ": COMM001 = {share = 0.15}" if parts[-2:-1] == ["params"] else ""
        return f"{key} must be a table{example}", ""
    return f"{key} must be a list of texts", ""
