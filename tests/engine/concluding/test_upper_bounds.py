"""What may come to nothing, and to no more than it says, is told as a bound."""

from __future__ import annotations

import pytest

from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Subject, Value
from advisor.ruleset.files.loader import load_rules

LINK = Subject("link", "0-1", (0, 1))


@pytest.mark.parametrize(
    ("replayed", "kind", "us"), [(None, "upper_bound", 50_000.0), (45_000.0, "estimate", 45_000.0)]
)
def test_a_slow_link_of_which_nobody_knows_what_is_hidden_gives_up_to_its_excess(replayed, kind, us) -> None:
    """Matrices alone do not tell whether computation hides it; a step that can be replayed does."""
    told: dict[str, Value] = {
        "link.is_card": False, "link.neighbour_count": 1, "link.bandwidth_ratio": 0.2, "link.card_ratio": 1.0,
        "link.host_ratio": 1.0, "link.message_bytes": 2e7, "link.is_worse_direction": True, "link.peer_count": 19,
        "link.excess_us": 50_000.0, "link.transport": "HCCS", "link.bandwidth_bytes_per_s": 3.5e9,
    }  # fmt: skip
    told |= {"link.saving_us": replayed} if replayed else {}
    facts = FactSet([Fact("step.time_us", RUN, 410_000.0), *(Fact(name, LINK, value) for name, value in told.items())])
    (found,) = decide(load_rules(strict=False), facts).findings
    assert found.saving is not None
    assert (found.rule, found.saving.kind, found.saving.us_per_step) == ("COMM040", kind, us)
