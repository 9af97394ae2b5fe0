"""The whole step accounted for: useful computing, what findings could take away, what nobody can, and the rest.

Every microsecond stands in one of the four, and they sum to the step. What is unavoidable is a pipeline's bubble by its
schedule's own formula and data moving at the links' own bandwidth with nothing to hide it; what is left is unexplained
and said to be so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.engine.concluding.joint import is_promise
from advisor.facts.base import FactSet
from advisor.model import RUN, Accounting, Finding

_TAKEN_FROM: Mapping[str, tuple[str, ...]] = {
    "computation": ("computing", "exposed", "idle"),
    "communication": ("exposed", "idle", "computing"),
    "scheduling": ("idle", "exposed", "computing"),
    "waiting": ("exposed", "idle", "computing"),
}
"""Where on the typical rank the time that a finding gives back stands: its peers wait for a slow rank."""


def account(findings: Sequence[Finding], facts: FactSet, step_us: float | None) -> Accounting | None:
    """The account of the typical rank's step; None where its computing was not measured by itself."""
    left = _parts(facts, step_us)
    if left is None or not step_us:
        return None
    avoidable: dict[str, float] = {}
    moved = 0.0
    for finding in findings:
        if is_promise(finding) and finding.saving is not None and finding.saving.after_others_us:
            ways = _TAKEN_FROM.get("waiting" if finding.saving.removes else finding.direction.value, ())
            taken = _take(left, ways, finding.saving.after_others_us)
            moved += taken if finding.direction.value == "communication" else 0.0
            avoidable[finding.id] = taken
    unavoidable = {}
    bubble = (facts.number("pipeline.bubble_minimum_share", RUN) or 0.0) * step_us
    if bubble > 0:
        unavoidable["bubble"] = _take(left, ("exposed", "idle"), bubble)
    transfer = (facts.number("communication.exposed_transfer_share", RUN) or 0.0) * step_us - moved
    if transfer > 0:
        unavoidable["transfer"] = _take(left, ("exposed",), transfer)
    useful = left["computing"]
    rest = step_us - useful - sum(avoidable.values()) - sum(unavoidable.values())
    return Accounting(step_us, useful, avoidable, unavoidable, max(rest, 0.0))


def _parts(facts: FactSet, step_us: float | None) -> dict[str, float] | None:
    """computing, exposed communication and idle time, together no more than the step."""
    computing = facts.number("step.computing_share", RUN)
    if not step_us or computing is None or facts.value("step.computing_includes_idle", RUN) is True:
        return None
    shares = {
        "computing": computing,
        "exposed": facts.number("step.exposed_communication_share", RUN) or 0.0,
        "idle": facts.number("step.idle_share", RUN) or 0.0,
    }
    whole = max(sum(max(share, 0.0) for share in shares.values()), 1.0)
    return {name: max(share, 0.0) / whole * step_us for name, share in shares.items()}


def _take(left: dict[str, float], ways: Sequence[str], us: float) -> float:
    """Takes this time from the parts in this order; returns how much of it there was."""
    taken = 0.0
    for name in ways:
        part = min(left[name], us - taken)
        left[name] -= part
        taken += part
    return taken
