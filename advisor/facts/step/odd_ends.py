"""Steps at the ends of a recording that do not count: warm-up, cut ones, those that hold a part of a step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.facts.device.course import Course
from advisor.facts.recording.limits import section
from advisor.facts.recording.steady import longer_at_first
from advisor.facts.step.start_gap import is_host_window
from advisor.facts.step.times import StepTimes

CUT_END = "incomplete: the collection ended in it"
"""Why a last step is left out."""


def without_warm_up(times: StepTimes, *, serves: bool = False) -> StepTimes:
    """Without a first step that is warm-up. What `serves` is often run once before it is measured: the pause behind
    that run, which stands in the second step, belongs to it."""
    ends = section("odd_ends")
    if len(times.steps) < ends["steps"]:
        return times
    if serves and len(times.steps) > ends["steps"] and "start_gap" in times.phases:
        usual, working = times.time[2:], float(times.time[1] - np.nan_to_num(times.phases["start_gap"])[1])
        most = ends["longer_factor"] * float(usual.max())
        if times.time[1] > most and times.time[0] <= most and working <= most:
            return times.without(times.steps[:2], "warm-up")
    typical = float(np.median(times.time[1:]))
    late = times.time[0] > ends["longer_factor"] * typical or _starts_late(times, typical)
    return times.without(times.steps[:1], "warm-up") if late and not _comes_again(times) else times


def _comes_again(times: StepTimes) -> bool:
    """Whether a later step is longer than the shortest by a like amount as the first, and for the same reason: the
    device waits before its first kernel, or behind it. Where it computes longer, two later steps do so: batches of
    several lengths come again, pauses as well, warm-up does not."""
    ends, phases = section("odd_ends"), times.phases
    if "computing" not in phases or not np.isfinite(phases["computing"]).all():
        return False
    whole = times.time[1:] >= ends["shorter_factor"] * np.median(times.time[1:])
    before = np.nan_to_num(phases.get("start_gap", np.zeros(len(times.time))))
    computing = phases["computing"]
    parts = (computing, before, times.time - computing - before)
    standing = [values - values[1:][whole].min() for values in parts]
    place, longest = max(enumerate(standing), key=lambda part: float(part[1][0]))
    witnesses = 2 if place == 0 else 1
    later = np.sort(longest[1:][whole])[-witnesses:]
    again = len(later) == witnesses and float(later[0]) >= ends["again"] * longest[0]
    return bool(again and longest[0] >= (1 - ends["again"]) * sum(values[0] for values in standing))


def without_ramp(times: dict[int, StepTimes], fewest: int = 2) -> dict[int, StepTimes]:
    """Without a few first steps that are longer than all the others, which are alike, by what most ranks do themselves:
    clocks and caches warm up everywhere, and where one rank is slow its peers only wait. `fewest` steps at least: a
    single one may have had a pause."""

    def longer(one: StepTimes) -> int:
        own = one.time - np.nan_to_num(one.phases.get("exposed", np.zeros(len(one.time))))
        return longer_at_first(own, fewest)

    return _on_most(times, {rank: longer(one) for rank, one in times.items()}, "warm-up")


def behind_warm_up(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """Without what goes on with a warm-up behind its first step, in which all ranks but the last one only wait: memory
    is allocated, queues fill."""
    return without_ramp(times, fewest=1) if _has_warmed(times) else times


def _has_warmed(times: Mapping[int, StepTimes]) -> bool:
    return any(reason == "warm-up" for t in times.values() for _, reason, _ in t.excluded)


def without_short_start(times: dict[int, StepTimes], frameworks: Mapping[int, str]) -> dict[int, StepTimes]:
    """Without the first rows of windows on the host that hold only a part of a step, in length and in computation: the
    host ran ahead until the device's queue was full. Half of the rows at most, and on most ranks: a card that fails in
    mid-run makes no other compute longer."""
    ends = section("odd_ends")

    def shorter(one: StepTimes, framework: str) -> int:
        computing = one.phases.get("computing")
        windows = one.table == "steps" and is_host_window(one, framework)
        if not windows or computing is None or len(one.steps) < ends["steps"]:
            return 0
        for count in range(len(one.steps) // 2, 0, -1):
            if all(
                (values[:count] < ends["shorter_factor"] * np.nanmedian(values[count:])).all()
                for values in (one.time, computing)
            ):
                return count
        return 0

    counts = {rank: shorter(one, frameworks.get(rank, "unknown")) for rank, one in times.items()}
    return _on_most(times, counts, "its window holds a part of a step")


def _on_most(times: dict[int, StepTimes], counts: Mapping[int, int], reason: str) -> dict[int, StepTimes]:
    """Without as many first steps as are counted for each rank, if most ranks have some: all ranks begin alike."""
    if 2 * sum(count > 0 for count in counts.values()) <= len(times):
        return times
    return on_all({rank: one.without(one.steps[: counts[rank]], reason) for rank, one in times.items()})


def without_cut_end(times: StepTimes) -> StepTimes:
    """Without a last step that the end of the collection cut: it computes less than half of what the others do, and is
    shorter than all of them; where nothing tells what is computed, shorter than half. Behind slow steps a usual one is
    short, and whole."""
    ends = section("odd_ends")
    if len(times.steps) < ends["steps"]:
        return times
    computing = times.phases.get("computing")
    if computing is None:
        cut = times.time[-1] < ends["shorter_factor"] * np.median(times.time[:-1])
    else:
        less = computing[-1] < ends["shorter_factor"] * np.nanmedian(computing[:-1])
        cut = less and times.time[-1] < ends["cut_factor"] * times.time[:-1].min()
    return times.without(times.steps[-1:], CUT_END) if cut else times


def without_cut_start(times: StepTimes, course: Course | None) -> StepTimes:
    """Without a first step that was running when the collection began: it has less than half of the kernels of each of
    the others, which have about as many as each other, and is shorter than all of them. Of others that run the same
    kernels step by step, one that lacks fewer is no whole one either. Where the last one has more by what the first one
    lacks, rows are moved against the steps, and whole together."""
    ends = section("odd_ends")
    if course is None or not (course.marked and course.complete):
        return times
    place = {step: at for at, step in enumerate(course.steps)}
    whole = without_cut_end(times)
    if len(whole.steps) < ends["steps"] or any(step not in place for step in whole.steps):
        return times
    first, rest = np.split(course.kernels[[place[step] for step in whole.steps]], [1])
    alike = np.ptp(rest) <= ends["again"] * (rest.min() - first[0])
    same = np.ptp(rest) <= section("start_gap")["same_share"] * rest.min()
    few = first[0] < ends["cut_factor" if same else "shorter_factor"] * rest.min()
    cut = few and alike and whole.time[0] < ends["cut_factor"] * whole.time[1:].min()
    return times.without(times.steps[:1], "incomplete: the collection began in it") if cut else times


def without_drain(times: StepTimes, course: Course | None, framework: str) -> StepTimes:
    """Without a last step that lasts to its own last kernel where the others last to the next one's first kernel and
    reach beyond it: what they run beside the next step, the last one runs alone. One that is slow even without that is
    kept."""
    if len(times.steps) < 2 or times.table not in ("steps", "kernels") or is_host_window(times, framework):
        return times
    limits, usual = section("start_gap"), float(np.median(times.time[:-1]))
    reach = _reach(times, course) if course is not None else _drained(times)
    slow = times.time[-1] - reach > section("odd_ends")["longer_factor"] * usual
    if reach <= limits["telling_share"] * usual or slow:
        return times
    return times.without(times.steps[-1:], "its row ends with its own last kernel")


def moved_ranks(times: Mapping[int, StepTimes]) -> set[int]:
    """Ranks whose last row is longer than their peers' by what their first one is shorter: the bounds of their rows are
    moved against the steps, and all of them together are whole steps."""
    limits, shared = section("start_gap"), {t.steps for t in times.values()}
    if len(times) < 2 or len(shared) != 1 or len(next(iter(shared))) <= limits["rows"]:
        return set()
    usual = np.median([t.time for t in times.values()], axis=0)
    step = float(np.median(usual))

    def moved(one: StepTimes) -> bool:
        less, more = float(usual[0] - one.time[0]), float(one.time[-1] - usual[-1])
        return min(less, more) > limits["telling_share"] * step and abs(more - less) <= limits["same_share"] * step

    return {rank for rank, one in times.items() if moved(one)}


def _reach(times: StepTimes, course: Course) -> float:
    """How far the kernels of most steps reach into the step behind, microseconds; 0 where the last row is not that of
    its own kernels."""
    place = {step: at for at, step in enumerate(course.steps)}
    span = np.array([course.span_us[place[step]] if step in place else np.nan for step in times.steps])
    beyond = (span - times.time)[:-1]
    alone = span[-1] - times.time[-1] <= section("start_gap")["same_share"] * times.time[-1]
    return float(np.nanpercentile(beyond, 50, method="lower")) if alone and np.isfinite(beyond).any() else 0.0


def _drained(times: StepTimes) -> float:
    """How much longer the last row is than the others, microseconds, where it computes as much more as the first one
    computes less: what the first step computed beside the second stands in the second's row, and so on to the last,
    which has its own as well. 0 elsewhere."""
    limits, computing = section("start_gap"), times.phases.get("computing")
    if computing is None or len(times.steps) < limits["rows"]:
        return 0.0
    usual = float(np.median(computing[1:-1]))
    less, more = usual - computing[0], computing[-1] - usual
    alike = abs(more - less) <= limits["computing_share"] * max(less, more)
    if not alike or min(less, more) <= limits["telling_share"] * usual:
        return 0.0
    return max(float(times.time[-1] - np.median(times.time[:-1])), 0.0)


def without_open_end(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """Without the last step of a rank behind which other ranks have further ones: its records stop within it, or what
    ran afterwards was added to it, unless it is as long as the rank's other steps and computes as much."""

    followed = {step for one in times.values() for step in one.steps[:-1]}
    return {
        rank: one.without(one.steps[-1:], CUT_END)
        if len(one.steps) >= section("odd_ends")["steps"] and one.steps[-1] in followed and not _ends_as_others(one)
        else one
        for rank, one in times.items()
    }


def without_unwaited_ends(one: StepTimes, framework: str) -> StepTimes:
    """Without a first or last window on the host that computes as much as the others, which all stand still alike, and
    does not: the profiler tells idle time between kernels, none before the first of all or behind the last."""
    ends, idle, computing = section("odd_ends"), one.phases.get("idle"), one.phases.get("computing")
    if idle is None or computing is None or not is_host_window(one, framework):
        return one
    off, left = section("start_gap")["telling_share"], np.ones(len(one.steps), bool)
    for place in (0, -1):
        others = left.copy()
        others[place] = False
        if others.sum() < ends["steps"] - 1:
            break
        least, most = (1 - off) * computing[others].min(), (1 + off) * computing[others].max()
        apart = max(
            ends["apart_share"] * float(np.median(one.time[others])), ends["apart_factor"] * float(np.ptp(idle[others]))
        )
        left[place] = not (least <= computing[place] <= most and idle[others].min() - idle[place] > apart)
    gone = tuple(step for step, stays in zip(one.steps, left, strict=True) if not stays)
    return one.without(gone, "incomplete: the wait around it was not recorded") if gone else one


def _ends_as_others(one: StepTimes) -> bool:
    """Whether the last step lies among the others, in length and in what it computes; not known without that."""
    computing = one.phases.get("computing")
    if computing is None or not np.isfinite(computing).all():
        return False
    off = section("start_gap")["telling_share"]
    return all(
        (1 - off) * values[:-1].min() <= values[-1] <= (1 + off) * values[:-1].max() for values in (one.time, computing)
    )


def _starts_late(times: StepTimes, typical: float) -> bool:
    """Whether the wait before the first step is of another order than those before the others; where nothing tells
    when its kernels begin, whether its idle time is: the device may be behind the marks of the host."""
    gap = next((times.phases[name] for name in ("start_gap", "interval", "idle") if name in times.phases), None)
    if gap is None or not np.isfinite(gap[0]) or not np.isfinite(gap[1:]).any():
        return False
    limits, usual = section("warm_up"), float(np.nanmedian(gap[1:]))
    more = float(gap[0]) - usual
    return gap[0] > limits["start_gap_factor"] * usual and more > limits["start_gap_share"] * typical


def on_all(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """What is left out on one rank is left out on all."""
    odd = {name: reason for t in times.values() for name, reason, _ in t.excluded}
    for reason in sorted(set(odd.values())):
        names = [name for name, why in odd.items() if why == reason]
        times = {rank: t.without(names, reason) for rank, t in times.items()}
    return times


def met_again(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """The step behind a warm-up that ended at different times: the ranks that were ready first wait in it for the
    others, which is a part of the warm-up. What it is longer than on the last of them is taken off its exposed
    communication; where that is less, the step is left out."""
    shared = {t.steps for t in times.values()}
    if not _has_warmed(times) or len(times) < 2 or len(shared) != 1 or len(next(iter(shared))) < 2:
        return times
    lengths = np.array([t.time for t in times.values()])
    apart = lengths.max(axis=0) > section("contradiction")["one_job_factor"] * lengths.min(axis=0)
    if not apart[0] or apart[1:].any():
        return times
    shortest = float(lengths[:, 0].min())
    trimmed = {rank: t.shortened(float(t.time[0]) - shortest) for rank, t in times.items()}
    kept = {rank: t for rank, t in trimmed.items() if t is not None}
    first = next(iter(shared))[:1]
    return kept if len(kept) == len(times) else {r: t.without(first, "behind the warm-up") for r, t in times.items()}


def following_nothing(times: dict[int, StepTimes]) -> dict[int, StepTimes]:
    """Without a first step in which ranks did not wait for others as they do in all steps behind it: whom they waited
    for was late before the recording began. Ranks of one job whose steps are otherwise of one length show it, unless
    their last rows have what the first ones lack."""
    ends, limits, shared = section("odd_ends"), section("start_gap"), {t.steps for t in times.values()}
    if len(times) < 2 or len(shared) != 1 or (count := len(next(iter(shared)))) < ends["steps"]:
        return times
    moved = moved_ranks(times)
    lengths = np.array([t.time for rank, t in times.items() if rank not in moved])
    if len(lengths) < 2:
        return times
    usual = float(np.median(lengths[:, 1:]))
    missing = usual - lengths.min(axis=0)
    few = count == ends["steps"]  # they are not made fewer for little
    least = ends["apart_share"] if few else limits["telling_share"]
    alone = missing[0] > least * usual and 2 * missing[1:].max() <= missing[0]
    if not alone or np.ptp(lengths[:, 0]) < limits["telling_share"] * usual:
        return times
    return {rank: t.without(t.steps[:1], "what was before it is not recorded") for rank, t in times.items()}
