"""A rank whose transfers take longer than its peers' for the same bytes: where no matrix tells its links one by one,
the sums of sizes and times in each collective do (S24, S40).

In one communicator, over one transport, ranks that move as many bytes take as long. One that takes longer by far has a
slow link at least: which of them, or whether all are, only the communication matrix would tell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.peers import medians_of_others
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, Exchanges
from advisor.facts.collectives.exposure import step_names
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Subject

SAME = limit("own_links", "same")
"""Ranks whose bytes differ by no more than this share move the same."""
FEWEST = int(limit("own_links", "fewest"))
"""Ranks that must be compared: of two nobody knows which is the odd one."""

Moved = Mapping[tuple[str, str], Mapping[int, tuple[float, float]]]
"""(communicator, transport) -> rank -> (bytes, microseconds) per step."""


class OwnLinks(Struct, frozen=True):
    """What a rank's transfers take, and would take at its peers' speed, microseconds per step."""

    own_us: float
    usual_us: float
    transport: str
    """The one over which it loses most."""


def compare(moved: Moved) -> dict[int, OwnLinks]:
    """rank -> its transfers against those of peers that move the same bytes over the same transport."""
    own: dict[int, float] = defaultdict(float)
    usual: dict[int, float] = defaultdict(float)
    lost: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (_, transport), each in moved.items():
        size, lasts = np.array([*each.values()]).T
        middle = float(np.median(size))
        if len(each) < FEWEST or not middle > 0 or (np.abs(size / middle - 1) > SAME).any():
            continue
        mine = dict(zip(each, lasts.tolist(), strict=True))
        for rank, theirs in medians_of_others(mine).items():
            own[rank] += mine[rank]
            usual[rank] += theirs
            lost[rank][transport] += mine[rank] - theirs
    return {
        rank: OwnLinks(own[rank], usual[rank], max(lost[rank], key=lambda name: lost[rank][name]))
        for rank in sorted(own)
        if own[rank] > 0
    }


def moved_by(rank: int, exchanges: Exchanges, names: set[str]) -> Iterator[tuple[tuple[str, str], int, float, float]]:
    """((communicator, transport), rank, bytes, microseconds) per step of its collectives in these steps."""
    inside = np.array([step in names for step in exchanges.steps])[exchanges.step]
    sized = inside & np.isfinite(exchanges.size_bytes) & (exchanges.transport_us > 0)
    sized &= ~np.isin(exchanges.kinds(), POINT_TO_POINT)
    transport = np.array(exchanges.transport, dtype=np.str_)
    for group, name in enumerate(exchanges.groups):
        for over in sorted(set(transport[sized & (exchanges.group == group)].tolist()) - {""}):
            mine = sized & (exchanges.group == group) & (transport == over)
            behind, steps = exchanges.weight[mine], max(len(names), 1)
            yield (
                (name, over), rank, float(exchanges.size_bytes[mine] @ behind) / steps,
                float(exchanges.transport_us[mine] @ behind) / steps,
            )  # fmt: skip


KINDS = (
    kind("link.own_ratio", "ratio", "link", "speed of all that a rank transfers, against its peers, where no matrix "
         "tells links one by one", formula="Σ median of the others' times ÷ Σ own time, over communicators and "
         "transports in which at least three ranks move the same bytes", needs="transports"),
    kind("link.own_longer_us", "us", "link", "what a rank's transfers take longer than its peers' for the same bytes, "
         "per step", needs="transports"),
    kind("link.own_saving_us", "us", "link", "its part of what the step gains where all transfer as fast",
         formula="the lesser of exposed transfer, or where it is not known all transfer, and the most that any "
                 "rank's transfers take longer, × own part of Σ link.own_longer_us", needs="transports"),
    kind("link.own_saving_share", "ratio", "link", "the same as a share of the step", needs="transports"),
    kind("link.own_transport", "text", "link", "the transport over which it loses most", needs="transports"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The links of each rank, taken together."""
    step = facts.number("step.time_us", RUN)
    if facts.has("link.bandwidth_ratio") or not step:
        return
    moved: dict[tuple[str, str], dict[int, tuple[float, float]]] = defaultdict(dict)
    exchanges = run.each(EXCHANGES)
    for rank, ex in exchanges.items():
        for key, one, size, lasts in moved_by(rank, ex, step_names(run, list(ex.steps))):
            moved[key][one] = size, lasts
    compared = compare(moved)
    over = {rank: max(found.own_us - found.usual_us, 0.0) for rank, found in compared.items()}
    exposed = facts.number("communication.exposed_transfer_us", RUN)
    if exposed is None:  # nobody knows how much is hidden: no more than all of it
        exposed = (facts.number("communication.transfer_share", RUN) or math.inf) * step
    # both ends of a slow link take longer, and a collective lasts as long as the slowest
    gains = min(max(over.values(), default=0.0), exposed) / max(sum(over.values()), 1.0)
    for rank, found in compared.items():
        subject, sources = Subject("link", f"{rank}-*", (rank,)), exchanges[rank].sources
        longer = over[rank]
        yield from fact("link.own_ratio", subject, found.usual_us / found.own_us, *sources)
        yield from fact("link.own_longer_us", subject, longer, *sources)
        yield from fact("link.own_transport", subject, found.transport, *sources)
        yield from fact("link.own_saving_us", subject, gains * longer, *sources)
        yield from fact("link.own_saving_share", subject, gains * longer / step, *sources)


FAMILIES = (Family("own_links", KINDS, measure, uses=(EXCHANGES, STEPS), after=("communication", "links", "steps")),)
