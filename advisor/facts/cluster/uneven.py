"""Who is sent more than the others, or sends more, where all exchange with all: each waits until the longest of these
transfers is over, so that one rank with many bytes holds up all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.peers import medians_of_others
from advisor.facts.collectives.link_speed import LINKS, Key, Sums, loads_by_kind
from advisor.model import Fact, Subject

KINDS = (
    kind("rank.exchange_bytes", "bytes", "rank", "what a rank sends, or is sent, per step in exchanges all with all, "
         "whichever is more against its peers", formula="Σ over its links, of the group whose exchange takes longest",
         needs="links"),
    kind("rank.exchange_ratio", "number", "rank", "the same against the median of its peers (S40)", needs="links"),
    kind("rank.exchange_sent", "bool", "rank", "it is what the rank sends", needs="links"),
    kind("rank.exchange_longer_us", "us", "rank", "how much longer these exchanges take than if all had alike",
         formula="longest link × (1 − mean of the ranks' bytes ÷ this one's), per step", needs="links"),
)  # fmt: skip
_EXCHANGE = "alltoall"
_FEWEST = 3
"""Ranks of a group: of two, each has one peer, and neither is the usual one."""


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the ranks of each group whose matrices are all at hand, of the group that takes longest where a rank is
    in several."""
    del facts
    sources = next((each.sources for each in run.each(LINKS).values()), ())
    told: dict[int, tuple[float, float, bool, float]] = {}
    exchanges = [links for (_, name), links in loads_by_kind(run).items() if name == _EXCHANGE]
    for links in sorted(exchanges, key=lambda links: max(each.us for each in links.values())):
        sent, received = _bytes_of(links, 0), _bytes_of(links, 1)
        if len(received) < _FEWEST or received.keys() != sent.keys():
            continue
        lasts = max(each.us for each in links.values())
        usually_sent, usually_received = medians_of_others(sent), medians_of_others(received)
        for rank in sent:
            ratio, is_sent = max(
                (sent[rank] / usually_sent[rank], True), (received[rank] / usually_received[rank], False)
            )
            moved = sent if is_sent else received
            mean = float(np.mean(list(moved.values())))
            told[rank] = moved[rank], ratio, is_sent, lasts * max(1 - mean / moved[rank], 0.0)
    for rank, (size, ratio, is_sent, longer) in sorted(told.items()):
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("rank.exchange_bytes", subject, size, *sources)
        yield from fact("rank.exchange_ratio", subject, ratio, *sources)
        yield from fact("rank.exchange_sent", subject, is_sent, *sources)
        yield from fact("rank.exchange_longer_us", subject, longer, *sources)


def _bytes_of(links: Mapping[Key, Sums], end: int) -> dict[int, float]:
    """Rank -> bytes of the links that begin (`end` 0) or end (1) at it."""
    found: dict[int, float] = defaultdict(float)
    for key, each in links.items():
        found[int(key[end])] += each.bytes
    return found


FAMILIES = (Family("uneven_exchange", KINDS, measure, uses=(LINKS,)),)
