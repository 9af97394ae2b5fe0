"""Facts of links, cards and hosts, and what mending the slow ones would save (see link_speed.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.basics.units import rank_list
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.link_gain import hiding, is_sporadic, is_worth_replay, link_gain
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.inherent import is_told, large_message, link_limit
from advisor.facts.collectives.link_speed import (
    INCOMING,
    LINKS,
    Card,
    Key,
    Knot,
    Link,
    Machine,
    card_behind,
    cards_of,
    ends_of,
    excess_us,
    fit,
    host_behind,
    hosts_of,
    knots_of,
    links_of,
    machines_of,
    reduce_links,
    slow_link,
)  # fmt: skip
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.transfers import TRANSFERS, Transfers
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Subject

REPLAYS = 8
"""Links, cards and hosts whose saving is replayed: the clearly slower ones with the most excess time; the others get a
bound."""

_NEEDS = "links"
_MOVED = "links|transports"
KINDS = (
    kind("communication.main_transport", "text", "run", "what takes longest to move the bytes of all links",
         needs=_MOVED),
    kind("communication.main_transport_share", "ratio", "run", "its part of the time of all transports",
         formula="Σ over cards of its busiest link, without a matrix Σ of transfers ÷ the same of all transports",
         needs=_MOVED),
    kind("communication.main_transport_bytes_per_s", "bytes_per_s", "run",
         "what messages that are large enough to show its speed reach over it",
         formula="median of size ÷ time over messages from the size of knowledge_base/links.yaml", needs=_MOVED),
    kind("communication.main_transport_limit_bytes_per_s", "bytes_per_s", "run",
         "what a link of it carries (knowledge_base/links.yaml)", needs=_MOVED),
    kind("link.bandwidth_bytes_per_s", "bytes_per_s", "link",
         "size over time of all its transfers; the best link's for a card",
         formula="Σ size ÷ Σ time", needs=_NEEDS),
    kind("link.bandwidth_ratio", "ratio", "link",
         "bandwidth against what messages of these sizes get on other links of its "
         "transport and distance; for all links of a rank (2-*) that of its best one",
         formula="weighted median of (α + size ÷ β) ÷ time, α and β fitted over all links; where several transfers and "
                 "not all are slow, the same of Σ size and Σ time", needs=_NEEDS),
    kind("link.card_ratio", "ratio", "link", "the best link, over this transport, of the worse of its two ends, "
         "or of the slow links that share ranks with it", needs=_NEEDS),
    kind("link.host_ratio", "ratio", "link", "the best card of the worse of the hosts at its ends", needs=_NEEDS),
    kind("link.host_saving_share", "ratio", "link",
         "what the step gains where all links of its host are as fast as usual",
         needs=_NEEDS),
    kind("link.neighbour_count", "count", "link", "other ranks the card's links lead to; 1 for a single link",
         needs=_NEEDS),
    kind("link.is_card", "bool", "link", "stands for all links of one rank over one transport or in one direction, or "
         "for slow links that share ranks", needs=_NEEDS),
    kind("link.slow_pairs", "count", "link", "pairs of ranks between which links are slow, of slow links that share "
         "ranks and are no one card's or host's", needs=_NEEDS),
    kind("link.shared_ranks", "text", "link", "the ranks between which they are", needs=_NEEDS),
    kind("link.apart", "list", "link", "pairs and cards that are slow by themselves, have nothing but collectives in "
         "common and hide each other there", formula="units of common collectives of which the best alone gives less "
         "than links.by_itself of what all give together", needs=_NEEDS),
    kind("link.is_whole", "bool", "link", "every link between these ranks is slow", needs=_NEEDS),
    kind("link.stage", "number", "link", "pipeline stage whose ranks these are, from 0", needs=_NEEDS),
    kind("link.direction", "text", "link",
         "of a card: outgoing, incoming (*-2) or both, where its slow links have no direction in common",
         needs=_NEEDS),
    kind("link.limit_ratio", "ratio", "link", "bandwidth of all links of a transport against what such a link "
         "carries (knowledge_base/links.yaml)", formula="Σ (α + size ÷ limit) ÷ Σ time over messages that show a "
         "link's speed, without links slower than their peers", needs=_NEEDS),
    kind("link.limit_bytes_per_s", "bytes_per_s", "link", "what such a link carries (knowledge_base/links.yaml)",
         needs=_NEEDS),
    kind("link.reached_bytes_per_s", "bytes_per_s", "link", "what large messages reach on all links of the transport",
         formula="median of size ÷ time", needs=_NEEDS),
    kind("link.packet_bytes", "bytes", "link", "size of the packets in which their large messages move",
         formula="median over operations of size ÷ packets", needs="transports"),
    kind("link.all_of", "text", "link", "the transport of which these are all links that carry large messages",
         needs=_NEEDS),
    kind("link.all_pairs", "count", "link", "pairs of ranks between which these are", needs=_NEEDS),
    kind("link.limit_saving_us", "us", "link", "what the step gains where all of them carry what such links do",
         formula="replay of the step, as for single links", needs=_NEEDS),
    kind("link.limit_saving_share", "ratio", "link", "the same as a share of the step", needs=_NEEDS),
    kind("link.host", "text", "link", "host of the card, where it has several cards with links to other hosts",
         needs=_NEEDS),
    kind("link.transport", "text", "link", "HCCS, RDMA, PCIE, …", needs=_NEEDS),
    kind("link.message_bytes", "bytes", "link", "mean size of its messages", needs=_NEEDS),
    kind("link.listed_transfers", "count", "link", "transfers that the files list of it, by which it is judged; of "
         "a link that is slow now and then the slow ones", needs=_NEEDS),
    kind("link.transfer_us", "us", "link", "time it transfers, per step", needs=_NEEDS),
    kind("link.slow_transfers", "count", "link", "its slow transfers among those that the files list, of links that "
         "are slow now and then", needs=_NEEDS),
    kind("link.transfer_count", "count", "link", "how many transfers such a link makes in the recording",
         formula="Σ size ÷ mean size of those listed", needs=_NEEDS),
    kind("link.excess_us", "us", "link", "transfer time above what the same messages take elsewhere, per step",
         formula="transfer time × (1 − bandwidth ratio), of the sender that loses most", needs=_NEEDS),
    kind("link.is_worse_direction", "bool", "link",
         "the opposite direction of the same pair is faster, or not measured", needs=_NEEDS),
    kind("link.opposite_ratio", "ratio", "link", "the bandwidth ratio of the opposite direction of a single link",
         needs=_NEEDS),
    kind("link.saving_us", "us", "link", "what the step gains at the usual bandwidth",
         formula="replay of the step with its collectives at the usual bandwidth, else what they get shorter, no more "
         "than is exposed",
         needs=_NEEDS),
    kind("link.saving_share", "ratio", "link", "the same as a share of the step", needs=_NEEDS),
    kind("link.peer_count", "count", "link", "other links it was compared with", needs=_NEEDS),
    kind("host.bandwidth_ratio", "ratio", "host", "bandwidth of the best card among those whose links leave the host",
         needs=_NEEDS),
    kind("host.card_count", "count", "host", "cards of the host with links to other hosts", needs=_NEEDS),
    kind("host.direction", "text", "host", "outgoing, incoming or both: which of its links to other hosts are judged "
         "together", needs=_NEEDS),
    kind("host.bandwidth_excess_us", "us", "host", "transfer time of these links above what the same messages take "
         "between other hosts, per step",
         formula="transfer time × (1 − bandwidth ratio), of the sender that loses most", needs=_NEEDS),
    kind("host.bandwidth_saving_us", "us", "host", "what the step gains where its links are as fast as others'",
         formula="replay of the step with all these links at the usual bandwidth, else their exposed excess",
         needs=_NEEDS),
    kind("host.bandwidth_saving_share", "ratio", "host", "the same as a share of the step", needs=_NEEDS),
    kind("host.bandwidth_bytes_per_s", "bytes_per_s", "host", "bandwidth of the fastest link that leaves the host",
         formula="size ÷ time", needs=_NEEDS),
    kind("host.transport", "text", "host", "RDMA, …: of the fastest link that leaves the host", needs=_NEEDS),
    kind("host.message_bytes", "bytes", "host", "mean size of the messages that leave or reach the host",
         needs=_NEEDS),
    kind("host.link_peer_count", "count", "host", "links between other hosts, to compare with", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of every link that is slower than usual or stands for many; of cards and of hosts."""
    links = links_of(run)
    yield from _main_transport(links, () if links else list(run.each(TRANSFERS).values()))
    step = facts.number("step.time_us", RUN)
    if (evenly := _evenly_slow(links)) is not None:
        yield from _facts_of_all(run, evenly, step)
    told = _told(run)
    found, hosts, machines, knots = told.found, told.hosts, told.machines, told.knots
    if not found:
        return
    cards = told.cards_beside_knots()
    candidates = [[link] for link in found.values()] + [knot.links for knot in knots]
    candidates += [c.links for c in cards.values()] + [m.links for m in machines.values()]
    excess = sorted((excess_us(links) for links in candidates if is_worth_replay(links)), reverse=True)
    least = min(excess[:REPLAYS], default=np.inf)
    by_class: dict[str, int] = defaultdict(int)
    for link in found.values():
        by_class[link.transport] += 1
    shown = sorted(found, key=lambda key: (found[key].ratio or 0.0, key))[:MOST_LINKS]
    for key in sorted(shown):
        link = found[key]
        a, b, transport = key
        subject = Subject("link", f"{a}-{b}", tuple(sorted((a, b))))
        card, host = card_behind(link, cards), host_behind(link, machines, hosts)
        knot = next((one for one in knots if link in one.links), None)
        card = card if knot is None else min(card, knot.best)
        back = found.get((b, a, transport))
        both = [link] if back is None else [link, back]
        yield from _facts_of_link(run, both, subject, step, least)
        yield from fact("link.is_card", subject, False, *link.sources)
        yield from fact("link.neighbour_count", subject, 1, *link.sources)
        yield from fact("link.card_ratio", subject, card, *link.sources)
        yield from fact("link.host_ratio", subject, host, *link.sources)
        worse = back is None or back.ratio is None or (link.ratio or 0.0, key) < (back.ratio, (b, a, transport))
        yield from fact("link.is_worse_direction", subject, worse, *link.sources)
        yield from fact("link.opposite_ratio", subject, None if back is None else back.ratio, *link.sources)
        yield from fact("link.peer_count", subject, by_class[transport] - 1, *link.sources)
    gains = {name: link_gain(run, m.links, excess_us(m.links) >= least) for name, m in machines.items()}
    for rank, one in sorted(cards.items()):
        subject = Subject("link", _card_name(rank, one), (rank,))
        name = hosts.get(rank, "")
        machine = machines.get(name) if one.leaving else None
        machine = machine if machine is not None and machine.holds(one.direction) else None
        whole = machine is not None and machine.best < min(one.best, 1.0) ** 0.5
        together = gains[name] if machine else None
        part = together / len(machine.ranks) if machine and whole and together is not None else None
        sources = one.links[0].sources
        yield from _facts_of_link(run, one.links, subject, step, least, one, part)
        yield from fact("link.host", subject, name if machine else None, *sources)
        yield from fact("link.host_ratio", subject, machine.best if machine else 1.0, *sources)
        if together is not None and step:
            yield from fact("link.host_saving_share", subject, together / step, *sources)
        yield from fact("link.is_card", subject, True, *sources)
        yield from fact("link.direction", subject, one.direction, *sources)
        yield from fact("link.card_ratio", subject, one.best, *sources)
        yield from fact("link.neighbour_count", subject, one.neighbours, *sources)
        yield from fact(
            "link.peer_count", subject, sum(by_class[t] for t in {k.transport for k in one.links}) - 1, *sources
        )
        yield from fact("link.is_worse_direction", subject, True, *sources)
    for knot in knots:
        yield from _facts_of_knot(run, knot, hosts, step, least, by_class[knot.links[0].transport] - len(knot.links))
    for name, machine in sorted(machines.items()):
        own = machine.links
        subject = Subject("host", name, tuple(sorted(r for r, host in hosts.items() if host == name)))
        yield from fact("host.bandwidth_ratio", subject, machine.best, *own[0].sources, samples=len(own))
        yield from fact("host.card_count", subject, len(machine.ranks), *own[0].sources)
        yield from fact("host.direction", subject, machine.direction, *own[0].sources)
        yield from fact("host.bandwidth_excess_us", subject, excess_us(own), *own[0].sources, samples=len(own))
        together = gains[name]
        yield from fact("host.bandwidth_saving_us", subject, together, *own[0].sources)
        if step and together is not None:
            yield from fact("host.bandwidth_saving_share", subject, together / step, *own[0].sources)
        fastest = max(own, key=lambda one: one.ratio or 0.0)
        rate = fastest.bytes / fastest.us * 1e6
        yield from fact("host.bandwidth_bytes_per_s", subject, rate, *fastest.sources, samples=len(own))
        yield from fact("host.transport", subject, fastest.transport, *fastest.sources)
        size = float(np.mean([s for one in own for s in one.sizes]))
        yield from fact("host.message_bytes", subject, size, *own[0].sources, samples=len(own))
        others = sum(
            1 for a, b in ((k[0], k[1]) for k in found)
            if name not in (hosts.get(a), hosts.get(b)) and hosts.get(a) != hosts.get(b)
        )  # fmt: skip
        yield from fact("host.link_peer_count", subject, others, *own[0].sources)


def _main_transport(links: Mapping[Key, Link], told: Sequence[Transfers] = ()) -> Iterator[Fact]:
    """Over what most of the time is spent in which data moves, and how fast it moves there; where no matrix tells of
    single links, by what the collectives of each rank have moved (`told`)."""
    time = _time_by_transport(links)
    for one in told:
        for transport, (us, _) in one.moved.items():
            time[transport] += us
    whole = sum(time.values())
    if not whole > 0:
        return
    name = max(time, key=lambda one: time[one])
    mine = [link for link in links.values() if link.transport == name]
    moved = [one for one in told if name in one.moved]
    sizes, times = _large_messages(mine)
    rates = sizes / times if mine else np.array([rate for one in moved if (rate := one.moved[name][1]) is not None])
    sources = (mine or moved)[0].sources
    yield from fact("communication.main_transport", RUN, name or None, *sources)
    yield from fact("communication.main_transport_share", RUN, time[name] / whole, *sources, samples=len(mine or moved))
    yield from fact("communication.main_transport_limit_bytes_per_s", RUN, link_limit(name), *sources)
    if rates.size:
        rate = float(np.median(rates)) * 1e6
        yield from fact("communication.main_transport_bytes_per_s", RUN, rate, *sources, samples=rates.size)


def _time_by_transport(links: Mapping[Key, Link]) -> dict[str, float]:
    """Microseconds in which data moves. The links of one card move their data at once: its busiest of each transport
    tells how long that takes."""
    busiest: dict[tuple[int, str], float] = defaultdict(float)
    for (card, _, transport), link in links.items():
        busiest[card, transport] = max(busiest[card, transport], link.us)
    time: dict[str, float] = defaultdict(float)
    for (_, transport), us in busiest.items():
        time[transport] += us
    return time


def _large_messages(links: Sequence[Link]) -> tuple[Floats, Floats]:
    """Bytes and microseconds of the messages that show a link's speed."""
    sizes = np.array([size for link in links for size in link.sizes])
    times = np.array([us for link in links for us in link.times])
    shown = (sizes >= large_message()) & (times > 0)
    return sizes[shown], times[shown]


def _evenly_slow(links: Mapping[Key, Link]) -> list[Link] | None:
    """The links of one transport with their bandwidth against what the knowledge base says that such a link carries,
    for links that are all slow alike have no other to be compared with: of the transport that loses most time so,
    those with messages that show it. None where none is large enough, or nobody tells what its links carry."""
    time = _time_by_transport(links)
    found = {name: ratio for name in time if (ratio := _limit_ratio(name, links)) is not None}
    name = max(found, key=lambda one: (time[one] * (1 - found[one]), time[one]), default=None)
    if name is None:
        return None
    mine = [link for link in links.values() if link.transport == name and max(link.sizes, default=0) >= large_message()]
    return [replace(link, ratio=found[name] * min(link.ratio or 1.0, 1.0)) for link in mine]


def _limit_ratio(name: str, links: Mapping[Key, Link]) -> float | None:
    """How fast this transport's links are, 1 at what they carry. Those that are slower than their peers don't tell how
    fast all are."""
    usual = [link for link in links.values() if link.transport == name and (link.ratio or 1.0) >= slow_link()]
    sizes, times = _large_messages(usual)
    if not sizes.size or not is_told(name):
        return None
    start_up, _ = fit(sizes, times)
    return min(float((start_up + sizes / link_limit(name) * 1e6).sum() / times.sum()), 1.0)


def _packet_bytes(run: Run) -> float | None:
    """Size of the packets in which large messages move, the middle of all; None where it is not told. Where no
    operation is as large, what a matrix lists is the sum of many, and theirs are what moves."""
    told = [ex for ex in run.each(EXCHANGES).values() if ex.packet_bytes.size == ex.size_bytes.size]
    packets, sizes = (
        np.concatenate([getattr(ex, name) for ex in told]) if told else np.empty(0)
        for name in ("packet_bytes", "size_bytes")
    )
    large = sizes >= large_message()
    among = packets[large] if large.any() else packets
    return float(np.nanmedian(among)) if np.isfinite(among).any() else None


def _facts_of_all(run: Run, links: list[Link], step: float | None) -> Iterator[Fact]:
    """How fast the links of one transport are altogether."""
    subject, sources = _subject_of(links), links[0].sources
    ratio = max(link.ratio or 0.0 for link in links)
    sizes, times = _large_messages(links)
    n = sizes.size
    yield from fact("link.limit_ratio", subject, ratio, *sources, samples=n)
    yield from fact("link.limit_bytes_per_s", subject, link_limit(links[0].transport), *sources)
    yield from fact("link.reached_bytes_per_s", subject, float(np.median(sizes / times)) * 1e6, *sources, samples=n)
    yield from fact("link.packet_bytes", subject, _packet_bytes(run), *sources)
    yield from fact("link.all_of", subject, links[0].transport, *sources)
    pairs = {frozenset((link.source, link.destination)) for link in links}
    yield from fact("link.all_pairs", subject, len(pairs), *sources)
    gain = link_gain(run, links, True) if ratio < slow_link() else 0.0
    yield from fact("link.limit_saving_us", subject, gain, *sources, samples=n)
    if step and gain is not None:
        yield from fact("link.limit_saving_share", subject, gain / step, *sources, samples=n)


def links_behind(run: Run) -> dict[Subject, list[Link]]:
    """The links that a finding about a link, a card or a host is about."""
    told = _told(run)
    behind = {}
    for (a, b, transport), link in told.found.items():
        back = told.found.get((b, a, transport))
        behind[Subject("link", f"{a}-{b}")] = [link] if back is None else [link, back]
    for rank, one in told.cards.items():
        behind[Subject("link", _card_name(rank, one))] = one.every
    for name, machine in told.machines.items():
        own = machine.links
        behind[Subject("host", name)] = own
        members = sorted(rank for rank, host in told.hosts.items() if host == name)
        if len(members) > 1:  # as a finding about all links of a host is told
            behind[Subject("link", f"{members[0]}-*", tuple(members))] = own
    evenly = _evenly_slow(links_of(run))
    behind |= {_subject_of(evenly): evenly} if evenly else {}
    return behind | {_all_of(knot.ranks): knot.links for knot in told.knots}


class _Told(Struct, frozen=True):
    """What findings about links are told of."""

    found: dict[Key, Link]
    """Links that can be compared with others."""
    hosts: dict[int, str]
    machines: dict[str, Machine]
    cards: dict[int, Card]
    knots: list[Knot]

    def cards_beside_knots(self) -> dict[int, Card]:
        """The cards that no knot tells of."""
        bound = {rank for knot in self.knots if knot.is_whole for rank in knot.ranks}
        apart = {name for knot in self.knots for name in knot.apart}
        bound |= {rank for rank, card in self.cards.items() if _card_name(rank, card) in apart}
        return {rank: card for rank, card in self.cards.items() if rank not in bound}


@computed
def _told(run: Run) -> _Told:
    found = {key: link for key, link in links_of(run).items() if link.ratio is not None}
    hosts = hosts_of(partition(run).host, found)
    machines = machines_of(found, hosts)
    cards = cards_of(found, machines, hosts)
    told = _Told(found, hosts, machines, cards, knots_of(found, cards, machines, hosts))
    units = _slow_units(told)
    for together in hiding(run, list(units.values())):
        names = tuple(name for name, links in units.items() if links in together)
        slow = {id(link): link for unit in together for link in unit if (link.ratio or 0.0) < slow_link()}
        links = list(slow.values())
        told.knots[:] = [knot for knot in told.knots if knot.links not in together]
        ranks = {int(end) for name in names for end in name.split("-") if end != "*"}
        told.knots.append(Knot(links, tuple(sorted(ranks)), False, names))
    return told


def _slow_units(told: _Told) -> dict[str, list[Link]]:
    """Name -> slow links that a finding of their own would tell of: what ranks share, cards, pairs; no host's."""
    slow, beside = slow_link(), told.cards_beside_knots()
    units = {f"{knot.ranks[0]}-*": knot.links for knot in told.knots}
    for rank, card in sorted(beside.items()):
        of_host = card.leaving and _host_of_card(told, rank, card) < slow
        if card.best < slow and card.neighbours > 1 and not of_host:
            units[_card_name(rank, card)] = card.every
    for (a, b, transport), link in sorted(told.found.items()):
        back = told.found.get((b, a, transport))
        worse = back is None or back.ratio is None or ((link.ratio or 0.0), a) < (back.ratio, b)
        alone = card_behind(link, beside) >= slow and host_behind(link, told.machines, told.hosts) >= slow
        if worse and alone and (link.ratio or 0.0) < slow and not any(link in knot.links for knot in told.knots):
            units[f"{a}-{b}"] = [link] if back is None else [link, back]
    return units


def _host_of_card(told: _Told, rank: int, card: Card) -> float:
    """Bandwidth ratio of the best card of a rank's host in the direction of this card's links, 1 where it has none."""
    machine = told.machines.get(told.hosts.get(rank, ""))
    return machine.best if machine is not None and machine.holds(card.direction) else 1.0


def _card_name(rank: int, card: Card) -> str:
    return f"*-{rank}" if card.direction == INCOMING else f"{rank}-*"


def _subject_of(links: Sequence[Link]) -> Subject:
    """Their two ranks, the one that all of them leave or enter, or all of their ranks: of links that nobody recorded
    nothing is told."""
    ranks = ends_of(links)
    if len(ranks) == 2:
        return Subject("link", "-".join(map(str, ranks)), ranks)
    left, entered = ({getattr(link, end) for link in links} for end in ("source", "destination"))
    if len(left) == 1:
        return Subject("link", f"{min(left)}-*", tuple(left))
    return Subject("link", f"*-{min(entered)}", tuple(entered)) if len(entered) == 1 else _all_of(ranks)


def _all_of(ranks: tuple[int, ...]) -> Subject:
    """All links of these: those of their first rank, with all their ranks."""
    return Subject("link", f"{ranks[0]}-*", ranks)


def _facts_of_knot(
    run: Run, knot: Knot, hosts: Mapping[int, str], step: float | None, least: float, others: int
) -> Iterator[Fact]:
    """A knot is told as the card that its links would be of."""
    subject, sources = _all_of(knot.ranks), knot.links[0].sources
    whole = Card(knot.best, knot.links, len(ends_of(knot.links)) - 1, knot.links, False)
    yield from _facts_of_link(run, knot.links, subject, step, least, whole)
    layout = partition(run)
    stages = layout.peers() if len(set(layout.stage.values())) > 1 and not layout.guessed else {}
    stage = next((number for number, ranks in stages.items() if tuple(ranks) == knot.ranks), None)
    name = hosts.get(knot.ranks[0], "")
    is_host = len(set(hosts.values())) > 1 and {r for r, host in hosts.items() if host == name} == set(knot.ranks)
    yield from fact("link.stage", subject, stage, *sources)
    yield from fact("link.host", subject, name if is_host else None, *sources)
    yield from fact("link.shared_ranks", subject, rank_list(knot.ranks), *sources)
    yield from fact("link.slow_pairs", subject, knot.pairs, *sources)
    yield from fact("link.is_whole", subject, knot.is_whole, *sources)
    yield from fact("link.apart", subject, knot.apart or None, *sources)
    yield from fact("link.is_card", subject, True, *sources)
    yield from fact("link.neighbour_count", subject, whole.neighbours, *sources)
    yield from fact("link.card_ratio", subject, knot.best, *sources)
    yield from fact("link.host_ratio", subject, 1.0, *sources)
    yield from fact("link.is_worse_direction", subject, True, *sources)
    yield from fact("link.peer_count", subject, others, *sources)


MOST_LINKS = 64
"""Links that get facts of their own: the slowest, so that a thousand ranks stay readable."""


def _facts_of_link(
    run: Run,
    links: list[Link],
    subject: Subject,
    step: float | None,
    least: float,
    card: Card | None = None,
    part: float | None = None,
) -> Iterator[Fact]:
    link = max(links, key=lambda one: one.ratio or 0.0) if card else links[0]
    sources = link.sources
    n = sum(len(one.sizes) for one in links)
    us = (sum(one.us for one in links) if card else link.us) / max(link.steps, 1)
    yield from fact("link.bandwidth_bytes_per_s", subject, link.bytes / link.us * 1e6, *sources, samples=n)
    yield from fact("link.bandwidth_ratio", subject, card.best if card else link.ratio, *sources, samples=n)
    yield from fact("link.transport", subject, link.transport, *sources)
    yield from fact(
        "link.message_bytes", subject, float(np.mean([s for one in links for s in one.sizes])), *sources, samples=n
    )
    yield from fact("link.transfer_us", subject, us, *sources, samples=n)
    slow = sum(one.slow_count for one in links) if is_sporadic(links) else 0
    yield from fact("link.listed_transfers", subject, slow or n, *sources, samples=n)
    if slow:
        yield from fact("link.slow_transfers", subject, slow, *sources, samples=n)
        made = sum(one.bytes * len(one.sizes) / sum(one.sizes) for one in links)
        yield from fact("link.transfer_count", subject, round(made), *sources, samples=n)
    excess = excess_us(links)
    yield from fact("link.excess_us", subject, excess, *sources, samples=n)
    if part is not None:
        gain: float | None = part
    else:
        gain = link_gain(run, card.every if card else links, excess >= least) if excess > 0 else 0.0
    yield from fact("link.saving_us", subject, gain, *sources, samples=n)
    if step and gain is not None:
        yield from fact("link.saving_share", subject, gain / step, *sources, samples=n)


FAMILIES = (
    Family(
        "links",
        KINDS,
        measure,
        LINKS.by(reduce_links),
        ("links",),
        uses=(EXCHANGES, COURSE, STEPS, TRANSFERS),
        after=("parallelism",),
    ),
)
