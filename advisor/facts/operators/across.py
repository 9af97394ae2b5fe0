"""Ranks side by side where sums of their kernels are all that is known.

A type that every rank calls as often does the same work everywhere, or on inputs of another size. Nearly all types by
nearly the same factor are a device's doing; a few of them, or attention more than products, are the inputs'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from advisor.facts.base import fact
from advisor.facts.operators.kinds import is_fused_exchange
from advisor.facts.operators.reduction import Operators
from advisor.knowledge.measuring import limit
from advisor.model import Fact, Subject

EDGE = limit("lateness", "edge")
"""Part of the kernel time left out at either end of what its types take: one odd type does not speak for a device."""


def measure_across(found: Mapping[int, Operators]) -> Iterator[Fact]:
    """What each rank takes for the types that all ranks call as often, against the median of the others."""
    if len(found) < 2:
        return
    calls = {rank: _calls(o) for rank, o in found.items()}
    first = next(iter(calls.values()))
    shared = [name for name in first if len({c[name][0] if name in c else -1.0 for c in calls.values()}) == 1]
    times = np.array([[c[name][1] for name in shared] for c in calls.values()])
    for row, (rank, o) in enumerate(found.items()):
        whole = sum(us for _, us in calls[rank].values())
        if not shared or 2 * times[row].sum() < whole:
            continue  # most of the work is another one
        usual = np.median(np.delete(times, row, axis=0), axis=0)
        ratio = times[row] / usual
        order = np.argsort(ratio)
        mass = np.cumsum(usual[order])
        low, high = (min(int(np.searchsorted(mass, mass[-1] * part)), len(order) - 1) for part in (EDGE, 1 - EDGE))
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("rank.same_calls_low", subject, float(ratio[order[low]]), *o.sources, samples=len(shared))
        yield from fact("rank.same_calls_high", subject, float(ratio[order[high]]), *o.sources, samples=len(shared))


def measure_waits_inside(found: Mapping[int, Operators], steps: Mapping[int, float]) -> Iterator[Fact]:
    """By how much the others' kernels that exchange inside outlast those of the rank whose own are shortest: whoever
    comes last to an exchange waits for nobody in it. `steps`: over how many steps a rank's sums go."""
    inside = {rank: _exchanging(o) for rank, o in found.items()}
    if len(found) < 2 or len({tuple((name, calls) for name, (calls, _) in i.items()) for i in inside.values()}) > 1:
        return  # other calls are other work
    took = {rank: sum(us for _, us in i.values()) / steps[rank] for rank, i in inside.items()}
    last = min(took, key=took.__getitem__)
    others = float(np.median([us for rank, us in took.items() if rank != last]))
    if took[last] and others > took[last]:
        subject = Subject("rank", str(last), (last,))
        yield from fact("rank.waited_for_inside_us", subject, others - took[last], *found[last].sources)


def _exchanging(o: Operators) -> dict[str, tuple[float, float]]:
    """Type -> (calls, microseconds) of what computes and exchanges in one."""
    return {
        name: (float(row.count.sum()), float(row.total_us.sum()))
        for name, row in sorted(o.types.items())
        if is_fused_exchange(name) and not row.communication
    }


def _calls(o: Operators) -> dict[str, tuple[float, float]]:
    """Type -> (calls, microseconds) of all that was recorded; those in which no rank waits for another one."""
    return {
        name: (float(row.count.sum()), us)
        for name, row in o.types.items()
        if not (row.communication or is_fused_exchange(name))
        and (us := float(row.total_us.sum())) > 0 < row.count.sum()
    }
