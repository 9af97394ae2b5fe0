"""What a step gains where slow links are as fast as usual.

Links of a collective work side by side or one after another: those of a rank share its card or not, and transports are
phases of the algorithm (inside a host, then between hosts) or parts of one ring. Of these ways to put the times of the
links together the one that comes nearest to the time the collectives take is taken for what they do; without its slow
links the collective gets shorter by what that way says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np
from msgspec import Struct

from advisor.basics.intervals import measure, union
from advisor.facts.base import Run, computed
from advisor.facts.cluster.accounts import accounts
from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.pipeline.stages import micro_batches, stages_of
from advisor.facts.cluster.replay import gain, model
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, REDUCTIONS
from advisor.facts.collectives.exposure import exposures, joints
from advisor.facts.collectives.inherent import large_message
from advisor.facts.collectives.link_speed import USUAL_PERCENTILE, Key, Link, Sums, excess_us, loads_by_kind
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.schedule import pipeline_us
from advisor.facts.step.steps import steady
from advisor.knowledge.measuring import limit

Collective = tuple[str, str]
"""(group, kind)"""
_SUMMED = (False, True)
BY_ITSELF = limit("links", "by_itself")
"""Part of what several slow links give together from which on one of them gives it without the others."""
REPLAYED = limit("links", "replayed")
"""Part of its usual speed below which a link is replayed at that speed."""


def link_gain(run: Run, links: list[Link], replayed: bool) -> float | None:
    """Microseconds a step gains where these links are as fast as usual: replayed where the step can be, else what its
    collectives get shorter, no more than is exposed; so for links that differ by little, and for those that are slow at
    times, of which no single step tells how much that is. No link shortens what a rank computes."""
    slow = [link for link in links if (link.ratio or 1.0) < 1]
    if not slow:
        return 0.0
    found = model(run) if replayed and is_worth_replay(slow) and not is_sporadic(slow) else None
    shorter = None if found is None else shortened(run, found, slow)
    gained = gain(found, {}, shorter) if found is not None and shorter else None
    if gained is None:  # no step can be replayed
        cuts = _cuts(run, slow)
        gained = _exposed(run, cuts, slow) if cuts else None
    return None if gained is None else min(gained, _not_computing(run))


def is_worth_replay(links: Iterable[Link]) -> bool:
    """Whether one of them is clearly slower than usual: most of them differ by a hundredth or two."""
    return any((link.ratio or 1.0) < REPLAYED for link in links)


def is_sporadic(slow: Sequence[Link]) -> bool:
    """Whether most of what these links lose they lose now and then."""
    at_times, always = ([link for link in slow if bool(link.slow_count) is seldom] for seldom in (True, False))
    return bool(at_times) and (not always or excess_us(at_times) > excess_us(always))


def hiding(run: Run, units: Sequence[list[Link]]) -> list[list[list[Link]]]:
    """Slow links of which each unit (a pair, a card, links that share ranks) hides the others: a collective waits for
    its slowest link, so that the fastest of several repairs gives nothing. Units of common collectives are put together
    where all of them at once give clearly more than the best by itself."""
    joined: list[tuple[set[Collective], list[list[Link]]]] = []
    for unit in units:
        uses = set(_cuts(run, unit))
        mine = [one for one in joined if one[0] & uses]
        joined = [one for one in joined if one not in mine]
        joined.append((uses.union(*(one[0] for one in mine)), [*(each for one in mine for each in one[1]), unit]))
    found = []
    for _, together in joined:
        if len(together) > 1:
            whole = link_gain(run, [link for unit in together for link in unit], True) or 0.0
            best = max(link_gain(run, unit, True) or 0.0 for unit in together)
            if whole > 0 and best < BY_ITSELF * whole:
                found.append(together)
    return found


@computed
def _not_computing(run: Run) -> float:
    """Microseconds of a step in which its busiest rank does not compute; without end where nobody tells."""
    balance = accounts(run)
    if balance is None:
        return math.inf
    rest = np.nanmean(balance.time - balance.compute, axis=1)
    return max(float(rest.min()), 0.0) if np.isfinite(rest).all() else math.inf


def shortened(run: Run, found: Model, links: Iterable[Link]) -> dict[int, float]:
    """Transfer times, microseconds, of the meetings that get shorter where these links are as fast as usual."""
    slow = [link for link in links if (link.ratio or 1.0) < 1]
    cuts, directed = _cuts(run, slow), defaultdict[tuple[int, int], float](lambda: 1.0)
    for link in slow:
        way = link.source, link.destination
        directed[way] = min(link.ratio or 1.0, directed[way])
    pure = {}
    for number, (events, kinds) in enumerate(zip(found.members, found.kinds, strict=True)):
        kind = next(iter(kinds.values()))
        if kind in POINT_TO_POINT:
            ways = [(a, b) for a, b in product(events, repeat=2) if a != b and kinds[a] != "receive"]
            kept = min((directed[way] for way in ways if way in directed), default=1.0)
        else:
            kept = 1 - cuts.get((found.group[number], kind), (0.0, 0.0))[1]
        if kept < 1:
            pure[number] = found.pure[number] * kept
    return pure


def _cuts(run: Run, slow: Iterable[Link]) -> dict[Collective, tuple[float, float]]:
    ratio = {(link.source, link.destination, link.transport): link.ratio or 1.0 for link in slow}
    network = _network(run)
    names = sorted({name for key in ratio for name in network.of_link.get(key, ())})
    return {name: _cut(network, name, {k: v for k, v in ratio.items() if k in network.loads[name]}) for name in names}


def put_together(loads: Mapping[Key, float], summed: Mapping[str, bool], one_by_one: bool) -> float:
    """Time of a collective from its links': of each transport the slowest rank, whose links count as the slowest or,
    where `summed`, their sum; transports one after another or side by side."""
    ranks: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (source, _, transport), us in loads.items():
        ranks[transport, source].append(us)
    phases: dict[str, float] = {}
    for (transport, _), times in ranks.items():
        lasts = sum(times) if summed[transport] else max(times)
        phases[transport] = max(phases.get(transport, 0.0), lasts)
    return sum(phases.values()) if one_by_one else max(phases.values())


class _Network(Struct):
    """What links and collectives do in a step, microseconds."""

    loads: dict[Collective, dict[Key, float]]
    """Time of each link in each collective."""
    of_link: dict[Key, list[Collective]]
    lasting: dict[Collective, float]
    """Transfer of the collectives of each group and kind."""
    moving: dict[Collective, float]
    """Of small messages, which start up for longer than their links take: the part of it in which data moves, where
    that is told apart."""
    last: dict[Collective, tuple[float, ...]]
    """Transfer of the last gradient collective of each step, its part of the mean step: its gradients are ready when
    backward has ended."""


@computed
def _network(run: Run) -> _Network:
    sums = _loads(run)
    of_link: dict[Key, list[Collective]] = defaultdict(list)
    for name, links in sums.items():
        for key in links:
            of_link[key].append(name)
    loads = {name: {key: one.us for key, one in links.items()} for name, links in sums.items()}
    bytes_of = {name: max(one.bytes for one in links.values()) for name, links in sums.items()}
    return _Network(loads, dict(of_link), _lasting(run), _moving(run, bytes_of), _last(run))


def _loads(run: Run) -> dict[Collective, dict[Key, Sums]]:
    """MindSpore's matrix calls ReduceScatter reduce."""
    known = {(joint.group, joint.kind) for joint in joints(run)}
    found: dict[Collective, dict[Key, Sums]] = defaultdict(dict)
    for (group, kind), loads in loads_by_kind(run).items():
        scattered = kind == "reduce" and (group, "reduce") not in known
        mine = found[group, "reducescatter" if scattered else kind]
        for key, sums in loads.items():
            mine[key] = max(mine.get(key, sums), sums)
    return dict(found)


def _cut(network: _Network, name: Collective, ratio: Mapping[Key, float]) -> tuple[float, float]:
    """Time of these collectives a step, and the part of it that goes."""
    loads = network.loads[name]
    mended = {key: us * ratio.get(key, 1.0) for key, us in loads.items()}
    if name[1] in POINT_TO_POINT:  # one link at a time
        gone = max(loads[key] - mended[key] for key in ratio.keys() & loads.keys())
        return max(loads.values()), gone / max(loads.values())
    lasts = network.lasting.get(name)
    transports = sorted({key[2] for key in loads})
    ways = [
        (dict(zip(transports, summed, strict=True)), one_by_one)
        for *summed, one_by_one in product(_SUMMED, repeat=len(transports) + 1)
    ]
    moves = network.moving.get(name, lasts)
    way = ways[0] if moves is None else min(ways, key=lambda w: abs(put_together(loads, *w) - moves))
    before = put_together(loads, *way)
    whole = max(before, lasts or 0.0)
    return whole if lasts is None else lasts, (before - put_together(mended, *way)) / whole


def _lasting(run: Run) -> dict[Collective, float]:
    found: dict[Collective, float] = defaultdict(float)
    for joint in joints(run):
        found[joint.group, joint.kind] += float(joint.transfer_us @ joint.per_step)
    return found


def _moving(run: Run, bytes_of: Mapping[Collective, float]) -> dict[Collective, float]:
    """`bytes_of` are those of the busiest link a step. Transit may leave out phases that wait for one another, so that
    of large messages the whole transfer tells more."""
    found: dict[Collective, float] = defaultdict(float)
    count: dict[Collective, float] = defaultdict(float)
    untold = set[Collective]()
    for joint in joints(run):
        longest = np.where(np.isfinite(joint.transit_us), joint.transit_us, 0.0).max(axis=1)
        if not (longest > 0).all():
            untold.add((joint.group, joint.kind))
        found[joint.group, joint.kind] += float(np.minimum(longest, joint.transfer_us) @ joint.per_step)
        count[joint.group, joint.kind] += float(joint.per_step.sum())
    small = {name for name in found if bytes_of.get(name, 0.0) < large_message() * count[name]}
    return {name: found[name] for name in small - untold}


def _last(run: Run) -> dict[Collective, tuple[float, ...]]:
    found: dict[Collective, tuple[float, ...]] = {}
    for joint in joints(run):
        if joint.kind in REDUCTIONS and joint.is_whole:
            order = np.argsort(joint.ordinal, kind="stable").tolist()
            last = {joint.steps[row]: row for row in order}
            found[joint.group, joint.kind] = tuple((joint.transfer_us[list(last.values())] * joint.share).tolist())
    return found


def _alone(run: Run, ranks: Iterable[int], names: Iterable[Collective]) -> float:
    """Time with any of these collectives running as a part of the sum of their times: groups work side by side."""
    wanted, running = frozenset(names), _running(run)
    shares = [running(rank, wanted) for rank in ranks] if len(wanted) > 1 else []
    told = [share for share in shares if share is not None]
    return min(float(np.median(told)), 1.0) if told else 1.0


@computed
def _running(run: Run) -> Callable[[int, frozenset[Collective]], float | None]:
    """The same of one rank, worked out once for all links that serve the same collectives; None where nothing tells."""
    exchanges = run.each(EXCHANGES)

    @cache
    def share(rank: int, wanted: frozenset[Collective]) -> float | None:
        if (ex := exchanges.get(rank)) is None or not (ex.start_ns > 0).all():
            return None
        kinds, mine = ex.kinds(), np.zeros(len(ex.group), bool)
        for group, kind in wanted:
            if group in ex.groups:
                mine |= (ex.group == ex.groups.index(group)) & (kinds == kind)
        start, lasts = ex.start_ns[mine], ex.elapsed_us[mine]
        whole = float(lasts.sum())
        return measure(union(start, start + (lasts * 1000).astype(np.int64))) / 1000 / whole if whole > 0 else None

    return share


def _exposed(run: Run, cuts: Mapping[Collective, tuple[float, float]], slow: Sequence[Link]) -> float | None:
    """What the collectives get shorter, of each purpose the most of any group, but no more than their members expose;
    transfers between stages no more than these wait."""
    layout, found = partition(run), exposures(run)
    touched = {rank for link in slow for rank in (link.source, link.destination)}
    if not any(rank in found and _is_told(run, rank) for rank in touched):
        return None
    alone, last = _alone(run, touched, cuts), _network(run).last
    gone: dict[str, float] = defaultdict(float)
    between, left = 0.0, 0.0
    members = set(touched)
    of_group: dict[tuple[str, str], float] = defaultdict(float)
    sporadic = is_sporadic(slow)
    for name, (lasts, share) in cuts.items():
        group, kind = name
        if kind in POINT_TO_POINT:
            between = max(between, lasts * share * alone)
            continue
        use = layout.purpose(kind, group)
        of_group[use, group] += lasts * share * alone
        gone[use] = max(gone[use], of_group[use, group])
        members |= set(layout.groups.get(group, ()))
        # nothing is left to hide the last one; links that are slow now and then show how long it takes otherwise
        lasting = last.get(name, (0.0,))
        usual = np.percentile(lasting, USUAL_PERCENTILE) if sporadic else np.median(lasting) * (1 - share)
        left = max(left, float(usual))
    scheduled = _scheduled(run, slow) if between else None
    between = between if scheduled is None else scheduled
    mine = [found[rank] for rank in sorted(members) if rank in found]
    exposed = max(sum(e.transfer.get(use, 0.0) for use in (*gone, "unknown")) for e in mine)
    return min(sum(gone.values()), max(exposed - left, 0.0)) + min(
        between, max(e.bubble + e.transfer.get(layout.ring, 0.0) for e in mine)
    )


def _scheduled(run: Run, slow: Iterable[Link]) -> float | None:
    """What the schedule of the stages gets shorter: each micro-batch passes such a link forward and backward. None
    where it is not known, or does not fit into the step, as where stages hold several chunks of layers."""
    layout, micro, balance = partition(run), micro_batches(run), accounts(run)
    stages = stages_of(run)
    if not micro or balance is None or len(stages) < 2 or len(stages) != layout.pipeline:
        return None
    ratio = {(link.source, link.destination): link.ratio or 1.0 for link in slow}
    now, then = [0.0] * (len(stages) - 1), [0.0] * (len(stages) - 1)
    for (_, kind), loads in _network(run).loads.items():
        for (source, destination, _), us in loads.items() if kind in POINT_TO_POINT else ():
            ends = sorted((layout.stage.get(source, -1), layout.stage.get(destination, -1)))
            if ends[0] < 0 or ends[1] - ends[0] != 1:
                return None
            now[ends[0]] = max(now[ends[0]], us / micro)
            then[ends[0]] = max(then[ends[0]], us / micro * ratio.get((source, destination), 1.0))
    work = [stage.computing for stage in stages]
    before = pipeline_us(work, micro, now)
    return before - pipeline_us(work, micro, then) if before <= float(np.nanmedian(balance.time)) else None


def _is_told(run: Run, rank: int) -> bool:
    """Whether the rank's steps say what nothing hides; the older ones tell what follows backward."""
    times = steady(run).get(rank)
    return times is not None and bool({"exposed", "tail"} & times.phases.keys())
