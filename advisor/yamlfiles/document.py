"""YAML as rules use it: plain data with the line of every value, read without tags, anchors or surprises.

Scalars follow YAML 1.2's core schema, so `on` is a word and `5e4` a number. Files are bounded in size, depth and
number of values, and a key may stand only once: what a reader sees is what is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from advisor.basics.errors import RuleError

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_VALUES = 100_000

Path_ = tuple[Any, ...]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


class Document(Struct, frozen=True):
    """A parsed file: its data and the line at which each value stands."""

    path: Path
    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)

    def line(self, where: Path_) -> int:
        """Line (1-based) of the value at this path, or of the nearest part around it."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)


_READ: ContextVar[dict[Path, Document] | None] = ContextVar("documents read", default=None)


@contextmanager
def reading_each_once() -> Iterator[None]:
    """While this lasts, a file that was read is not parsed again for the next one who asks; nobody changes it."""
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def read_document(path: Path) -> Document:
    """Reads one YAML file. Raises RuleError with file and line for everything that is not plain, bounded YAML."""
    known = _READ.get()
    if known is None:
        return _read(path)
    if path not in known:
        known[path] = _read(path)
    return known[path]


def _read(path: Path) -> Document:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RuleError(f"cannot be read: {error.strerror or error}", place=str(path)) from None
    if len(raw) > MAX_BYTES:
        raise RuleError("too large for a rule", place=str(path), hint=f"at most {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuleError(f"is not UTF-8 at byte {error.start}", place=str(path)) from None
    return parse_document(text, path)


def parse_document(text: str, path: Path = Path("<text>")) -> Document:
    """As `read_document`, from a text."""
    try:
        return _Builder(path).build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or str(error)
        hint = "quote texts that contain ': ' or start with a special character" if "mapping values" in problem else ""
        raise RuleError(f"no valid YAML: {problem}", place=f"{path}:{line}", hint=hint) from None
    except yaml.YAMLError as error:
        raise RuleError(f"no valid YAML: {' '.join(str(error).split())[:200]}", place=f"{path}:1") from None


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Builder:
    """Builds data from parser events: no recursion, so depth is bounded before it hurts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Path_, int] = {}

    def fail(self, event: Any, message: str, hint: str = "") -> RuleError:
        return RuleError(message, place=f"{self.path}:{_line(event)}", hint=hint)

    def build(self, text: str) -> Document:
        root: Any = None
        stack: list[tuple[Any, Path_, list[Any]]] = []
        documents = count = 0
        events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.fail(event, "a second document in one file", "one rule, one file")
                continue
            if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                stack.pop()
                continue
            if not isinstance(event, yaml.NodeEvent):
                continue
            count += 1
            self._guard(event, count, len(stack))
            where, is_key = self._place(stack, event)
            if is_key:
                continue
            value = self._value(event)
            self.lines.setdefault(where, _line(event))
            if not stack:
                root = value
            else:
                self._attach(stack[-1], value)
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                stack.append((value, where, []))
        return Document(self.path, root, self.lines)

    def _guard(self, event: Any, count: int, depth: int) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise self.fail(event, "anchors and aliases are not part of the grammar", "repeat the value, or use let")
        if event.tag is not None and event.tag != "!":
            raise self.fail(event, f"the tag {event.tag} is not part of the grammar", "remove it")
        if count > MAX_VALUES or depth > MAX_DEPTH:
            raise self.fail(event, "too large or nested too deeply")

    def _place(self, stack: list[tuple[Any, Path_, list[Any]]], event: Any) -> tuple[Path_, bool]:
        """Path of the coming value, and whether the event is a mapping's key instead."""
        if not stack:
            return (), False
        container, where, pending = stack[-1]
        if isinstance(container, list):
            return (*where, len(container)), False
        if pending:
            return (*where, pending[0]), False
        if not isinstance(event, yaml.ScalarEvent):
            raise self.fail(event, "a key must be a word")
        if event.value in container:
            raise self.fail(event, f"the key {event.value!r} stands twice")
        pending.append(event.value)
        key: Path_ = (*where, event.value)
        self.lines[key] = _line(event)
        return where, True

    @staticmethod
    def _attach(top: tuple[Any, Path_, list[Any]], value: Any) -> None:
        container, _, pending = top
        if isinstance(container, list):
            container.append(value)
        else:
            container[pending.pop()] = value

    @staticmethod
    def _value(event: Any) -> Any:
        if isinstance(event, yaml.MappingStartEvent):
            return {}
        if isinstance(event, yaml.SequenceStartEvent):
            return []
        return resolve(event.value) if event.implicit[0] and not event.style else event.value


def resolve(word: str) -> Any:
    """What an unquoted scalar means: null, truth value, number or text (NaN and infinities stay texts)."""
    if word in ("", "~", "null", "Null", "NULL"):
        return None
    if word in ("true", "True", "TRUE"):
        return True
    if word in ("false", "False", "FALSE"):
        return False
    if _INTEGER.fullmatch(word):
        return int(word)
    if _NUMBER.fullmatch(word):
        number = float(word)
        return number if abs(number) != float("inf") else word
    return word
