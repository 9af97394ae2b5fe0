"""The public functions, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advisor.model import Report
from advisor.ruleset.files.loader import RuleSet
from advisor.sources.base import Profile
from advisor.sources.discover import load_profile as _load_profile


def load_profile(path: str | Path | Sequence[str | Path]) -> Profile:
    """Recognises what lies there; reads nothing but metadata. Raises UsageError where the path does not exist."""
    return _load_profile([path] if isinstance(path, (str, Path)) else path)


def load_rules(*directories: str | Path, allow_code: Sequence[str | Path] = ()) -> RuleSet:
    """The rules that the configuration names, and those of further packs. Raises RuleError with file and line; what is
    wrong with an extractor is told in the reports.

    `allow_code`: folders whose extractors may run, beside those of trusted ones (`advisor trust`)."""
    from dataclasses import replace

    from advisor.facts.extractors import load_extractors
    from advisor.ruleset.files.loader import load_rules as load
    from advisor.trust import settle

    settled = settle(allowed=allow_code)
    config = settled.config
    warnings = load_extractors(config.extractors)
    rules = load(config=replace(config, rules=(*config.rules, *map(Path, directories))))
    return replace(rules, errors=(*rules.errors, *warnings), notes=settled.notes)


def advise(path: str | Path | Sequence[str | Path], rules: RuleSet | None = None, jobs: int = 1) -> Report:
    """Analyses one profiler result. Where nothing was recognised the report has no ranks.

    `jobs` above 1 starts processes, 0 one a processor where the input is large; none runs the calling script again.
    """
    from advisor.pipeline import Options
    from advisor.pipeline import advise as run

    return run([path] if isinstance(path, (str, Path)) else path, rules or load_rules(), Options(jobs=jobs))
