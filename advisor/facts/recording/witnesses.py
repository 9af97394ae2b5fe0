"""Witnesses of one recording held against each other: step tables, kernels and collectives of a rank, and ranks that
wait for each other. Where they cannot all be true, all of those that disagree are doubted and told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

import numpy as np

from advisor.basics.arrays import Floats
from advisor.basics.units import show
from advisor.facts.base import Run
from advisor.facts.collectives.exchanges import Exchanges, kind_of, listed
from advisor.facts.device.course import COURSE, Course
from advisor.facts.recording.fuller import (
    begins_of,
    compute_more,
    distances_of,
    fell_behind,
    outvoted_ranks,
    same_steps,
)
from advisor.facts.recording.limits import section
from advisor.facts.recording.sums import tell_overlap
from advisor.facts.recording.windows import NAMELESS
from advisor.facts.step.times import STEPS, StepTimes
from advisor.sources.base import Rank

_OF_STEPS = ("steps", "step_phases")
"""Tables that name the steps one by one."""
MOST_COMPARED = 2
"""Of two ranks that disagree nobody knows which is wrong."""


def hear_witnesses(run: Run) -> None:
    """Notes every contradiction between what the ranks were reduced to, with the tables that cannot be relied on."""
    times, courses, exchanges = run.each(STEPS), run.each(COURSE), listed(run)
    # windows of a host that ran ahead tell nothing of the device's steps: its kernels do
    behind = {
        rank.rank for rank in run.ranks
        if rank.rank in times and rank.rank in courses
        and fell_behind(times[rank.rank], courses[rank.rank], rank.framework)
    }  # fmt: skip
    times = {rank: one for rank, one in times.items() if rank not in behind}
    for rank in run.ranks:
        course, exchange = courses.get(rank.rank), exchanges.get(rank.rank)
        if exchange is not None:
            _collectives(rank, exchange)
        if course is not None and exchange is not None:
            _same_collectives(rank, course, exchange)
    _names(run, courses, exchanges)
    _clocks(run, courses, exchanges)
    outvoted = {rank: lengths for rank, lengths in outvoted_ranks(run).items() if rank in times}
    times = {rank: one for rank, one in times.items() if rank not in outvoted}
    for rank in run.ranks:
        if rank.rank in outvoted:
            _tell_outvoted(rank, *outvoted[rank.rank])
        steps, course, exchange = times.get(rank.rank), courses.get(rank.rank), exchanges.get(rank.rank)
        if steps is not None and steps.table == "steps" and {"overlapped", "computing"} <= steps.phases.keys():
            tell_overlap(rank, steps.phases["overlapped"], steps.phases["computing"], steps.time)
        if steps is not None and course is not None:
            if course.marked:
                _share_steps(rank, steps, {*course.steps}, "kernels")
            _steps_and_kernels(rank, steps, course)
            _steps_and_first_kernels(rank, steps, course)
        if steps is not None and exchange is not None:
            _share_steps(rank, steps, {*exchange.steps}, "collectives")
            _steps_and_collectives(rank, steps, exchange)
            _steps_and_starts(rank, steps, exchange)
    _lengths(run, times)


def _tell_outvoted(rank: Rank, told: float, others: float) -> None:
    """The step table alone is doubted: its two other witnesses agree, and theirs counts."""
    names = ", ".join(rank.tables[table].paths[0].name for table in ("kernels", "collectives"))
    text = f"tells steps of {show(told, 'us')}, both of these tell steps of {show(others, 'us')}: theirs counts"
    rank.note(rank.relative(rank.tables["steps"].paths[0]), f"contradicts {names}: {text}", ("steps",))


def _steps_and_kernels(rank: Rank, steps: StepTimes, course: Course) -> None:
    """Computation of the same steps, and the kernels' span against the steps' length."""
    limits, (rows, own) = section("contradiction"), same_steps(steps, course)
    computing = steps.phases.get("computing")
    if not rows or computing is None or steps.table != "steps":
        return
    length = float(steps.time[rows].sum())
    told, kernels = float(np.nansum(computing[rows])), float(course.computing_us[own].sum())
    # another unit makes what kernels span too short as well; of a cut table the rest lies apart
    spans = float(course.span_us[own].sum())
    shorter = told > limits["unit_factor"] * kernels and length > limits["unit_factor"] * spans
    lost = kernels > limits["lost_factor"] * told or (course.complete and shorter)
    if compute_more(steps, course) or lost:
        text = (
            f"tells {show(told / len(rows), 'us')} of computation a step, its kernels take "
            f"{show(kernels / len(rows), 'us')}"
        )
        _contradict(rank, text, "steps", "kernels")
        return
    # kernels that wait in the queue of a device while the step before still runs make the steps' kernels overlap
    disjoint = (
        float((course.span_us[own] + np.nan_to_num(course.lead_us[own])).sum()) <= (1 + limits["of_step"]) * length
    )
    same_kernels = (
        disjoint and course.complete and abs(told - kernels) <= limits["computing_share"] * max(told, kernels)
    )
    for name, apart in _parts_apart(steps, course, rows, own).items():
        if same_kernels and apart > limits["part_share"]:
            text = f"its {name} and that of its kernels are {show(apart, 'ratio')} of the step apart"
            _contradict(rank, text, "steps", "kernels")
            return
    longer = course.span_us[own] > limits["one_job_factor"] * steps.time[rows]
    # what a warm-up leaves running makes one step's kernels span more, not most
    most = 2 * int(longer.sum()) > len(rows)
    if most and spans > limits["one_job_factor"] * length:
        text = (
            f"tells steps of {show(length / len(rows), 'us')}, in which its kernels span "
            f"{show(spans / len(rows), 'us')}"
        )
        _contradict(rank, text, "steps", "kernels")


def _steps_and_first_kernels(rank: Rank, steps: StepTimes, course: Course) -> None:
    """Steps follow each other, so that they are as long as from the first kernel of one to that of the next; a host
    that prepares makes a first step longer, another unit or another run makes all of them longer."""
    limits = section("contradiction")
    distance = distances_of(course)
    told = {step: float(us) for step, us in zip(steps.steps, steps.time, strict=True) if us > 0}
    both = [(told[step], distance[step]) for step in told if distance.get(step, 0.0) > 0]
    longer = sum(length > limits["one_job_factor"] * apart for length, apart in both)
    if len(both) >= limits["compared"] and 2 * longer > len(both) and steps.table == "steps":
        length, apart = (sum(values) / len(both) for values in zip(*both, strict=True))
        text = f"tells steps of {show(length, 'us')}, whose first kernels start {show(apart, 'us')} after each other"
        _contradict(rank, text, "steps", "kernels")


def _parts_apart(steps: StepTimes, course: Course, rows: list[int], own: list[int]) -> dict[str, float]:
    """How far exposed communication and idle time of the step table are from those of the kernels, as shares of the
    step that the kernels show. The wait before a step stands in its row, in the row before, or nowhere: what is nearest
    counts."""
    lead = np.nan_to_num(course.lead_us[own])
    length = float((course.span_us[own] + lead).sum())
    found = {}
    if (exposed := steps.phases.get("exposed")) is not None:
        found["exposed communication"] = abs(float(np.nansum(exposed[rows]) - course.exposed_us[own].sum()))
    idle = steps.phases.get("idle")
    if idle is not None and len(rows) > 1:
        told, gap = np.nan_to_num(idle[rows]), course.gap_us[own]
        ways = (
            abs(float((told[1:] - gap[1:] - lead[1:]).sum())),
            abs(float((told[:-1] - gap[:-1] - lead[1:]).sum())),
            abs(float((told - gap).sum())),
        )
        found["idle time"] = min(ways)
    return {name: apart / length for name, apart in found.items()} if length > 0 else {}


def _share_steps(rank: Rank, steps: StepTimes, others: Set[str], table: str) -> None:
    """Some step of the one table is in the other, where both name theirs."""
    if steps.table not in _OF_STEPS or steps.covers > 1:
        return
    named = steps.named
    if not named & others and not named <= {*NAMELESS} and not others <= {*NAMELESS}:
        _contradict(rank, "no step of the one is in the other", table, steps.table)


def _steps_and_collectives(rank: Rank, steps: StepTimes, exchange: Exchanges) -> None:
    """Communication of the same steps."""
    limits = section("contradiction")
    exposed, hidden = steps.phases.get("exposed"), steps.phases.get("overlapped")
    if exposed is None or steps.table != "steps":
        return
    sums = np.bincount(exchange.step, exchange.elapsed_us * exchange.weight, len(exchange.steps))
    place = {step: i for i, step in enumerate(exchange.steps)}
    both = [(row, place[step]) for row, step in enumerate(steps.steps) if step in place]
    if not both:
        return
    rows = [row for row, _ in both]
    told = float(np.nansum(exposed[rows])) + (0.0 if hidden is None else float(np.nansum(hidden[rows])))
    listed, length = float(sums[[i for _, i in both]].sum()), float(steps.time[rows].sum())
    many = limits["collective_factor"] * max(len(exchange.groups), 1)
    lost = told > limits["lost_factor"] * listed and told > limits["of_step"] * length
    if lost or listed > many * max(told, length):
        text = (
            f"tells {show(told / len(both), 'us')} of communication a step, its collectives take "
            f"{show(listed / len(both), 'us')}"
        )
        _contradict(rank, text, "steps", "collectives")


def _steps_and_starts(rank: Rank, steps: StepTimes, exchange: Exchanges) -> None:
    """Steps follow each other, so that they are no longer than from the first collective of one to that of the next;
    what runs between steps makes that distance longer, never shorter."""
    limits, begins = section("contradiction"), begins_of(exchange)
    length = apart = pairs = longer = 0.0
    for row, (step, after) in enumerate(zip(steps.steps, steps.steps[1:], strict=False)):
        distance, lasts = begins.get(after, np.inf) - begins.get(step, np.inf), float(steps.time[row])
        if np.isfinite(distance) and distance > 0:
            length, apart, pairs = length + lasts, apart + distance, pairs + 1
            longer += lasts > limits["one_job_factor"] * distance
    most = 2 * longer > pairs  # what a warm-up does before its first collective makes one step longer, not most
    # a pause before it makes one step longer and one distance less: together they are as long
    most = most and length > limits["one_job_factor"] * apart
    if pairs >= limits["compared"] and most and steps.table in rank.tables:
        text = (
            f"tells steps of {show(length / pairs, 'us')}, whose first collectives start {show(apart / pairs, 'us')} "
            "after each other"
        )
        _contradict(rank, text, steps.table, "collectives")


def _collectives(rank: Rank, exchange: Exchanges) -> None:
    """A collective's transfer and waiting are parts of it."""
    limits = section("contradiction")
    elapsed = exchange.elapsed_us
    for name, part in (("Transit Time", exchange.transit_us), ("Wait and Idle Time", exchange.booked_us)):
        longer = part > elapsed * (1 + limits["sum_share"]) + 1
        if longer.sum() > limits["longer_share"] * len(elapsed):
            text = f"{name} is more than Elapse Time in {int(longer.sum())} of {len(elapsed)} collectives"
            place = rank.relative(rank.tables["collectives"].paths[0])
            rank.note(place, f"contradicts itself: {text}", ("collectives",))


def _same_collectives(rank: Rank, course: Course, exchange: Exchanges) -> None:
    """A collective that stands among the kernels and in the file of collectives started once."""
    if course.chain is None:
        return
    named = zip(course.chain.name, course.chain.start.tolist(), strict=True)
    kernels = {name: course.chain.origin_ns / 1000 + start for name, start in named if name}
    apart = [
        abs(kernels[name] - start / 1000)
        for name, step, start in zip(
            (exchange.names[i] for i in exchange.name), exchange.step.tolist(), exchange.start_ns.tolist(), strict=True
        )
        if name in kernels and start > 0 and exchange.steps[step] == course.chain.step
    ]
    limits = section("contradiction")
    length = float(course.span_us.mean())
    if len(apart) >= limits["compared"] and float(np.median(apart)) > limits["of_step"] * length:
        middle = show(float(np.median(apart)), "us")
        _contradict(rank, f"the same collectives start {middle} apart in the middle", "collectives", "kernels")


def _names(run: Run, courses: Mapping[int, Course], exchanges: Mapping[int, Exchanges]) -> None:
    """Collectives bear the same names among a rank's kernels and in its file of collectives, or on no rank: a rank on
    which they share none, while others do, has the file of a rank of other groups."""
    shared: dict[str, dict[int, bool]] = defaultdict(dict)
    for number, course in courses.items():
        exchange = exchanges.get(number)
        if course.chain is None or exchange is None or course.chain.step not in exchange.steps:
            continue
        listed = exchange.name[exchange.step == exchange.steps.index(course.chain.step)]
        one, other = _by_kind(course.chain.name), _by_kind(exchange.names[i] for i in np.unique(listed).tolist())
        for kind in one.keys() & other.keys():
            shared[kind][number] = not one[kind].isdisjoint(other[kind])
    for rank in run.ranks:
        if any(any(found.values()) and not found.get(rank.rank, True) for found in shared.values()):
            _contradict(rank, "no collective of the one is in the other", "collectives", "kernels")


def _by_kind(names: Iterable[str]) -> dict[str, set[str]]:
    """Names of collectives by what they do."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name:
            found[kind_of(name)].add(name)
    return found


def _contradict(rank: Rank, text: str, *tables: str) -> None:
    """Notes the contradiction at the first table's file; it names the other one's. What stands in no table of its own
    was drawn in the timeline."""
    files = dict.fromkeys(table if table in rank.tables else "trace" for table in tables)
    own = tuple(table for table in files if table in rank.tables)
    if own:
        others = ", ".join(rank.tables[table].paths[0].name for table in own[1:])
        rank.note(rank.relative(rank.tables[own[0]].paths[0]), f"contradicts {others}: {text}", own)


def _lengths(run: Run, times: Mapping[int, StepTimes]) -> None:
    """Ranks that communicate wait for each other: their steps are of one length on average. One by one they need not
    be: whoever is ready first at a step's end waits in the next one, most of all behind a warm-up, of which the rows of
    those who were last tell least. So ranks must differ with their first steps and without them. What a rank waits for
    before its first kernel stands in no row, while the others wait for it in theirs: they must differ with it, too."""
    rows = {rank: one.time for rank, one in times.items() if (one.share("exposed") or 0.0) > 0}
    fewest = int(section("odd_ends")["steps"])
    behind = {rank: time[int(len(time) >= fewest) :] for rank, time in rows.items()}
    begun = {rank: time + _before_first(times[rank]) / len(time) for rank, time in rows.items()}
    odd = _odd_ones(rows) & _odd_ones(behind) & _odd_ones(begun)
    usual = float(np.median([time.mean() for time in rows.values()])) if odd else 0.0
    for rank in run.ranks:
        if rank.rank in odd and times[rank.rank].table in rank.tables:
            table = times[rank.rank].table
            text = (
                f"steps of {show(float(rows[rank.rank].mean()), 'us')}, those of most ranks take {show(usual, 'us')}: "
                f"ranks of one job wait for each other"
            )
            rank.note(rank.relative(rank.tables[table].paths[0]), text, (table,))


def _before_first(steps: StepTimes) -> float:
    """The host's time before the first kernel of the first step, microseconds: it lies in the row before, which was
    not recorded."""
    preparing = steps.phases.get("preparing")
    return 0.0 if preparing is None else float(np.nan_to_num(preparing[0]))


def _odd_ones(rows: Mapping[int, Floats]) -> set[int]:
    """The ranks whose steps are of another length than those of most; all where few tell different ones."""
    factor = section("contradiction")["one_job_factor"]
    lengths = {rank: float(time.mean()) for rank, time in rows.items()}
    if len(lengths) < 2:
        return set()
    if len(lengths) <= MOST_COMPARED and max(lengths.values()) > factor * min(lengths.values()):
        return set(lengths)
    usual = float(np.median(list(lengths.values())))
    return {rank for rank, length in lengths.items() if not usual / factor <= length <= usual * factor}


def _clocks(run: Run, courses: Mapping[int, Course], exchanges: Mapping[int, Exchanges]) -> None:
    """Ranks of one job were recorded at one time, and so were a rank's kernels and its collectives."""
    starts: dict[tuple[int, str], float] = {}
    for number, course in courses.items():
        if course.chain is not None:
            starts[number, "kernels"] = course.chain.origin_ns / 1000
    for number, exchange in exchanges.items():
        known = exchange.start_ns[exchange.start_ns > 0]
        if known.size:
            starts[number, "collectives"] = float(np.median(known)) / 1000
    if len(starts) < 2:
        return
    limits = section("contradiction")
    lasts = max((float(course.span_us.sum()) for course in courses.values()), default=0.0)
    apart = max(limits["apart_us"], limits["apart_factor"] * lasts)
    usual = _usual_starts(run, starts, apart, limits["hosts_apart_us"])
    for rank in run.ranks:
        for table in ("kernels", "collectives"):
            off = abs(starts.get((rank.rank, table), usual[rank.rank]) - usual[rank.rank])
            if off > apart and table in rank.tables:
                text = f"was recorded {show(off, 'us')} apart from the others: another run, or another clock"
                rank.note(rank.relative(rank.tables[table].paths[0]), text, (table,))


def _usual_starts(
    run: Run, starts: Mapping[tuple[int, str], float], apart: float, hosts_apart: float
) -> dict[int, float]:
    """When each rank should have been recorded, microseconds: when most were, or, where all tables of a host agree and
    another host's clock may be set otherwise, when that host's were."""
    most = float(np.median(list(starts.values())))
    hosts = {rank.rank: rank.host for rank in run.ranks}
    if None in hosts.values():
        return dict.fromkeys(hosts, most)
    by_host: dict[str | None, list[float]] = {}
    for (rank, _), start in starts.items():
        by_host.setdefault(hosts[rank], []).append(start)
    agreed = {
        host: float(np.median(own))
        for host, own in by_host.items()
        if len(own) > 1 and np.ptp(own) <= apart and abs(own[0] - most) <= max(hosts_apart, apart)
    }
    return {rank: agreed.get(host, most) for rank, host in hosts.items()}
