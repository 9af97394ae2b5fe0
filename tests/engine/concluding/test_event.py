"""A wait that happened in one step is that step's: it is no gain of each."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor.engine.concluding.summary import summarise
from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Finding, Value
from advisor.pipeline import advise
from advisor.render.wording import brief_gain, gain
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

STEP = 100_000.0
WAITED = 50_000.0


def reported(lone_us: float) -> tuple[Finding, str]:
    """The finding about the loader, and the headline."""
    told: dict[str, Value] = {
        "run.rank_count": 1, "step.time_us": STEP, "step.count": 6, "step.idle_share": 0.5,
        "step.computing_share": 0.5, "step.slow_steps": "4", "step.slow_extra_us": 300_000.0,
        "step.lone_wait_us": lone_us, "timeline.loader_stall_share": 0.5, "timeline.loader_stall_us": WAITED,
    }  # fmt: skip
    facts = FactSet([Fact(name, RUN, value) for name, value in told.items()])
    found = decide(load_rules(strict=False), facts)
    headline = summarise(found.findings, [], facts).headline.en
    return next(f for f in found.findings if f.rule == "DATA023"), plain(headline)


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_what_one_step_alone_waits_is_told_once() -> None:
    """300 ms in one of six steps is told as that, in the headline and in every list."""
    finding, headline = reported(WAITED)
    assert finding.saving is not None and finding.saving.us == WAITED
    assert plain(gain(finding.saving, "en")) == "up to 300 ms in step 4, once in 6 steps"
    assert plain(brief_gain(finding.saving).en) == "up to 300 ms"
    assert "300 ms, once in 6 steps, in step 4" in headline


def test_a_wait_that_other_steps_share_is_a_gain_of_each() -> None:
    """Where the other steps wait as well, the mean says what a step gains."""
    finding, headline = reported(0.3 * WAITED)
    assert finding.saving is not None and plain(gain(finding.saving, "en")) == "up to 50 ms (50 % of the step)"
    assert "50 ms per step" in headline


@pytest.mark.parametrize(
    ("fault", "direction", "verdict"),
    [
        (Fault("unsplit_allreduce"), "communication", "allreduce-not-overlapped"),
        (Fault("slow_compute", 2, 0.4), "computation", "slow-compute-rank"),
    ],
)
def test_an_event_does_not_set_the_direction_of_the_profile(
    tmp_path: Path, fault: Fault, direction: str, verdict: str
) -> None:
    """One of 15 steps lasts 400 ms longer, on all ranks, while a checkpoint is written: more than all of them lose to
    what every step loses. It is told as what it is, behind that."""
    scenario = Scenario(
        data=4, layers=4, steps=15, kernel_us=300.0, seed=5, gradient_mb_per_layer=60.0, faults=(fault,)
    )
    write_profile(simulate(scenario), tmp_path)
    for other in (*tmp_path.rglob("kernel_details.csv"), *tmp_path.rglob("trace_view.json")):
        other.unlink()
    for table in tmp_path.rglob("step_trace_time.csv"):
        with table.open() as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row.update({name: str(float(row[name]) + 400_000 * (row["Step"] == "17")) for name in ("Free", "Stage")})
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    report = advise([tmp_path], load_rules())
    assert report.summary.direction == direction
    event = next(f for f in report.findings if f.rule == "SCHED070")
    cause = next(f for f in report.findings if f.verdict == verdict)
    assert event.saving is not None and cause.saving is not None
    assert event.saving.lone_step == "17" and event.saving.us > cause.saving.us
    headline = plain(report.summary.headline.en)
    assert headline.startswith(plain(cause.title.en)) and "in step 17 alone, once in 15 steps" in headline
