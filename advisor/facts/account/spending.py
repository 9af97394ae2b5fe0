"""The step of the typical rank accounted for: what it computes, what nobody can avoid, and where the rest stands.

Every microsecond stands in one part, and the parts sum to the step. What is unavoidable is a pipeline's bubble by its
schedule's own formula and data moving at the links' own bandwidth with nothing to hide it. The rest is lost; which of
it findings could give back is told when these are known (`engine/concluding/accounting.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.model import RUN, Fact

USEFUL = "useful"
UNAVOIDABLE = ("bubble", "transfer")
LOST = ("slow_transfer", "absent_wait", "late_wait", "stage_wait", "communication", "idle", "unexplained")
"""Exposed transfer beyond what its bytes need at the links' speed; waiting for ranks without a profile, for late ranks,
and for other stages beyond the bubble; exposed communication of which nobody knows whether it transfers or waits; idle
time; and what no table tells of."""

_NEEDS = "steps|step_phases|cluster_phases|kernels"
_PARTS = {
    "useful": ("computing of the typical rank, per step", "step.computing_share × step.time_us"),
    "bubble": ("what the pipeline's schedule itself makes a rank wait, per step",
               "pipeline.bubble_minimum_share × step.time_us, no more than there is of exposed communication and idle"),
    "transfer": ("data moving at the links' own bandwidth with nothing to hide it, per step",
                 "(communication.exposed_needed_share, else communication.exposed_transfer_share, + "
                 "pipeline.handover_needed_share) × step.time_us, no more than the exposed communication left"),
    "slow_transfer": ("exposed transfer that lasts longer than its bytes need at the links' own bandwidth, per step",
                      "(communication.exposed_transfer_share − communication.exposed_needed_share) × step.time_us, "
                      "of the exposed left"),
    "absent_wait": ("waiting in collectives for ranks that were not profiled, per step",
                    "communication.absent_wait_us, no more than the exposed communication left"),
    "late_wait": ("waiting in collectives for late ranks at hand that nothing hides, per step",
                  "communication.exposed_wait_share × step.time_us without absent_wait, of the exposed left"),
    "stage_wait": ("waiting for other stages beyond the schedule's bubble, per step",
                   "exposed − exposed without bubble − bubble − pipeline.handover_needed_share, of the exposed left"),
    "communication": ("exposed communication of which no table tells whether it transfers or waits, per step",
                      "the exposed communication left"),
    "idle": ("time in which the device runs nothing, per step", "step.idle_share × step.time_us, without bubble"),
    "unexplained": ("the rest of the step", "step.time_us − all other parts"),
}  # fmt: skip


def step_time(facts: FactSet) -> float | None:
    """Length of a step, microseconds. A recording without a schedule is one row for all its batches: then the time
    from batch to batch is the step."""
    return facts.number("data.step_us" if _batches_of_row(facts) else "step.time_us", RUN)


def _batches_of_row(facts: FactSet) -> float | None:
    """Batches that mark the steps of a recording which is one row; None where its rows are steps."""
    batch, batches = facts.number("data.step_us", RUN), facts.number("data.batches", RUN)
    one_row = facts.value("step.interval_us", RUN) is None and facts.number("step.count", RUN) == 1
    return batches if one_row and batch is not None and batches is not None and batches > 1 else None


def spend(facts: FactSet) -> dict[str, float] | None:
    """Part -> microseconds of the step; None where computing was not measured by itself."""
    row_us, step_us = facts.number("step.time_us", RUN), step_time(facts)
    computing = facts.number("step.computing_share", RUN)
    if not row_us or not step_us or computing is None or facts.value("step.computing_includes_idle", RUN) is True:
        return None
    shares = [computing, *(_share(facts, f"step.{name}_share") for name in ("exposed_communication", "idle"))]
    whole = max(sum(max(share, 0.0) for share in shares), 1.0)
    useful, exposed, idle = (max(share, 0.0) / whole * step_us for share in shares)
    parts = {USEFUL: useful}

    def take(name: str, wanted_us: float) -> None:
        nonlocal exposed
        parts[name] = min(max(wanted_us, 0.0), exposed)
        exposed -= parts[name]

    without = facts.number("communication.exposed_without_bubble_share", RUN)
    between = 0.0 if without is None else exposed - without * step_us
    bubble = _share(facts, "pipeline.bubble_minimum_share") * step_us
    take("bubble", bubble)
    standing = min(max(bubble - parts["bubble"], 0.0), idle)
    parts["bubble"] += standing
    take("absent_wait", (facts.number("communication.absent_wait_us", RUN) or 0.0) / row_us * step_us)
    moving = _share(facts, "communication.exposed_transfer_share") * step_us
    needed = facts.number("communication.exposed_needed_share", RUN)
    inside = moving if needed is None else min(needed * step_us, moving)
    handed = min(_share(facts, "pipeline.handover_needed_share") * step_us, max(between - parts["bubble"], 0.0))
    take("transfer", inside + handed)
    take("slow_transfer", moving - inside)
    take("late_wait", _share(facts, "communication.exposed_wait_share") * step_us - parts["absent_wait"])
    take("stage_wait", between - parts["bubble"] - handed)
    parts["communication"], parts["idle"] = exposed, idle - standing
    return {**parts, "unexplained": max(step_us - sum(parts.values()), 0.0)}


def _share(facts: FactSet, name: str) -> float:
    return facts.number(name, RUN) or 0.0


KINDS = (
    kind("step.marked_count", "count", "run", "steps that the figures of a step are means of, by whatever marks them",
         formula="data.batches where one row holds them all, else step.count", needs=_NEEDS),
    *(kind(f"account.{name}_us", "us", "run", meaning, formula=formula, needs=_NEEDS)
      for name, (meaning, formula) in _PARTS.items()),
    kind("account.unavoidable_us", "us", "run", "what nobody can take off the step",
         formula="account.bubble_us + account.transfer_us", needs=_NEEDS),
    kind("account.lost_us", "us", "run", "what the step neither computes nor needs, explained by findings or not",
         formula="step.time_us − account.useful_us − account.unavoidable_us", needs=_NEEDS),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The account of the typical rank's step, in parts and in sum."""
    del run
    marked = _batches_of_row(facts) or facts.number("step.count", RUN)
    yield from fact("step.marked_count", RUN, None if marked is None else int(marked))
    parts = spend(facts)
    if parts is None:
        return
    source = facts.get("step.computing_share", RUN)
    sources, n = (source.sources, source.samples) if source is not None else ((), 1)
    sums = {"unavoidable": UNAVOIDABLE, "lost": LOST}
    told = {**parts, **{name: sum(parts[part] for part in of) for name, of in sums.items()}}
    for name, us in told.items():
        yield from fact(f"account.{name}_us", RUN, us, *sources, samples=n)


FAMILIES = (Family("account", KINDS, measure, after=("steps", "communication", "stages", "data_pipeline")),)
