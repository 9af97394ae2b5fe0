"""Groups that exchange inside the layers and span several hosts, though links inside a host are faster (S22, S30).

What sharded layers exchange is waited for at once, in each of them; gradients move once a step, beside the backward
pass. Where a group of shards would fit on one host, another order of the ranks puts it there, and gradients cross the
hosts in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.collectives.allreduce import exposed_promptly, forward_passes, gradients
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.link_speed import INSIDE, LINKS, Link, links_of
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact

KINDS = (
    kind("placement.layer_group_size", "count", "run", "ranks of the largest group that exchanges inside the layers, "
         "where every such group spans several hosts", needs="collectives"),
    kind("placement.host_rank_count", "count", "run", "ranks on the host with fewest of them, where that of "
         "each rank is told", needs="collectives"),
    kind("placement.across_bytes_per_s", "bytes_per_s", "run", "bandwidth of the links between hosts",
         formula="Σ size ÷ Σ time", needs="links"),
    kind("placement.within_bytes_per_s", "bytes_per_s", "run", "bandwidth of the links inside a host",
         formula="Σ size ÷ Σ time", needs="links"),
    kind("placement.gradient_cost_us", "us", "run",
         "what gradients would expose more where they cross the hosts in place of these groups, per step; none where "
         "they do not lie inside hosts now",
         formula="buckets × bandwidth inside ÷ between, each reduced when its gradients are ready, − exposed now",
         needs="links"),
    kind("placement.saving_us", "us", "run",
         "what the step gains where these groups lie inside hosts; none where they have more ranks than a host",
         formula="communication.redistribution_us × (1 − bandwidth between ÷ inside) − gradient_cost_us",
         needs="links"),
)  # fmt: skip


class Placement(Struct, frozen=True):
    """Where the groups of sharded layers lie."""

    largest: int
    """Ranks of the largest group."""
    fewest: int
    """Ranks of the host with fewest."""


def placement(layout: Partition) -> Placement | None:
    """Of groups that shard layers where every one of them spans hosts that are told; else None."""
    hosts = layout.host
    groups = [members for name, members in layout.groups.items() if layout.role_of(name) == "tensor"]
    groups = [members for members in groups if len(members) > 1]
    if not groups or not all(rank in hosts for members in groups for rank in members):
        return None
    if any(_is_inside(layout, members) for members in groups):
        return None
    return Placement(max(map(len, groups)), min(Counter(hosts.values()).values()))


def _fewest(layout: Partition) -> int | None:
    """Ranks of the host with fewest, where the groups name no rank of an unknown one."""
    named = {rank for members in layout.groups.values() for rank in members}
    return min(Counter(layout.host.values()).values()) if layout.host and named <= set(layout.host) else None


def _is_inside(layout: Partition, members: tuple[int, ...]) -> bool:
    return len({layout.host.get(rank) for rank in members}) == 1


def _rate(links: list[Link]) -> float | None:
    us = sum(link.us for link in links)
    return sum(link.bytes for link in links) / us * 1e6 if us > 0 else None


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Ranks of a host, and facts of groups that span hosts; these not where one of them does not."""
    layout = partition(run)
    fewest = _fewest(layout)
    if fewest is not None:
        yield from fact("placement.host_rank_count", RUN, fewest)
    found = placement(layout)
    if found is None:
        return
    yield from fact("placement.layer_group_size", RUN, found.largest)
    links = [link for link in links_of(run).values() if link.source in layout.host and link.destination in layout.host]
    inside = [layout.host[link.source] == layout.host[link.destination] for link in links]
    near = [link for link, here in zip(links, inside, strict=True) if here and link.transport.upper() in INSIDE]
    far = [link for link, here in zip(links, inside, strict=True) if not here and link.transport.upper() not in INSIDE]
    across, within = _rate(far), _rate(near)
    sources = tuple({source for link in (*near[:1], *far[:1]) for source in link.sources})
    yield from fact("placement.across_bytes_per_s", RUN, across, *sources)
    yield from fact("placement.within_bytes_per_s", RUN, within, *sources)
    cost = _gradient_cost_us(run, facts, layout, within / across) if across and within else None
    yield from fact("placement.gradient_cost_us", RUN, cost, *sources)
    exposed = facts.number("communication.redistribution_us", RUN)
    if cost is not None and across and within and exposed is not None and found.largest <= found.fewest:
        yield from fact("placement.saving_us", RUN, max(exposed * (1 - across / within) - cost, 0.0), *sources)


def _gradient_cost_us(run: Run, facts: FactSet, layout: Partition, slower: float) -> float | None:
    """What gradients that lie inside hosts expose more where links carry so many times less; None where they lie
    elsewhere, or single buckets are not told."""
    own = [members for name, members in layout.groups.items() if layout.role_of(name) == "data" and len(members) > 1]
    if not own:
        return 0.0
    found, backward = gradients(run), facts.number("allreduce.backward_us", RUN)
    if found is None or backward is None or found.exposed_us is None or not found.buckets_us:
        return None
    if not all(_is_inside(layout, members) for members in own):
        return None
    then = exposed_promptly([us * slower for us in found.buckets_us], backward / forward_passes(run, facts))
    return max(then - found.exposed_us, 0.0)


FAMILIES = (
    Family("placement", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE, LINKS), after=("parallelism", "allreduce",
           "communication")),
)  # fmt: skip
