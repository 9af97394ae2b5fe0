"""Groups of ranks with unlike steps, a line each: no rank has what the bar of the run shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from advisor.basics.units import MEASURED, rank_list, show
from advisor.knowledge.measuring import limit
from advisor.knowledge.words import word
from advisor.model import Report
from advisor.render.wording import labelled

_OF_RANKS = ("computing", "exposed_communication", "idle")
_ALIKE = limit("unlike_ranks", "alike")
"""Ranks whose shares differ by less are told together."""
_MOST = int(limit("unlike_ranks", "most"))
"""Groups on either side that are worth a line each: of more, the middle rank tells."""


def group_lines(report: Report, lang: str) -> list[str]:
    """A line for each group of ranks with unlike steps: no rank has what the bar shows, the middle of all."""
    listed = next((fact.value for fact in report.facts if fact.name == "run.unlike_ranks"), None)
    some = set(listed) if isinstance(listed, tuple | list) else set()
    if not some:
        return []
    label = word(lang, f"report.{'step' if report.summary.step_time_us is not None else 'recording'}_time")
    named = {f"step.{name}_share": name for name in _OF_RANKS} | {"step.time_us": "step.time_us"}
    told: dict[str, dict[int, float]] = {}
    for fact in report.facts:
        one_rank = fact.subject.kind == "rank" and fact.subject.ranks
        if fact.name in named and one_rank and isinstance(fact.value, int | float):
            told.setdefault(named[fact.name], {})[fact.subject.ranks[0]] = float(fact.value)
    lengths = told.pop("step.time_us", {})
    lines = []
    sides = sorted((sorted(lengths.keys() - some), sorted(lengths.keys() & some)))
    for group in sorted(group for side in sides for group in _alike(side, told)) if all(sides) else ():
        ranks = word(lang, "kinds.rank" if len(group) == 1 else "report.ranks") + f" {rank_list(tuple(group))}"
        parts = [f"{label} {show(median(lengths[rank] for rank in group), 'us', MEASURED)}"]
        for name in _OF_RANKS:
            shares = [told[name][rank] for rank in group if rank in told.get(name, {})]
            parts += [f"{word(lang, f'phases.{name}')} {show(median(shares), 'ratio')}"] if shares else []
        lines.append(labelled(ranks, " · ".join(parts), lang))
    return lines


def _alike(ranks: Sequence[int], shares: Mapping[str, Mapping[int, float]]) -> list[list[int]]:
    """The ranks in groups of which each has about the shares of its first one; all together where these are many."""
    groups: list[list[int]] = []
    for rank in ranks:
        for group in groups:
            if all(abs(of.get(rank, 0.0) - of.get(group[0], 0.0)) < _ALIKE for of in shares.values()):
                group.append(rank)
                break
        else:
            groups.append([rank])
    return groups if len(groups) <= _MOST else [list(ranks)]
