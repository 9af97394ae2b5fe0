"""All families, the catalogue of facts, and the plan: which families a set of facts needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib import import_module

from advisor.facts.base import FactKind, Family
from advisor.facts.declared import kind_fault

MODULES = (
    "recording.kinds.kind", "recording.coverage", "recording.between", "collection.run", "step.means", "step.growth",
    "step.tail.kernels",
    "collection.profiler",
    "operators.operators",
    "data.processors", "data.getnext", "step.from_kernels", "host.pace", "host.timeline", "data.pipeline",
    "host.opening",
    "device.idle_places", "device.launch_pace",
    "device.copies", "host.dispatch", "host.framework_calls",
    "device.memory", "operators.compilation", "collectives.parallelism",
    "data.common_waits", "collectives.communication",
    "cluster.replay", "cluster.ranks", "cluster.hosts.slow_hosts", "cluster.steps.turns", "cluster.segments",
    "cluster.steps.slow_steps", "cluster.steps.at_times", "cluster.links", "cluster.own_links", "cluster.uneven",
    "cluster.pipeline.evening", "cluster.pipeline.recomputing", "cluster.pipeline.beside", "cluster.start_ups",
    "collectives.allreduce", "cluster.hosts.spanning", "collection.environment", "collectives.transfers",
    "operators.cores", "operators.access",
    "compat.mindinsight", "account.freed", "account.spending", "account.utilisation",
)  # fmt: skip
"""Modules of `facts/` that export FAMILIES, in the order in which their measures run."""


_ADDED: dict[str, Family] = {}
"""Families of extractors (`advisor/facts/extractors.py`)."""


def add_families(added: Iterable[Family]) -> None:
    """Makes these the families of extractors: they are measured last, in this process."""
    _ADDED.clear()
    _ADDED.update({family.name: family for family in added})


def has_extractors() -> bool:
    """Whether extractors have added facts of their own to the catalogue."""
    return bool(_ADDED)


def families(added: bool = True) -> dict[str, Family]:
    """Every family by name, in measuring order; those of extractors unless told otherwise."""
    return {**_built_in(), **_ADDED} if added else _built_in()


@lru_cache(maxsize=1)
def _built_in() -> dict[str, Family]:
    return connect(family for module in MODULES for family in import_module(f"advisor.facts.{module}").FAMILIES)


def connect(measured: Iterable[Family]) -> dict[str, Family]:
    """Families in measuring order, by name. Raises ValueError where one is there twice, declares a fact wrongly or one
    that another family has, reads reductions that nobody makes, or facts that are not measured before."""
    found: dict[str, Family] = {}
    order = tuple(measured)
    keys = {family.reduce.key for family in order if family.reduce is not None}
    kinds: set[str] = set()
    for family in order:
        if family.name in found:
            raise ValueError(f"two families are named {family.name}")
        if family.reduce is not None and family.reduce.key.name != family.name:
            raise ValueError(f"the reduction of family {family.name} is named {family.reduce.key.name}")
        for kind in family.kinds:
            if fault := "two families measure it" if kind.name in kinds else kind_fault(kind):
                raise ValueError(f"{kind.name} of family {family.name}: {fault}")
            kinds.add(kind.name)
        for key in (*family.uses, *family.fallbacks):
            if key not in keys:
                raise ValueError(f"family {family.name} reads {key.name}, to which no family reduces a rank")
        for name in family.after:
            if name not in found:
                raise ValueError(f"family {family.name} comes after {name}, but no such family is measured before it")
        found[family.name] = family
    return found


def catalogue() -> dict[str, FactKind]:
    """Every fact that can be measured, by name."""
    return {kind.name: kind for family in families().values() for kind in family.kinds}


def plan(names: Iterable[str], tables: Collection[str]) -> list[Family]:
    """The families that measure these facts in a profile with these tables, with those they use, in measuring order."""
    known = families()
    by_key = {family.reduce.key: family.name for family in known.values() if family.reduce is not None}
    owner = {kind.name: family.name for family in known.values() for kind in family.kinds}
    wanted = [owner[name] for name in names if name in owner]
    chosen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in chosen:
            continue
        chosen.add(name)
        family = known[name]
        read = family.uses if set(family.tables) & set(tables) else (*family.uses, *family.fallbacks)
        wanted.extend((*family.after, *(by_key[key] for key in read)))
    return [family for name, family in known.items() if name in chosen]
