"""Graphs whose operators one table lists: the training's, and behind it that of an evaluation.

MindSpore numbers the nodes of a process in order, and names each by its layer: `Default/net/MatMul-op12`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.knowledge.measuring import limit

_NODE = re.compile(r"(?P<place>.*)-op(?P<number>[0-9]{1,18})$")
_GRADIENT = "Gradients/"


def begin_of_evaluation(names: Sequence[str]) -> int | None:
    """The row from which the operators are those of an evaluation, which no step of the training runs. Its graph was
    built later, so that each of its nodes has a higher number than all before; it begins as the training's does, runs
    the same layers, and has no gradients. None where nothing shows one."""
    nodes = [_NODE.match(name) for name in names]
    if len(nodes) < 2 or not all(nodes):
        return None
    places, numbers = [node["place"] for node in nodes if node], [int(node["number"]) for node in nodes if node]
    lowest = numbers[:]  # of this row and those behind it
    for row in range(len(numbers) - 2, -1, -1):
        lowest[row] = min(numbers[row], lowest[row + 1])
    highest, trains = numbers[0], places[0].startswith(_GRADIENT)
    for row in range(1, len(numbers)):
        if trains and places[row] == places[0] and highest < lowest[row] and _runs_again(places[:row], places[row:]):
            return row
        highest, trains = max(highest, numbers[row]), trains or places[row].startswith(_GRADIENT)
    return None


def _runs_again(before: Sequence[str], behind: Sequence[str]) -> bool:
    """Whether the rows behind are mostly of layers that run before, and none a gradient."""
    if any(place.startswith(_GRADIENT) for place in behind):
        return False
    known = set(before)
    return sum(place in known for place in behind) >= limit("graphs", "same_layers") * len(behind)
