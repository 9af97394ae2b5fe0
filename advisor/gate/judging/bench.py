"""What metrics, budgets and findings are judged with: the runs, the runs they are held against, and the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from advisor.compare.identity import Identity, identities
from advisor.gate.policy import Judging
from advisor.gate.sample import Difference, Sample
from advisor.model import Finding


@dataclass(frozen=True)
class Bench:
    """Each run stands here once, and none of the runs stands in the history."""

    runs: tuple[Sample, ...]
    confirming: tuple[Sample, ...]
    history: tuple[Sample, ...]
    judging: Judging
    named: bool
    """Whether a baseline was named."""
    differences: tuple[Difference, ...] = ()
    """Why nothing in the baseline is comparable; empty where something is."""
    spare: int = 0
    """Runs without a metric that are put up with, where enough others have it."""
    recording: bool = False

    @cached_property
    def identity(self) -> Callable[[Finding], Identity]:
        """Which findings of these runs and of the history are the same one."""
        return identities(sample.findings for sample in (*self.history, *self.runs, *self.confirming))
