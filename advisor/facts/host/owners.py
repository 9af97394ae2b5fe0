"""What the host did while the device idled: the event, or the events of one name, that own an idle stretch (S38)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.basics.intervals import Intervals, clip, covered_in, intersect, measure, union
from advisor.knowledge.measuring import limit
from advisor.sources.streams.trace import AWAITS_CALLBACKS, Trace, waits_for_device

LOADER = re.compile(r"DataLoader.*__next__|(Dataset|Pipeline|IteratorConsumer)\b.*::GetNext", re.IGNORECASE)
"""The loop's own call for a batch: torch's loaders, MindSpore's iterators. Their workers run beside the step."""
COVERS = limit("launches", "covers")
"""A host event that covers less of a stretch does not explain it; nor does one of which the stretch is a smaller part,
unless the device hardly runs during the rest of it either."""
HARDLY = limit("launches", "hardly")
"""Up to this part of how busy the device usually is, it hardly runs."""

_WHOLLY = limit("launches", "wholly")
"""A callee that lasts for this part of its callers' time is what they do."""
_LEFT = limit("launches", "beside_copies")
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
        self._host, self._copies = trace.host, trace.copies
        self._running = running
        self._usual = measure(running) / max(high - low, 1)
        self._launched = np.sort(trace.launched)
        self._beside: dict[int, float] = {}
        nobodys = (_FRAME, _LAUNCH, _WAITS, AWAITS_CALLBACKS)
        self._waiting = np.array([bool(_WAITS.search(name)) for name in trace.host.names], bool)
        self._frames = np.array([any(one.search(name) for one in nobodys) for name in trace.host.names], bool)

    def of(self, start: int, end: int) -> tuple[str | None, float]:
        """Who owns a stretch, and how much of it that covers, µs: the most specific event that covers half of what
        copies between memories leave of the stretch and does little else, for the loop around the work lasts through
        the stretch, too, and keeps nobody waiting; else the name whose events do so together. Empty where there is
        none, None where no event at all was recorded. What the device still had to do when such an event began is no
        work of the event's: nothing is launched in it."""
        host = self._host
        if not host.start.size:
            return None, 0.0
        overlap = np.minimum(host.end, end) - np.maximum(host.start, start)
        found = np.flatnonzero(overlap > 0)
        found = found[~self._frames[host.name[found]]]
        length = host.end[found] - host.start[found]
        mostly = (overlap[found] >= COVERS * length) | self._idles(found, length)
        found = found[mostly | self._outlasts(found, start, end)]
        copied = self._copied(start, end)
        if copied > (1 - _LEFT) * (end - start):  # what copies leave tells little
            copied = 0
        needed = COVERS * (end - start - copied)
        beside = self._copied(np.maximum(host.start, start)[found], np.minimum(host.end, end)[found]) if copied else 0
        owns = found[overlap[found] - beside >= needed]
        if not owns.size:
            return self._together(found, start, end, copied)
        owner = owns[(host.end - host.start)[owns].argmin()]
        return host.names[int(host.name[owner])], float(overlap[owner]) / 1000

    def several(self, start: int, end: int) -> dict[str, float]:
        """How long each function lasts that lies within the stretch with all its calls, or mostly, µs: where none owns
        it, these share it. Of functions that call one another the inner ones count, which say what is done."""
        host = self._host
        overlap = np.minimum(host.end, end) - np.maximum(host.start, start)
        found = np.flatnonzero(overlap > 0)
        found = found[~self._frames[host.name[found]]]
        found = found[overlap[found] >= COVERS * (host.end - host.start)[found]]
        found = found[np.lexsort((-host.end[found], host.start[found]))]
        inner = np.append(host.end[found[:-1]] <= host.start[found[1:]], True) if found.size else np.zeros(0, bool)
        lasts: dict[str, float] = {}
        for one in found[inner].tolist():
            name = int(host.name[one])
            if not self._always(name, 1.0):
                lasts[host.names[name]] = lasts.get(host.names[name], 0.0) + float(overlap[one]) / 1000
        return lasts if (end - start) * COVERS <= 1000 * sum(lasts.values()) else {}

    def waits(self, owner: str | None, start: int, end: int) -> bool:
        """Whether the host waits for somebody else in a stretch: whoever owns it waits for practically all of its time,
        or nobody does and one wait covers half of it. Threads beside the loop wait either way."""
        host = self._host
        within = np.flatnonzero((host.start < end) & (host.end > start))
        waiting = within[self._waiting[host.name[within]]]
        if not owner:
            low, high = np.maximum(host.start[waiting], start), np.minimum(host.end[waiting], end)
            spans = (high - low >= COVERS * (end - start)) & (high - low >= COVERS * (host.end - host.start)[waiting])
            return bool(spans.any())
        for one in within[host.name[within] == host.names.index(owner)].tolist():
            low, high = int(host.start[one]), int(host.end[one])
            inside = waiting[(host.start[waiting] >= low) & (host.end[waiting] <= high)]
            if ((host.end - host.start)[inside] >= _WHOLLY * (high - low)).any():
                return True
        return False

    def events(self, name: str, start: int, end: int) -> Intervals:
        """When the host is in events of this name, within a stretch."""
        host = self._host
        chosen = np.flatnonzero((host.start < end) & (host.end > start))
        chosen = chosen[host.name[chosen] == host.names.index(name)]
        return clip(union(host.start[chosen], host.end[chosen]), start, end)

    def _copied(self, start: int | Ints, end: int | Ints) -> Any:
        """How long copies between memories run in each of these times, ns."""
        return covered_in(self._copies, np.asarray(start), np.asarray(end))

    def _together(self, events: Ints, start: int, end: int, copied: int) -> tuple[str, float]:
        """The same of the events of one name, none of which covers half of what `copied` leaves: the name with the
        least time outside it, of those with equally little the one that covers most, or what that calls and waits for
        all the while: it says what is done."""
        host = self._host
        needed = COVERS * (end - start - copied)
        low, high, name = np.maximum(host.start[events], start), np.minimum(host.end[events], end), host.name[events]
        best: tuple[int, int, str] | None = None
        held: dict[str, Intervals] = {}
        for one in np.flatnonzero(np.bincount(name, weights=high - low) >= needed).tolist():
            chosen = name == one
            own = union(low[chosen], high[chosen])
            inside = measure(own)
            if inside - (int(self._copied(*own).sum()) if copied else 0) < needed or self._always(
                one, inside / (end - start)
            ):
                continue
            held[host.names[one]] = own
            outside = measure(union(host.start[events[chosen]], host.end[events[chosen]])) - inside
            best = min(best or (outside, -inside, host.names[one]), (outside, -inside, host.names[one]))
        if best is None:
            return "", 0.0
        whole = held[best[2]]
        within = {label: measure(intersect(own, whole)) for label, own in held.items()}
        inner = [
            (us, label) for label, us in within.items() if us == measure(held[label]) and us >= _WHOLLY * measure(whole)
        ]
        least, owner = min(inner)
        return owner, least / 1000

    def _always(self, name: int, share: float) -> bool:
        """Whether events of this name fill the time in which the device runs much as they fill this share of a stretch:
        a thread beside the loop, such as a loader's worker, works on either way. Calls that wait for the device last
        while it runs by their nature: those that last while it idles wait for something else, such as a copy."""
        if waits_for_device(self._host.names[name]):
            return False
        if name not in self._beside:
            chosen = self._host.name == name
            events = union(self._host.start[chosen], self._host.end[chosen])
            ran = covered_in(self._running, *events)
            self._beside[name] = int(ran.sum()) / max(measure(self._running), 1)
        return self._beside[name] >= COVERS * share

    def _idles(self, events: Ints, length: Ints) -> Mask:
        """During which of these events the device hardly ran."""
        ran = covered_in(self._running, self._host.start[events], self._host.end[events])
        hardly: Mask = ran <= HARDLY * self._usual * length
        return hardly

    def _outlasts(self, events: Ints, start: int, end: int) -> Mask:
        """In which of these events, begun before a stretch and over within it, the host launches nothing, while it does
        before and afterwards: the device ran through what it had been given, and then out of it. Threads beside the
        loop and calls that wait for the device are none of them."""
        low, high = self._host.start[events], self._host.end[events]
        before, until = np.searchsorted(self._launched, low), np.searchsorted(self._launched, high)
        quiet: Mask = (before == until) & (before > 0) & (until < len(self._launched)) & (low < start) & (high <= end)
        for at in np.flatnonzero(quiet).tolist():
            name = int(self._host.name[events[at]])
            share = (int(high[at]) - start) / (end - start)
            quiet[at] = not (waits_for_device(self._host.names[name]) or self._always(name, share))
        return quiet
