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
from advisor.facts.collectives.inherent import is_side_by_side
from advisor.facts.collectives.link_speed import LINKS, loads_by_kind
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.size_classes import small_names, whole_joints
from advisor.facts.device.course import COURSE
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import Fact, Subject

FUSED_INTO = limit("transfers", "fused_into")
"""Collectives a step that are left of all the small ones."""

KINDS = (
    kind("collective.start_up_share", "ratio", "collective", "part of their transfer that is start-up",
         formula="1 − the part in which they move data × their bandwidth ÷ that of large messages, at most 1; that "
                 "part is 1 − collective.latency_share or size ÷ their bandwidth ÷ their transfer, the lesser",
         needs="collectives"),
    kind("collective.link_bandwidth_bytes_per_s", "bytes_per_s", "collective",
         "what the fastest of their links reaches by itself, where several carry at once and reach more together, and "
         "no larger messages tell how fast they are",
         formula="largest Σ size ÷ Σ time of a link", needs="links transports"),
    kind("collective.start_up_gain_us", "us", "collective",
         "what a step gains where they are fused into a few, all members' files at hand",
         formula="the step as replayed − the step replayed without the part of their time that is start-up "
                 "(collective.start_up_share), less that of the few that remain",
         needs="collectives kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Of each kind of collectives of which start-up is known, and of the small ones where they stand beside larger."""
    alone = {each: rate for each in facts.subjects("collective") if (rate := _of_one_link(run, facts, each))}
    found_of = ((each, _share(facts, each, alone.get(each))) for each in facts.subjects("collective"))
    shares = {each: share for each, share in found_of if share is not None}
    if not shares:
        return
    sources = next((joint.sources for joint in joints(run)), ())
    for subject, rate in alone.items():
        yield from fact("collective.link_bandwidth_bytes_per_s", subject, rate, *sources)
    for subject, share in shares.items():
        yield from fact("collective.start_up_share", subject, share, *sources)
    found = model(run)
    if found is None:
        return
    for subject, share in shares.items():
        count = facts.number("collective.count", subject)
        if facts.number("collective.latency_share", subject) is None or not count:
            continue  # not all members' files are at hand
        fused = share * max(1 - FUSED_INTO / count, 0.0)
        if shorter := _without_start_up(run, found, facts, subject, fused):
            yield from fact("collective.start_up_gain_us", subject, gain(found, {}, shorter), *sources)


def _of_one_link(run: Run, facts: FactSet, subject: Subject) -> float | None:
    """What the fastest of their links reaches by itself, bytes per second, where all of them together reach more:
    against what one link carries, the sum of links that carry at once hides the start-up of each."""
    role, kind_, transport = (facts.value(f"collective.{name}", subject) for name in ("role", "kind", "transport"))
    larger = ("large_bandwidth_bytes_per_s", "larger_bytes")
    if not is_side_by_side(str(transport)) or any(
        facts.value(f"collective.{name}", subject) is not None for name in larger
    ):
        return None
    layout = partition(run)
    rates = (
        sums.bytes / sums.us * 1e6
        for (group, told), loads in loads_by_kind(run).items() if told == kind_ and layout.role_of(group) == role
        for (*_, over), sums in loads.items() if over == transport
    )  # fmt: skip
    together = facts.number("collective.bandwidth_bytes_per_s", subject) or 0.0
    alone = max(rates, default=together)
    return alone if alone < together else None


def _share(facts: FactSet, subject: Subject, alone: float | None = None) -> float | None:
    """The part of the time that their size at the bandwidth of large messages does not need: in which they move no
    data, as told or as the links' own transfers leave of it, and what these take longer than large ones. `alone`: what
    one of several links that carry at once reaches."""
    told, reached, large, most, size, us, count = (
        facts.number(f"collective.{name}", subject)
        for name in ("latency_share", "bandwidth_bytes_per_s", "large_bandwidth_bytes_per_s", "link_limit_bytes_per_s",
                     "size_bytes", "transfer_us", "count")
    )  # fmt: skip
    usual = large or most
    if not reached or not usual:
        return told
    moving = size / reached * 1e6 * count / us if size and us and count else 1.0
    return 1 - max(min(1 - (told or 0.0), moving), 0.0) * min((alone or reached) / usual, 1.0)


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
    Family("start-ups", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE, LINKS), after=("parallelism", "communication")),
)  # fmt: skip
