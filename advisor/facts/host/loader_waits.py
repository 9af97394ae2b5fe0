"""Idle time of the device under the loop's own call for its next batch."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import covered_in, union
from advisor.facts.device.kernel_time import sums
from advisor.facts.host.owners import LOADER
from advisor.facts.host.pace import AHEAD, PIPELINE
from advisor.facts.recording.between import FRAMEWORKS
from advisor.sources.streams.trace import Trace


class LoaderWaits(Struct, frozen=True):
    """One rank's waits for its loader, one value a step; microseconds."""

    us: Floats
    """All of it, from the step's first kernel to the next one's."""
    within_us: Floats
    """What of it lies between kernels of the step: a loop may launch something (clear its gradients, say) before it
    asks for the batch, or fetch several batches a step."""
    ahead: bool
    """Whether what it waits for fetches ahead, beside the loop."""


def loader_waits(trace: Trace, owned: bool, start: Ints, end: Ints, step: Ints, last: Ints) -> LoaderWaits | None:
    """Of idle stretches `start` … `end`, ns, in windows `step` that end at `last`: none where all of the loop's calls
    for a batch were too short to be kept. None where host events tell neither of it nor of the gaps (none is `owned`):
    a timeline without the framework's own events says nothing of a loader."""
    host = trace.host
    chosen = np.array([bool(LOADER.search(name)) for name in host.names], bool)[host.name]
    recorded = any(process in FRAMEWORKS for process, _ in trace.activities)
    called = any(seen.count and LOADER.search(name) for (_, name), seen in trace.activities.items())
    if not chosen.any() and not called and not (recorded and owned):
        return None
    calls = union(host.start[chosen], host.end[chosen])
    waits = covered_in(calls, start, end) / 1000
    within = end < last[step]
    found, steps = sums(step, waits, len(last)), len(last)
    if steps > 1:
        found[-1] = np.nan  # a window ends with the next step's first kernel, and nothing follows the last
    names = (name for name in host.names if AHEAD.search(name) or PIPELINE.search(name))
    ahead = chosen.any() and any(names)
    return LoaderWaits(found, sums(step[within], waits[within], steps), bool(ahead))
