"""One wait has one root: a root cause that gives nothing once a larger one is repaired only contributes, and so does
one that gives next to nothing whatever else is repaired.

What is lost is then in the larger cause's saving already: told as two root causes, one wait would be counted twice. Two
causes that hide each other are no such pair: each gives something once the other is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.engine.concluding.joint import is_promise
from advisor.knowledge.savings import is_event, trifle, unexplained_part
from advisor.model import Finding, Role, Severity, WhatIf


def with_one_root_each(findings: Sequence[Finding], whatif: WhatIf | None) -> list[Finding]:
    """The findings, in the report's order, with those as contributing that another root cause's saving holds."""
    under = {} if whatif is None else _contained(findings, whatif)
    lesser = under.keys() | (set() if whatif is None else _trifles(findings, whatif))
    if not lesser:
        return list(findings)
    causes = {f.id: (*f.because, under[f.id]) if f.id in under else f.because for f in findings}
    below = [replace(f, role=Role.CONTRIBUTING, because=causes[f.id]) if f.id in lesser else f for f in findings]
    last_root = max(place for place, f in enumerate(below) if f.role == Role.ROOT_CAUSE)
    roots = [f for f in below[: last_root + 1] if f.id not in lesser]
    moved = [f for f in below[: last_root + 1] if f.id in lesser]
    ordered = [*roots, *moved, *below[last_root + 1 :]]
    holds = {first: [second for second, one in under.items() if one == first] for first in under.values()}
    number = {f.id: f"F{place}" for place, f in enumerate(ordered, 1)}

    def names(ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted({number[one] for one in ids}, key=lambda name: int(name[1:])))

    return [
        replace(f, id=number[f.id], because=names(f.because), explains=names((*f.explains, *holds.get(f.id, ()))))
        for f in ordered
    ]


def _contained(findings: Sequence[Finding], whatif: WhatIf) -> dict[str, str]:
    """Finding -> the larger one whose repair leaves nothing of what it gives."""
    left = {frozenset(filter(None, names.split(","))): us for names, us in whatif.step_time_us.items()}
    roots = [f for f in findings if f.role == Role.ROOT_CAUSE and is_promise(f) and f.id in whatif.causes]
    found: dict[str, str] = {}
    for place, second in enumerate(roots):
        for first in roots[:place]:
            if first.id not in found and _may_hold(first, second) and _holds(first, second, left):
                found[second.id] = first.id
                break
    return found


def _trifles(findings: Sequence[Finding], whatif: WhatIf) -> set[str]:
    """Root causes beside one of weight that give next to nothing, alone or once others are repaired."""
    left = {frozenset(filter(None, names.split(","))): us for names, us in whatif.step_time_us.items()}
    roots = [f for f in findings if f.role == Role.ROOT_CAUSE]
    found = {f.id for f in roots if f.id in whatif.causes and _most(f, left) < trifle() * left[frozenset()]}
    weighs = any(f.severity.rank >= Severity.MEDIUM.rank and f.id not in found for f in roots)
    return found if weighs else set()


def _most(finding: Finding, left: Mapping[frozenset[str], float]) -> float:
    """What it gives at most, alone or once any others are repaired, microseconds."""
    return max(us - left[ids | {finding.id}] for ids, us in left.items() if finding.id not in ids)


def _may_hold(first: Finding, second: Finding) -> bool:
    """Whether the first is known no worse: what is doubted, may come to nothing, or is one step's alone, explains
    nothing surer."""
    assert first.saving is not None and second.saving is not None
    bound = first.saving.kind == "upper_bound" and second.saving.kind != "upper_bound"
    surer = first.confidence.rank >= second.confidence.rank and not is_event(first)
    return surer and not bound and first.saving.us >= second.saving.us > 0


def _holds(first: Finding, second: Finding, left: Mapping[frozenset[str], float]) -> bool:
    """Whether the second gives nothing wherever the first is repaired, to what one time differs by when it is measured
    in two ways."""
    assert second.saving is not None
    more = (us - left[ids | {second.id}] for ids, us in left.items() if first.id in ids and second.id not in ids)
    return max(more) <= unexplained_part() * second.saving.us
