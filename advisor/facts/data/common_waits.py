"""What ranks wait for their loaders beyond what any single rank explains: what all that load wait alike, and what
several ranks wait in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from advisor.basics.units import rank_list
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.accounts import accounts
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.data.common_pace import common_pace
from advisor.facts.data.getnext import GET_NEXT
from advisor.facts.data.loader_pace import held_share, pace_share
from advisor.facts.device.course import COURSE
from advisor.facts.host.timeline import IDLE
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Subject

_FIRST = 0
"""The pipeline stage that takes in batches; a later one gets what the stage before it sends."""

_NEEDS = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("timeline.loader_common_us", "us", "run",
         "time per step in which nothing ran while the loop waited for the loader, on every rank that loads",
         formula="lowest of timeline.loader_idle_us over the ranks of the first pipeline stage; absent where one of "
                 "them has no timeline", needs="trace"),
    kind("loaders.several_us", "us", "run", "what the mean step gains with the loaders of several ranks mended, where "
         "no single one gives nearly all of it",
         formula="each step without the waits of the fewest ranks that together give nine tenths of what all give",
         needs=_NEEDS),
    kind("loaders.alone_us", "us", "run", "what mending one of them gives at most", needs=_NEEDS),
    kind("loaders.even_lead_us", "us", "run",
         "by how much the same one of them waits longest, where it does so by about as much in nearly every step",
         needs=_NEEDS),
    kind("loaders.ranks", "text", "run", "these ranks", needs=_NEEDS),
    kind("rank.paced_wait_us", "us", "rank", "how long one of them waits for data per step, on average", needs=_NEEDS),
    kind("host.paced_share", "ratio", "host", "share of its ranks that load whose loaders are among these",
         needs=_NEEDS),
    kind("host.paced_elsewhere_share", "ratio", "host", "the same of the ranks of other hosts", needs=_NEEDS),
    kind("loaders.pace_share", "ratio", "run",
         "part of the steps in which a loader that is behind sets the pace: whatever else is mended, the loop waits "
         "for it",
         formula="steps from one wait of 1 ms and more for a loader with workers to the next of the same rank, four "
                 "batches later at most", needs="trace"),
    kind("loaders.held_share", "ratio", "run",
         "part of the gain of other repairs that a loader which is behind takes back: the loop waits for its batch by "
         "as much longer",
         formula="steps since each wait for a loader that fetches ahead, back to the last one, four at most ÷ all "
                 "steps; of waits of a twentieth of the step and more; none of a single one with more steps than that "
                 "before or behind it. Of batches that are sunk: of waits in GetNext", needs="trace|kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The wait that is left where the ranks that wait longer wait as the others do, and what several cost in turn."""
    subjects = [Subject("rank", str(rank.rank), (rank.rank,)) for rank in run.ranks]
    loading = [each for each in subjects if (facts.number("rank.stage", each) or _FIRST) == _FIRST]
    waits = [facts.number("timeline.loader_idle_us", subject) for subject in loading]
    known = [us for us in waits if us is not None]
    if len(known) > 1 and len(known) == len(waits):
        yield from fact("timeline.loader_common_us", RUN, min(known), samples=len(known))
    yield from fact("loaders.pace_share", RUN, pace_share(run))
    yield from fact("loaders.held_share", RUN, held_share(run))
    pace, balance = common_pace(run), accounts(run)
    if pace is not None and balance is not None:
        sources, n = balance.sources.get(pace.ranks[0], ()), len(pace.gains)
        yield from fact("loaders.several_us", RUN, pace.gain_us, *sources, samples=n)
        yield from fact("loaders.alone_us", RUN, float(pace.alone_us), *sources, samples=n)
        yield from fact("loaders.even_lead_us", RUN, pace.even_lead_us, *sources, samples=n)
        yield from fact("loaders.ranks", RUN, rank_list(pace.ranks), *sources, samples=n)
        for rank, each in pace.waits.items():
            yield from fact("rank.paced_wait_us", Subject("rank", str(rank), (rank,)), float(each.mean()), samples=n)
        yield from _by_host(partition(run), [subject.ranks[0] for subject in loading], set(pace.ranks))


def _by_host(layout: Partition, loading: Sequence[int], paced: Collection[int]) -> Iterator[Fact]:
    """How many of the ranks that load are behind, on each host of those that are and elsewhere."""
    hosts = {layout.host[rank] for rank in loading if rank in layout.host}
    if len(hosts) < 2:
        return
    for host in sorted({layout.host[rank] for rank in paced if rank in layout.host}):
        here, there = ([r for r in loading if (layout.host.get(r) == host) is same] for same in (True, False))
        subject = Subject("host", host, tuple(sorted(r for r in layout.host if layout.host[r] == host)))
        share, elsewhere = (sum(r in paced for r in ranks) / max(len(ranks), 1) for ranks in (here, there))
        yield from fact("host.paced_share", subject, share, samples=len(here))
        yield from fact("host.paced_elsewhere_share", subject, elsewhere, samples=len(there))


FAMILIES = (
    Family(
        "common_waits", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE, IDLE, GET_NEXT),
        after=("timeline", "parallelism"),
    ),
)  # fmt: skip
