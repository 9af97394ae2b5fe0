"""The longest call of an operator type, as a timeline viewer shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints, Mask
from advisor.basics.numbering import largest
from advisor.basics.units import NBSP
from advisor.facts.device.kernel_time import Timeline
from advisor.facts.recording.counts import UNTYPED
from advisor.sources.streams.kernels import operator_name


class LongCall(Struct, frozen=True):
    """One call: microseconds, its operator, its step, its start (nanoseconds; below zero where unknown)."""

    us: float
    operator: str
    step: str
    start_ns: int = -1

    def __str__(self) -> str:
        start = f", {self.start_ns // 1000}.{self.start_ns % 1000:03d}{NBSP}µs" if self.start_ns >= 0 else ""
        return f"{self.operator}, step {self.step}{start}"


def longest_calls(timeline: Timeline, type_of: Ints, chosen: Sequence[int], among: Mask) -> dict[int, list[LongCall]]:
    """Type -> the longest of these kernels in each step in which it runs; the first of several that last as long."""
    kernels, windows = timeline.kernels, timeline.windows
    wanted = np.flatnonzero(among & np.isin(type_of, list(chosen)))
    place = type_of[wanted] * len(windows.names) + windows.of[wanted]
    longest = largest(kernels.duration[wanted], place)[::-1]
    first = dict(zip(place[longest].tolist(), wanted[longest].tolist(), strict=True))
    found: dict[int, list[LongCall]] = {}
    for _, index in sorted(first.items()):
        name = ending(operator_name(kernels.names[kernels.name[index]])) or UNTYPED
        step = windows.names[windows.of[index]]
        call = LongCall(float(kernels.duration[index]), name, step, int(kernels.start[index]))
        found.setdefault(int(type_of[index]), []).append(call)
    return found


def longest_of(calls: Iterable[LongCall], steps: Collection[str]) -> LongCall | None:
    """The longest of the calls that are in these steps."""
    return max((call for call in calls if call.step in steps), key=lambda call: call.us, default=None)


def ending(name: str, most: int = 80) -> str:
    """The last scopes of a long name, none of them cut."""
    if len(name) <= most:
        return name
    scopes = name[-most:].partition("/")[2]
    return f"…/{scopes}" if scopes else f"…{name[-most:]}"
