"""What the report says about the profile itself."""

from __future__ import annotations

from advisor.facts.base import FactSet, Run
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import partition, world_of
from advisor.facts.recording.kinds.kind import framework_of, recording_of
from advisor.facts.step.steps import excluded_steps, steady
from advisor.model import RUN, ProfileInfo
from advisor.sources.folders import natural


def describe(run: Run, facts: FactSet) -> ProfileInfo:
    """ProfileInfo from the sources, with what facts have inferred about steps, world size and parallelism."""
    profile = run.profile
    told = recording_of(run)
    times = steady(run) if told.has_steps else {}
    steps = list(dict.fromkeys(step for t in times.values() for step in t.steps))
    if told.has_steps and not steps:  # what collectives take is told of each step, whether or not its length is known
        steps = sorted({step for exchanges in run.each(EXCHANGES).values() for step in exchanges.steps}, key=natural)
    parallelism = profile.parallelism
    world = facts.value("run.world_size", RUN)
    if facts.value("parallelism.source", RUN):
        parallelism = partition(run).surely(world_of(run), parallelism)
    return ProfileInfo(
        path=profile.path,
        framework=framework_of(run),
        layout=profile.layout,
        ranks=tuple(sorted({rank.rank for rank in profile.ranks})),
        world_size=int(world) if isinstance(world, (int, float)) else profile.world_size,
        steps=tuple(steps),
        excluded_steps=excluded_steps(run),
        parallelism=parallelism,
        devices=tuple(sorted({rank.device for rank in profile.ranks if rank.device})),
        versions=dict(sorted(profile.versions.items())),
        recording=told.kind,
        recording_reason=told.reason,
        has_steps=told.has_steps,
    )
