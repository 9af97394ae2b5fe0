"""What each communication group is for: by the framework's own word, else by what is exchanged in it, and when."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from advisor.facts.collectives.exchanges import POINT_TO_POINT, REDUCTIONS, Exchanges
from advisor.facts.device.course import Course
from advisor.facts.device.forward import communicator
from advisor.knowledge.measuring import limit
from advisor.sources.topology import joined

_GROUP_WORDS = {
    "tp": "tensor", "mp": "tensor", "pp": "pipeline", "dp": "data", "ep": "expert", "exp": "expert", "cp": "context",
}  # fmt: skip
FORWARD_SHARE = limit("groups", "forward_share")
"""Forward is a third of a step's computation; a group that never pauses for a quarter of that time exchanges in it."""
FORWARD_PART = limit("groups", "forward_part")
"""Part of a group's reductions that forward passes start, from which on sharded operators exchange in it."""
NEGLIGIBLE = limit("groups", "negligible")
"""Part of the largest reduction of its ranks below which a group's reductions hold no weights, but a norm or a loss."""
SAME_SIZE = limit("groups", "same_size")
"""Sizes that differ by less are of one tensor."""
HIDDEN_SHARE = limit("groups", "hidden_share")
"""Sharded operators wait for their exchange; what computation runs beside most of the time, none of them waits for."""


def roles_of(
    groups: dict[str, tuple[int, ...]],
    names: dict[str, str],
    exchanges: dict[int, Exchanges],
    computing: dict[int, float],
    exchange: str,
    hidden: Mapping[str, float],
    *,
    ring: str = "context",
    forward: Mapping[str, float] | None = None,
    turns: Mapping[int, int] | None = None,
    trains: bool = True,
) -> dict[str, str]:
    """What each group is for: by the framework's own word, else by what is exchanged in it. `computing` is each
    rank's computation a step, microseconds; `exchange` is what ranks that mostly exchange all with all do it for, where
    kernels or the framework tell ("expert", "context", "exchange", else ""), `ring` what ranks that share weights pass
    on to each other for; `hidden` is the part of a
    group's time that computation hides, `forward` that of its reductions that forward passes start, where kernels tell
    them; `turns` is how often each rank repeats the same
    kernels where nothing marks steps, and `computing` then is that of one turn. Where nothing `trains`, no gradients
    are reduced."""
    roles = {}
    for group in groups:
        word = re.sub(r"[^a-z].*", "", names.get(group, group).lower())
        if word in _GROUP_WORDS:
            roles[group] = _GROUP_WORDS[word]
    named = set(roles)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for ex in exchanges.values():
        for (group, k), count in ex.counts().items():
            if group:
                kinds[group][k] = max(kinds[group][k], count // max(len(ex.steps), 1))
    for group, counts in kinds.items():
        if group not in roles and any(counts[k] for k in POINT_TO_POINT):
            roles[group] = "pipeline"
        elif group not in roles and exchange and 2 * counts["alltoall"] > sum(counts.values()):
            roles[group] = exchange
    if not trains:
        roles.update(dict.fromkeys((group for group in groups if group not in roles), "tensor"))
    _tell_tensor_from_data(groups, kinds, roles, exchanges, computing, hidden, forward or {}, turns or {})
    _tell_rings_from_pipelines(groups, roles, exchanges, named, ring)
    return roles


def _tell_rings_from_pipelines(
    groups: dict[str, tuple[int, ...]],
    roles: dict[str, str],
    exchanges: dict[int, Exchanges],
    named: set[str],
    ring: str,
) -> None:
    """Ranks that send to each other and reduce the gradients of the same weights are no stages of a pipeline: they
    hold parts of one sequence, and each layer's keys and values go round (context parallelism), or of one grid, and
    hand their edges to their neighbours. They may do both in one communicator."""
    passing = [group for group, role in roles.items() if role == "pipeline" and group not in named]
    if not passing:
        return
    if _all_hand_on_alike(passing, groups, exchanges):
        roles.update(dict.fromkeys(passing, ring))
        return
    both = [group for group in passing if len(groups.get(group, ())) > 1 and _shares_weights(group, exchanges)]
    roles.update(dict.fromkeys(both, ring))
    bound = [set(groups[group]) for group in weights_shared(groups, roles, exchanges)]
    for chain in joined(groups[group] for group in passing if groups[group]):
        if len(chain) > 1 and any(ranks.issuperset(chain) for ranks in bound):
            roles.update(dict.fromkeys((g for g in passing if set(groups[g]) <= set(chain)), ring))


def _all_hand_on_alike(
    passing: list[str], groups: dict[str, tuple[int, ...]], exchanges: Mapping[int, Exchanges]
) -> bool:
    """Whether three and more ranks send and receive as often each as all others: a pipeline has ends, which hand on in
    one direction only, and where chunks of layers close it to a ring, the last of them has no next one."""
    for chain in joined(groups[group] for group in passing if groups[group]):
        if len(chain) < 3 or not exchanges.keys() >= set(chain):
            return False
        counts = set()
        for rank in chain:
            ex = exchanges[rank]
            mine = [(kind, count) for (group, kind), count in ex.counts().items() if group in passing]
            counts.add(tuple(sorted((kind, count) for kind, count in mine if kind in POINT_TO_POINT)))
        if len(counts) > 1:
            return False
    return True


def _shares_weights(group: str, exchanges: dict[int, Exchanges]) -> bool:
    """Whether all ranks of this group whose files name it gather or reduce in it as well, in pieces that are not
    negligible beside what they send: weights and gradients, no loss or norm over all stages."""
    told = []
    for ex in exchanges.values():
        if group not in ex.groups:
            continue
        size = np.where(ex.group == ex.groups.index(group), np.nan_to_num(ex.size_bytes), 0.0)
        together = np.isin(ex.kinds(), (*REDUCTIONS, "allgather"))
        shared, sent = (float(size[mine].max(initial=0.0)) for mine in (together, ~together))
        told.append(shared > 0 and shared >= NEGLIGIBLE * sent)
    return bool(told) and all(told)


def weights_shared(
    groups: dict[str, tuple[int, ...]], roles: dict[str, str], exchanges: dict[int, Exchanges]
) -> list[str]:
    """Groups whose ranks hold the same layers: they reduce gradients or shards of them, not just a norm, a flag or a
    loss over all stages, beside whose activations it is nothing. Where sizes are not told, every group of that role.

    A ring closes, so ranks that pass on to each other from one end to another are stages: what some of them reduce
    among themselves (a table of embeddings that the first and the last one hold), or all of them without it being as
    much in a step as one message, is no weights of all their layers."""
    largest: dict[str, float] = defaultdict(float)
    in_step: dict[str, float] = defaultdict(float)
    of_rank: dict[int, float] = defaultdict(float)
    message: dict[int, float] = {}
    for rank, ex in exchanges.items():
        moved = np.nan_to_num(ex.size_bytes)
        sizes = np.where(np.isin(ex.kinds(), (*REDUCTIONS, "allgather")), moved, 0.0)
        of_rank[rank] = message[rank] = float(moved[np.isin(ex.kinds(), POINT_TO_POINT)].max(initial=0.0))
        for index in np.unique(ex.group).tolist():
            inside, name = ex.group == index, ex.groups[index]
            most = float(sizes[inside].max())
            largest[name] = max(largest[name], most)
            in_step[name] = max(in_step[name], float((sizes * ex.weight)[inside].sum()) / max(len(ex.steps), 1))
            of_rank[rank] = max(of_rank[rank], most)
    chains = _open_chains(groups, roles, exchanges)

    def of_stages(group: str, ranks: frozenset[int]) -> bool:
        along = [chain for chain in chains if len(chain & ranks) > 1]
        sent = max((message.get(rank, 0.0) for chain in along for rank in chain), default=0.0)
        return any(not chain <= ranks for chain in along) or (largest[group] > 0 and in_step[group] < sent)

    return [
        group
        for group, role in roles.items()
        if role in ("data", "tensor")
        and largest[group] >= NEGLIGIBLE * max((of_rank[rank] for rank in groups.get(group, ())), default=0.0)
        and not of_stages(group, frozenset(groups.get(group, ())))
    ]


def _open_chains(
    groups: dict[str, tuple[int, ...]], roles: dict[str, str], exchanges: Mapping[int, Exchanges]
) -> list[frozenset[int]]:
    """Three and more ranks that hand on in pairs, one of which has a single partner though its own file tells all."""
    passing = {group: frozenset(groups.get(group, ())) for group, role in roles.items() if role == "pipeline"}
    found = []
    for chain in map(frozenset, joined([*map(tuple, passing.values())])):
        sets = {ranks for ranks in passing.values() if ranks & chain}
        partners = [sum(rank in ranks for ranks in sets) for rank in chain & exchanges.keys()]
        if len(chain) > 2 and all(len(ranks) < 3 for ranks in sets) and 1 in partners:
            found.append(chain)
    return found


def hidden_by_computing(exchanges: Mapping[int, Exchanges], courses: Mapping[int, Course]) -> dict[str, float]:
    """Group -> the part of its operations' time in which computation ran beside them, on the middle rank of those whose
    kernels tell."""
    found: dict[str, list[float]] = defaultdict(list)
    for rank, ex in exchanges.items():
        if rank not in courses or not courses[rank].exposed_by_name:
            continue
        alone: dict[str, float] = defaultdict(float)
        for name, us in courses[rank].exposed_in(courses[rank].steps).items():
            alone[name.rpartition("/")[2]] += us
        lasting = ex.elapsed_us if ex.is_whole else ex.elapsed_us * ex.repeats[ex.name]
        for index, group in enumerate(ex.groups):
            mine = ex.group == index
            names = {ex.names[place].rpartition("/")[2] for place in np.unique(ex.name[mine]).tolist()}
            lasts = float(lasting[mine].sum()) / max(len(ex.steps), 1)  # of these names, as what is exposed of them
            if lasts > 0 and any(name in alone for name in names):
                found[group].append(1 - sum(alone.get(name, 0.0) for name in names) / lasts)
    return {group: float(np.median(parts)) for group, parts in found.items()}


def in_forward(exchanges: Mapping[int, Exchanges], courses: Mapping[int, Course]) -> dict[str, float]:
    """Group -> the part of its reductions that forward passes start, on the middle rank of those whose kernels tell."""
    found: dict[str, list[float]] = defaultdict(list)
    for rank, ex in exchanges.items():
        told = courses[rank].in_forward if rank in courses else {}
        for index, group in enumerate(ex.groups if told else ()):
            names = {communicator(ex.names[place]) for place in np.unique(ex.name[ex.group == index]).tolist()}
            found[group] += [told[name] for name in names if name in told]
    return {group: float(np.median(parts)) for group, parts in found.items() if parts}


def _tell_tensor_from_data(
    groups: dict[str, tuple[int, ...]],
    kinds: dict[str, Counter[str]],
    roles: dict[str, str],
    exchanges: dict[int, Exchanges],
    computing: dict[int, float],
    hidden: Mapping[str, float],
    forward: Mapping[str, float],
    turns: Mapping[int, int],
) -> None:
    """Forward passes tell, where kernels do. Else: where a rank is in two kinds of groups, the one with more operations
    a step is the tensor-parallel one: it exchanges in every layer, gradients only once. A single kind of group
    exchanges during forward where it is tensor-parallel; gradients leave forward without a collective. Where micro-
    batches follow one another, no pause is as long as a step's forward, whatever is exchanged: what computation hides
    is no exchange of operators either. Ranks that gather in one communicator and reduce in another do both for one
    purpose: weights and their gradients, say; where ranks that train gather and reduce nothing at all, the gradients
    are only accumulated yet, for an operator that is divided any other way has sums to complete, forward or backward.
    Stages of a pipeline wait for each other: there the sizes tell. Groups of as many other ranks that do the same as
    often are for one purpose: all stages are divided alike."""
    unnamed = [g for g in kinds if g not in roles and len(groups.get(g, ())) > 1]
    partners: dict[str, set[str]] = {g: set() for g in unnamed}
    for a in unnamed:
        for b in unnamed:
            if a != b and len(set(groups[a]) & set(groups[b])) == 1:
                partners[a].add(b)
    for group in unnamed:
        mine = sum(kinds[group].values())
        others = [sum(kinds[other].values()) for other in partners[group]]
        if group in forward:
            # beside the passes that fill a pipeline, one behind the other, a single pass is too short to be told
            seldom = 0 < forward[group] < FORWARD_PART
            inside = _moves_activations(group, len(groups[group]), exchanges) if seldom else forward[group] > 0
            roles[group] = "tensor" if inside else "data"
        elif others and mine > max(others):
            roles[group] = "tensor"
        elif others and mine < min(others):
            roles[group] = "data"
        else:
            silent = _silence(group, exchanges, computing, turns)
            waited = hidden.get(group, 0.0) < HIDDEN_SHARE
            always = silent is not None and silent < FORWARD_SHARE and waited
            inside = _moves_activations(group, len(groups[group]), exchanges)
            roles[group] = "tensor" if always or inside else "data"
    alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for group in unnamed:
        alike[len(groups[group]), frozenset(kinds[group].items())].append(group)
    for same in alike.values():
        if any(partners[g] & set(same) for g in same):
            continue  # they divide the same ranks in two ways
        sure = [roles[g] for g in same if g in forward] or [roles[g] for g in same]
        roles.update(dict.fromkeys(same, "tensor" if 2 * sure.count("tensor") >= len(sure) else "data"))
    reducing = {frozenset(groups[g]): roles[g] for g in unnamed if any(kinds[g][kind] for kind in REDUCTIONS)}
    summing = {rank for g in kinds if any(kinds[g][kind] for kind in REDUCTIONS) for rank in groups.get(g, ())}
    for group in unnamed:
        if set(kinds[group]) == {"allgather"}:
            alone = summing.isdisjoint(groups[group])
            roles[group] = reducing.get(frozenset(groups[group]), "data" if alone else roles[group])


def _moves_activations(group: str, members: int, exchanges: dict[int, Exchanges]) -> bool:
    """Whether a rank that hands over to other stages mostly reduces as many bytes in this group as it hands over, as
    often at least: sharded operators exchange what a stage passes on, gradients are as large as weights."""
    for ex in exchanges.values():
        if group not in ex.groups:
            continue
        kinds, told = ex.kinds(), ex.size_bytes > 0
        passed = ex.size_bytes[np.isin(kinds, ("send", "batchsendrecv")) & told]
        reduced = ex.size_bytes[(ex.group == ex.groups.index(group)) & np.isin(kinds, REDUCTIONS) & told]
        if not len(passed) or len(reduced) < len(passed):
            continue
        # a ring moves a part of the tensor on each of its ways round
        ways = np.outer(np.unique(passed), (1.0, 2 * (members - 1) / members, members - 1.0)).ravel()
        alike = np.isclose(reduced[:, None], ways, rtol=SAME_SIZE, atol=0.0).any(axis=1)
        return bool(2 * alike.sum() > len(reduced))
    return False


def _silence(
    group: str, exchanges: dict[int, Exchanges], computing: dict[int, float], turns: Mapping[int, int]
) -> float | None:
    """Longest pause of this group's reductions in a step, in units of the step's computation: the median over steps, of
    the member that pauses least, for a late one waits for its data or its host as well. Sharded weights are gathered in
    forward as well (FSDP, ZeRO-3), but gradients are reduced in backward only. Where nothing marks the steps, each turn
    has one such pause at least, and the last of as many is taken. None where starts are not told, or for one step only.
    """
    pauses = []
    for rank, ex in exchanges.items():
        unmarked = len(ex.steps) < 2
        count = turns.get(rank, 0) if unmarked else len(ex.steps)
        if group not in ex.groups or count < 2:
            continue
        mine = (ex.group == ex.groups.index(group)) & (ex.start_ns > 0)
        reducing = mine & np.isin(ex.kinds(), REDUCTIONS)
        mine = reducing if reducing.any() else mine
        order = np.argsort(ex.start_ns[mine])
        start = ex.start_ns[mine][order] / 1000
        end = start + ex.elapsed_us[mine][order]
        if len(start) < max(4, count) or (not unmarked and len(np.unique(ex.step[mine])) < 2):
            continue
        gaps = start[1:] - np.maximum.accumulate(end)[:-1]
        # between two that are kept lie others, as in the usual gap
        gaps = gaps - np.median(gaps) * (1 - 1 / ex.weight[mine].mean())
        if unmarked:
            longest, period = float(np.sort(gaps)[-(count - 1)]), float(start[-1] - start[0]) / count
        else:
            first = np.flatnonzero(np.diff(ex.step[mine][order])) + 1
            period = float(np.median(np.diff(start[first]))) if len(first) > 1 else float(start[-1] - start[0])
            longest = float(np.median([float(part.max()) for part in np.split(gaps, first) if len(part)]))
        unit = computing.get(rank) or period
        if unit > 0:
            pauses.append(max(longest, 0.0) / unit)
    return min(pauses, default=None)
