"""The shape of rule, case and pack files (pydantic), and the JSON schema that editors use."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from advisor.basics.suggest import suggest
from advisor.basics.units import UNITS
from advisor.knowledge.thresholds import shared_thresholds
from advisor.model import SUBJECT_KINDS
from advisor.yamlfiles.shapes import Identifier, Model, Remark, TextModel, Word

Kind = Annotated[str, WithJsonSchema({"type": "string", "enum": list(SUBJECT_KINDS)})]
Unit = Annotated[str, WithJsonSchema({"type": "string", "enum": list(UNITS)})]
RuleId = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=40)]
Scalar = bool | int | float | str
On = Literal["same", "any", "overlapping"]
Expression = Annotated[
    bool | int | float | str | None,
    WithJsonSchema({"type": ["string", "number", "boolean", "null"], "description": "an expression"}),
]
Conditions = Annotated[Any, WithJsonSchema({"description": "conditions"})]
"""Parsed by the builder, which knows the grammar; `json_schema` fills its shape in."""

CONDITION_SCHEMA: dict[str, Any] = {
    "description": "an expression that is true or false, or a combination",
    "oneOf": [
        {"type": "string"},
        {"type": "boolean"},
        *(
            {
                "type": "object",
                "properties": {word: {"type": "array", "items": {"$ref": "#/$defs/condition"}}},
                "required": [word],
                "additionalProperties": False,
            }
            for word in ("all", "any")
        ),
        {
            "type": "object",
            "properties": {"not": {"$ref": "#/$defs/condition"}},
            "required": ["not"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "count": {
                    "type": "object",
                    "properties": {
                        "of": {"type": "string", "enum": list(SUBJECT_KINDS)},
                        "where": {
                            "oneOf": [
                                {"type": "array", "items": {"$ref": "#/$defs/condition"}},
                                {"$ref": "#/$defs/condition"},
                            ]
                        },
                        "is": {"type": "string", "examples": [">= $n"]},
                    },
                    "required": ["of", "where", "is"],
                    "additionalProperties": False,
                }
            },
            "required": ["count"],
            "additionalProperties": False,
        },
        *(
            {
                "type": "object",
                "properties": {
                    word: {"type": ["string", "array"], "items": {"type": "string"}},
                    "on": {"enum": ["same", "any", "overlapping"]},
                },
                "required": [word],
                "additionalProperties": False,
            }
            for word in ("finding", "no_finding")
        ),
    ],
}


def _or_shared(schema: dict[str, Any]) -> None:
    """A threshold stands in the rule with its unit and origin, or is a shared one by its name."""
    own = schema.pop("required")
    schema["properties"]["shared"] = {"type": "string", "enum": sorted(shared_thresholds())}
    schema["anyOf"] = [{"required": own}, {"required": ["shared"]}]


class ParamModel(Model):
    model_config = ConfigDict(json_schema_extra=_or_shared)

    value: bool | int | float | str | list[Scalar]
    unit: Unit
    origin: Remark = Field(description="the document or measurement the number comes from, or why it was chosen")

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, data: Any) -> Any:
        """`{shared: name}` as the threshold of that name (`knowledge_base/thresholds.yaml`)."""
        if not isinstance(data, dict) or "shared" not in data:
            return data
        if len(data) > 1:
            raise ValueError(
                "a shared threshold has its value, unit and origin already; a configuration may override it"
            )
        name = str(data["shared"])
        if name not in shared_thresholds():
            near = suggest(name, list(shared_thresholds()))
            raise ValueError(f"there is no shared threshold {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
        return dict(shared_thresholds()[name])


class LadderModel(Model):
    by: Expression
    low: Expression = None
    medium: Expression = None
    high: Expression = None
    critical: Expression = None
    worse: Literal["higher", "lower"] = "higher"


class DoubtModel(Model):
    when: Conditions
    confidence: Literal["low", "medium", "high"]
    because: TextModel


class ExplainsModel(Model):
    verdict: Word
    on: Literal["same", "any", "overlapping", "named"] = Field(
        "any", description="named: only where the cause names ranks, and the symptom one of them"
    )
    apart: bool = Field(
        False,
        description="the two lose different parts of the step (idle time, and communication that nothing hides): what "
        "the cause gives back is not taken from what the symptom loses",
    )
    but: list[str] = Field(
        default_factory=list,
        description="rules of that verdict that it does not explain: they measure idle stretches of another kind, "
        "short ones behind late launches say, which stay when a long one is gone",
    )


class SavingModel(Model):
    us: Expression = Field(description="microseconds of each step")
    kind: Literal["estimate", "upper_bound", "at_stake"] = Field(
        "estimate", description="upper_bound: no more than this; at_stake: lost, and no cause is known yet"
    )
    removes: (
        Literal["compute", "host", "data", "late", "links", "stages", "recomputing", "beside", "segments", "speed"]
        | None
    ) = Field(
        None,
        description="what a replay of the step puts right about the subject: its ranks' computation, gaps between "
        "kernels, wait for data, or whatever makes them late; its links' bandwidth; all stages' work; the work of all "
        "ranks from one collective to the next; the speed of the subject's cards, whatever work they have",
    )
    step: Expression | None = Field(None, description="length of that step; the run's step.time_us where absent")
    lost: Expression | None = Field(
        None, description="microseconds that the cause loses, where its remedy gives back only a part; us where absent"
    )
    error: Expression | None = Field(
        None,
        description="by what part of it the gain may be more or less, where what was recorded leaves that open: the "
        "range is as wide, though never narrower than such estimates usually are",
    )
    idle: Expression | None = Field(
        None,
        description="microseconds of it that are idle time on the typical rank, where that is not all of it: findings "
        "of scheduling give the same time back only once",
    )
    most: Expression | None = Field(
        None, description="microseconds that it cannot exceed, however far the estimate is off: its range ends there"
    )
    stays: Expression | None = Field(
        None,
        description="microseconds that it still gives once whatever some ranks or links alone do worse is repaired: a "
        "cause that all ranks have stays a cause beside these, where that is worth telling",
    )
    once: Expression | None = Field(
        None,
        description="microseconds per step of the run that one step alone loses in this way: where they are most of "
        "the saving, it is told as an event of that step",
    )
    launches: bool = Field(
        False,
        description="kernels or collectives go, and their launches with them: a host that is behind holds none of it "
        "back",
    )
    everyone: bool = Field(
        False,
        description="whole steps are compared with whole steps: all ranks gain it, whichever of them is late; of what "
        "ranks at hand lose, a step gains nothing for certain while it waits for ranks without a profile",
    )
    basis: TextModel


class RemedyUseModel(Model):
    id: Word
    values: dict[Identifier, Expression] = Field(default_factory=dict)
    when: Conditions = Field(
        default_factory=list, description="given only where this holds: nobody is asked for what was measured"
    )


class ReferenceModel(Model):
    document: str
    section: str = ""


class RuleModel(Model):
    """One rule file."""

    id: RuleId = Field(description="letters and digits; the file's name starts with it")
    title: TextModel
    verdict: Word = Field(description="a word of the contract, or your own with a prefix: acme/expert-imbalance")
    direction: Literal["computation", "scheduling", "communication", "evidence"]
    kind: Literal["cause", "symptom", "contributing"]
    status: Literal["stable", "experimental"] = "stable"
    statements: list[str] = Field(default_factory=list)
    references: list[ReferenceModel] = Field(default_factory=list)
    for_: Kind = Field(alias="for", description="judged once for every subject of this kind")
    params: dict[Identifier, ParamModel] = Field(default_factory=dict)
    let: dict[Identifier, Expression] = Field(default_factory=dict)
    applies: Conditions = Field(default_factory=list)
    needs: list[str] = Field(default_factory=list)
    when: Conditions = Field(description="the failing condition")
    severity: Literal["low", "medium", "high", "critical"] | LadderModel
    impact: Expression = None
    confidence: Literal["low", "medium", "high"] = "high"
    doubts: list[DoubtModel] = Field(default_factory=list)
    parents: list[RuleId] = Field(default_factory=list)
    explains: list[ExplainsModel] = Field(default_factory=list)
    saving: SavingModel | None = None
    message: TextModel
    remedies: list[RemedyUseModel] = Field(default_factory=list)
    false_positives: list[Remark] = Field(default_factory=list)
    general: bool = False
    together: bool = Field(False, description="all that it finds is of one origin: one finding with a list")
    owned: bool = Field(False, description="its time was measured under its owner: no other cause explains it")
    disjoint: bool = Field(False, description="what it measures no other such rule of its verdict does")


class ExpectModel(Model):
    outcome: Literal["fail", "pass", "not_applicable", "no_data", "error"]
    severity: Literal["low", "medium", "high", "critical"] | None = None
    confidence: Literal["low", "medium", "high"] | None = None
    subjects: list[str | int] | None = None
    saving_us: float | None = None
    message: str | None = Field(None, description="a part of the English or Chinese message")


class CaseModel(Model):
    name: str
    boundary: bool = False
    facts: list[dict[str, Any]] | None = None
    profile: str | None = Field(None, description="a profiler result, relative to this file")
    findings: list[dict[str, Any]] = Field(default_factory=list)
    params: dict[str, Any] = Field(default_factory=dict, description="overrides of the rule's parameters")
    expect: ExpectModel

    @model_validator(mode="after")
    def _given(self) -> CaseModel:
        if (self.facts is None) == (self.profile is None):
            raise ValueError("a case is given either facts or a profile")
        return self


class CasesModel(Model):
    """One `.test.yaml` file."""

    rule: RuleId
    cases: list[CaseModel] = Field(min_length=1)


class PackModel(Model):
    """The `pack.yaml` of a pack."""

    name: str = ""
    description: TextModel | None = None
    extend: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)
    params: dict[str, dict[str, Any]] = Field(default_factory=dict)
    severities: dict[str, Literal["low", "medium", "high", "critical"]] = Field(default_factory=dict)


def json_schema() -> dict[str, Any]:
    """The JSON schema of rule files, for editors (`reports/schemas/rule.schema.json`)."""
    schema = _filled(RuleModel.model_json_schema(by_alias=True))
    schema["$defs"]["condition"] = CONDITION_SCHEMA
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "advisor rule"}


def _filled(schema: Any) -> Any:
    """The schema with the shape of conditions in their place."""
    if isinstance(schema, list):
        return [_filled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    filled = {key: _filled(value) for key, value in schema.items()}
    if schema.get("description") == "conditions" or (schema.get("title") == "When" and "type" not in schema):
        one = {"$ref": "#/$defs/condition"}
        filled = {**filled, "oneOf": [{"type": "array", "items": one}, one]}
    return filled
