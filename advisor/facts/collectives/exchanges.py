"""Collectives of one rank as compact arrays."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import astuple, replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.numbering import numbered
from advisor.facts.base import Reduction, Run
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.step.from_kernels import reduce as reduce_steps
from advisor.knowledge.measuring import limit
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.metadata import group_of_operation, number_of_group
from advisor.sources.streams.rank_trace import load_trace, trace_source

MOST_OPERATIONS = 4096
"""Operations kept per rank; of more, groups and kinds with many in a step keep every 2nd, 4th, … of it, the same ones
on every rank."""

POINT_TO_POINT = ("send", "receive", "batchsendrecv")
REDUCTIONS = ("allreduce", "reducescatter", "reduce")
_BOOKED = limit("meetings", "booked")
_KINDS = (
    ("batchsendrecv", "batchsendrecv"), ("allreduce", "allreduce"), ("reducescatter", "reducescatter"),
    ("allgather", "allgather"), ("alltoall", "alltoall"), ("neighborexchange", "alltoall"),
    ("broadcast", "broadcast"), ("receive", "receive"), ("recv", "receive"), ("send", "send"), ("barrier", "barrier"),
    ("reduce", "reduce"), ("scatter", "scatter"), ("gather", "gather"),
)  # fmt: skip


def kind_of(name: str) -> str:
    """allreduce, allgather, … from any spelling of an operation's name: hcom_allReduce__586_0_1, AllReduce-op4582."""
    return _kind_of(name.rstrip("0123456789_"))


@lru_cache(maxsize=1 << 12)
def _kind_of(name: str) -> str:
    """The same of a name without the numbers at its end: tens of thousands of operations have few of these."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for part, kind in _KINDS if part in plain), "other")


class Exchanges(Struct, frozen=True, dict=True):
    """One rank's collectives, one entry an operation."""

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
    sources: tuple[Source, ...] = ()
    transport: tuple[str, ...] = ()
    """What moved most of each operation's bytes: HCCS, RDMA, …; empty where it is not told."""
    packet_bytes: Floats = field(default_factory=lambda: np.empty(0))
    """Mean size of each operation's packets; NaN where it is not told."""
    early: Floats = field(default_factory=lambda: np.empty(0))
    """Share of each operation's wait that came before its first transfer; NaN where most is not booked."""
    of_kernels: bool = False
    """From the rows among its kernels or from its timeline, which tell the size of what is exchanged at most, and the
    group by the number in their names: the rank has no file of collectives."""
    members: frozenset[int] = frozenset()
    """Of all these groups, where kernels tell every one of them."""
    world: int = 0
    """Ranks that took part, where the rank's files tell; else 0."""
    thinned: Floats = field(default_factory=lambda: np.empty(0))
    """How many operations of its step, group and kind stand behind each that is kept. Empty where all are kept."""
    repeats: Floats = field(default_factory=lambda: np.empty(0))
    """For each of `names` how many operations of that name stand behind each that is kept: 1 where each has a name of
    its own, as in `thinned` where few names are shared by all. Empty where all are kept."""

    def __reduce__(self) -> tuple[Callable[..., Exchanges], tuple[Any, ...]]:
        """As it is sent to another process, which shares its words."""
        return _received, astuple(self)

    @property
    def is_whole(self) -> bool:
        """Whether all operations are kept."""
        return not len(self.thinned)

    def keeps(self, chosen: Mask) -> bool:
        """Whether no others stand behind the chosen ones."""
        return self.is_whole or bool((self.thinned[chosen] == 1).all())

    @cached_property
    def weight(self) -> Floats:
        """How many of the profile's operations stand for each entry in a sum: 1 where all are kept."""
        return np.ones(len(self.name)) if self.is_whole else self.thinned

    def kinds(self) -> npt.NDArray[np.str_]:
        """Kind of every operation."""
        words, code = self._kinds
        return np.array(words)[code] if len(words) else np.empty(0, "U1")

    def counts(self) -> dict[tuple[str, str], int]:
        """(group, kind) -> how many operations of it there are, if any."""
        words, code = self._kinds
        counts = np.bincount(self.group * len(words) + code, self.weight, len(self.groups) * len(words)).tolist()
        return {
            (self.groups[place // len(words)], words[place % len(words)]): round(count)
            for place, count in enumerate(counts)
            if count
        }

    @cached_property
    def own_parts(self) -> dict[str, float]:
        """Name -> the part that its own operations have in what stands behind its kept ones; those of 1 left out."""
        if self.is_whole:
            return {}
        kept, behind = (np.bincount(self.name, column, len(self.names)) for column in (None, self.weight))
        parts = zip(self.names, (self.repeats * kept / behind).tolist(), strict=True)
        return {name: part for name, part in parts if part != 1}

    def of(self, group: str, kind: str) -> Ints:
        """Places of the operations of one group and kind."""
        words, code = self._kinds
        if group not in self.groups or kind not in words:
            return np.zeros(0, np.int64)
        return np.flatnonzero((self.group == self.groups.index(group)) & (code == words.index(kind)))

    def rates(self, chosen: Mask) -> Floats:
        """Bytes per second of the chosen operations, whose transport times are above 0."""
        return self.size_bytes[chosen] / self.transport_us[chosen] * 1e6

    @cached_property
    def _kinds(self) -> tuple[list[str], npt.NDArray[np.uint8]]:
        """(different kinds, place among them of each operation's: few, and kept for each of thousands of ranks)."""
        words = list(dict.fromkeys(self.kind))
        return words, _index(self.kind, tuple(words)).astype(np.uint8)[self.name]


_WORDS = ("steps", "groups", "names", "kind", "transport")


def _received(*values: Any) -> Exchanges:
    fields = zip(Exchanges.__struct_fields__, values, strict=True)
    shared: list[Any] = [_shared(value) if name in _WORDS else value for name, value in fields]
    return Exchanges(*shared)


def _settled(found: dict[int, Exchanges]) -> dict[int, Exchanges]:
    """Ranks without a file of collectives beside ranks that have one: their kernels tell when each arrived, the others
    in which group that was. Where no rank has one, the numbers in their names may tell it; with all members at hand the
    last to arrive was inside for the transfer alone. Else there is none."""
    told = {rank: ex for rank, ex in found.items() if not ex.of_kernels}
    if not told and all(ex.members and ex.members <= found.keys() for ex in found.values()):
        return found
    if not told and (numbered := _by_number(found)):
        return numbered
    if not told or len(told) == len(found):
        return told
    groups: dict[str, set[str]] = {}
    for ex in told.values():
        for name, group in zip(ex.name.tolist(), ex.group.tolist(), strict=True):
            groups.setdefault(ex.names[name], set()).add(ex.groups[group])
    known = {name: next(iter(of)) for name, of in groups.items() if len(of) == 1}
    whole = all(ex.is_whole for ex in found.values())
    for rank, ex in found.items():
        if ex.of_kernels and whole and all(name in known for name in ex.names):
            names = tuple(dict.fromkeys(known[name] for name in ex.names))
            of_name = _index([known[name] for name in ex.names], names)
            told[rank] = replace(ex, groups=_shared(names), group=of_name[ex.name])
    return dict(sorted(told.items()))


def _by_number(found: dict[int, Exchanges]) -> dict[int, Exchanges]:
    """Where no file tells members: the ranks whose operations bear one number are those of a group, as far as they may
    be all of the run. Empty where they are not, where some operation bears no number, or where one rank alone has it:
    nobody exchanges with itself, so others are absent."""
    at_hand = found.keys() == set(range(len(found))) and all(ex.world in (0, len(found)) for ex in found.values())
    numbers = {rank: [number_of_group(name) for name in ex.names] for rank, ex in found.items()}
    shared = Counter(number for each in numbers.values() for number in set(each))
    if not at_hand or any(not number or count < 2 for number, count in shared.items()):
        return {}
    settled = {}
    for rank, ex in found.items():
        groups = tuple(dict.fromkeys(numbers[rank]))
        settled[rank] = replace(ex, groups=_shared(groups), group=_index(numbers[rank], groups)[ex.name])
    return settled


EXCHANGES = Reduction("communication", Exchanges, _settled)


def listed(run: Run) -> dict[int, Exchanges]:
    """Those of ranks with a file of collectives: a witness beside their kernels, which the rows among these are not."""
    return {rank: ex for rank, ex in run.each(EXCHANGES).items() if not ex.of_kernels}


def are_assumed(run: Run) -> bool:
    """Whether nothing but the numbers in names tells who takes part in the collectives: others may be absent."""
    found = run.each(EXCHANGES).values()
    return bool(found) and all(ex.of_kernels and not ex.members and not ex.world for ex in found)


def reduce_exchanges(rank: Rank) -> Exchanges | None:
    """The rank's collectives; None where there are none with a usable time."""
    return rank.once(reduce_exchanges, lambda: _reduce(rank))


def _reduce(rank: Rank) -> Exchanges | None:
    frame = rank.read("collectives")
    of_kernels = frame is None and not rank.has("collectives")
    if of_kernels:
        frame = _among_kernels(rank) if rank.has("kernels") else _in_timeline(rank)
    if frame is None or frame.empty:
        return None
    elapsed = _floats(frame, "elapsed_us")
    frame = frame[np.isfinite(elapsed) & (elapsed >= 0)]
    if frame.empty:
        return None
    step, name = _words(frame, "step", "0"), _words(frame, "name")
    group = _as_told(rank, _words(frame, "group"), name)
    steps, groups, names = (tuple(dict.fromkeys(column)) for column in (step, group, name))
    size, moving, transport, packet = _moved(rank, [*zip(step, name, group, strict=True)])
    size = _floats(frame, "size_bytes") if "size_bytes" in frame else size
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
    part = np.empty(len(frame), np.int64)
    part[order] = np.cumsum(fresh) - 1
    _, alike = numbered(group_index << 16 | kind_index)
    keep, thinned = _kept(ordinal, part, alike, step_index == _middle(step_index, start))
    used, kept_name, kept_count = np.unique(name_index[keep], return_inverse=True, return_counts=True)
    wait, idle = _floats(frame, "wait_us"), _floats(frame, "idle_us")
    booked = np.where(np.isfinite(wait) | np.isfinite(idle), np.nan_to_num(wait) + np.nan_to_num(idle), np.nan)
    reduced = _floats(frame, "reduce_us")
    return Exchanges(
        _shared(steps), _shared(groups), _shared([names[i] for i in used]),
        step_index[keep], group_index[keep], kept_name, _shared(kinds[i] for i in used), ordinal[keep], start[keep],
        _floats(frame, "elapsed_us")[keep], _floats(frame, "transit_us")[keep], booked[keep], size[keep], moving[keep],
        float(np.nansum(reduced)) if np.isfinite(reduced).any() else None,
        (_source(rank, of_kernels, steps),),
        _shared(transport[keep].tolist()), packet[keep], _early(frame)[keep], of_kernels,
        frozenset(member for name in groups for member in rank.groups[name]) if of_kernels and all(groups)
        else frozenset(), int(rank.info.get("world_size") or rank.info.get("rank_size") or 0),
        thinned, np.bincount(name_index)[used] / kept_count if len(thinned) else np.empty(0),
    )  # fmt: skip


def _as_told(rank: Rank, group: list[str], name: list[str]) -> list[str]:
    """The groups as the rank's metadata calls them: a communicator that it does not know is the one whose number its
    operations bear, where its own name does not end with that number."""
    first = dict(zip(reversed(group), reversed(name), strict=True)) if rank.groups else {}
    known = {}
    for strange, operation in first.items():
        number = number_of_group(operation)
        if strange and number and strange not in rank.groups and not strange.endswith(number):
            known[strange] = group_of_operation(operation, rank.groups)
    return [known.get(each) or each for each in group] if any(known.values()) else group


def _middle(step: Ints, start_ns: Ints) -> int:
    """The step in the middle of the recording, of which kernels tell a chain (course.py)."""
    begins = np.full(step.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(begins, step, start_ns)
    return int(np.argsort(begins, kind="stable")[len(begins) // 2])


def _kept(ordinal: Ints, part: Ints, alike: Ints, whole: Mask) -> tuple[Mask, Floats]:
    """Which of a rank's operations are kept, and for how many each of these stands; no numbers where all are. `ordinal`
    is the place of each in its `part`, those of one step, group and kind; `alike` are those of one group and kind. Many
    of one kind in a step stand for each other; a few may each be like no other, so that large parts are thinned first.
    Those of the step that is replayed, the `whole`, are all kept besides, unless they are too many by themselves.
    """
    keep, least = np.ones(len(ordinal), bool), MOST_OPERATIONS
    if len(ordinal) <= MOST_OPERATIONS:
        return keep, np.empty(0)
    longest = np.zeros(alike.max() + 1, np.int64)
    np.maximum.at(longest, alike, ordinal + 1)
    while keep.sum() > MOST_OPERATIONS and least > 1:
        least //= 2
        every = 2 ** np.ceil(np.log2(np.maximum(longest / least, 1))).astype(np.int64)
        keep = ordinal % every[alike] == 0
    if whole.sum() <= MOST_OPERATIONS:
        keep |= whole
    # the first of a step awaits whoever is late for it, so that others stand for the rest, where any are kept
    of = 2 * part + (ordinal > 0)
    told, kept = (np.bincount(each, minlength=2 * part.max() + 2).reshape(-1, 2) for each in (of, of[keep]))
    alone = kept[:, 1] == 0
    told[alone, 0] += told[alone, 1]
    behind = (told / np.maximum(kept, 1)).ravel()
    return keep, behind[of[keep]]


def _source(rank: Rank, of_kernels: bool, steps: tuple[str, ...]) -> Source:
    if not of_kernels:
        return rank.source("collectives", "elapsed_us", "transit_us", "wait_us", "idle_us", steps=steps)
    if rank.has("kernels"):
        return rank.source("kernels", "duration_us")
    return trace_source(rank) or Source("")


def _among_kernels(rank: Rank) -> Any:
    """The collectives among the rank's kernels, by step; None where there are none."""
    import pandas as pd

    timeline = timeline_of(rank)
    if timeline is None or not timeline.whole or not timeline.communication.any():
        return None
    kernels, rows = timeline.kernels, np.flatnonzero(timeline.communication)
    names = [kernels.names[i].rpartition("/")[2] for i in kernels.name[rows].tolist()]
    return pd.DataFrame({
        "step": [timeline.windows.names[i] for i in timeline.windows.of[rows].tolist()], "name": names,
        "group": [group_of_operation(name, rank.groups) or "" for name in names],
        "start_ns": kernels.start[rows], "elapsed_us": kernels.duration[rows],
    })  # fmt: skip


def _in_timeline(rank: Rank) -> Any:
    """The collectives that the rank's timeline draws, by step; None where there are none, or nothing places steps."""
    import pandas as pd

    trace = load_trace(rank) if rank.has("trace") else None
    if trace is None or not len(trace.collectives) or (told := reduce_steps(rank)) is None:
        return None
    talks, steps = trace.collectives, told.steps
    begins = np.array([step.start_ns for step in steps], np.int64)
    of = np.searchsorted(begins, talks.start, "right") - 1
    inside = (of >= 0) & (talks.start <= np.array([step.end_ns for step in steps], np.int64)[of])
    names = [talks.names[i] for i in talks.name[inside].tolist()]
    return pd.DataFrame({
        "step": [steps[i].step for i in of[inside].tolist()], "name": names,
        "group": [group_of_operation(name, rank.groups) or "" for name in names],
        "start_ns": talks.start[inside], "elapsed_us": (talks.end - talks.start)[inside] / 1000,
        "size_bytes": [trace.bytes_of.get(name, np.nan) for name in names],
    })  # fmt: skip


def _early(frame: Any) -> Floats:
    early, wait = _floats(frame, "sync_us"), _floats(frame, "wait_us")
    beyond = _floats(frame, "elapsed_us") - _floats(frame, "transit_us")
    told = np.isfinite(early) & (wait > 0) & (wait >= _BOOKED * beyond)
    shares: Floats = np.divide(early, wait, out=np.full(len(frame), np.nan), where=told)
    return shares


def hash_small(text: str) -> int:
    """A small number for a word, the same in every process."""
    value = 0
    for letter in text:
        value = (value * 31 + ord(letter)) & 0xFFFF
    return value


def _shared(words: Iterable[str]) -> tuple[str, ...]:
    """The words, kept once however many ranks have them."""
    return _same(tuple(map(sys.intern, words)))


@lru_cache(maxsize=64)
def _same(words: tuple[str, ...]) -> tuple[str, ...]:
    return words


def _index(column: Any, values: tuple[str, ...]) -> Ints:
    places = {value: i for i, value in enumerate(values)}
    return np.fromiter(map(places.__getitem__, column), np.int64, len(column))


def _floats(frame: Any, column: str) -> Floats:
    if column not in frame:
        return np.full(len(frame), np.nan)
    values: Floats = frame[column].to_numpy(float, na_value=np.nan)
    return values


def _words(frame: Any, column: str, absent: str = "") -> list[str]:
    cells: list[Any] = frame[column].to_numpy(object).tolist()
    if set(map(type, cells)) <= {str}:  # most often
        return cells
    return [cell if isinstance(cell, str) else absent for cell in cells]


Traffic = tuple[Floats, Floats, npt.NDArray[np.object_], Floats]
"""(bytes, transfer time, main transport, packet size) of each operation"""


def _moved(rank: Rank, keys: list[tuple[str, str, str]]) -> Traffic:
    """What each operation (step, name, group) moved; SDMA only where nothing finer is told."""
    nothing = np.full(len(keys), np.nan)
    frame = rank.read("transports")
    if frame is None or frame.empty:
        return nothing, nothing, np.full(len(keys), "", object), nothing
    places: dict[tuple[str, str, str], int] = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    told_of = (_words(frame, "step", "0"), _words(frame, "name"), _words(frame, "group"))
    owners = map(places.get, zip(*told_of, strict=True), repeat(-1))
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
