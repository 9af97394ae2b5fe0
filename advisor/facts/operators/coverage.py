"""Which steps the kernels of a rank, or a table that sums them up, cover, and how many.

`Computing` of a step table is the time in which any kernel runs. Kernels of one type follow each other, for they want
the same cores: the type that takes longest runs for its whole sum, and alone are the AI CPU's kernels at most in what
is left of `Computing`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.basics.units import show
from advisor.facts.base import Run, computed
from advisor.facts.operators.reduction import OPERATORS, Operators
from advisor.facts.recording.counts import are_whole, covers_more
from advisor.facts.recording.limits import section
from advisor.facts.step.steps import steady
from advisor.facts.step.times import StepTimes


class Scale(Struct, frozen=True):
    """Which of a rank's steps count, and how many they are."""

    chosen: Floats
    steps: float

    def per_step(self, values: Floats) -> float:
        usable = values[self.chosen.astype(bool)]
        usable = usable[np.isfinite(usable)]
        return float(usable.sum() / self.steps) if usable.size else float("nan")

    def counted_of(self, steps: Sequence[str]) -> set[str]:
        """The names of those that count."""
        return {step for step, chosen in zip(steps, self.chosen, strict=True) if chosen}


def scale(run: Run, rank: int, steps: tuple[str, ...]) -> Scale:
    """The steady steps among those of a reduction; all where the names do not meet."""
    times = steady(run).get(rank)
    if times is not None and len(steps) == 1 and times.recorded > 1:
        return Scale(np.ones(1), float(times.recorded))  # sums over the whole profile
    names = set(times.steps) if times is not None else set()
    chosen = np.array([float(step in names) for step in steps])
    if not chosen.any():
        chosen = np.ones(len(steps))
    return Scale(chosen, float(chosen.sum()))


def scale_of(run: Run, rank: int, found: Operators) -> Scale:
    if found.averaged or found.executions:
        return Scale(np.ones(1), float(found.executions or 1))
    return scale(run, rank, found.steps)


@computed
def in_these_steps(run: Run) -> dict[int, Operators]:
    """The operators of each rank, without those of another recording: a table that sums up the run counts each type
    that runs in a step once a step at least. Where none is counted so often, it is a table of other steps."""
    found: dict[int, Operators] = dict(run.each(OPERATORS))
    times = steady(run)
    for rank in run.profile.ranks:
        o = found.get(rank.rank)
        if o is None or o.averaged or rank.has("kernels") or rank.rank not in times:
            continue
        steps, most = times[rank.rank].recorded, max((row.count.sum() for row in o.types.values()), default=0.0)
        if 0 < most < steps:
            text = f"counts no operator more than {most:.0f} times in {steps} steps: it tells of other steps; left out"
            rank.note(o.sources[0].file, text)
            del found[rank.rank]
        elif not o.executions and (covered := _steps_covered(o, times[rank.rank])) is not None:
            text = (
                f"sums kernels of {show(float(o.compute_us.sum()), 'us')}, more than the {steps} steps last: it covers "
                f"about {covered} such steps"
            )
            table = times[rank.rank].table
            # what a step table of its own tells stands without them
            doubted = () if _runs_whole(o, covered) else (o.sources[0].table, *([] if table == "steps" else [table]))
            rank.note(o.sources[0].file, text, doubted)
            found[rank.rank] = replace(o, executions=covered)
    for rank_id, o in found.items():
        if rank_id in times and not np.isfinite(o.aicpu_us).any():  # a table of sums
            found[rank_id] = replace(o, aicpu_most_us=most_alone_us(o, times[rank_id]))
    return found


def _steps_covered(o: Operators, times: StepTimes) -> int | None:
    """Of how many steps a table sums the kernels up that are more than all recorded ones can hold, by what the steps
    compute; None where the steps can hold them: kernels of several streams run beside each other."""
    step_us = float(np.mean(times.time)) if times.time.size else 0.0
    computing = times.phases.get("computing", times.time)
    us = float(np.nanmean(computing)) if np.isfinite(computing).any() else 0.0
    kernels, steps = float(o.compute_us.sum()), times.recorded
    longest = max(_on_cores_us(o), default=0.0) if "computing" in times.phases else 0.0
    if min(step_us, us) <= 0 or not covers_more(kernels, longest, us * steps, step_us * steps):
        return None
    fewest = round(kernels / us)
    return fewest if "computing" in times.phases else max(fewest, _once_in_each(o))  # a step may idle as well


def _once_in_each(o: Operators) -> int:
    """How many executions the counts tell of: some type ran once in each, and all others as often in one as in the
    next; 0 where they do not show it."""
    counts = np.array([row.count.sum() for row in o.types.values() if not row.communication])
    enough = len(counts) >= section("witness")["fewest_types"] and counts.min() > 0
    return int(counts.min()) if enough and not np.any(counts % counts.min()) else 0


def _runs_whole(o: Operators, executions: int) -> bool:
    """Whether every type ran as often in each of so many executions: that is the reason why the table sums up more, and
    nothing is damaged. Of a few types all may do so by chance."""
    counts = np.array([row.count.sum() for row in o.types.values() if not row.communication])
    return len(counts) >= section("witness")["fewest_types"] and are_whole(counts, executions)


def _on_cores_us(o: Operators) -> list[float]:
    """What each type takes that computes on the device's cores, microseconds."""
    return [float(row.total_us.sum()) for row in o.types.values() if not (row.communication or row.aicpu.us)]


def most_alone_us(o: Operators, times: StepTimes) -> float:
    """Microseconds in which only AI CPU kernels can have run, summed like the table; NaN where it tells nothing."""
    on_cores, computing = _on_cores_us(o), times.phases.get("computing")
    if not on_cores or computing is None or not np.isfinite(computing).any():
        return float("nan")
    steps = 1 if o.averaged else o.executions or times.recorded
    computed = float(np.nanmean(computing)) * steps
    if sum(on_cores) > (1 + section("contradiction")["of_step"]) * computed:
        return float("nan")  # sums of more than these steps
    return max(computed - max(on_cores), 0.0)
