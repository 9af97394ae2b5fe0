"""What a stage computes needs what it received for it, also where that was asked for ahead and came meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.cluster.meetings import Model, _awaiting_inputs
from advisor.facts.device.chain import Chain

SEND, RECEIVE = "hcom_send__0_{}_1", "hcom_receive__0_{}_1"


def last_stage(*rows: tuple[str, float, float]) -> Model:
    """r receives a micro-batch, s sends its gradients back, c computes; each with its start and end, microseconds."""
    names, index = [], {"r": 0, "s": 0}
    found = Model({}, {0: 0.0, 1: 0.0}, {0: [], 1: []})
    for event, (letter, _, _) in enumerate(rows):
        names.append({"r": RECEIVE, "s": SEND, "c": ""}[letter].format(index.get(letter)))
        found.joint[1].append(-1 if letter == "c" else len(found.members))
        if letter != "c":
            index[letter] += 1
            found.members.append({0: len(found.members), 1: event})
            found.kinds.append({0: "send", 1: "receive"} if letter == "r" else {0: "receive", 1: "send"})
    start, end = (np.array([row[at] for row in rows]) for at in (1, 2))
    after = np.full(len(rows), -1)
    found.chains[1] = Chain("1", tuple(names), start, end - start, np.zeros(len(rows)), np.zeros(len(rows)), after)
    return found


FIRST = (("r", 0.0, 10.0), ("c", 10.0, 30.0))


def test_the_next_micro_batch_is_computed_when_it_has_come():
    """It came while the one before was computed, so that nothing waited: mended, this stage would still need it."""
    found = last_stage(*FIRST, ("r", 12.0, 20.0), ("s", 30.0, 31.0), ("c", 30.0, 50.0), ("s", 50.0, 51.0))
    assert _awaiting_inputs(found, 1).after.tolist() == [-1, 0, -1, -1, 2, -1]


@pytest.mark.parametrize("came", [45.0, 60.0])
def test_starts_that_contradict_the_order_leave_the_chain_alone(came):
    """What begins before the message has come is not made from it: chunks of layers take turns in other orders."""
    found = last_stage(*FIRST, ("r", 12.0, came), ("s", 30.0, 31.0), ("c", 30.0, 50.0), ("s", 50.0, 51.0))
    assert _awaiting_inputs(found, 1).after.tolist() == found.chains[1].after.tolist()


def test_more_messages_than_answers_leave_the_chain_alone():
    """Which of them an answer is made from nobody knows."""
    found = last_stage(*FIRST, ("r", 12.0, 20.0), ("s", 30.0, 31.0), ("c", 30.0, 50.0))
    assert (_awaiting_inputs(found, 1).after < 0).all()
