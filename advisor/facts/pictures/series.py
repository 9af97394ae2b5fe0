"""Compact series for the report's pictures, from facts and reductions that are there anyway.

Plain lists, numbers and words only. A picture whose data were not measured is absent. The forms:

    breakdown_steps, breakdown_ranks   {ranks, steps, step_us, parts: [phase], rows: [{label, values: [us]}]}
    timeline        [{step, rank, which: typical|worst|one, step_us, duration_us,
                      lanes: [{name: phase, spans: [[start_us, us]]}]}]
    step_ranks      see step_course.py      rank_steps      see grid.py
    pipeline        {nodes: [{id, type, name, workers, busy, us}], edges: [{source, target, use, empty, capacity}]}
    operator_types  see operator_tree.py    link_matrix     see link_matrix.py
    lateness        [{rank, us}]
    stages          [{stage, ranks, compute_us, bubble_us, communication_us, idle_us}]
    memory          [{rank, capacity_bytes, time_us: [], reserved_bytes: [], allocated_bytes: []}]
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Run
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.memory import MEMORY
from advisor.facts.pictures.grid import rank_steps
from advisor.facts.pictures.link_matrix import link_matrix
from advisor.facts.pictures.operator_tree import operator_types
from advisor.facts.pictures.spans import timelines
from advisor.facts.pictures.step_course import step_ranks
from advisor.facts.step.steps import steady
from advisor.facts.step.times import StepTimes
from advisor.model import RUN, Subject

log = logging.getLogger("advisor")

STEPS_DRAWN = 60
MEMORY_RANKS = 4
"""What a picture can show at the width of a page; more would only make the report heavier."""

_PHASES = (("computing", "computing"), ("exposed_communication", "exposed"), ("idle", "idle"))
_OLD_PHASES = (("interval", "interval"), ("fp_bp", "fp_bp"), ("tail", "tail"))


def charts(run: Run, facts: FactSet) -> dict[str, Any]:
    """Every series whose data exist. A picture that fails is left out: the verdicts stand without it."""
    makers: dict[str, Callable[[Run, FactSet], Any]] = {
        "breakdown_steps": _breakdown_steps,
        "breakdown_ranks": _breakdown_ranks,
        "timeline": lambda run, facts: timelines(run),
        "step_ranks": step_ranks,
        "rank_steps": rank_steps,
        "pipeline": _pipeline,
        "operator_types": operator_types,
        "lateness": _lateness,
        "link_matrix": link_matrix,
        "stages": _stages,
        "memory": _memory,
    }
    made: dict[str, Any] = {}
    for name, maker in makers.items():
        try:
            series = maker(run, facts)
        except Exception:
            log.debug("no picture %s", name, exc_info=True)
            continue
        if series:
            made[name] = series
    return made


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def _phases(times: Mapping[int, StepTimes]) -> tuple[tuple[str, str], ...]:
    """The phases that every rank knows: computation, exposed communication and idle, or the older three."""
    for wanted in (_PHASES, _OLD_PHASES):
        if all(all(phase in t.phases for _, phase in wanted) for t in times.values()):
            return wanted
    return ()


def _breakdown_steps(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """Each steady step: its length is the median of the ranks, its parts their shares of all ranks' time, as in the
    summary. Of many steps, evenly spaced ones and the slowest."""
    times = steady(run)
    phases = _phases(times)
    if not times or not phases:
        return None
    names = list(dict.fromkeys(step for t in times.values() for step in t.steps))
    place = {name: i for i, name in enumerate(names)}
    every = np.full((len(times), len(names), len(phases)), np.nan)
    length = np.full((len(times), len(names)), np.nan)
    for row, t in enumerate(times.values()):
        at = [place[step] for step in t.steps]
        every[row, at] = np.stack([t.phases[phase] for _, phase in phases], axis=1)
        length[row, at] = t.time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a step that no rank knows whole there is no row
        sums, typical = np.nansum(every, axis=0), np.nanmedian(length, axis=0)
    known = np.isfinite(typical) & (sums.sum(axis=1) > 0)
    lasts = sums[known] / sums[known].sum(axis=1, keepdims=True) * typical[known][:, None]
    labels = [names[i] for i in np.flatnonzero(known)]
    rows = [
        {"label": name, "values": [_round(float(part)) for part in parts]}
        for name, parts in zip(labels, lasts, strict=True)
    ]
    totals = typical[known].tolist()
    if len(rows) > STEPS_DRAWN:
        chosen = {round(i * (len(rows) - 1) / (STEPS_DRAWN - 2)) for i in range(STEPS_DRAWN - 1)}
        chosen.add(max(range(len(rows)), key=lambda i: totals[i]))
        rows = [rows[i] for i in sorted(chosen)]
    return {**_made_of(run, facts, len(names)), "parts": [part for part, _ in phases], "rows": rows} if rows else None


def _breakdown_ranks(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """Each rank's step by phase: the mean of its steady steps."""
    times = steady(run)
    phases = _phases(times)
    if len(times) < 2 or not phases:
        return None
    rows = []
    for rank, t in times.items():
        shares = [t.share(phase) for _, phase in phases]
        if None not in shares:
            mean = float(np.mean(t.time))
            rows.append({"label": str(rank), "values": [_round(mean * share) for share in shares if share is not None]})
    steps = len({step for t in times.values() for step in t.steps})
    return {**_made_of(run, facts, steps), "parts": [part for part, _ in phases], "rows": rows} if rows else None


def _made_of(run: Run, facts: FactSet, steps: int) -> dict[str, Any]:
    """How many ranks and steps a picture sums up, and the step of the summary to draw beside them."""
    return {"ranks": len(steady(run)), "steps": steps, "step_us": facts.number("step.time_us", RUN)}


def _pipeline(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """The operations of the rank whose wait for data is the median, with the use of the queues between them."""
    loading = {rank: data for rank, data in run.each(DATA_PIPELINE).items() if data.operations}
    if not loading:
        return None
    data = sorted(loading.values(), key=lambda data: data.wait_us or 0.0)[len(loading) // 2]
    operations = data.operations
    edges = [(source, op.op_id) for op in operations.values() for source in op.inputs if source in operations]
    if not edges:
        edges = [
            (op.op_id, op.parent) for op in operations.values() if op.parent is not None and op.parent in operations
        ]
    drawn = {key for edge in edges for key in edge} or set(operations)
    nodes = []
    for key in sorted(drawn):
        op = operations[key]
        subject = next((s for s in facts.subjects("pipeline_op") if s.id == op.name), Subject("pipeline_op", op.name))
        nodes.append(
            {
                "id": key,
                "type": op.type,
                "name": op.name,
                "workers": op.workers,
                "busy": facts.number("pipeline_op.busy_share", subject),
                "us": facts.number("pipeline_op.work_us", subject),
            }
        )
    queues = {key: operations[key].output for key in drawn}
    joins = [
        {
            "source": source,
            "target": target,
            "use": None if (queue := queues[source]) is None else _round(queue.used),
            "empty": None if queue is None else _round(queue.empty),
            "capacity": None if queue is None else queue.capacity,
        }
        for source, target in edges
    ]
    return {"nodes": nodes, "edges": joins}


def _lateness(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    late = [
        {"rank": subject.ranks[0], "us": _round(float(fact.value))}  # type: ignore[arg-type]
        for subject, fact in facts.of("rank.lateness_us").items()
        if subject.ranks
    ]
    late = late if any(entry["us"] > 0 for entry in late) else []
    return sorted(late, key=lambda entry: (-entry["us"], entry["rank"]))


def _stages(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    rows = []
    for subject in facts.subjects("stage"):
        compute = facts.number("stage.computing_us", subject)
        if compute is not None and subject.id.isdigit():
            bubble = facts.number("stage.bubble_us", subject)
            exposed, idle = (
                _median(facts, f"step.{part}_us", subject.ranks) for part in ("exposed_communication", "idle")
            )
            rows.append({
                "stage": int(subject.id), "ranks": list(subject.ranks), "compute_us": compute, "bubble_us": bubble,
                "communication_us": None if exposed is None else max(exposed - (bubble or 0.0), 0.0), "idle_us": idle,
            })  # fmt: skip
    return sorted(rows, key=lambda row: row["stage"])


def _median(facts: FactSet, name: str, ranks: Sequence[int]) -> float | None:
    told = [facts.number(name, Subject("rank", str(rank), (rank,))) for rank in ranks]
    known = [value for value in told if value is not None]
    return float(np.median(known)) if known else None


def _memory(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    """Reserved and allocated memory over time of the ranks with the highest peaks."""
    curves: list[dict[str, Any]] = []
    for rank, reduction in run.each(MEMORY).items():
        if not reduction.curve:
            continue
        at, reserved, allocated = (np.asarray(series, float) for series in reduction.curve)
        curves.append(
            {
                "rank": rank,
                "capacity_bytes": reduction.capacity,
                "time_us": [_round(value) for value in at],
                "reserved_bytes": [_round(value) for value in reserved],
                "allocated_bytes": [_round(value) for value in allocated] if np.isfinite(allocated).all() else [],
            }
        )
    return sorted(curves, key=lambda curve: -max(curve["reserved_bytes"], default=0.0))[:MEMORY_RANKS]
