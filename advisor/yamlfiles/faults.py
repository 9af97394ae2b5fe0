"""What is wrong with a rule file: place, problem and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from advisor.basics.errors import RuleError
from advisor.basics.suggest import suggest

if TYPE_CHECKING:
    from pydantic import BaseModel

    from advisor.yamlfiles.document import Document

M = TypeVar("M", bound="BaseModel")


class LintError(Struct, frozen=True, order=True):
    """One defect of one file. `level` is "error" or "warning"."""

    file: str
    line: int
    message: str
    hint: str = ""
    level: str = "error"

    @property
    def place(self) -> str:
        """File and line; the file alone where the defect has no line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        text = f"{self.place}: {'' if self.level == 'error' else 'warning: '}{self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class Faults:
    """Collects the defects of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.found: list[LintError] = []

    def add(self, where: tuple[Any, ...], message: str, hint: str = "", level: str = "error") -> None:
        """Notes a defect of the value at this path."""
        self.found.append(LintError(str(self.document.path), self.document.line(where), message, hint, level))

    @contextmanager
    def at(self, *where: Any) -> Iterator[None]:
        """Turns a RuleError raised inside into a defect of the value at this path."""
        try:
            yield
        except RuleError as error:
            self.add(where, error.message, error.hint)


def of_error(error: RuleError, path: Path) -> LintError:
    """The defect that an error with the place `file:line` describes."""
    _, _, line = error.place.rpartition(":")
    return LintError(str(path), int(line) if line.isdigit() else 1, error.message, error.hint)


def validate(model: type[M], document: Document, faults: Faults) -> M | None:
    """The document as this model; None, with every defect noted, where it does not fit."""
    from pydantic import ValidationError

    if not isinstance(document.data, dict):
        faults.add((), "the file holds no keys" if document.data is None else "the file must be a mapping of keys")
        return None
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            _note(item, model, document, faults)
    return None


def _note(item: Any, model: type[BaseModel], document: Document, faults: Faults) -> None:
    where = _within(document.data, item["loc"])
    name = ".".join(str(part) for part in where) or "the file"
    kind, message, hint = item["type"], str(item["msg"]), ""
    if kind == "extra_forbidden":
        known = _known_keys(model, where[:-1])
        near = suggest(str(where[-1]), known)
        hint = f"did you mean {near[0]}?" if near else ("known: " + ", ".join(known) if known else "")
        message = f"unknown key {where[-1]!r}"
    elif kind == "missing":
        wanted = [part for part in item["loc"] if isinstance(part, str)]
        message = f"{wanted[-1]!r} is missing"
    elif kind == "string_pattern_mismatch":
        message, hint = f"{name}: {item['input']!r} is no valid name", f"it must match {item['ctx']['pattern']}"
    else:
        message = f"{name}: {message.removeprefix('Value error, ')}"
    faults.add(where, message, hint)


def _within(data: Any, loc: Iterable[Any]) -> tuple[Any, ...]:
    """The part of a validator's location that exists in the data (it also names branches of unions)."""
    where: list[Any] = []
    for part in loc:
        if (isinstance(data, dict) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        ):
            data = data[part]
        else:
            continue
        where.append(part)
    return tuple(where)


def _known_keys(model: type[BaseModel], where: tuple[Any, ...]) -> list[str]:
    """Keys that may stand at this path of the model."""
    models: list[Any] = [model]
    for part in where:
        following: list[Any] = []
        for each in models:
            for name, info in each.model_fields.items():
                if part in (name, info.alias):
                    following.extend(_models_in(info.annotation))
        models = following or models
    return [info.alias or name for each in models for name, info in each.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)
