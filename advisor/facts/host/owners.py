"""What the host did while the device idled: the event that owns an idle stretch (S38)."""

from __future__ import annotations

import re

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.basics.intervals import Intervals, covered, measure
from advisor.knowledge.measuring import limit
from advisor.sources.streams.trace import Trace

COVERS = limit("launches", "covers")
"""A host event that covers less of a stretch does not explain it; nor does one of which the stretch is a smaller part,
unless the device hardly runs during the rest of it either."""
HARDLY = limit("launches", "hardly")
"""Up to this part of how busy the device usually is, it hardly runs."""

_FRAME = re.compile(
    r"^((Python::PythonObserved::)?ProfilerStep|.*<module>|multiprocessing/|threading\.py|runpy\.py|torch/multiprocessing)"
)
"""What starts the program, and the profiler's own marks: they own nothing, however idle the recording."""
_LAUNCH = re.compile(r"^(Node|AscendCL|Runtime|CANN)@\w*launch\w*$|(^|::)KernelLaunch(::|$)", re.IGNORECASE)
"""Launching itself: a host that is stopped in it does nothing else meanwhile that could be taken away."""

_WAITS = re.compile(
    r"(^|/)(queue|selectors|socket|connection|synchronize|popen_\w+|asyncio/\w+)\.py\(\d+\): \w+$"
    r"|^<built-in (method|function) (acquire|sleep|select|poll|epoll|recv|recv_into|wait|waitpid|read)( of .*)?>$"
)
"""Waiting for somebody else: what it is for tells the function around it."""


class Owners:
    """Who owns the idle stretches of one rank: `running` are the disjoint, sorted times in which its device ran, of
    those in [low, high); nanoseconds all."""

    def __init__(self, trace: Trace, running: Intervals, low: int, high: int) -> None:
        self._host = trace.host
        self._running = running
        self._usual = measure(running) / max(high - low, 1)
        nobodys = (_FRAME, _LAUNCH, _WAITS)
        self._frames = np.array([any(one.search(name) for one in nobodys) for name in trace.host.names], bool)

    def of(self, start: int, end: int) -> tuple[str | None, float]:
        """The most specific event that covers half of a stretch and does little else, and how much of the stretch it
        covers, µs: the loop around the work lasts through the stretch, too, and keeps nobody waiting. Empty where there
        is none, None where no event at all was recorded."""
        host = self._host
        if not host.start.size:
            return None, 0.0
        overlap = np.minimum(host.end, end) - np.maximum(host.start, start)
        found = np.flatnonzero(overlap >= COVERS * (end - start))
        found = found[~self._frames[host.name[found]]]
        length = host.end[found] - host.start[found]
        owns = found[(overlap[found] >= COVERS * length) | self._idles(found, length)]
        if not owns.size:
            return "", 0.0
        owner = owns[(host.end - host.start)[owns].argmin()]
        return host.names[int(host.name[owner])], float(overlap[owner]) / 1000

    def _idles(self, events: Ints, length: Ints) -> Mask:
        """During which of these events the device hardly ran."""
        ran = covered(self._running, self._host.end[events]) - covered(self._running, self._host.start[events])
        hardly: Mask = ran <= HARDLY * self._usual * length
        return hardly
