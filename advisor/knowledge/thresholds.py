"""Thresholds that several rules share (`knowledge_base/thresholds.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from advisor.basics.resources import resource
from advisor.yamlfiles.document import read_document


def thresholds_path() -> Path:
    """The file they stand in."""
    return resource("knowledge_base", "thresholds.yaml")


@lru_cache(maxsize=1)
def shared_thresholds() -> Mapping[str, Mapping[str, Any]]:
    """Value, unit and origin by name."""
    found: Mapping[str, Mapping[str, Any]] = read_document(thresholds_path()).data
    return found


def shared_threshold(name: str) -> float:
    """The value of one of them."""
    return float(shared_thresholds()[name]["value"])
