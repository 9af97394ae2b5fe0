"""The host: who uses its processors, and where its time goes."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from advisor.facts.base import FactSet, Run
from advisor.facts.data.processors import FAMILIES, HostUse
from advisor.model import RUN, Source, Subject
from advisor.sources.base import Profile, Rank


class FakeRank(Rank):
    """A rank whose tables are given."""

    frames: dict[str, pd.DataFrame]

    def read(self, table: str, columns: object = None) -> pd.DataFrame | None:
        return self.frames.get(table)

    def source(self, table: str, *columns: str, steps: object = ()) -> Source:
        return Source(table, columns)


def rank_with(**frames: pd.DataFrame) -> FakeRank:
    from pathlib import Path

    rank = FakeRank(0, Path())
    rank.frames = frames
    return rank


def samples(count: int = 10, **columns: float) -> pd.DataFrame:
    base = {"cores": 2, "user_share": 0.4, "system_share": 0.2, "io_share": 0.0, "idle_share": 0.4,
            "context_switches": 1000.0, "runnable": 4.0, "process_user_percent": 60.0,
            "process_system_percent": 20.0}  # fmt: skip
    frame = pd.DataFrame([{**base, **columns}] * count)
    return frame.assign(time_ns=[i * 1_000_000_000 for i in range(count)])


def facts_of(rank: FakeRank) -> FactSet:
    run, facts = Run(Profile("x", [rank])), FactSet()
    for family in FAMILIES:
        assert family.reduce is not None
        reduced = family.reduce(rank)
        if reduced is not None:
            run.keep(0, {family.reduce.key: reduced})
        for fact in family.measure(run, facts):
            facts.add(fact)
    return facts


def test_what_others_use_is_what_the_process_does_not() -> None:
    """60 % of two processors are busy, the process has 0.8 of them: others have 20 % of the machine."""
    facts = facts_of(rank_with(host_cpu=samples()))
    host = Subject("host", "host-of-0", (0,))
    assert facts.value("host.other_share", host) == pytest.approx(0.2)
    assert facts.value("host.process_share", host) == pytest.approx(0.8 / 1.2)
    assert facts.value("host.switches_per_core_s", host) == pytest.approx(500.0)
    assert facts.value("host.available_cores", RUN) == pytest.approx(1.6)


def test_missing_samples_are_absent_not_zero() -> None:
    """A machine whose shares are unknown is neither idle nor busy."""
    facts = facts_of(rank_with(host_cpu=samples(user_share=math.nan, system_share=math.nan, idle_share=math.nan)))
    assert not facts.has("host.idle_share") and not facts.has("host.other_share")
    assert facts.value("host.cores", RUN) == 2


def test_the_samplers_own_cost_is_not_the_loops() -> None:
    """Sampling every 40 ms takes most of a processor; the loop must not be blamed for it."""
    often = HostUse(2, 100, 40_000.0, None, None, None, 0.1, None, None, 0.9, 0.1)
    rarely = HostUse(2, 100, 1_000_000.0, None, None, None, 0.1, None, None, 0.9, 0.1)
    assert often.loop_cores == pytest.approx(0.9 - 0.1 - 0.625)
    assert rarely.loop_cores == pytest.approx(0.775)


def test_the_largest_host_stage_is_named() -> None:
    """The stage with the most time, its calls and its longest call."""
    stages = pd.DataFrame({"module": ["Compiler", "Compiler", "Runtime"], "event": ["Pass", "Pass", "Run"],
                           "stage": ["opt", "opt", None], "start_us": [0.0, 50.0, 60.0], "end_us": [40.0, 60.0, 100.0],
                           "duration_us": [40.0, 10.0, 40.0]})  # fmt: skip
    facts = facts_of(rank_with(host_stages=stages))
    assert facts.value("host.stage_name", RUN) == "Compiler/Pass/opt"
    assert facts.value("host.stage_us", RUN) == 50.0
    assert facts.value("host.stage_longest_us", RUN) == 40.0
    assert facts.value("host.stage_share", RUN) == pytest.approx(0.5)
