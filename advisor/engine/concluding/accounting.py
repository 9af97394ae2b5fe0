"""The whole step accounted for: useful computing, what findings could take away, what nobody can, and the rest.

Every microsecond stands in one of the four, and they sum to the step. Where the time stands is measured
(`facts/account/spending.py`); here each finding takes what it gives back from where that stands, and what is left of
the lost time is unexplained and said to be so, part by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.engine.concluding.joint import is_promise
from advisor.facts.account.spending import LOST, UNAVOIDABLE, USEFUL, spend
from advisor.facts.base import FactSet
from advisor.knowledge.verdicts import only_waits
from advisor.model import RUN, Accounting, Direction, Finding, Utilisation

_WAITING = (
    "late_wait", "stage_wait", "communication", "idle", "absent_wait", "unexplained", "slow_transfer", "bubble",
    "transfer",
)  # fmt: skip
_TAKEN_FROM: Mapping[str, tuple[str, ...]] = {
    "computation": (USEFUL, "idle", *_WAITING),
    "communication": ("slow_transfer", "transfer", "communication", *_WAITING, USEFUL),
    "scheduling": ("idle", *_WAITING, USEFUL),
    "waiting": (*_WAITING, USEFUL),
}
"""Where on the typical rank the time that a finding gives back stands: its peers wait for a slow rank, collectives over
a slow link last longer, a wait for data may stand among the kernels."""


def account(findings: Sequence[Finding], facts: FactSet, step_us: float | None) -> Accounting | None:
    """The account of the typical rank's step; None where its computing was not measured by itself."""
    left = spend(facts)
    if left is None or not step_us:
        return None
    avoidable: dict[str, float] = {}
    for finding in findings:
        if is_promise(finding) and finding.saving is not None and finding.saving.after_others_us:
            late = finding.saving.removes not in ("", "links") or _keeps_waiting(finding, findings)
            late = late or only_waits(finding.verdict)
            ways = _TAKEN_FROM.get("waiting" if late else finding.direction.value, ())
            given = finding.saving.after_others_us
            idle = _take(left, ("idle",), min(finding.saving.idle_us, given))
            avoidable[finding.id] = idle + _take(left, ways, given - idle)
    open_us = {name: left[name] for name in LOST if left[name] > 0}
    return Accounting(
        step_us, left[USEFUL], avoidable, {name: left[name] for name in UNAVOIDABLE if left[name] > 0},
        sum(open_us.values(), 0.0), open_us, _use(facts),
    )  # fmt: skip


def _keeps_waiting(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether others wait for what this cause computes: its symptom, or a symptom of that, is communication, and there
    its time stands."""
    below: set[str] = set()
    fresh = set(finding.explains)
    while fresh:
        below |= fresh
        fresh = {each for f in findings if f.id in fresh for each in f.explains} - below
    waits = any(f.direction == Direction.COMMUNICATION for f in findings if f.id in below)
    return finding.direction == Direction.COMPUTATION and waits


def _use(facts: FactSet) -> Utilisation | None:
    """What the step computes; None where no kernel tells."""
    told = {name: facts.number(f"utilisation.{name}", RUN) for name in ("flop", "flop_per_s", "counted_share")}
    known = {name: value for name, value in told.items() if value is not None}
    if len(known) < len(told):
        return None
    peak, share, best, usual = (
        facts.number(f"utilisation.{name}", RUN)
        for name in ("peak_flop_per_s", "model_flops_share", "best_step_us", "usual_step_us")
    )
    card = str(facts.value("utilisation.card", RUN) or "")
    ends = None if best is None or usual is None else (best, max(best, usual))
    return Utilisation(**known, card=card, peak_flop_per_s=peak, model_flops_share=share, best_step_us=ends)


def _take(left: dict[str, float], ways: Sequence[str], us: float) -> float:
    """Takes this time from the parts in this order; returns how much of it there was."""
    taken = 0.0
    for name in ways:
        part = min(left[name], us - taken)
        left[name] -= part
        taken += part
    return taken
