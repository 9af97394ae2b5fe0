"""What files of rules, packs and remedies have in common: words, names and texts in two languages (pydantic)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from advisor.model import Text

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=60)]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(?:[-/][a-z0-9]+)*$", max_length=80)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class TextModel(Model):
    """A text in English, Chinese or both; the one stands for the other where it is missing."""

    en: str | None = Field(None, max_length=4000)
    zh: str | None = Field(None, max_length=4000)

    @model_validator(mode="after")
    def _one(self) -> TextModel:
        if not (self.en or self.zh):
            raise ValueError("a text in English (en), Chinese (zh) or both")
        return self

    def text(self) -> Text:
        """Both languages; the one stands for the other where it is missing."""
        return Text(self.en or self.zh or "", self.zh or self.en or "")


def _as_pair(data: Any) -> Any:
    return {"en": data} if isinstance(data, str) else data


Remark = Annotated[
    TextModel,
    BeforeValidator(_as_pair),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "properties": {"en": {"type": "string"}, "zh": {"type": "string"}},
                    "minProperties": 1,
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""A text in both languages, or one string for both: what authors of rules note for those who look closer."""
