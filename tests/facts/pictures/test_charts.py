"""Series for pictures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from advisor.facts.base import FactSet, Run
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.pictures.series import MATRIX_RANKS, STEPS_DRAWN, charts
from advisor.facts.pictures.spans import RESOLUTION, SPANS_DRAWN, _coarse
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import Fact, Subject
from advisor.sources.base import Profile

CORPUS = os.environ.get("ADVISOR_CORPUS")


def _run(ranks: int, steps: int, slow: int | None = None) -> Run:
    run = Run(Profile("p"))
    for rank in range(ranks):
        parts = {name: np.full(steps, us) for name, us in (("computing", 60.0), ("exposed", 30.0), ("idle", 10.0))}
        if slow is not None:
            parts["idle"][slow] = 12.0
        names = tuple(str(i) for i in range(steps))
        run.keep(rank, {STEPS: StepTimes(names, sum(parts.values()), parts, "steps")})
    return run


def test_nothing_measured_brings_no_picture():
    """An empty frame says less than none."""
    assert charts(Run(Profile("p")), FactSet()) == {}


def test_breakdowns_add_up_to_the_step():
    """The bars are the step, in every step and on every rank."""
    made = charts(_run(3, 4), FactSet())
    for name, count in (("breakdown_steps", 4), ("breakdown_ranks", 3)):
        assert made[name]["parts"] == ["computing", "exposed_communication", "idle"]
        assert [sum(row["values"]) for row in made[name]["rows"]] == [100.0] * count


def test_of_many_steps_the_slowest_stays():
    """Thinning must not hide the one step people look for."""
    rows = charts(_run(2, 5000, slow=1234), FactSet())["breakdown_steps"]["rows"]
    assert len(rows) <= STEPS_DRAWN
    assert "1234" in [row["label"] for row in rows]
    labels = [int(row["label"]) for row in rows]
    assert labels == sorted(labels) and labels[0] == 0 and labels[-1] == 4999


def test_a_large_matrix_keeps_the_slowest_links():
    """A matrix of a thousand ranks cannot be read; the slow corner of it can."""
    facts = FactSet(
        Fact(
            "link.bandwidth_bytes_per_s",
            Subject("link", f"{a}-{(a + 1) % 500}", (a, (a + 1) % 500)),
            1e9 if a == 321 else 18e9,
        )
        for a in range(500)
    )
    links = charts(Run(Profile("p")), facts)["links"]
    assert len(links["sources"]) <= MATRIX_RANKS
    at = links["sources"].index(321)
    assert links["values"][at][links["destinations"].index(322)] == 1e9


def test_lateness_only_where_somebody_is_late():
    """Eight zeros are no picture."""
    on_time = FactSet(Fact("rank.lateness_us", Subject("rank", str(r), (r,)), 0.0) for r in range(8))
    assert "lateness" not in charts(Run(Profile("p")), on_time)
    late = FactSet(Fact("rank.lateness_us", Subject("rank", str(r), (r,)), float(r == 5)) for r in range(8))
    assert charts(Run(Profile("p")), late)["lateness"][0] == {"rank": 5, "us": 1.0}


def test_memory_keeps_its_peak():
    """The curve is thinned; the moment that matters must stay on it."""
    from advisor.facts.device.memory import DRAWN, MEMORY, _curve

    time = np.arange(10_000) * 1e6
    allocated = np.full(10_000, 10e9)
    allocated[7_777] = 50e9
    run = Run(Profile("p"))
    run.keep(0, {MEMORY: SimpleNamespace(curve=_curve(time, allocated + 1e9, allocated), capacity=64e9)})
    curve = charts(run, FactSet())["memory"][0]
    assert len(curve["time_us"]) == DRAWN and max(curve["allocated_bytes"]) == 50e9
    assert curve["time_us"] == sorted(curve["time_us"]) and curve["capacity_bytes"] == 64e9


def test_one_broken_picture_costs_no_other():
    """Verdicts and other pictures stand without it."""
    run = _run(2, 3)
    run.keep(0, {DATA_PIPELINE: SimpleNamespace(operations=1, wait_us=None)})
    assert {"breakdown_steps", "breakdown_ranks"} <= set(charts(run, FactSet()))


@pytest.mark.parametrize("pieces", [1, 50, 20_000])
def test_coarse_spans_are_few_and_cover_nearly_the_same(pieces):
    """A step of twenty thousand kernels is drawn with a few hundred pieces that tell the same story."""
    start = np.arange(pieces, dtype=np.int64) * 10_000
    end = start + 9_990
    low, high = 0, int(end[-1])
    spans = _coarse((start, end), low, high)
    assert 0 < len(spans) <= SPANS_DRAWN
    covered = sum(length for _, length in spans) * 1000
    assert abs(covered - (end - start).sum()) <= 2 * len(spans) * (high - low) / RESOLUTION + 0.01 * high
    assert all(a >= 0 and a + length <= high / 1000 + 0.2 for a, length in spans)


@pytest.mark.skipif(not CORPUS, reason="no corpus")
@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("pt-text-ddp-alexnet-level1", {"breakdown_ranks", "timeline", "operator_types"}),
        ("mindspore-map_py_slow_io", {"pipeline"}),
        ("msinsight-cluster-output", {"breakdown_ranks"}),
    ],
)
def test_real_profiles_have_their_pictures(case, wanted):
    """What the files hold is shown, small and in plain JSON."""
    from advisor.pipeline import measure

    measured = measure([Path(CORPUS) / case], None)
    made = charts(measured.run, measured.facts)
    assert wanted <= set(made)
    assert len(json.dumps(made, allow_nan=False)) < 60_000
    for timeline in made.get("timeline", []):
        for lane in timeline["lanes"]:
            assert all(a >= 0 and a + us <= timeline["duration_us"] * 1.001 + 1 for a, us in lane["spans"])
