"""One picture: its title, the table behind it and what the page's script draws; and how its numbers are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.basics.units import show
from advisor.model import Finding, Report, Text
from advisor.render.escaping import printable
from advisor.render.wording import both

Series = Any
Cell = Text | str


@dataclass(frozen=True)
class Figure:
    """`spec` is drawn by the page's script, or `graph` by the template; `head` and `rows` are the table behind it."""

    id: str
    title: Text
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    graph: Mapping[str, Any] | None = None
    findings: tuple[str, ...] = ()
    wide: bool = False


def name_of(text: Text) -> dict[str, str]:
    return {"en": printable(text.en), "zh": printable(text.zh)}


_SCALES = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "us")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "bytes_per_s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
}


def scale(values: Sequence[float | None], unit: str) -> tuple[float, str]:
    """Factor and unit in which the largest value reads well."""
    steps = _SCALES.get(unit)
    if steps is None:
        return (100.0, "%") if unit == "ratio" else (1.0, "")
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return next(((1 / size, name) for size, name in steps if largest >= size), (1 / steps[-1][0], steps[-1][1]))


def rounded(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else float(f"{value * factor:.4g}")


def about(report: Report, *kinds: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.subject.kind in kinds]


def ids(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.id for finding in findings[:6])


def stacked(
    data: Series, key: str, label: Text, title: Text, marked: Sequence[str], findings: Sequence[Finding]
) -> Figure:
    parts = [str(part) for part in data["parts"]]
    labels = [printable(row["label"]) for row in data["rows"]]
    values = [[float(value) for value in row["values"]] for row in data["rows"]]
    totals = [sum(row) for row in values]
    factor, unit = scale(totals, "us")
    names = [both(f"phases.{part}") for part in parts]
    spec = {
        "kind": "stacked",
        "labels": labels,
        "unit": unit,
        "x": name_of(label),
        "marked": [index for index, text in enumerate(labels) if text in marked],
        "series": [
            {"name": name_of(name), "color": part, "values": [rounded(row[index], factor) for row in values]}
            for index, (part, name) in enumerate(zip(parts, names, strict=True))
        ],
    }
    rows = tuple(
        (
            text,
            show(total, "us"),
            *(f"{show(value, 'us')} ({show(value / total, 'ratio')})" if total else "–" for value in row),
        )
        for text, total, row in zip(labels, totals, values, strict=True)
    )
    return Figure(
        key, title, (label, both("report.step_time"), *names), rows, spec, None, ids(findings), len(labels) > 40
    )


def or_dash(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit)
