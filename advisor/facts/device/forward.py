"""Forward passes: which collectives run in them, as those of sharded operators do and gradients never, and how many of
them one update of the weights has."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.facts.collectives.exchanges import REDUCTIONS, kind_of
from advisor.facts.operators.kinds import is_update
from advisor.facts.recording.limits import told_by
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Kernels

LONG = limit("forward", "long_share")
"""Part of the longest stretch without gradients that a forward pass takes at least."""
LEAD = limit("forward", "lead_share")
"""Part of it that may still be the end of backward: kernels that multiply bear no gradient's name."""
FEWEST = int(limit("forward", "fewest"))
"""Collectives that computing led up to, of a group that is judged."""

_VERSION = re.compile(r"Grad|V[0-9]+")


def communicator(name: str) -> str:
    """hcom_allReduce__586_0_1 belongs to communicator 586; "" where the name does not tell."""
    return name.rpartition("/")[2].partition("__")[2].partition("_")[0]


def gradients(kernels: Kernels) -> Mask:
    """Which kernels compute a gradient or update a weight, by their types and names."""
    training = told_by("training")
    by_type = np.array([training(s.type) for s in kernels.signatures], bool)
    told: Mask = by_type[kernels.signature] | kernels.named(training)
    return told


def in_forward(kernels: Kernels, gradient: Mask, work: Ints, talks: Ints) -> dict[str, float]:
    """Communicator -> the part of its reductions that start in a forward pass, of those that computing led up to: one
    that waited in the queue behind another tells nothing of when it was launched. A forward pass is a long stretch of
    kernels of which none is a `gradient` (of all kernels: `gradients`). `work` and `talks` are the places of computing
    kernels and of collectives, in order of start. Nothing where no kernel, or each, has a name of that kind."""
    passes = _passes(kernels, gradient[work], work)
    if passes is None:
        return {}
    begin, end = passes
    found: dict[str, list[bool]] = defaultdict(list)
    of: dict[str, list[int]] = defaultdict(list)
    for talk in talks.tolist():
        name = kernels.names[kernels.name[talk]]
        if kind_of(name) in REDUCTIONS:
            of[communicator(name)].append(talk)
    starts, ends = kernels.start[work], np.maximum.accumulate(kernels.end[work])
    for group, mine in of.items():
        start = kernels.start[mine]
        before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(kernels.end[mine])[:-1]))
        done = np.searchsorted(ends, start, "right") > np.searchsorted(starts, before, "left")
        at = np.searchsorted(begin, start[done], "right") - 1
        found[group] = ((at >= 0) & (start[done] <= end[at])).tolist()
    return {group: float(np.mean(inside)) for group, inside in found.items() if len(inside) >= FEWEST}


def rounds(kernels: Kernels, gradient: Mask, work: Ints) -> tuple[Ints, int]:
    """(start and end of each forward pass, nanoseconds; runs of the optimizer with a forward pass between each two);
    none and 0 where no kernel's name tells."""
    by_type = np.array([is_update(s.type) for s in kernels.signatures], bool)
    at, passes = work[by_type[kernels.signature[work]]], _passes(kernels, gradient[work], work)
    if passes is None:
        return np.zeros((0, 2), np.int64), 0
    return np.stack(passes, axis=1), len(np.unique(np.searchsorted(passes[0], kernels.start[at])))


def _passes(kernels: Kernels, gradient: Mask, work: Ints) -> tuple[Ints, Ints] | None:
    """Starts and ends of the forward passes, nanoseconds; None where names do not tell which of these are gradients."""
    if not gradient.any() or gradient.all():
        return None
    run = np.cumsum(gradient)[~gradient]
    forward = work[~gradient]
    _, first = np.unique(run, return_index=True)
    done = np.cumsum(kernels.duration[forward])
    before, lasts = done[first] - kernels.duration[forward[first]], np.add.reduceat(kernels.duration[forward], first)
    own = _have_gradients(kernels)[kernels.signature[forward]]
    if own.any():
        lasts = np.where(np.logical_or.reduceat(own, first), lasts, 0.0)
    long = lasts >= LONG * lasts.max()
    begin = np.minimum(np.searchsorted(done, before + LEAD * lasts), len(forward) - 1)
    last = np.concatenate((first[1:], [len(forward)])) - 1
    return kernels.start[forward[begin[long]]], kernels.end[forward[last[long]]]


def _have_gradients(kernels: Kernels) -> Mask:
    """Which signatures are of types that have a gradient of their own, as RmsNorm has RmsNormGrad: a forward pass runs
    such, while products that follow one another in backward bear no gradient's name however long they take."""
    types = [s.type for s in kernels.signatures]
    bases = {_VERSION.sub("", kind) for kind in types if "Grad" in kind}
    return np.array(["Grad" not in kind and _VERSION.sub("", kind) in bases for kind in types], bool)
