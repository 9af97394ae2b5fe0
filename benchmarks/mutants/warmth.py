"""What a series of runs needs only once: modules, rules, words and templates, there before the first process is forked.

A run on each intact profile tells what it imported and compiled; the parent does the same then, so that every process
forked later starts with it. Nothing of a profile is kept, and no library is called that starts threads: they do not
survive a fork.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.mutants.runs import Outcome

PATTERNS = 1 << 14
"""Compiled patterns that are kept: those of all profiles."""


def warm_up() -> None:
    """Imports the libraries and loads rules and wordings."""
    import numpy
    import pandas
    import polars  # noqa: F401

    import advisor.ruleset.files.loader as loader
    from advisor.config import load_config
    from advisor.facts.recording.bounds import bounds_of
    from advisor.facts.registry import catalogue, families
    from advisor.render.wording import words
    from advisor.sources import readers

    _import(readers._MODULES.values())
    families(), words("en"), words("zh")
    for kind in catalogue().values():
        bounds_of(kind.name, kind.unit)
    re._MAXCACHE = PATTERNS  # type: ignore[attr-defined]
    load = loader.load_rules
    known: dict[str, Any] = {}

    def load_once(*given: Any, **options: Any) -> Any:
        key = repr((given, options.get("config"), options.get("strict")))
        if key not in known:
            known[key] = load(*given, **options)
        return known[key]

    loader.load_rules = load_once  # type: ignore[assignment]
    load_once(config=None, strict=False)
    load_once(config=load_config(None), catalogue=catalogue(), strict=False).uses_facts()
    del numpy, pandas
    _freeze()


@contextlib.contextmanager
def learning(outcome: Outcome) -> Iterator[None]:
    """Notes in the outcome what the run inside imports and compiles."""
    from advisor.ruleset.truth import templates

    compiled = templates._compiled

    def note(source: str, strict: bool) -> Any:
        found = compiled(source, strict)
        outcome.texts.add((source, strict))
        return found

    templates._compiled = note  # type: ignore[assignment]
    try:
        yield
    finally:
        templates._compiled = compiled
        outcome.modules = list(sys.modules)
        outcome.patterns = {(pattern, flags) for _, pattern, flags in re._cache}  # type: ignore[attr-defined]


def learn(outcomes: Iterable[Outcome]) -> None:
    """Does once, in this process, what each of these runs did for itself."""
    from advisor.ruleset.truth import templates

    for outcome in outcomes:
        _import(outcome.modules)
        for source, strict in sorted(outcome.texts):
            templates._compiled(source, strict)
        for pattern, flags in outcome.patterns:
            re.compile(pattern, flags)
        outcome.modules, outcome.texts, outcome.patterns = [], set(), set()
    _freeze()


def _import(names: Iterable[str]) -> None:
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _freeze() -> None:
    """Fills what is cached without arguments, and keeps the collector off all there is: its marks would copy pages."""
    for module in [module for name, module in sys.modules.items() if name.startswith("advisor.")]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_info") and not inspect.signature(value).parameters:
                value()
    gc.collect()
    gc.freeze()
