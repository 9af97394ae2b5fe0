"""Patterns among one rank's kernels: odd calls, runs of small ones, the tail of the step, changing shapes, gates."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.numbering import beginnings, distinct, in_groups, numbered
from advisor.facts.device.kernel_time import Timeline, sums
from advisor.facts.operators.kinds import (
    activation,
    elements,
    is_conversion,
    is_fetch,
    is_product,
    is_reduction,
    is_relayout,
    is_update,
    is_vector,
    shapes,
)
from advisor.facts.operators.shapes.work import LAUNCH_US
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Kernels, operator_name

MOST = 20
"""Types and operators reported: the twenty most expensive ones (S67)."""
FEWEST_CALLS = int(limit("kernels", "fewest_calls"))
"""Calls of one kind below which none of them can be called an outlier."""
MODE_STEPS, MODE_CALLS = limit("kernels", "mode_steps"), limit("kernels", "mode_calls")
"""Parts of the steps and of the calls beyond which long calls are a second mode of their kind."""


class Outlier(Struct, frozen=True):
    """A call far above other calls of the same operator type, shapes and data types."""

    operator: str
    type: str
    shape: str
    calls: int
    typical_us: float
    slowest_us: float
    excess_us: float
    step: str
    start_ns: int
    communication: bool = False


class SmallRuns(Struct, frozen=True):
    """Runs of small vector kernels, per step arrays."""

    kernels: Floats
    span_us: Floats
    saving_us: Floats
    example: str
    count: int
    spared: Floats
    """Kernels less, each run in one."""
    spared_us: Floats
    """What these run themselves, without the gaps between them."""


def outliers(timeline: Timeline, type_of: Ints, types: list[str]) -> tuple[Outlier, ...]:
    """Calls above twice the typical duration of their kind, the costliest per operator."""
    kernels = timeline.kernels
    kind = _kinds_of(kernels)
    order = in_groups(kind, kernels.by_length())
    alike, duration = kind[order], kernels.duration[order]
    first = beginnings(alike)
    size = np.diff(np.append(first, alike.size))
    calls, typical = size, duration[first + size // 2]
    usual = typical[kind]
    far = (kernels.duration > 2 * usual) & (calls[kind] >= FEWEST_CALLS) & (usual > 0)
    odd = np.flatnonzero(far & ~_recurring(timeline, kind, far, calls)[kind] & _comparable(timeline, kind))
    odd = odd[~timeline.communication[odd]]
    found: dict[str, Outlier] = {}
    excess: dict[str, float] = defaultdict(float)
    for i in odd[np.argsort(-(kernels.duration[odd] - usual[odd]), kind="stable")][:1000].tolist():
        name = operator_name(kernels.names[kernels.name[i]])
        excess[name] += float(kernels.duration[i] - usual[i])
        if name not in found and len(found) < MOST:
            s = kernels.signatures[kernels.signature[i]]
            found[name] = Outlier(
                name, types[type_of[i]], s.input_shapes, int(calls[kind[i]]), float(usual[i]),
                float(kernels.duration[i]), 0.0, timeline.windows.names[timeline.windows.of[i]], int(kernels.start[i]),
            )  # fmt: skip
    rows = [replace(o, excess_us=excess[name]) for name, o in found.items()]
    return tuple(sorted(rows, key=lambda o: -o.excess_us)[: MOST // 2])


def _kinds_of(kernels: Kernels) -> Ints:
    """Number of each kernel's kind: calls of one kind have the same type, shapes and data types; where no shapes were
    recorded, nothing says that two operators of a type do the same, so the name counts as well."""
    names = np.where(kernels.shaped(), 0, kernels.name.astype(np.int64) + 1)
    keys = kernels.signature.astype(np.int64) * (len(kernels.names) + 1) + names
    return numbered(keys)[1]


def _comparable(timeline: Timeline, kind: Ints) -> Mask:
    """Which calls have others that do the same: of those without shapes, only what other steps call by the same name.
    Within a step one name stands for products of every size."""
    steps = len(timeline.windows.names)
    with_any = np.bincount(distinct(kind * steps + timeline.windows.of) // steps)
    comparable: Mask = timeline.kernels.shaped() | (with_any[kind] > 1)
    return comparable


def _recurring(timeline: Timeline, kind: Ints, far: Mask, calls: Ints) -> Mask:
    """Kinds of which long calls are nothing odd: several come in most steps, or make a good part of all calls. What
    such a kernel computes depends on its data, as attention does on its mask."""
    many = np.bincount(kind[far], minlength=calls.size)
    steps = len(timeline.windows.names)
    with_long = np.bincount(distinct(kind[far] * steps + timeline.windows.of[far]) // steps, minlength=calls.size)
    with_any = np.bincount(distinct(kind * steps + timeline.windows.of) // steps, minlength=calls.size)
    often = (with_any > 1) & (with_long > MODE_STEPS * with_any)
    recurring: Mask = (many > 1) & (often | (many > MODE_CALLS * calls))
    return recurring


def tail_us(timeline: Timeline, update: Mask) -> Floats:
    """Per step: from the end of the last kernel that is neither update nor communication to the step's last end."""
    kernels, windows = timeline.kernels, timeline.windows
    steps = len(windows.names)
    last_all, last_main = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    known = kernels.start >= 0
    np.maximum.at(last_all, windows.of[known], kernels.end[known])
    main = known & ~update & ~timeline.communication
    np.maximum.at(last_main, windows.of[main], kernels.end[main])
    has_update = np.bincount(windows.of[update], minlength=steps) > 0
    result: Floats = np.where((last_main > 0) & has_update, (last_all - last_main) / 1000, np.nan)
    return result


def idle_before_us(timeline: Timeline, which: Mask) -> Floats:
    """Per step: how long the device idles directly before these kernels, microseconds; the step's first left out."""
    kernels, of = timeline.kernels, timeline.windows.of
    order = np.flatnonzero(kernels.start >= 0)
    order = order[np.argsort(kernels.start[order], kind="stable")]
    start, step = kernels.start[order], of[order]
    idle = np.zeros(len(order))
    idle[1:] = np.maximum(start[1:] - np.maximum.accumulate(kernels.end[order])[:-1], 0) / 1000
    follows = np.zeros(len(order), bool)
    follows[1:] = step[1:] == step[:-1]
    mine = which[order] & follows
    return sums(step[mine], idle[mine], len(timeline.windows.names))


def small_runs(timeline: Timeline, type_of: Ints, types: list[str], update: Mask) -> tuple[SmallRuns, Mask]:
    """Runs of small kernels, and which kernels stand in them.

    Three or more vector kernels in a row on one stream, each shorter than a launch, with no more between them, of which
    each takes what the one before gives. A row ends with a kernel that reduces: what follows needs all of its result.
    Who changes the layout puts elements elsewhere: no row of kernels that keep them in place goes through it.
    The update has a remedy of its own."""
    kernels, windows = timeline.kernels, timeline.windows
    steps = len(windows.names)
    zero = np.zeros(steps)
    none = SmallRuns(zero, zero, zero, "", 0, zero, zero), np.zeros(len(kernels), bool)
    fit = np.array([
        is_vector(s) and not is_update(s.type) and not is_fetch(s.type) and not is_relayout(s.type)
        for s in kernels.signatures
    ])  # fmt: skip
    reduces = np.array([is_reduction(s) for s in kernels.signatures])[kernels.signature]
    small = fit[kernels.signature] & ~update & (kernels.duration < LAUNCH_US) & (kernels.start >= 0)
    order = np.argsort(kernels.stream, kind="stable")
    order = order[kernels.start[order] >= 0]
    if order.size < 3 or not timeline.whole:
        return none
    chained = np.zeros(order.size, bool)
    before, here = order[:-1], order[1:]
    chained[1:] = (
        small[before] & ~reduces[before] & small[here] & (kernels.stream[before] == kernels.stream[here])
        & (windows.of[before] == windows.of[here])
        & ((kernels.start[here] - kernels.end[before]) < LAUNCH_US * 1000)
    )  # fmt: skip
    chained[1:][chained[1:]] = _feeds(kernels, before[chained[1:]], here[chained[1:]])
    first = np.flatnonzero(small[order] & ~chained)
    if not first.size:
        return none
    breaks = np.flatnonzero(~chained)
    last = np.append(breaks[1:] - 1, order.size - 1)[np.searchsorted(breaks, first)]
    length = last - first + 1
    long = length >= 3
    first, last, length = first[long], last[long], length[long]
    step = windows.of[order[first]]
    span = (kernels.end[order[last]] - kernels.start[order[first]]) / 1000
    example = ""
    if first.size:
        triples = type_of[order[first[:20_000, None] + np.arange(3)]]
        _, at, seen = np.unique(triples @ [len(types) ** 2, len(types), 1], return_index=True, return_counts=True)
        most = triples[at[seen == seen.max()].min()]
        example = " → ".join(types[t] for t in most.tolist())
    edges = np.bincount(first, minlength=order.size + 1) - np.bincount(last + 1, minlength=order.size + 1)
    inside = np.zeros(len(kernels), bool)
    inside[order[np.cumsum(edges)[:-1] > 0]] = True
    kept: Floats = 1 / length.astype(np.float64)
    ends = np.append(0.0, np.cumsum(kernels.duration[order]))
    running = ends[last + 1] - ends[first]
    found = SmallRuns(
        sums(step, length.astype(np.float64), steps), sums(step, span, steps),
        sums(step, span * (1 - kept), steps), example, int(first.size),
        sums(step, (length - 1).astype(np.float64), steps), sums(step, running * (1 - kept), steps),
    )  # fmt: skip
    return found, inside


def _feeds(kernels: Kernels, before: Ints, here: Ints) -> Mask:
    """Whether each kernel may take what the one before gives: a tensor of as many elements, however it is viewed. Where
    shapes are not told it may."""
    size = len(kernels.signatures)
    pairs, at = np.unique(kernels.signature[before] * size + kernels.signature[here], return_inverse=True)
    told = np.ones(pairs.size, bool)
    for place, pair in enumerate(pairs.tolist()):
        given = shapes(kernels.signatures[pair // size].output_shapes)
        taken = shapes(kernels.signatures[pair % size].input_shapes)
        told[place] = not given or not taken or not {*map(elements, given)}.isdisjoint(map(elements, taken))
    found: Mask = told[at]
    return found


def dynamic_share(kernels: Kernels, main: Mask) -> float | None:
    """Share of kernels compiled for any shape (OP State), where told."""
    told = np.array([s.state.lower() in ("dynamic", "static") for s in kernels.signatures])[kernels.signature] & main
    if not told.any():
        return None
    dynamic = np.array([s.state.lower() == "dynamic" for s in kernels.signatures])[kernels.signature]
    return float(dynamic[told].mean())


def changing_operators(kernels: Kernels, main: Mask) -> tuple[float | None, tuple[tuple[str, int, float], ...]]:
    """(mean number of shapes an operator is called with, the costliest operators with more than one). Only graph
    nodes have names of their own; a name shared by many calls with many shapes says nothing."""
    if not any(s.input_shapes for s in kernels.signatures):
        return None, ()
    names, of_name = kernels.operators()
    operator = of_name[kernels.name[main]]
    nodes = np.array(["/" in name and "-op" in name for name in names])
    if not nodes.any():
        return None, ()
    size = len(kernels.signatures)
    pairs = distinct(operator * size + kernels.signature[main])
    variants = np.bincount(pairs // size, minlength=len(names))
    total = np.bincount(operator, kernels.duration[main], len(names))
    many = [i for i in np.argsort(-total, kind="stable").tolist() if variants[i] > 1 and nodes[i]][: MOST // 2]
    called = (variants > 0) & nodes
    mean = float(variants[called].mean()) if called.any() else None
    return mean, tuple((names[i], int(variants[i]), float(total[i])) for i in many)


def gating(timeline: Timeline) -> Mask | None:
    """Which activations are multiplied with something by the next kernel on their stream, conversions left out, as a
    gate is; None where the order is not told."""
    if not timeline.whole:
        return None
    kernels = timeline.kernels
    found = np.zeros(len(kernels), bool)
    activates, multiplies, converts = (
        np.array([bool(of(s.type)) for s in kernels.signatures], bool) for of in (activation, is_product, is_conversion)
    )
    if not (activates.any() and multiplies.any()):
        return found
    order = np.lexsort((kernels.start, kernels.stream))
    order = order[(kernels.start[order] >= 0) & ~converts[kernels.signature[order]]]
    first, then = order[:-1], order[1:]
    beside = kernels.stream[first] == kernels.stream[then]
    found[first] = activates[kernels.signature[first]] & multiplies[kernels.signature[then]] & beside
    return found
