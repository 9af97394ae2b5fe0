"""One step of all ranks on one clock, with the chain of work and waiting that made it as long as it is.

The ranks' chains and the meetings they share come from the replay (facts/cluster/meetings.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Run
from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.replay import model
from advisor.facts.collectives.exposure import joints
from advisor.facts.collectives.link_speed import hosts_of, links_of
from advisor.facts.collectives.parallelism import partition

RANKS_DRAWN = 32
"""More ranks than this are drawn by stage or host, with those that the step waits for and peers of the first open."""
LEADING = 3
"""Ranks of the critical path that are open: those with the longest part of it."""
PEERS = 2
GROUPS_DRAWN = 64
BINS = 120
"""Columns of a group's row."""
PIECES = 250
LINKS_DRAWN = 40
RESOLUTION = 1500
"""A pause shorter than this part of the step cannot be seen at the width of a page."""
_Piece = tuple[int, float, float, str]


def step_ranks(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """Rows of ranks or groups with what they do when, links from the first to the last who comes to a collective, and
    the path that decides the step's length: [rank, from, to, what], microseconds from the step's start."""
    del facts
    found = model(run)
    if found is None:
        return None
    clock = Clock(found)
    first = min(begin[0] for begin in clock.begin.values())
    last = max(max(end) for end in clock.end.values())
    length = last - first
    if length <= 0:
        return None
    late = _arrivals(run, found, clock)
    path = critical_path(found, late, clock)
    if path and path[0][1] > first:  # nobody waits for another here: this rank itself had not begun
        path.insert(0, (path[0][0], first, path[0][1], "idle"))
    on_path: dict[int, float] = defaultdict(float)
    for rank, begin, end, what in path:
        on_path[rank] += (end - begin) * (what != "communication")
    ranks = sorted(found.chains)
    open_ranks: list[int] = ranks
    groups: dict[tuple[str, str], tuple[int, ...]] = {}
    if len(ranks) > RANKS_DRAWN:
        groups = _groups(run, ranks)
        leading = sorted(on_path, key=lambda rank: (-on_path[rank], rank))[:LEADING] or ranks[:1]
        home = next((members for members in groups.values() if leading[0] in members), ())
        beside = sorted((rank for rank in home if rank not in leading), key=lambda rank: abs(rank - leading[0]))[:PEERS]
        open_ranks = sorted({*leading, *beside})
    rows = [{"rank": rank, **_pieces_of(found, rank, first, length, late, clock)} for rank in open_ranks]
    rows += [
        {"group": kind, "id": name, "ranks": list(members), "busy": _shares(found, members, first, length, clock)}
        for (kind, name), members in groups.items()
    ]
    return {
        "step": found.step,
        "duration_us": _round(length),
        "ranks": len(ranks),
        "rows": rows,
        "links": _links(found, set(open_ranks), first, clock),
        "path": [[rank, _round(a - first), _round(b - first), what] for rank, a, b, what in path],
    }


class Clock:
    """When each rank's events begin and end, microseconds on the clock that all ranks share."""

    def __init__(self, found: Model) -> None:
        self.begin: dict[int, list[float]] = {}
        self.end: dict[int, list[float]] = {}
        for rank, chain in found.chains.items():
            begin = found.begin[rank] + chain.start
            own = chain.busy + np.where([bool(name) for name in chain.name], 0.0, chain.gap)
            self.begin[rank], self.end[rank] = begin.tolist(), (begin + own).tolist()
        self.met = [max(self.begin[rank][event] for rank, event in members.items()) for members in found.members]
        """When the last of those at hand came to each meeting."""


def critical_path(found: Model, late: Mapping[int, float], clock: Clock | None = None) -> list[_Piece]:
    """From the event that ends last back to the start: what each event had to wait for. [rank, from, to, what], with
    what computing, communication, idle or absent (a member without files is awaited), microseconds on the common clock,
    in order of time. What is idle between the kernels of a stretch stands behind them. `late` is when the last member
    without files came to a meeting."""
    clock = clock or Clock(found)
    rank = max(clock.end, key=lambda r: max(clock.end[r]))
    now = max(clock.end[rank])
    event = clock.end[rank].index(now)
    path: list[_Piece] = []
    for _ in range(sum(len(chain.name) for chain in found.chains.values())):
        chain = found.chains[rank]
        begin = clock.begin[rank][event]
        if chain.name[event]:
            number = found.joint[rank][event]
            if number >= 0:
                members = found.members[number]
                last = max(members, key=lambda r: (clock.begin[r][members[r]], r == rank))
                begin = min(clock.met[number], now)
                met = min(max(begin, late.get(number, begin)), now)
                path.append((rank, met, now, "communication"))
                if met > begin:
                    path.append((last, begin, met, "absent"))
                rank, event = last, members[last]
            else:
                path.append((rank, begin, now, "communication"))
        elif now > begin:  # kernels, and what lies between them: as one piece each, or there were thousands
            busy = min(float(chain.busy[event]) / max(clock.end[rank][event] - begin, 1e-9), 1.0)
            worked = begin + busy * (now - begin)
            path += [
                piece for piece in ((rank, worked, now, "idle"), (rank, begin, worked, "computing")) if _lasts(piece)
            ]
        now = min(begin, now)
        before = _before(found, rank, event, clock)
        if before < 0:
            break
        end = min(clock.end[rank][before], now)
        if now - end > 0:
            path.append((rank, end, now, "idle"))
        event, now = before, end
    return path[::-1]


def _lasts(piece: _Piece) -> bool:
    return piece[2] > piece[1]


def _before(found: Model, rank: int, event: int, clock: Clock) -> int:
    """The event of the same rank that let this one start: the computation before it, or the collective it awaited."""
    chain = found.chains[rank]
    computed = next((i for i in range(event - 1, -1, -1) if not chain.name[i]), -1)
    awaited = int(chain.after[event])
    if awaited < 0 or awaited >= len(chain.name) or awaited == event:
        return computed
    end = clock.end[rank]
    return awaited if computed < 0 or end[awaited] >= end[computed] else computed


def _arrivals(run: Run, found: Model, clock: Clock) -> dict[int, float]:
    """meeting -> when the last member without files came, common clock: its end less the transfer as far as any member
    tells it. Members at hand that all wait for an absent one show no difference in their times."""
    step = found.step
    transfers = {
        name: float(us)
        for joint in joints(run)
        if not joint.complete
        for name, of, us in zip(joint.names, joint.steps, joint.transfer_us, strict=True)
        if of == step
    }
    late = {number: at for number, at in enumerate(found.absent) if at is not None}
    for number, members in enumerate(found.members):
        rank, event = next(iter(members.items()))
        transfer = transfers.get(found.chains[rank].name[event])
        if transfer is not None:
            ends = [clock.end[r][i] for r, i in members.items()]
            late[number] = max(late.get(number, min(ends) - transfer), min(ends) - transfer)
    return late


def _pieces(found: Model, rank: int, late: Mapping[int, float], clock: Clock) -> dict[str, list[tuple[float, float]]]:
    """[from, to] of computing, of waiting for the last to come to a collective, and of its transfer."""
    pieces: dict[str, list[tuple[float, float]]] = {"computing": [], "waiting": [], "communication": []}
    for i, name in enumerate(found.chains[rank].name):
        begin, end = clock.begin[rank][i], clock.end[rank][i]
        if not name:
            pieces["computing"].append((begin, end))
            continue
        number = found.joint[rank][i]
        met = clock.met[number] if number >= 0 else begin
        met = min(max(met, late.get(number, met)), end)
        pieces["waiting"].append((begin, max(met, begin)))
        pieces["communication"].append((max(met, begin), end))
    return pieces


def _pieces_of(
    found: Model, rank: int, first: float, length: float, late: Mapping[int, float], clock: Clock
) -> dict[str, Any]:
    pieces = _pieces(found, rank, late, clock)
    return {name: _coarse(spans, first, length) for name, spans in pieces.items()}


def _coarse(spans: list[tuple[float, float]], first: float, length: float) -> list[list[float]]:
    """[start, length] from the step's start: what is too short to see is joined or left out."""
    shortest = length / RESOLUTION
    while True:
        joined: list[list[float]] = []
        for begin, end in sorted(spans):
            if end <= begin:
                continue
            if joined and begin - joined[-1][1] < shortest:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([begin, end])
        kept = [pair for pair in joined if pair[1] - pair[0] >= shortest / 2]
        if len(kept) <= PIECES:
            return [[_round(a - first), _round(b - a)] for a, b in kept]
        shortest *= 2


def _groups(run: Run, ranks: list[int]) -> dict[tuple[str, str], tuple[int, ...]]:
    """(kind, id) -> ranks: by pipeline stage, else by host, else in blocks of neighbours."""
    layout = partition(run)
    if len(set(layout.stage.values())) > 1 and all(rank in layout.stage for rank in ranks):
        return _grouped({rank: ("stage", str(layout.stage[rank])) for rank in ranks})
    hosts = hosts_of(layout.host, links_of(run))
    if len(set(hosts.values())) > 1 and all(rank in hosts for rank in ranks):
        return _grouped({rank: ("host", hosts[rank]) for rank in ranks})
    size = -(-len(ranks) // (RANKS_DRAWN // 2))
    blocks = [tuple(ranks[at : at + size]) for at in range(0, len(ranks), size)]
    return {("rank", f"{block[0]}-{block[-1]}"): block for block in blocks}


def _grouped(names: dict[int, tuple[str, str]]) -> dict[tuple[str, str], tuple[int, ...]]:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rank, name in names.items():
        found[name].append(rank)
    return {name: tuple(members) for name, members in list(found.items())[:GROUPS_DRAWN]}


def _shares(found: Model, members: tuple[int, ...], first: float, length: float, clock: Clock) -> list[int]:
    """Percent of the members that compute, column by column."""
    width = length / BINS
    sums = [0.0] * BINS
    for rank in members:
        for begin, end in _pieces(found, rank, {}, clock)["computing"]:
            at, stop = (begin - first) / width, (end - first) / width
            for column in range(max(int(at), 0), min(int(stop) + 1, BINS)):
                sums[column] += max(min(stop, column + 1) - max(at, column), 0.0)
    return [round(100 * min(value / len(members), 1.0)) for value in sums]


def _links(found: Model, drawn: set[int], first: float, clock: Clock) -> list[dict[str, Any]]:
    """The collectives that cost most waiting among the ranks drawn: who came first and last, and when."""
    links: list[dict[str, Any]] = []
    for number, members in enumerate(found.members):
        here = {rank: clock.begin[rank][i] for rank, i in members.items() if rank in drawn}
        if len(here) < 2:
            continue
        early, late = min(here, key=lambda r: (here[r], r)), max(here, key=lambda r: (here[r], r))
        name = found.chains[late].name[members[late]]
        links.append(
            {
                "name": name, "group": found.group[number] if number < len(found.group) else "",
                "first": [early, _round(here[early] - first)], "last": [late, _round(here[late] - first)],
                "members": len(members),
            }
        )  # fmt: skip
    return sorted(links, key=lambda link: link["first"][1] - link["last"][1])[:LINKS_DRAWN]


def _round(value: float) -> float:
    return float(f"{value:.5g}")
