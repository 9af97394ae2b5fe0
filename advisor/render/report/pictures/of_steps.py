"""Pictures of steps: their parts by step and by rank, what ran when, all ranks on one axis, and the grid of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from advisor.basics.units import MEASURED, rank_list, show
from advisor.model import Report, Text
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, Series, caption, ids, made_of, marks_of, scale, showing
from advisor.render.report.pictures import bars, fields, lanes
from advisor.render.wording import both

OUTLIERS = 3
FAR_OUT = 1.5
"""Where the largest value is so many times the third largest, the scale of a heat map ends at the latter: one pause
leaves the other cells their shades."""
WIDE_FROM = 40
"""Bars that need the width of the page."""
_RANK_FACTS = ("step.", "rank.", "getnext.", "data.wait", "lateness.")
_LANE_FACTS = {
    "computing": ("step.computing", "operators.", "operator_type."),
    "exposed_communication": ("step.exposed_communication", "communication.", "allreduce."),
    "idle": ("step.idle", "step.start_gap", "dispatch.", "timeline.", "host_api.", "data.wait"),
}


_PART_FACTS = {
    "computing": ("step.computing", "rank.comput", "rank.kernel"),
    "idle": ("step.idle", "step.start_gap", "rank.idle", "rank.data", "data.wait", "getnext.", "dispatch."),
}


def draw_steps(data: Series, report: Report) -> Iterator[Figure]:
    if len(data["rows"]) > 1:
        found = showing(report, ("step.", "data.", "dispatch."), ("step",))
        yield _stacked(data, "breakdown-steps", "step", found, made_of(data, "ranks"))


def draw_ranks(data: Series, report: Report) -> Iterator[Figure]:
    if len(data["rows"]) > 1:
        found = showing(report, _RANK_FACTS, ("rank",))
        yield _stacked(data, "breakdown-ranks", "rank", found, made_of(data, "steps"))


def _stacked(data: Series, key: str, kind: str, found: list[Any], note: Text | None) -> Figure:
    parts = [str(part) for part in data["parts"]]
    labels = [printable(row["label"]) for row in data["rows"]]
    values = [[float(value) for value in row["values"]] for row in data["rows"]]
    totals = [sum(row) for row in values]
    whole = data.get("step_us")
    factor, unit = scale([*totals, whole], "us")
    names = [both(f"phases.{part}") for part in parts]
    series = [(f"p-{part}", [row[index] * factor for row in values]) for index, part in enumerate(parts)]
    wide = len(labels) > WIDE_FROM
    line = (
        (whole * factor, both("figures.the_step", time=show(whole, "us", MEASURED)))
        if isinstance(whole, float)
        else None
    )
    marks = marks_of(found, {label: index for index, label in enumerate(labels)}, kind)
    title = both(f"kinds.{kind}")
    drawing = bars.columns(bars.Bars(labels, series, unit, title, marks, line), caption(key), wide)
    rows = tuple(
        (
            text,
            show(total, "us", MEASURED),
            *(f"{show(value, 'us')} ({show(value / total, 'ratio')})" if total else "–" for value in row),
        )
        for text, total, row in zip(labels, totals, values, strict=True)
    )
    legend = tuple((f"p-{part}", name) for part, name in zip(parts, names, strict=True))
    words = both(f"figures.{key.replace('-', '_')}")
    return Figure(
        key, words, (title, both("report.step_time"), *names), rows, drawing, note, legend, None, ids(found), wide
    )


def draw_timelines(data: Series, report: Report) -> Iterator[Figure]:
    for index, timeline in enumerate(data):
        factor, unit = scale([timeline["duration_us"]], "us")
        ran = [lane for lane in timeline["lanes"] if lane["spans"]]
        rank, step = int(timeline["rank"]), str(timeline["step"])
        marks: dict[int, list[str]] = {}
        found = []
        for place, lane in enumerate(ran):
            for finding in showing(report, _LANE_FACTS.get(lane["name"], ("-",))):
                subject = finding.subject
                if subject.kind in ("run", "operator_type") or subject.id == step or rank in subject.ranks:
                    marks.setdefault(place, []).append(finding.id)
                    found.append(finding)
        rows = tuple(
            (
                both(f"phases.{lane['name']}"),
                str(len(lane["spans"])),
                show(sum(length for _, length in lane["spans"]), "us"),
                show(max(length for _, length in lane["spans"]), "us"),
            )
            for lane in ran
        )
        shown = timeline.get("step_us", timeline["duration_us"])
        title = both(
            f"figures.timeline_{timeline['which']}", step=printable(step), rank=rank, time=show(shown, "us", MEASURED)
        )
        head = (both("figures.lane"), both("figures.spans"), both("figures.total"), both("figures.longest"))
        named = [(both(f"phases.{lane['name']}"), f"p-{lane['name']}", lane["spans"]) for lane in ran]
        key = f"timeline-{index}"
        first = {place: told[:3] for place, told in marks.items()}
        drawing = lanes.lanes(named, timeline["duration_us"], unit, factor, first, caption(key))
        note = both("figures.from_first_kernel", time=show(timeline["duration_us"], "us", MEASURED))
        yield Figure(key, title, head, rows, drawing, note, (), None, tuple(dict.fromkeys(ids(found))), True)


def draw_all_ranks(data: Series, report: Report) -> Iterator[Figure]:
    """One step of all ranks on one axis, with the critical path."""
    factor, unit = scale([data["duration_us"]], "us")
    facts = ("rank.", "lateness.", "step.exposed", "step.computing", "stage.", "collective.", "pipeline.", "getnext.")
    found = showing(report, facts, ("rank", "stage", "collective", "host"))
    names = {}
    for index, row in enumerate(data["rows"]):
        word = both(f"kinds.{'rank' if 'rank' in row else row['group']}")
        who = row["rank"] if "rank" in row else f"{shorten(printable(row['id']), 12)} ({len(row['ranks'])})"
        names[index] = Text(f"{word.en} {who}", f"{word.zh} {who}")
    places = {str(row["rank"]): index for index, row in enumerate(data["rows"]) if "rank" in row}
    marks = marks_of(found, places, "rank")
    drawing = lanes.all_ranks(data, names, unit, factor, marks, caption("step-ranks"))
    sums: dict[tuple[int, str], float] = {}
    for rank, begin, end, what in data["path"]:
        sums[int(rank), str(what)] = sums.get((int(rank), str(what)), 0.0) + end - begin
    rows = tuple(
        (str(rank), both(f"phases.{what}"), show(us, "us"), show(us / data["duration_us"], "ratio"))
        for (rank, what), us in sorted(sums.items(), key=lambda item: -item[1])
    )
    legend = (
        ("p-computing", both("phases.computing")),
        ("p-waiting", both("figures.waiting")),
        ("p-exposed_communication", both("figures.transfer")),
        ("way", both("figures.critical_path")),
    )
    title = both("figures.step_ranks", step=printable(data["step"]), ranks=data["ranks"])
    head = (both("kinds.rank"), both("figures.on_path"), both("figures.time"), both("figures.share"))
    note = both("figures.path_note")
    yield Figure("step-ranks", title, head, rows, drawing, note, legend, None, ids(found), True)


def draw_rank_steps(data: Series, report: Report) -> Iterator[Figure]:
    """For each part of the step a heat map of ranks and steps, on scales of the same width."""
    ranks, steps = [str(rank) for rank in data["ranks"]], [str(step) for step in data["steps"]]
    if len(ranks) < 2 or len(steps) < 2:
        return
    whole = np.array([part["us"] for part in data["parts"]], float)
    least = 0.25 * float(np.median(np.where(whole < 0, 0, whole).sum(axis=0)))
    places = {rank: index for index, rank in enumerate(ranks)}
    for part in data["parts"]:
        name = str(part["name"])
        values = np.array(part["us"], float)
        known = values[values >= 0]
        if not known.size or values.shape != (len(ranks), len(steps)):
            continue
        low, high = float(known.min()), float(known.max())
        most = float(np.sort(known)[-min(OUTLIERS, known.size)])
        high = most if high > FAR_OUT * most else high
        if high < least / 5 and len(data["parts"]) > 1:
            continue  # a part that is nowhere long enough to see
        if high - low < least:  # noise is not blown up to the whole scale
            low = max((low + high - least) / 2, 0.0)
            high = low + least
        factor, unit = scale([high], "us")
        prefix = _PART_FACTS.get(name, (f"step.{name}",))
        found = showing(report, prefix, ("rank", "step"))
        key = f"rank-steps-{name.replace('_', '-')}"
        words = (both("kinds.rank"), both("kinds.step"))
        marks = marks_of(found, places, "rank")
        drawing = fields.heat_map(
            ranks, steps, values.tolist(), low, high, unit, factor, words, marks, key, caption(key)
        )
        rows = tuple(
            (
                rank,
                *((show(float(f(row[row >= 0])), "us") if (row >= 0).any() else "–") for f in (np.median, np.max)),
                steps[int(row.argmax())],
            )
            for rank, row in zip(ranks, values, strict=True)
        )
        head = (both("kinds.rank"), both("figures.median"), both("figures.largest"), both("figures.in_step"))
        title = both("figures.rank_steps", part=both("report.step_time" if name == "step" else f"phases.{name}"))
        note = both("figures.grid_note", ranks=rank_list(tuple(data["ranks"])), steps=len(steps))
        yield Figure(key, title, head, rows, drawing, note, (), None, ids(found))
