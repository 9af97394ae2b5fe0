"""What of a recording without marks of steps is set-up, and whether something repeats in the rest.

The long gap before a kernel's first launch is compilation or loading: what lies before the last of them is set-up, as
long as what follows holds most of the work. So is what leaves the device idle for most of the time before a sequence
that is executed again and again (parameters made one by one), and so are launches that warm a kernel up before it is
measured, which end with a pause that never comes again. Whether that is one thing done again and again shows in the
kernels' order.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.recording.limits import section

_MOST_ALIKE = 12
"""Launches of one kernel in a sequence by which its length is looked for."""
_AS_ALIKE = 0.98
"""Distances at which kernels are alike this often, where another is best, may be the sequence's length as well."""
_FEW_DISTANCES = 3
"""The shortest of these that are looked at: the next ones are its multiples."""


class Repetition(Struct, frozen=True):
    """Kernels first … last − 1 are the same sequence of `length` kernels again and again."""

    first: int
    last: int
    length: int

    @property
    def executions(self) -> int:
        return (self.last - self.first) // self.length


class Steady(Struct, frozen=True):
    """The kernels first … last − 1, in order of start, that are judged; `idle_told` is false where gaps before first
    launches lie among them, so that idle time shows nothing."""

    first: int
    last: int
    idle_told: bool = True
    repetition: Repetition | None = None
    repeats: bool = False
    """Whether what runs again and again holds most of the work, be it one sequence or one after another."""
    in_a_row: bool = False
    """Whether kernels that were launched many times in a row hold nearly all work: they are measured one by one."""


def find_steady(
    kinds: Ints,
    start: Ints,
    end: Ints,
    computes: Mask | None = None,
    exactly: Ints | None = None,
    prepares: Mask | None = None,
) -> Steady:
    """The judged part of kernels in order of start (nanoseconds); `kinds` tells which are alike, `exactly` which bear
    one name on one input, `computes` which are no communication: that is neither compiled nor work, and may be
    waiting; `prepares` which only make inputs: however long they take, what follows is what was recorded. Where
    nothing repeats, kernels launched
    for the first time are the rule, and only a gap that is a large part of the recording is set-up. Between kernels
    that are measured one by one lies what the script does."""
    computes = np.ones(len(kinds), bool) if computes is None else computes
    size, limits = len(kinds), section("set_up")
    works = computes if prepares is None or not (computes & ~prepares).any() else computes & ~prepares
    free = np.maximum.accumulate(end)
    gap = np.maximum(start[1:] - free[:-1], 0) / 1000
    work = np.concatenate((np.zeros(1), np.cumsum(np.where(works, end - start, 0))))
    seen = np.zeros(size, bool)
    seen[np.unique(kinds, return_index=True)[1]] = True
    usual = float(np.median(gap)) if gap.size else 0.0
    long = (gap >= limits["gap_us"]) & (gap > limits["gap_factor"] * usual)
    measured = measured_in_a_row(kinds, work)
    launches = 1 + np.flatnonzero(long & seen[1:] & computes[1:])
    launches = launches[launches <= (size if measured is None else measured)]
    behind = launches[work[-1] - work[launches] >= limits["kept_share"] * work[-1]]
    # compiling and loading leave the device idle: a stretch full of kernels is work, whatever is launched behind it
    made = np.where(computes & ~works, end - start, 0)[:-1] / 1000
    idle = np.concatenate((np.zeros(1), np.cumsum(gap + made)))
    behind = behind[idle[behind] >= limits["idle_share"] * (start[behind] - start[0]) / 1000]
    first = int(behind[-1]) if behind.size else 0
    if first and find_repetition(kinds[first:], end[first:] - start[first:]) is None:
        whole = float(free[-1] - start[0]) / 1000
        behind = behind[gap[behind - 1] >= limits["unjudged_share"] * whole]
        first = int(behind[-1]) if behind.size else 0
    if not first and measured is None:
        first = _warmed_up(kinds, start, end, 1 + np.flatnonzero(long), work)
    duration = end[first:] - start[first:]
    found = find_repetition(kinds[first:], duration)
    if found is not None and exactly is not None:
        found = _whole_sequence(found, exactly[first:], duration)
    if found is not None:
        found = Repetition(found.first + first, found.last + first, found.length)
        kept = work[found.last] - work[found.first] >= limits["kept_share"] * work[-1]
        before = float(start[found.first] - start[0]) / 1000
        if kept and found.first > first and idle[found.first] >= limits["idle_share"] * before:
            first = found.first
        if first == found.first:
            first += found.length * longer_at_first(_lengths_of(found, start, free), 1)
            found = Repetition(first, found.last, found.length)
    unseen = (gap >= limits["gap_us"]) & seen[1:] & computes[1:]  # however long the other gaps are: no state either
    recorded = max(float(free[-1] - start[first]) / 1000, 1e-9)
    told = measured is not None or float(gap[first:][unseen[first:]].sum()) < limits["unjudged_share"] * recorded
    repeats = found is not None or repeats_in_parts(kinds[first:], end[first:] - start[first:])
    return Steady(first, size, told, found, repeats, measured is not None)


def _lengths_of(found: Repetition, start: Ints, free: Ints) -> Floats:
    """How long each execution lasts until the next one begins, the last one until its end, microseconds."""
    begins = start[found.first : found.last : found.length][: found.executions]
    return np.diff(np.append(begins, free[found.first + found.executions * found.length - 1])) / 1000


def longer_at_first(lengths: Floats, fewest: int) -> int:
    """How many first ones of steps or executions are longer than all the others, which are alike: a few, and `fewest`
    at least; 0 where none are."""
    ends = section("odd_ends")
    for count in range(min(int(ends["most"]), len(lengths) // int(ends["steps"])), fewest - 1, -1):
        first, rest = lengths[:count], lengths[count:]
        apart = float(first.min() - rest.max())
        if apart > max(ends["apart_share"] * float(np.median(rest)), ends["apart_factor"] * float(np.ptp(rest))):
            return count
    return 0


def _warmed_up(kinds: Ints, start: Ints, end: Ints, after_long: Ints, work: Floats) -> int:
    """Where the launches of one kernel begin that were measured behind others that warmed it up: again and again,
    behind the last long gap (what comes `after_long` ones begins there); 0 where nothing of that kind shows. Of several
    kernels, a pause may as well be the program's."""
    if not after_long.size:
        return 0
    first = int(after_long[-1])
    if work[-1] - work[first] < section("set_up")["kept_share"] * work[-1]:
        return 0
    found = find_repetition(kinds[first:], end[first:] - start[first:])
    if found is None or found.executions < section("benchmark")["launches"]:
        return 0
    alike = set(kinds[:first].tolist()) <= set(kinds[first:].tolist())
    return first if alike and found.length == 1 else 0


def _whole_sequence(found: Repetition, exactly: Ints, duration: Ints) -> Repetition:
    """The longer sequence that names and inputs tell, where it holds the same work: layers of one type are not each an
    execution."""
    longer = find_repetition(exactly, duration)
    if longer is None or longer.length <= found.length:
        return found
    held, known = (float(duration[each.first : each.last].sum()) for each in (longer, found))
    return longer if held >= section("repetition")["steady_share"] * known else found


def measured_in_a_row(kinds: Ints, work: Floats) -> int | None:
    """Where the first of several kernels begins that were launched many times in a row, if these runs hold nearly all
    work: of each kernel one run, as a network has many of the kernel that it mostly consists of."""
    limits = section("benchmark")
    starts, stops = _alike(kinds, 1)
    many = stops + 1 - starts >= limits["launches"]
    measured = kinds[starts[many]]
    held = float((work[stops + 1] - work[starts])[many].sum())
    several = 1 < len(measured) == len(set(measured.tolist()))
    return int(starts[many][0]) if several and held >= limits["one_type_share"] * work[-1] else None


def repeats_in_parts(kinds: Ints, duration: Ints) -> bool:
    """Whether stretches that each repeat a sequence of their own hold most of the work: a program in phases."""
    limits = section("repetition")
    least, held = int(limits["executions"]), np.zeros(len(kinds) + 1, np.int64)
    for length in _lengths(kinds, int(limits["candidates"])):
        starts, stops = _alike(kinds, length)
        often = stops - starts >= (least - 1) * length
        np.add.at(held, starts[often], 1)
        np.add.at(held, stops[often] + length, -1)
    inside = np.cumsum(held[:-1]) > 0
    return float(duration[inside].sum()) >= limits["covered_share"] * float(duration.sum()) > 0


def find_repetition(kinds: Ints, duration: Ints) -> Repetition | None:
    """The sequence of kernels that recurs over most of the work; None where none does. Distances between single kernels
    tell its length; where each comes many times in it, that of all of them at once."""
    found = _of_lengths(kinds, duration, _lengths(kinds, int(section("repetition")["candidates"])))
    return found or _of_lengths(kinds, duration, _distances(kinds))


def _of_lengths(kinds: Ints, duration: Ints, lengths: list[int]) -> Repetition | None:
    """The one of these lengths that recurs over most of the work."""
    limits, size = section("repetition"), len(kinds)
    least = int(limits["executions"])
    work = np.concatenate((np.zeros(1), np.cumsum(duration.astype(np.float64))))
    best: Repetition | None = None
    left = 0.0
    covered = limits["covered_share"] * work[-1]
    for length in lengths:
        if length * least > size:
            continue
        starts, stops = _alike(kinds, length)
        whole = stops - starts >= length
        if not whole.any():
            continue
        starts, stops = _of_one_sequence(kinds, starts[whole], stops[whole], length)
        first, last = int(starts[0]), int(stops[-1]) + length
        held = float((stops - starts).sum()) + length
        mine = float(work[last] - work[first])
        if last - first < least * length or held < limits["steady_share"] * (last - first) or mine < covered:
            continue
        known = 0.0 if best is None else float(work[best.last] - work[best.first])
        without = 1.0 - held / (last - first)
        # a run of like kernels inside the sequence leaves out what lies between two runs; the sequence leaves nothing
        fuller = without < left / 2 and 1.02 * mine >= known
        if best is None or mine > 1.02 * known or fuller:
            best, left = Repetition(first, last, length), without
    return best


def _alike(kinds: Ints, length: int) -> tuple[Ints, Ints]:
    """Where stretches start and stop in which each kernel is like the one `length` places behind it."""
    same = kinds[length:] == kinds[:-length]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    return edges[::2], edges[1::2]


def _of_one_sequence(kinds: Ints, starts: Ints, stops: Ints, length: int) -> tuple[Ints, Ints]:
    """The stretches that repeat the same kernels as the longest of them: two loops in turn are not one."""
    mark = (kinds.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mark ^ (mark >> np.uint64(29)))))
    made_of = sums[starts + length] - sums[starts]
    same = made_of == made_of[int(np.argmax(stops - starts))]
    return starts[same], stops[same]


def _lengths(kinds: Ints, most: int) -> list[int]:
    """Candidate lengths, shortest first: the usual distances between kernels that are alike, rare ones first."""
    order = np.argsort(kinds, kind="stable")
    sorted_kinds = kinds[order]
    bounds = np.flatnonzero(np.diff(sorted_kinds)) + 1
    found: dict[int, None] = dict.fromkeys((1, 2))
    for places in sorted(np.split(order, bounds), key=len):
        if len(places) < 3:
            continue
        values, counts = np.unique(np.diff(places), return_counts=True)
        found.update(dict.fromkeys(values[np.argsort(-counts, kind="stable")[:2]].tolist()))
        apart = places[2:] - places[:-2]
        found[int(np.median(apart))] = None
        for many in range(2, min(_MOST_ALIKE, len(places) // 2) + 1):
            # a kernel that the sequence launches so many times comes back in as regular steps as the sequence
            values, counts = np.unique(places[many:] - places[:-many], return_counts=True)
            if counts.max() >= section("repetition")["steady_share"] * counts.sum():
                found[int(values[counts.argmax()])] = None
                break
        if len(found) >= most:
            break
    return sorted(found)


def _distances(kinds: Ints) -> list[int]:
    """The shortest of the distances at which most kernels are like the one so far behind, among those at which a
    sequence comes often enough. Each kind is a direction of its own in the plane: where all are alike the products of
    kernels that far apart add up, which a Fourier transform tells of all distances at once."""
    most = len(kinds) // int(section("repetition")["executions"])
    if most < 3:
        return []
    of = np.unique(kinds, return_inverse=True)[1]
    golden = (5**0.5 - 1) / 2
    turned = np.fft.fft(np.exp(2j * np.pi * golden * of), 2 * len(kinds))
    together = np.fft.ifft(np.abs(turned) ** 2).real[: most + 1] / (len(kinds) - np.arange(most + 1))
    together[:3] = -1.0  # runs of one or two kernels are looked for anyway
    return [int(each) for each in np.flatnonzero(together >= _AS_ALIKE * together.max())[:_FEW_DISTANCES]]
