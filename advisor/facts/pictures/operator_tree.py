"""Operators from type to shape to call: what the time of the device is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Run
from advisor.facts.device.course import COURSE
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.operators.types.row import TypeRow
from advisor.model import RUN, Subject

TYPES_DRAWN = 30
SHAPES_DRAWN = 6
"""Input shapes told of each type: the costliest."""


def operator_types(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    """The costliest types, mean over ranks and steady steps; `share` is of all device time of operators."""
    times = {
        subject: float(fact.value)
        for subject, fact in facts.of("operator_type.time_us").items()
        if isinstance(fact.value, (int, float))
    }
    total = sum(times.values())
    costliest = sorted(times.items(), key=lambda item: (-item[1], item[0]))[:TYPES_DRAWN]
    return [
        {
            "name": subject.id,
            "us": _round(us),
            "share": _round(us / total),
            "count": facts.number("operator_type.count", subject),
            "core": facts.value("operator_type.core", subject),
            **_unit_of(run, facts, subject),
            **_speed(facts, subject),
            "shapes": _shapes(run, subject.id),
        }
        for subject, us in costliest
        if us > 0
    ]


def _rows(run: Run, name: str) -> list[TypeRow]:
    return [found.types[name] for found in run.each(OPERATORS).values() if name in found.types]


def _unit_of(run: Run, facts: FactSet, subject: Subject) -> dict[str, Any]:
    """The busiest unit with how busy it is, and the longest call; absent where the files do not tell."""
    rows = _rows(run, subject.id)
    told = [row for row in rows if row.units.busiest and row.units.ratio is not None]
    found: dict[str, Any] = {}
    if told:
        busiest = max(told, key=lambda row: float(row.total_us.sum()))
        found |= {"unit": busiest.units.busiest, "busy": _round(busiest.units.ratio or 0.0)}
    longest = facts.number("operator_type.longest_us", subject)
    if longest:
        found |= {"longest_us": _round(longest), "longest": facts.value("operator_type.longest_call", subject)}
    return found


_SPEEDS = {
    "flop_per_s": "operator_type.flop_per_s",
    "best_flop_per_s": "operator_type.best_flop_per_s",
    "bytes_per_s": "operator_type.memory_rate",
}


def _speed(facts: FactSet, subject: Subject) -> dict[str, float]:
    """What the type achieves, and at the best of its shapes; absent where shapes and counters do not tell."""
    told = {key: facts.number(name, subject) for key, name in _SPEEDS.items()}
    peak = facts.number("utilisation.peak_flop_per_s", RUN) if told["flop_per_s"] else None
    return {key: _round(value) for key, value in {**told, "peak_flop_per_s": peak}.items() if value}


def _shapes(run: Run, name: str) -> list[dict[str, Any]]:
    """The costliest input shapes: calls a step, the median call over all ranks, and the slowest rank's against it."""
    by_shape: dict[str, dict[int, tuple[float, float]]] = {}
    courses = run.each(COURSE)
    for rank, course in courses.items():
        for (kind, shapes), pair in course.speed.items():
            if kind == name:
                by_shape.setdefault(shapes, {})[rank] = pair
    rows = []
    for shapes, ranks in by_shape.items():
        medians = {rank: us for rank, (_, us) in ranks.items()}
        usual = float(np.median(list(medians.values())))
        slowest = max(medians, key=lambda rank: medians[rank])
        calls = sum(count for count, _ in ranks.values()) / len(courses)
        row: dict[str, Any] = {"shape": shapes, "count": _round(calls), "call_us": _round(usual)}
        row["us"] = _round(sum(count * us for count, us in ranks.values()) / len(courses))
        if len(medians) > 1 and usual > 0:
            row |= {"slowest_rank": slowest, "against_peers": _round(medians[slowest] / usual)}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["us"])[:SHAPES_DRAWN]


def _round(value: float) -> float:
    return float(f"{value:.4g}")
