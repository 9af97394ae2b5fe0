"""A rank that is late in its stage is late for the stages behind it."""

from __future__ import annotations

from advisor.api import load_rules

LATE = {"idle-imbalance", "data-starved-rank", "host-dispatch-bound", "dynamic-shape-recompilation"}


def test_who_holds_up_its_peers_holds_up_the_other_stages() -> None:
    """What other stages wait for it is no second root cause beside it: of a pipeline whose rank pauses it was, where
    the tables that tell its pauses were taken away."""
    explained = {
        rule.id: {each.verdict for each in rule.explains}
        for rule in load_rules().rules
        if rule.subject_kind == "rank" and rule.verdict in LATE
    }
    of_peers = {rule for rule, verdicts in explained.items() if "waiting-on-slow-rank" in verdicts}
    assert of_peers
    assert of_peers <= {rule for rule, verdicts in explained.items() if "pipeline-bubble" in verdicts}
