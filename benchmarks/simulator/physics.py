"""The course of a training run: hosts launch, kernels run in stream order, a collective starts when its last member
arrives, a link's time is latency + size / bandwidth. Times are microseconds from the start of the run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from benchmarks.simulator.network import bandwidth, collective_links, groups_of, start_ups, transport
from benchmarks.simulator.scenario import IN_TURN, PARTIAL, Scenario

LATENCY_US = {"HCCS": 12.0, "RDMA": 28.0}
STALL_CHANCE = 0.3
"""How often a fault that wanders hits a rank in a step."""
ROWS = 4096
"""Rows of a kernel's tensors where nothing makes them more."""
OPTIMIZER = ("ApplyAdamW", "AI_VECTOR_CORE")

FORWARD = (
    ("LayerNorm", "AI_VECTOR_CORE", 0.25), ("MatMulV2", "AI_CORE", 1.6), ("FlashAttentionScore", "MIX_AIC", 1.5),
    ("MatMulV2", "AI_CORE", 0.9), ("Add", "AI_VECTOR_CORE", 0.2), ("MatMulV2", "AI_CORE", 1.8),
    ("GeluV2", "AI_VECTOR_CORE", 0.35), ("MatMulV2", "AI_CORE", 1.8),
)  # fmt: skip
"""Type, core, time in units of `kernel_us`: one transformer layer, in order."""

BACKWARD = (
    ("MatMulV2", "AI_CORE", 3.6), ("GeluGrad", "AI_VECTOR_CORE", 0.5), ("MatMulV2", "AI_CORE", 3.6),
    ("Add", "AI_VECTOR_CORE", 0.3), ("MatMulV2", "AI_CORE", 1.8), ("FlashAttentionScoreGrad", "MIX_AIC", 3.0),
    ("MatMulV2", "AI_CORE", 3.2), ("LayerNormGrad", "AI_VECTOR_CORE", 0.5),
)  # fmt: skip

A_LAYER = sum(units for _, _, units in (*FORWARD, *BACKWARD))
"""One layer's time, forward and backward."""
BESIDE = {"lookups": ("GatherV2", "AI_VECTOR_CORE"), "head": ("BatchMatMulV2", "AI_CORE")}
"""What a stage alone may run beside its layers."""


@dataclass(eq=False, slots=True)
class Op:
    """One operation on one stream of one rank. A collective has one Op per member and a shared `joint`."""

    rank: int
    step: int
    stream: str
    name: str
    type: str
    core: str
    work_us: float
    deps: tuple[Op, ...] = ()
    joint: Joint | None = None
    launch: float = 0.0
    launched: float = 0.0
    start: float = 0.0
    end: float = math.nan
    waiters: list[tuple[int, str]] = field(default_factory=list)
    rows: int = ROWS
    """Rows of its tensors: an expert with more tokens has more of them."""


@dataclass(eq=False, slots=True)
class Joint:
    """A collective or a point-to-point transfer: members arrive, the last one starts it."""

    kind: str
    group: str
    members: tuple[int, ...]
    size: float
    ops: dict[int, Op] = field(default_factory=dict)
    begin: float = math.nan
    links: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """(source, destination) -> (bytes, us)."""


@dataclass
class StepSpan:
    """One rank's step on its host's clock."""

    begin: float
    end: float
    data_wait: float


@dataclass
class Simulation:
    scenario: Scenario
    ops: list[list[list[Op]]]
    """ops[step][rank] in launch order."""
    spans: list[list[StepSpan]]
    groups: dict[str, tuple[int, ...]]
    clock_offset: list[float]

    @property
    def step_us(self) -> float:
        """Median step time over steady steps, of the slowest rank's course."""
        ends = [max(span.end for span in spans) for spans in self.spans]
        first = min(span.begin for span in self.spans[0])
        lengths = np.diff([first, *ends])
        return float(np.median(lengths[1:] if len(lengths) > 2 else lengths))

    @property
    def mean_us(self) -> float:
        """Mean step time of the run."""
        first = min(span.begin for span in self.spans[0])
        return (max(span.end for span in self.spans[-1]) - first) / len(self.spans)


class _Course:
    """Builds and runs one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.s = scenario
        self.rng = np.random.default_rng(scenario.seed)
        self.groups = groups_of(scenario)
        world = scenario.world_size
        self.speed = np.exp(self.rng.normal(0, 0.004 * scenario.noise, world))
        for fault in scenario.faults:
            if fault.kind == "slow_compute":
                self.speed[fault.where] *= 1 + fault.size
            elif fault.kind == "slow_node_compute":
                for rank in range(world):
                    if scenario.host(rank) == fault.where:
                        self.speed[rank] *= 1 + fault.size
        self.layers = [scenario.layers] * scenario.pipeline
        if fault_ := scenario.fault("stage_imbalance"):
            assert isinstance(fault_.where, int)
            # one layer more than the others is as even as whole layers come: no fault
            self.layers[fault_.where] = max(round(scenario.layers * (1 + fault_.size)), scenario.layers + 2)
        self.again = [0] * scenario.pipeline
        for fault in scenario.faults:
            if fault.kind == "recompute" and isinstance(fault.where, int):
                self.again[fault.where] = round(fault.size * self.layers[fault.where])
        self.beside = [fault for fault in scenario.faults if fault.kind in BESIDE]
        self.numbers: dict[tuple[str, int], int] = {}

    # ---- what one rank does in one step -------------------------------------------------------
    def program(self, rank: int, step: int, joints: dict[str, Joint]) -> list[Op]:
        s = self.s
        stage, data, tensor = s.place(rank)
        ops: list[Op] = []
        last: Op | None = None
        gradients: list[Op] = []
        counter: dict[str, int] = defaultdict(int)

        tokens = s.tokens(rank)
        left = 1 + sum(fault.size for fault in s.faults if fault.kind == "masked" and fault.where == rank)

        def kernel(name: str, type_: str, core: str, units: float, deps: tuple[Op, ...] = (), more: float = 1.0) -> Op:
            units *= left if type_.startswith("FlashAttention") else 1.0
            op = Op(rank, step, "compute", name, type_, core, units * more * s.kernel_us, deps, rows=round(ROWS * more))
            ops.append(op)
            return op

        def joint(
            kind: str, group: str, members: tuple[int, ...], size: float, stream: str, deps: tuple[Op, ...]
        ) -> Op:
            key = f"{group}/{kind}/{members}/{counter[f'{group}/{kind}/{members}']}"
            counter[f"{group}/{kind}/{members}"] += 1
            if key not in joints:
                joints[key] = Joint(kind, group, members, size)
            shared = joints[key]
            name = f"hcom_{kind}_"
            op = Op(rank, step, stream, self.label(name, group, rank), name, "COMMUNICATION", 0.0, deps, shared)
            shared.ops[rank] = op
            ops.append(op)
            return op

        behind: list[Op] = []
        """The last kernel before each layer that was passed."""
        peers = f"dp-{stage}-{tensor}"

        def exchange(kind: str, stream: str, size: float, deps: tuple[Op, ...]) -> Op:
            return joint(kind, peers, self.groups[peers], size, stream, deps)

        def gather() -> tuple[Op, ...]:
            """The layer's parameters are fetched: beside the layer before, or only when that has ended."""
            ahead = 1 if s.fault("no_prefetch") else 2
            size = s.gradient_mb_per_layer * 1e6
            return (exchange("allGather", "gather", size, tuple(behind[-ahead:][:1])),)

        def pass_layers(forward: bool, chunk: int, micro: int, arrived: Op | None) -> None:
            nonlocal last
            count = self.layers[stage]
            group = f"tp-{stage}-{data}"
            depends = (arrived,) if arrived is not None else ()
            layers: Sequence[int] = range(count * chunk // s.virtual, count * (chunk + 1) // s.virtual)
            for fault in self.beside:
                if fault.where == stage and forward:
                    type_, core = BESIDE[fault.kind]
                    last = kernel(f"Default/{fault.kind}/{type_}-op1", type_, core, fault.size * A_LAYER, depends)
                    depends = ()
            for layer in layers if forward else reversed(layers):
                where = f"Default/network/layers.{layer}" if forward else f"Gradients/Default/network/layers.{layer}"
                if s.sharded:
                    behind.extend([last] if last is not None else [])
                    depends += gather()
                if not forward and layer < self.again[stage]:
                    for index, (type_, core, units) in enumerate(FORWARD):
                        name = f"Default/network/layers.{layer}/{type_}-op{layer * 16 + index}"
                        last = kernel(name, type_, core, units / s.tensor, depends)
                        depends = ()
                for index, (type_, core, units) in enumerate(FORWARD if forward else BACKWARD):
                    expert = s.experts and (index > 4 if forward else index < 3)
                    if s.experts and index in ((5, 8) if forward else (0, 3)):
                        last = exchange(
                            "alltoAll", "experts", s.activation_mb * 1e6, (*depends, *((last,) if last else ()))
                        )
                        depends = (last,)
                    name = f"{where}/{type_}-op{layer * 16 + index}"
                    last = kernel(name, type_, core, units / s.tensor, depends, tokens if expert else 1.0)
                    depends = ()
                    if s.tensor > 1 and index in (3, 7):
                        last = joint("allReduce", group, self.groups[group], s.activation_mb * 1e6, "tp", (last,))
                        depends = (last,)
                        if s.fault("redistribution"):
                            for extra in ("allGather", "alltoAll"):
                                last = joint(extra, group, self.groups[group], s.activation_mb * 6e6, "tp", (last,))
                            depends = (last,)
                if not forward and (s.reduced_each_pass or micro == s.micro_batches - 1):
                    assert last is not None
                    gradients.append(last)
                    self.reduce_gradients(stage, tensor, gradients, layer, count, joint)

        def transfer(kind: str, other: int, group: str, deps: tuple[Op, ...], onward: bool) -> Op:
            pair = (rank, other) if kind == "send" else (other, rank)
            way = "f" if onward else "b"
            stream, key = f"{kind}-{way}", f"p2p{way}"
            return self.p2p(rank, step, kind, pair, group, stream, key, deps, joints, counter, ops)

        def neighbour(onward: bool, chunk: int) -> int | None:
            """Who has the layers behind this chunk's, or before; behind the last stage the first goes on."""
            place = chunk * s.pipeline + stage + (1 if onward else -1)
            inside = s.pipeline > 1 and 0 <= place < s.pipeline * s.virtual
            return s.rank(place % s.pipeline, data, tensor) if inside else None

        def between(other: int) -> str:
            name = f"pp-{data}-{tensor}"
            return f"{name}-{min(stage, s.place(other)[0])}" if s.pairwise else name

        for forward, chunk, micro in schedule(stage, s.pipeline, s.micro_batches, s.virtual, s.in_flight):
            source, target = neighbour(not forward, chunk), neighbour(forward, chunk)
            arrived = None
            if source is not None:
                asked = (last,) if last is not None and not s.received_ahead else ()
                arrived = transfer("receive", source, between(source), asked, forward)
            pass_layers(forward, chunk, micro, arrived)
            assert last is not None
            if target is not None:
                transfer("send", target, between(target), (last,), forward)
        awaited = tuple(op for op in ops if op.stream == "dp")
        depends = awaited[-1:] if awaited else ()
        for layer in range(self.layers[stage]):
            type_, core = OPTIMIZER
            for part in range(2):
                name = f"Default/optimizer/layers.{layer}/{type_}-op{layer * 2 + part}"
                kernel(name, type_, core, 0.25 / s.tensor, depends)
                depends = ()
        return ops

    def reduce_gradients(self, stage: int, tensor: int, ready: list[Op], layer: int, count: int, joint) -> None:  # type: ignore[no-untyped-def]
        """Gradients of one layer are ready: launch the AllReduce whose bucket they complete."""
        s = self.s
        if s.data == 1:
            return
        group = f"dp-{stage}-{tensor}"
        members = self.groups[group]
        size = s.gradient_mb_per_layer * 1e6 / s.tensor
        if s.fault("small_packets"):
            parts = 96
            for _ in range(parts):
                joint("allReduce", group, members, size / parts, "dp", (ready[-1],))
            return
        buckets = 1 if s.fault("unsplit_allreduce") else min(s.buckets, count)
        done = count - layer
        bounds = list(s.split) or [round(count * (i + 1) / buckets) for i in range(buckets)]
        if s.sharded:
            joint("reduceScatter", group, members, size, "dp", (ready[-1],))
            return
        for begun, end in pairwise([0, *bounds]):
            if done == (count if s.reduced_behind else end):
                joint("allReduce", group, members, size * (end - begun), "dp", (ready[-1],))

    def p2p(self, rank, step, kind, pair, group, stream, key, deps, joints, counter, ops) -> Op:  # type: ignore[no-untyped-def]
        s = self.s
        label = f"{group}/{key}/{pair}"
        number = counter[label]
        counter[label] += 1
        full = f"{label}/{number}"
        if full not in joints:
            joints[full] = Joint("send", group, pair, s.activation_mb * 1e6)
        shared = joints[full]
        type_ = "hcom_batchSendRecv_" if s.batch_send_receive else f"hcom_{kind}_"
        op = Op(rank, step, stream, self.label(type_, group, rank), type_, "COMMUNICATION", 0.0, deps, shared)
        shared.ops[rank] = op
        ops.append(op)
        return op

    def label(self, kind: str, group: str, rank: int) -> str:
        """hcom_send__586_3_1: every rank counts the operations of a communicator by itself."""
        number = self.numbers[group, rank] = self.numbers.get((group, rank), -1) + 1
        return f"{kind}_{group_key(group)[-3:]}_{number}_1"

    # ---- the run --------------------------------------------------------------------------------
    def run(self) -> Simulation:
        s, rng, world = self.s, self.rng, self.s.world_size
        begin = rng.uniform(0, 200, world)
        device_free: list[dict[str, float]] = [defaultdict(float) for _ in range(world)]
        batch_ready = begin.copy()
        data_us = np.full(world, 0.0)
        stalls = self.stalls()
        partial = self.partial()
        all_ops: list[list[list[Op]]] = []
        spans: list[list[StepSpan]] = []
        previous_end = begin.copy()
        slow_hosts = [s.size_at("slow_host", rank) for rank in range(world)]
        slow_loaders = {r: size for r in range(world) if (size := s.size_at("slow_data", r)) is not None}
        if slow_loaders:
            usual = self.healthy_step()
            for rank, size in slow_loaders.items():
                data_us[rank] = (1 + size) * usual
        for index in range(-s.run_up, s.steps):
            step = s.first_step + index
            joints: dict[str, Joint] = {}
            programs = [self.program(rank, step, joints) for rank in range(world)]
            step_spans, waits = [], []
            for rank, ops in enumerate(programs):
                step_speed = self.speed[rank] * math.exp(rng.normal(0, 0.004 * s.noise))
                factors = np.exp(rng.normal(0, 0.03 * s.noise, len(ops)))
                hiccup = rng.random(len(ops)) < 2e-4 * s.noise
                factors[hiccup] *= 2.0
                launch_cost = s.launch_us * np.exp(rng.normal(0, 0.25, len(ops)))
                if (size := slow_hosts[rank]) is not None:
                    busy = sum(op.work_us for op in ops)
                    launch_cost += (1 + size) * busy / len(ops)
                if s.warm_up and index == 0:
                    launch_cost *= 12
                step_speed *= 1 + stalls["uneven_work"][index + s.run_up, rank]
                launch_cost[len(ops) // 3] += stalls["host_stalls"][index + s.run_up, rank]
                noise = float(rng.normal(0, 0.1))
                ready = batch_ready[rank] + data_us[rank] * max(0.2, 1 + 0.05 * s.noise * noise)
                host = float(begin[rank])
                begun = index > -s.run_up
                wait = max(0.0, ready - host) if begun else 0.0
                wait += stalls["data_stalls"][index + s.run_up, rank]
                batch_ready[rank] = max(ready, host) if begun else host
                waits.append(wait)
                host += wait + 60.0 + float(rng.exponential(30.0 * s.noise))
                slower, loading, pause = partial[index + s.run_up][rank]
                step_speed, wait, host = step_speed * slower, wait + loading, host + loading + pause
                for op, factor, cost in zip(ops, factors, launch_cost, strict=True):
                    op.work_us *= step_speed * factor
                    op.launch = host
                    host += cost
                    op.launched = host
                if s.fetches_late:
                    ops[0].launch = float(begin[rank])
                    ops[0].launched = ops[0].launch + launch_cost[0]
                step_spans.append(StepSpan(float(begin[rank]), host, wait))
            self.execute(programs, device_free)
            for rank, ops in enumerate(programs):
                device_end = max(op.end for op in ops)
                host_end = step_spans[rank].end
                following = max(host_end, device_end if s.synchronous else previous_end[rank])
                if s.synchronous:
                    following += 20.0 + float(rng.exponential(20.0))
                previous_end[rank] = device_end
                step_spans[rank].end = following
                begin[rank] = following
            all_ops.append(programs)
            spans.append(step_spans)
        offsets = [float(x) for x in rng.normal(0, 3000, s.world_size)]
        by_host = [offsets[s.host(rank)] for rank in range(world)]
        return Simulation(s, all_ops[s.run_up :], spans[s.run_up :], self.groups, by_host)

    def stalls(self) -> dict[str, np.ndarray]:
        """Fault -> step by rank: what hits another rank each time, microseconds; for uneven work the share it adds."""
        s = self.s
        own = np.random.default_rng(s.seed + 1)
        found = {}
        for kind in IN_TURN:
            fault = s.fault(kind)
            hit = own.random((s.run_up + s.steps, s.world_size)) < STALL_CHANCE
            size = fault.size * (1.0 if kind == "uneven_work" else self.healthy_step()) if fault else 0.0
            found[kind] = hit * size
        return found

    def partial(self) -> list[list[tuple[float, float, float]]]:
        """Per step and rank what the faults of a part of the steps do: (factor on kernels, wait for the loader, pause
        of the host before the first launch)."""
        s = self.s
        usual = self.healthy_step() if any(f.kind in PARTIAL for f in s.faults) else 0.0

        def at(index: int, rank: int) -> tuple[float, float, float]:
            slower, loading, pause = 1.0, 0.0, 0.0
            for fault in s.faults:
                slow = {"failing_card": index >= s.steps // 2 + 1, "slow_at_times": index % 4 == 2}
                if slow.get(fault.kind) and rank == fault.where:
                    slower *= 1 + fault.size
                elif fault.kind == "pauses" and rank == fault.where and index % 3 == 1:
                    pause += (1 + fault.size) * usual
                elif fault.kind == "checkpoints" and index % 5 == 3:
                    pause += (2 + fault.size) * usual
                elif fault.kind == "slow_storage":
                    loading += fault.size * usual
            return slower, loading, pause

        return [[at(index, rank) for rank in range(s.world_size)] for index in range(-s.run_up, s.steps)]

    def healthy_step(self) -> float:
        """Step time without faults: what one batch lasts."""
        return simulate(replace(self.s, faults=(), steps=3, run_up=0, warm_up=False, seed=0)).step_us

    def execute(self, programs: list[list[Op]], free: list[dict[str, float]]) -> None:
        """Runs one step: every stream in order, an operation after its launch and its dependencies."""
        queues: dict[tuple[int, str], list[Op]] = defaultdict(list)
        for ops in programs:
            for op in ops:
                queues[op.rank, op.stream].append(op)
        position = dict.fromkeys(queues, 0)
        ready = list(queues)
        while ready:
            key = ready.pop()
            queue = queues[key]
            rank, stream = key
            while position[key] < len(queue):
                op = queue[position[key]]
                blocked = next((d for d in op.deps if d.end != d.end), None)
                if blocked is not None:
                    blocked.waiters.append(key)
                    break
                begin = max([op.launched + 5.0, free[rank][stream], *(d.end + 1.0 for d in op.deps)])
                if op.joint is None:
                    op.start, op.end = begin, begin + op.work_us
                    free[rank][stream] = op.end + 0.8
                    position[key] += 1
                    self.wake(op, ready)
                    continue
                if op.start == 0.0:
                    op.start = begin
                    self.arrive(op.joint, free, position, ready)
                if op.end != op.end:
                    break
        unfinished = [op for ops in programs for op in ops if op.end != op.end]
        if unfinished:
            raise RuntimeError(f"deadlock at {unfinished[0].name} of rank {unfinished[0].rank}")

    def wake(self, op: Op, ready: list[tuple[int, str]]) -> None:
        ready.extend(op.waiters)
        op.waiters.clear()

    def arrive(
        self,
        joint: Joint,
        free: list[dict[str, float]],
        position: dict[tuple[int, str], int],
        ready: list[tuple[int, str]],
    ) -> None:
        """When the last member is there, the transfer runs and ends for all."""
        if len(joint.ops) < len(joint.members) or any(op.start == 0.0 for op in joint.ops.values()):
            return
        joint.begin = max(op.start for op in joint.ops.values())
        s = self.s
        if joint.kind == "send":
            sizes = {joint.members: joint.size}
        else:
            sizes = collective_links(s, joint.kind, joint.members, joint.size)
        noise = np.exp(self.rng.normal(0, 0.03 * s.noise, len(sizes)))
        longest = 0.0
        spared = [fault for fault in s.faults if fault.often < 1 and self.rng.random() >= fault.often]
        for (pair, size), factor in zip(sizes.items(), noise, strict=True):
            a, b = pair
            begun = LATENCY_US[transport(s, a, b)] * 0.4 * start_ups(s, joint.kind, joint.members)
            lasts = begun + size / bandwidth(s, a, b, spared) * factor
            joint.links[a, b] = (size, lasts)
            longest = max(longest, lasts)
        steps = 1 if joint.kind == "send" else 1 + math.log2(len(joint.members))
        latency = max(LATENCY_US[transport(s, a, b)] for a, b in sizes) * steps
        done = joint.begin + latency * float(np.exp(self.rng.normal(0, 0.1 * s.noise))) + longest
        for rank, op in joint.ops.items():
            op.end = done + float(self.rng.exponential(1.0))
            free[rank][op.stream] = op.end + 0.8
            position[rank, op.stream] += 1
            ready.append((rank, op.stream))
            self.wake(op, ready)


def schedule(
    stage: int, stages: int, micro: int, chunks: int = 1, in_flight: int | None = None
) -> list[tuple[bool, int, int]]:
    """One forward, one backward (1F1B): (is forward, chunk of the stage's layers, micro-batch) in order. With several
    chunks they take turns, as many micro-batches of each as there are stages (Megatron's interleaved schedule).
    The first stage takes in `in_flight` micro-batches before it waits for a gradient: as many as stages unless told."""

    def unit(number: int, forward: bool) -> tuple[bool, int, int]:
        turn, place = divmod(number, stages * chunks)
        chunk = place // stages
        return forward, chunk if forward else chunks - 1 - chunk, turn * stages + place % stages

    whole = micro * chunks
    ahead = max((in_flight or stages) - 1 - stage, 0)
    warm = min(ahead if chunks == 1 else 2 * (stages - 1 - stage) + (chunks - 1) * stages, whole)
    if chunks == 1:
        each = [[(forward, 0, i) for i in range(micro)] for forward in (True, False)]
    else:
        each = [[unit(i, forward) for i in range(whole)] for forward in (True, False)]
    order = each[0][:warm]
    for i in range(whole - warm):
        order += [each[0][warm + i], each[1][i]]
    return order + each[1][whole - warm :]


def group_key(name: str) -> str:
    """The profiler's hash of a group's name: two 32-bit polynomial hashes (29, 131) side by side."""
    low = high = 0
    for letter in name:
        high = (high * 29 + ord(letter)) & 0xFFFFFFFF
        low = (low * 131 + ord(letter)) & 0xFFFFFFFF
    return str((high << 32) | low)


def simulate(scenario: Scenario) -> Simulation:
    """The whole run, deterministic by `scenario.seed`."""
    return _Course(scenario).run()
