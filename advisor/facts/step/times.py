"""The steps of one rank with their phases: what every family that speaks of steps works on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.facts.base import Reduction
from advisor.model import Source


class StepTimes(Struct, frozen=True, dict=True):
    """One rank's steps, microseconds. Phases that the files do not tell are absent from `phases`.

    `computing + exposed + idle = time` where all three are known; `start_gap` is the part of `idle` before the first
    kernel (see start_gap.py), `preparing` what the files say of it. `interval + fp_bp + tail = time` in the older step
    trace, whose communication before backward's end may be hidden or not: it is `unplaced`. `computing` of the older
    cluster trace includes idle time (`computing_has_idle`).
    """

    steps: tuple[str, ...]
    time: Floats
    phases: dict[str, Floats]
    table: str
    sources: tuple[Source, ...] = ()
    excluded: tuple[tuple[str, str, float], ...] = ()
    """(step, reason, its time in microseconds)"""
    computing_has_idle: bool = False
    gap_from: str = ""
    """What `start_gap` rests on: kernels or preparing."""
    covers: int = 1
    """Steps that each row is the average of."""
    added: frozenset[str] = frozenset()
    """Phases that the older cluster trace tells, the step's own table nothing of."""
    named: frozenset[str] = frozenset()
    """The steps that a table of steps names, also in rows without usable times; empty where it names none."""

    def sources_of(self, phase: str) -> tuple[Source, ...]:
        """Where a phase was read: its own table first, then those of the step it is a part of."""
        return (
            tuple(sorted(self.sources, key=lambda s: s.table != "cluster_phases"))
            if phase in self.added
            else self.sources
        )

    @cached_property
    def places(self) -> dict[str, int]:
        """Place of each step by its name."""
        return {name: place for place, name in enumerate(self.steps)}

    @property
    def recorded(self) -> int:
        """Steps of the recording, those left out with them."""
        return self.covers * len(self.steps) + len(self.excluded)

    def shortened(self, us: float) -> StepTimes | None:
        """The same with so much less exposed communication in its first step; None where there is less of it."""
        exposed = self.phases.get("exposed")
        if exposed is None or not exposed[0] >= us:
            return None
        first = np.zeros(len(self.steps))
        first[0] = us
        return replace(self, time=self.time - first, phases={**self.phases, "exposed": exposed - first})

    def without(self, names: Iterable[str], reason: str) -> StepTimes:
        """The same without these steps, which are noted as excluded."""
        drop = {name for name in names if name in self.places}
        keep = np.array([name not in drop for name in self.steps])
        if keep.all() or not keep.any():
            return self
        gone = tuple((n, reason, float(t)) for n, t in zip(self.steps, self.time, strict=True) if n in drop)
        return replace(
            self,
            steps=tuple(n for n in self.steps if n not in drop),
            time=self.time[keep],
            phases={name: values[keep] for name, values in self.phases.items()},
            excluded=self.excluded + gone,
        )

    def share(self, phase: str) -> float | None:
        """Part of the summed step time that this phase takes; None where it is not known."""
        values = self.phases.get(phase)
        if values is None or not np.isfinite(values).any() or self.time.sum() <= 0:
            return None
        known = np.isfinite(values)
        return float(values[known].sum() / self.time[known].sum())


STEPS = Reduction("steps", StepTimes)
"""Each rank's steps as its best table tells them. For facts, ask `steady(run)`: these are not settled yet."""
