"""Which runs may be compared with which: the runs of a baseline fall into histories, one a kind of run.

Whatever makes two runs incomparable (a field of the key, another amount of work) keeps them in different histories, at
`gate`, `baseline add`, `show` and `trend` alike. And a run counts once, however often it was copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from advisor.compare.facts import number
from advisor.compare.obstacles import obstacles
from advisor.gate.metrics import defaults
from advisor.gate.sample import EVIDENCE, Difference, Sample, differences

_TIME = "operator_type.time_us"


@dataclass(frozen=True)
class Acceptance:
    """A promotion: from then on another level counts."""

    added: str
    reason: str
    source: str
    first: int
    """Number of the first run of the new level in the history's `everything`."""


@dataclass(frozen=True)
class History:
    """Runs of one kind, oldest first: those that count now, and those of levels that a promotion has replaced."""

    runs: tuple[Sample, ...] = ()
    earlier: tuple[Sample, ...] = ()
    accepted: tuple[Acceptance, ...] = ()

    @property
    def everything(self) -> tuple[Sample, ...]:
        return (*self.earlier, *self.runs)

    @property
    def key(self) -> Mapping[str, str]:
        """The key of its newest run."""
        return self.everything[-1].key


@dataclass
class Kinds:
    """Runs sorted into kinds, in the order in which they come. Each kind is known by its first run."""

    ignored: tuple[str, ...] = ()
    members: list[list[Sample]] = field(default_factory=list)

    def place(self, sample: Sample) -> int:
        """Number of the kind that the run belongs to; a new one where it fits none."""
        for index, kind in enumerate(self.members):
            if not apart(kind[0], sample, self.ignored):
                kind.append(sample)
                return index
        self.members.append([sample])
        return len(self.members) - 1


def find_history(sample: Sample, histories: Sequence[History], ignored: Sequence[str]) -> History | None:
    """The newest history that the run can be compared with; None where there is none."""
    fitting = [h for h in histories if not apart(h.everything[0], sample, ignored)]
    return max(fitting, key=lambda h: h.everything[-1].added, default=None)


def nearest(sample: Sample, histories: Sequence[History], ignored: Sequence[str]) -> list[Difference]:
    """What tells the run from the history that is most like it; empty where there is none."""
    return min((apart(h.everything[0], sample, ignored) for h in histories), key=len, default=[])


def distinct(samples: Iterable[Sample], besides: Iterable[Sample] = ()) -> tuple[list[Sample], list[Sample]]:
    """The runs, each once and none that is among `besides`; and the copies left out."""
    seen = _Seen()
    for sample in besides:
        seen.add(sample)
    kept: list[Sample] = []
    copies: list[Sample] = []
    for sample in samples:
        (kept if seen.add(sample) else copies).append(sample)
    return kept, copies


class _Seen:
    def __init__(self) -> None:
        self._marks: set[tuple[str, str]] = set()

    def add(self, sample: Sample) -> bool:
        """Whether the run was not there yet."""
        marks = {(name, mark) for name, mark in (("facts", sample.digest), ("files", sample.content)) if mark}
        new = not marks & self._marks
        self._marks |= marks
        return new


def apart(before: Sample, after: Sample, ignored: Sequence[str] = ()) -> list[Difference]:
    """Why two runs cannot be compared: fields of the key that differ or, where none does, another amount of work.
    Fields that `ignored` names (`*` allowed) do not count."""
    found = differences(before.key, after.key, ignored)
    if found:
        return [item for item in found if item.field == EVIDENCE] or found
    work = [*_obstacles(before, after), *_operators(before, after)]
    return [item for item in work if not any(fnmatchcase(item.field, pattern) for pattern in ignored)]


def _obstacles(before: Sample, after: Sample) -> Iterable[Difference]:
    """Differences of the work; where operators are called with many shapes anyway, the costliest one says nothing."""
    settings = defaults()["key"]
    many = max(sample.table.number(settings["shapes"]["fact"]) or 0.0 for sample in (before, after))
    for item in obstacles(before.info, after.info, before.table, after.table):
        if item.what in settings["work"] and (item.what != "shapes" or many < settings["shapes"]["many"]):
            yield Difference(settings["work"][item.what], item.before, item.after)


def _operators(before: Sample, after: Sample) -> Iterable[Difference]:
    """Hardly any operator type in common: another model, though no key says so."""
    old, new = _times(before), _times(after)
    common = old.keys() & new.keys()
    if not old or not new:
        return
    shares = [sum(times[name] for name in common) / sum(times.values()) for times in (old, new)]
    if max(shares) < defaults()["key"]["common_operators"]:
        yield Difference("operators", _costliest(old), _costliest(new))


def _times(sample: Sample) -> dict[str, float]:
    facts = sample.table.of(_TIME)
    return {key[1]: time for key, fact in facts.items() if (time := number(fact.value)) is not None and time > 0}


def _costliest(times: Mapping[str, float]) -> str:
    return ", ".join(sorted(times, key=lambda name: -times[name])[:3])
