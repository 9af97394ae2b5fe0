"""Recordings made one after the other: they are no ranks of a job, which run side by side.

A profiler called three times, or `msprof` run once for every group of counters, leaves several folders that name no
rank. Those of one process, and those of one device whose kernels do not overlap in time, tell of one device. What
`msprof op` measured one by one, operator by operator or launch by launch, is one collection. Ranks whose times of
recording lie far apart are of two runs, and no step of one is a step of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from advisor.basics.units import show
from advisor.knowledge.statements import document
from advisor.sources.base import Rank
from advisor.sources.layouts import ascend, opprof
from advisor.sources.layouts.devices import devices_of, run_in_turn, sample_cells, span_of
from advisor.sources.streams.one_operator import BASIC

_COUNTERS = ("aic_mac_ratio", "mac_ratio", "mac_exe_ratio", "aiv_vec_ratio", "vec_ratio", "vec_exe_ratio")
_NAMING = ("kernels", "operator_types", "steps")
"""Tables with a column of devices."""
_TOLD_IN_ROWS = ("kernels.csv", "kernels.tasks")
"""Readers of tables of kernels whose ends tell when they ran."""
_SHOWN = 3


def with_one_collection(ranks: Sequence[Rank], relative: Callable[[Rank], str], others: Sequence[Rank]) -> list[Rank]:
    """These ranks with all results of `msprof op` as one; without them where a program was recorded beside them."""
    alone = [rank for rank in ranks if rank.has("kernels") and rank.tables["kernels"].reader == opprof.READER]
    rest = _without(ranks, alone)
    if not alone:
        return rest
    if recorded := [*others, *rest]:
        names = ", ".join(relative(rank) for rank in alone[:_SHOWN])
        text = f"lies beside {len(alone)} results of msprof op ({names}), which were left out: judge them by themselves"
        recorded[0].note(relative(recorded[0]), text)
        return rest
    first = alone[0]
    if len(alone) > 1:
        kept = _newest(alone)
        left = [relative(rank) for rank in _without(alone, kept)]
        parents = [set(rank.root.parents) for rank in alone]
        first.root = max(set.intersection(*parents), key=lambda folder: len(folder.parts), default=first.root)
        opprof.refer(first, [path for rank in kept for path in rank.tables["kernels"].paths])
        for name in left:
            first.note(name, "holds operators that were measured again later; it was left out")
    return [first]


def _newest(alone: Sequence[Rank]) -> list[Rank]:
    """Of every operator the last collection: one that was measured before and after a change is not the mean of both.
    Launches that lie in one collection stay together, and so do collections without names that count different things
    of the operator: the profiler was called once for each group of counters."""
    last: dict[str, tuple[bool, str]] = {}
    named = {id(rank): (_collection(rank), opprof.operators_of(rank)) for rank in alone}
    for collection, names in named.values():
        for name in names:
            last[name] = max(last.get(name, (False, "")), collection)
    kept = [
        rank for rank in alone
        if (found := named[id(rank)]) and (not found[1] or any(last[name] == found[0] for name in found[1]))
    ]  # fmt: skip
    told = set[str]().union(*map(opprof.counters_of, kept))
    for rank in sorted(_without(alone, kept), key=lambda each: named[id(each)][0], reverse=True):
        counts = opprof.counters_of(rank)
        if BASIC not in told | counts and not counts <= told:
            kept.append(rank)
            told |= counts
    return [rank for rank in alone if any(rank is each for each in kept)]


def _collection(rank: Rank) -> tuple[bool, str]:
    """What orders collections: whether units were counted, and the time in the name of OPPROF_<time>_<id>."""
    folder = next((each for each in (rank.root, *rank.root.parents) if each.name.startswith("OPPROF_")), rank.root)
    return opprof.counts_units(rank), folder.name


def without_earlier(ranks: Sequence[Rank], relative: Callable[[Rank], str]) -> list[Rank]:
    """These ranks, of which none has a number, with one recording of each device: the one that tells most, the newest
    of several that tell alike."""
    left_out: list[Rank] = []
    groups = _recordings(ranks)
    for group in groups:
        best = max(group, key=_worth)
        left_out += (unchosen := _without(group, [best]))
        others = [relative(rank) for rank in unchosen]
        more = f" and {len(others) - _SHOWN} more" if others[_SHOWN:] else ""
        text = (
            f"is one of {len(group)} recordings of one device, made one after the other; this one is judged, left out: "
            f"{', '.join(others[:_SHOWN])}{more} (judge them one by one, or two with `advisor compare`)"
        )
        best.note(relative(best), text)
    return _without(ranks, left_out)


def of_one_run(ranks: Sequence[Rank], relative: Callable[[Rank], str]) -> tuple[list[Rank], list[tuple[str, str]]]:
    """The ranks of the run that has most of them, the newest of several, and what is to be told of the others: folder
    and text. Ranks of one job are recorded together. Captures of the same ranks, again and again, are left together:
    of each the newest counts."""
    runs = _runs(ranks)
    numbers = [frozenset(rank.rank for rank in run if rank.rank_known) for run in runs]
    again = len(set(numbers)) == 1 and all(rank.rank_known for run in runs for rank in run)
    if len(runs) < 2 or again:
        return list(ranks), []
    times = _times(ranks)
    told: list[tuple[str, str]] = []
    chosen = max(range(len(runs)), key=lambda i: (len({_who(rank) for rank in runs[i]}), i))
    judged = times[id(runs[chosen][0])]
    for run in runs[:chosen] + runs[chosen + 1 :]:
        apart = max(times[id(run[0])][0] - judged[1], judged[0] - times[id(run[0])][1])
        text = (
            f"was recorded {show(apart, 'us')} apart from {relative(runs[chosen][0])}, which is judged: ranks of one "
            f"job are recorded together, so it is another run and left out (judge it by itself, or two runs with "
            f"`advisor compare`)"
        )
        told += [(relative(rank), text) for rank in run]
    kept = {id(rank) for rank in runs[chosen]}
    return [rank for rank in ranks if id(rank) in kept], told


def _who(rank: Rank) -> object:
    return rank.rank if rank.rank_known else rank.root


def _runs(ranks: Sequence[Rank]) -> list[list[Rank]]:
    """The ranks by the run that they are of, earlier runs first; one run where not all tell when they were recorded."""
    times = _times(ranks)
    if len(times) < max(len(ranks), 2):
        return [list(ranks)]
    limits = {name: float(entry["value"]) for name, entry in document("recording.yaml")["contradiction"].items()}
    lasts = max(end - start for start, end in times.values())
    first, *others = sorted(ranks, key=lambda rank: times[id(rank)])
    runs, until = [[first]], times[id(first)][1]
    for rank in others:
        start, end = times[id(rank)]
        hosts = {other.host for other in runs[-1]}
        one_clock = rank.host in hosts or None in {rank.host, *hosts}
        least = limits["apart_us" if one_clock else "hosts_apart_us"]
        if start - until > max(least, limits["apart_factor"] * lasts):
            runs.append([])
        runs[-1].append(rank)
        until = max(until, end)
    return runs


def _times(ranks: Sequence[Rank]) -> dict[int, tuple[float, float]]:
    """From when to when they were recorded, microseconds, by one clock: when the host ended it, else their kernels'."""
    ended = {id(rank): (us, us) for rank in ranks if (us := ascend.ended_us(rank)) is not None}
    return ended if len(ended) == len(ranks) else {id(r): span for r in ranks if (span := _ends(r)) is not None}


def _ends(rank: Rank) -> tuple[float, float] | None:
    """From the first to the last start of the kernels at both ends of a rank's table."""
    table = rank.tables.get("kernels")
    if table is None or table.reader not in _TOLD_IN_ROWS:
        return None
    return rank.once(_ends, lambda: span_of(table.paths, 0))


def _without(ranks: Iterable[Rank], some: Iterable[Rank]) -> list[Rank]:
    left_out = {id(rank) for rank in some}
    return [rank for rank in ranks if id(rank) not in left_out]


def _recordings(ranks: Sequence[Rank]) -> list[list[Rank]]:
    """Ranks that are one device's, in groups of two and more."""
    if len(ranks) < 2:
        return []
    by_process = _grouped(ranks, lambda rank: ascend.process_of(rank.root))
    rest = _without(ranks, chain.from_iterable(by_process))
    by_device = [group for group in _grouped(rest, _device) if _one_by_one(group)]
    return [*by_process, *by_device]


def _grouped(ranks: Iterable[Rank], key: Callable[[Rank], object]) -> list[list[Rank]]:
    groups: dict[object, list[Rank]] = {}
    for rank in ranks:
        if (name := key(rank)) is not None:
            groups.setdefault(name, []).append(rank)
    return [group for group in groups.values() if len(group) > 1]


def _device(rank: Rank) -> tuple[str, str] | None:
    table = next((name for name in _NAMING if rank.has(name)), None)
    found = {rank.device} if rank.device else devices_of(rank.tables[table].paths) if table else set()
    if not found and rank.layout == "files":
        return "", str(rank.root)  # files that lie together and tell no device: of one, if they ran one by one
    return (rank.host or "", found.pop() or "") if len(found) == 1 else None


def _one_by_one(group: Sequence[Rank]) -> bool:
    """Whether all tell when their kernels ran, and no two ran at once. Single files that tell no times are of one
    device that they name: whoever profiles a cluster keeps its ranks apart by more than a folder."""
    spans = [_span(rank) for rank in group]
    if not any(spans):
        return all(rank.layout == "files" and not rank.has("kernels") and rank.tables for rank in group)
    return run_in_turn(spans)


def _span(rank: Rank) -> tuple[float, float] | None:
    return span_of(rank.tables["kernels"].paths) if rank.has("kernels") else None


def _worth(rank: Rank) -> tuple[bool, bool, int, float, tuple[int, int, str]]:
    """Sort key: kernels at all, counters of what limits them, how many tables, how late."""
    counted = rank.has("kernels") and any(
        next(sample_cells(path, (heading,)), None) is not None
        for path in rank.tables["kernels"].paths
        if path.is_file()
        for heading in _COUNTERS
    )
    span = _span(rank)
    return rank.has("kernels"), counted, len(rank.tables), span[1] if span else 0.0, ascend.started(rank)
