"""Series for pictures."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import PIPELINE, facts_of

from advisor.facts.base import FactSet, Run
from advisor.facts.cluster.meetings import Model
from advisor.facts.collectives.link_speed import LINKS, LinkLoad, Links
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.chain import Chain
from advisor.facts.pictures.grid import CELLS
from advisor.facts.pictures.link_matrix import MATRIX_RANKS
from advisor.facts.pictures.series import STEPS_DRAWN, charts
from advisor.facts.pictures.spans import RESOLUTION, SPANS_DRAWN, _coarse
from advisor.facts.pictures.step_course import critical_path
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import RUN, Fact, Subject
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


def _links(pairs):
    loads = {(a, b, "RDMA"): LinkLoad(speed, 1e6, (speed,), (1e6,)) for a, b, speed in pairs}
    run = Run(Profile("p"))
    run.keep(0, {LINKS: Links(loads, 1)})
    return run


def test_a_large_matrix_keeps_the_slowest_links():
    """A matrix of a thousand ranks cannot be read; the slow corner of it can."""
    made = charts(_links([(a, (a + 1) % 500, 1e9 if a == 321 else 18e9) for a in range(500)]), FactSet())
    (matrix,) = made["link_matrix"]
    assert len(matrix["labels"]) <= MATRIX_RANKS
    at = [matrix["labels"].index(name) for name in ("321", "322")]
    assert [cell[2] for cell in matrix["cells"] if cell[:2] == at] == [1e9]


def test_the_matrix_of_few_ranks_is_in_their_order():
    """Neighbours in the machine are neighbours in the picture."""
    made = charts(_links([(a, b, 18e9) for a in range(4) for b in range(4) if a != b]), FactSet())
    (matrix,) = made["link_matrix"]
    assert matrix["labels"] == ["0", "1", "2", "3"] and len(matrix["cells"]) == 12


def test_every_rank_in_every_step():
    """One slow step of one rank stands where it happened."""
    run = _run(3, 4)
    run.each(STEPS)[1].phases["computing"][2] = 600.0
    made = charts(run, FactSet())["rank_steps"]
    assert made["ranks"] == [0, 1, 2] and made["steps"] == ["0", "1", "2", "3"]
    computing = made["parts"][0]
    assert computing["name"] == "computing" and computing["us"][1] == [60, 60, 600, 60]


def test_the_grid_of_many_ranks_stays_small():
    """A thousand ranks of a thousand steps are thinned to what a page can show."""
    made = charts(_run(64, 1000), FactSet())["rank_steps"]
    assert len(made["ranks"]) * len(made["steps"]) <= CELLS and made["steps"][-1] == "999"


def test_bars_of_ranks_add_up_to_the_step_of_the_summary():
    """One aggregation: the mean of the steps, which is what the headline says."""
    run = _run(3, 4)
    times = run.each(STEPS)[2]
    times.time[1] += 40.0
    times.phases["idle"][1] += 40.0
    made = charts(run, FactSet([Fact("step.time_us", RUN, 100.0)]))["breakdown_ranks"]
    assert [round(sum(row["values"])) for row in made["rows"]] == [100, 100, 110]
    assert (made["steps"], made["ranks"], made["step_us"]) == (4, 3, 100.0)


def test_the_critical_path_goes_over_who_comes_last():
    """Two ranks meet in a collective: the slow one's computing is on the path, the fast one's is not."""

    def chain(compute):
        return Chain(
            "1", ("", "hcom_allReduce__1", ""), np.array([0.0, compute, 105.0]),
            np.array([compute, 105.0 - compute, 20.0]),
            np.zeros(3), np.zeros(3), np.array([-1, -1, 1]),
        )  # fmt: skip

    model = Model(
        {0: chain(40.0), 1: chain(100.0)},
        {0: 0.0, 1: 0.0},
        {0: [-1, 0, -1], 1: [-1, 0, -1]},
        [{0: 1, 1: 1}],
        [5.0],
        ["g"],
    )
    path = critical_path(model, {})
    assert [(rank, what) for rank, _, _, what in path][:2] == [(1, "computing"), (path[1][0], "communication")]
    assert path[0][1] == 0.0 and path[-1][2] == 125.0
    assert all(before[2] == after[1] for before, after in pairwise(path))
    awaited = critical_path(model, {0: 103.0})
    assert [piece for piece in awaited if piece[3] == "absent"] == [(1, 100.0, 103.0, "absent")]
    assert sum(end - begin for _, begin, end, what in awaited if what == "communication") == pytest.approx(2.0)


def test_what_is_idle_between_the_kernels_of_a_stretch_is_no_computing():
    """28 ms up to a collective in which kernels run for 2.5 ms: the path is idle for the rest."""
    chain = Chain(
        "1", ("", "hcom_allReduce__1"), np.array([0.0, 28.0]), np.array([2.5, 10.0]), np.array([25.5, 0.0]),
        np.zeros(2), np.array([-1, -1]),
    )  # fmt: skip
    model = Model({0: chain}, {0: 0.0}, {0: [-1, -1]}, [], [], [])
    path = critical_path(model, {})
    assert [what for *_, what in path] == ["computing", "idle", "communication"]
    assert [end - begin for _, begin, end, _ in path] == pytest.approx([2.5, 25.5, 10.0])
    assert all(before[2] == after[1] for before, after in pairwise(path))


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
    run.keep(0, {DATA_PIPELINE: SimpleNamespace(mode="iterator", operations=1, wait_us=None, times=None)})
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


def test_bars_of_stages_add_up_to_the_step(tmp_path):
    """A stage's bar shows all of its step, collectives and idle time as well: stages of one step are of one height."""
    facts, run = facts_of(replace(PIPELINE, pipeline=4, micro_batches=4), tmp_path)
    bars = charts(run, facts)["stages"]
    assert len(bars) == 4
    for bar in bars:
        whole = sum(bar[key] or 0.0 for key in ("compute_us", "bubble_us", "communication_us", "idle_us"))
        assert whole == pytest.approx(facts.value("step.time_us", RUN), rel=0.02)
