"""Collectives of one rank as compact arrays, and the same collectives of all ranks put side by side.

A collective ends together, whatever the hosts' clocks say, so ranks are compared by how long each was inside it: the
last to arrive is inside for the transfer alone, the others for its lateness too. Where the profiler books the waiting
(Wait, Idle, or not at all) does not matter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.facts.base import Reduction
from advisor.model import Source
from advisor.sources.base import Rank

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_OPERATIONS = 4096
"""Operations kept per rank; more are thinned to every 2nd, 4th, … of each group, the same ones on every rank."""

POINT_TO_POINT = ("send", "receive", "batchsendrecv")
_KINDS = (
    ("batchsendrecv", "batchsendrecv"), ("allreduce", "allreduce"), ("reducescatter", "reducescatter"),
    ("allgather", "allgather"), ("alltoall", "alltoall"), ("neighborexchange", "alltoall"),
    ("broadcast", "broadcast"), ("receive", "receive"), ("recv", "receive"), ("send", "send"), ("barrier", "barrier"),
    ("reduce", "reduce"), ("scatter", "scatter"), ("gather", "gather"),
)  # fmt: skip


def kind_of(name: str) -> str:
    """allreduce, allgather, … from any spelling of an operation's name: hcom_allReduce__586_0_1, AllReduce-op4582."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for part, kind in _KINDS if part in plain), "other")


@dataclass(frozen=True)
class Exchanges:
    """One rank's collectives, one entry an operation; `scale` entries of the profile stand behind each."""

    steps: tuple[str, ...]
    groups: tuple[str, ...]
    names: tuple[str, ...]
    step: Ints
    group: Ints
    name: Ints
    kind: tuple[str, ...]
    """Kind of each entry of `names`."""
    ordinal: Ints
    """Place among the operations of its step, group and kind."""
    start_ns: Ints
    elapsed_us: Floats
    transit_us: Floats
    booked_us: Floats
    """Wait and idle as the profiler booked them; NaN where it did not."""
    size_bytes: Floats
    transport_us: Floats
    reduce_us: float | None
    scale: int
    sources: tuple[Source, ...] = ()
    transport: tuple[str, ...] = ()
    """What moved most of each operation's bytes: HCCS, RDMA, …; empty where it is not told."""
    packet_bytes: Floats = field(default_factory=lambda: np.empty(0))
    """Mean size of each operation's packets; NaN where it is not told."""

    def kinds(self) -> npt.NDArray[np.str_]:
        """Kind of every operation."""
        return np.array(self.kind)[self.name] if len(self.name) else np.empty(0, "U1")


EXCHANGES = Reduction("communication", Exchanges)


def reduce_exchanges(rank: Rank) -> Exchanges | None:
    """The rank's collectives; None where there are none with a usable time."""
    return rank.once(reduce_exchanges, lambda: _reduce(rank))


def _reduce(rank: Rank) -> Exchanges | None:
    frame = rank.read("collectives")
    if frame is None or frame.empty:
        return None
    elapsed = _floats(frame, "elapsed_us")
    frame = frame[np.isfinite(elapsed) & (elapsed >= 0)]
    if frame.empty:
        return None
    step, group, name = _words(frame, "step", "0"), _words(frame, "group"), _words(frame, "name")
    steps, groups, names = (tuple(dict.fromkeys(column)) for column in (step, group, name))
    size, moving, transport, packet = _moved(rank, [*zip(step, name, group, strict=True)])
    start = frame["start_ns"].fillna(0).to_numpy(np.int64) if "start_ns" in frame else np.zeros(len(frame), np.int64)
    kinds = tuple(kind_of(n) for n in names)
    name_index = _index(name, names)
    small = {kind: hash_small(kind) for kind in set(kinds)}
    kind_index = np.array([small[kind] for kind in kinds], np.int64)[name_index]
    step_index, group_index = _index(step, steps), _index(group, groups)
    order = np.lexsort((start, kind_index, group_index, step_index))
    ordinal = np.empty(len(frame), np.int64)
    key = np.stack([step_index, group_index, kind_index])[:, order]
    fresh = np.ones(len(frame), bool)
    fresh[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    position = np.arange(len(frame))
    ordinal[order] = position - np.maximum.accumulate(np.where(fresh, position, 0))
    scale = 1
    while len(frame) / scale > MOST_OPERATIONS:
        scale *= 2
    keep = ordinal % scale == 0
    wait, idle = _floats(frame, "wait_us"), _floats(frame, "idle_us")
    booked = np.where(np.isfinite(wait) | np.isfinite(idle), np.nan_to_num(wait) + np.nan_to_num(idle), np.nan)
    reduced = _floats(frame, "reduce_us")
    return Exchanges(
        steps, groups, names, step_index[keep], group_index[keep], name_index[keep], kinds, ordinal[keep], start[keep],
        _floats(frame, "elapsed_us")[keep], _floats(frame, "transit_us")[keep], booked[keep], size[keep], moving[keep],
        float(np.nansum(reduced)) if np.isfinite(reduced).any() else None, scale,
        (rank.source("collectives", "elapsed_us", "transit_us", "wait_us", "idle_us", steps=steps),),
        tuple(transport[keep].tolist()), packet[keep],
    )  # fmt: skip


def hash_small(text: str) -> int:
    """A small number for a word, the same in every process."""
    value = 0
    for letter in text:
        value = (value * 31 + ord(letter)) & 0xFFFF
    return value


def _index(column: Any, values: tuple[str, ...]) -> Ints:
    places = {value: i for i, value in enumerate(values)}
    return np.fromiter(map(places.__getitem__, column), np.int64, len(column))


def _floats(frame: Any, column: str) -> Floats:
    if column not in frame:
        return np.full(len(frame), np.nan)
    values: Floats = frame[column].to_numpy(float, na_value=np.nan)
    return values


def _words(frame: Any, column: str, absent: str = "") -> list[str]:
    return list(frame[column].fillna(absent).astype(str).to_numpy(object))


Traffic = tuple[Floats, Floats, npt.NDArray[np.object_], Floats]
"""(bytes, transfer time, main transport, packet size) of each operation"""


def _moved(rank: Rank, keys: list[tuple[str, str, str]]) -> Traffic:
    """What each operation (step, name, group) moved; SDMA only where nothing finer is told."""
    nothing = np.full(len(keys), np.nan)
    frame = rank.read("transports")
    if frame is None or frame.empty:
        return nothing, nothing, np.full(len(keys), "", object), nothing
    places: dict[tuple[str, str, str], int] = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    owners = map(places.get, zip(*(_words(frame, c) for c in ("step", "name", "group")), strict=True), repeat(-1))
    owner = np.fromiter(owners, np.int64, len(frame))
    transport = np.array(_words(frame, "transport"), object)
    size, lasts, count = (_floats(frame, c) for c in ("size_bytes", "time_us", "packets"))
    usable = (owner >= 0) & (size > 0) & (lasts > 0)
    fine = usable & (transport != "SDMA")
    known = np.zeros(len(places), bool)
    known[owner[fine]] = True
    chosen = np.flatnonzero(fine | (usable & ~known[owner]))
    mine = owner[chosen]
    told = np.bincount(mine, minlength=len(places)) > 0
    sums = (np.bincount(mine, column[chosen], len(places)) for column in (size, lasts, count))
    moved, moving, packets = (np.where(told, column, np.nan) for column in sums)
    most = np.full(len(places), "", object)
    largest = chosen[np.lexsort((chosen, -size[chosen], mine))]
    most[owner[largest[::-1]]] = transport[largest[::-1]]
    which = np.fromiter(map(places.__getitem__, keys), np.int64, len(keys))
    each = moved / np.where(packets > 0, packets, np.nan)
    return moved[which], moving[which], most[which], each[which]


@dataclass
class Joint:
    """The same operations of one group and kind on all ranks at hand: rows are operations, columns ranks."""

    group: str
    kind: str
    ranks: tuple[int, ...]
    members: tuple[int, ...]
    """All members as far as known; at least `ranks`."""
    complete: bool
    """Every member's file is at hand."""
    steps: list[str]
    names: list[str]
    ordinal: Ints
    elapsed_us: Floats
    transit_us: Floats
    booked_us: Floats
    start_ns: Ints
    size_bytes: Floats
    scale: int = 1
    sources: tuple[Source, ...] = field(default=())

    @property
    def per_step(self) -> float:
        """What sums over all rows are multiplied with to be those of one step."""
        return self.scale / len(set(self.steps))

    @property
    def pure_us(self) -> Floats:
        """The transfer without the waiting for ranks at hand: how long the last to arrive was inside."""
        pure: Floats = np.nanmin(self.elapsed_us, axis=1)
        return pure

    @property
    def transfer_us(self) -> Floats:
        """The transfer alone: `pure_us`, but not above the longest transit of any member where a member's file is
        missing, for the rest may be waiting for that one."""
        if self.complete:
            return self.pure_us
        longest = np.where(np.isfinite(self.transit_us), self.transit_us, -1.0).max(axis=1)
        return np.where(longest > 0, np.minimum(self.pure_us, longest), self.pure_us)

    @property
    def wait_us(self) -> Floats:
        """Waiting of each rank for the last one at hand."""
        return self.elapsed_us - self.pure_us[:, None]

    def in_steps(self, steps: set[str]) -> npt.NDArray[np.bool_]:
        """Which operations lie in these steps."""
        return np.array([s in steps for s in self.steps], bool)


def join(exchanges: dict[int, Exchanges], groups: dict[str, tuple[int, ...]], complete_world: bool) -> list[Joint]:
    """Puts the collectives of all ranks side by side. Operations are matched by name; where ranks name them
    differently, by their order within step, group and kind. Point-to-point operations are left out."""
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rank, ex in exchanges.items():
        kinds = ex.kinds()
        pairs = {(ex.groups[g], str(k)) for g, k in zip(ex.group, kinds, strict=True)}
        for pair in pairs:
            members[pair].append(rank)
    for pair in [p for p in members if not p[0] and len(members[p]) > 1]:
        for part in _share_names(members.pop(pair), pair[1], exchanges):
            members[f"~{part[0]}", pair[1]] = part
    joints = []
    for (group, kind), ranks in sorted(members.items()):
        if kind in POINT_TO_POINT:
            continue
        known = groups.get(group)
        complete = set(ranks) >= set(known) if known else complete_world
        full = tuple(sorted(set(known or ()) | set(ranks)))
        joint = _side_by_side("" if group.startswith("~") else group, kind, tuple(sorted(ranks)), exchanges)
        if joint is not None:
            joint.members, joint.complete = full, complete
            joints.append(joint)
    return joints


def _share_names(ranks: list[int], kind: str, exchanges: dict[int, Exchanges]) -> list[list[int]]:
    """Ranks whose operations of this kind mostly bear the same names: files that tell no group."""
    parts: list[tuple[set[str], list[int]]] = []
    for rank in ranks:
        ex = exchanges[rank]
        mine = {name for name, k in zip(ex.names, ex.kind, strict=True) if k == kind}
        for names, part in parts:
            if len(names & mine) >= 0.5 * min(len(names), len(mine)):
                part.append(rank)
                break
        else:
            parts.append((mine, [rank]))
    return [part for _, part in parts]


def _side_by_side(group: str, kind: str, ranks: tuple[int, ...], exchanges: dict[int, Exchanges]) -> Joint | None:
    rows: dict[int, tuple[npt.NDArray[np.int64], list[tuple[str, str]], list[tuple[str, str]]]] = {}
    for rank in ranks:
        ex = exchanges[rank]
        wanted = np.flatnonzero((ex.kinds() == kind) & (ex.group == ex.groups.index(group)))
        by_name = [(ex.steps[ex.step[i]], ex.names[ex.name[i]]) for i in wanted]
        by_order = [(ex.steps[ex.step[i]], f"#{ex.ordinal[i]}") for i in wanted]
        rows[rank] = (wanted, by_name, by_order)
    names = [set(r[1]) for r in rows.values()]
    common = set.intersection(*names)
    use = 1
    if len(common) < 0.5 * max(map(len, names)) or any(
        len(n) < len(r[1]) for n, r in zip(names, rows.values(), strict=True)
    ):
        use, common = 2, set.intersection(*(set(r[2]) for r in rows.values()))
    if not common:
        return None
    first = rows[ranks[0]]
    chosen = [(key, i, name) for key, i, name in zip(first[use], first[0], first[1], strict=True) if key in common]
    place = {key: n for n, (key, _, _) in enumerate(chosen)}
    shape = (len(chosen), len(ranks))
    data = {field: np.full(shape, np.nan) for field in ("elapsed_us", "transit_us", "booked_us", "size_bytes")}
    start = np.zeros(shape, np.int64)
    for column, rank in enumerate(ranks):
        ex, (wanted, *keys) = exchanges[rank], rows[rank]
        at = np.array([place.get(key, -1) for key in keys[use - 1]], np.int64)
        inside = at >= 0
        for name, target in data.items():
            target[at[inside], column] = getattr(ex, name)[wanted[inside]]
        start[at[inside], column] = ex.start_ns[wanted[inside]]
    ex = exchanges[ranks[0]]
    return Joint(
        group, kind, ranks, ranks, False, [key[0] for key, _, _ in chosen], [name[1] for _, _, name in chosen],
        np.array([ex.ordinal[i] for _, i, _ in chosen], np.int64), data["elapsed_us"], data["transit_us"],
        data["booked_us"], start, data["size_bytes"], max(exchanges[r].scale for r in ranks), ex.sources,
    )  # fmt: skip
