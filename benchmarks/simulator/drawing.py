"""Scenarios drawn at random around a fault."""

from __future__ import annotations

import random
from dataclasses import replace

from benchmarks.simulator.network import used_links
from benchmarks.simulator.scenario import AT_TIMES, IN_TURN, PARTIAL, RUN_UP, Fault, Scenario

NETWORK = {"slow_link", "slow_card", "slow_sending", "slow_node_network"}


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
        elif kind in ("slow_compute", "slow_data", "slow_host", "hot_expert", "failing_card", *AT_TIMES):
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
