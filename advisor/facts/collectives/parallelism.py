"""How the training was split over ranks, and who may be compared with whom (S32).

Told by metadata where there is any; else read from the communication groups and who sends to whom; else from the
shape of the data itself. Ranks are compared only with peers: the same pipeline stage.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from math import prod

import numpy as np
from msgspec import Struct, field

from advisor.basics.units import rank_list
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.collectives.exchanges import EXCHANGES, REDUCTIONS, Exchanges, kind_of
from advisor.facts.collectives.roles import hidden_by_computing, in_forward, roles_of, weights_shared
from advisor.facts.device.course import COURSE, Course
from advisor.facts.operators.kinds import is_attention, is_batched_product, is_expert, is_softmax
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import recording_of
from advisor.facts.step.steps import steady, stepped_courses
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Parallelism, Subject
from advisor.sources.topology import joined

_FOLDER = re.compile(r"(?P<host>.+)_\d+_\d{14,20}_ascend_(?:ms|pt)$")


class Partition(Struct):
    """Sizes (None: unknown), the stage and host of each rank, and the role of each communication group."""

    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    source: str = "assumed: no partition is told"
    guessed: bool = False
    """The stages are what the ranks' times look like; no file names them."""
    apart: bool = False
    """Every rank is taken for a stage of its own, for nothing tells which are of one: there are fewer, perhaps."""
    sharded: bool = False
    """Operators are sharded, over a number of ranks that is not told."""
    trains: bool = True
    """Gradients are exchanged; inference has none."""
    stage: dict[int, int] = field(default_factory=dict)
    program: dict[int, int] = field(default_factory=dict)
    """Rank -> number of what it runs, where groups of ranks that share no weights run different things beside each
    other (an actor and its critic); empty where all do the same, or stages of it."""
    host: dict[int, str] = field(default_factory=dict)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    """Groups whose members are known from the files; of the others only those at hand are."""
    role: dict[str, str] = field(default_factory=dict)
    """Group -> data, tensor, pipeline, expert, context, or exchange where nobody tells what for."""
    all_to_all: str = ""
    """What ranks exchange all with all for: expert, context or exchange; empty where a compiler may shard operators."""
    chains: list[tuple[int, ...]] = field(default_factory=list)
    """Ranks that hand activations to each other, in the order of their stages; empty where nothing tells."""

    @property
    def is_told(self) -> bool:
        """The sizes were read somewhere, neither guessed nor assumed."""
        return not (self.guessed or self.source.startswith("assumed"))

    @property
    def strategy(self) -> str:
        """Which metrics apply: pipeline before model before data parallel; single for one rank."""
        if (self.pipeline or 1) > 1:
            return "pipeline"
        if (self.tensor or 1) > 1 or (self.expert or 1) > 1 or self.sharded:
            return "model"
        return "data" if (self.data or 1) > 1 else "single"

    @property
    def ring(self) -> str:
        """What ranks pass on to each other for, where none of them does for a pipeline: context or exchange, else
        empty."""
        roles = set(self.role.values())
        if "pipeline" in roles or (self.pipeline or 1) > 1:
            return ""
        return next((role for role in ("context", "exchange") if role in roles), "")

    def surely(self, world: int, told: Parallelism) -> Parallelism:
        """The sizes to report. Those that no file tells must make up the world together with the others, and nothing
        merely assumed counts: only in a world of one rank every size is 1."""
        axes = ("data", "tensor", "pipeline")
        sizes = {axis: getattr(self, axis) for axis in (*axes, "expert")}
        if world == 1:
            sizes |= dict.fromkeys(axes, 1)
        whole = prod(sizes[axis] or 0 for axis in axes) == world
        unsure = axes if self.source.startswith("assumed") and world > 1 else () if whole else ("data", "tensor")
        sizes |= {axis: getattr(told, axis) for axis in unsure}
        return Parallelism(**sizes, source=self.source)

    def role_of(self, group: str) -> str:
        """What a group is for; of those nobody tells, gradients, or sharded operators where there are such or no
        gradients."""
        return self.role.get(group, "tensor" if self.sharded or not self.trains else "data")

    def purpose(self, kind: str, group: str) -> str:
        """What a collective of this kind in this group is for: the group's role; of data-parallel ranks "data" are
        their gradients alone, "weights" what they gather of sharded weights (FSDP), "expert" or "exchange" what they
        exchange all with all in the same group, "other" what they broadcast or scatter."""
        role = self.role_of(group)
        if role != "data" or kind in REDUCTIONS:
            return role
        tokens = self.all_to_all in ("expert", "")
        return {"allgather": "weights", "alltoall": "expert" if tokens else "exchange"}.get(kind, "other")

    def joins_stages(self, group: str) -> bool:
        """Whether members are of several stages, as where the norm of all gradients is summed: whoever has ended its
        last backward pass waits there for the stages that have not, which is the drain of the pipeline."""
        if (self.pipeline or 1) < 2 or self.apart or self.role_of(group) == "pipeline":
            return False
        return len({self.stage[rank] for rank in self.groups.get(group, ()) if rank in self.stage}) > 1

    @property
    def kin(self) -> dict[int, int]:
        """rank -> number of those that do the same work: its stage, or its program."""
        return self.program or self.stage

    def peers(self) -> dict[int, list[int]]:
        """Stage, or program -> ranks at hand in it."""
        found: dict[int, list[int]] = defaultdict(list)
        for rank, number in sorted(self.kin.items()):
            found[number].append(rank)
        return dict(sorted(found.items()))


@computed
def partition(run: Run) -> Partition:
    """The partition of this run."""
    found = Partition()
    ranks = sorted({rank.rank for rank in run.ranks})
    exchanges = run.each(EXCHANGES)
    found.host = _hosts(run)
    found.groups, found.told = _groups(run, exchanges)
    told = run.profile.parallelism
    if any((told.data, told.tensor, told.pipeline, told.expert)):
        found.data, found.tensor, found.pipeline, found.expert = told.data, told.tensor, told.pipeline, told.expert
        found.source = told.source
    modes = {str(rank.info.get("legacy_mode") or "") for rank in run.ranks} - {""}
    if modes:
        found.source = "names of the cluster analysis files"
        found.sharded = any(mode.startswith("model") for mode in modes)
    names = {k: v for rank in run.ranks for k, v in (rank.info.get("group_names") or {}).items()}
    shares = {rank: (t.share("computing"), float(np.median(t.time))) for rank, t in steady(run).items()}
    computing = {rank: share * time for rank, (share, time) in shares.items() if share is not None}
    recording = recording_of(run)
    turns = {} if recording.has_steps else {rank: one.executions for rank, one in run.each(RECORDING).items()}
    computing = {rank: us / max(turns.get(rank, 1), 1) for rank, us in computing.items()}
    hidden = hidden_by_computing(exchanges, stepped_courses(run))
    forward = in_forward(exchanges, run.each(COURSE))
    found.trains = recording.kind != "inference"
    types = _kernel_types(run)
    attends = _attends(types)
    found.all_to_all = _exchange(run.profile.framework, types, attends)
    found.role = roles_of(
        found.groups, names, exchanges, computing, found.all_to_all, hidden,
        ring="context" if attends else "exchange", forward=forward, turns=turns, trains=found.trains,
    )  # fmt: skip
    _find_stages(run, found, ranks, exchanges)
    if not found.guessed and len(set(found.stage.values())) == 1:
        found.program = _programs(found, ranks, exchanges, run.each(COURSE))
    _find_sizes(found, world_of(run))
    return found


def world_of(run: Run) -> int:
    """Ranks that took part: as told, else as many as the ranks at hand show."""
    ranks = {rank.rank for rank in run.ranks}
    return max(run.profile.world_size or max(ranks, default=0) + 1, len(ranks))


def _exchange(framework: str, types: set[str], attends: bool) -> str:
    """What ranks exchange all with all for: tokens, where kernels send them to experts; heads against parts of the
    sequence (Ulysses), where kernels compute attention and no compiler shards operators; else parts of whatever they
    share, as of a table of embeddings. "" where it may be such a compiler's redistribution."""
    if any(map(is_expert, types)):
        return "expert"
    if framework != "pytorch":
        return ""
    return "context" if attends else "exchange"


def _kernel_types(run: Run) -> set[str]:
    """Types of kernels of all ranks, by their rows or by a statistic."""
    listed = {kind for operators in run.each(OPERATORS).values() for kind in operators.types}
    return listed | {kind for course in run.each(COURSE).values() for kind, _ in course.speed}


def _attends(types: set[str]) -> bool:
    """Whether kernels compute attention, fused or written out: else no keys and values are passed on."""
    return any(map(is_attention, types)) or (any(map(is_softmax, types)) and any(map(is_batched_product, types)))


def _hosts(run: Run) -> dict[int, str]:
    hosts: dict[int, str] = {}
    for rank in run.ranks:
        match = _FOLDER.match(rank.root.name)
        host = rank.host or (match["host"] if match else None)
        if host:
            hosts[rank.rank] = str(host)
    return hosts


def _groups(run: Run, exchanges: dict[int, Exchanges]) -> tuple[dict[str, tuple[int, ...]], frozenset[str]]:
    """Group -> members: as told, else the ranks whose files name it; and which were told."""
    groups: dict[str, tuple[int, ...]] = dict(run.profile.groups)
    for rank in run.ranks:
        groups.update({name: tuple(members) for name, members in rank.groups.items()})
    groups.pop("", None)
    told = frozenset(groups)
    seen: dict[str, set[int]] = defaultdict(set)
    for number, ex in exchanges.items():
        for index in np.unique(ex.group):
            seen[ex.groups[index]].add(number)
    for name, present in seen.items():
        if name and name not in groups:
            groups[name] = tuple(sorted(present))
    return groups, told


def _find_stages(run: Run, found: Partition, ranks: Sequence[int], exchanges: dict[int, Exchanges]) -> None:
    """Stage of every rank: told, else its place in its pipeline group, else equal shares, else the data's shape."""
    told = {r.rank: int(r.info["stage"]) for r in run.ranks if isinstance(r.info.get("stage"), int)}
    if len(told) == len(ranks):
        found.stage = told
        found.pipeline = max(found.pipeline or 1, len(set(told.values())))
        return
    if chains := _chains(found, exchanges, set(ranks), world_of(run)):
        placed = {rank: place for chain in chains for place, rank in enumerate(chain)}
        if set(ranks) <= set(placed):
            found.chains = chains
            found.pipeline = len(chains[0])
            found.stage = {rank: placed[rank] for rank in ranks}
            if found.source.startswith("assumed"):
                found.source = "who sends to whom"
            return
    if found.ring:
        found.pipeline, found.stage = 1, dict.fromkeys(ranks, 0)
        return
    world = max(run.profile.world_size or 0, max(ranks, default=0) + 1)
    if found.pipeline and found.pipeline > 1 and world % found.pipeline == 0:
        share = world // found.pipeline
        found.stage = {rank: rank // share for rank in ranks}
        return
    if "pipeline" in found.role.values() and world_of(run) > len(ranks):
        found.stage = _reducing_together(found, ranks, exchanges)
        found.guessed = found.apart = True
        found.source = "ranks of pipelines of which others are absent; nothing tells which are of one stage"
        return
    if shaped := _shape(run, ranks):
        found.stage, found.guessed = shaped, True
        found.pipeline = max(shaped.values()) + 1
        if found.pipeline == len(ranks):
            found.chains = [tuple(ranks)]
        if found.source.startswith("assumed"):
            found.source = "bubbles and computation of neighbouring ranks"
        return
    if not exchanges and _hand_over(run):
        found.stage = {rank: place for place, rank in enumerate(ranks)}
        found.guessed = found.apart = True
        found.source = "ranks hand over to single others; nothing tells which are of one stage"
        return
    found.stage = dict.fromkeys(ranks, 0)


def _reducing_together(found: Partition, ranks: Sequence[int], exchanges: dict[int, Exchanges]) -> dict[int, int]:
    """A stage for each set of ranks that hold the same layers, for that alone is known where pipelines lack ranks."""
    shared = [found.groups[group] for group in weights_shared(found.groups, found.role, exchanges)]
    sets = joined([*shared, *((rank,) for rank in ranks)])
    at_hand = set(ranks)
    present = [part for each in sets if (part := [rank for rank in each if rank in at_hand])]
    return {rank: stage for stage, part in enumerate(present) for rank in part}


def _programs(
    found: Partition, ranks: Sequence[int], exchanges: dict[int, Exchanges], courses: Mapping[int, Course]
) -> dict[int, int]:
    """A number for each set of ranks that exchange weights, activations or tokens among themselves alone, where all of
    a set run as many kernels a step and no two sets do: they run different programs, and neither is late because it is
    the longer one. Empty where some rank is alone or its kernels are not told."""
    bound = [group for group, role in found.role.items() if role not in ("data", "tensor")]
    bound += weights_shared(found.groups, found.role, exchanges)
    sets = [
        sorted(set(part) & set(ranks)) for part in joined([*(found.groups[g] for g in bound), *((r,) for r in ranks)])
    ]
    calls = {rank: float(np.median(c.kernels)) for rank, c in courses.items() if c.complete and len(c.kernels)}
    if len(sets) < 2 or any(len(part) < 2 for part in sets if part) or not calls.keys() >= set(ranks):
        return {}
    counts = [{calls[rank] for rank in part} for part in sets if part]
    if any(len(each) > 1 for each in counts) or len(set().union(*counts)) < len(counts):
        return {}
    ordered = sorted(part for part in sets if part)
    return {rank: number for number, part in enumerate(ordered) for rank in part}


def _hand_over(run: Run) -> bool:
    """Whether kernels, or calls of the host, send to or receive from single ranks: then the ranks need not do the same
    work."""
    if any(one.hands_over for one in run.each(RECORDING).values()):
        return True
    chains = (course.chain for course in run.each(COURSE).values())
    return any(kind_of(name) in ("send", "receive") for chain in chains if chain for name in chain.name if name)


def _chains(found: Partition, exchanges: dict[int, Exchanges], at_hand: Set[int], world: int) -> list[tuple[int, ...]]:
    """Ranks that send to each other, in the order of their stages; empty where they make no pipelines of one length, or
    where ranks that reduce together would be of different stages."""
    pipelines = [tuple(found.groups[g]) for g, role in found.role.items() if role == "pipeline"]
    pipelines = [p for p in pipelines if len(set(p)) > 1]
    before = _senders(found, exchanges)
    chains = [_in_order(chain, pipelines, before) for chain in joined(pipelines)]
    bound = [found.groups[group] for group in weights_shared(found.groups, found.role, exchanges)]
    return next((each for each in (_continued(chains, at_hand, world), chains) if _divide(each, bound)), [])


def _divide(chains: list[tuple[int, ...]], bound: list[tuple[int, ...]]) -> bool:
    """Whether these are pipelines of one length, and ranks that are `bound` together are of one stage."""
    place = {rank: stage for chain in chains for stage, rank in enumerate(chain)}
    return len({len(chain) for chain in chains}) == 1 and all(
        len({place[rank] for rank in ranks if rank in place}) < 2 for ranks in bound
    )


def _continued(chains: list[tuple[int, ...]], at_hand: Set[int], world: int) -> list[tuple[int, ...]]:
    """The same with the stages beyond ends that were not recorded, whose own partners nobody tells: at the distance of
    the others, where so all ranks of the job have a place."""
    free, found = set(range(world)) - at_hand - {rank for chain in chains for rank in chain}, []
    for chain in chains:
        distance = chain[1] - chain[0]
        if any(b - a != distance for a, b in pairwise(chain)):
            return chains
        first, last = chain[0], chain[-1]
        while first not in at_hand and first - distance in free:
            first -= distance
        while last not in at_hand and last + distance in free:
            last += distance
        found.append(tuple(range(first, last + distance, distance)))
    whole = all(len(chain) * (chain[1] - chain[0]) == world for chain in found)
    return found if whole else chains


def _in_order(
    chain: tuple[int, ...], pipelines: list[tuple[int, ...]], before: set[tuple[int, int]]
) -> tuple[int, ...]:
    """The ranks of one pipeline by stage: along its pairs, from the end that sends first. Ranks of one communicator,
    and of a ring (which interleaved stages close), are in the order of their numbers."""
    inside = set(chain)
    pairs = {tuple(sorted(set(p))) for p in pipelines if len(set(p)) == 2 and inside.issuperset(p)}
    beside = {rank: sorted({r for pair in pairs if rank in pair for r in pair} - {rank}) for rank in chain}
    ends = [rank for rank in chain if len(beside[rank]) == 1]
    if len(pairs) != len(chain) - 1 or len(ends) != 2:
        return chain
    path = [ends[0]]
    while len(path) < len(chain):
        path.append(next(r for r in beside[path[-1]] if r not in path))
    onward = sum(((a, b) in before) - ((b, a) in before) for a, b in pairwise(path))
    return tuple(path if onward >= 0 else path[::-1])


def _senders(found: Partition, exchanges: dict[int, Exchanges]) -> set[tuple[int, int]]:
    """(a, b): of this pair a sends first in a step, so its stage is before that of b."""
    first: dict[tuple[int, int], tuple[int, str]] = {}
    for rank, ex in exchanges.items():
        kinds = ex.kinds()
        directed = np.isin(kinds, ("send", "receive"))
        for index in np.unique(ex.group[directed]) if directed.any() else ():
            members = set(found.groups.get(ex.groups[index], ()))
            mine = np.flatnonzero(directed & (ex.group == index) & (ex.step == ex.step.min()))
            if len(members) != 2 or rank not in members or not len(mine):
                continue
            at = mine[np.argmin(ex.start_ns[mine])]
            other = (members - {rank}).pop()
            entry = (int(ex.start_ns[at]), str(kinds[at]))
            first[rank, other] = min(first.get((rank, other), entry), entry)
    return {pair if kind == "send" else pair[::-1] for pair, (_, kind) in first.items()}


def _shape(run: Run, ranks: Sequence[int]) -> dict[int, int] | None:
    """Contiguous equal blocks of ranks, where some ranks report a bubble: the blocks that are most alike inside. One
    odd rank makes no block of its own: a block's spread is that of its middle rank."""
    times = steady(run)
    if len(times) < 2 or set(times) != set(ranks) or list(ranks) != list(range(len(ranks))):
        return None
    if not any(t.share("bubble") for t in times.values()):
        return None
    shares = [t.share("computing") for t in times.values()]
    lengths = np.array([float(np.median(t.time)) for t in times.values()])
    computing = np.array([np.nan if share is None else share for share in shares]) * lengths
    bubble = np.array([t.share("bubble") or 0.0 for t in times.values()]) * lengths
    if not np.isfinite(computing).all():
        return None
    best, best_cost = None, np.inf
    for stages in range(2, len(ranks) + 1):
        if len(ranks) % stages:
            continue
        blocks = np.stack([computing, bubble]).reshape(2, stages, -1)
        off = np.abs(blocks - np.median(blocks, axis=2, keepdims=True))
        inside = float(np.median(off, axis=2).sum()) * blocks.shape[2]
        cost = inside + stages * 0.02 * float(computing.sum())
        if cost < best_cost:
            best, best_cost = stages, cost
    share = len(ranks) // (best or 1)
    return {rank: rank // share for rank in ranks} if best else None


def _find_sizes(found: Partition, world: int) -> None:
    """Sizes that nobody told: from the groups' roles, the rest by division."""
    sizes: dict[str, int] = defaultdict(lambda: 1)
    for group, role in found.role.items():
        sizes[role] = max(sizes[role], len(found.groups.get(group, ())))
    known = bool(found.role)
    found.pipeline = found.pipeline or (len(set(found.stage.values())) or 1)
    if known and found.source.startswith("assumed"):
        found.source = "communication groups"
    if found.tensor is None and known:
        found.tensor = sizes["tensor"]
    if found.expert is None and sizes["expert"] > 1:
        found.expert = sizes["expert"]
    if found.data is None:
        rings = joined(found.groups[group] for group, role in found.role.items() if role == "context")
        ring = max((len(ranks) for ranks in rings), default=1)
        rest = world // max((found.tensor or 1) * found.pipeline * ring, 1)
        found.data = max(rest, 1)


KINDS = (
    kind("parallelism.data", "count", "run", "data-parallel size"),
    kind("parallelism.tensor", "count", "run", "tensor-parallel (operator sharding) size"),
    kind("parallelism.pipeline", "count", "run", "pipeline stages"),
    kind("parallelism.expert", "count", "run", "expert-parallel size"),
    kind(
        "parallelism.ring",
        "bool",
        "run",
        "ranks hand on parts of a sequence or the edges of a grid: those that receive are no stages",
    ),
    kind("parallelism.source", "text", "run", "where the sizes were read"),
    kind("parallelism.is_told", "bool", "run", "the sizes were read somewhere, neither guessed nor assumed"),
    kind("parallelism.strategy", "text", "run", "pipeline, model, data or single: which cluster metrics apply (S32)"),
    kind("rank.stage", "number", "rank", "pipeline stage of the rank, from 0"),
    kind("rank.peer_group", "text", "rank", "ranks with the same word do the same work and may be compared"),
    kind("rank.peer_count", "count", "rank", "other ranks at hand in the same peer group"),
    kind("rank.host", "text", "rank", "the host the rank ran on"),
)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The partition as facts."""
    del facts
    found = partition(run)
    yield from fact("parallelism.data", RUN, found.data)
    yield from fact("parallelism.tensor", RUN, found.tensor)
    yield from fact("parallelism.pipeline", RUN, found.pipeline)
    yield from fact("parallelism.expert", RUN, found.expert)
    yield from fact("parallelism.ring", RUN, bool(found.ring))
    yield from fact("parallelism.source", RUN, found.source)
    yield from fact("parallelism.is_told", RUN, found.is_told)
    yield from fact("parallelism.strategy", RUN, found.strategy)
    peers = found.peers()
    for rank, stage in sorted(found.stage.items()):
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("rank.stage", subject, stage)
        mates = peers[found.kin[rank]]
        word = f"ranks {rank_list(tuple(mates))}" if found.program else f"stage {stage}"
        yield from fact("rank.peer_group", subject, word)
        yield from fact("rank.peer_count", subject, len(mates) - 1)
        yield from fact("rank.host", subject, found.host.get(rank))


FAMILIES = (Family("parallelism", KINDS, measure, uses=(EXCHANGES, STEPS, COURSE, OPERATORS)),)
