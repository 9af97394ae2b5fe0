"""A metric's values on both sides, all measured in one way: of one fact, read from files of one name. Two tables that
time the same step do not agree to the percent, so values of different sources are never held against each other."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from advisor.gate.metrics import facts_of
from advisor.gate.sample import Sample
from advisor.model import RUN

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Way:
    """How a value was measured: the fact, and the files without rank, time or slice ("" where unknown): what it is read
    from before what it is corrected by."""

    fact: str
    files: str = ""

    def fits(self, other: Way) -> bool:
        """Whether values may be held against each other: they are read from the same file. A baseline of an older
        advisor does not know it."""
        mine, theirs = (way.files.partition(", ")[0] for way in (self, other))
        return self.fact == other.fact and (not mine or not theirs or mine == theirs)


@dataclass(frozen=True)
class Readings:
    """Values of runs, baseline and confirming runs. `ways` tells the two ways where nothing on both sides was measured
    alike, and nothing is there to compare."""

    runs: tuple[float, ...] = ()
    history: tuple[float, ...] = ()
    confirming: tuple[float, ...] = ()
    ways: tuple[Way, Way] | None = None
    otherwise: int = 0
    """Runs of the baseline left out because they were measured in another way."""


def read(
    name: str, runs: Sequence[Sample], history: Sequence[Sample], confirming: Sequence[Sample], lower_is_better: bool
) -> Readings:
    """The values by the best fact that both sides have, measured alike."""
    best: Readings | None = None
    for fact in facts_of(name):
        now, before, again = (_all(fact, side, lower_is_better) for side in (runs, history, confirming))
        if not now:
            continue
        way = next((w for _, w in now if w.files), now[0][1])
        strange = next((w for _, w in now if not w.fits(way)), None)
        if strange is not None:
            best = best or Readings(ways=(way, strange))
            continue
        alike = tuple(value for value, w in before if w.fits(way))
        other = (before[-1][1], way) if before and not alike else None
        found = Readings(
            tuple(value for value, _ in now), alike, tuple(value for value, w in again if w.fits(way)), other,
            len(before) - len(alike),
        )  # fmt: skip
        if alike:
            return found
        best = best or found
    if best is None or best.ways is not None:
        return best or Readings()
    return replace(best, ways=_other_facts(name, history, runs, lower_is_better))


def _other_facts(
    name: str, history: Sequence[Sample], runs: Sequence[Sample], lower_is_better: bool
) -> tuple[Way, Way] | None:
    """How either side measured the metric, where the baseline has it by another fact than the runs."""
    ways = [
        next((found[-1][1] for fact in facts_of(name) if (found := _all(fact, side, lower_is_better))), None)
        for side in (history, runs)
    ]
    return (ways[0], ways[1]) if ways[0] is not None and ways[1] is not None else None


def _all(fact: str, samples: Sequence[Sample], lower_is_better: bool) -> list[tuple[float, Way]]:
    found = (_reading(sample, fact, lower_is_better) for sample in samples)
    return [reading for reading in found if reading is not None]


def _reading(sample: Sample, fact: str, lower_is_better: bool) -> tuple[float, Way] | None:
    """The run's value; of a fact that only parts of the run have (ranks, links, …) the worst one. Times of a recording
    in which nothing marks steps depend on how long somebody recorded: they are no values to compare."""
    if fact.endswith("_us") and not sample.info.has_steps:
        return None
    whole = sample.facts.of(fact).get(RUN)
    facts = [whole] if whole is not None else list(sample.facts.of(fact).values())
    numbers = [
        (float(f.value), f)
        for f in facts
        if isinstance(f.value, (int, float)) and not isinstance(f.value, bool) and math.isfinite(f.value)
    ]
    if not numbers:
        return None
    value, chosen = (max if lower_is_better else min)(numbers, key=lambda item: item[0])
    names = dict.fromkeys(_DIGITS.sub("#", PurePosixPath(source.file).name) for source in chosen.sources if source.file)
    return value, Way(fact, ", ".join(names))


def value_of(sample: Sample, name: str, lower_is_better: bool = True) -> float | None:
    """The run's value of a metric by the first fact that it has; None where it was not measured."""
    found = (_reading(sample, fact, lower_is_better) for fact in facts_of(name))
    return next((reading[0] for reading in found if reading is not None), None)
