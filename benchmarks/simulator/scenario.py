"""What is simulated: the model, its partition, the machine, the noise, the faults."""

from __future__ import annotations

from dataclasses import dataclass, field

FAULTS = (
    "slow_compute", "slow_data", "slow_host", "slow_link", "slow_card", "slow_sending", "slow_node_network",
    "slow_node_compute", "slow_node_data", "slow_node_host", "stage_imbalance", "unsplit_allreduce", "small_packets",
    "redistribution", "data_stalls", "uneven_work", "host_stalls", "failing_card", "pauses", "checkpoints",
    "slow_storage",
)  # fmt: skip
SHAPES = ("interleaved", "sharded", "experts")
"""Trainings of another shape, named before a fault and a slash: stages that hold several chunks of layers, parameters
gathered for each layer, experts between which tokens are exchanged."""

PARTIAL = ("failing_card", "slow_at_times", "pauses", "checkpoints", "slow_storage")
"""Faults of a part of the steps, or of all ranks at once; their cost is that of the mean step."""

AT_TIMES = ("slow_at_times", "pauses")
"""Those of one rank in some steps."""

RUN_UP = 6
"""Steps after which a host that launches a quarter too slowly has used up the step it was ahead."""

IN_TURN = ("data_stalls", "uneven_work", "host_stalls")
"""Faults that hit another rank in each step."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. `where` is a rank, a host, a stage or a pair of ranks; `size` is how much.

    slow_compute, slow_node_compute: kernels take 1 + size as long. slow_data, slow_node_data: a batch takes (1 +
    size) steps to prepare. slow_host, slow_node_host: launching a step takes (1 + size) times its computation.
    slow_link, slow_card, slow_sending (links that leave the rank), slow_node_network (that leave the host): bandwidth
    divided by 1 + size. stage_imbalance: the stage has 1 + size the layers, two more at least. unsplit_allreduce,
    small_packets, redistribution: present or not. data_stalls, uneven_work, host_stalls: in three of ten steps, each
    rank at random, the loader stalls for `size` steps, kernels take 1 + size as long, or the host pauses once for
    `size` steps. failing_card: kernels take 1 + size as long from the middle of the run on; slow_at_times: in every
    fourth step. pauses: the rank's host pauses for 1 + size steps before every third step; checkpoints: all do for 2
    + size before every fifth. slow_storage: every rank waits for data for `size` steps before each step. no_prefetch:
    parameters are gathered only when they are needed. hot_expert: the rank's experts get 1 + size as many tokens as
    they should, which the others of its group lack. recompute: the stage computes this part of its layers' forward
    passes again. lookups, head: the stage gathers, or multiplies, beside its layers in each micro-batch, for as long as
    `size` layers take. masked: the rank's attention takes 1 + size as long, its mask leaves more of the same shapes.
    """

    kind: str
    where: int | tuple[int, int] = 0
    size: float = 0.5
    often: float = 1.0
    """Part of the operations, at random, in which a slow link or card is slow."""


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
    fetches_late: bool = False
    """The loop launches its first operation before it asks for the batch, as one that clears its gradients first."""
    warm_up: bool = False
    """The first recorded step compiles and opens connections."""
    reduced_each_pass: bool = False
    """Gradients are reduced behind every micro-batch's backward pass, not behind the last one's only (no_sync is
    missing)."""
    reduced_behind: bool = False
    """All buckets are reduced behind the whole backward pass, not each when its gradients are ready."""
    in_flight: int | None = None
    """Micro-batches that the first stage takes in before it waits for a gradient; None: as many as stages."""
    virtual: int = 1
    """Chunks of layers that a stage holds; more than one: the interleaved schedule."""
    received_ahead: bool = False
    """A stage asks for its next micro-batch when the one before has come, not when its turn has."""
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
