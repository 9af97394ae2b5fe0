"""Which matcher runs: durable-rules where it can be loaded, the plain loop elsewhere, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.basics.errors import ConfigError
from advisor.engine.matching.base import MAX_HITS, CompiledRule, Engine, EngineFailure
from advisor.model import ENGINES

if TYPE_CHECKING:
    from advisor.engine.matching.durable import DurableEngine

LOOP = "python"
"""How the plain loop (`loop.py`) is called in configurations and reports."""


def make_engine(rules: Sequence[CompiledRule], choice: str = "auto", max_hits: int = MAX_HITS) -> Engine | None:
    """durable-rules for these rules; None where the plain loop is to match instead.

    "auto" falls back to the loop where durable-rules cannot be imported or cannot hold the rules; "durable" insists and
    raises `ConfigError` instead. `RuleError` where a rule is malformed. A run that ends in `EngineFailure` is to be
    repeated with the loop.
    """
    if choice not in ENGINES:
        raise ConfigError(f"unknown engine {choice!r}", hint=f"choose one of {', '.join(ENGINES)}")
    if choice == LOOP:
        return None
    try:
        return _durable()(rules, max_hits)
    except (ImportError, EngineFailure) as error:
        if choice == "auto":
            return None
        reason = f"durable-rules cannot be used here: {error}"
        hint = "pip install durable-rules (Python below 3.13, with a C compiler), or set engine: auto"
        raise ConfigError(reason, hint=hint) from error


def available_engine() -> str:
    """The name of the matcher that "auto" takes here."""
    engine = make_engine([], "auto")
    return LOOP if engine is None else engine.name


def _durable() -> type[DurableEngine]:
    from advisor.engine.matching.durable import DurableEngine

    return DurableEngine
