"""Pictures of a report: for each chart series a title, the table behind it and a drawing.

What the numbers mean is decided in `pictures/of_*.py`, how they are drawn in the other modules there. A series that is
missing or not as expected brings no picture and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from advisor.model import Finding, Report
from advisor.render.report.figure import Figure, Series
from advisor.render.report.pictures.of_account import draw_account
from advisor.render.report.pictures.of_data import draw_pipeline
from advisor.render.report.pictures.of_device import draw_memory, draw_operators
from advisor.render.report.pictures.of_ranks import draw_lateness, draw_links, draw_stages
from advisor.render.report.pictures.of_steps import (
    draw_all_ranks,
    draw_rank_steps,
    draw_ranks,
    draw_steps,
    draw_timelines,
)

_CLOSEST = (
    "pipeline", "links-", "memory", "operator-types", "stages", "step-ranks", "lateness", "rank-steps-",
    "breakdown-ranks", "timeline-", "breakdown-steps",
)  # fmt: skip
"""Which picture stands with a finding where several show it: the closest look first."""


def figures(report: Report) -> list[Figure]:
    """Every picture whose data exist, in the order in which people ask."""
    makers: tuple[tuple[str, Callable[[Series, Report], Iterator[Figure]]], ...] = (
        ("step_ranks", draw_all_ranks),
        ("breakdown_steps", draw_steps),
        ("breakdown_ranks", draw_ranks),
        ("rank_steps", draw_rank_steps),
        ("timeline", draw_timelines),
        ("pipeline", draw_pipeline),
        ("operator_types", draw_operators),
        ("lateness", draw_lateness),
        ("link_matrix", draw_links),
        ("stages", draw_stages),
        ("memory", draw_memory),
    )
    made: list[Figure] = list(draw_account(report))
    for name, maker in makers:
        try:
            made += maker(report.charts[name], report)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError, OverflowError):
            continue
    return made


def own_pictures(pictures: Sequence[Figure], findings: Sequence[Finding]) -> dict[str, Figure]:
    """finding -> the picture that stands with it: one that points at its subject, else the closest look at what it
    measured; each picture stands with one finding only."""
    taken: dict[str, Figure] = {}
    for finding in findings:
        free = [p for p in pictures if finding.id in p.findings and p.id not in {t.id for t in taken.values()}]
        if free:
            taken[finding.id] = min(free, key=lambda picture: (not picture.points_at(finding.id), _closeness(picture)))
    return taken


def _closeness(picture: Figure) -> int:
    return next((at for at, name in enumerate(_CLOSEST) if picture.id.startswith(name)), len(_CLOSEST))


def spread(pictures: Sequence[Figure]) -> list[Figure]:
    """The pictures for two columns: an odd narrow one goes across."""
    narrow = [index for index, picture in enumerate(pictures) if not picture.wide]
    if len(narrow) % 2 == 0:
        return list(pictures)
    return [replace(p, wide=True) if at == narrow[-1] else p for at, p in enumerate(pictures)]
