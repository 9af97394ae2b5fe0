"""How many of a card's cores an operator uses: blocks are dealt to cores in rounds, and the last round may be short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints
from advisor.basics.numbering import distinct, largest, numbered
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.operators.kinds import is_attention, is_matrix_product
from advisor.facts.recording.counts import HOST_CORE, executions_of_table, types_of_signatures
from advisor.facts.recording.sums import operators_of
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.knowledge.cards import cube_cores, rated_between, rated_mhz
from advisor.knowledge.measuring import limit
from advisor.knowledge.thresholds import shared_threshold
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.kernel_blocks import PLACES, VECTOR_BLOCKS
from advisor.sources.streams.kernels import Kernels
from advisor.sources.streams.one_operator import hardware_beside
from advisor.sources.text.jsontext import load_json

KINDS = (
    kind(
        "operator_type.core_idle_share",
        "ratio",
        "operator_type",
        "part of the cores' time that a short last round leaves unused: of the kernels that use few cores, where "
        "there are such, else of all of the type",
        formula="Σ t × (1 − blocks ÷ (rounds × cores)) ÷ Σ t; cores from device_*/info.json or HardwareInfo.jsonl, "
        "else those for which blocks × aicore_time ÷ (t × cube_utilization) is rounds × cores, else as many as most "
        "types have blocks, of which a cube core counts as two vector cores, else as many as the smallest card with "
        "such counters has",
        needs="kernels",
    ),
    kind(
        "operator_type.core_idle_us",
        "us",
        "operator_type",
        "the same as time per step: upper bound of what other block numbers give",
        needs="kernels",
    ),
    kind("operator_type.core_count", "count", "operator_type", "cores of the kind it runs on", needs="kernels"),
    kind(
        "operator_type.fewest_cores",
        "count",
        "operator_type",
        "cores of the kind it runs on that the smallest card with such counters has, where its own number is not told",
        formula="knowledge_base/measuring.yaml; counters of vector cores of their own, computing ones included",
        needs="kernels",
    ),
    kind("operator_type.blocks", "count", "operator_type", "blocks of its costliest kernel", needs="kernels"),
    kind(
        "operator_type.few_cores_share",
        "ratio",
        "operator_type",
        "part of its time in kernels that leave a fifth of the cores or more unused",
        needs="kernels",
    ),
    kind(
        "operator_type.few_cores_shape",
        "text",
        "operator_type",
        "input shapes of those of them that leave most unused",
        needs="kernels",
    ),
    kind("operator_type.few_cores_blocks", "count", "operator_type", "blocks of these", needs="kernels"),
    kind("operator_type.few_cores_count", "count", "operator_type", "cores of the kind these run on", needs="kernels"),
    kind(
        "operator_type.vectors_per_cube",
        "number",
        "operator_type",
        "vector cores that a kernel of both kinds uses for each of its cube cores",
        formula="Mix Block Num ÷ Block Num, weighted by duration",
        needs="kernels",
    ),
    kind(
        "utilisation.least_rated_mhz",
        "mhz",
        "run",
        "lowest clock that any card is rated at which counts, as all of these do, what its vector cores compute",
        formula="knowledge_base/cards.yaml",
        needs="kernels",
    ),
    kind("utilisation.most_rated_mhz", "mhz", "run", "the highest clock of such cards", needs="kernels"),
)

FEWEST_TYPES = limit("cores", "fewest_types")
_EXACT = limit("cores", "exact")
_AGREE = limit("cores", "agree")
_CUBE = ("AI_CORE", "AI_CUBE", "MIX_AIC")
_VECTOR = ("AI_VECTOR_CORE", "MIX_AIV")
_FEWEST = ((_CUBE, limit("cores", "fewest_cube")), (_VECTOR, limit("cores", "fewest_vector")))


class _Few(Struct, frozen=True):
    """Kernels of one shape that leave cores unused: how much time they do, and the blocks of the longest."""

    idle_us: float
    shape: str
    blocks: int
    cores: int


class _Use(Struct):
    time_us: float = 0.0
    idle_us: float = 0.0
    few_us: float = 0.0
    few_idle_us: float = 0.0
    few: _Few | None = None
    longest_us: float = 0.0
    cores: int = 0
    blocks: int = 0
    fewest: int = 0
    """Cores of its kind that any card with such counters has; 0 where nothing tells."""
    paired_us: float = 0.0
    vectors: float = 0.0
    """Σ time × vector cores for each cube core, over the kernels of `paired_us` that use both."""


class CoreUse(Struct, frozen=True):
    types: dict[str, _Use]
    steps: int
    sources: tuple[Source, ...]
    pairs: tuple[Source, ...]
    """Where it stands how many cores of either kind a kernel uses."""
    apart: bool = False
    """Whether the card counts what its vector cores compute by themselves."""


CORE_USE = Reduction("cores", CoreUse)


def core_counts(rank: Rank) -> tuple[int, int]:
    """(cube cores, vector cores) of the rank's card; 0 where the files do not tell."""
    device = _device(rank)
    told = _count(device.get("ai_core_num")), _count(device.get("aiv_num"))
    if any(told) or rank.layout != "msprof" or not rank.has("operator_access"):
        return told
    card = hardware_beside(rank.tables["kernels"].paths[0], rank.note_path)
    return _count(card.get("ai cube count")), _count(card.get("ai vector count"))


def core_clock(rank: Rank) -> tuple[int, int]:
    """(cube cores, their clock in MHz) of the rank's card; 0 where the files do not tell."""
    device = _device(rank)
    return _count(device.get("ai_core_num")), _count(device.get("aic_frequency"))


def clock_rated(rank: Rank) -> float | None:
    """What the clock of its card is rated at, in MHz: as the device's own file tells, else as cards of its name are."""
    return core_clock(rank)[1] or rated_mhz(str(rank.info.get("npu") or ""))


def _device(rank: Rank) -> dict[str, Any]:
    # a framework's folder holds what the profiler below it wrote; what that exports by itself is the folder
    beside = (path for place in ("PROF_*/device_*", "device_*") for path in rank.root.glob(f"{place}/info.json*"))
    for path in sorted(beside):
        document = load_json(path, rank.note_path)
        devices = document.get("DeviceInfo") if isinstance(document, dict) else None
        for device in devices if isinstance(devices, list) else ():
            if isinstance(device, dict):
                return device
    return {}


def _count(value: object) -> int:
    return int(value) if isinstance(value, (int, str)) and str(value).isdecimal() and len(str(value)) < 5 else 0


def reduce(rank: Rank) -> CoreUse | None:
    """None where blocks are not told. Where the card's cores are not, blocks alone are."""
    cube, vector = core_counts(rank)
    timeline = timeline_of(rank)
    if timeline is None:
        return None if rank.has("kernels") else _of_sums(rank)
    kernels = timeline.kernels
    per_signature = [cube if s.core in _CUBE else vector if s.core in _VECTOR else 0 for s in kernels.signatures]
    cores = np.array(per_signature)[kernels.signature]
    told = cube > 0 or vector > 0
    counted = 0 if told else _counted_cores(kernels)
    if counted:
        of_kind = {**dict.fromkeys(_CUBE, counted), **dict.fromkeys(_VECTOR, 2 * counted)}
        cores = np.array([of_kind.get(s.core, 0) for s in kernels.signatures])[kernels.signature]
    elif not told:
        cores = _usual_blocks(kernels)[kernels.signature]
    # what every card with such counters has, this one has too
    least = np.zeros(len(cores), np.int64) if told else _fewest_cores(kernels)[kernels.signature]
    usable = ((cores > 0) | (not told)) & np.isfinite(kernels.block) & (kernels.block >= 1) & ~timeline.communication
    signature, blocks, surely = kernels.signature[usable], kernels.block[usable], cores[usable]
    of = np.where(surely > 0, surely, least[usable])
    lasts = np.nan_to_num(kernels.duration[usable])
    rounds = np.ceil(blocks / np.maximum(of, 1))
    # of cores that are not told, those are unused that most other types use; short kernels mostly start and stop
    long = lasts >= shared_threshold("short_kernel")
    gains = (of > 0) & (told | ((rounds == 1) | (counted > 0)) & long)
    unused = np.where(gains, 1 - blocks / np.maximum(rounds * of, 1), 0.0)
    idle = lasts * unused
    few = (unused >= shared_threshold("idle_cores")) & long
    size = len(kernels.signatures)
    time_by, idle_by = np.bincount(signature, lasts, size), np.bincount(signature, idle, size)
    few_by, few_idle_by = (np.bincount(signature[few], each[few], size) for each in (lasts, idle))
    sparse = np.flatnonzero(few)[largest(lasts[few], signature[few])]
    fewest = dict(zip(signature[sparse].tolist(), sparse.tolist(), strict=True))
    types, names = dict[str, _Use](), types_of_signatures(kernels)
    longest = largest(lasts, signature)
    costliest = dict(zip(signature[longest].tolist(), longest.tolist(), strict=True))
    for index, at in sorted(costliest.items()):
        if not names[index]:
            continue
        use = types.setdefault(names[index], _Use())
        use.time_us += float(time_by[index])
        use.idle_us += float(idle_by[index])
        if index in fewest:
            use.few_us += float(few_by[index])
            use.few_idle_us += float(few_idle_by[index])
            one = fewest[index]
            shape = kernels.signatures[index].input_shapes
            use.few = _worst((use.few, _Few(float(few_idle_by[index]), shape, int(blocks[one]), int(of[one]))))
        if kernels.signatures[index].core == "MIX_AIC":
            use.paired_us += float(kernels.piped[VECTOR_BLOCKS][index])
            use.vectors += float(kernels.pipes[VECTOR_BLOCKS][index])
        if lasts[at] > use.longest_us:
            use.longest_us, use.cores, use.blocks = float(lasts[at]), int(surely[at]), int(blocks[at])
            use.fewest = 0 if use.cores else int(of[at])
    steps = max(len(timeline.windows.names), 1)
    if not types:
        return None
    blocks_of, pairs = (rank.source("kernels", "block_num", of) for of in ("duration_us", "mix_block_num"))
    return CoreUse(types, steps, (blocks_of,), (pairs,), _counts_apart(kernels))


def _of_sums(rank: Rank) -> CoreUse | None:
    """From older MindSpore's sums operator by operator. They do not tell the kind of core: products run on the cube
    cores, where these are apart, and so does a fused attention, whose blocks are dealt to them with the vector cores
    beside each."""
    frame = operators_of(rank, "operators") if rank.has("operators") else None
    if frame is None or not {"blocks", "count"} <= set(frame):
        return None
    usable = frame[
        (frame["core"] != HOST_CORE) & (frame["blocks"] >= 1) & (frame["total_us"] > 0) & (frame["count"] > 0)
    ]
    rows = [(str(row.type), int(row.blocks), row.total_us, row.count, row.input_shapes) for row in usable.itertuples()]
    if not rows:
        return None
    dealt = {(name, blocks) for name, blocks, *_ in rows}
    votes = (Counter(n for name, n in dealt if _runs_on_cubes(name) == products) for products in (True, False))
    cube, vector = _agreed(*votes)
    types = dict[str, _Use]()
    for name, blocks, us, count, shape in rows:
        use, of = types.setdefault(name, _Use()), cube if _runs_on_cubes(name) else vector
        use.time_us += us
        if us / count > use.longest_us:
            use.longest_us, use.cores, use.blocks = us / count, of, blocks
        unused = 1 - blocks / of if of >= blocks and us / count >= shared_threshold("short_kernel") else 0.0
        use.idle_us += us * unused
        if unused >= shared_threshold("idle_cores"):
            use.few_us += us
            use.few_idle_us += us * unused
            use.few = _worst((use.few, _Few(us * unused, shape if isinstance(shape, str) else "", blocks, of)))
    told = rank.source("operators", "blocks", "total_us")
    return CoreUse(types, executions_of_table(rank), (told,), ())


def _runs_on_cubes(kind: str) -> bool:
    return is_matrix_product(kind) or is_attention(kind)


def _counts_apart(kernels: Kernels) -> bool:
    """Whether the card counts what its vector cores compute and carry: older cards, and small ones, have no such
    counters."""
    return all(float(kernels.piped[pipe].sum()) > 0 for pipe in ("vec_ratio", "aiv_mte2_ratio"))


def _fewest_cores(kernels: Kernels) -> Ints:
    """For each signature how many cores of its kind a card with such counters has at least; 0 where nothing tells."""
    if not _counts_apart(kernels):
        return np.zeros(len(kernels.signatures), np.int64)
    fewest = {core: int(count) for cores, count in _FEWEST for core in cores}
    return np.array([fewest.get(s.core, 0) for s in kernels.signatures], np.int64)


def _counted_cores(kernels: Kernels) -> int:
    """The card's cube cores by its counters, where they fit one number that cards have and no other; else 0. On c cores
    b blocks take ⌈b ÷ c⌉ rounds, which have c places each."""
    weight = kernels.piped[PLACES]
    if not weight.any() or not _counts_apart(kernels):
        return 0
    told = np.flatnonzero(weight)
    most = np.zeros(len(weight))
    np.maximum.at(most, kernels.signature, np.nan_to_num(kernels.block))
    blocks, weight = most[told], weight[told]
    places = blocks * kernels.pipes[PLACES][told] / weight
    fits = [
        count
        for count in cube_cores()
        if weight[np.abs(np.ceil(blocks / count) * count - places) <= _EXACT * places].sum() >= _AGREE * weight.sum()
    ]
    return fits[0] if len(fits) == 1 else 0


def _worst(found: Iterable[_Few | None]) -> _Few | None:
    return max((few for few in found if few is not None), key=lambda few: few.idle_us, default=None)


def _usual_blocks(kernels: Kernels) -> Ints:
    """For each signature how many cores of its kind there are at least: as many as most types of operators that run on
    it have blocks; 0 where too few types agree."""
    found = np.zeros(len(kernels.signatures), np.int64)
    names = types_of_signatures(kernels)
    known = np.isfinite(kernels.block) & (kernels.block >= 1)
    masks, votes = [], []
    for kinds in (_CUBE, _VECTOR):
        mine = np.array([s.core in kinds for s in kernels.signatures], bool)
        at = np.flatnonzero(known & mine[kernels.signature])
        counts, which = numbered(kernels.block[at].astype(np.int64))
        signatures, blocks = np.divmod(distinct(kernels.signature[at] * len(counts) + which), max(len(counts), 1))
        pairs = {(names[each], count) for each, count in zip(signatures.tolist(), counts[blocks].tolist(), strict=True)}
        masks.append(mine)
        votes.append(Counter(int(count) for name, count in pairs if name))
    for mine, usual in zip(masks, _agreed(*votes), strict=True):
        found[mine] = usual
    return found


def _agreed(cube: Counter[int], vector: Counter[int]) -> tuple[int, int]:
    """(cube cores, vector cores) that a card has at least, by how many types of operators have so many blocks on either
    kind; 0 where too few agree. Where too few run on one kind, those on the other are witnesses too, as long as both
    have some that fit: beside each cube core there are two vector cores."""
    fits = {count: n + vector[2 * count] for count, n in cube.items() if vector[2 * count]}
    found = []
    for types, each in ((cube, 1), (vector, 2)):
        candidates = (types, {each * count: n for count, n in fits.items()})
        tops = (max(of.items(), key=lambda one: (one[1], one[0]), default=(0, 0)) for of in candidates)
        found.append(next((usual for usual, count in tops if count >= FEWEST_TYPES), 0))
    return found[0], found[1]


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Per operator type, over the ranks that tell."""
    del facts
    found = run.each(CORE_USE)
    if found and all(one.apart for one in found.values()):
        for name, mhz in zip(("least", "most"), rated_between(), strict=True):
            yield from fact(f"utilisation.{name}_rated_mhz", RUN, mhz, *next(iter(found.values())).sources)
    covers = {rank: times.covers for rank, times in steady(run).items()}
    for name in dict.fromkeys(name for one in found.values() for name in one.types):
        parts = [(one, one.types[name]) for one in found.values() if name in one.types]
        steps = [one.steps * covers.get(rank, 1) for rank, one in found.items() if name in one.types]
        time = sum(use.time_us for _, use in parts)
        if not time:
            continue
        subject, sources = Subject("operator_type", name), parts[0][0].sources
        idle = sum(use.idle_us for _, use in parts)
        top = max((use for _, use in parts), key=lambda use: use.longest_us)
        yield from fact("operator_type.blocks", subject, top.blocks, *sources)
        if paired := sum(use.paired_us for _, use in parts):
            vectors = sum(use.vectors for _, use in parts) / paired
            yield from fact("operator_type.vectors_per_cube", subject, vectors, *parts[0][0].pairs)
        yield from fact("operator_type.fewest_cores", subject, top.fewest or None, *sources)
        few_us = sum(use.few_us for _, use in parts)
        if not top.cores and not few_us:
            continue
        share = sum(use.few_idle_us for _, use in parts) / few_us if few_us else idle / time
        yield from fact("operator_type.core_idle_share", subject, share, *sources)
        idles = (use.few_idle_us if few_us else use.idle_us for _, use in parts)
        per_step = sum(each / n for n, each in zip(steps, idles, strict=True)) / len(found)
        yield from fact("operator_type.core_idle_us", subject, per_step, *sources)
        yield from fact("operator_type.core_count", subject, top.cores or None, *sources)
        few = _worst(use.few for _, use in parts)
        if few is not None:
            yield from fact("operator_type.few_cores_share", subject, few_us / time, *sources)
            yield from fact("operator_type.few_cores_shape", subject, few.shape.strip('" ;') or None, *sources)
            yield from fact("operator_type.few_cores_blocks", subject, few.blocks, *sources)
            yield from fact("operator_type.few_cores_count", subject, few.cores, *sources)


FAMILIES = (Family("cores", KINDS, measure, CORE_USE.by(reduce), ("kernels", "operators"), uses=(STEPS,)),)
