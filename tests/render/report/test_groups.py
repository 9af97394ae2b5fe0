"""Two groups of ranks under the bar."""

from __future__ import annotations

from dataclasses import replace

from fake_reports import data_bound

from advisor.model import RUN, Fact, Subject
from advisor.render.report.groups import group_lines


def test_each_group_is_told_with_its_own_step_in_both_languages() -> None:
    """The reader of a pipeline sees what each stage's ranks do; of one group nothing is added."""
    facts = [Fact("run.unlike_ranks", RUN, (2, 3), 4, ())]
    for rank, (step, computing) in enumerate([(290e3, 0.2), (294e3, 0.2), (380e3, 0.7), (380e3, 0.7)]):
        subject = Subject("rank", str(rank), (rank,))
        facts.append(Fact("step.time_us", subject, step, 4, ()))
        facts.append(Fact("step.computing_share", subject, computing, 4, ()))
    report = replace(data_bound(), facts=tuple(facts))
    assert [line.replace("\xa0", " ") for line in group_lines(report, "en")] == [
        "ranks 0-1: Step 292 ms · computing 20 %",
        "ranks 2-3: Step 380 ms · computing 70 %",
    ]
    assert all("计算" in line for line in group_lines(report, "zh"))
    assert group_lines(replace(report, facts=tuple(facts[1:])), "en") == []
    for ranks in ((7,), (0, 1, 2, 3)):  # a report that somebody changed
        changed = (Fact("run.unlike_ranks", RUN, ranks, 4, ()), *facts[1:])
        assert group_lines(replace(report, facts=changed), "en") == []


def test_ranks_that_are_unlike_each_other_are_not_told_by_their_mean() -> None:
    """One rank waits for data and one computes longer: idle for 16 % of the step is neither."""
    facts = [Fact("run.unlike_ranks", RUN, (1, 4), 4, ())]
    for rank in range(6):
        subject = Subject("rank", str(rank), (rank,))
        parts = {1: (0.66, 0.31), 4: (0.78, 0.0)}.get(rank, (0.66, 0.01 * (rank % 2)))
        facts.append(Fact("step.time_us", subject, 227e3, 4, ()))
        facts += [Fact(f"step.{n}_share", subject, v, 4, ()) for n, v in zip(("computing", "idle"), parts, strict=True)]
    told = [line.replace("\xa0", " ") for line in group_lines(replace(data_bound(), facts=tuple(facts)), "en")]
    assert [line.split(":")[0] for line in told] == ["ranks 0, 2-3, 5", "rank 1", "rank 4"]
    assert "idle 31 %" in told[1] and "idle 0 %" in told[2]
