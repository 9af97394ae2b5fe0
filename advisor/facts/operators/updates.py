"""The optimizer's update among a rank's kernels: by its name, and by its place where separate operations do it.

What follows the last kernel of the backward pass is the update. It is not fused where the same sequence of elementwise
operations recurs there, once for every weight.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Mask
from advisor.facts.device.kernel_time import Timeline, sums
from advisor.facts.operators.kinds import (
    dtypes,
    elements,
    is_cube,
    is_fused_update,
    is_update,
    is_vector,
    moved_bytes,
    shapes,
)
from advisor.facts.operators.shapes.work import FULL, LAUNCH_US, REACH
from advisor.facts.recording.steady import find_repetition
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Kernels, Signature

_BACKWARD = re.compile(r"Grad(V\d+|D|WithBN)?$|Backprop|Backward", re.IGNORECASE)
_MEASURES = re.compile(r"^Foreach_?(Norm|NonFinite)", re.IGNORECASE)
"""They look at gradients before an update, to clip or to unscale them, and write no weight."""
_ELEMENTWISE = re.compile(
    r"^(aclnn|inplace)*(Muls?|Adds?|Subs?|Div|RealDiv|DivNoNan|Sqrt|Rsqrt|Square|Pow|Addc?Mul|Addc?Div|Axpy|AxpyV2|Lerp|"
    r"Neg|Reciprocal|Maximum|Minimum|Assign(Add|Sub)?|Cast|ZerosLike|Fill|TensorMove)(V\d+)?$",
    re.IGNORECASE,
)

_PLAIN = re.compile(r"Foreach(Add|Sub|Mul|Lerp|Copy|Zero)(List|Scalar|ScalarList|Inplace)*(V\d+)?", re.IGNORECASE)
_NEAR, _MOST = limit("updates", "near"), limit("updates", "most")
"""How far from a whole multiple of all weights what an operation writes may be, and the part of all that is written
that has to be such multiples."""


class SmallUpdates(Struct, frozen=True):
    """Update kernels that spend their time on starting and stopping, whatever they move; one value a step."""

    kernels: Floats
    us: Floats
    moving_us: Floats
    """What their bytes need at the card's memory bandwidth."""


class Updates(Struct, frozen=True):
    """Which kernels update weights, and how many separate ones there are for each weight; 0 where they have names of
    their own."""

    kernels: Mask
    per_weight: int = 0


def find_updates(timeline: Timeline, types: list[str], type_of: np.ndarray) -> Updates:
    """Update kernels by the names of their types; unless one of them does the whole update, those of an update that
    nobody fused as well: the norm of gradients bears the optimizer's name, however the weights are updated."""
    named = np.array([is_update(name) for name in types], bool)[type_of] & ~timeline.communication
    fused = np.array([is_fused_update(name) for name in types], bool)[type_of] & named
    if fused.any() or not timeline.whole:
        return Updates(named)
    separate = _behind_backward(timeline, types, type_of)
    measures = np.array([bool(_MEASURES.search(name)) for name in types], bool)[type_of]
    return replace(separate, kernels=separate.kernels | (named & ~measures))


def passes(kernels: Kernels, update: Mask) -> float | None:
    """How often the update reads or writes a tensor as large as all weights: elements that its kernels move ÷ those
    that one of its operations writes once. None where shapes are not told."""
    moved, written = 0.0, defaultdict[str, float](float)
    counts = np.bincount(kernels.signature[update], minlength=len(kernels.signatures))
    for index in np.flatnonzero(counts).tolist():
        signature = kernels.signatures[index]
        read, wrote = shapes(signature.input_shapes), shapes(signature.output_shapes)
        if not read or not wrote:
            return None
        moved += float(counts[index]) * sum(map(elements, (*read, *wrote)))
        written[signature.type] += float(counts[index]) * sum(map(elements, wrote))
    weights = _written_once(list(written.values()))
    return moved / weights if weights > 0 else None


def _written_once(written: list[float]) -> float:
    """The elements of all weights, of what each type of operation writes: an operation that a step does several times
    writes a whole multiple of them. The middle one where they share no such measure."""
    for one in sorted(written, reverse=True):
        times = [each / one for each in written]
        fitting = (each for each, n in zip(written, times, strict=True) if n > 0.5 and abs(n - round(n)) <= _NEAR * n)
        if one > 0 and sum(fitting) >= _MOST * sum(written):
            return one
    return float(np.median(written)) if written else 0.0


def is_plain(types: Collection[str]) -> bool:
    """Whether these kernels of an update take lists of weights, and only sums and products of them, as SGD's do: what
    is called fused of such an optimizer runs the same operations on joined weights."""
    return bool(types) and all(_PLAIN.fullmatch(name) for name in types)


def written_back(timeline: Timeline, update: Mask, conversion: Mask) -> Mask:
    """The conversions behind a step's first update kernel: of updated weights, kept in float32, into the type of data
    that computes. Who updates in mixed precision writes both."""
    kernels, of = timeline.kernels, timeline.windows.of
    if not timeline.whole or not update.any():
        return np.zeros(len(kernels), bool)
    first = np.full(len(timeline.windows.names), np.iinfo(np.int64).max)
    np.minimum.at(first, of[update], kernels.start[update])
    found: Mask = conversion & (kernels.start > first[of])
    kinds = np.unique(kernels.signature[found]).tolist()
    return found & np.isin(kernels.signature, [kind for kind in kinds if _narrows(kernels.signatures[kind])])


def of_optimizer(timeline: Timeline, types: list[str], type_of: np.ndarray, update: Mask) -> Mask:
    """Products in float32 behind the first update kernel and the last kernel of the backward pass of a step: the
    optimizer multiplies there (roots of preconditioners, orthogonal updates), and no pass over the network does."""
    kernels, of = timeline.kernels, timeline.windows.of
    backward = np.array([bool(_BACKWARD.search(name)) for name in types], bool)[type_of] & ~timeline.communication
    if not timeline.whole or not update.any() or not backward.any():
        return np.zeros(len(kernels), bool)
    ends = np.full(len(timeline.windows.names), np.iinfo(np.int64).max)
    np.minimum.at(ends, of[update], kernels.start[update])
    last = np.full(len(ends), np.iinfo(np.int64).min)
    np.maximum.at(last, of[backward], kernels.start[backward])
    full = [is_cube(s) and (dtypes(s.input_dtypes) or ("",))[0] in FULL for s in kernels.signatures]
    found: Mask = np.array(full, bool)[kernels.signature] & (kernels.start > np.maximum(ends, last)[of])
    return found


def _narrows(signature: Signature) -> bool:
    """Whether it writes fewer bits than it reads, or does not tell."""
    into, out_of = dtypes(signature.input_dtypes), dtypes(signature.output_dtypes)
    return not (into and out_of) or (into[0] in FULL and out_of[0] not in FULL)


def small_updates(timeline: Timeline, update: Mask, carries: float) -> SmallUpdates:
    """Of the update's kernels those that are shorter than a launch and move their bytes slower than streaming kernels
    do, where the memory carries so many bytes per second. Where shapes or types of data are not told nobody knows what
    they move: they do not count."""
    kernels, steps = timeline.kernels, len(timeline.windows.names)
    told = {s: moved_bytes(kernels.signatures[s]) for s in np.unique(kernels.signature[update]).tolist()}
    needs = np.zeros(len(kernels.signatures))
    needs[list(told)] = [1e6 * moved / carries for moved in told.values()]
    need = needs[kernels.signature]
    small = update & (need > 0) & (kernels.duration < LAUNCH_US) & (need < REACH * kernels.duration)
    of = timeline.windows.of[small]
    return SmallUpdates(sums(of, None, steps), sums(of, kernels.duration[small], steps), sums(of, need[small], steps))


def _behind_backward(timeline: Timeline, types: list[str], type_of: np.ndarray) -> Updates:
    kernels, of = timeline.kernels, timeline.windows.of
    known = (kernels.start >= 0) & ~timeline.communication
    steps = len(timeline.windows.names)
    backward = np.array([bool(_BACKWARD.search(name)) for name in types], bool)[type_of] & known
    nothing = Updates(np.zeros(len(kernels), bool))
    if not backward.any():
        return nothing
    cube = np.array([is_cube(s) for s in kernels.signatures], bool)[kernels.signature] & known
    last = np.full(steps, np.iinfo(np.int64).max)
    for step in np.unique(of[backward]).tolist():
        last[step] = kernels.start[(backward | cube) & (of == step)].max()
    simple = np.array([bool(_ELEMENTWISE.match(name)) for name in types], bool)[type_of]
    vector = np.array([is_vector(s) for s in kernels.signatures], bool)[kernels.signature]
    behind = known & (kernels.start > last[of])
    chosen = behind & simple & vector
    places = np.flatnonzero(chosen)
    if places.size < behind.sum() / 2:
        return nothing
    found = find_repetition(type_of[places], (kernels.end - kernels.start)[places])
    # what recurs only from step to step is done once a step, and a single operation scales or clips
    if found is None or places.size < 2 * found.length * len(np.unique(of[places])):
        return nothing
    several = len(np.unique(type_of[places[found.first : found.first + found.length]])) > 1
    return Updates(chosen & several, found.length if several else 0)
