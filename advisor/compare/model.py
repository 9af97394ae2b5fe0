"""The nouns of a comparison. Plain frozen dataclasses; units stand beside values."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.compare.changes import Change
from advisor.model import Finding, ProfileInfo, Remedy, Subject, Text, Value


@dataclass(frozen=True)
class Obstacle:
    """Something besides the change under test that differs. `blocks`: times of the two sides mean different things."""

    what: str
    """framework, ranks, world size, parallelism, batch, profiler level, profiler settings, device, versions, …"""
    before: str
    after: str
    blocks: bool
    why: Text


@dataclass(frozen=True)
class Metric:
    """One quantity of the run on both sides; None where a side did not measure it."""

    fact: str
    unit: str
    meaning: str
    before: float | None
    after: float | None
    noise: float
    """Relative change below which nothing is said: what runs differ by anyway."""
    floor: float = 0.0
    """The same as an amount: a part of the step has not moved where neither step would notice."""

    @property
    def change(self) -> float | None:
        """Relative change, -0.2 is a fall by a fifth; None where a side is missing or nothing was there before."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return self.after / self.before - 1

    @property
    def moved(self) -> bool:
        if self.before is None or self.after is None:
            return False
        largest = max(abs(self.before), abs(self.after))
        return abs(self.after - self.before) > max(self.noise * largest, self.floor)


@dataclass(frozen=True)
class Matched:
    """A verdict about a subject on both sides. `state`: resolved, remaining, new, or unjudged (it was found before,
    and afterwards its evidence is missing: nothing is known, least of all that it is resolved)."""

    state: str
    verdict: str
    subject: Subject
    before: Finding | None = None
    after: Finding | None = None
    reason: str = ""


@dataclass(frozen=True)
class Effect:
    """Whether the fact that a remedy promised to move has moved.

    `outcome`: kept, partly, unmoved, opposite, or unmeasured; moved where it went as expected and nothing recorded
    shows that the remedy was applied; not_applied where what would show it is as before; unsure where it moved by less
    than the recordings' steps differ by. Microseconds per step.
    """

    finding: Finding
    remedy: Remedy
    fact: str
    unit: str
    expect: str
    before: Value | None
    after: Value | None
    outcome: str
    promised_us: float | None = None
    gained_us: float | None = None
    """Its part of what the step became shorter by; None where that cannot be attributed to it."""


@dataclass(frozen=True)
class Cause:
    """A root cause that came, went or grew: `us` is what the step became longer by for it, below 0 shorter."""

    state: str
    """new, resolved or remaining"""
    finding: Finding
    us: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """What became of it all. `comparable` is false where an obstacle blocks: then nothing is claimed about speed."""

    before: ProfileInfo
    after: ProfileInfo
    comparable: bool
    headline: Text
    outcome: str
    """faster, slower, same, unknown or incomparable"""
    obstacles: tuple[Obstacle, ...] = ()
    metrics: tuple[Metric, ...] = ()
    findings: tuple[Matched, ...] = ()
    effects: tuple[Effect, ...] = ()
    causes: tuple[Cause, ...] = ()
    """Largest first; together no more than the step changed by."""
    accounts: tuple[Change, ...] = ()
    """Where in the step the change stands: parts that add up to it, whichever causes are behind them. Of a step that
    did not change, what in it did."""
    unattributed_us: float | None = None
    """What the step changed by that no cause explains; None where it did not, or where times may not be compared."""

    def __repr__(self) -> str:
        return f"Comparison({self.headline.en})"

    def of(self, state: str) -> tuple[Matched, ...]:
        """Findings in this state."""
        return tuple(m for m in self.findings if m.state == state)

    def metric(self, fact: str) -> Metric | None:
        """The metric of this name, where it was compared."""
        return next((m for m in self.metrics if m.fact == fact), None)
