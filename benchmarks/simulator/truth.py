"""The answer expected for each fault of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.simulator.network import used_links
from benchmarks.simulator.scenario import Fault, Scenario


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
        "recompute": ("stage-imbalance", (str(where),)),
        "lookups": ("stage-imbalance", (str(where),)),
        "head": ("stage-imbalance", (str(where),)),
        "unsplit_allreduce": ("allreduce-not-overlapped", ()),
        "small_packets": ("small-packets", ()),
        "redistribution": ("sharding-redistribution", ()),
        "data_stalls": ("data-processing-bottleneck", ("run",)),
        "uneven_work": ("step-jitter", ("run",)),
        "host_stalls": ("host-dispatch-bound", ("run",)),
        "failing_card": ("slow-compute-rank", (str(where),)),
        "slow_at_times": ("slow-compute-rank", (str(where),)),
        "pauses": ("step-jitter", (str(where),)),
        "checkpoints": ("step-jitter", ("run",)),
        "slow_storage": ("data-processing-bottleneck", ("run",)),
        "no_prefetch": ("exposed-communication", ("run",)),
        "masked": ("slow-compute-rank", (str(where),)),
        "hot_expert": ("slow-compute-rank", (str(where),)),
    }
    verdict, subjects = table[fault.kind]
    return Truth(verdict, tuple(subjects))
