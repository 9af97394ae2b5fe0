"""Pictures of one device: operators from type to shape to call, and memory over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.basics.units import show
from advisor.knowledge.values import say_value
from advisor.model import LANGUAGES, Report, Text
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, Series, caption, ids, marks_of, or_dash, scale, showing
from advisor.render.report.pictures import bars, lanes
from advisor.render.report.pictures.svg import Cell
from advisor.render.wording import both

TYPES_SHOWN = 14
PALETTE = 8
"""Colours of curves."""


def draw_operators(data: Series, report: Report) -> Iterator[Figure]:
    types = [entry for entry in data if entry["us"] > 0]
    if not types:
        return
    found = [
        finding
        for finding in showing(report, ("operator_type.", "operators.", "operator."))
        if finding.subject.kind in ("operator_type", "operator", "run", "rank")
    ]
    drawn = types[:TYPES_SHOWN]
    factor, unit = scale([entry["us"] for entry in drawn], "us")
    labels = [printable(entry["name"]) for entry in drawn]
    marks = marks_of(found, {entry["name"]: index for index, entry in enumerate(drawn)}, "operator_type")
    told = [_beside(entry) for entry in drawn]
    best = {index: share * drawn[index]["us"] * factor for index, share in enumerate(map(_of_best, drawn)) if share}
    picture = bars.Bars(
        labels, [("p-computing", [entry["us"] * factor for entry in drawn])], unit, "", marks, ticks=best
    )
    drawing = bars.rows(picture, caption("operator-types"), told, wide=True)
    rows: list[tuple[Cell, ...]] = []
    for entry in types:
        name = shorten(printable(entry["name"]), 80)
        busy = _busiest(entry) or "–"
        call: Cell = printable(entry["longest"]) if entry.get("longest") else "–"
        longest = or_dash(entry.get("longest_us"), "us")
        count = or_dash(entry.get("count"), "number")
        rows.append(
            (name, "–", count, show(entry["us"], "us"), show(entry["share"], "ratio"), "–",
             printable(entry.get("core") or "–"), busy, _achieved(entry), _possible(entry), "–", longest, call)
        )  # fmt: skip
        for shape in entry.get("shapes", ()):
            peers = ""
            if "against_peers" in shape:
                peers = f"{show(shape['against_peers'], 'ratio')} ({shape['slowest_rank']})"
            rows.append(
                (name, shorten(printable(shape["shape"]) or "–", 80), show(shape["count"], "number"),
                 show(shape["us"], "us"), show(entry["share"] * shape["us"] / entry["us"], "ratio"),
                 show(shape["call_us"], "us"), "", "", "", "", peers or "–", "", "")
            )  # fmt: skip
    words = ("operator_type", "shape", "count", "time", "share", "call", "core", "unit", "achieved", "possible",
             "peers", "longest", "longest_call")  # fmt: skip
    head = tuple(both(f"figures.{name}") for name in words)
    note = both("figures.operators_note")
    legend = (("p-computing", both("figures.time")), *((("limit solid", both("figures.at_best")),) if best else ()))
    yield Figure(
        "operator-types", both("figures.operator_types"), head, tuple(rows), drawing, note, legend, None, ids(found),
        True,
    )  # fmt: skip


def _beside(entry: Mapping[str, Any]) -> Cell:
    """What stands at the end of a bar: the share, and how busy its busiest unit is."""
    share, busy = show(entry["share"], "ratio"), _busiest(entry)
    return share if busy is None else Text(f"{share} · {busy.en}", f"{share} · {busy.zh}")


def _busiest(entry: Mapping[str, Any]) -> Text | None:
    if not entry.get("unit") or "busy" not in entry:
        return None
    names = (say_value(str(entry["unit"]), "text", lang, "operator_type.pipe") for lang in LANGUAGES)
    return Text(*(f"{shorten(printable(name), 30)} {show(entry['busy'], 'ratio')}" for name in names))


def _of_best(entry: Mapping[str, Any]) -> float:
    """Part of the time that the type would take at the speed of its best shapes; 0 where that is not known."""
    rate, best = entry.get("flop_per_s"), entry.get("best_flop_per_s")
    return min(rate / best, 1.0) if rate and best else 0.0


def _achieved(entry: Mapping[str, Any]) -> str:
    """Operations or bytes a second."""
    told = [show(entry[key], key) for key in ("flop_per_s", "bytes_per_s") if entry.get(key)]
    return " · ".join(told) or "–"


def _possible(entry: Mapping[str, Any]) -> str:
    """The speed of the type's best shapes, and what part of it and of the card's peak is reached."""
    told = [
        f"{show(entry[key], 'flop_per_s')} ({show(entry['flop_per_s'] / entry[key], 'ratio')})"
        for key in ("best_flop_per_s", "peak_flop_per_s")
        if entry.get(key) and entry.get("flop_per_s")
    ]
    return " · ".join(told) or "–"


def draw_memory(data: Series, report: Report) -> Iterator[Figure]:
    curves = [entry for entry in data if entry["time_us"]]
    if not curves:
        return
    time_factor, time_unit = scale([entry["time_us"][-1] for entry in curves], "us")
    factor, unit = scale([value for entry in curves for value in entry["reserved_bytes"]], "bytes")
    rank_word = both("kinds.rank")
    series, rows, legend = [], [], []
    for number, entry in enumerate(curves):
        css = f"c-{number % PALETTE}"
        for key in ("reserved_bytes", "allocated_bytes"):
            values = entry.get(key)
            if not values:
                continue
            kind = both(f"figures.{key}")
            name = Text(f"{rank_word.en} {entry['rank']} {kind.en}", f"{rank_word.zh} {entry['rank']} {kind.zh}")
            points = [(at * time_factor, value * factor) for at, value in zip(entry["time_us"], values, strict=True)]
            dashed = key == "allocated_bytes"
            series.append((css, dashed, points))
            legend.append((f"curve {css}{' dashed' if dashed else ''}", name))
            rows.append((name, show(max(values), "bytes"), or_dash(entry.get("capacity_bytes"), "bytes")))
    head = (both("figures.curve"), both("figures.peak"), both("figures.capacity"))
    found = showing(report, ("memory.", "rank.memory"))
    drawing = lanes.curves(series, time_unit, unit, caption("memory"))
    note = both("figures.memory_note")
    yield Figure("memory", both("figures.memory"), head, tuple(rows), drawing, note, tuple(legend), None, ids(found))
