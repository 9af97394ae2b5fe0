"""What accounts for a change of the step: which part of it, which operator type, rank or collective.

Medians over runs are compared subject by subject; what runs differ by anyway is not named as a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from advisor.gate.metrics import defaults
from advisor.gate.sample import Sample
from advisor.gate.statistics import Limits, compare
from advisor.model import RUN, Subject, Text


@dataclass(frozen=True)
class Change:
    """One contribution, microseconds per step. `share` is of the step's own change; contributions overlap."""

    fact: str
    subject: Subject
    what: Text
    before: float
    after: float
    share: float

    @property
    def difference(self) -> float:
        return self.after - self.before


def explain(history: Sequence[Sample], runs: Sequence[Sample], limits: Limits) -> tuple[Change, ...]:
    """The largest contributions in the direction in which the step changed, parts of the step first.

    `limits` are those of the step time: their threshold says what is noise.
    """
    step = _difference("step.time_us", RUN, history, runs)
    if step is None or step[0] == step[1]:
        return ()
    entry = defaults()["changes"]
    total = step[1] - step[0]
    parts = _largest(_parts(history, runs, total, entry["parts"]), limits, history, runs, entry)
    inside = _largest(_subjects(history, runs, total, entry["subjects"]), limits, history, runs, entry)
    return (*parts, *inside)


def _parts(history: Sequence[Sample], runs: Sequence[Sample], total: float, names: Sequence[str]) -> Iterator[Change]:
    from advisor.gate.metrics import title_of

    for name in names:
        found = _difference(name, RUN, history, runs)
        if found is not None:
            yield Change(name, RUN, title_of(name), *found, (found[1] - found[0]) / total)


def _subjects(
    history: Sequence[Sample], runs: Sequence[Sample], total: float, entries: Sequence[dict[str, str]]
) -> Iterator[Change]:
    for entry in entries:
        name = entry["fact"]
        subjects = {s for sample in (*history, *runs) for s in sample.facts.of(name) if s.kind not in ("run",)}
        for subject in sorted({(s.kind, s.id) for s in subjects}):
            found = _difference(name, Subject(*subject), history, runs)
            if found is not None:
                at = next(s for s in sorted(subjects) if (s.kind, s.id) == subject)
                yield Change(name, at, Text(entry["en"], entry["zh"]), *found, (found[1] - found[0]) / total)


def _difference(
    name: str, subject: Subject, history: Sequence[Sample], runs: Sequence[Sample]
) -> tuple[float, float] | None:
    """Medians of both sides. A subject that one side does not have took no time there, if that side measured the fact
    at all."""
    before, after = _values(name, subject, history), _values(name, subject, runs)
    if not before or not after:
        return None
    return median(before), median(after)


def _values(name: str, subject: Subject, samples: Sequence[Sample]) -> list[float]:
    values = []
    for sample in samples:
        by_subject = {(s.kind, s.id): fact.value for s, fact in sample.facts.of(name).items()}
        if not by_subject:
            continue
        value = by_subject.get((subject.kind, subject.id), None if subject == RUN else 0.0)
        if isinstance(value, (int, float)):
            values.append(float(value))
    return values


def _largest(
    changes: Iterator[Change], limits: Limits, history: Sequence[Sample], runs: Sequence[Sample], entry: dict
) -> list[Change]:
    """The contributions worth naming: a real part of the step's change, and beyond their own noise."""
    candidates = sorted((c for c in changes if c.share >= entry["least_share"]), key=lambda c: -c.share)
    named = []
    for change in candidates:
        before = _values(change.fact, change.subject, history)
        after = _values(change.fact, change.subject, runs)
        found = compare(before, after, limits, lower_is_better=change.difference > 0)
        if found.worse:
            named.append(change)
        if len(named) == entry["shown"]:
            break
    return named
