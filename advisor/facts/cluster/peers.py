"""Comparing ranks with their peers, step by step: robust, and never with themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Mask
from advisor.facts.base import Run, computed
from advisor.facts.device.course import COURSE
from advisor.facts.device.speeds import ENDS
from advisor.facts.operators.coverage import in_these_steps, scale_of
from advisor.facts.operators.kinds import is_fetch
from advisor.knowledge.measuring import limit

OTHERWISE = limit("lateness", "otherwise")
"""Calls that take less than this part of what they take elsewhere are other work, where others take longer."""
FEWEST = int(limit("yardsticks", "fewest"))
"""One rank that is faster than all others may be a card of another kind."""
LEAST_SHARE = limit("yardsticks", "least_share")
"""Part of the ranks below which those that are faster are exceptions."""
WHOLE = limit("lateness", "whole")
"""Part of the kernel time that a table of types lists, from which on a type that is not in it does not run."""
SLOWER, APART = limit("yardsticks", "slower"), limit("yardsticks", "apart")
"""How many times as long the others take, and how many times what ranks of either kind differ by that is more."""


def others_median(values: Floats, among: Mask | None = None) -> Floats:
    """For each row the median of the other rows, column by column. Rows are ranks; NaN is not counted. Of the rows that
    are `among` those that show what is usual, where there are such, else of all.

    A row with no finite other row gets NaN. A single outlier among three or more cannot hide in its own reference.
    """
    if among is not None and among.any():
        plain, shown = others_median(values), values[among]
        found = np.where(among[:, None], np.nan, _medians(shown))
        found[among] = others_median(shown)
        return np.asarray(np.where(np.isfinite(found), found, plain))
    result = np.full(values.shape, np.nan)
    known = np.where(np.isfinite(values), values, np.nan)
    others = np.isfinite(known).sum(axis=0) - 1
    order = np.argsort(known, axis=0, kind="stable")  # unknown ones come last
    ordered = np.take_along_axis(known, order, axis=0)
    low, high = np.maximum(others - 1, 0) // 2, np.maximum(others, 0) // 2
    place = np.arange(len(values))[:, None]
    last = max(len(values) - 1, 0)
    # Without element i the k-th of the rest is ordered[k] below i and ordered[k + 1] from i on.
    below, above = (
        np.take_along_axis(ordered, np.minimum(np.where(k < place, k, k + 1), last), axis=0) for k in (low, high)
    )
    np.put_along_axis(result, order, np.where((place <= others) & (others > 0), (below + above) / 2, np.nan), axis=0)
    return result


def medians_of_others(values: Mapping[int, float]) -> dict[int, float]:
    """rank -> the median of what the other ranks have; NaN where there is no other."""
    column = np.fromiter(values.values(), np.float64, len(values))[:, None]
    return dict(zip(values, others_median(column)[:, 0].tolist(), strict=True))


def _medians(values: Floats) -> Floats:
    """The median of each column, NaN not counted; NaN where none is known."""
    found, known = np.full(values.shape[1], np.nan), np.isfinite(values).any(axis=0)
    found[known] = np.nanmedian(values[:, known], axis=0)
    return found


def typical(values: Floats) -> Floats:
    """For each row the median over steps, NaN not counted; of two steps the one nearer to zero, as nobody knows which
    of them is the exception. Rows without a finite value get NaN."""
    result = np.full(len(values), np.nan)
    known = np.isfinite(values)
    for row in np.flatnonzero(known.any(axis=1)).tolist():
        own = values[row, known[row]]
        result[row] = own[np.argmin(np.abs(own))] if len(own) == 2 else np.median(own)
    return result


def held_by_most(values: Sequence[float]) -> float:
    """What more than half of the ranks have at least: what one of them alone has is not the run's. Of two ranks the
    lesser; at least one value."""
    return sorted(values)[(len(values) - 1) // 2]


def excess(values: Floats, among: Mask | None = None) -> Floats:
    """How far each rank is above the median of the others: what it usually is over the steps."""
    return typical(values - others_median(values, among))


def spread(values: Floats) -> float | None:
    """1.4826 × median absolute deviation of the finite values; None for fewer than three."""
    known = values[np.isfinite(values)]
    if len(known) < 3:
        return None
    return float(1.4826 * np.median(np.abs(known - np.median(known))))


@computed
def kernel_speeds(run: Run) -> dict[int, float]:
    """rank -> how much longer the same kernels (type and shapes) take than on the other ranks; 1 is equal.

    Weighted median over signatures of what they usually take here ÷ the median of the other ranks, weighted by time.
    """
    return {rank: _paced(ratio, weights) for rank, (ratio, weights) in _kernel_ratios(run).items()}


def usual_slowness(run: Run) -> dict[int, float]:
    """rank -> how many times as long as elsewhere all its kernels usually take, by their sum: a type that is slow alone
    counts by its time."""
    return {rank: float(us.sum() / (us / ratio).sum()) for rank, (ratio, us) in _kernel_ratios(run).items()}


@computed
def _kernel_ratios(run: Run) -> dict[int, tuple[Floats, Floats]]:
    """rank -> (usual time here ÷ median of the other ranks, microseconds a step) of each signature, no further from 1
    than its shortest or its longest calls are: a card that is slow, now and then or always, makes one end longer at
    least, and none shorter. Kernels of different work may share type and shapes; more of the long kind move what is
    usual alone."""
    calls = _calls(run)
    if len(calls.ranks) < 2 or not calls.durations.size:
        return {}
    shown, usual, ends = yardsticks(run), calls.durations, calls.ends
    among = np.array([rank in shown for rank in calls.ranks])
    ratio = _within_ends(usual / others_median(usual, among), ends / others_median(ends, among))
    found = {}
    for i, rank in enumerate(calls.ranks):
        known = np.isfinite(ratio[i]) & (calls.weights[i] > 0)
        if known.any():
            found[rank] = ratio[i, known], calls.weights[i, known]
    return found


class _Calls(Struct, frozen=True):
    """The calls of all ranks side by side: a row for each rank, a column for each signature."""

    ranks: list[int]
    durations: Floats
    """What a call usually takes, microseconds."""
    weights: Floats
    """All of them, microseconds a step."""
    ends: Floats
    """What the shortest and the longest calls of each signature take, one behind the other."""


@computed
def _calls(run: Run) -> _Calls:
    courses = run.each(COURSE)
    ranks, unknown = sorted(courses), np.full(len(ENDS), np.nan)
    keys = sorted({(name, shapes) for course in courses.values() for name, shapes in course.speed if shapes})
    durations = np.array([[courses[r].speed.get(key, (0.0, np.nan))[1] for key in keys] for r in ranks])
    weights = np.array([[weight(courses[r].speed.get(key)) for key in keys] for r in ranks])
    ends = np.array([[courses[r].ends.get(key, unknown) for key in keys] for r in ranks])
    return _Calls(ranks, durations, weights, ends.reshape(len(ranks), len(keys) * len(ENDS)))


@computed
def yardsticks(run: Run) -> frozenset[int]:
    """The ranks that show what the work needs, where most take longer for the same calls; nobody where the median of
    all shows it.

    A median follows the majority: where most cards are slow, it is slow. But no card computes faster than it can, so
    several that do the same calls in less time, apart from all others by more than these differ among themselves, tell
    how long they take. One alone may be a card of another kind.
    """
    calls = _calls(run)
    if len(calls.ranks) < 2 * FEWEST or not calls.durations.size:
        return frozenset()
    ratio = _within_ends(calls.durations / _medians(calls.durations), calls.ends / _medians(calls.ends))
    pace = np.array([_paced(us, time) for us, time in zip(ratio, calls.weights, strict=True)])
    order = np.argsort(pace, kind="stable")[: int(np.isfinite(pace).sum())]  # unknown ones come last
    pace = pace[order]
    for count in range(max(FEWEST, ceil(LEAST_SHARE * len(order))), ceil(len(order) / 2)):
        fast, slow = pace[:count], pace[count:]
        apart, inside = slow[0] / fast[-1], max(fast[-1] / fast[0], slow[-1] / slow[0])
        if apart >= SLOWER and apart - 1 >= APART * (inside - 1):
            return frozenset(calls.ranks[i] for i in order[:count].tolist())
    return frozenset()


def _paced(ratio: Floats, weights: Floats) -> float:
    """The ratio's median weighted by time; NaN where none is known."""
    known = np.isfinite(ratio) & (weights > 0)
    if not known.any():
        return float("nan")
    order = np.argsort(ratio[known])
    mass = np.cumsum(weights[known][order])
    return float(ratio[known][order][np.searchsorted(mass, mass[-1] / 2)])


def _within_ends(ratio: Floats, ends: Floats) -> Floats:
    """The ratios, limited to what the ends show; as they are where ends are not told.

    No more than the further end, of whose two quantiles the one nearer to equal, for another kind of work may begin
    between them. 1 where some calls are shorter and others longer by more than chance: no card does both."""
    ends = ends.reshape(*ratio.shape, 2, -1)
    high, low = np.nan_to_num(ends, nan=np.inf), np.nan_to_num(ends)
    both = np.isfinite(ends).all((-2, -1)) & (low.min((-2, -1)) < OTHERWISE) & (high.max((-2, -1)) > 1 / OTHERWISE)
    found = np.clip(ratio, np.fmin(low.max(-1).min(-1), 1), np.fmax(high.min(-1).max(-1), 1))
    return np.where(both & np.isfinite(ratio), 1.0, found)


Calls = tuple[Mapping[tuple[str, str], tuple[float, float]], Mapping[str, float]]
"""(type, input shapes) -> (calls a step, usual microseconds); type -> microseconds a step of all other calls."""


@computed
def calls_of(run: Run) -> dict[int, Calls]:
    """rank -> what it calls. Where nobody's kernels were recorded, of tables that count each type, the shapes unknown;
    a table of the largest types alone tells nothing of what others call besides."""
    courses = run.each(COURSE)
    if courses:
        return {rank: (course.speed, course.rest_us) for rank, course in courses.items()}
    found: dict[int, Calls] = {}
    for rank, table in in_these_steps(run).items():
        rows = [row for row in table.types.values() if not row.communication and not is_fetch(row.type)]
        if sum(row.whole_us for row in rows) < WHOLE * float(table.compute_us.sum()):
            continue
        per = scale_of(run, rank, table)
        told = ((row.type, per.per_step(row.count), per.per_step(row.total_us)) for row in rows)
        found[rank] = {(name, ""): (count, us / count) for name, count, us in told if count > 0}, {}
    return found


def weight(entry: tuple[float, float] | None) -> float:
    """Microseconds a step of a signature's kernels: (kernels a step, microseconds each); 0 where there are none."""
    return 0.0 if entry is None else entry[0] * entry[1]
