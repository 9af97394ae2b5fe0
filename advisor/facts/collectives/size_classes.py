"""Sizes are classed before they are averaged: a mean over 512 bytes and 16 MB describes neither."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.facts.base import Run
from advisor.facts.collectives.exposure import exposed_of, joints
from advisor.facts.collectives.joints import Joint
from advisor.facts.collectives.parallelism import partition
from advisor.knowledge.measuring import limit

MANY_TIMES = limit("transfers", "many_times")
"""Messages this many times as large pay so much less start-up for each byte that they show what a link can do."""


class Small(Struct, frozen=True):
    """The small ones among the collectives of one role and kind, a step of a typical rank: microseconds, bytes, bytes
    per second. Bandwidths are size ÷ time inside."""

    name: str
    ranks: tuple[int, ...]
    count: float
    size_bytes: float
    larger_bytes: float
    transfer_us: float
    latency_us: float | None
    exposed_us: float | None
    bandwidth: float
    large_bandwidth: float


def small_beside_larger(run: Run, role: str, kind: str) -> Small | None:
    """Those many times smaller than the others, where they are the most of them; None where sizes are of one class."""
    mine = whole_joints(run, role, kind)
    sizes = [_sizes(joint) for joint in mine]
    largest_small = _largest_small(sizes)
    if largest_small is None:
        return None
    every = np.concatenate(sizes)
    ranks = {rank for joint in mine for rank in joint.ranks}
    inside = [size <= largest_small for size in sizes]
    lasts = np.concatenate([joint.transfer_us for joint in mine])
    small = np.concatenate(inside)
    # of several groups a rank is in those of its own, one or more
    part = np.concatenate([joint.per_step * len(joint.ranks) / len(ranks) for joint in mine])
    transit = np.concatenate([_longest(joint.transit_us) for joint in mine])
    known = np.isfinite(transit[small])
    missing = np.maximum(lasts[small] - transit[small], 0.0)
    at = int(np.flatnonzero(small)[lasts[small].argmax()])
    name = [name for joint in mine for name in joint.names][at]
    exposed = exposed_of(run, role, kind, rows=lambda joint: _sizes(joint) <= largest_small)
    return Small(
        name, tuple(sorted({rank for joint in mine if name in joint.names for rank in joint.ranks})),
        float(part[small].sum()), float(every[small].mean()), float(np.median(every[~small])),
        float((lasts * part)[small].sum()),
        float((missing * part[small]).sum()) if known.all() else None, exposed,
        _rate(every[small], lasts[small]), _rate(every[~small], lasts[~small]),
    )  # fmt: skip


def whole_joints(run: Run, role: str, kind: str) -> list[Joint]:
    """The collectives of this role and kind of which every member's file is at hand."""
    layout = partition(run)
    return [j for j in joints(run) if j.kind == kind and layout.role_of(j.group) == role and j.complete]


def small_names(run: Run, role: str, kind: str) -> set[tuple[str, str]]:
    """(group, operation) of the small ones among them, where sizes are of two classes."""
    mine = whole_joints(run, role, kind)
    sizes = [_sizes(joint) for joint in mine]
    largest_small = _largest_small(sizes)
    if largest_small is None:
        return set()
    return {
        (joint.group, joint.names[row])
        for joint, size in zip(mine, sizes, strict=True)
        for row in np.flatnonzero(size <= largest_small).tolist()
    }


def _largest_small(sizes: list[Floats]) -> float | None:
    return cut(np.concatenate(sizes)) if sizes and all(np.isfinite(size).all() for size in sizes) else None


def cut(sizes: Floats) -> float | None:
    """The largest of the small sizes, bytes: the others are many times as large, and fewer. None where there is no such
    step between sizes."""
    ordered = np.sort(sizes[sizes > 0])
    if len(ordered) < 2:
        return None
    steps = ordered[1:] / ordered[:-1]
    most = np.arange(1, len(ordered)) > len(ordered) / 2
    places = np.flatnonzero((steps >= MANY_TIMES) & most)
    return float(ordered[places[-1]]) if places.size else None


def _sizes(joint: Joint) -> Floats:
    """What each operation moves on a rank, bytes; NaN where no rank tells."""
    told = np.isfinite(joint.size_bytes)
    count = told.sum(axis=1)
    found: Floats = np.where(
        count > 0, np.where(told, joint.size_bytes, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan
    )
    return found


def _longest(transit_us: Floats) -> Floats:
    longest: Floats = np.where(np.isfinite(transit_us), transit_us, -np.inf).max(axis=1)
    return longest


def _rate(size_bytes: Floats, lasts_us: Floats) -> float:
    usable = lasts_us > 0
    return float(np.median(size_bytes[usable] / lasts_us[usable]) * 1e6) if usable.any() else 0.0
