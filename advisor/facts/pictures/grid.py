"""Every rank in every step: what a heat map of the run is drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Run
from advisor.facts.step.steps import steady

CELLS = 16_000
"""Of more ranks and steps than this, evenly spaced steps are kept."""
_PARTS = (("computing", "computing"), ("exposed_communication", "exposed"), ("idle", "idle"))
_OLD_PARTS = (("interval", "interval"), ("fp_bp", "fp_bp"), ("tail", "tail"))


def rank_steps(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """Microseconds of each part by rank (rows) and step (columns), −1 where a rank does not know the step."""
    del facts
    times = steady(run)
    names = list(dict.fromkeys(step for t in times.values() for step in t.steps))
    if len(times) < 2 or len(names) < 2:
        return None
    most = max(CELLS // len(times), 2)
    if len(names) > most:
        names = [names[i] for i in sorted({round(i * (len(names) - 1) / (most - 1)) for i in range(most)})]
    parts = []
    for wanted in (_PARTS, _OLD_PARTS):
        if all(all(phase in t.phases for _, phase in wanted) for t in times.values()):
            parts = [(part, [t.phases[phase] for t in times.values()]) for part, phase in wanted]
            break
    if not parts:
        parts = [("step", [t.time for t in times.values()])]
    columns = [[t.steps.index(name) if name in t.steps else -1 for name in names] for t in times.values()]
    return {
        "ranks": list(times),
        "steps": names,
        "parts": [
            {
                "name": part,
                "us": [
                    [-1 if at < 0 or not np.isfinite(series[at]) else round(float(series[at])) for at in row]
                    for series, row in zip(values, columns, strict=True)
                ],
            }
            for part, values in parts
        ],
    }
