"""Two reports side by side as one HTML file: what moved, who accounts for it, and whether remedies worked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from advisor.basics.units import signed
from advisor.model import Report, Text
from advisor.render.comparison.text import account_lines, accounts_title, metric_change
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, caption, or_dash, scale
from advisor.render.report.html import render_page
from advisor.render.report.pictures import bars
from advisor.render.wording import both, breakdown

if TYPE_CHECKING:
    from advisor.compare.model import Comparison

TYPES_SHOWN = 16


def render_html(
    comparison: Comparison, lang: str = "en", *, sides: tuple[Report, Report], names: tuple[str, str] | None = None,
    home: bool = False, **_: Any,
) -> str:  # fmt: skip
    """The comparison of two reports, its `sides`, as one HTML document. `names` say what they are called (default:
    their profiles' paths), `home` links to the list of runs."""
    before, after = sides
    figures = list(_breakdowns(before, after))
    with suppress(KeyError, TypeError, ValueError, AttributeError):  # a saved picture that is not as it should be
        figures += _operator_types(before, after)
    return render_page(
        "comparison.html",
        lang,
        c=comparison,
        figures=figures,
        names=names or (before.profile.path, after.profile.path),
        home=home,
        account_lines=account_lines,
        accounts_title=accounts_title,
        metric_change=metric_change,
    )


def _breakdowns(before: Report, after: Report) -> Iterator[Figure]:
    """The step of both sides by phase; nothing where a side does not know it."""
    sides = []
    for report in (before, after):
        step, shares = report.summary.step_time_us, breakdown(report)
        if step is None or not shares:
            return
        sides.append({name: share * step for name, share in shares})
    parts = list(dict.fromkeys(name for side in sides for name in side))
    factor, unit = scale([sum(side.values()) for side in sides], "us")
    labels = [both("serve.before"), both("serve.after")]
    series = [(f"p-{part}", [side.get(part, 0.0) * factor for side in sides]) for part in parts]
    drawing = bars.columns(bars.Bars(labels, series, unit), caption("breakdown"))
    legend = tuple((f"p-{part}", both(f"phases.{part}")) for part in parts)
    rows: tuple[tuple[Text | str, ...], ...] = tuple(
        (both(f"phases.{part}"), *(or_dash(side.get(part), "us") for side in sides)) for part in parts
    )
    head = (both("comparison.part"), *labels)
    yield Figure("breakdown", both("report.where_time_goes"), head, rows, drawing, legend=legend)


def _times(report: Report) -> dict[str, float]:
    """Time per step by operator type, from the facts, else from the picture that a saved report carries."""
    facts = {
        fact.subject.id: float(fact.value)
        for fact in report.facts
        if fact.name == "operator_type.time_us" and isinstance(fact.value, (int, float))
    }
    return facts or {str(entry["name"]): float(entry["us"]) for entry in report.charts.get("operator_types", ())}


def _operator_types(before: Report, after: Report) -> Iterator[Figure]:
    """The types whose time differs most, before and after."""
    old, new = _times(before), _times(after)
    if not old or not new:
        return
    names = sorted({*old, *new}, key=lambda name: -abs(new.get(name, 0.0) - old.get(name, 0.0)))[:TYPES_SHOWN]
    factor, unit = scale([value for side in (old, new) for value in side.values()], "us")
    pairs = (("before", old), ("after", new))
    colors = {"before": "p-before", "after": "p-accent"}
    series = [(colors[key], [side.get(name, 0.0) * factor for name in names]) for key, side in pairs]
    labels = [shorten(printable(name), 60) for name in names]
    drawing = bars.rows(bars.Bars(labels, series, unit), caption("operator-types"))
    legend = tuple((colors[key], both(f"serve.{key}")) for key, _ in pairs)
    shapes = _shapes(before), _shapes(after)
    rows = tuple(
        (printable(name), shorten(printable(shape), 80) or "–", *_row(was, now))
        for name in names
        for shape, was, now in (("", old.get(name), new.get(name)), *_by_shape(name, *shapes))
    )
    head = (
        both("figures.operator_type"),
        both("figures.shape"),
        both("serve.before"),
        both("serve.after"),
        both("serve.change"),
    )
    yield Figure("operator-types", both("comparison.operator_types"), head, rows, drawing, legend=legend)


def _shapes(report: Report) -> dict[tuple[str, str], float]:
    """(type, input shapes) -> time per step, of the costliest shapes."""
    return {
        (str(entry["name"]), str(shape["shape"])): float(shape["us"])
        for entry in report.charts.get("operator_types", ())
        for shape in entry.get("shapes", ())
    }


def _by_shape(
    name: str, old: dict[tuple[str, str], float], new: dict[tuple[str, str], float]
) -> Iterator[tuple[str, float | None, float | None]]:
    for key in dict.fromkeys((*old, *new)):
        if key[0] == name and key[1]:
            yield key[1], old.get(key), new.get(key)


def _row(before: float | None, after: float | None) -> tuple[str, str, str]:
    change = (after or 0.0) - (before or 0.0)
    return or_dash(before, "us"), or_dash(after, "us"), signed(change, "us")
