"""What a step gains where its small collectives lose their start-up time.

What nothing hides on the typical rank is no measure of it: beside a slow rank the others wait anyway, a stage that ends
early waits for the last one, and a collective that computation hides costs nothing. The step is replayed.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.replay import gain, model
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.exposure import joints
from advisor.facts.collectives.size_classes import small_names, whole_joints
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import Fact, Subject

FUSED_INTO = limit("transfers", "fused_into")
"""Collectives a step that are left of all the small ones."""

KINDS = (
    kind("collective.start_up_gain_us", "us", "collective",
         "what a step gains where they are fused into a few, all members' files at hand",
         formula="the step as replayed − the step replayed without the part of their time that is start-up: as told, "
                 "or what size ÷ the bandwidth of large messages does not need, whichever is more",
         needs="collectives kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Of each kind of collectives of which start-up is known, and of the small ones where they stand beside larger."""
    found = model(run)
    if found is None:
        return
    for subject in facts.subjects("collective"):
        share = _start_up_share(facts, subject)
        if share is not None and (shorter := _without_start_up(run, found, facts, subject, share)):
            sources = joints(run)[0].sources
            yield from fact("collective.start_up_gain_us", subject, gain(found, {}, shorter), *sources)


def _start_up_share(facts: FactSet, subject: Subject) -> float | None:
    """The part of the time in which they move no data and that fusing saves: as told, or what size ÷ the bandwidth of
    large messages does not need. None where not even all members' files are at hand."""
    told, reached, large, most = (
        facts.number(f"collective.{name}", subject)
        for name in ("latency_share", "bandwidth_bytes_per_s", "large_bandwidth_bytes_per_s", "link_limit_bytes_per_s")
    )
    usual, count = large or most, facts.number("collective.count", subject)
    if told is None or not count:
        return None
    share = told if not reached or not usual else max(told, 1 - reached / usual)
    return share * max(1 - FUSED_INTO / count, 0.0)


def _without_start_up(run: Run, found: Model, facts: FactSet, subject: Subject, share: float) -> dict[int, float]:
    """Meeting -> how long it moves data without this share of that, microseconds."""
    role, kind_ = (str(facts.value(f"collective.{name}", subject)) for name in ("role", "kind"))
    if facts.number("collective.larger_bytes", subject) is not None:
        wanted = small_names(run, role, kind_)
    else:
        wanted = {(joint.group, name) for joint in whole_joints(run, role, kind_) for name in joint.names}
    shorter = {}
    for number, events in enumerate(found.members):
        rank, place = next(iter(events.items()))
        if (found.group[number], found.chains[rank].name[place]) in wanted:
            shorter[number] = found.pure[number] * (1 - min(share, 1.0))
    return shorter


FAMILIES = (
    Family("start-ups", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("parallelism", "communication")),
)  # fmt: skip
