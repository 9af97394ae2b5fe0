"""Who is sent more than the others where all exchange with all: each waits until the longest of these transfers is
over, so that a rank which many send much to holds up all of them, though all send alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.collectives.link_speed import LINKS, Key, Sums
from advisor.model import Fact, Subject

KINDS = (
    kind("rank.received_bytes", "bytes", "rank", "what a rank is sent per step in exchanges all with all",
         formula="Σ over the links to it, of the group in which the exchange takes longest", needs="links"),
    kind("rank.received_ratio", "number", "rank", "the same against the median of its peers (S40)", needs="links"),
    kind("rank.received_longer_us", "us", "rank", "how much longer these exchanges take than if all were sent alike",
         formula="longest link × (1 − what a rank is sent on average ÷ what this one is), per step", needs="links"),
)  # fmt: skip
_EXCHANGE = "alltoall"
_FEWEST = 3
"""Ranks of a group: of two, each has one peer, and neither is the usual one."""


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the ranks of each group whose matrices are all at hand, of the group that takes longest where a rank is
    in several."""
    del facts
    sources = next((each.sources for each in run.each(LINKS).values()), ())
    told: dict[int, tuple[float, float, float]] = {}
    for links in sorted(_links(run), key=lambda links: max(each.us for each in links.values())):
        received: dict[int, float] = defaultdict(float)
        for (_, destination, _), each in links.items():
            received[destination] += each.bytes
        if len(received) < _FEWEST or received.keys() != {source for source, _, _ in links}:
            continue
        mean, lasts = float(np.mean(list(received.values()))), max(each.us for each in links.values())
        for rank, size in received.items():
            others = float(np.median([own for peer, own in received.items() if peer != rank]))
            if others > 0:
                told[rank] = size, size / others, lasts * max(1 - mean / size, 0.0)
    for rank, (size, ratio, longer) in sorted(told.items()):
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("rank.received_bytes", subject, size, *sources)
        yield from fact("rank.received_ratio", subject, ratio, *sources)
        yield from fact("rank.received_longer_us", subject, longer, *sources)


def _links(run: Run) -> list[Mapping[Key, Sums]]:
    """What each link moves in a step in the exchanges of each group, by whichever of its ends tells more."""
    found: dict[str, dict[Key, Sums]] = defaultdict(dict)
    for each in run.each(LINKS).values():
        for (group, name), links in each.by_kind.items():
            if name == _EXCHANGE:
                for key, sums in links.items():
                    own = Sums(sums.us / each.steps, sums.bytes / each.steps)
                    found[group][key] = max(found[group].get(key, own), own)
    return list(found.values())


FAMILIES = (Family("received", KINDS, measure, uses=(LINKS,)),)
