"""How fast each rank's host is: the same calls on all ranks, against its peers'."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from advisor.facts.base import FactSet, Family, Reduction, Run, computed, fact, kind
from advisor.facts.cluster.peers import medians_of_others, others_median
from advisor.facts.host.owners import LOADER
from advisor.knowledge.measuring import limit
from advisor.model import Fact, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace

FEWEST = int(limit("host_pace", "fewest"))
"""Fewer calls of one name, and fewer names, tell nothing of the host."""
SLOW = limit("host_pace", "slow")
"""How many times as long as on its peers the calls of a slow host take."""
BEYOND = limit("host_pace", "beyond")
"""A loader whose call takes longer than the host's other calls by this factor is slow by itself."""

AHEAD = re.compile(r"_MultiProcessingDataLoaderIter\b.*__next__")
"""The same of torch's loader with workers, which fetch ahead."""
PIPELINE = re.compile(r"(Dataset|Pipeline|IteratorConsumer)\b.*::GetNext", re.IGNORECASE)
"""The same of MindSpore's pipelines, whose operations fill the queues between them."""


class Calls(Struct, frozen=True):
    """Mean duration of the calls of each (process, name) on one rank's host, and of the loop's call for a batch, if it
    was recorded; microseconds."""

    mean_us: Mapping[tuple[str, str], float]
    loader_us: float | None


CALLS = Reduction("host_pace", Calls)


def reduce(rank: Rank) -> Calls | None:
    """The calls that came often; None without a timeline."""
    trace = load_trace(rank)
    if trace is None:
        return None
    means = {
        key: seen.total_us / seen.count
        for key, seen in trace.activities.items()
        if seen.count >= FEWEST and seen.total_us > 0 and not LOADER.search(key[1])
    }
    fetches = [seen for (_, name), seen in trace.activities.items() if LOADER.search(name) and seen.count]
    longest = max((seen.total_us / seen.count for seen in fetches), default=None)
    return Calls(means, longest)


@computed
def slow_hosts(run: Run) -> dict[int, float]:
    """Ranks of this run that `slower_alike` finds."""
    return slower_alike(run.each(CALLS))


def slower_alike(calls: Mapping[int, Calls]) -> dict[int, float]:
    """rank -> how many times as long as on its peers it waits for its batch, where the calls of its host are as slow:
    what it waits for its batch it waits for its host. A loader that is slow beyond that is slow by itself. One that
    takes no longer than its peers' is not slow for its host, whose calls may be long because they wait for the
    device."""
    found = {rank: pace for rank, pace in _paces(calls).items() if pace >= SLOW}
    loading = {rank: np.nan if one.loader_us is None else one.loader_us for rank, one in calls.items()}
    usual = medians_of_others(loading) if found else {}
    slow = {}
    for rank, pace in found.items():
        own = calls[rank].loader_us
        if own is not None and SLOW * usual[rank] <= own <= BEYOND * pace * usual[rank]:
            slow[rank] = min(pace, own / usual[rank])
    return slow


def slow_as_all(calls: Mapping[int, Calls], doing: Mapping[int, str]) -> set[int]:
    """Ranks whose host takes longer for all it does, and as much longer for what it is `doing` (rank -> the name of
    the call) while their devices wait: it is no other work than their peers'."""
    found = set()
    for rank, pace in _paces(calls).items():
        own = _of_name(calls[rank], doing.get(rank, ""))
        others = [us for each in calls if each != rank and (us := _of_name(calls[each], doing.get(rank, ""))) > 0]
        usual = float(np.median(others)) if others else 0.0
        if pace >= SLOW and usual and SLOW * usual <= own <= BEYOND * pace * usual:
            found.add(rank)
    return found


def _of_name(calls: Calls, name: str) -> float:
    """Mean duration of the calls of this name in whichever process, microseconds; 0 where there are none."""
    return max((us for (_, called), us in calls.mean_us.items() if called == name), default=0.0)


def _paces(calls: Mapping[int, Calls]) -> dict[int, float]:
    """rank -> median over the names that its peers call as well of its own mean ÷ the median of theirs."""
    names = list(dict.fromkeys(name for one in calls.values() for name in one.mean_us))
    if len(calls) < 2 or not names:
        return {}
    table = np.array([[one.mean_us.get(name, np.nan) for name in names] for one in calls.values()])
    ratios = table / others_median(table)
    known = np.isfinite(ratios).sum(axis=1) >= FEWEST
    return {rank: float(np.nanmedian(row)) for rank, row, told in zip(calls, ratios, known, strict=True) if told}


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """How many times as long as on its peers each rank's host takes."""
    del facts
    for rank, pace in _paces(run.each(CALLS)).items():
        yield from fact("rank.host_pace", Subject("rank", str(rank), (rank,)), pace)


KINDS = (
    kind("rank.host_pace", "number", "rank", "the same calls of the host take this many times as long as on its peers",
         formula="median over names of mean duration ÷ the median of the other ranks' means", needs="trace"),
)  # fmt: skip
FAMILIES = (Family("host_pace", KINDS, measure, CALLS.by(reduce), ("trace",)),)
