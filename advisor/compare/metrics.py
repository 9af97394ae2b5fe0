"""Quantities side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt

from advisor.compare.facts import FactTable, number
from advisor.compare.model import Metric
from advisor.compare.steps import noise_of_step
from advisor.facts.base import FactKind
from advisor.knowledge.comparison import settings

MEASURED_KERNEL = "recording.measured_us"
"""What a benchmark measures: how fast its kernel is, not how fast the host launches it."""

KERNEL_TIME = "operators.compute_us"
"""What all kernels take together: all there is where nothing tells how long the recording took."""


def metrics(old: FactTable, new: FactTable, kinds: Mapping[str, FactKind], doubt: float = 0.0) -> Iterator[Metric]:
    """The metrics of knowledge_base/comparison.yaml that at least one side has measured.

    Times have moved by more than the noise of the shorter step, which notices it, shares by more than `least_change` of
    the whole; what a benchmark's kernel takes depends on no length of the recording. Of the length a `doubt` may be
    told, a part that nobody can compare.
    """
    noise, least = noise_of_step(old, new), settings().limits["least_change"]
    steps = [max(t.number(name) or 0.0 for name in ("step.time_us", "data.step_us")) for t in (old, new)]
    measured = all(table.number(MEASURED_KERNEL) for table in (old, new))
    itself = (MEASURED_KERNEL, "step.computing_us") if measured else ()
    floors = {"us": noise * min(filter(None, steps), default=0.0), "ratio": least}
    for name in (*(() if all(steps) else settings().without_length), *settings().metrics):
        kind = kinds.get(name)
        if kind is None:
            continue
        before, after = old.number(name), new.number(name)
        if before is not None or after is not None:
            floor = 0.0 if name in itself else floors.get(kind.unit, 0.0)
            if name == KERNEL_TIME and not all(steps):
                floor = max(_starts(table) for table in (old, new))
            unsure = (noise + doubt if name == "step.time_us" else noise) if kind.unit == "us" else least
            yield Metric(name, kind.unit, kind.meaning, before, after, unsure, floor)


def _starts(table: FactTable) -> float:
    """What starting kernels makes their sum scatter by, microseconds: of many launches it evens out."""
    calls = sum(number(fact.value) or 0.0 for fact in table.of("operator_type.count").values())
    return settings().limits["start_us"] * sqrt(max(calls, 0.0))
