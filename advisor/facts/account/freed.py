"""What the step gains without work: as much as other ranks, other stages, and hidden collectives, leave of it.

What every rank loses the step loses, as far as it hides no collective; what one stage alone loses partly fills its own
bubble, and where it is gone the next longest stage sets the pace. So the step is replayed without this work, or its
schedule run where no kernels tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.facts.account.shortened import PARTS, affordable_replays, in_line, kept_ratios
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.groups import with_less_work
from advisor.facts.cluster.replay import Change, gain, model
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact

_TOLD = ", ".join(f"{part:.0%}" for part in PARTS)

KINDS = (
    kind("operator_type.aicpu_gain_us", "us", "operator_type",
         "what the step gains at most without it on the AI CPU of the ranks on which alone it runs there",
         formula="replay of the step with these ranks computing aicpu_alone_us less; without kernels the pipeline's "
                 "schedule; no more than that time", needs="kernels"),
    *(kind(f"{name}.kept_ratios", "list", scope,
           f"of what {of} take less, the parts that the step gains where {_TOLD} of their time go",
           formula="replay of the step with shorter kernels, each communicator's collectives one behind the other, as "
                   "long as their transfer and no earlier than their data; the others take it back, no more than "
                   "step.overlapped_us; all 1 where nothing is taken back", needs="kernels")
      for name, scope, of in (("operator_type", "operator_type", "its kernels"), ("step", "run", "all kernels"))),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The gain for each type that runs on the AI CPU of some ranks alone, and what collectives leave of others'."""
    for subject in facts.subjects("operator_type"):
        alone = facts.number("operator_type.aicpu_alone_us", subject)
        if subject.ranks and alone is not None:
            yield from fact("operator_type.aicpu_gain_us", subject, without(run, subject.ranks, alone))
    left = affordable_replays(run)
    times = {subject: facts.number("operator_type.time_us", subject) for subject in facts.subjects("operator_type")}
    longest = sorted((s for s, us in times.items() if us), key=lambda s: (-(times[s] or 0.0), s))
    for subject in (RUN, *longest):
        if left < len(PARTS):
            return
        of_run = subject == RUN
        ratios = kept_ratios(run, facts, "" if of_run else subject.id)
        left -= 1 if ratios is None or min(ratios) == 1 else len(PARTS)
        yield from fact("step.kept_ratios" if of_run else "operator_type.kept_ratios", subject, ratios)


def without(run: Run, ranks: Sequence[int], us: float) -> float | None:
    """Microseconds a step gains where each of these ranks computes so much less, no more than that; None where nothing
    tells how the ranks wait for each other."""
    found = in_line(run) if model(run) is not None else None
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


FAMILIES = (
    Family("freed", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("operators", "steps", "parallelism")),
)
