"""Compact series for the report's pictures, from facts and reductions that are there anyway.

Plain lists, numbers and words only. A picture whose data were not measured is absent. The forms:

    breakdown_steps, breakdown_ranks   {parts: [phase], rows: [{label, values: [us]}]}
    timeline        [{step, rank, which: typical|worst, duration_us, lanes: [{name: phase, spans: [[start_us, us]]}]}]
    pipeline        {nodes: [{id, type, name, workers, busy, us}], edges: [{source, target, use, empty, capacity}]}
    operator_types  [{name, us, share, count, core}]
    lateness        [{rank, us}]
    links           {transport, sources: [rank], destinations: [rank], values: [[bytes_per_s or null]]}
    stages          [{stage, ranks, compute_us, bubble_us}]
    memory          [{rank, capacity_bytes, time_us: [], reserved_bytes: [], allocated_bytes: []}]
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Run
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.memory import MEMORY
from advisor.facts.pictures.spans import timelines
from advisor.facts.step.steps import steady
from advisor.facts.step.times import StepTimes
from advisor.model import Subject

log = logging.getLogger("advisor")

STEPS_DRAWN = 60
TYPES_DRAWN = 30
MATRIX_RANKS = 32
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
        "pipeline": _pipeline,
        "operator_types": _operator_types,
        "lateness": _lateness,
        "links": _links,
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
    """Median over ranks of each steady step's phases; of many steps, evenly spaced ones and the slowest."""
    times = steady(run)
    phases = _phases(times)
    if not times or not phases:
        return None
    names = list(dict.fromkeys(step for t in times.values() for step in t.steps))
    place = {name: i for i, name in enumerate(names)}
    every = np.full((len(times), len(names), len(phases)), np.nan)
    for row, t in enumerate(times.values()):
        every[row, [place[step] for step in t.steps]] = np.stack([t.phases[phase] for _, phase in phases], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a step that no rank knows whole there is no row
        typical = np.nanmedian(every, axis=0)
    known = np.isfinite(typical).all(axis=1)
    rows = [{"label": names[i], "values": [_round(value) for value in typical[i]]} for i in np.flatnonzero(known)]
    totals = typical[known].sum(axis=1).tolist()
    if len(rows) > STEPS_DRAWN:
        chosen = {round(i * (len(rows) - 1) / (STEPS_DRAWN - 2)) for i in range(STEPS_DRAWN - 1)}
        chosen.add(max(range(len(rows)), key=lambda i: totals[i]))
        rows = [rows[i] for i in sorted(chosen)]
    return {"parts": [part for part, _ in phases], "rows": rows} if rows else None


def _breakdown_ranks(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """Each rank's typical step by phase."""
    times = steady(run)
    phases = _phases(times)
    if len(times) < 2 or not phases:
        return None
    rows = []
    for rank, t in times.items():
        shares = [t.share(phase) for _, phase in phases]
        if None not in shares:
            typical = float(np.median(t.time))
            rows.append(
                {"label": str(rank), "values": [_round(typical * share) for share in shares if share is not None]}
            )
    return {"parts": [part for part, _ in phases], "rows": rows} if rows else None


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


def _operator_types(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    """The costliest types; `share` is of all device time of operators."""
    times = {subject: float(fact.value) for subject, fact in facts.of("operator_type.time_us").items()}  # type: ignore[arg-type]
    total = sum(times.values())
    costliest = sorted(times.items(), key=lambda item: (-item[1], item[0]))[:TYPES_DRAWN]
    return [
        {
            "name": subject.id,
            "us": _round(us),
            "share": _round(us / total),
            "count": facts.number("operator_type.count", subject),
            "core": facts.value("operator_type.core", subject),
        }
        for subject, us in costliest
        if us > 0
    ]


def _lateness(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    late = [
        {"rank": subject.ranks[0], "us": _round(float(fact.value))}  # type: ignore[arg-type]
        for subject, fact in facts.of("rank.lateness_us").items()
        if subject.ranks
    ]
    late = late if any(entry["us"] > 0 for entry in late) else []
    return sorted(late, key=lambda entry: (-entry["us"], entry["rank"]))


def _links(run: Run, facts: FactSet) -> dict[str, Any] | None:
    """Bandwidth between ranks; of many ranks, those with the slowest links."""
    speeds: dict[tuple[int, int], float] = {}
    for subject, fact in facts.of("link.bandwidth_bytes_per_s").items():
        source, _, destination = subject.id.partition("-")
        if source.isdigit() and destination.isdigit() and isinstance(fact.value, (int, float)):
            speeds[int(source), int(destination)] = _round(float(fact.value))
    if not speeds:
        return None
    slowest = sorted(speeds, key=lambda pair: speeds[pair])
    shown = set(list(dict.fromkeys(rank for pair in slowest for rank in pair))[:MATRIX_RANKS])
    sources, destinations = (sorted({pair[side] for pair in speeds if shown.issuperset(pair)}) for side in (0, 1))
    transports = {str(fact.value) for fact in facts.of("link.transport").values()}
    return {
        "transport": ", ".join(sorted(transports)),
        "sources": sources,
        "destinations": destinations,
        "values": [[speeds.get((source, destination)) for destination in destinations] for source in sources],
    }


def _stages(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    rows = []
    for subject in facts.subjects("stage"):
        compute = facts.number("stage.computing_us", subject)
        if compute is not None and subject.id.isdigit():
            bubble = facts.number("stage.bubble_us", subject)
            rows.append(
                {"stage": int(subject.id), "ranks": list(subject.ranks), "compute_us": compute, "bubble_us": bubble}
            )
    return sorted(rows, key=lambda row: row["stage"])


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
