"""Which engine runs: durable-rules where it can be loaded, plain Python elsewhere, and why."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.basics.errors import ConfigError
from advisor.engine.matching.base import MAX_HITS, CompiledRule, Engine, EngineFailure
from advisor.model import ENGINES


def make_engine(rules: Sequence[CompiledRule], choice: str = "auto", max_hits: int = MAX_HITS) -> Engine:
    """The engine for these rules; its `name` and `reason` go into the report.

    "auto" takes durable-rules and falls back to plain Python where that cannot be imported or cannot hold the rules;
    "durable" insists and raises `ConfigError` instead. `RuleError` where a rule is malformed. A run that ends in
    `EngineFailure` on the durable engine is to be repeated with "python".
    """
    if choice not in ENGINES:
        raise ConfigError(f"unknown engine {choice!r}", hint=f"choose one of {', '.join(ENGINES)}")
    reason = "chosen by configuration"
    if choice != "python":
        try:
            from advisor.engine.matching.durable import DurableEngine

            engine: Engine = DurableEngine(rules, max_hits)
        except (ImportError, EngineFailure) as error:
            reason = f"durable-rules cannot be used here: {error}"
            if choice == "durable":
                hint = "pip install durable-rules (Python below 3.13, with a C compiler), or set engine: auto"
                raise ConfigError(reason, hint=hint) from error
        else:
            engine.reason = reason if choice == "durable" else "durable-rules can be imported"
            return engine
    from advisor.engine.matching.python import PythonEngine

    engine = PythonEngine(rules, max_hits)
    engine.reason = reason
    return engine
