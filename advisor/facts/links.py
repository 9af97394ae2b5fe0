"""Links between ranks: bandwidth is size over time, compared within transport and message size (S24, S40, S46).

A slow link is one pair, a slow card all links of a rank over one transport, a slow host all links that leave it. To
tell them apart a card is judged by its best link and a host by its best card.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.communication import exposures, joints
from advisor.facts.parallelism import partition
from advisor.facts.steps import steady
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

Floats = npt.NDArray[np.float64]
Key = tuple[int, int, str]
"""(source, destination, transport)"""

MOST_SAMPLES = 24
"""Operations kept per link: those that took longest."""


USUAL_PERCENTILE = 25
"""What links usually take: the time that a quarter of them keeps. Faults only make links slower, and one slow card in
a small ring already slows half of its links, so the median would not do."""
REPLAYS = 8
"""Links, cards and hosts whose saving is replayed: those with the most excess time; the others get a bound."""


@dataclass(frozen=True)
class LinkLoad:
    """What one rank's files say of one link over the whole profile."""

    bytes: float
    us: float
    sizes: tuple[float, ...]
    times: tuple[float, ...]
    """Bytes and microseconds of single operations."""


@dataclass(frozen=True)
class Links:
    """All links one rank's files tell of."""

    loads: dict[Key, LinkLoad]
    steps: int
    sources: tuple[Source, ...] = ()


def reduce_links(rank: Rank) -> Links | None:
    """Sums and samples of each link; local copies and operations without time are left out."""
    frame = rank.read("links")
    if frame is None or frame.empty:
        return None
    columns = ["source", "destination", "transport", "size_bytes", "time_us", "aggregate", "operations", "step", "name"]
    frame = frame[[c for c in columns if c in frame]]
    frame = frame[(frame["size_bytes"] > 0) & (frame["time_us"] > 0) & frame["source"].notna()]
    frame = frame[frame["destination"].notna() & (frame["source"] != frame["destination"])]
    frame = frame[frame["transport"].fillna("") != "LOCAL"]
    if frame.empty:
        return None
    loads: dict[Key, LinkLoad] = {}
    grouped = frame.groupby(["source", "destination", "transport"], sort=True, dropna=False)
    for (source, destination, transport), part in grouped:
        aggregate = part["aggregate"].fillna("") if "aggregate" in part else part["transport"].map(lambda _: "")
        total = part[aggregate == "total"] if (aggregate == "total").any() else part[aggregate == ""]
        single = part[aggregate != "total"].drop_duplicates(["step", "name", "size_bytes", "time_us"])
        if total.empty:
            total = single
        operations = single["operations"].fillna(1.0) if "operations" in single else 1.0
        sizes = (single["size_bytes"] / operations).to_numpy(float)
        times = (single["time_us"] / operations).to_numpy(float)
        longest = np.argsort(-times, kind="stable")[:MOST_SAMPLES]
        loads[int(source), int(destination), str(transport or "")] = LinkLoad(
            float(total["size_bytes"].sum()), float(total["time_us"].sum()),
            tuple(sizes[longest].tolist()), tuple(times[longest].tolist()),
        )  # fmt: skip
    steps = int(frame["step"].nunique()) if "step" in frame else 1
    return Links(loads, max(steps, 1), (rank.source("links", "size_bytes", "time_us", "transport"),))


@dataclass
class Link:
    """One link, judged against the others of its transport."""

    source: int
    destination: int
    transport: str
    bytes: float = 0.0
    us: float = 0.0
    sizes: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    steps: int = 1
    ratio: float | None = None
    """Bandwidth against what messages of its sizes get elsewhere; 1 is usual. None: nothing to compare with."""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Card:
    """Links of one rank that stand or fall together."""

    best: float
    """Bandwidth ratio of the fastest of them."""
    links: list[Link]
    neighbours: int
    every: list[Link]
    """All links of the rank that are nearer to this ratio than to the usual: what mending the card mends."""
    leaving: bool
    """All of them lead to other hosts."""


def fit(sizes: Floats, times: Floats) -> tuple[float, float]:
    """(α µs, bytes per µs) of time = α + size ÷ β with least absolute relative error, α not below 0.

    Iteratively reweighted least squares; with one size only α is 0.
    """
    if len(sizes) == 0:
        return 0.0, np.inf
    if np.ptp(sizes) < 0.05 * sizes.max():
        return 0.0, float(np.median(sizes / times))
    weights = 1 / times
    alpha, slope = 0.0, float(np.median(times / sizes))
    for _ in range(30):
        design = np.stack([np.ones_like(sizes), sizes], axis=1) * weights[:, None]
        solution, *_ = np.linalg.lstsq(design, times * weights, rcond=None)
        alpha, slope = float(solution[0]), float(solution[1])
        if alpha < 0 or slope <= 0:
            alpha, slope = max(min(alpha, float(times.min())), 0.0), float(np.median(times / sizes))
            if solution[0] < 0:
                alpha = 0.0
            break
        residual = np.abs(times - alpha - slope * sizes) / times
        weights = 1 / times / np.sqrt(np.maximum(residual, 0.01))
    return alpha, 1 / slope


def links_of(run: Run) -> dict[Key, Link]:
    """Every link with its bandwidth ratio, worked out once."""
    if not hasattr(run, "_links"):
        run._links = _judge(run)  # type: ignore[attr-defined]
    return run._links  # type: ignore[attr-defined]


def _judge(run: Run) -> dict[Key, Link]:
    found: dict[Key, Link] = {}
    for reduction in run.each("links").values():
        for key, load in reduction.loads.items():
            link = found.setdefault(key, Link(*key))
            link.bytes += load.bytes
            link.us += load.us
            link.sizes += load.sizes
            link.times += load.times
            link.steps, link.sources = reduction.steps, reduction.sources
    hosts = partition(run).host
    classes: dict[tuple[str, bool | None], list[Link]] = defaultdict(list)
    for link in found.values():
        a, b = hosts.get(link.source), hosts.get(link.destination)
        classes[link.transport, None if a is None or b is None else a == b].append(link)
    for peers in classes.values():
        _compare(peers)
    return dict(sorted(found.items()))


def _compare(peers: list[Link]) -> None:
    """Bandwidth ratio of each link: time its messages take elsewhere ÷ time they take here."""
    if len(peers) < 2:
        return
    points = [_medians(link) for link in peers]
    sizes = np.concatenate([p[0] for p in points])
    times = np.concatenate([p[1] for p in points])
    alpha, rate = fit(sizes, times)
    by_class: dict[int, list[float]] = defaultdict(list)
    for size_of, time_of in points:
        for size, lasts in zip(size_of, time_of, strict=True):
            by_class[round(np.log2(size) * 2)].append(lasts / (alpha + size / rate))
    everywhere = [value for values in by_class.values() for value in values]
    for link, (size_of, time_of) in zip(peers, points, strict=True):
        ratios, weights = [], []
        for size, lasts in zip(size_of, time_of, strict=True):
            alike = by_class[round(np.log2(size) * 2)]
            usual = float(np.percentile(alike if len(alike) > 1 else everywhere, USUAL_PERCENTILE, method="lower"))
            ratios.append(usual * (alpha + size / rate) / lasts)
            weights.append(lasts)
        if ratios:
            order = np.argsort(ratios)
            mass = np.cumsum(np.array(weights)[order])
            link.ratio = float(np.array(ratios)[order][np.searchsorted(mass, mass[-1] / 2)])


def _medians(link: Link) -> tuple[Floats, Floats]:
    """Median time of the link's messages by size, half a power of two apart."""
    classes: dict[int, list[int]] = defaultdict(list)
    for i, size in enumerate(link.sizes):
        classes[round(np.log2(size) * 2)].append(i)
    sizes = np.array([np.median([link.sizes[i] for i in places]) for places in classes.values()])
    times = np.array([np.median([link.times[i] for i in places]) for places in classes.values()])
    return sizes, times


_NEEDS = "links"
KINDS = (
    kind("link.bandwidth_bytes_per_s", "bytes_per_s", "link", "size over time of all its transfers; the best link's for a card",
         formula="Σ size ÷ Σ time", needs=_NEEDS),
    kind("link.bandwidth_ratio", "ratio", "link", "bandwidth against what messages of these sizes get on other links of its "
         "transport and distance; for all links of a rank (2-*) that of its best one",
         formula="weighted median of (α + size ÷ β) ÷ time, α and β fitted over all links", needs=_NEEDS),
    kind("link.card_ratio", "ratio", "link", "the best link, over this transport, of the worse of its two ends", needs=_NEEDS),
    kind("link.host_ratio", "ratio", "link", "the best card of the worse of the hosts at its ends", needs=_NEEDS),
    kind("link.host_saving_share", "ratio", "link", "what the step gains where all links of its host are as fast as usual",
         needs=_NEEDS),
    kind("link.neighbour_count", "count", "link", "other ranks the card's links lead to; 1 for a single link", needs=_NEEDS),
    kind("link.is_card", "bool", "link", "stands for all links of one rank over one transport", needs=_NEEDS),
    kind("link.host", "text", "link", "host of the card, where it has several cards with links to other hosts", needs=_NEEDS),
    kind("link.transport", "text", "link", "HCCS, RDMA, PCIE, …", needs=_NEEDS),
    kind("link.message_bytes", "bytes", "link", "mean size of its messages", needs=_NEEDS),
    kind("link.transfer_us", "us", "link", "time it transfers, per step", needs=_NEEDS),
    kind("link.excess_us", "us", "link", "transfer time above what the same messages take elsewhere, per step",
         formula="transfer time × (1 − bandwidth ratio)", needs=_NEEDS),
    kind("link.is_worse_direction", "bool", "link", "the opposite direction of the same pair is faster, or not measured", needs=_NEEDS),
    kind("link.saving_us", "us", "link", "what the step gains at the usual bandwidth",
         formula="replay of the step with its collectives at the usual bandwidth, else its excess where nothing hides it", needs=_NEEDS),
    kind("link.saving_share", "ratio", "link", "the same as a share of the step", needs=_NEEDS),
    kind("link.peer_count", "count", "link", "other links it was compared with", needs=_NEEDS),
    kind("host.bandwidth_ratio", "ratio", "host", "bandwidth of the best card among those whose links leave the host", needs=_NEEDS),
    kind("host.card_count", "count", "host", "cards of the host with links to other hosts", needs=_NEEDS),
    kind("host.bandwidth_saving_us", "us", "host", "what the step gains where its links are as fast as others'", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of every link that is slower than usual or stands for many; of cards and of hosts."""
    found = {key: link for key, link in links_of(run).items() if link.ratio is not None}
    if not found:
        return
    step_us = facts.value("step.time_us", RUN)
    step = float(step_us) if isinstance(step_us, (int, float)) else None
    hosts = partition(run).host
    machines = _machines(found, hosts)
    cards = _cards(found, machines, hosts)
    candidates = [[link] for link in found.values()] + [c.links for c in cards.values()]
    candidates += [m[1] for m in machines.values()]
    least = sorted((_excess(links) for links in candidates), reverse=True)[:REPLAYS][-1]
    by_class: dict[str, int] = defaultdict(int)
    for link in found.values():
        by_class[link.transport] += 1
    shown = sorted(found, key=lambda key: (found[key].ratio or 0.0, key))[:MOST_LINKS]
    for key in sorted(shown):
        link = found[key]
        a, b, transport = key
        subject = Subject("link", f"{a}-{b}", tuple(sorted((a, b))))
        card = min((cards[end].best for end in (a, b) if end in cards and cards[end].neighbours > 1), default=1.0)
        ends = [m for m in (machines.get(hosts.get(a, "")), machines.get(hosts.get(b, ""))) if m]
        host = min((m[0] for m in ends), default=1.0) if hosts.get(a) != hosts.get(b) else 1.0
        back = found.get((b, a, transport))
        both = [link] if back is None else [link, back]
        yield from _facts_of_link(run, both, subject, step, least)
        yield from fact("link.is_card", subject, False, *link.sources)
        yield from fact("link.neighbour_count", subject, 1, *link.sources)
        yield from fact("link.card_ratio", subject, card, *link.sources)
        yield from fact("link.host_ratio", subject, host, *link.sources)
        worse = back is None or back.ratio is None or (link.ratio or 0.0, key) < (back.ratio, (b, a, transport))
        yield from fact("link.is_worse_direction", subject, worse, *link.sources)
        yield from fact("link.peer_count", subject, by_class[transport] - 1, *link.sources)
    gains = {name: _gain(run, m[1], _excess(m[1]) >= least) for name, m in machines.items()}
    for rank, one in sorted(cards.items()):
        subject = Subject("link", f"{rank}-*", (rank,))
        name = hosts.get(rank, "")
        machine = machines.get(name) if one.leaving else None
        whole = machine is not None and machine[0] < min(one.best, 1.0) ** 0.5
        part = (gains[name] or 0.0) / len(machine[2]) if machine and whole else None
        sources = one.links[0].sources
        yield from _facts_of_link(run, one.links, subject, step, least, one, part)
        yield from fact("link.host", subject, name if machine else None, *sources)
        yield from fact("link.host_ratio", subject, machine[0] if machine else 1.0, *sources)
        if machine and step:
            yield from fact("link.host_saving_share", subject, (gains[name] or 0.0) / step, *sources)
        yield from fact("link.is_card", subject, True, *sources)
        yield from fact("link.card_ratio", subject, one.best, *sources)
        yield from fact("link.neighbour_count", subject, one.neighbours, *sources)
        yield from fact(
            "link.peer_count", subject, sum(by_class[t] for t in {k.transport for k in one.links}) - 1, *sources
        )
        yield from fact("link.is_worse_direction", subject, True, *sources)
    for name, (best, own, ranks) in sorted(machines.items()):
        subject = Subject("host", name, tuple(sorted(r for r, host in hosts.items() if host == name)))
        yield from fact("host.bandwidth_ratio", subject, best, *own[0].sources, samples=len(own))
        yield from fact("host.card_count", subject, len(ranks), *own[0].sources)
        yield from fact("host.bandwidth_saving_us", subject, gains[name], *own[0].sources)


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
    excess = _excess(links)
    yield from fact("link.excess_us", subject, excess, *sources, samples=n)
    if part is not None:
        gain: float | None = part
    else:
        gain = _gain(run, card.every if card else links, excess >= least) if excess > 0 else 0.0
    yield from fact("link.saving_us", subject, gain, *sources, samples=n)
    if step and gain is not None:
        yield from fact("link.saving_share", subject, gain / step, *sources, samples=n)


def _excess(links: list[Link]) -> float:
    """Microseconds a step that these links transfer longer than usual."""
    return sum(one.us * max(1 - (one.ratio or 1.0), 0.0) for one in links) / max(links[0].steps, 1)


def _cards(
    found: dict[Key, Link], machines: dict[str, tuple[float, list[Link], tuple[int, ...]]], hosts: dict[int, str]
) -> dict[int, Card]:
    """rank -> its slowest set of links: all of them, or all over one transport; by the best link of the set.

    A set needs links to two other ranks, or the rank a host of which other cards have links that leave it too.
    """
    own: dict[tuple[int, str], list[Link]] = defaultdict(list)
    for (a, b, transport), link in found.items():
        for rank in (a, b):
            own[rank, transport].append(link)
            own[rank, ""].append(link)
    cards: dict[int, Card] = {}
    level: dict[int, float] = {}
    for (rank, _), links in sorted(own.items()):
        others = {link.source + link.destination - rank for link in links}
        leaving = all(hosts.get(link.source) != hosts.get(link.destination) for link in links)
        if len(others) < 2 and not (leaving and rank in machines.get(hosts.get(rank, ""), (1.0, [], ()))[2]):
            continue
        best = max(link.ratio or 0.0 for link in links)
        every = [link for link in own[rank, ""] if (link.ratio or 0.0) <= min(best, 1.0) ** 0.5]
        card = Card(best, links, len(others), every or links, leaving)
        # A single link stands for a card only as part of its host, so it counts no lower than the host's best.
        told = card.best if len(others) > 1 else max(card.best, machines[hosts[rank]][0])
        if rank not in cards or told < level[rank]:
            cards[rank], level[rank] = card, told
    return cards


def _machines(found: dict[Key, Link], hosts: dict[int, str]) -> dict[str, tuple[float, list[Link], tuple[int, ...]]]:
    """host -> (ratio of the best link that leaves it, those links, its cards that have any), two cards at least.

    A host at the end of a chain has links to one other host only; where that one is slow itself, it is the reason.
    """
    own: dict[str, list[Link]] = defaultdict(list)
    beside: dict[str, set[str]] = defaultdict(set)
    for (a, b, _), link in found.items():
        if a in hosts and b in hosts and hosts[a] != hosts[b]:
            own[hosts[a]].append(link)
            own[hosts[b]].append(link)
            beside[hosts[a]].add(hosts[b])
            beside[hosts[b]].add(hosts[a])
    best = {name: max(link.ratio or 0.0 for link in links) for name, links in own.items()}
    machines = {}
    for name, links in own.items():
        ranks = {r for link in links for r in (link.source, link.destination) if hosts[r] == name}
        only = next(iter(beside[name])) if len(beside[name]) == 1 else None
        explained = only is not None and len(beside[only]) > 1 and best[only] < min(best[name], 1.0) ** 0.5
        if len(ranks) > 1 and not explained:
            machines[name] = (best[name], links, tuple(sorted(ranks)))
    return machines


def _gain(run: Run, links: list[Link], replayed: bool) -> float | None:
    """Microseconds a step gains where these links are as fast as usual.

    A collective among whose members a slow link runs becomes shorter by what the link loses, down to its next slowest
    link; replayed where the step can be, else bounded by the transfer that nothing hides.
    """
    from advisor.facts.replay import gain, model

    slow = [link for link in links if (link.ratio or 1.0) < 1]
    worst = min((link.ratio or 1.0 for link in slow), default=1.0)
    if not slow:
        return 0.0
    found = model(run) if replayed else None
    if found is not None:
        pairs = {frozenset((link.source, link.destination)) for link in slow}
        factors = _factors(run, {link.source for link in slow}, worst)
        layout = partition(run)
        pure = {}
        for number, events in enumerate(found.members):
            members = set(layout.groups.get(found.group[number], ())) or set(events)
            if any(pair <= members for pair in pairs):
                pure[number] = found.pure[number] * factors.get(found.group[number], worst)
        if (gained := gain(found, {}, pure)) is not None:
            return gained
    touched = {rank for link in links for rank in (link.source, link.destination)}
    exposed = [sum(e.transfer.values()) for rank, e in exposures(run).items() if rank in touched]
    if not exposed or not (joints(run) or steady(run)):
        return None
    return max(exposed) * (1 - worst)


def _factors(run: Run, senders: set[int], worst: float) -> dict[str, float]:
    """group -> what remains of its collectives' transfer where the senders' links are as fast as usual."""
    found: dict[str, list[float]] = defaultdict(list)
    for joint in joints(run):
        others = [i for i, rank in enumerate(joint.ranks) if rank not in senders]
        mine = [i for i, rank in enumerate(joint.ranks) if rank in senders]
        if not mine or not np.isfinite(joint.transit_us).all():
            continue
        slowest = joint.transit_us[:, mine].max(axis=1)
        next_one = joint.transit_us[:, others].max(axis=1) if others else np.zeros(len(slowest))
        kept = np.maximum(slowest * worst, np.minimum(next_one, slowest))
        pure = np.maximum(joint.pure_us, 1e-9)
        found[joint.group].append(float(np.median(np.clip(1 - (slowest - kept) / pure, 0.0, 1.0))))
    return {group: float(np.median(values)) for group, values in found.items()}


FAMILIES = (
    Family("links", KINDS, measure, reduce_links, ("links",), uses=("communication", "parallelism", "replay", "steps")),
)
