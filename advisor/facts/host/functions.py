"""Idle time by what the host was in during it, interval by interval: every instant of a stretch has one owner (S38)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import EMPTY, Intervals, complement, covered_in, intersect, subtract, union
from advisor.basics.units import rank_list
from advisor.facts.base import Run, fact, kind
from advisor.facts.device.kernel_time import sums
from advisor.facts.host.owners import LOADER, Owners
from advisor.facts.operators.coverage import scale
from advisor.facts.recording.limits import section
from advisor.facts.step.growth import FEW, ends_of, rises
from advisor.model import RUN, Fact, Source
from advisor.sources.streams.trace import Trace, waits_for_device

GC = re.compile(r"^(gc|Garbage ?Collect.*|.*\bgc\.collect\b.*|GC::.*)$", re.IGNORECASE)
"""Python's search for garbage."""
_CALLS = re.compile(r"@|malloc|(?<![a-z])free|compile", re.IGNORECASE)
"""Calls of the runtime, for memory and for compilation: rules of their own say what these are about."""
_SHOWN = 3
"""As many names of functions are told."""

KINDS = (
    kind(
        "timeline.gap_owner_us",
        "us",
        "run",
        "what the one that owns most of the long stretches has of them a step, wherever they are",
        formula="mean over ranks of long idle stretches ∩ its host events, without those of shorter functions that own "
        "one of the ten longest",
        needs="trace",
    ),
    kind(
        "timeline.gap_owner_least_us",
        "us",
        "run",
        "the same of the rank where it has least of them: what no slow host explains",
        formula="lowest over ranks",
        needs="trace",
    ),
    kind(
        "timeline.gap_owner_growth_us",
        "us",
        "run",
        "what it has of them a step beyond the first steps, where that grows from step to step",
        formula="mean over steps − median of their first quarter, of the rank where it is most; 0 where order and "
        "length have a rank correlation below knowledge_base/measuring.yaml, growth.steadily",
        needs="trace",
    ),
    kind(
        "timeline.gap_owner_waits_us",
        "us",
        "run",
        "part of it in which the host waits for one result of the device after the other, which "
        "timeline.synchronised_us holds",
        needs="trace",
    ),
    kind(
        "timeline.gap_owner_steps_share",
        "ratio",
        "run",
        "in what part of the steps it has half of that at least, on the rank where it has most",
        formula="steps with half of the mean and more (knowledge_base/recording.yaml, idle_places.alike)",
        needs="trace",
    ),
    kind(
        "timeline.function_stall_us",
        "us",
        "run",
        "what functions of the host, other than the one that owns most of the long stretches, cost a step: the device "
        "idles while the host is in them, in no data loader and in no garbage collection",
        formula="mean over steps of the highest rank's long idle stretches ∩ host events of these functions",
        needs="trace",
    ),
    kind("timeline.function_stall_share", "ratio", "run", "the same, share of the step", needs="trace"),
    kind("timeline.function_names", "text", "run", "the longest of these functions", needs="trace"),
    kind("timeline.function_count", "count", "run", "how many functions they are", needs="trace"),
    kind(
        "timeline.function_ranks", "text", "run", "the ranks on which they run, where others hardly do", needs="trace"
    ),
)


class Function(Struct, frozen=True):
    """What one rank's device idles in a function of the host, in long stretches; microseconds."""

    name: str
    us: Floats
    """One value a step."""
    waits_us: Floats
    """What of it is waiting for one result after the other."""


def functions_of(
    trace: Trace,
    owners: Owners,
    longest: list[tuple[int, int]],
    idle: tuple[Ints, Ints, Ints],
    last: Ints,
    least_us: float,
) -> tuple[Function, ...]:
    """Who shares the `idle` stretches (start, end, step; ns) of at least so long: the functions that own one of the
    `longest`, or a part of it. An instant belongs to the loader or to garbage collection first, then to the function
    whose events are shortest, for it says what is done. Windows end at `last`."""
    host = trace.host
    own = {name for start, end in longest for name in _names(owners, start, end, least_us)}
    own = {name for name in own if not _of_a_rule(name)}
    if not own:
        return ()
    taken = np.array([bool(LOADER.search(name) or GC.match(name)) for name in host.names], bool)[host.name]
    return shares_of(trace, own, idle, last, least_us, claimed=union(host.start[taken], host.end[taken]))


def shares_of(
    trace: Trace,
    names: Collection[str],
    idle: tuple[Ints, Ints, Ints],
    last: Ints,
    least_us: float,
    *,
    claimed: Intervals = EMPTY,
    results: Intervals = EMPTY,
) -> tuple[Function, ...]:
    """What each of these functions has of the `idle` stretches of at least so long, but for what is `claimed`: of those
    that are in it at once, the one whose events are shortest. In `results` it waits for one after the other."""
    host = trace.host
    numbers = {name: at for at, name in enumerate(host.names) if name in names}
    mean = {name: float((host.end - host.start)[host.name == at].mean()) for name, at in numbers.items()}
    start, end, step = (of[idle[1] - idle[0] >= 1000 * least_us] for of in idle)
    found = []
    for name in sorted(numbers, key=lambda name: (mean[name], name)):
        chosen = host.name == numbers[name]
        events = union(host.start[chosen], host.end[chosen])
        free = subtract(events, claimed)
        claimed = union(np.concatenate((claimed[0], events[0])), np.concatenate((claimed[1], events[1])))
        waits = sums(step, _within(intersect(free, results), start, end), len(last))
        found.append(Function(name, _per_step(free, start, end, step, last), waits))
    return tuple(found)


def _of_a_rule(name: str) -> bool:
    return waits_for_device(name) or any(one.search(name) for one in (LOADER, GC, _CALLS))


def _names(owners: Owners, start: int, end: int, least_us: float) -> set[str]:
    """Who owns the stretch, and who owns what that leaves of it."""
    name, _ = owners.of(start, end)
    if name is None:
        return set()
    if not name:
        return set(owners.several(start, end))
    low, high = complement(owners.events(name, start, end), start, end)
    left = [(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True) if b - a >= 1000 * least_us]
    return {name}.union(*(_names(owners, a, b, least_us) for a, b in left))


def _within(times: Intervals, start: Ints, end: Ints) -> Floats:
    """How much of these times lies in each stretch, microseconds."""
    us: Floats = covered_in(times, start, end) / 1000
    return us


def _per_step(free: Intervals, start: Ints, end: Ints, step: Ints, last: Ints) -> Floats:
    """Microseconds of each step's stretches; not of the last step's where most lies before a step's first kernel, which
    ends the window before: nothing follows the last."""
    us = _within(free, start, end)
    found = sums(step, us, len(last))
    if len(last) > 1 and 2 * us[end >= last[step]].sum() > us.sum():
        found[-1] = np.nan
    return found


def owner_facts(
    run: Run, owner: str, found: Mapping[int, tuple[tuple[str, ...], tuple[Function, ...]]], sources: tuple[Source, ...]
) -> Iterator[Fact]:
    """What the owner has of long stretches, mean over ranks. `found` has each rank's steps and what those that own one
    of its longest have of them all."""
    whole, waits, often, growth = [], [], [], [0.0]
    for rank, (steps, functions) in found.items():
        per = scale(run, rank, steps)
        part = float(per.chosen.sum()) / per.steps
        own = next((f for f in functions if f.name[:200] == owner), None)
        told = np.zeros(len(steps), bool) if own is None else np.isfinite(own.us) & per.chosen.astype(bool)
        if own is None or not told.any():
            whole.append(0.0)
            waits.append(0.0)
            continue
        us = own.us[told]
        whole.append(part * float(us.mean()))
        waits.append(part * float(own.waits_us[told].mean()))
        growth.append(part * max(float(us.mean()) - ends_of(us)[0], 0.0) if rises(us, FEW) else 0.0)
        often.append((whole[-1], float((us >= section("idle_places")["alike"] * us.mean()).mean())))
    if sum(whole) > 0:
        yield from fact("timeline.gap_owner_us", RUN, float(np.mean(whole)), *sources, samples=len(whole))
        yield from fact("timeline.gap_owner_least_us", RUN, min(whole), *sources, samples=len(whole))
        yield from fact("timeline.gap_owner_growth_us", RUN, max(growth), *sources, samples=len(whole))
        yield from fact("timeline.gap_owner_waits_us", RUN, float(np.mean(waits)), *sources, samples=len(waits))
        yield from fact("timeline.gap_owner_steps_share", RUN, max(often)[1], *sources, samples=len(often))


def function_facts(
    run: Run,
    found: Mapping[int, tuple[tuple[str, ...], tuple[Function, ...]]],
    owner: str | None,
    step_us: float | None,
    sources: tuple[Source, ...],
) -> Iterator[Fact]:
    """What functions other than the `owner` of most of the long stretches cost a step that all ranks take together: the
    mean over steps of the highest rank. `found` has the steps and functions of each rank."""
    by_step: dict[str, list[float]] = defaultdict(list)
    names: dict[str, float] = defaultdict(float)
    means = dict.fromkeys(found, 0.0)
    for rank, (steps, functions) in found.items():
        per = scale(run, rank, steps)
        part = float(per.chosen.sum()) / per.steps
        others = [each for each in functions if each.name[:200] != owner]
        if not others:
            continue
        for each in others:
            of_chosen = each.us[per.chosen.astype(bool)]
            names[each.name] += float(np.nansum(of_chosen))
        rows = np.array([each.us for each in others])
        total = np.where(np.isnan(rows).all(axis=0), np.nan, np.nansum(rows, axis=0))
        chosen = [i for i in np.flatnonzero(per.chosen).tolist() if np.isfinite(total[i])]
        for i in chosen:
            by_step[steps[i]].append(part * float(total[i]))
        means[rank] = part * float(total[chosen].mean()) if chosen else 0.0
    stall = float(np.mean([max(values) for values in by_step.values()])) if by_step else 0.0
    if stall <= 0:
        return
    yield from fact("timeline.function_stall_us", RUN, stall, *sources, samples=len(by_step))
    if step_us:
        yield from fact("timeline.function_stall_share", RUN, stall / step_us, *sources, samples=len(by_step))
    idling = [(name, us) for name, us in sorted(names.items(), key=lambda each: (-each[1], each[0])) if us > 0]
    shown = ", ".join(name[:60] for name, _ in idling[:_SHOWN])
    yield from fact("timeline.function_names", RUN, shown, *sources)
    yield from fact("timeline.function_count", RUN, len(idling), *sources)
    least = section("idle_places")["alike"] * max(means.values())
    ranks = tuple(rank for rank, mean in means.items() if mean >= least)
    yield from fact("timeline.function_ranks", RUN, rank_list(ranks) if len(ranks) < len(means) else None, *sources)
