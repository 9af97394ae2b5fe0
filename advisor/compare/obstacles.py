"""What else differs between two profiles: the reasons why times may not be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from advisor.basics.units import show_apart
from advisor.compare.absent import is_taken_over
from advisor.compare.facts import FactTable, Key, number
from advisor.compare.model import Obstacle
from advisor.compare.sight import Sight
from advisor.facts.operators.kinds import dtypes, shapes
from advisor.knowledge.comparison import settings
from advisor.knowledge.words import both
from advisor.model import Fact, ProfileInfo, Subject, Text, Value

_SHOWN = 3
"""Operator types named of several."""
_COLLECTIVES = "communication.count"
_SPEED = "communication.main_transport_bytes_per_s"


def obstacles(before: ProfileInfo, after: ProfileInfo, old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    """Every difference that stands between two profiles; those that block come first."""
    found = [*_profile(before, after), *_collection(old, new), *_work(old, new)]
    yield from sorted(found, key=lambda o: not o.blocks)


def unlike_files(seen: Sight) -> Iterator[Obstacle]:
    """Files that one side has and the other lacks, and those of which rows are missing."""
    for what, sides in (("cut files", seen.cut), ("files", seen.files)):
        if any(sides):
            before, after = (_say(side) or "–" for side in sides)
            yield Obstacle(what, before, after, False, _why(what))


def _differs(what: str, old: object, new: object, blocks: bool) -> Iterator[Obstacle]:
    if old not in (None, "", "unknown", ()) and new not in (None, "", "unknown", ()) and old != new:
        yield Obstacle(what, _say(old), _say(new), blocks, _why(what))


def _why(what: str) -> Text:
    return both(f"difference_matters.{what}")


def _say(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value[:8])) + (" …" if len(value) > 8 else "")
    return str(value)


def _profile(before: ProfileInfo, after: ProfileInfo) -> Iterator[Obstacle]:
    yield from _differs("framework", before.framework, after.framework, True)
    yield from _differs("world size", before.world_size, after.world_size, True)
    if before.world_size == after.world_size:
        yield from _differs("ranks", before.ranks, after.ranks, True)
    if before.has_steps != after.has_steps:
        yield from _differs("steps", _of_steps(before), _of_steps(after), True)
    yield from _differs("layout", before.layout, after.layout, False)
    sizes = ("data", "tensor", "pipeline", "expert")
    pairs = [(name, getattr(before.parallelism, name), getattr(after.parallelism, name)) for name in sizes]
    other = [(name, a, b) for name, a, b in pairs if a and b and a != b]
    if other:
        yield from _differs(
            "parallelism",
            ", ".join(f"{name} {a}" for name, a, _ in other),
            ", ".join(f"{name} {b}" for name, _, b in other),
            False,
        )
    versions = {name: (before.versions.get(name), after.versions.get(name)) for name in sorted(before.versions)}
    other_versions = {name: pair for name, pair in versions.items() if all(pair) and pair[0] != pair[1]}
    if other_versions:
        yield from _differs(
            "versions",
            ", ".join(f"{name} {a}" for name, (a, _) in other_versions.items()),
            ", ".join(f"{name} {b}" for name, (_, b) in other_versions.items()),
            False,
        )


def _of_steps(profile: ProfileInfo) -> str:
    return f"{len(profile.steps)}" if profile.has_steps else "–"


def _collection(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    yield from _differs("profiler level", old.value("collection.level"), new.value("collection.level"), True)
    names = ("collection.with_stack", "collection.data_process", "collection.activities", "collection.has_schedule")
    pairs = [(name.partition(".")[2], old.value(name), new.value(name)) for name in names]
    other = [(name, a, b) for name, a, b in pairs if a is not None and b is not None and a != b]
    if other:
        yield from _differs(
            "profiler settings",
            ", ".join(f"{name}={_say(a)}" for name, a, _ in other),
            ", ".join(f"{name}={_say(b)}" for name, _, b in other),
            False,
        )


def _work(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    cores = (old.value("host.cores"), new.value("host.cores"))
    yield from _differs("host", *cores, False)
    yield from _device(old, new)
    yield from _differs("measured kernel", _measured(old), _measured(new), False)
    yield from _blocks(old, new)
    yield from _dtypes(old, new)
    yield from _differs("shapes", _launched_on(old, new), _launched_on(new, old), False)
    yield from _shapes(old, new)
    if is_taken_over("operator_type.time_us", "operator_type", old, new):
        here, there = (table.of("operator_type.time_us") for table in (old, new))
        went, came = (_costliest(own, other) for own, other in ((here, there), (there, here)))
        yield Obstacle("operators", went or "–", came, False, _why("operators"))
    yield from _links(old, new)
    a, b = (_operators(table) for table in (old, new))
    counted = [table.number(_COLLECTIVES) is not None for table in (old, new)]  # else they are among the kernels there
    if a and b and counted[0] == counted[1] and not _alike(a, b, "least_change"):
        yield from _differs("kernels", *show_apart(a, b, "count"), False)


def _device(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    """Another card, by its name or by what it is rated at. At which clock it ran is no part of what it is: a card that
    is kept below its clock is what makes a run slower, and it is told as that."""
    rated, ran = (
        [_highest(table.of(f"timeline.core_mhz_{which}")) for table in (old, new)] for which in ("rated", "highest")
    )
    if all(rated) and rated[0] != rated[1]:
        yield from _differs("device", *_clocks(rated), True)
        return
    yield from _differs("device", old.value("utilisation.card"), new.value("utilisation.card"), True)
    if all(ran) and ran[0] != ran[1]:
        yield from _differs("clock", *_clocks(ran), False)


def _clocks(mhz: list[float | None]) -> tuple[str, str]:
    return show_apart(mhz[0] or 0.0, mhz[1] or 0.0, "mhz")


def _costliest(own: Mapping[Key, Fact], other: Mapping[Key, Fact]) -> str:
    """The operator types of one side alone, the longest first."""
    alone = sorted((key for key in own if key not in other), key=lambda key: (-(number(own[key].value) or 0.0), key))
    return ", ".join(key[1] for key in alone[:_SHOWN]) + (", …" if len(alone) > _SHOWN else "")


def _measured(table: FactTable) -> str:
    """The kernel that a benchmark measures."""
    return str(table.value("recording.measured_type") or "")


def _launched_on(table: FactTable, other: FactTable) -> str:
    """The inputs on which the kernel that a benchmark measures was launched here and not there, where it was launched
    on several."""
    key = ("operator_type", _measured(table))
    here, there = (side.listed("operator_type.inputs_shapes", key) for side in (table, other))
    if not here or not there or set(here) == set(there):
        return ""
    alone = [each for each in here if each not in there]
    return f"{key[1]} {alone[0] if alone else '–'}"


def _operators(table: FactTable) -> float | None:
    """Kernels of a step, collectives left out: how gradients are packed is no other work."""
    kernels = table.number("operators.kernel_count")
    return kernels and kernels - (table.number(_COLLECTIVES) or 0.0)


def _blocks(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    """On how many blocks the longest operator type is launched, where that is another number for the same shapes: which
    of its kernels is the costliest, whose blocks are told, may change by itself."""
    longest = _longest(old)
    (was, now), shapes_of = (
        [table.value(f"operator_type.{name}", longest) for table in (old, new)] for name in ("blocks", "shapes")
    )
    if was is not None and now is not None and was != now and shapes_of[0] == shapes_of[1]:
        yield from _differs("blocks", f"{longest.id} {_say(was)}", f"{longest.id} {_say(now)}", False)


def _dtypes(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    """Other data types of the longest operator type's inputs: they are other work for its units and for memory."""
    longest = _longest(old)
    was, now = (dtypes(str(table.value("operator_type.dtypes", longest) or "")) for table in (old, new))
    if was and now and was != now:
        yield from _differs("data types", f"{longest.id} {';'.join(was)}", f"{longest.id} {';'.join(now)}", False)


def _longest(table: FactTable) -> Subject:
    """The operator type that takes most of the time."""
    times = {key: number(fact.value) or 0.0 for key, fact in table.of("operator_type.time_us").items()}
    return Subject("operator_type", max(sorted(times), key=lambda key: times[key], default=("", ""))[1])


def _links(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    """The speed of all links, where as many messages of as many bytes take another time over the same transport: within
    one profile nothing tells that all of them are slow."""
    before, after = (old.number(_SPEED) or 0.0, new.number(_SPEED) or 0.0)
    over = [table.value("communication.main_transport") for table in (old, new)]
    sent = [sum(number(fact.value) or 0.0 for fact in table.of("rank.transfer_bytes").values()) for table in (old, new)]
    counts = [table.number(_COLLECTIVES) or 0.0 for table in (old, new)]
    same = over[0] == over[1] and all(a > 0 and _alike(a, b, "least_change") for a, b in (sent, counts))
    if same and before and after and not _alike(before, after, "fact_noise"):
        was, now = show_apart(before, after, "bytes_per_s")
        yield from _differs("links", f"{over[0]} {was}", f"{over[0]} {now}", False)


def _alike(before: float, after: float, limit: str) -> bool:
    """Whether two numbers differ by no more than this limit of knowledge_base/comparison.yaml lets runs differ by."""
    return abs(after - before) <= settings().limits[limit] * max(before, after)


def _highest(facts: Mapping[tuple[str, str], object]) -> float | None:
    values = [number(getattr(fact, "value", None)) for fact in facts.values()]
    return max((v for v in values if v is not None), default=None)


def _shapes(old: FactTable, new: FactTable) -> Iterator[Obstacle]:
    """Another batch: what differs in the shapes of most operators' inputs has changed by one and the same factor, the
    leading dimension of some, and what gradients of weights sum over. Else other shapes, where most operators' inputs
    changed. One type among several does not tell: which of its kernels is the costliest may change by itself, as where
    there are more or fewer calls of which the mean one takes as long, or two that are as costly changed places. A batch
    is a dimension among others: where all of a matrix have grown, it is another problem. Without marked steps nothing
    but the calls tells how much work there was: on inputs of another size it was another amount.
    """
    before, after = old.of("operator_type.shapes"), new.of("operator_type.shapes")
    times = old.of("operator_type.time_us")
    weights = {key: (number(times[key].value) if key in times else None) or 1.0 for key in set(before) & set(after)}
    total, limit = sum(weights.values()), settings().limits["shape_change"]
    again = {key for key in weights if _more_calls(key, old, new)}
    others = [key for key in sorted(weights)
              if before[key].value != after[key].value and not _changed_places(key, old, new)]  # fmt: skip
    by_factor: dict[float, list[Key]] = {}
    for key in others:
        factor = _factor(before[key].value, after[key].value) or _factor_of_all(key, old, new)
        if factor and (abs(factor - 1) <= settings().limits["fact_noise"] or key not in again):
            by_factor.setdefault(round(factor, 3), []).append(key)
    changed = sorted((key for key in others if key not in again), key=lambda key: -weights[key])
    few = min(2, len(weights))
    for factor, keys in by_factor.items():
        leads = [key for key in keys if _leading(before[key].value) != _leading(after[key].value)]
        if leads and sum(weights[key] for key in keys) >= limit * total and len(keys) >= few:
            if any(_keeps(before[key].value, after[key].value) for key in leads):
                yield Obstacle("batch", "× 1", f"× {factor:g}", True, _why("batch"))
            else:
                yield _other_shapes(leads[0], before, after, True)
            return
    if changed and sum(weights[key] for key in changed) >= limit * total and len(changed) >= few:
        unmarked = all(table.value("recording.has_steps") is False for table in (old, new))
        yield _other_shapes(changed[0], before, after, unmarked and _resized(changed, old, new))


def _other_shapes(key: Key, before: Mapping[Key, Fact], after: Mapping[Key, Fact], blocks: bool) -> Obstacle:
    was, now = (f"{key[1]} {side[key].value}" for side in (before, after))
    return Obstacle("shapes", was, now, blocks, _why("shapes"))


def _resized(keys: Sequence[Key], old: FactTable, new: FactTable) -> bool:
    """Whether the inputs of all these types have become larger, or of all of them smaller, by more than padding. Of one
    called on several, the costliest may be others now."""
    if any(side.listed("operator_type.inputs_shapes", key) for side in (old, new) for key in keys):
        return False
    before, after = (side.of("operator_type.shapes") for side in (old, new))
    sizes = [_elements(after[key].value) / max(_elements(before[key].value), 1) for key in keys]
    least = settings().limits["other_size"]
    return min(sizes) >= least or 0 < max(sizes) <= 1 / least


def _changed_places(key: Key, old: FactTable, new: FactTable) -> bool:
    """Whether the type is called on its costliest input shapes of either side on both, and in the same proportion."""
    sides = [
        dict(zip(*(side.listed(f"operator_type.inputs_{each}", key) for each in ("shapes", "calls")), strict=False))
        for side in (old, new)
    ]
    first, then = (str(side.of("operator_type.shapes")[key].value) for side in (old, new))
    if not all(side.get(first) and side.get(then) for side in sides):
        return False
    was, now = (side[first] / side[then] for side in sides)
    return _alike(was, now, "least_change")


def _factor_of_all(key: Key, old: FactTable, new: FactTable) -> float | None:
    """The factor by which each of a type's input shapes has become another one; None where there is no such. Which of
    them is the costliest, and so told as the type's, may change by itself."""
    was, now = (side.listed("operator_type.inputs_shapes", key) for side in (old, new))
    other = [each for each in was if each not in now]
    if not other or 2 * len(other) < len(was):
        return None
    common = set.intersection(*({_factor(a, b) for b in now} - {None} for a in other))
    return min(common, key=lambda factor: abs(math.log(factor or 1.0)), default=None)


def _more_calls(key: Key, old: FactTable, new: FactTable) -> bool:
    """Whether the type has more or fewer calls than before, and the mean one takes as long."""

    def alike(name: str) -> bool:
        a, b = (number(side[key].value) if key in side else None for side in (old.of(name), new.of(name)))
        return a is not None and b is not None and _alike(a, b, "fact_noise")

    return alike("operator_type.average_us") and not alike("operator_type.count")


def _leading(told: Value) -> int | None:
    """The first dimension of the first input."""
    return next((size for shape in shapes(str(told)) or () for size in shape), None)


def _keeps(before: Value, after: Value) -> bool:
    """Whether any matrix, or all of what is none, keeps a dimension: not all of them were multiplied. Where another
    product is the costliest now, its shapes tell nothing of it."""
    if _factor(before, after) is None:
        return True
    was, now = (shapes(str(told)) or () for told in (before, after))
    matrices = [pair for pair in zip(was, now, strict=False) if len(pair[0]) > 1]
    return not matrices or any(a == b for pair in matrices for a, b in zip(*pair, strict=False))


def _elements(told: Value) -> int:
    """Elements of all of these inputs."""
    return sum(math.prod(shape) for shape in shapes(str(told)) or ())


def _factor(before: Value, after: Value) -> float | None:
    """What all dimensions that differ between two lists of shapes were multiplied by; None where that is no one factor:
    "64,512;512,512" is "32,512;512,512" by 0.5."""
    was, now = shapes(str(before)), shapes(str(after))
    if was is None or now is None or list(map(len, was)) != list(map(len, now)):
        return None
    pairs = [(a, b) for old, new in zip(was, now, strict=True) for a, b in zip(old, new, strict=True) if a != b]
    factors = {b / a if a > 0 and b > 0 else None for a, b in pairs}
    return factors.pop() if len(factors) == 1 else None
