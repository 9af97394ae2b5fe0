"""Device memory: how near to the limit, how much of it unused, and whether it grows from step to step (S82)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from advisor.basics.units import show
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.recording.limits import section
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

if TYPE_CHECKING:
    import pandas as pd

_BOTH = "run rank"
KINDS = (
    kind(
        "memory.peak_reserved_bytes",
        "bytes",
        _BOTH,
        "most device memory the framework held; for the run: highest rank",
        needs="memory",
    ),
    kind("memory.peak_allocated_bytes", "bytes", _BOTH, "most device memory in use by tensors", needs="memory"),
    kind(
        "memory.process_bytes",
        "bytes",
        _BOTH,
        "most device memory held by the whole process",
        needs="memory|module_memory",
    ),
    kind("memory.capacity_bytes", "bytes", _BOTH, "device memory, where the files tell", needs="memory"),
    kind(
        "memory.unused_share",
        "ratio",
        _BOTH,
        "reserved and not allocated at the highest allocation: fragmentation",
        formula="1 − allocated ÷ reserved at the row of the highest allocation",
        needs="memory",
    ),
    kind("memory.unused_bytes", "bytes", _BOTH, "the same in bytes", needs="memory"),
    kind(
        "memory.growth_bytes",
        "bytes",
        _BOTH,
        "growth of the least memory in use from one step to the next, or from one eighth of the time to the next",
        formula="median difference of the minima of steps, where a few are marked, else of eight equal parts; 0 unless "
        "all of them rise",
        needs="memory",
    ),
    kind(
        "memory.growth_steps",
        "count",
        _BOTH,
        "the steps that are compared for it; absent where parts of the time are",
        needs="memory",
    ),
    kind("memory.growth_share", "ratio", _BOTH, "growth over the profile ÷ the first minimum", needs="memory"),
    kind(
        "memory.largest_operator", "text", _BOTH, "operator with the largest single allocation", needs="operator_memory"
    ),
    kind("memory.largest_bytes", "bytes", _BOTH, "that allocation", needs="operator_memory"),
)

PARTS = 8
"""Equal parts of the time whose least use is compared: temporary tensors come and go within a part."""
DRAWN = 300
"""Samples of the curve that a report draws."""
_PREFERRED = ("PTA+GE", "MindSpore+GE", "PTA", "MindSpore", "WORKSPACE", "GE")
_PROCESS = ("APP",)


class Memory(Struct, frozen=True):
    """One rank's device memory, bytes."""

    component: str
    peak_reserved: float
    peak_allocated: float
    unused_share: float | None
    unused: float | None
    process: float | None
    growth: float | None
    growth_share: float | None
    growth_steps: int | None
    capacity: float | None
    operator: str
    largest: float | None
    samples: int
    sources: tuple[Source, ...]
    curve: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]] | None = None
    """Microseconds from the first sample, reserved and allocated bytes: for the picture."""


MEMORY = Reduction("memory", Memory)


def reduce(rank: Rank) -> Memory | None:
    """Peaks, fragmentation and growth of the framework's memory; None without memory files."""
    frame = rank.read("memory") if rank.has("memory") else None
    if frame is None or frame.empty:
        return None
    component = frame["component"].astype(str).str.strip()
    process = frame["reserved_bytes"][component.isin(_PROCESS)].max()
    _tell_unknown(rank, component[frame["component"].notna()])
    name = next((c for c in _PREFERRED if (component == c).any()), None)
    mine = frame[component == name] if name else frame[~component.isin(_PROCESS)]
    mine = mine[mine["reserved_bytes"].notna()]
    operator, largest = _largest(rank)
    process_bytes = float(process) if process == process else None
    source = (rank.source("memory", "component", "time_ns", "allocated_bytes", "reserved_bytes"),)
    capacity = _capacity(rank)
    if mine.empty:
        if process_bytes is None:
            return None
        return Memory(
            "",
            np.nan,
            np.nan,
            None,
            None,
            process_bytes,
            None,
            None,
            None,
            capacity,
            operator,
            largest,
            len(frame),
            source,
        )
    reserved = mine["reserved_bytes"].to_numpy(float)
    allocated = mine["allocated_bytes"].to_numpy(float, na_value=np.nan)
    share = unused = None
    if np.isfinite(allocated).any():
        at = int(np.nanargmax(allocated))
        if reserved[at] > 0 and allocated[at] <= reserved[at]:
            unused = float(reserved[at] - allocated[at])
            share = unused / float(reserved[at])
    time = mine["time_ns"].to_numpy(float, na_value=np.nan)
    _tell_span(rank, time)
    steps = _steps(rank)
    growth, growth_share = _growth(time, allocated, steps)
    compared = None if steps is None or growth is None else len(steps) - 1
    peak = float(np.nanmax(allocated)) if np.isfinite(allocated).any() else float("nan")
    return Memory(
        name or "", float(np.nanmax(reserved)), peak, share, unused, process_bytes, growth, growth_share, compared,
        capacity, operator, largest, len(mine), source, _curve(time, reserved, allocated),
    )  # fmt: skip


def _tell_unknown(rank: Rank, component: pd.Series) -> None:
    """Tells samples of components that nobody knows: whose memory they are, the framework's or the whole process's, is
    not told by them."""
    unknown = component[~component.isin((*_PREFERRED, *_PROCESS, ""))]
    if len(unknown):
        text = f"{len(unknown)} of {len(component)} samples are of a component that is not known: {unknown.iloc[0]}"
        rank.note(rank.relative(rank.tables["memory"].paths[0]), text)


def _tell_span(rank: Rank, time: np.ndarray) -> None:
    """Tells samples that lie further apart than any recording is long: some of them are in another unit."""
    known = time[np.isfinite(time)]
    lasts = float(np.ptp(known)) / 1000 if known.size else 0.0
    if lasts > section("contradiction")["hosts_apart_us"]:
        text = f"contradicts itself: its samples lie {show(lasts, 'us')} apart"
        rank.note(rank.relative(rank.tables["memory"].paths[0]), text, ("memory",))


def _curve(
    time: np.ndarray, reserved: np.ndarray, allocated: np.ndarray
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]] | None:
    """At most `DRAWN` samples in the order of time: of each stretch the one with the most allocated."""
    order = np.argsort(time, kind="stable")
    order = order[np.isfinite(time[order])]
    if order.size < 2:
        return None
    size = np.where(np.isfinite(allocated), allocated, reserved)
    parts = np.array_split(order, min(DRAWN, order.size))
    kept = np.array([part[np.argmax(size[part])] for part in parts])
    since = (time[kept] - time[order[0]]) / 1000
    return tuple(since.tolist()), tuple(reserved[kept].tolist()), tuple(allocated[kept].tolist())


def _steps(rank: Rank) -> np.ndarray | None:
    """The edges of a few steps that are marked, nanoseconds: temporary tensors come and go within each, and an eighth
    of the time would hold no step's end. The first one may still fill the memory. None where there are too few, or so
    many that an eighth holds two."""
    timeline = timeline_of(rank)
    if timeline is None or timeline.placed is None or not timeline.placed.marks:
        return None
    windows = timeline.windows
    if not section("memory_growth")["steps"] < windows.start.size < 2 * PARTS:
        return None
    return np.append(windows.start[1:], windows.end[-1]).astype(float)


def _growth(
    time: np.ndarray, allocated: np.ndarray, steps: np.ndarray | None = None
) -> tuple[float | None, float | None]:
    """Growth of the least memory in use from one step to the next, of the time's parts where no steps are told."""
    usable = np.isfinite(time) & np.isfinite(allocated)
    time, allocated = time[usable], allocated[usable]
    if time.size < 4 * PARTS or time.max() <= time.min():
        return None, None
    if steps is None:
        parts = PARTS
        part = np.minimum(((time - time.min()) / (time.max() - time.min()) * PARTS).astype(int), PARTS - 1)
    else:
        parts = len(steps) - 1
        part = np.searchsorted(steps, time, side="right") - 1
        time, allocated, part = (each[(part >= 0) & (part < parts)] for each in (time, allocated, part))
    if len(np.unique(part)) < parts:
        return None, None
    least = np.array([allocated[part == i].min() for i in range(parts)])
    rises = np.diff(least)
    if (rises <= 0).any():
        return 0.0, 0.0
    return float(np.median(rises)), float((least[-1] - least[0]) / least[0]) if least[0] > 0 else None


def _largest(rank: Rank) -> tuple[str, float | None]:
    frame = rank.read("operator_memory", ("name", "size_bytes")) if rank.has("operator_memory") else None
    if frame is None or frame.empty or not frame["size_bytes"].notna().any():
        return "", None
    sizes = frame["size_bytes"].to_numpy(float, na_value=np.nan)
    largest = float(np.nanmax(sizes))
    return min(map(str, frame["name"][sizes == largest].dropna()), default=""), largest


def _capacity(rank: Rank) -> float | None:
    value = rank.info.get("device_memory_bytes")
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of each rank; the run's are those of its fullest rank."""
    del facts
    found = run.each(MEMORY)
    if not found:
        return
    for rank, memory in found.items():
        yield from _facts(Subject("rank", str(rank), (rank,)), memory)
    fullest = max(found.values(), key=lambda m: np.nan_to_num(m.peak_reserved, nan=m.process or 0.0))
    yield from _facts(RUN, fullest)


def _facts(subject: Subject, m: Memory) -> Iterator[Fact]:
    for name, value in (
        ("peak_reserved_bytes", m.peak_reserved), ("peak_allocated_bytes", m.peak_allocated),
        ("process_bytes", m.process),
        ("capacity_bytes", m.capacity), ("unused_share", m.unused_share), ("unused_bytes", m.unused),
        ("growth_bytes", m.growth), ("growth_share", m.growth_share), ("growth_steps", m.growth_steps),
        ("largest_operator", m.operator or None), ("largest_bytes", m.largest),
    ):  # fmt: skip
        yield from fact(f"memory.{name}", subject, value, *m.sources, samples=m.samples)


FAMILIES = (Family("memory", KINDS, measure, MEMORY.by(reduce), ("memory", "operator_memory")),)
