"""Links, cards and hosts by bandwidth: size over time, compared within transport and message size (S24, S40, S46).

A slow link is one pair, a slow card all links of a rank, or those over one transport or in one direction, a slow host
all links that leave it. To tell them apart a card is judged by its best link and a host by its best card. What else is
slow and shares ranks is a knot: one culprit, for a collective is as slow as its slowest link, however many are mended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Ints
from advisor.facts.base import Reduction, Run, computed
from advisor.facts.collectives.exchanges import POINT_TO_POINT, kind_of, reduce_exchanges
from advisor.facts.collectives.parallelism import partition
from advisor.knowledge.measuring import limit
from advisor.knowledge.thresholds import shared_threshold
from advisor.model import Source
from advisor.sources.base import Rank

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[int, int, str]
"""(source, destination, transport)"""

MOST_SAMPLES = 24
"""Operations kept per link: those that took longest."""


SPORADIC_LEAST = int(limit("transfers", "sporadic_least"))
"""Slow transfers from which a link is slow now and then: fewer are events."""

USUAL_PERCENTILE = limit("transfers", "usual_percentile")
"""What links usually take: the time that a quarter of them keeps. Faults only make links slower, and one slow card in
a small ring already slows half of its links, so the median would not do."""


class LinkLoad(Struct, frozen=True):
    """What one rank's files say of one link over the whole profile."""

    bytes: float
    us: float
    sizes: tuple[float, ...]
    times: tuple[float, ...]
    """Bytes and microseconds of single operations; of their mean, where the file has nothing but sums."""


class Sums(NamedTuple):
    """Microseconds and bytes of a link."""

    us: float
    bytes: float


class Links(Struct, frozen=True):
    """All links one rank's files tell of."""

    loads: dict[Key, LinkLoad]
    steps: int
    sources: tuple[Source, ...] = ()
    by_kind: dict[tuple[str, str], dict[Key, Sums]] = field(default_factory=dict)
    """(group, kind of collective) -> what each link moved over the whole profile."""


LINKS = Reduction("links", Links)


def reduce_links(rank: Rank) -> Links | None:
    """Sums and samples of each link; local copies and operations without time are left out."""
    frame = rank.read("links")
    if frame is None or frame.empty:
        return None
    known = {"time_us", "size_bytes"} <= set(frame)
    if untimed := int((frame["time_us"].isna() & (frame["size_bytes"] > 0)).sum()) if known else 0:
        text = f"{untimed} of its {len(frame)} links have a size and no time; they were left out"
        rank.note(rank.relative(rank.tables["links"].paths[0]), text, ("links",))
    rows = _Rows.of(frame)
    if not len(rows.us):
        return None
    made = {} if (rows.aggregate != "total").any() else _made(rank)
    loads = {rows.key(part[0]): _load(rows, part, made) for part in rows.by_link()}
    steps = len(set(rows.step.tolist()) - {""})
    source = rank.source("links", "size_bytes", "time_us", "transport")
    return Links(loads, max(steps, 1), (source,), _by_kind(rows))


class _Rows(Struct, frozen=True):
    """The table's columns as arrays: a rank has few links, and for each of them a frame would be sliced anew."""

    source: Ints
    destination: Ints
    transport: npt.NDArray[Any]
    size: Floats
    us: Floats
    operations: Floats
    step: npt.NDArray[Any]
    name: npt.NDArray[Any]
    group: npt.NDArray[Any]
    aggregate: npt.NDArray[Any]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _Rows:
        """The operations between two ranks that moved something in some time."""

        def texts(name: str) -> npt.NDArray[Any]:
            return frame[name].fillna("").to_numpy(object) if name in frame else np.full(len(frame), "", object)

        def numbers(name: str) -> Floats:
            return frame[name].to_numpy(float, na_value=np.nan) if name in frame else np.full(len(frame), np.nan)

        size, us, source, destination = map(numbers, ("size_bytes", "time_us", "source", "destination"))
        transport = texts("transport")
        between = ~np.isnan(source) & ~np.isnan(destination) & (source != destination)
        kept = (size > 0) & (us > 0) & between & (transport != "LOCAL")
        operations = numbers("operations")[kept]
        return cls(
            source[kept].astype(np.int64), destination[kept].astype(np.int64), transport[kept], size[kept], us[kept],
            np.where(np.isnan(operations), 1.0, operations),
            *(texts(name)[kept] for name in ("step", "name", "group", "aggregate")),
        )  # fmt: skip

    def key(self, row: int) -> Key:
        """The link that a row tells of."""
        return int(self.source[row]), int(self.destination[row]), str(self.transport[row])

    def by_link(self) -> list[npt.NDArray[np.intp]]:
        """The rows of each link, links in order."""
        codes = np.unique(self.transport.astype(str), return_inverse=True)[1]
        keys = np.stack((self.source, self.destination, codes.astype(np.int64)))
        order = np.lexsort(keys[::-1])
        ends = np.flatnonzero((keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)) + 1
        return np.split(order, ends)


Made = Mapping[tuple[str, str, str], int]
"""(step, group, kind) -> collectives that the rank made."""


def _made(rank: Rank) -> dict[tuple[str, str, str], int]:
    """How many collectives stand behind each sum of the file; between two ranks alone nobody tells how many."""
    exchanges = reduce_exchanges(rank)
    if exchanges is None:
        return {}
    found: dict[tuple[str, str, str], float] = defaultdict(float)
    columns = exchanges.step, exchanges.group, exchanges.kinds(), exchanges.weight
    for step, group, kind, behind in zip(*(column.tolist() for column in columns), strict=True):
        if kind not in POINT_TO_POINT:
            found[exchanges.steps[step], exchanges.groups[group], kind] += behind
    return {key: round(count) for key, count in found.items()}


def _mean_of(rows: _Rows, total: npt.NDArray[np.intp], made: Made) -> tuple[float, float] | None:
    """Bytes and microseconds of the mean operation behind these sums. Time is start-up + size ÷ bandwidth, so that it
    is as good as any of them to compare links by. None where one of the sums is of nobody knows how many."""
    count = 0
    for row in total.tolist():
        step, group, kind = rows.step[row] or "0", rows.group[row], kind_of(rows.name[row])
        scattered = kind == "reduce" and (step, group, kind) not in made  # MindSpore's matrix calls ReduceScatter so
        behind = made.get((step, group, "reducescatter" if scattered else kind), 0)
        if not behind:
            return None
        count += behind
    return float(rows.size[total].sum()) / count, float(rows.us[total].sum()) / count


def _load(rows: _Rows, part: npt.NDArray[np.intp], made: Made) -> LinkLoad:
    """One link: what the file summed up, where it did, else its operations; and those that took longest."""
    summed = rows.aggregate[part] == "total"
    single: dict[tuple[Any, ...], int] = {}
    for row in part[~summed].tolist():
        single.setdefault((rows.step[row], rows.name[row], rows.size[row], rows.us[row]), row)
    alone = np.fromiter(single.values(), np.intp, len(single))
    total = part[summed] if summed.any() else part[rows.aggregate[part] == ""]
    if not total.size:
        total = alone
    sizes, times = rows.size[alone] / rows.operations[alone], rows.us[alone] / rows.operations[alone]
    longest = np.argsort(-times, kind="stable")[:MOST_SAMPLES]
    if made and (mean := _mean_of(rows, total, made)) is not None:
        sizes, times, longest = np.array(mean[:1]), np.array(mean[1:]), np.arange(1)
    return LinkLoad(
        float(rows.size[total].sum()), float(rows.us[total].sum()),
        tuple(sizes[longest].tolist()), tuple(times[longest].tolist()),
    )  # fmt: skip


def _by_kind(rows: _Rows) -> dict[tuple[str, str], dict[Key, Sums]]:
    """What each link moves in the collectives of each group and kind: their sum where the file gives it."""
    kinds = {name: kind_of(str(name)) for name in dict.fromkeys(rows.name.tolist())}
    pairs = [(str(group), kinds[name]) for group, name in zip(rows.group.tolist(), rows.name.tolist(), strict=True)]
    told = rows.aggregate.tolist()
    summed = {pair for pair, aggregate in zip(pairs, told, strict=True) if aggregate == "total"}
    found: dict[tuple[str, str], dict[Key, Sums]] = defaultdict(lambda: defaultdict(lambda: Sums(0.0, 0.0)))
    for row, (pair, aggregate) in enumerate(zip(pairs, told, strict=True)):
        if aggregate == "total" or (aggregate == "" and pair not in summed):
            us, size = found[pair][rows.key(row)]
            found[pair][rows.key(row)] = Sums(us + float(rows.us[row]), size + float(rows.size[row]))
    return {pair: dict(sorted(found[pair].items())) for pair in sorted(found)}


class Link(Struct):
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
    slow_count: int = 0
    """Transfers of a link that is slow now and then, of those the file lists, that were slow; 0 where it is so always,
    or never."""
    sources: tuple[Source, ...] = ()


BOTH, OUTGOING, INCOMING = "both", "outgoing", "incoming"


class Card(Struct, frozen=True):
    """Links of one rank that stand or fall together."""

    best: float
    """Bandwidth ratio of the fastest of them."""
    links: list[Link]
    neighbours: int
    every: list[Link]
    """All links of the rank that are nearer to this ratio than to the usual: what mending the card mends."""
    leaving: bool
    """All of them lead to other hosts."""
    direction: str = BOTH


class Machine(Struct, frozen=True):
    """Links between one host and others that stand or fall together."""

    best: float
    """Bandwidth ratio of the fastest of them."""
    links: list[Link]
    ranks: tuple[int, ...]
    """Its cards that have any."""
    direction: str = BOTH

    def holds(self, direction: str) -> bool:
        """Whether links of this direction are judged with it."""
        return self.direction in (BOTH, direction)


def differ(sizes: Floats) -> bool:
    """Whether messages differ enough in size to tell start-up from bandwidth."""
    return bool(len(sizes) and np.ptp(sizes) >= 0.05 * sizes.max())


def fit(sizes: Floats, times: Floats) -> tuple[float, float]:
    """(α µs, bytes per µs) of time = α + size ÷ β with least absolute relative error, α not below 0.

    Iteratively reweighted least squares; with one size only α is 0. Times of next to nothing, as damaged tables hold
    them, weigh more than a number can tell and are left out.
    """
    with np.errstate(all="ignore"):
        told = np.isfinite(1 / times) & np.isfinite(sizes / times) & np.isfinite(times / sizes)
    sizes, times = sizes[told], times[told]
    if len(sizes) == 0:
        return 0.0, np.inf
    if not differ(sizes):
        return 0.0, float(np.median(sizes / times))
    weights = 1 / times
    alpha, slope = 0.0, float(np.median(times / sizes))
    for _ in range(30):
        design = np.stack([np.ones_like(sizes), sizes], axis=1) * weights[:, None]
        try:
            solution, *_ = np.linalg.lstsq(design, times * weights, rcond=None)
        except np.linalg.LinAlgError:  # of damaged tables as well: numbers too far apart to be solved for
            return 0.0, float(np.median(sizes / times))
        alpha, slope = float(solution[0]), float(solution[1])
        if alpha < 0 or slope <= 0:
            alpha, slope = max(min(alpha, float(times.min())), 0.0), float(np.median(times / sizes))
            if solution[0] < 0:
                alpha = 0.0
            break
        residual = np.abs(times - alpha - slope * sizes) / times
        weights = 1 / times / np.sqrt(np.maximum(residual, 0.01))
    return alpha, 1 / slope


INSIDE = ("HCCS", "SIO", "PCIE")
"""Transports that do not leave a host."""


def hosts_of(told: Mapping[int, str], links: Iterable[Key]) -> dict[int, str]:
    """rank -> host: as told, else ranks that transports inside a host join are of one host, named after the first."""
    if told:
        return dict(told)
    beside: dict[int, set[int]] = defaultdict(set)
    for a, b, transport in links:
        if transport.upper() in INSIDE:
            beside[a].add(b)
            beside[b].add(a)
    hosts: dict[int, str] = {}
    for first in sorted(beside):
        pending = [] if first in hosts else [first]
        while pending:
            rank = pending.pop()
            if rank not in hosts:
                hosts[rank] = f"host-of-{first}"
                pending.extend(beside[rank])
    return hosts


@computed
def loads_by_kind(run: Run) -> dict[tuple[str, str], dict[Key, Sums]]:
    """(group, kind of collective) -> what each link moves in a step, by whichever rank's file tells more of it."""
    found: dict[tuple[str, str], dict[Key, Sums]] = defaultdict(dict)
    for reduction in run.each(LINKS).values():
        for pair, loads in reduction.by_kind.items():
            for key, sums in loads.items():
                own = Sums(sums.us / reduction.steps, sums.bytes / reduction.steps)
                found[pair][key] = max(found[pair].get(key, own), own)
    return dict(found)


@computed
def links_of(run: Run) -> dict[Key, Link]:
    """Every link with its bandwidth ratio."""
    found: dict[Key, Link] = {}
    for reduction in run.each(LINKS).values():
        for key, load in reduction.loads.items():
            link = found.setdefault(key, Link(*key))
            link.bytes += load.bytes
            link.us += load.us
            link.sizes += load.sizes
            link.times += load.times
            link.steps, link.sources = reduction.steps, reduction.sources
    hosts = hosts_of(partition(run).host, found)
    classes: dict[tuple[str, bool], list[Link]] = defaultdict(list)
    for link in found.values():
        # of ranks that were not recorded the host may not be told: their links are within a host, as far as is known
        a, b = hosts.get(link.source), hosts.get(link.destination)
        classes[link.transport, None not in (a, b) and a != b].append(link)
    for peers in classes.values():
        _compare([link for link in peers if link.sizes])
    return dict(sorted(found.items()))


def _compare(peers: list[Link]) -> None:
    """Bandwidth ratio of each link: time its messages take elsewhere ÷ time they take here, by what its messages of
    each size take as a rule; where it is slow now and then, by the sums of all of them."""
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

    def usual_us(size: float) -> float:
        alike = by_class[round(np.log2(size) * 2)]
        usual = np.percentile(alike if len(alike) > 1 else everywhere, USUAL_PERCENTILE, method="lower")
        return float(usual) * (alpha + size / rate)

    for link, (size_of, time_of) in zip(peers, points, strict=True):
        ratios, weights = [], []
        for size, lasts in zip(size_of, time_of, strict=True):
            ratios.append(usual_us(size) / lasts)
            weights.append(lasts)
        if ratios:
            order = np.argsort(ratios)
            mass = np.cumsum(np.array(weights)[order])
            link.ratio = float(np.array(ratios)[order][np.searchsorted(mass, mass[-1] / 2)])
    _compare_sums(peers, usual_us)


def _compare_sums(peers: Sequence[Link], usual_us: Callable[[float], float]) -> None:
    """The ratio of links of which several transfers, and not all, are slow: Σ of what their bytes take elsewhere ÷ Σ of
    what they take here. Of the listed transfers the sizes say what a byte usually takes; of which the same is made for
    the other links, so that what these reach by their sums is usual."""
    usual = [np.array([usual_us(size) for size in link.sizes]) for link in peers]
    ratio = [link.bytes * us.sum() / sum(link.sizes) / link.us for link, us in zip(peers, usual, strict=True)]
    best = float(np.percentile(ratio, 100 - USUAL_PERCENTILE, method="higher"))
    for link, us, of_sums in zip(peers, usual, ratio, strict=True):
        longer = us < slow_link() * np.array(link.times)
        slow, sizes = int(longer.sum()), np.array(link.sizes)
        if slow < SPORADIC_LEAST or not of_sums < slow_link() * best:
            continue
        if slow < (sizes >= sizes[longer].min()).sum():  # smaller ones take their start, whatever the link carries
            link.ratio, link.slow_count = of_sums / best, slow


def _medians(link: Link) -> tuple[Floats, Floats]:
    """Median time of the link's messages by size, half a power of two apart."""
    classes: dict[int, list[int]] = defaultdict(list)
    for i, size in enumerate(link.sizes):
        classes[round(np.log2(size) * 2)].append(i)
    sizes = np.array([np.median([link.sizes[i] for i in places]) for places in classes.values()])
    times = np.array([np.median([link.times[i] for i in places]) for places in classes.values()])
    return sizes, times


def excess_us(links: list[Link]) -> float:
    """Microseconds a step that these links transfer longer than usual: of the sender that loses most, for senders and
    the two directions of a link transfer side by side."""
    lost: dict[int, float] = defaultdict(float)
    for one in links:
        lost[one.source] += one.us * max(1 - (one.ratio or 1.0), 0.0)
    return max(lost.values()) / max(links[0].steps, 1)


Sets = dict[tuple[int, str, str], list[Link]]
"""(rank, transport or "" for all of them, direction) -> links"""


def cards_of(found: dict[Key, Link], machines: Mapping[str, Machine], hosts: dict[int, str]) -> dict[int, Card]:
    """rank -> its slowest set of links: all of them, or all over one transport, or all in one direction; by the best
    link of the set. A smaller set counts only where the larger one has a link that is nearer to the usual.

    A set needs links to two other ranks, or the rank a host of which other cards have links that leave it too.
    """
    own: Sets = defaultdict(list)
    for (a, b, transport), link in found.items():
        for rank, direction in ((a, OUTGOING), (b, INCOMING)):
            for over in ("", transport):
                own[rank, over, BOTH].append(link)
                own[rank, over, direction].append(link)
    cards: dict[int, Card] = {}
    level: dict[int, float] = {}
    for (rank, _, direction), links in sorted(own.items()):
        others = {link.source + link.destination - rank for link in links}
        leaving = all(hosts.get(link.source) != hosts.get(link.destination) for link in links)
        machine = machines.get(hosts.get(rank, ""))
        shared = leaving and machine is not None and machine.direction == direction and rank in machine.ranks
        if len(others) < 2 and not shared:
            continue
        best = max(link.ratio or 0.0 for link in links)
        every = [link for link in own[rank, "", direction] if (link.ratio or 0.0) <= min(best, 1.0) ** 0.5]
        card = Card(best, links, len(others), every or links, leaving, direction)
        # A single link stands for a card only as part of its host, so it counts no lower than the host's best.
        told = card.best if len(others) > 1 or machine is None else max(card.best, machine.best)
        if rank not in cards or level[rank] > min(told, 1.0) ** 0.5:
            cards[rank], level[rank] = card, told
    return cards


def machines_of(found: dict[Key, Link], hosts: dict[int, str]) -> dict[str, Machine]:
    """host -> its links to and from others, two cards at least: all of them, or those of one direction where all have a
    link that is nearer to the usual. What one host alone sends to another is told of the sender.

    A host at the end of a chain has links to one other host only, and in a ring it sends to one and receives from one;
    where that one is slow itself, also in its links to others, it is the reason.
    """
    own: dict[tuple[str, str], list[Link]] = defaultdict(list)
    beside: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (a, b, _), link in found.items():
        if a in hosts and b in hosts and hosts[a] != hosts[b]:
            for host, direction, other in ((hosts[a], OUTGOING, hosts[b]), (hosts[b], INCOMING, hosts[a])):
                own[host, BOTH].append(link)
                own[host, direction].append(link)
                beside[host, BOTH].add(other)
                beside[host, direction].add(other)
    best = {key: max(link.ratio or 0.0 for link in links) for key, links in own.items()}

    def is_explained(name: str, way: str) -> bool:
        first, *more = beside[name, way]
        return not more and len(beside[first, BOTH]) > 1 and best[first, BOTH] < min(best[name, way], 1.0) ** 0.5

    machines = {}
    for name in dict.fromkeys(host for host, _ in own):
        whole = best[name, BOTH]
        way = min((way for way in (OUTGOING, INCOMING) if (name, way) in own), key=lambda way: best[name, way])
        senders = {hosts[link.source] for link in own[name, way]}
        sent = way == INCOMING and len(senders) == 1 and own[name, way] == own[next(iter(senders)), OUTGOING]
        if sent or whole <= min(best[name, way], 1.0) ** 0.5 or is_explained(name, way):
            way = BOTH
        links = own[name, way]
        ranks = {r for link in links for r in (link.source, link.destination) if hosts[r] == name}
        if len(ranks) > 1 and not (way == BOTH and is_explained(name, way)):
            machines[name] = Machine(best[name, way], links, tuple(sorted(ranks)), way)
    return machines


class Knot(Struct, frozen=True):
    """Slow links that are told as one: over one transport they share ranks and are no one card's or host's; or they
    share nothing but collectives."""

    links: list[Link]
    ranks: tuple[int, ...]
    is_whole: bool
    """Every link between these ranks is slow: what they have in common is, and none of their cards by itself."""
    apart: tuple[str, ...] = ()
    """Pairs and cards ("2-*") that are slow by themselves and have nothing but collectives in common."""

    @property
    def best(self) -> float:
        """Bandwidth ratio of the fastest of them."""
        return max(link.ratio or 0.0 for link in self.links)

    @property
    def pairs(self) -> int:
        """Pairs of ranks that they join."""
        return len({frozenset((link.source, link.destination)) for link in self.links})


def slow_link() -> float:
    """Bandwidth ratio below which a link is slow."""
    return shared_threshold("slow_link")


def card_behind(link: Link, cards: Mapping[int, Card]) -> float:
    """Bandwidth ratio of the worse card at the ends of a link, 1 where neither has links to several others."""
    towards = ((link.source, (BOTH, OUTGOING)), (link.destination, (BOTH, INCOMING)))
    ends = [cards[end] for end, ways in towards if end in cards and cards[end].direction in ways]
    return min((one.best for one in ends if one.neighbours > 1), default=1.0)


def host_behind(link: Link, machines: Mapping[str, Machine], hosts: Mapping[int, str]) -> float:
    """Bandwidth ratio of the worse host at the ends of a link, 1 of a link inside a host."""
    a, b = hosts.get(link.source, ""), hosts.get(link.destination, "")
    ends = [machines[name].best for name, way in ((a, OUTGOING), (b, INCOMING))
            if name in machines and machines[name].holds(way)]  # fmt: skip
    return min(ends, default=1.0) if hosts.get(link.source) != hosts.get(link.destination) else 1.0


def knots_of(
    found: Mapping[Key, Link], cards: Mapping[int, Card], machines: Mapping[str, Machine], hosts: Mapping[int, str]
) -> list[Knot]:
    """Slow links put together by the ranks they share, two pairs at least; links of slow hosts stay with these.

    Where all links between some ranks are slow, each of the ranks looks like a slow card: then all of them are, and it
    is what they share. Where some of the ranks have faster links, slow cards keep theirs.
    """
    slow = slow_link()
    mine = [link for link in found.values() if (link.ratio or 0.0) < slow <= host_behind(link, machines, hosts)]
    knots = []
    for links in _sharing(mine):
        ranks, over = ends_of(links), links[0].transport
        between = [key for key in found if {key[0], key[1]} <= set(ranks) and key[2] == over]
        own = [link for link in links if card_behind(link, cards) >= slow]
        alike = own == links or all(rank in cards and cards[rank].best < slow for rank in ranks)
        if alike and len(between) == len(links):
            knots.append(Knot(links, ranks, True))
        else:
            knots += [Knot(rest, ends_of(rest), False) for rest in _sharing(own)]
    return [knot for knot in knots if knot.pairs > 1]


def ends_of(links: Iterable[Link]) -> tuple[int, ...]:
    """The ranks that links join."""
    return tuple(sorted({rank for link in links for rank in (link.source, link.destination)}))


def _sharing(links: Sequence[Link]) -> list[list[Link]]:
    """The links of each transport put together by the ranks they share."""
    groups: list[tuple[str, set[int], list[Link]]] = []
    for link in links:
        ends = {link.source, link.destination}
        joined = [one for one in groups if one[0] == link.transport and one[1] & ends]
        groups = [one for one in groups if one not in joined]
        members = [each for one in joined for each in one[2]]
        groups.append((link.transport, ends.union(*(one[1] for one in joined)), [*members, link]))
    return [members for _, _, members in groups]
