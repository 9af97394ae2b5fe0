"""How well data moves: packets off the alignment, transfers beside matrix products, transfers that were repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Mask
from advisor.basics.intervals import Intervals
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.collectives.exchanges import Exchanges, hash_small, reduce_exchanges
from advisor.facts.collectives.inherent import large_message
from advisor.facts.device.kernel_time import busy, timeline_of
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace

ALIGNMENT = 512
"""Bytes; the copy engine moves blocks of this size."""
ON = limit("transfers", "beside")
OFF = limit("transfers", "undisturbed")
"""A transfer counts as beside matrix products where they run this much of its time, as undisturbed below `OFF`."""
LEAST = int(limit("transfers", "least"))
"""Transfers of a size class needed on each side."""

KINDS = (
    kind(
        "transfer.unaligned_share",
        "ratio",
        "run rank",
        "part of the transfer time on the node that moves packets off 512 bytes",
        formula="Σ time of packets off the multiples of 512 bytes ÷ Σ time; HCCS, PCIE, SIO or SDMA",
        needs="transports",
    ),
    kind("transfer.unaligned_us", "us", "run rank", "that time per step", needs="transports"),
    kind(
        "transfer.unaligned_ratio",
        "ratio",
        "run rank",
        "bandwidth of packets off the alignment ÷ of aligned ones",
        formula="medians within size classes (powers of two), weighted by time",
        needs="transports",
    ),
    kind(
        "transfer.contention_ratio",
        "ratio",
        "run rank",
        "bandwidth of transfers beside matrix products ÷ of the same ones without",
        formula="medians within group, kind and size class (powers of two), weighted by time",
        needs="transports kernels",
    ),
    kind(
        "transfer.contention_us",
        "us",
        "run rank",
        "transfer time per step above that of undisturbed ones",
        formula="Σ time beside matrix products × (1 − ratio)",
        needs="transports kernels",
    ),
    kind(
        "transfer.reduce_share",
        "ratio",
        "run rank",
        "part of the time in which collectives copy or reduce that only reduces (S26)",
        formula="time with Reduce_TBE alone ÷ time with any task but waiting, of all planes on the time axis",
        needs="transports trace",
    ),
    kind(
        "link.rdma_longest_us",
        "us",
        "link",
        "longest RDMA transfer of one operation of a rank (2-*)",
        needs="transports",
    ),
    kind("link.rdma_longest_name", "text", "link", "that operation", needs="transports"),
)


class Transfers(Struct, frozen=True):
    """One rank: times in microseconds over the whole profile, and how many steps that is."""

    steps: int
    packet_us: float = 0.0
    unaligned_us: float = 0.0
    unaligned_ratio: float | None = None
    contended_us: float = 0.0
    contended_ratio: float | None = None
    rdma_us: float | None = None
    rdma_name: str = ""
    reduce_share: float | None = None
    moved: dict[str, tuple[float, float | None]] = field(default_factory=dict)
    """Transport -> (microseconds, bytes per microsecond of large messages, None where there are none)."""
    sources: tuple[Source, ...] = ()


TRANSFERS = Reduction("transfers", Transfers)


def reduce(rank: Rank) -> Transfers | None:
    """None where the rank has no transports."""
    frame = rank.read("transports")
    if frame is None or frame.empty:
        return None
    steps = max(int(frame["step"].fillna("0").nunique()), 1)
    packet_us, unaligned_us, unaligned_ratio = _alignment(rank.read("packets"))
    contended_us, ratio = _contention(rank)
    longest, name = _longest(frame)
    source = rank.source("transports", "size_bytes", "time_us")
    return Transfers(
        steps, packet_us, unaligned_us, unaligned_ratio, contended_us, ratio, longest, name, _reducing(rank),
        _moved(frame), (source,),
    )  # fmt: skip


def _reducing(rank: Rank) -> float | None:
    """Part of the time in which collectives copy or reduce that only reduces."""
    trace = load_trace(rank) if rank.has("trace") else None
    return None if trace is None or not trace.moving_us else trace.reducing_us / trace.moving_us


def _alignment(frame: Any) -> tuple[float, float, float | None]:
    """Transfer time in packets above 512 bytes, that of packets off the multiples, and the bandwidth of the latter
    against aligned packets of the same size class (None where there are no aligned ones)."""
    if frame is None or frame.empty:
        return 0.0, 0.0, None
    size, count, lasts = (frame[column].to_numpy(float) for column in ("size_bytes", "count", "time_us"))
    usable = (size > ALIGNMENT) & (count > 0) & (lasts > 0)
    chosen = usable & frame["transport"].isin(("HCCS", "PCIE", "SIO")).to_numpy(bool)
    if not chosen.any():
        chosen = usable & (frame["transport"] == "SDMA").to_numpy(bool)
    if not chosen.any():
        return 0.0, 0.0, None
    size, count, lasts = size[chosen], count[chosen], lasts[chosen]
    whole = np.rint(size)
    off = (whole % ALIGNMENT != 0) & (np.abs(size - whole) < 0.5)
    ratio = _ratio(size * count / lasts, lasts, np.floor(np.log2(size)), off, ~off)[1]
    return float(lasts.sum()), float(lasts[off].sum()), ratio


def _ratio(bandwidth: Floats, lasts: Floats, classes: Floats, on: Mask, off: Mask) -> tuple[float, float | None]:
    """Time of `on`, and its bandwidth against `off` within each class that has enough of both: medians, weighted by
    time. None where no class has."""
    time = kept = 0.0
    for one in np.unique(classes, axis=-1).T:
        mine = (one == classes.T).reshape(len(bandwidth), -1).all(axis=1)
        here, there = mine & on, mine & off
        if here.sum() >= LEAST and there.sum() >= LEAST:
            spent = float(lasts[here].sum())
            time += spent
            kept += spent * min(float(np.median(bandwidth[here]) / np.median(bandwidth[there])), 1.0)
    return time, kept / time if time else None


def _longest(frame: Any) -> tuple[float | None, str]:
    rows = frame[(frame["transport"].fillna("") == "RDMA") & (frame["time_us"].fillna(0) > 0)]
    if rows.empty:
        return None, ""
    row = rows.loc[rows["time_us"].astype(float).idxmax()]
    return float(row["time_us"]), str(row["name"])


def _moved(frame: Any) -> dict[str, tuple[float, float | None]]:
    """How long data moves over each transport and how fast; SDMA is the sum of those of the node, where these are
    told."""
    size, lasts = (frame[column].to_numpy(float) for column in ("size_bytes", "time_us"))
    over, used = frame["transport"].fillna("").to_numpy(str), (size > 0) & (lasts > 0)
    names = set(over[used].tolist())
    found = {}
    for name in sorted(names - {"SDMA"} if names & {"HCCS", "PCIE", "SIO"} else names):
        mine = used & (over == name)
        large = mine & (size >= large_message())
        rate = float(np.median(size[large] / lasts[large])) if large.any() else None
        found[name] = float(lasts[mine].sum()), rate
    return found


def _contention(rank: Rank) -> tuple[float, float | None]:
    """Time of transfers beside matrix products, and their bandwidth against undisturbed ones of the same size class."""
    timeline, exchanges = timeline_of(rank), reduce_exchanges(rank)
    if timeline is None or exchanges is None or not timeline.whole:
        return 0.0, None
    cube = np.array(["matmul" in s.type.lower() for s in timeline.kernels.signatures])[timeline.kernels.signature]
    if not cube.any():
        return 0.0, None
    usable = (exchanges.size_bytes > 0) & (exchanges.transport_us > 0) & (exchanges.start_ns > 0)
    end = exchanges.start_ns + exchanges.elapsed_us * 1000
    begin = end - np.minimum(exchanges.transport_us, exchanges.elapsed_us) * 1000
    covered = _covered(busy(timeline, cube), begin[usable], end[usable])
    return _compare(exchanges, usable, covered)


def _covered(intervals: Intervals, begin: Floats, end: Floats) -> Floats:
    """Share of each [begin, end] that the intervals cover."""
    start, stop = intervals[0].astype(float), intervals[1].astype(float)
    if not start.size:
        return np.zeros(begin.size)
    before = np.concatenate([[0.0], np.cumsum(stop - start)])

    def until(t: Floats) -> Floats:
        index = np.searchsorted(start, t, side="right") - 1
        inside = np.clip(np.minimum(t, stop[np.maximum(index, 0)]) - start[np.maximum(index, 0)], 0, None)
        return np.where(index >= 0, before[np.maximum(index, 0)] + inside, 0.0)

    length = np.maximum(end - begin, 1.0)
    return np.asarray((until(end) - until(begin)) / length)


def _compare(exchanges: Exchanges, usable: Mask, covered: Floats) -> tuple[float, float | None]:
    size, lasts = exchanges.size_bytes[usable], exchanges.transport_us[usable]
    kinds = np.array([*map(hash_small, exchanges.kind)])[exchanges.name[usable]]
    classes = np.stack([exchanges.group[usable], kinds, np.floor(np.log2(size))]).astype(float)
    return _ratio(size / lasts, lasts, classes, covered >= ON, covered <= OFF)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of each rank and of the run."""
    del facts
    found = run.each(TRANSFERS)
    for rank, one in found.items():
        subject = Subject("rank", str(rank), (rank,))
        yield from _facts(subject, [one])
        links = Subject("link", f"{rank}-*", (rank,))
        yield from fact("link.rdma_longest_us", links, one.rdma_us, *one.sources)
        yield from fact("link.rdma_longest_name", links, one.rdma_name or None, *one.sources)
    if found:
        yield from _facts(RUN, list(found.values()))


def _facts(subject: Subject, parts: list[Transfers]) -> Iterator[Fact]:
    sources = parts[0].sources
    packets = sum(part.packet_us for part in parts)
    if packets:
        off = sum(part.unaligned_us for part in parts)
        per_step = float(np.mean([part.unaligned_us / part.steps for part in parts]))
        yield from fact("transfer.unaligned_share", subject, off / packets, *sources)
        yield from fact("transfer.unaligned_us", subject, per_step, *sources)
        ratios = [part.unaligned_ratio for part in parts if part.unaligned_ratio is not None]
        yield from fact("transfer.unaligned_ratio", subject, float(np.median(ratios)) if ratios else None, *sources)
    reducing = [part.reduce_share for part in parts if part.reduce_share is not None]
    yield from fact("transfer.reduce_share", subject, float(np.median(reducing)) if reducing else None, *sources)
    told = [part for part in parts if part.contended_ratio is not None]
    time = sum(part.contended_us for part in told)
    if time:
        ratio = sum(part.contended_us * (part.contended_ratio or 0.0) for part in told) / time
        per_step = float(np.mean([p.contended_us * (1 - (p.contended_ratio or 0.0)) / p.steps for p in told]))
        yield from fact("transfer.contention_ratio", subject, ratio, *sources)
        yield from fact("transfer.contention_us", subject, per_step, *sources)


FAMILIES = (Family("transfers", KINDS, measure, TRANSFERS.by(reduce), ("transports",)),)
