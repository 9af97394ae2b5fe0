"""A rank's timeline wherever it lies: in trace_view.json, or in the database that holds its kernels."""

from __future__ import annotations

from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.database.trace_database import read_trace
from advisor.sources.streams.hardware_lanes import Lane, Tasks, hardware_tasks
from advisor.sources.streams.trace import Trace, stream_trace


def trace_source(rank: Rank) -> Source | None:
    """Where the rank's timeline lies: a file of its own, or the database that holds its kernels; None without any,
    and where several devices share that database: their launches are not told apart."""
    if rank.has("trace"):
        return rank.source("trace", "name", "start_us", "duration_us")
    reference = rank.tables.get("kernels")
    if reference is not None and reference.reader == "kernels.db" and "device" not in reference.options:
        return Source(rank.relative(reference.paths[0]), ("CANN_API", "TASK"))
    return None


def load_trace(rank: Rank) -> Trace | None:
    """The rank's timeline, read once and kept until the rank forgets; None where there is none."""
    return rank.once(load_trace, lambda: _read(rank))


def device_lanes(rank: Rank) -> tuple[Lane, Lane] | None:
    """(computing, communication) of the rank's timeline; None where it tells nothing of the device.

    Where the profiler did not sum them up, the file is read once more: to be asked for where nothing else tells.
    """
    trace = load_trace(rank)
    if trace is None:
        return None
    lanes = trace.computing, trace.communication
    if not lanes[0][0].size and trace.hardware:
        tasks = device_tasks(rank)
        lanes = lanes if tasks is None else tasks.lanes
    return lanes if lanes[0][0].size else None


def device_tasks(rank: Rank) -> Tasks | None:
    """The device's tasks in the file of the rank's timeline, which is read once more: where nothing else tells."""
    return rank.once(device_tasks, lambda: hardware_tasks(rank.tables["trace"].paths, _device_of(rank)))


def _read(rank: Rank) -> Trace | None:
    if rank.has("trace"):
        sized = not rank.has("collectives")  # nothing else tells what they exchange
        alone = not rank.has("kernels")  # nor of which step a kernel is
        return stream_trace(rank.tables["trace"].paths, rank.note_path, _device_of(rank), sized=sized, alone=alone)
    if trace_source(rank) is not None:
        return read_trace(rank.tables["kernels"].paths, rank.note_path)
    return None


def _device_of(rank: Rank) -> int | None:
    """The device that is this rank, where its timeline holds several."""
    device = rank.tables["trace"].options.get("device")
    return None if device is None else int(device)
