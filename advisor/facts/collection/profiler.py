"""How the profile was collected: what the profiler was told, what came of it (S43, S44, S49-S53, S84)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.step.odd_ends import CUT_END
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.model import COLLECTION, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.metadata import is_database_only

KINDS = (
    kind("collection.unparsed_ranks", "count", "collection", "ranks with raw data that nothing has parsed (S53)"),
    kind("collection.unparsed_folders", "list", "collection", "those folders, the first ten"),
    kind("collection.tables", "list", "collection", "tables that the files of every rank bring and that could be read"),
    kind("rank.tables", "list", "rank", "tables that the files of this rank bring and that could be read; after "
         "a stroke the files, where one is read from several kinds, and the columns that add up to a step"),
    kind("collection.level", "text", "collection", "profiler level the files state"),
    kind("collection.has_schedule", "bool", "collection", "a schedule was set"),
    kind("collection.data_process", "bool", "collection", "the data pipeline was to be recorded"),
    kind("collection.profile_memory", "bool", "collection", "device memory was to be recorded"),
    kind("collection.l2_cache", "bool", "collection", "the L2 cache was to be recorded"),
    kind("collection.with_stack", "bool", "collection", "call stacks were recorded"),
    kind("collection.repeat", "count", "collection", "schedule's repeat; 0 adds an incomplete last collection (S49)"),
    kind("collection.active", "count", "collection", "schedule's active: steps recorded in each round"),
    kind("collection.warmup", "count", "collection", "schedule's warmup"),
    kind("collection.invalid_schedule", "list", "collection", "schedule entries outside their range (S49)"),
    kind("collection.steps_needed", "count", "collection", "steps the schedule needs before it is complete",
         formula="repeat × (wait + warmup + active) + skip_first (S50)"),
    kind("collection.steps_expected", "count", "collection", "steps one round of the schedule should have recorded"),
    kind("collection.steps_recorded", "count", "collection", "steps found in the files of the rank that lacks most of "
         "those that its own schedule asked for", needs="steps|step_phases"),
    kind("collection.step_counts_differ", "bool", "collection", "ranks recorded different steps"),
    kind("collection.settings_differ", "list", "collection", "settings in which ranks differ"),
    kind("rank.own_settings", "list", "rank", "settings in which this rank differs from most others"),
    kind("collection.last_step_cut", "bool", "collection", "the last step was cut by the end of the collection (S49)",
         needs="steps|step_phases"),
    kind("collection.problem_count", "count", "collection", "defects met while reading the files"),
    kind("collection.database_only", "bool", "collection", "only a database was written: export without text (S44)"),
    kind("collection.activities", "list", "collection", "what was to be recorded: CPU, NPU"),
    kind("collection.records_device", "bool", "collection", "the device was to be recorded (activity NPU)"),
    kind("collection.records_host", "bool", "collection", "the host was to be recorded (activity CPU)"),
    kind("collection.bytes_per_rank", "bytes", "collection", "size of the files read, the largest of all ranks"),
)  # fmt: skip


def _source(run: Run) -> Source:
    for rank in run.ranks:
        entry = "config" if rank.framework == "pytorch" else "profiler_parameters"
        if source := rank.source_of_info("profiler_info", entry):
            return source
    return Source("")


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts about the collection from settings, folders and the steps that were found."""
    del facts
    profile = run.profile
    unparsed = [rank for rank in profile.ranks if rank.unparsed]
    yield from fact("collection.unparsed_ranks", COLLECTION, len(unparsed))
    if unparsed:
        names = tuple(name if (name := rank.relative(rank.root)) != "." else rank.root.name for rank in unparsed[:10])
        yield from fact("collection.unparsed_folders", COLLECTION, names)
    _tell_lost_steps(run)
    brought = [set(rank.tables) - {table for p in rank.problems for table in p.lost} for rank in profile.ranks]
    yield from fact("collection.tables", COLLECTION, tuple(sorted(set.intersection(*brought))) if brought else ())
    recordings = run.each(RECORDING)
    for rank, own in zip(profile.ranks, brought, strict=True):
        columns = recordings[rank.rank].columns if rank.rank in recordings else ()
        named = _named(rank, own, [column for column in columns if column.partition("/")[0] in own])
        yield from fact("rank.tables", Subject("rank", str(rank.rank), (rank.rank,)), tuple(sorted(named)))
    recorded = sum(len(rank.problems) for rank in profile.ranks) + len(profile.problems)
    yield from fact("collection.problem_count", COLLECTION, recorded)
    yield from fact("collection.bytes_per_rank", COLLECTION, max(map(_bytes, profile.ranks), default=None))
    yield from _settings(run, [s for s in profile.settings if s])
    yield from _own_settings(run)
    yield from _steps(run)


_POORER = ("kernels.tasks", "kernels.timelines", "kernels.opprof")
"""Readers of kernels from files that name them otherwise, or do not list all: another table than the profiler's own."""


def _named(rank: Rank, tables: Iterable[str], columns: Iterable[str]) -> Iterator[str]:
    """The tables, with what some of them are not the same without: columns, and the files where one is read from
    several kinds."""
    yield from columns
    for table in tables:
        reference = rank.tables[table]
        yield reference.reader if reference.reader in _POORER else table
        kinds = {re.sub(r"[0-9]+", "#", path.name) for path in reference.paths}
        yield from (f"{table}/{kind}" for kind in kinds if len(kinds) > 1)


def _tell_lost_steps(run: Run) -> None:
    """Notes ranks whose file holds fewer steps than those of most others: it may have been cut between two rows."""
    times = {rank: t for rank, t in steady(run).items() if t.table in ("steps", "step_phases")}
    held = {rank: {*t.steps, *(name for name, _, _ in t.excluded)} for rank, t in times.items()}
    every = set().union(*held.values())
    usual = {name for name in every if 2 * sum(name in own for own in held.values()) >= len(held)}
    for rank in run.profile.ranks:
        lost = sorted(usual - held.get(rank.rank, usual))
        if lost and times[rank.rank].table in rank.tables:
            file = rank.relative(rank.tables[times[rank.rank].table].paths[0])
            names = ", ".join(lost[:6]) + (" …" if len(lost) > 6 else "")
            rank.note(file, f"holds no step {names} of rank {rank.rank}, which other ranks have")
        more = sorted(held.get(rank.rank, usual) - usual)
        if more and len(held) > 2 and times[rank.rank].table in rank.tables:
            file = rank.relative(rank.tables[times[rank.rank].table].paths[0])
            names = ", ".join(more[:6]) + (" …" if len(more) > 6 else "")
            rank.note(file, f"holds step {names} of rank {rank.rank}, which most other ranks do not have")


def _bytes(rank: Rank) -> int:
    total = 0
    for path in {path for reference in rank.tables.values() for path in reference.paths}:
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _own_settings(run: Run) -> Iterator[Fact]:
    """A setting that one rank has alone may slow it down: what sets it apart then is the profiler, not the card."""
    told = run.profile.settings
    keys = sorted({key for settings in told for key in settings} - {"rank"})
    said = [{key: json.dumps(settings.get(key), sort_keys=True, default=str) for key in keys} for settings in told]
    counts = {key: Counter(one[key] for one in said) for key in keys}
    for settings, one in zip(told, said, strict=True):
        own = tuple(key for key in keys if 2 * counts[key][one[key]] < len(told))
        if own:
            rank = settings["rank"]
            yield from fact("rank.own_settings", Subject("rank", str(rank), (rank,)), own, _source(run))


def _settings(run: Run, settings: list[dict[str, Any]]) -> Iterator[Fact]:
    if not settings:
        return
    source, first = _source(run), settings[0]
    for name in ("level", "data_process", "with_stack", "profile_memory", "l2_cache"):
        if first.get(name) is not None:
            yield from fact(f"collection.{name}", COLLECTION, first[name], source)
    keys = {key for each in settings for key in each} - {"rank"}
    differing = tuple(sorted(k for k in keys if any(other.get(k) != first.get(k) for other in settings)))
    yield from fact("collection.settings_differ", COLLECTION, differing, source, samples=len(settings))
    if activities := first.get("activities"):
        yield from fact("collection.activities", COLLECTION, tuple(activities), source)
        yield from fact("collection.records_device", COLLECTION, "NPU" in activities, source)
        yield from fact("collection.records_host", COLLECTION, "CPU" in activities, source)
    yield from fact("collection.database_only", COLLECTION, is_database_only(first), source)
    judged = _lacking_most(run, _step_counts(run))
    told = next((each for each in settings if each.get("rank") == judged), first)
    schedule = told.get("schedule")
    has_schedule = told.get("is_set_schedule", bool(schedule))
    yield from fact("collection.has_schedule", COLLECTION, bool(schedule and has_schedule), source)
    if isinstance(schedule, Mapping) and has_schedule:
        wrong = tuple(sorted({entry for each in settings for entry in each.get("schedule_wrong", ())}))
        yield from fact("collection.invalid_schedule", COLLECTION, wrong, source)
        yield from _schedule({k: int(v) for k, v in schedule.items() if isinstance(v, (int, float))}, source)


def _schedule(schedule: Mapping[str, int], source: Source) -> Iterator[Fact]:
    def get(name: str, default: int = 0) -> int:
        return schedule.get(name, default)

    yield from fact("collection.repeat", COLLECTION, get("repeat"), source)
    yield from fact("collection.active", COLLECTION, get("active", 1), source)
    yield from fact("collection.warmup", COLLECTION, get("warmup"), source)
    rounds = max(get("repeat"), 1)
    needed = rounds * (get("wait") + get("warmup") + get("active", 1)) + get("skip_first")
    yield from fact("collection.steps_needed", COLLECTION, needed, source)
    yield from fact("collection.steps_expected", COLLECTION, get("active", 1), source)


def _step_counts(run: Run) -> dict[int, int]:
    """rank -> steps that its files hold; none where a row names no step: it is the whole recording, of which nobody
    knows how many steps it holds."""
    times = {rank: t for rank, t in steady(run).items() if t.table in ("steps", "step_phases")}
    marks = {mark for one in run.each(RECORDING).values() for mark in one.marks}
    if not marks & {"steps", "phases"}:
        return {}
    return {rank: len(t.steps) + len(t.excluded) for rank, t in times.items()}


def _lacking_most(run: Run, counts: Mapping[int, int]) -> int | None:
    """Of ranks with schedules of their own the one that lacks most of what its own asked for."""
    asked = {s["rank"]: s["schedule"].get("active", 1) for s in run.profile.settings if s and s.get("schedule")}
    usual = max(asked.values(), default=0)
    return min(sorted(counts), key=lambda rank: (counts[rank] - asked.get(rank, usual), counts[rank]), default=None)


def _steps(run: Run) -> Iterator[Fact]:
    counts = _step_counts(run)
    judged = _lacking_most(run, counts)
    if judged is None:
        return
    times = {rank: steady(run)[rank] for rank in counts}
    sources = next(iter(times.values())).sources
    yield from fact("collection.steps_recorded", COLLECTION, counts[judged], *sources, samples=len(counts))
    cut = any(reason == CUT_END for t in times.values() for _, reason, _ in t.excluded)
    yield from fact("collection.last_step_cut", COLLECTION, cut, *sources, samples=len(counts))
    differ = len(set(counts.values())) > 1
    yield from fact("collection.step_counts_differ", COLLECTION, differ, *sources, samples=len(counts))


FAMILIES = (Family("collection", KINDS, measure, uses=(STEPS, RECORDING)),)
