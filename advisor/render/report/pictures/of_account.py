"""The account of the step as a picture: each part begins where the one above ends, and the last ends with the step."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.basics.units import show
from advisor.model import Accounting, Report, Text
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, caption, scale
from advisor.render.report.pictures.svg import WIDE, Drawing, shown, ticks
from advisor.render.report.whatif import account_parts
from advisor.render.wording import both

_LEFT, _RIGHT, _TOP, _ROW = 330, 110, 22, 22
_COLOURS = {"useful": "p-computing", "avoidable": "p-accent", "unavoidable": "p-bubble", "open": "p-idle"}


def draw_account(report: Report) -> Iterator[Figure]:
    """One picture where the step was accounted for in two parts at least."""
    told = report.accounting
    if told is None or told.step_us <= 0:
        return
    parts = list(_parts(report, told))
    if len(parts) < 2:
        return
    factor, unit = scale([told.step_us], "us")
    drawing = Drawing(WIDE, _TOP + _ROW * len(parts) + 26)
    room, bottom = WIDE - _LEFT - _RIGHT, _TOP + _ROW * len(parts)
    for value in ticks(told.step_us * factor):
        x = _LEFT + room * value / (told.step_us * factor)
        drawing.line(x, _TOP - 4, x, bottom, "grid")
        drawing.text(x, bottom + 14, shown(value), anchor="middle")
    drawing.text(WIDE - 4, bottom + 14, unit, anchor="end")
    at = 0.0
    for index, (group, label, finding, us) in enumerate(parts):
        top, left = _TOP + _ROW * index, _LEFT + room * at / told.step_us
        wide = max(room * us / told.step_us, 1.0)
        drawing.rect(left, top, wide, _ROW - 6, _COLOURS[group])
        drawing.text(_LEFT - 8, top + 12, label, "label", "end")
        drawing.text(left + wide + 6, top + 12, show(us, "us"))
        if finding:
            drawing.mark(4, top + 12, finding, "start")
        at += us
    rows = tuple((label, show(us, "us"), show(us / told.step_us, "ratio")) for _, label, _, us in parts)
    head = (both("figures.part"), both("figures.time"), both("figures.share"))
    legend = tuple((css, both(f"figures.account_{group}")) for group, css in _COLOURS.items()
                   if any(part[0] == group for part in parts))  # fmt: skip
    named = tuple(finding for _, _, finding, _ in parts if finding)
    drawn = drawing.markup(caption("account"))
    yield Figure("account", both("figures.account"), head, rows, drawn, None, legend, None, named, wide=True)


def _parts(report: Report, told: Accounting) -> Iterator[tuple[str, Text, str, float]]:
    """(kind of part, what it is, the finding it belongs to, microseconds) from the useful to the unexplained."""
    titles = {finding.id: finding.title for finding in report.findings}
    for group, name, us in account_parts(told):
        if group == "avoidable":
            title = titles.get(name, Text(name, name))
            yield group, Text(*(shorten(printable(text), 42) for text in (title.en, title.zh))), name, us
        else:
            yield group, both(f"account_parts.{name}" if group == "open" else f"account.{name}"), "", us
