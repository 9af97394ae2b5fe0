"""What `msprof op` tells of an operator beyond its time: traffic with memory, cache hits, and how evenly blocks work.

An operator lasts as long as its slowest block, and its blocks begin after its launch does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.recording.counts import types_of_signatures
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import recording_of
from advisor.facts.recording.limits import section
from advisor.facts.step.times import STEPS
from advisor.model import Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.kernel_blocks import IN_BLOCKS
from advisor.sources.streams.kernels import load_kernels

if TYPE_CHECKING:
    import pandas as pd

_NEEDS = "operator_access"

KINDS = (
    kind("operator_type.memory_rate", "bytes_per_s", "operator_type", "traffic with device memory while it runs",
         formula="(bytes read + bytes written) ÷ duration, over its launches", needs=_NEEDS),
    kind("operator_type.read_hit_share", "ratio", "operator_type", "reads that the second-level cache serves",
         formula="hits ÷ (hits + misses) over all blocks", needs=_NEEDS),
    kind("operator_type.slowest_block_factor", "ratio", "operator_type",
         "time of its slowest block: 1 where the work is dealt evenly",
         formula="slowest ÷ mean block, on the kind of core that takes longest", needs=_NEEDS),
    kind("operator_type.idle_blocks", "count", "operator_type", "blocks that have hardly anything to do",
         formula="blocks of its latest launch that take less than a tenth of the slowest one's time "
         "(knowledge_base/recording.yaml)", needs=_NEEDS),
    kind("operator_type.working_vectors", "number", "operator_type",
         "vector cores at work in each of its blocks that has several",
         formula="vector cores of its latest launch that take a tenth of the slowest one's time and more, for each "
         "block in which one does (knowledge_base/recording.yaml)", needs=_NEEDS),
    kind("operator_type.in_blocks_share", "ratio", "operator_type", "part of its duration in which its blocks run",
         formula="slowest block ÷ duration; where no block stands by itself, the cores' time ÷ duration",
         needs="operator_access|kernels"),
    kind("operator_type.outside_blocks_share", "ratio", "operator_type",
         "part of its duration before and after its only block runs: launching and completing",
         formula="1 − block ÷ duration; several blocks may run one after the other", needs="operator_access|kernels"),
    kind("operator_type.fetch_wait_share", "ratio", "operator_type",
         "part of its slowest blocks' time in which the scalar unit waits for instructions",
         formula="scalar_wait_ib_time ÷ time of the block, mean over blocks as slow as the slowest", needs=_NEEDS),
)  # fmt: skip


class _Access(Struct):
    duration_us: float = 0.0
    bytes: float = 0.0
    moved_us: float = 0.0
    hits: float = 0.0
    misses: float = 0.0
    slowest_us: float = 0.0
    mean_us: float = 0.0
    idle_blocks: int | None = None
    vectors: float | None = None
    alone_us: float = 0.0
    timed_us: float = 0.0
    inside_us: float = 0.0
    blocks_us: float = 0.0
    """How long blocks ran, of the duration of the launches that tell it."""
    fetch_us: float = 0.0
    fetched_us: float = 0.0


class Accesses(Struct, frozen=True):
    types: dict[str, _Access]
    clock: tuple[float, float, float] | None
    """Lowest clock of the launches, the highest of all clocks and ratings, and the mean clock, MHz."""
    sources: tuple[Source, ...]
    in_program: bool = False
    """Whether it is told of kernels that `msprof op` did not measure alone."""


ACCESS = Reduction("access", Accesses)


def reduce(rank: Rank) -> Accesses | None:
    """None where nothing tells how blocks of operators ran."""
    frame = rank.read("operator_access") if rank.has("operator_access") else None
    if frame is None or frame.empty:
        return None if rank.has("operator_access") else _of_kernels(rank)
    types: dict[str, _Access] = {}
    for row in frame.to_dict("records"):
        one = types.setdefault(str(row["type"]), _Access())
        duration, moved = float(row["duration_us"]), float(row["read_kb"]) + float(row["write_kb"])
        one.duration_us += duration
        if moved == moved:
            one.bytes, one.moved_us = one.bytes + 1024 * moved, one.moved_us + duration
        if row["hits"] == row["hits"] and row["misses"] == row["misses"]:
            one.hits, one.misses = one.hits + float(row["hits"]), one.misses + float(row["misses"])
        if row["slowest_us"] == row["slowest_us"] and row["mean_us"] == row["mean_us"]:
            one.slowest_us, one.mean_us = one.slowest_us + float(row["slowest_us"]), one.mean_us + float(row["mean_us"])
            one.idle_blocks = _idle_blocks(row["block_us"], row["computing_us"], row["moved_kb"])
            if row["timed"]:  # else its blocks tell its time, and nothing what lies around them
                one.inside_us, one.blocks_us = one.inside_us + float(row["slowest_us"]), one.blocks_us + duration
            if row["timed"] and row["blocks"] == 1:
                one.alone_us, one.timed_us = one.alone_us + float(row["slowest_us"]), one.timed_us + duration
        one.vectors = _working_vectors(row["vector_us"])
        if row["fetch_share"] == row["fetch_share"]:
            one.fetch_us, one.fetched_us = (
                one.fetch_us + duration * float(row["fetch_share"]),
                one.fetched_us + duration,
            )
    return Accesses(types, _clock(frame), (rank.source("operator_access", "read_kb", "write_kb"),))


def _idle_blocks(times: Sequence[float], computing: Sequence[float], moved: Sequence[float]) -> int:
    """How many of the blocks have hardly anything to do beside others that work: they end as soon as they began, or
    compute next to nothing of what others compute and end early or move next to nothing of what others move, as
    starting up alone takes its time. `times` and `computing` are in µs, `moved` in kB a block, in one order; the latter
    may be empty."""
    limits, longest, most = section("blocks"), max(times, default=0.0), max(computing, default=0.0)
    if len(computing) != len(times) or most < limits["computes_share"] * longest:
        return sum(time < limits["idle_share"] * longest for time in times)
    least = limits["idle_share"] * max(moved, default=0.0)
    return sum(
        time < limits["idle_share"] * longest
        or (done < limits["idle_share"] * most and (time < limits["early_share"] * longest or brought < least))
        for time, done, brought in zip(times, computing, moved or [0.0] * len(times), strict=True)
    )


def _working_vectors(blocks: Sequence[Sequence[float]]) -> float | None:
    """How many vector cores of a block work; None where no block has two, or none works."""
    if max(map(len, blocks), default=0) < 2:
        return None
    least = section("blocks")["idle_share"] * max(time for times in blocks for time in times)
    working = [count for times in blocks if (count := sum(time > 0 and time >= least for time in times))]
    return sum(working) / len(working) if working else None


def _of_kernels(rank: Rank) -> Accesses | None:
    """What the counters of kernels that ran in a program tell: how long their cores worked."""
    kernels = load_kernels(rank) if rank.has("kernels") else None
    if kernels is None or not kernels.piped[IN_BLOCKS].any():
        return None
    types, names = dict[str, _Access](), types_of_signatures(kernels)
    most = np.zeros(len(kernels.signatures))
    np.maximum.at(most, kernels.signature, np.nan_to_num(kernels.block))
    for index in np.flatnonzero(kernels.piped[IN_BLOCKS]).tolist():
        if not names[index]:
            continue
        one = types.setdefault(names[index], _Access())
        inside, whole = float(kernels.pipes[IN_BLOCKS][index]), float(kernels.piped[IN_BLOCKS][index])
        one.inside_us, one.blocks_us = one.inside_us + inside, one.blocks_us + whole
        if most[index] == 1:
            one.alone_us, one.timed_us = one.alone_us + inside, one.timed_us + whole
    return Accesses(types, None, (rank.source("kernels", "cube_core_us", "vector_core_us"),), in_program=True)


def _clock(frame: pd.DataFrame) -> tuple[float, float, float] | None:
    told = frame[["clock_mhz", "rated_mhz", "duration_us"]].dropna()
    told = told[(told > 0).all(axis=1)]
    if told.empty:
        return None
    mean = float(np.average(told["clock_mhz"], weights=told["duration_us"]))
    return float(told["clock_mhz"].min()), float(told[["clock_mhz", "rated_mhz"]].to_numpy().max()), mean


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Per operator type, over all launches."""
    del facts
    for found in run.each(ACCESS).values():
        if found.in_program and recording_of(run).kind != "kernel_benchmark":
            continue  # of the many kernels of a program, nobody asks how long launching each of them takes
        for name, one in found.types.items():
            subject = Subject("operator_type", name)
            if one.moved_us > 0:
                yield from fact("operator_type.memory_rate", subject, 1e6 * one.bytes / one.moved_us, *found.sources)
            if one.hits + one.misses > 0:
                share = one.hits / (one.hits + one.misses)
                yield from fact("operator_type.read_hit_share", subject, share, *found.sources)
            if one.mean_us > 0:
                factor = one.slowest_us / one.mean_us
                yield from fact("operator_type.slowest_block_factor", subject, factor, *found.sources)
            if one.idle_blocks is not None:
                yield from fact("operator_type.idle_blocks", subject, one.idle_blocks, *found.sources)
            if one.vectors is not None:
                yield from fact("operator_type.working_vectors", subject, one.vectors, *found.sources)
            if one.blocks_us > 0:
                share = min(one.inside_us / one.blocks_us, 1.0)
                yield from fact("operator_type.in_blocks_share", subject, share, *found.sources)
            if one.fetched_us > 0:
                share = one.fetch_us / one.fetched_us
                yield from fact("operator_type.fetch_wait_share", subject, share, *found.sources)
            if one.timed_us > 0:
                share = max(0.0, 1 - one.alone_us / one.timed_us)
                yield from fact("operator_type.outside_blocks_share", subject, share, *found.sources)


FAMILIES = (
    Family("access", KINDS, measure, ACCESS.by(reduce), ("operator_access", "kernels"), uses=(STEPS, RECORDING)),
)
