"""Idle stretches of a server that no work of its host covers: whether a request was there meanwhile nobody can tell.

A server that has nothing to do waits for its next request, in a queue or in a socket, or in nothing that was recorded.
A host that is slow looks the same where nothing covers the stretch; what it does between all passes alike it does by
itself, though, and requests come when they come.
"""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.base import kind
from advisor.facts.host.owners import Owners
from advisor.knowledge.measuring import limit

KINDS = (
    kind(
        "timeline.awaiting_idle_us",
        "us",
        "run rank",
        "of an inference, time per step in which nothing ran and no work of the host was recorded: it may have waited "
        "for requests",
        formula="idle stretches of 10 ms and more that no host event owns, or that one owns which is itself a wait for "
        "a queue or a socket; without those that are as long as each other, as a loop's own pauses are "
        "(knowledge_base/measuring.yaml, requests)",
        needs="kernels",
    ),
    kind("timeline.awaiting_idle_share", "ratio", "run rank", "the same, share of the windows", needs="kernels"),
    kind(
        "timeline.awaiting_owner", "text", "run rank", "what the host waits in then, where that is told", needs="trace"
    ),
)

PAUSE_NS = round(limit("requests", "pause_us") * 1000)
"""The kernels of one pass over a model do not pause for so long unless the host works."""
OWN_US = limit("requests", "own_us")
REGULAR = limit("requests", "regular")
BEYOND = limit("requests", "beyond")
MOST = int(limit("requests", "most"))
"""As many of the longest stretches are looked at one by one."""


def may_wait(owners: Owners | None, start: Ints, end: Ints) -> Mask:
    """Which idle stretches `start` … `end` (ns) may be waiting for requests."""
    long = np.flatnonzero(end - start >= PAUSE_NS)
    long = np.sort(long[np.argsort(start[long] - end[long], kind="stable")][:MOST])
    found, nobodys = np.zeros(len(start), bool), []
    for one in long.tolist():
        since, until = int(start[one]), int(end[one])
        owner = None if owners is None else owners.of(since, until)[0]
        found[one] = owners is not None and owners.waits(owner, since, until)
        if not owner and not found[one]:
            nobodys.append(one)
    bare = np.array(nobodys, int)
    found[bare[~_of_the_loop((end - start)[bare] / 1000)]] = True
    return found


def _of_the_loop(length: Floats) -> Mask:
    """Which stretches are about as long as most of them: pauses that a loop makes by itself, and may wait besides."""
    if not length.size:
        return np.zeros(0, bool)
    usual = float(np.median(length))
    regular = float(np.median(np.abs(length - usual))) <= REGULAR * usual
    within: Mask = length <= BEYOND * usual
    return within if regular and length.size > 1 and usual <= OWN_US else np.zeros(length.size, bool)
