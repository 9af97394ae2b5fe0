"""The narrow seam to the inference engine: add(fact) -> hits. Everything else is ordinary Python around it.

A compiled rule is a conjunction of patterns. A pattern asks for one fact record of a type, tests its fields against
literals and joins them with fields of patterns before it. There is no negation, no disjunction and no arithmetic at
this level: `program.py` expands alternatives and computes derived fields, and the judge asserts absence as a positive
record once its stratum is complete. That is the subset in which durable-rules is exact and memory-safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from msgspec import Struct

from advisor.basics.errors import AdvisorError

Scalar = str | bool | float

OPERATORS = ("==", "!=", "<", "<=", ">", ">=")
"""Ordering is defined on numbers only; a test on an absent field, or between two of text, number and truth value, is
false, `!=` included."""

MAX_PATTERNS = 15
MAX_TEXT = 4096
MAX_HITS = 200_000
"""Hits of one run beyond which a rule is taken for an accident: nobody reads so many findings."""


class RecordError(AdvisorError):
    """A record no engine takes: NaN or infinity, a foreign type, a text too long, an id used twice. Another engine
    would refuse it too."""


class EngineFailure(AdvisorError):
    """An engine gave up in the middle of a run; what it answered so far is incomplete. `rule` is the key of the rule
    to blame ("" where unknown). A failure of the durable engine is worth a rerun on the python engine; when that one
    fails as well, the rule itself explodes and is to be left out."""

    def __init__(self, message: str, *, rule: str = "", hint: str = "") -> None:
        self.rule = rule
        super().__init__(message, place=rule, hint=hint)


class Test(Struct, frozen=True):
    """field op literal."""

    __test__: ClassVar[bool] = False  # not a test class, whatever pytest makes of its name
    field: str
    op: str
    value: Scalar


class Join(Struct, frozen=True):
    """field op (alias of an earlier pattern).other."""

    field: str
    op: str
    alias: str
    other: str


class Pattern(Struct, frozen=True):
    alias: str
    type: str
    tests: tuple[Test, ...] = ()
    joins: tuple[Join, ...] = ()


class CompiledRule(Struct, frozen=True):
    """`key` is unique; several keys may belong to one rule (its alternatives)."""

    key: str
    patterns: tuple[Pattern, ...]
    priority: int = 50


class Record(Struct, frozen=True):
    """One fact record as engines see it: flat fields, finite floats, texts up to 4096 characters."""

    id: str
    type: str
    fields: Mapping[str, Scalar]


class Hit(Struct, frozen=True):
    """A rule matched: which record stands for each alias, as (alias, record id) in pattern order."""

    key: str
    bindings: tuple[tuple[str, str], ...]


class Engine(Protocol):
    """Begin a run, add records one by one, end it (also after a failure). `add` returns the hits that this record
    completes, in the order (priority, order of definition, record ids in pattern order). A record never fills two
    patterns of one hit. Field names, types, aliases and ids are any text.

    Construction raises `RuleError` for a rule outside the grammar; `add` raises `RecordError` for a record that cannot
    be judged and `EngineFailure` when the run cannot go on, in particular beyond `max_hits` hits."""

    name: str

    def __init__(self, rules: Sequence[CompiledRule], max_hits: int = MAX_HITS) -> None: ...
    def begin(self) -> None: ...
    def add(self, record: Record) -> list[Hit]: ...
    def end(self) -> None: ...
