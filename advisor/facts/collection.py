"""How the profile was collected: what the profiler was told, what came of it (S43, S44, S49-S53, S84)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.steps import steady
from advisor.model import COLLECTION, Fact, Source

KINDS = (
    kind("collection.unparsed_ranks", "count", "collection", "ranks with raw data that nothing has parsed (S53)"),
    kind("collection.unparsed_folders", "list", "collection", "those folders, the first ten"),
    kind("collection.level", "text", "collection", "profiler level the files state"),
    kind("collection.has_schedule", "bool", "collection", "a schedule was set"),
    kind("collection.data_process", "bool", "collection", "the data pipeline was to be recorded"),
    kind("collection.with_stack", "bool", "collection", "call stacks were recorded"),
    kind("collection.repeat", "count", "collection", "schedule's repeat; 0 adds an incomplete last collection (S49)"),
    kind("collection.active", "count", "collection", "schedule's active: steps recorded in each round"),
    kind("collection.warmup", "count", "collection", "schedule's warmup"),
    kind("collection.invalid_schedule", "list", "collection", "schedule entries outside their range (S49)"),
    kind("collection.steps_needed", "count", "collection", "steps the schedule needs before it is complete",
         formula="repeat × (wait + warmup + active) + skip_first (S50)"),
    kind("collection.steps_expected", "count", "collection", "steps one round of the schedule should have recorded"),
    kind("collection.steps_recorded", "count", "collection", "steps found in the files, the fewest of all ranks",
         needs="steps|step_phases"),
    kind("collection.step_counts_differ", "bool", "collection", "ranks recorded different steps"),
    kind("collection.settings_differ", "list", "collection", "settings in which ranks differ"),
    kind("collection.problem_count", "count", "collection", "defects met while reading the files"),
)  # fmt: skip


def _source(run: Run) -> Source:
    return Source("profiler_info_*.json", ("profiler_parameters",))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts about the collection from settings, folders and the steps that were found."""
    del facts
    profile = run.profile
    unparsed = [path for rank in profile.ranks for path in rank.unparsed]
    yield from fact("collection.unparsed_ranks", COLLECTION, sum(bool(rank.unparsed) for rank in profile.ranks))
    if unparsed:
        names = tuple(rank.relative(path) for rank in profile.ranks for path in rank.unparsed)[:10]
        yield from fact("collection.unparsed_folders", COLLECTION, names)
    recorded = sum(len(rank.problems) for rank in profile.ranks) + len(profile.problems)
    yield from fact("collection.problem_count", COLLECTION, recorded)
    yield from _settings(run, [s for s in profile.settings if s])
    yield from _steps(run)


def _settings(run: Run, settings: list[dict[str, Any]]) -> Iterator[Fact]:
    if not settings:
        return
    source, first = _source(run), settings[0]
    for name, key in (("level", "level"), ("data_process", "data_process"), ("with_stack", "with_stack")):
        if first.get(key) is not None:
            yield from fact(f"collection.{name}", COLLECTION, first[key], source)
    differing = tuple(sorted(k for k in first if any(other.get(k) != first[k] for other in settings)))
    yield from fact("collection.settings_differ", COLLECTION, differing, source, samples=len(settings))
    schedule = first.get("schedule")
    has_schedule = first.get("is_set_schedule", bool(schedule))
    yield from fact("collection.has_schedule", COLLECTION, bool(schedule and has_schedule), source)
    if isinstance(schedule, Mapping) and has_schedule:
        yield from _schedule({k: int(v) for k, v in schedule.items() if isinstance(v, (int, float))}, source)


def _schedule(schedule: Mapping[str, int], source: Source) -> Iterator[Fact]:
    get = lambda name, default=0: schedule.get(name, default)  # noqa: E731
    wrong = tuple(f"{k}={v}" for k, v in schedule.items() if v < (1 if k == "active" else 0))
    yield from fact("collection.invalid_schedule", COLLECTION, wrong, source)
    yield from fact("collection.repeat", COLLECTION, get("repeat"), source)
    yield from fact("collection.active", COLLECTION, get("active", 1), source)
    yield from fact("collection.warmup", COLLECTION, get("warmup"), source)
    rounds = max(get("repeat"), 1)
    needed = rounds * (get("wait") + get("warmup") + get("active", 1)) + get("skip_first")
    yield from fact("collection.steps_needed", COLLECTION, needed, source)
    yield from fact("collection.steps_expected", COLLECTION, get("active", 1), source)


def _steps(run: Run) -> Iterator[Fact]:
    times = {rank: t for rank, t in steady(run).items() if t.table in ("steps", "step_phases")}
    if not times:
        return
    counts = [len(t.steps) + len(t.excluded) for t in times.values()]
    sources = next(iter(times.values())).sources
    yield from fact("collection.steps_recorded", COLLECTION, int(np.min(counts)), *sources, samples=len(counts))
    yield from fact("collection.step_counts_differ", COLLECTION, len(set(counts)) > 1, *sources, samples=len(counts))


FAMILIES = (Family("collection", KINDS, measure, uses=("steps",)),)
