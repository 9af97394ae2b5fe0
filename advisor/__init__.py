"""Performance advisor for AI training on Ascend NPUs: profiler output in, verdicts with evidence and remedies out.

>>> from advisor import advise, load_rules
>>> report = advise(["run1_ascend_ms"], load_rules())      # doctest: +SKIP
>>> report.summary.direction                               # doctest: +SKIP
'scheduling'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.api import Report, advise, load_profile, load_rules
    from advisor.model import Fact, Finding, Severity

__all__ = ["Fact", "Finding", "Report", "Severity", "advise", "load_profile", "load_rules"]

_HOME = {
    "advise": "advisor.api", "load_profile": "advisor.api", "load_rules": "advisor.api",
    "Fact": "advisor.model", "Finding": "advisor.model", "Report": "advisor.api", "Severity": "advisor.model",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for, so that importing the package costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'advisor' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
