"""A symptom is told by its cause where that is known, also where mending it gains little."""

from __future__ import annotations

from dataclasses import replace

from advisor.engine.concluding.summary import summarise
from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Role, Severity, Subject, Value
from advisor.ruleset.files.loader import load_rules


def test_waiting_for_a_rank_is_told_by_why_it_is_late() -> None:
    """The others wait 9 % of the step for rank 3, nearly all of it behind other waiting: the headline names why it is
    late, as the findings below it do."""
    run: dict[str, Value] = {
        "run.rank_count": 4, "run.missing_ranks": 0, "step.time_us": 91_000.0, "step.count": 3,
        "step.computing_share": 0.92, "step.exposed_communication_share": 0.07, "step.idle_share": 0.01,
    }  # fmt: skip
    late: dict[str, Value] = {
        "late_cause": "compute", "computing_excess_share": 0.09, "computing_excess_us": 8_100.0, "lateness_us": 8_200.0,
        "lateness_share": 0.09, "lateness_steadiness": 1.0, "saving_us": 60.0, "peer_group": "stage 0",
        "type_speed_low": 1.1, "type_speed_high": 1.1,
    }  # fmt: skip
    facts = FactSet(
        Fact(name, subject, value)
        for subject, told in ((RUN, run), (Subject("rank", "3", (3,)), {f"rank.{n}": v for n, v in late.items()}))
        for name, value in told.items()
    )
    found = [
        replace(f, severity=Severity.LOW) if f.role == Role.ROOT_CAUSE else f
        for f in decide(load_rules(strict=False), facts).findings
    ]
    headline = summarise(found, [], facts).headline.en.replace("\N{NO-BREAK SPACE}", " ")
    assert headline.startswith("No cause of lost time was found, but this: Slow ranks compute longer"), headline
    assert "rank 3" in headline
