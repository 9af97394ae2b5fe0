"""The run as a whole: who took part, what was asked of the profiler."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import framework_of
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact

KINDS = (
    kind("run.rank_count", "count", "run", "ranks whose files are at hand"),
    kind("run.world_size", "count", "run", "ranks that took part in the training",
         formula="metadata, communication groups or links; at least the ranks at hand, and two where they communicate"),
    kind("run.world_is_told", "bool", "run", "that number was read somewhere; else more may have taken part"),
    kind("run.world_is_stated", "bool", "run", "a file gives that number as such; communication groups and ranks at "
         "hand show how many there were at least"),
    kind("run.missing_ranks", "count", "run", "ranks that took part and left no files here"),
    kind("run.number_holes", "count", "run", "numbers between those of the ranks at hand that none of them has: some "
         "are missing, or these are different runs",
         formula="highest − lowest number + 1 − ranks at hand"),
    kind("run.framework", "text", "run", "mindspore, pytorch or unknown"),
    kind("run.layout", "text", "run", "how the files are laid out (contract: profile.layout)"),
    kind("run.device_count", "count", "run", "accelerators named by the files"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts that need no table."""
    del facts
    profile = run.profile
    present = len({rank.rank for rank in profile.ranks})
    talks = any(rank.has("step_collectives") for rank in profile.ranks)
    partners = 2 if talks or any((t.share("exposed") or 0.0) > 0 for t in steady(run).values()) else 0
    world = max(profile.world_size or 0, present, partners)
    yield from fact("run.rank_count", RUN, present)
    yield from fact("run.world_size", RUN, world)
    yield from fact("run.world_is_told", RUN, profile.world_is_told)
    yield from fact("run.world_is_stated", RUN, profile.world_is_stated)
    yield from fact("run.missing_ranks", RUN, world - present)
    numbers = [rank.rank for rank in profile.ranks]
    yield from fact("run.number_holes", RUN, max(numbers) - min(numbers) + 1 - present if numbers else None)
    yield from fact("run.framework", RUN, framework_of(run))
    yield from fact("run.layout", RUN, profile.layout)
    devices = {(rank.host, rank.device) for rank in profile.ranks if rank.device}
    if devices:
        yield from fact("run.device_count", RUN, len(devices))


FAMILIES = (Family("run", KINDS, measure, uses=(STEPS, RECORDING)),)
