"""Conversions of layouts and data types: who they stand between, and who inserted them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.base import Told
from advisor.facts.device.kernel_time import sums
from advisor.facts.operators.kinds import asks_to_convert, call_of, draws, inserted_by_framework
from advisor.sources.streams.kernels import Kernels


class Inside(Struct, frozen=True):
    """Conversions that nobody asked for: calls of CANN's library make them on the way to what they do."""

    us: float
    calls: str
    """These calls, with counts."""
    drawing_us: float
    """Time in such calls that draw random numbers, which is none of `us`."""


class Conversion(Struct, frozen=True):
    """What is known of a type that converts."""

    fed_by: str = ""
    """Types that run just before it on the same stream; `feeds`: just after it."""
    feeds: str = ""
    framework_share: float | None = None
    """Part of its time in kernels whose names say that the framework inserted them."""
    inside: Inside | None = None
    """What of it calls of the library do for themselves; None where no kernel's name tells such a call."""

    def told(self) -> Told:
        """The facts of a type, but for what is inside of calls."""
        return {"fed_by": self.fed_by or None, "feeds": self.feeds or None, "framework_share": self.framework_share}


def conversion_of(kernels: Kernels, mine: Mask, neighbours: tuple[str, str] | None) -> Conversion:
    """`mine` are the type's kernels, `neighbours` what `neighbours_of` tells of it."""
    us: Floats = sums(kernels.name[mine], kernels.duration[mine], len(kernels.names))
    return Conversion(*(neighbours or ("", "")), _framework_share(kernels, us), _inside(kernels, us, mine))


def told_by(rows: Iterable[Conversion | None], whole_us: float) -> Told:
    """The facts of what is inside of calls, for a type that takes `whole_us` over the profile on all ranks."""
    found = [row.inside for row in rows if row is not None and row.inside is not None]
    if not whole_us or not found:
        return {}
    inside, drawing = sum(one.us for one in found), sum(one.drawing_us for one in found)
    return {
        "inside_share": inside / whole_us if inside else None,
        "drawing_share": drawing / whole_us if drawing else None,
        "inside_calls": max(found, key=lambda one: one.us).calls or None,
    }


def _framework_share(kernels: Kernels, us: Floats) -> float | None:
    """`us` is the time under each of the kernels' names."""
    total = us.sum()
    inserted = sum(us[i] for i in np.flatnonzero(us).tolist() if inserted_by_framework(kernels.names[i]))
    return float(inserted / total) if total > 0 else None


def _inside(kernels: Kernels, us: Floats, mine: Mask) -> Inside | None:
    times = np.bincount(kernels.name[mine], minlength=len(kernels.names))
    counts: Counter[str] = Counter()
    own = drawing = 0.0
    for i in np.flatnonzero(times).tolist():
        call = call_of(kernels.names[i])
        if not call or asks_to_convert(call):
            continue
        if draws(call):
            drawing += float(us[i])
        else:
            own += float(us[i])
            counts[call] += int(times[i])
    most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    told = ", ".join(f"{call} ({n})" for call, n in most)
    return Inside(own, told, drawing) if own or drawing else None


def neighbours_of(
    kernels: Kernels, type_of: Ints, types: list[str], wanted: Sequence[int]
) -> dict[int, tuple[str, str]]:
    """Conversion type -> (types that run just before it, just after it) on the same stream: who feeds whom."""
    result: dict[int, tuple[str, str]] = {}
    known = np.flatnonzero(kernels.start >= 0)
    order = known[np.argsort(kernels.stream[known], kind="stable")]
    kinds, streams = type_of[order], kernels.stream[order]
    for t in wanted:
        at = np.flatnonzero(kinds == t)
        before, after = at[at > 0], at[at < len(order) - 1]
        before = before[streams[before - 1] == streams[before]]
        after = after[streams[after + 1] == streams[after]]
        result[t] = (_common(types, kinds[before - 1], t), _common(types, kinds[after + 1], t))
    return result


def _common(types: list[str], kinds: Ints, own: int) -> str:
    counts = sorted(Counter(kinds[kinds != own].tolist()).items(), key=lambda pair: (-pair[1], types[pair[0]]))
    return ", ".join(f"{types[t]} ({n})" for t, n in counts[:3])
