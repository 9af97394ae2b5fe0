"""What is simulated: the model, its partition, the machine, the noise, the faults, and the answer expected for them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

FAULTS = (
    "slow_compute", "slow_data", "slow_host", "slow_link", "slow_card", "slow_sending", "slow_node_network",
    "slow_node_compute", "slow_node_data", "slow_node_host", "stage_imbalance", "unsplit_allreduce", "small_packets",
    "redistribution", "data_stalls", "uneven_work", "host_stalls", "failing_card", "pauses", "checkpoints",
    "slow_storage",
)  # fmt: skip
SHAPES = ("interleaved", "sharded", "experts")
"""Trainings of another shape, named before a fault and a slash: stages that hold several chunks of layers, parameters
gathered for each layer, experts between which tokens are exchanged."""
NETWORK = {"slow_link", "slow_card", "slow_sending", "slow_node_network"}

PARTIAL = ("failing_card", "pauses", "checkpoints", "slow_storage")
"""Faults of a part of the steps, or of all ranks at once; their cost is that of the mean step."""

RUN_UP = 6
"""Steps after which a host that launches a quarter too slowly has used up the step it was ahead."""

IN_TURN = ("data_stalls", "uneven_work", "host_stalls")
"""Faults that hit another rank in each step."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. `where` is a rank, a host, a stage or a pair of ranks; `size` is how much.

    slow_compute, slow_node_compute: kernels take 1 + size as long. slow_data, slow_node_data: a batch takes (1 + size)
    steps to prepare. slow_host, slow_node_host: launching a step takes (1 + size) times its computation. slow_link,
    slow_card, slow_sending (links that leave the rank), slow_node_network (that leave the host): bandwidth divided by
    1 + size. stage_imbalance: the stage has 1 + size the layers. unsplit_allreduce, small_packets, redistribution:
    present or not. data_stalls, uneven_work, host_stalls: in three of ten steps, each rank at random, the loader stalls
    for `size` steps, kernels take 1 + size as long, or the host pauses once for `size` steps. failing_card:
    kernels take 1 + size as long from the middle of the run on. pauses: the rank's host pauses for 1 + size steps
    before every third step; checkpoints: all do for 2 + size before every fifth. slow_storage: every rank waits for
    data for `size` steps before each step. no_prefetch: parameters are gathered only when they are needed. hot_expert:
    the rank's experts get 1 + size as many tokens as they should, which the others of its group lack.
    """

    kind: str
    where: int | tuple[int, int] = 0
    size: float = 0.5


@dataclass(frozen=True)
class Scenario:
    data: int = 4
    tensor: int = 1
    pipeline: int = 1
    ranks_per_host: int = 8
    layers: int = 4
    """Layers per stage."""
    micro_batches: int = 1
    kernel_us: float = 300.0
    """Mean device time of a forward kernel."""
    launch_us: float = 12.0
    """Host time to launch one operation."""
    gradient_mb_per_layer: float = 12.0
    activation_mb: float = 8.0
    buckets: int = 4
    split: tuple[int, ...] = ()
    """Layers, counted from the last, behind which gradients are reduced; empty: as many as `buckets`, of one size."""
    steps: int = 6
    first_step: int = 10
    run_up: int = 0
    """Steps before the first recorded one: a host that runs ahead and is slow falls behind over several."""
    noise: float = 1.0
    """1 is a quiet cluster, 2 twice that."""
    synchronous: bool = True
    """The host waits for the device at the end of each step (prints the loss); else it runs ahead."""
    warm_up: bool = False
    """The first recorded step compiles and opens connections."""
    reduced_each_pass: bool = False
    """Gradients are reduced behind every micro-batch's backward pass, not behind the last one's only (no_sync is
    missing)."""
    in_flight: int | None = None
    """Micro-batches that the first stage takes in before it waits for a gradient; None: as many as stages."""
    virtual: int = 1
    """Chunks of layers that a stage holds; more than one: the interleaved schedule."""
    sharded: bool = False
    """Parameters are spread over the data-parallel ranks and gathered layer by layer (ZeRO 3, FSDP)."""
    experts: bool = False
    """Each layer's second half is experts: tokens go to them and come back through the data-parallel group."""
    hccs_gb_s: float = 18.0
    rdma_gb_s: float = 20.0
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    framework: str = "mindspore"
    waiting: str = "wait"
    """Where the profiler books waiting inside a collective: wait, idle or mixed."""
    batch_send_receive: bool = False
    chunked: bool = False
    """A ring passes on its members' parts in turn: each is a packet with a start-up of its own."""
    pairwise: bool = False
    """One communicator for each pair of neighbouring stages, as torch.distributed opens them, instead of one for all
    stages of a pipeline."""
    bubble_reported: bool = True
    """False: the Bubble and Stage columns stay 0, as with newer CANN."""
    metadata: bool = True
    """False: no profiler_metadata.json, groups must be inferred."""
    local_copies: bool = True
    """The matrix lists a member's link to itself."""
    level: int = 1
    kernels: bool = True
    missing_ranks: tuple[int, ...] = ()
    host_names: tuple[str, ...] = field(default=())

    @property
    def world_size(self) -> int:
        return self.data * self.tensor * self.pipeline

    def place(self, rank: int) -> tuple[int, int, int]:
        """(stage, data index, tensor index): tensor runs fastest, stages are contiguous."""
        per_stage = self.data * self.tensor
        return rank // per_stage, rank % per_stage // self.tensor, rank % self.tensor

    def rank(self, stage: int, data: int, tensor: int) -> int:
        return (stage * self.data + data) * self.tensor + tensor

    def host(self, rank: int) -> int:
        return rank // self.ranks_per_host

    def host_name(self, rank: int) -> str:
        index = self.host(rank)
        return self.host_names[index] if index < len(self.host_names) else f"node{index}"

    def size_at(self, kind: str, rank: int) -> float | None:
        """How much is wrong with this rank, or with all ranks of its host (`slow_node_…`); None where nothing is."""
        places = {kind: rank, kind.replace("slow_", "slow_node_"): self.host(rank)}
        return next((f.size for f in self.faults if f.kind in places and f.where == places[f.kind]), None)

    def tokens(self, rank: int) -> float:
        """Tokens that the rank's experts get, against an even share."""
        hot = self.fault("hot_expert")
        if hot is None or not isinstance(hot.where, int):
            return 1.0
        mine, its = self.place(rank), self.place(hot.where)
        if (mine[0], mine[2]) != (its[0], its[2]):
            return 1.0
        return 1 + hot.size if rank == hot.where else 1 - hot.size / (self.data - 1)

    def fault(self, kind: str) -> Fault | None:
        return next((f for f in self.faults if f.kind == kind), None)


@dataclass(frozen=True)
class Truth:
    """An answer that counts as right: the verdict, and any of these subjects ("" where any will do)."""

    verdict: str
    subjects: tuple[str, ...]


def truths(scenario: Scenario) -> list[Truth]:
    """The root causes a perfect advisor names for this scenario, one a fault."""
    return [_truth(scenario, fault) for fault in scenario.faults]


def _truth(scenario: Scenario, fault: Fault) -> Truth:
    where = fault.where
    if fault.kind == "slow_link":
        assert isinstance(where, tuple)
        return Truth("slow-link", (f"{where[0]}-{where[1]}", f"{where[1]}-{where[0]}"))
    if fault.kind == "slow_sending":
        receivers = [b for a, b in used_links(scenario) if a == where]
        return Truth("slow-link", (f"{where}-{receivers[0]}" if len(receivers) == 1 else f"{where}-*",))
    assert isinstance(where, int)
    members = [r for r in range(scenario.world_size) if scenario.host(r) == where]
    host = (scenario.host_name(members[0]) if members else "", f"host-of-{members[0] if members else 0}")
    table = {
        "slow_compute": ("slow-compute-rank", (str(where),)),
        "slow_data": ("data-starved-rank", (str(where),)),
        "slow_host": ("host-dispatch-bound", (str(where),)),
        "slow_card": ("slow-link", (f"{where}-*",)),
        "slow_node_network": ("slow-link", (*host, *(f"{r}-*" for r in members))),
        "slow_node_compute": ("slow-compute-rank", (*host, *(str(r) for r in members))),
        "slow_node_data": ("data-starved-rank", (*host, *(str(r) for r in members))),
        "slow_node_host": ("host-dispatch-bound", (*host, *(str(r) for r in members))),
        "stage_imbalance": ("stage-imbalance", (str(where),)),
        "unsplit_allreduce": ("allreduce-not-overlapped", ()),
        "small_packets": ("small-packets", ()),
        "redistribution": ("sharding-redistribution", ()),
        "data_stalls": ("data-processing-bottleneck", ("run",)),
        "uneven_work": ("step-jitter", ("run",)),
        "host_stalls": ("host-dispatch-bound", ("run",)),
        "failing_card": ("slow-compute-rank", (str(where),)),
        "pauses": ("step-jitter", ("run",)),
        "checkpoints": ("step-jitter", ("run",)),
        "slow_storage": ("data-processing-bottleneck", ("run",)),
        "no_prefetch": ("exposed-communication", ("run",)),
        "hot_expert": ("slow-compute-rank", (str(where),)),
    }
    verdict, subjects = table[fault.kind]
    return Truth(verdict, tuple(subjects))


def random_scenario(kind: str, seed: int, noise: float = 1.0) -> Scenario:
    """A scenario with this fault ("healthy", one of `FAULTS`, or two joined by "+"); the seed draws everything else."""
    draw = random.Random(f"{kind}/{seed}")
    shape, _, kind = kind.rpartition("/")
    kinds = [] if kind == "healthy" else kind.split("+")
    pipeline = 1
    tensor = 1
    if "stage_imbalance" in kinds:
        pipeline = draw.choice([2, 4])
    elif not {"unsplit_allreduce", "small_packets", "slow_node_data"} & set(kinds):
        pipeline = draw.choice([1, 1, 2, 2, 4])
    if "redistribution" in kinds:
        tensor = draw.choice([2, 4])
    elif not {"unsplit_allreduce", "small_packets"} & set(kinds):
        tensor = draw.choice([1, 1, 2])
    data = draw.choice([2, 4] if pipeline * tensor > 2 else [4, 8] if pipeline * tensor > 1 else [4, 8, 16])
    if not NETWORK & set(kinds) and pipeline * tensor > 1 and draw.random() < 0.2:
        data = 1
    turns = set(kinds) & set(IN_TURN)
    if turns:
        tensor, data = 1, max(data, 4)
    if (kind == "slow_compute" and data * tensor < 3) or data * tensor * pipeline <= len(kinds):
        data = 4
    world = data * tensor * pipeline
    hosts = draw.choice([8, 8, 4])
    if any(name.startswith("slow_node") for name in kinds):
        hosts = draw.choice([h for h in (2, 4, 8) if h * 4 <= world] or [max(world // 4, 1)])
    micro = 1 if pipeline == 1 else draw.choice([4, 6, 8])
    scenario = Scenario(
        data=data, tensor=tensor, pipeline=pipeline, ranks_per_host=hosts,
        layers=draw.choice([3, 4, 6]) if pipeline == 1 else 8 // pipeline - draw.choice([0, 1]),
        micro_batches=micro,
        kernel_us=draw.uniform(220, 600),
        launch_us=draw.uniform(6, 15),
        gradient_mb_per_layer=draw.uniform(2, 8),
        activation_mb=draw.uniform(1, 4),
        buckets=draw.choice([3, 4, 6]),
        steps=draw.choice([8, 10, 12] if turns else [3, 4, 5]),
        first_step=draw.choice([1, 5, 50]),
        noise=noise,
        synchronous=draw.random() < 0.7,
        warm_up=draw.random() < 0.3,
        framework=draw.choice(["mindspore", "mindspore", "pytorch"]),
        waiting=draw.choice(["wait", "idle", "mixed"]),
        batch_send_receive=draw.random() < 0.2,
        bubble_reported=draw.random() < 0.7,
        metadata=draw.random() < 0.8,
        seed=draw.randrange(1 << 30),
        pairwise=draw.random() < 0.3,
        local_copies=draw.random() < 0.5,
    )  # fmt: skip
    if not scenario.synchronous and scenario.first_step > 1:
        scenario = replace(scenario, run_up=RUN_UP)
    return _with_faults(_shaped(scenario, shape, draw), kinds, draw)


def _shaped(scenario: Scenario, shape: str, draw: random.Random) -> Scenario:
    """The scenario as one of `SHAPES`."""
    if shape == "interleaved":
        pipeline = draw.choice([2, 4])
        return replace(
            scenario, pipeline=pipeline, tensor=1, data=draw.choice([2, 4]), virtual=2, layers=draw.choice([2, 4]),
            micro_batches=pipeline * draw.choice([2, 3]), pairwise=False,
        )  # fmt: skip
    if shape in ("sharded", "experts"):
        megabytes = draw.uniform(8, 16) if shape == "sharded" else scenario.gradient_mb_per_layer
        return replace(
            scenario, pipeline=1, tensor=1, micro_batches=1, data=draw.choice([4, 8]), layers=draw.choice([4, 6]),
            sharded=shape == "sharded", experts=shape == "experts", gradient_mb_per_layer=megabytes,
        )  # fmt: skip
    return scenario


def _with_faults(scenario: Scenario, kinds: list[str], draw: random.Random) -> Scenario:
    faults = []
    ranks = list(range(scenario.world_size))
    draw.shuffle(ranks)
    for kind in kinds:
        where: int | tuple[int, int]
        size = draw.uniform(0.25, 0.6)
        if kind == "slow_link":
            where, size = draw.choice(used_links(scenario)), draw.uniform(2.0, 6.0)
        elif kind in ("slow_card", "slow_sending"):
            sources = sorted({a for a, _ in used_links(scenario)})
            where, size = draw.choice(sources), draw.uniform(2.0, 6.0)
        elif kind.startswith("slow_node"):
            where = draw.randrange(max(scenario.world_size // scenario.ranks_per_host, 1))
            size = draw.uniform(2.0, 6.0) if kind == "slow_node_network" else size
        elif kind == "stage_imbalance":
            where, size = draw.randrange(scenario.pipeline), draw.uniform(0.4, 1.0)
        elif kind in ("slow_compute", "slow_data", "slow_host", "failing_card", "pauses", "hot_expert"):
            where = ranks.pop()
        else:
            where = 0
        faults.append(Fault(kind, where, size))
    if set(kinds) & {"unsplit_allreduce", "small_packets"}:
        scenario = replace(scenario, gradient_mb_per_layer=draw.uniform(20, 40), layers=max(scenario.layers, 4))
    if "small_packets" in kinds:
        scenario = replace(scenario, gradient_mb_per_layer=draw.uniform(2, 5))
    if set(kinds) & NETWORK:
        scenario = replace(scenario, gradient_mb_per_layer=scenario.gradient_mb_per_layer * 4)
    if set(kinds) & set(PARTIAL):
        scenario = replace(scenario, steps=draw.choice([12, 15, 20]))
    return replace(scenario, faults=tuple(faults))


def used_links(scenario: Scenario) -> list[tuple[int, int]]:
    """Pairs over which the data- and tensor-parallel collectives send, so that a slow one is felt."""
    from benchmarks.simulator.physics import collective_links, groups_of

    links: set[tuple[int, int]] = set()
    for name, members in groups_of(scenario).items():
        if not name.startswith("pp") and len(members) > 1:
            links.update(collective_links(scenario, "allReduce", members, 1.0))
    return sorted(links)
