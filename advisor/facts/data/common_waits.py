"""What every rank that loads waits for its loader: the part of the starvation that no single rank explains."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.model import RUN, Fact, Subject

_FIRST = 0
"""The pipeline stage that takes in batches; a later one gets what the stage before it sends."""

KINDS = (
    kind("timeline.loader_common_us", "us", "run",
         "time per step in which nothing ran while the loop waited for the loader, on every rank that loads",
         formula="lowest of timeline.loader_idle_us over the ranks of the first pipeline stage; absent where one of "
                 "them has no timeline", needs="trace"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The wait that is left where the ranks that wait longer wait as the others do."""
    subjects = [Subject("rank", str(rank.rank), (rank.rank,)) for rank in run.ranks]
    loading = [each for each in subjects if (facts.number("rank.stage", each) or _FIRST) == _FIRST]
    waits = [facts.number("timeline.loader_idle_us", each) for each in loading]
    known = [us for us in waits if us is not None]
    if len(known) > 1 and len(known) == len(waits):
        yield from fact("timeline.loader_common_us", RUN, min(known), samples=len(known))


FAMILIES = (Family("common_waits", KINDS, measure, after=("timeline", "parallelism")),)
