"""What the step gains without work that some ranks alone have: as much as the others, and other stages, leave of it.

What every rank loses the step loses; what one stage alone loses partly fills its own bubble, and where it is gone the
next longest stage sets the pace. So the step is replayed without this work, or its schedule run where no kernels tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.groups import with_less_work
from advisor.facts.cluster.replay import Change, gain, model
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.model import Fact

KINDS = (
    kind("operator_type.aicpu_gain_us", "us", "operator_type",
         "what the step gains at most without it on the AI CPU of the ranks on which alone it runs there",
         formula="replay of the step with these ranks computing aicpu_alone_us less; without kernels the pipeline's "
                 "schedule; no more than that time", needs="kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The gain for each type that runs on the AI CPU of some ranks alone."""
    for subject in facts.subjects("operator_type"):
        alone = facts.number("operator_type.aicpu_alone_us", subject)
        if subject.ranks and alone is not None:
            yield from fact("operator_type.aicpu_gain_us", subject, without(run, subject.ranks, alone))


def without(run: Run, ranks: Sequence[int], us: float) -> float | None:
    """Microseconds a step gains where each of these ranks computes so much less, no more than that; None where nothing
    tells how the ranks wait for each other."""
    found = model(run)
    if found is None or not set(ranks) <= found.chains.keys():
        gained = with_less_work(run, dict.fromkeys(ranks, us))
        return None if gained is None else min(max(gained, 0.0), us)
    changes: dict[int, Change] = {}
    for rank in ranks:
        chain = found.chains[rank]
        own = float(chain.working[chain.computes].sum())
        changes[rank] = Change(compute=max(1 - us / own, 0.0) if own > 0 else 1.0)
    replayed = gain(found, changes)
    return None if replayed is None else min(replayed, us)


FAMILIES = (Family("freed", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("operators", "parallelism")),)
