"""All families, the catalogue of facts, and the plan: which families a set of facts needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib import import_module

from advisor.facts.base import FactKind, Family

MODULES = (
    "step.run", "step.steps", "step.collection", "data.processors", "data.getnext", "data.pipeline",
    "operators.operators", "step.from_kernels", "host.timeline", "host.dispatch", "device.memory",
    "operators.compilation", "collectives.parallelism", "collectives.communication", "cluster.replay", "cluster.ranks",
    "cluster.slow_hosts", "cluster.turns", "cluster.slow_steps", "cluster.links", "cluster.stages",
    "collectives.allreduce", "step.environment", "collectives.transfers", "operators.cores", "compat.mindinsight",
)  # fmt: skip
"""Modules of `facts/` that export FAMILIES, in the order in which their measures run."""


_ADDED: dict[str, Family] = {}
"""Families of extractors (`advisor/facts/extractors.py`)."""


def add_families(added: Iterable[Family]) -> None:
    """Makes these the families of extractors: they are measured last, in this process."""
    _ADDED.clear()
    _ADDED.update({family.name: family for family in added})


def families(added: bool = True) -> dict[str, Family]:
    """Every family by name, in measuring order; those of extractors unless told otherwise."""
    return {**_built_in(), **_ADDED} if added else _built_in()


@lru_cache(maxsize=1)
def _built_in() -> dict[str, Family]:
    found: dict[str, Family] = {}
    for module in MODULES:
        for family in import_module(f"advisor.facts.{module}").FAMILIES:
            found[family.name] = family
    return found


def catalogue() -> dict[str, FactKind]:
    """Every fact that can be measured, by name. Two families that claim one name are a defect."""
    kinds: dict[str, FactKind] = {}
    for family in families().values():
        for kind in family.kinds:
            if kind.name in kinds:
                raise ValueError(f"two families measure {kind.name}")
            kinds[kind.name] = kind
    return kinds


def plan(names: Iterable[str], tables: Collection[str]) -> list[Family]:
    """The families that measure these facts in a profile with these tables, with those they use, in measuring order."""
    known = families()
    owner = {kind.name: family.name for family in known.values() for kind in family.kinds}
    wanted = [owner[name] for name in names if name in owner]
    chosen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in chosen or name not in known:
            continue
        chosen.add(name)
        family = known[name]
        wanted.extend(family.uses)
        if not set(family.tables) & set(tables):
            wanted.extend(family.fallbacks)
    return [family for name, family in known.items() if name in chosen]
