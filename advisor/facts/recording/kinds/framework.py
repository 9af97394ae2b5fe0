"""Which framework's profiler wrote a rank's files, where neither their folder nor settings name it."""

from __future__ import annotations

from pathlib import Path

from advisor.sources.base import Rank
from advisor.sources.headings import beginning_of
from advisor.sources.streams.trace import Trace

_TORCH = ("aten::", "torch::", "autograd::", "c10d::")
"""How PyTorch's operators and functions begin."""
_WRITTEN = {
    "step_trace_time": {"Device_id": "pytorch"},
    "kernel_details": {"Device_id": "pytorch", "Step Id": "pytorch", "Step ID": "mindspore"},
}
"""Headings by which one writer's tables of this name differ from the other's: MindSpore leaves the device out."""


def by_tables(rank: Rank) -> str:
    """The framework whose operators are listed, or whose headings the tables have; empty where neither tells."""
    if rank.framework != "unknown":
        return ""
    listed = rank.has("framework_operators")
    frame = rank.read("framework_operators", ("name", "input_shapes", "self_us")) if listed else None
    if frame is not None and frame["name"].str.startswith(_TORCH, na=False).any():
        return "pytorch"
    files = (rank.tables[table].paths[0] for table in ("steps", "kernels") if rank.has(table))
    told = {framework for file in files for framework in _by_headings(file)}
    return told.pop() if len(told) == 1 else ""


def _by_headings(file: Path) -> set[str]:
    known = next((of for name, of in _WRITTEN.items() if file.name.startswith(name)), {})
    headings = {each.strip() for each in beginning_of(file)} if known else set()
    return {framework for heading, framework in known.items() if heading in headings}


def by_events(trace: Trace) -> str:
    """The framework whose events a timeline shows; empty where it shows none."""
    if any(name.startswith(_TORCH) for _, name in trace.activities):
        return "pytorch"
    return "mindspore" if any(process == "MindSpore" for process, _ in trace.activities) else ""
