"""JSON schemas of the files that people write, for editors: rules, cases, remedies, packs, advisor.toml, its policy and
waivers. Published in `reports/schemas/` (`python docs/generate.py` writes them)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from advisor.basics.resources import resource
from advisor.configtable import ConfigTable
from advisor.gate.tables import PolicyTable, WaiverTable
from advisor.knowledge.remedies import RemedyModel
from advisor.ruleset.files.schema import CasesModel, PackModel, json_schema

KINDS = ("rule", "cases", "remedy", "pack", "config", "policy", "waivers")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of this kind of file, as the loaders check it."""
    if kind == "rule":
        return json_schema()
    if kind == "config":
        return _config()
    if kind == "waivers":
        waivers = WaiverTable.model_json_schema(by_alias=True)
        return {"$schema": _DRAFT, "title": "advisor waivers", "type": "array", "items": waivers}
    models: dict[str, type[BaseModel]] = {
        "cases": CasesModel,
        "remedy": RemedyModel,
        "pack": PackModel,
        "policy": PolicyTable,
    }
    return {"$schema": _DRAFT, **models[kind].model_json_schema(by_alias=True), "title": f"advisor {kind}"}


def schema_path(kind: str) -> Path:
    """Where the published schema lies."""
    return resource("reports", "schemas", f"{kind}.schema.json")


def schema_text(kind: str) -> str:
    """The schema as it is published."""
    return json.dumps(schema_of(kind), ensure_ascii=False, indent=1) + "\n"


def _config() -> dict[str, Any]:
    """advisor.toml, with the policy as its table [gate]."""
    config = ConfigTable.model_json_schema(ref_template="#/$defs/{model}")
    policy = PolicyTable.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    shared = {**config.pop("$defs", {}), **policy.pop("$defs", {})}
    config["properties"]["gate"] = policy
    return {"$schema": _DRAFT, **config, "title": "advisor config", "$defs": shared}
