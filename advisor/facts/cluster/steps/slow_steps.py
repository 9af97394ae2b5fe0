"""Steps that are slow among others that are not: what they cost, when they come, and where their time goes.

Medians hide what happens in a part of the steps. The steps fall into two groups where a gap far wider than the spread
of the faster ones separates them; what the mean is above the median of the faster group is the cost of the slow ones.
In each slow step the ranks whose own work (computing, waiting before the first kernel, idling between kernels) grew by
half of what the step grew by have caused it: the others wait for them in collectives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.units import whole
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.accounts import PARTS, Accounts, accounts
from advisor.facts.cluster.steps.growth import MOST, SLOWER, kernel_ratio, main_part, most_grown
from advisor.facts.collectives.exchanges import EXCHANGES, Exchanges
from advisor.facts.device.course import COURSE, Course
from advisor.facts.step.apart import FAR, FEW_SEEN, FEWEST, pattern_of, split
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Subject, Value

CAUSES = limit("slow_steps", "causes")
"""Part of what a step grew by that a rank's own work must have grown by to have caused it."""
AS_FAST = limit("slow_steps", "as_fast")
"""Part of the usual bytes per time from which on collectives that take longer move more."""
NEARLY_ALL = limit("slow_steps", "nearly_all")
"""Ranks that are slow together from this share on are all of them: what they share is slow."""


class SlowSteps(Struct, frozen=True):
    """The slow steps of a run; microseconds. `rows` of arrays are ranks, columns slow steps."""

    names: tuple[str, ...]
    total: int
    mean_us: float
    usual_us: float
    extra: Floats
    """What each slow step takes beyond the usual one."""
    pattern: str
    since: str | None = None
    period: int | None = None
    origin: str = "unknown"
    part: str = "unknown"
    ranks: tuple[int, ...] = ()
    own_us: dict[int, float] = field(default_factory=dict)
    """rank -> its own growth in the slow steps it caused, per step of the run."""
    parts: dict[int, str] = field(default_factory=dict)
    kernel_ratio: float | None = None
    behind: bool = False
    """Those who caused them waited behind the last kernels of the steps named, before the next began on the host."""

    @property
    def cost_us(self) -> float:
        """What the slow steps cost, per step of the run."""
        return float(self.extra.sum()) / self.total


def _split(times: Floats, *, seen: bool = False) -> Mask | None:
    """Which steps of a recording are slow: its first step is shorter where a pipeline's stages had not been waiting for
    each other yet, which tells nothing of how far the usual steps differ."""
    if len(times) > FEWEST and times[0] < times[1:].min():
        if (rest := split(times[1:], seen=seen)) is not None:
            return np.concatenate(([False], rest))
        if not seen:
            return None
    return split(times, seen=seen)


@computed
def find(run: Run) -> SlowSteps | None:
    """The run's slow steps; None where there are none, and where of steps only the length is known: marks of a host
    that runs ahead come at a pace of their own."""
    return _find(accounts(run), run.each(COURSE), run.each(EXCHANGES))


def _find(
    balance: Accounts | None, courses: dict[int, Course], exchanges: Mapping[int, Exchanges] | None = None
) -> SlowSteps | None:
    if balance is None or not balance.synchronous(list(range(len(balance.ranks)))):
        return None
    if not any(np.isfinite(part).any() for part in (balance.compute, balance.idle)):
        return None
    times = np.nanmedian(balance.time, axis=0)
    slow = _split(times)
    if slow is None:
        slow = _split(times, seen=True)
        if slow is None or not any(
            witness(balance, slow, times, courses) for witness in (_stands_still, _runs_more, _computes_longer)
        ):
            return None
    if (joined := _joined(balance, slow, times)) is not None:
        return _find(joined, courses, exchanges)
    usual = float(np.median(times[~slow]))
    shape, place, period = pattern_of(slow)
    names = tuple(step for step, is_slow in zip(balance.steps, slow, strict=True) if is_slow)
    bare = SlowSteps(
        names, len(times), float(times.mean()), usual, times[slow] - usual, shape,
        balance.steps[place] if place is not None and shape in ("since", "until") else None, period,
    )  # fmt: skip
    return _explain(bare, balance, slow, courses, exchanges or {})


def _joined(balance: Accounts, slow: Mask, times: Floats) -> Accounts | None:
    """The accounts with pauses in one row that lie in two: an evaluation or a checkpoint behind a step runs kernels of
    its own, which that step's row counts, and then keeps the host from beginning the next one, which waits before its
    first kernel. What lies before that one's beginning on the host belongs to the step that was slow already. None
    where no two slow steps are one."""
    if balance.prepared is None:
        return None
    lead = balance.data if balance.within is None else balance.data - balance.within
    before = np.maximum(np.nan_to_num(lead - balance.prepared), 0.0)
    extra = times - float(np.median(times[~slow]))
    same = np.zeros(len(slow), bool)
    same[1:] = slow[1:] & slow[:-1] & (np.median(before, axis=0) >= MOST * extra)[1:]
    if not same.any():
        return None
    gone = np.where(same, before, 0.0)
    came = np.pad(gone[:, 1:], ((0, 0), (0, 1)))  # there it is no wait before the first kernel
    return replace(
        balance, time=balance.time - gone + came, data=balance.data - gone, host=balance.host + came,
        idle=balance.idle - gone + came,
    )  # fmt: skip


def _stands_still(balance: Accounts, slow: Mask, times: Floats, _: dict[int, Course]) -> bool:
    """Whether in each slow step a device stands still for most of what the step takes longer, and far longer than in
    the usual steps: such a pause is measured, however few steps there are to say how often it comes."""
    idle = np.nan_to_num(balance.data) + np.nan_to_num(balance.host)
    usual = np.median(idle[:, ~slow], axis=1, keepdims=True)
    extra = times[slow] - float(np.median(times[~slow]))
    there = np.take_along_axis(idle, _booked(balance, slow, extra), axis=1)
    return bool(((there >= FAR * usual) & (there - usual >= MOST * extra)).any(axis=0).all())


def _runs_more(balance: Accounts, slow: Mask, times: Floats, courses: dict[int, Course]) -> bool:
    """Whether in each slow step every rank runs more kernels than in any usual one, such as those of an evaluation:
    that is counted, however few steps there are."""
    known = [course for rank in balance.ranks if (course := courses.get(rank)) is not None]
    growth = times[slow] / np.median(times[~slow]) - 1
    for course in known:
        count = dict(zip(course.steps, course.kernels.tolist(), strict=True))
        kernels = np.array([count.get(step, 0) for step in balance.steps], float)
        if not kernels.all() or not (kernels[slow] / kernels[~slow].max() - 1 >= SLOWER * growth).all():
            return False
    return bool(known)


def _computes_longer(balance: Accounts, slow: Mask, times: Floats, _: dict[int, Course]) -> bool:
    """Whether from some step on one rank computes longer by most of what the step takes longer, and by far more than
    any rank's computing differs between the steps before: steps that vary by chance come in no such order."""
    if (~slow).sum() < 2 or pattern_of(slow)[0] != "since" or not np.isfinite(balance.compute).all():
        return False
    extra = times[slow] - float(np.median(times[~slow]))
    longer = _growth(balance.compute, slow, _booked(balance, slow, extra))
    usually = float(np.ptp(balance.compute[:, ~slow], axis=1).max())
    return bool(((longer >= MOST * extra) & (longer >= FAR * usually)).all(axis=1).sum() == 1)


def _explain(
    found: SlowSteps, balance: Accounts, slow: Mask, courses: dict[int, Course], exchanges: Mapping[int, Exchanges]
) -> SlowSteps:
    booked = _booked(balance, slow, found.extra)
    grown = {p: _growth(balance.part(p), slow, booked) for p in PARTS}
    grown["data"] = grown["data"] + _began_later(balance, slow, found.extra)
    own = np.sum([np.maximum(values, 0.0) for values in grown.values()], axis=0)
    causes = own >= CAUSES * found.extra
    count = causes.sum(axis=0)
    alone = len(balance.ranks) == 1
    together = count >= max(NEARLY_ALL * len(balance.ranks), 1 if alone else 2)
    few = (count > 0) & ~together
    total = float(found.extra.sum())
    involved = (causes * (few * found.extra)).sum(axis=1) / total
    constant = tuple(i for i, share in enumerate(involved.tolist()) if share >= MOST)
    if float(found.extra[together].sum()) >= MOST * total:
        origin, chosen = "all", causes & together
    elif constant:
        origin = "rank" if len(constant) == 1 else "ranks"
        chosen = causes & few & np.isin(np.arange(len(causes)), constant)[:, None]
    elif float(found.extra[few].sum()) >= MOST * total:
        origin, chosen = "rotating", causes & few
    elif float(found.extra[(count == 0) & _all_wait(balance, slow, found.extra)].sum()) >= MOST * total:
        origin, chosen = "communication", np.zeros(causes.shape, bool)
    else:
        origin, chosen = "mixed", causes
    parts, ratios = {}, {}
    for i in np.flatnonzero(chosen.any(axis=1)).tolist():
        sums = {p: float(np.maximum(values[i], 0.0)[chosen[i]].sum()) for p, values in grown.items()}
        rows = np.isin(np.arange(len(slow)), booked[i])
        ratios[i] = kernel_ratio(courses.get(balance.ranks[i]), balance.steps, rows, slow)
        parts[i] = main_part(sums, balance.compute[i], rows, slow, ratios[i])
    by_part: dict[str, float] = {}
    for i, part in parts.items():
        by_part[part] = by_part.get(part, 0.0) + float(own[i][chosen[i]].sum())
    part = most_grown(by_part)
    if origin == "communication":
        more = _exchanges_more(balance, slow, courses) or _moves_more(balance, slow, exchanges)
        part = "work" if more else "communication"
    known = [r for r in ratios.values() if r is not None]
    listed = [i for i in parts if origin in ("rank", "ranks")]
    shared = np.minimum(own, found.extra) * chosen
    before = _before_the_mark(balance, grown["data"], booked, chosen)
    behind = part == "start" and float(found.extra[before > 0].sum()) >= MOST * total
    places = np.where(behind & (before > 0), before - 1, np.flatnonzero(slow))
    return SlowSteps(
        tuple(balance.steps[place] for place in places), found.total, found.mean_us, found.usual_us, found.extra,
        found.pattern, found.since, found.period,
        origin, part, tuple(balance.ranks[i] for i in listed),
        {balance.ranks[i]: float(shared[i].sum()) / found.total for i in listed},
        {balance.ranks[i]: parts[i] for i in listed}, float(np.median(known)) if known else None,
        behind,
    )  # fmt: skip


def _exchanges_more(balance: Accounts, slow: Mask, courses: dict[int, Course]) -> bool:
    """Whether in each slow step every rank whose kernels tell meets others more often than in any usual step, as for an
    update that comes after several accumulated micro-batches."""
    told = [
        dict(zip(course.steps, course.collectives.tolist(), strict=True))
        for rank in balance.ranks
        if (course := courses.get(rank)) is not None and len(course.collectives)
    ]
    counts = np.array([[calls.get(step, 0) for step in balance.steps] for calls in told]).reshape(len(told), len(slow))
    return bool(told) and bool((counts[:, slow].min(axis=1) > counts[:, ~slow].max(axis=1)).all())


def _moves_more(balance: Accounts, slow: Mask, exchanges: Mapping[int, Exchanges]) -> bool:
    """Whether on every rank that tells sizes the collectives of each slow step move their bytes about as fast as those
    of the usual ones: then they take longer for moving more, as for a longer prompt or a larger batch."""
    told = []
    for one in (ex for rank in balance.ranks if (ex := exchanges.get(rank)) is not None and not ex.of_kernels):
        moved, took = (
            np.bincount(one.step, each * one.weight, len(one.steps)) for each in (one.size_bytes, one.elapsed_us)
        )
        rates = dict(
            zip(one.steps, np.divide(moved, took, out=np.zeros_like(moved), where=took > 0).tolist(), strict=True)
        )
        rate = np.array([rates.get(step, 0.0) for step in balance.steps])
        told.append(bool((rate > 0).all() and (rate[slow] >= AS_FAST * np.median(rate[~slow])).all()))
    return bool(told) and all(told)


def _all_wait(balance: Accounts, slow: Mask, extra: Floats) -> Mask:
    """In which slow steps no rank is spared what the others wait longer in collectives, as the last one would be."""
    longer = _growth(balance.exposed, slow, np.tile(np.flatnonzero(slow), (len(balance.ranks), 1)))
    told = np.isfinite(balance.exposed).all(axis=1)
    return np.asarray((longer >= (1 - CAUSES) * extra)[told].all(axis=0))


def _began_later(balance: Accounts, slow: Mask, extra: Floats) -> Floats:
    """Rank by slow step: what a rank began later by in the first recorded one, where the others wait for it and it has
    no such wait: its own row is that much shorter, and what it did before is not recorded."""
    found = np.zeros((len(balance.ranks), len(extra)))
    if slow[0] and len(balance.ranks) > 1:
        shorter = np.nan_to_num(np.nanmedian(balance.time[:, 0]) - balance.time[:, 0])
        waits = _growth(balance.exposed, slow, np.zeros((len(found), 1), int))[:, 0]
        late = (shorter >= CAUSES * extra[0]) & (waits <= (1 - CAUSES) * extra[0])
        found[:, 0] = np.where(late, shorter, 0.0)
    return found


def _before_the_mark(balance: Accounts, waited: Floats, booked: Ints, chosen: Mask) -> Ints:
    """For each slow step: the row in which its ranks waited before the first kernel, where most of what they waited
    beyond the usual lies before that step began on the host, which was still busy with the step before; else 0."""
    if balance.prepared is None:
        return np.zeros(booked.shape[1], int)
    lead = balance.data if balance.within is None else balance.data - balance.within
    before = np.nan_to_num(np.take_along_axis(lead - balance.prepared, booked, axis=1))
    late = chosen & (waited > 0) & (before >= MOST * waited) & (booked > 0)
    same = chosen.any(axis=0) & (late | ~chosen).all(axis=0)
    return np.where(same, np.where(chosen, booked, 0).max(axis=0), 0)


def _booked(balance: Accounts, slow: Mask, extra: Floats) -> Ints:
    """Rank by slow step: the row that holds what the rank did for it. That is the step's own, or the one before where
    the rank worked longer in it and its peers did not wait yet: they wait at the next collective, a step later."""
    at = np.flatnonzero(slow)
    own = np.tile(at, (len(balance.ranks), 1))
    before = np.maximum(at - 1, 0)
    here, earlier = (
        np.sum([np.maximum(_growth(balance.part(p), slow, rows), 0.0) for p in PARTS], axis=0)
        for rows in (own, np.tile(before, (len(own), 1)))
    )
    moved = (here < CAUSES * extra) & (earlier >= CAUSES * extra) & (at > 0) & ~slow[before]
    return np.where(moved, before, own)


def _growth(values: Floats, slow: Mask, rows: Ints) -> Floats:
    """Rank by slow step, in the rows given: above the rank's median of the usual steps; 0 where not told."""
    usual = np.zeros((len(values), 1))
    told = np.isfinite(values[:, ~slow]).any(axis=1)
    usual[told, 0] = np.nanmedian(values[told][:, ~slow], axis=1)
    return np.nan_to_num(np.take_along_axis(values, rows, axis=1) - usual)


_NEEDS = "steps|step_phases|cluster_phases|kernels"
KINDS = (
    kind("step.usual_us", "us", "run", "duration of the steps that are not slow",
         formula="median of the faster group of steps, where two groups are far apart; else of all", needs=_NEEDS),
    kind("step.usual_jitter", "ratio", "run", "how far the usual steps differ",
         formula="95th percentile ÷ median − 1 of the steps that are not slow; not told where some may be, and nothing "
                 "shows what makes them so", needs=_NEEDS),
    kind("step.slow_count", "count", "run", "steps that are slow among others that are not; eight steps at least, or "
         "four in which a slow one takes twice as long, runs more kernels, a device stands still for what it takes "
         "longer, or from a step on one rank computes as much longer",
         formula="the split of step times with the least variance inside, where the slow ones lie five robust standard "
                 "deviations above the usual ones, and clearly farther from them than those from each other",
         needs=_NEEDS),
    kind("step.slow_cost_us", "us", "run", "what the slow steps cost, per step of the run",
         formula="Σ over slow steps of what they take beyond the usual one ÷ all steps",
         needs=_NEEDS),
    kind("step.lone_wait_us", "us", "run", "the same where one step alone is slow, and a device waits before its first "
         "kernel in it", needs=_NEEDS),
    kind("step.slow_cost_share", "ratio", "run", "the same as a share of the run's time", needs=_NEEDS),
    kind("step.slow_extra_us", "us", "run", "how much longer a slow step takes than the usual one", needs=_NEEDS),
    kind("step.slow_steps", "text", "run", "the slow steps", needs=_NEEDS),
    kind("step.slow_pattern", "text", "run",
         "since (from a step on), until, periodic, scattered, or once", needs=_NEEDS),
    kind("step.slow_since", "text", "run", "the first step of those that are slow to the end", needs=_NEEDS),
    kind("step.slow_period", "count", "run", "every how many steps one is slow, where that is regular", needs=_NEEDS),
    kind("step.slow_origin", "text", "run",
         "rank or ranks (the same in most slow steps), rotating (another one each time), all, communication (no rank's "
         "own work grew), or mixed",
         formula="ranks whose own work grew by half of what the step grew by, weighted by cost", needs=_NEEDS),
    kind("step.slow_part", "text", "run",
         "what grew on the ranks that caused it: compute (the kernels are slower), work (there are more, or larger "
         "ones), start (idle before the first kernel), host (idle between kernels), idle (both), communication, or "
         "mixed",
         needs=_NEEDS),
    kind("step.slow_owner", "text", "run",
         "what the hosts of the ranks that cause them do in their longest idle stretches", needs="trace"),
    kind("step.slow_behind", "bool", "run",
         "who causes them waits behind the last kernels of these steps, until the next step begins on the host",
         formula="of the wait before the next step's first kernel, all but Preparing", needs="steps"),
    kind("step.slow_ranks", "text", "run", "ranks that cause most of the slow steps", needs=_NEEDS),
    kind("step.slow_kernel_ratio", "number", "run", "the same kernels take this many times as long in slow steps",
         formula="Σ measured ÷ Σ at the median of type and shapes, slow steps against usual ones", needs="kernels"),
    kind("rank.slow_steps_us", "us", "rank", "what slow steps that this rank causes cost, per step of the run",
         formula="Σ of the lesser of its own growth and the step's ÷ steps", needs=_NEEDS),
    kind("rank.slow_steps_share", "ratio", "rank", "the same as a share of the run's time", needs=_NEEDS),
    kind("rank.slow_steps_part", "text", "rank", "what grew in them: as step.slow_part", needs=_NEEDS),
)  # fmt: skip


def _usual_jitter(balance: Accounts, found: SlowSteps | None) -> float | None:
    times = np.nanmedian(balance.time, axis=0)
    if len(times) < FEW_SEEN or (found is None and _split(times, seen=True) is not None):
        return None
    # the longest ones are slow; their names may be those of the steps that the wait follows
    usual = np.sort(times)[: len(times) - (len(found.names) if found is not None else 0)]
    middle = float(np.median(usual))
    return float(np.percentile(usual, 95)) / middle - 1 if middle > 0 else None


def listing(names: tuple[str, ...], most: int = 6) -> str:
    """Step names for people: "22-29", "11, 14, 17"; a long list ends in how many more there are."""
    runs: list[list[str]] = []
    for name in names:
        number, last = whole(name), whole(runs[-1][-1]) if runs else None
        if number is not None and last is not None and number == last + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs[:most]]
    more = sum(map(len, runs[most:]))
    return ", ".join(shown) + (f" (+{more})" if more else "")


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of the slow steps, and of the ranks that cause most of them."""
    balance = accounts(run)
    found, n = find(run), 0 if balance is None else len(balance.steps)
    if balance is None:
        return
    sources = balance.sources.get(balance.ranks[0], ())
    yield from fact("step.usual_jitter", RUN, _usual_jitter(balance, found), *sources, samples=n)
    if found is None and n < FEWEST:
        return
    if found is None:
        usual = float(np.median(np.nanmedian(balance.time, axis=0)))
        yield from fact("step.usual_us", RUN, usual, *sources, samples=n)
        yield from fact("step.slow_count", RUN, 0, *sources, samples=n)
        return
    values: dict[str, Value | None] = {
        "step.usual_us": found.usual_us, "step.slow_count": len(found.names), "step.slow_cost_us": found.cost_us,
        "step.slow_cost_share": found.cost_us / found.mean_us, "step.slow_extra_us": float(found.extra.mean()),
        "step.slow_steps": listing(found.names), "step.slow_pattern": found.pattern, "step.slow_since": found.since,
        "step.slow_period": found.period, "step.slow_origin": found.origin, "step.slow_part": found.part,
        "step.slow_ranks": ", ".join(map(str, found.ranks)) or None, "step.slow_kernel_ratio": found.kernel_ratio,
        "step.slow_behind": found.behind or None,
        "step.lone_wait_us": found.cost_us if found.pattern == "once" and found.part == "start" else None,
    }  # fmt: skip
    late = balance.ranks if found.origin == "all" or len(balance.ranks) == 1 else found.ranks
    values["step.slow_owner"] = owner_of(facts, late, float(found.extra.mean()))
    for name, value in values.items():
        yield from fact(name, RUN, value, *sources, samples=n)
    for rank in found.ranks:
        subject, own = Subject("rank", str(rank), (rank,)), balance.sources.get(rank, ())
        yield from fact("rank.slow_steps_us", subject, found.own_us[rank], *own, samples=n)
        yield from fact("rank.slow_steps_share", subject, found.own_us[rank] / found.mean_us, *own, samples=n)
        yield from fact("rank.slow_steps_part", subject, found.parts[rank], *own, samples=n)


def owner_of(facts: FactSet, ranks: Sequence[int], extra_us: float) -> Value | None:
    """What the hosts of these ranks did in the longest idle stretches of a step, where these make most of what a slow
    step takes longer and most of the ranks with a timeline did the same."""
    did: list[Value | None] = []
    for rank in ranks:
        subject = Subject("rank", str(rank), (rank,))
        if facts.get("timeline.gap_owner_share", subject) is not None:
            held = facts.number("timeline.longest_gap_owner_us", subject) or 0.0
            did.append(facts.value("timeline.longest_gap_owner", subject) if held >= extra_us * MOST else None)
    name, count = Counter(did).most_common(1)[0] if did else (None, 0)
    return name if count > MOST * len(did) else None


FAMILIES = (Family("slow_steps", KINDS, measure, uses=(STEPS, EXCHANGES, COURSE), after=("parallelism", "timeline")),)
