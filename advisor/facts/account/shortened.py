"""What the step gains where kernels get shorter, and collectives that they hide come to light.

A collective is as long as its transfer, however short the kernels beside it become: it starts no earlier than its data
is there, and a communicator runs its operations one by one. So the step is replayed with shorter kernels and all
collectives in line, also those that never queued in the recording.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.facts.base import FactSet, Run, computed
from advisor.facts.cluster.meetings import Model, moving_us, readiness, work_done
from advisor.facts.cluster.replay import Change, gain, model, play
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, kind_of
from advisor.facts.device.chain import RELEASE_NS, Chain
from advisor.facts.device.forward import communicator
from advisor.facts.step.steps import stepped_courses
from advisor.knowledge.savings import usual_error
from advisor.model import RUN

PARTS = (0.25, 0.5, 0.75, 1.0)
"""Of a type's kernel time that goes, for which the step is replayed. What it gains grows ever slower with what goes, so
that between two of them it gains no less than what lies on the line between theirs."""
MOST_EVENTS = 1_000_000
"""Events of all these replays together that are worth waiting for."""
_FEWEST_TYPES = 10
"""Types that are told of whatever the number of ranks: the longest, which most promises are about."""
ALL = 1 - usual_error("replay")
"""Part of what kernels take less from which on the step gains all of it, as far as a replay can tell."""


@computed
def in_line(run: Run) -> Model | None:
    """The replayable step with its collectives lined up; of a rank that has no partner at hand, its own step. None
    where there is none, or where it cannot be run."""
    found = model(run) or _by_itself(run)
    found = None if found is None else lined_up(found)
    return found if found is not None and found.baseline_us > 0 else None


@computed
def _told_by(run: Run) -> Model | None:
    """The step that tells of each type: that of all ranks, or of one where they are too many to be replayed often."""
    found = in_line(run)
    if found is None or _events(found) * len(PARTS) * _FEWEST_TYPES <= MOST_EVENTS:
        return found
    one = _by_itself(run)
    return None if one is None else lined_up(one)


def lined_up(found: Model) -> Model:
    """The step with each communicator's collectives one behind the other. Ranks without files run the same kernels and
    come sooner as well: nobody waits for them until then."""
    told = {rank: _queued(found, rank) for rank in found.chains}
    found = replace(
        found, chains={rank: chain for rank, (chain, _) in told.items()},
        ready={rank: ready for rank, (_, ready) in told.items()}, events={},
        absent=[None] * len(found.members), behind={},
    )  # fmt: skip
    found.baseline_us = play(found, {}) or 0.0
    return found


def _queued(found: Model, rank: int) -> tuple[Chain, list[tuple[int, float]]]:
    """The rank's chain and when what it exchanges is ready: a collective that computing released as it ran, or just
    when it had ended, would have waited for the one before it on its communicator."""
    chain = found.chains[rank]
    after, lag, names = chain.after.copy(), chain.lag.copy(), chain.name
    ready = list(found.ready.get(rank) or [(-1, 0.0)] * len(names))
    ended, begun = work_done(chain)
    before: dict[str, int] = {}
    segment = -1
    for i, name in enumerate(names):
        if not name:
            segment = i
            continue
        if kind_of(name) in POINT_TO_POINT:
            continue
        group = communicator(name)
        ahead, before[group] = before.get(group, -1), i
        if after[i] >= 0 or ahead < 0 or segment < 0 or lag[i] > RELEASE_NS / 1000:
            continue
        start = ended[segment - 1] if segment else 0.0
        ready[i] = (segment, (begun[i] - start) / max(ended[segment] - start, 1e-12))
        after[i], lag[i] = ahead, 0.0
    return replace(chain, after=after, lag=lag), ready


def _by_itself(run: Run) -> Model | None:
    """The step of one rank, the first where there are several whose steps fit together; its collectives last as long as
    their data moves. None where ranks hand on to each other: what such a one waits is another one's work."""
    chains = {rank: course.chain for rank, course in stepped_courses(run).items() if course.chain is not None}
    if not chains or (len(chains) > 1 and model(run) is None):
        return None
    rank, chain = min(chains.items())
    if any(name and kind_of(name) in POINT_TO_POINT for name in chain.name):
        return None
    moving = moving_us(run.each(EXCHANGES).get(rank), chain.step)
    found = Model({rank: chain}, {rank: 0.0}, {rank: [-1] * len(chain.name)})
    for i, name in enumerate(chain.name):
        if name:
            found.joint[rank][i] = len(found.members)
            found.members.append({rank: i})
            found.kinds.append({rank: kind_of(name)})
            found.pure.append(min(moving.get(name, np.inf), float(chain.busy[i])))
            found.group.append(communicator(name))
            found.absent.append(None)
    found.ready = readiness(found, len(found.members), ())
    return found


def shorter(found: Model, kind: str, part: float) -> dict[int, Change]:
    """Each rank without this part of what kernels of a type compute, "" for all types; empty where not every rank's
    kernels tell where they lie."""
    if kind and not all(kind in chain.of_type for chain in found.chains.values()):
        return {}
    return {rank: Change(1 - part * _share(chain, kind)) for rank, chain in found.chains.items()}


def shorter_by(found: Model, kind: str, us: float) -> dict[int, Change]:
    """The same without so many microseconds of it, the mean of all ranks."""
    whole = shorter(found, kind, 1.0)
    gone = _gone_us(found, whole)
    return shorter(found, kind, min(us / gone, 1.0)) if gone > 0 else {}


def _share(chain: Chain, kind: str) -> Floats:
    """Of each segment of the chain the part that kernels of this type take."""
    working = chain.working
    own = chain.of_type[kind] if kind else working
    share = np.divide(own, working, out=np.zeros_like(working), where=chain.computes & (working > 0))
    return np.minimum(share, 1.0)


def kept_ratios(run: Run, facts: FactSet, kind: str = "") -> tuple[float, ...] | None:
    """Of what kernels of a type take less, all types' for "", the parts that the step gains where PARTS of their time
    go; None where no replay tells. What collectives take back is no more than what computing hides of them."""
    found = _told_by(run)
    if found is None:
        return None
    hidden_us, without = facts.number("step.overlapped_us", RUN), _without_computing(run)
    changes = shorter(found, kind, 1.0)
    gone = _gone_us(found, changes)
    if gone <= 0:
        return None
    # no type's kernels hide more than all together
    if hidden_us == 0 or (without is not None and without[0] - without[1] <= (1 - ALL) * gone):
        return (1.0,) * len(PARTS)
    whole = gain(found, changes) if kind else without and without[1]
    if whole is None:
        return None
    if whole >= ALL * gone:  # of less, no smaller part is gained
        return (1.0,) * len(PARTS)
    told = []
    for part in PARTS:
        us = whole if part == 1 else gain(found, shorter(found, kind, part))
        if us is None:
            return None
        told.append(min(max(us, part * gone - (np.inf if hidden_us is None else hidden_us), 0.0) / (part * gone), 1.0))
    return tuple(told)


@computed
def _without_computing(run: Run) -> tuple[float, float] | None:
    """(microseconds that go, microseconds that the step gains) where nothing is computed at all; None without a
    replay."""
    found = _told_by(run)
    if found is None:
        return None
    changes = shorter(found, "", 1.0)
    whole = gain(found, changes)
    return None if whole is None else (_gone_us(found, changes), whole)


def _gone_us(found: Model, changes: Mapping[int, Change]) -> float:
    """Microseconds that a rank computes less, the mean of all."""
    each = [float((c.working * (1 - changes[r].compute))[c.computes].sum()) for r, c in found.chains.items() if changes]
    return float(np.mean(each)) if each else 0.0


def affordable_replays(run: Run) -> int:
    """How often the step may be replayed for what kernels hide; 0 without a replay."""
    found = _told_by(run)
    return 0 if found is None else MOST_EVENTS // max(_events(found), 1)


def _events(found: Model) -> int:
    return sum(len(chain.name) for chain in found.chains.values())
