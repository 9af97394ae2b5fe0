"""Communication groups of a scenario, the links their collectives use, and how fast these are, faults included."""

from __future__ import annotations

from collections.abc import Container

from benchmarks.simulator.scenario import Fault, Scenario


def groups_of(scenario: Scenario) -> dict[str, tuple[int, ...]]:
    """Communication groups by name: tp-*, dp-*, pp-* (all stages of a pipeline, or each two neighbouring ones)."""
    groups: dict[str, tuple[int, ...]] = {}
    s = scenario
    if s.tensor > 1:
        for stage in range(s.pipeline):
            for data in range(s.data):
                groups[f"tp-{stage}-{data}"] = tuple(s.rank(stage, data, t) for t in range(s.tensor))
    if s.data > 1:
        for stage in range(s.pipeline):
            for t in range(s.tensor):
                groups[f"dp-{stage}-{t}"] = tuple(s.rank(stage, d, t) for d in range(s.data))
    if s.pipeline > 1:
        for data in range(s.data):
            for t in range(s.tensor):
                chain = tuple(s.rank(stage, data, t) for stage in range(s.pipeline))
                for place in range(s.pipeline - 1) if s.pairwise else ():
                    groups[f"pp-{data}-{t}-{place}"] = chain[place : place + 2]
                if not s.pairwise:
                    groups[f"pp-{data}-{t}"] = chain
    return groups


def transport(scenario: Scenario, a: int, b: int) -> str:
    return "LOCAL" if a == b else "HCCS" if scenario.host(a) == scenario.host(b) else "RDMA"


def bandwidth(scenario: Scenario, a: int, b: int, spared: Container[Fault] = ()) -> float:
    """Bytes per microsecond of the link a → b, faults included but for those that spare this operation."""
    gb_s = scenario.hccs_gb_s if transport(scenario, a, b) == "HCCS" else scenario.rdma_gb_s
    for fault in scenario.faults:
        slower = (
            (fault.kind == "slow_link" and {a, b} == set(fault.where if isinstance(fault.where, tuple) else ()))
            or (fault.kind == "slow_card" and fault.where in (a, b))
            or (fault.kind == "slow_sending" and fault.where == a)
            or (
                fault.kind == "slow_node_network"
                and (scenario.host(a) == fault.where) != (scenario.host(b) == fault.where)
            )
        )
        if slower and fault not in spared:
            gb_s /= 1 + fault.size
    return gb_s * 1e3


def collective_links(
    scenario: Scenario, kind: str, members: tuple[int, ...], size: float
) -> dict[tuple[int, int], float]:
    """Bytes each link carries: full mesh inside a host, a ring as soon as hosts are crossed."""
    n = len(members)
    passes = 2 if kind == "allReduce" else 1
    if len({scenario.host(r) for r in members}) == 1:
        return {(a, b): passes * size / n for a in members for b in members if a != b}
    ring = zip(members, members[1:] + members[:1], strict=True)
    return dict.fromkeys(ring, passes * size * (n - 1) / n)


def start_ups(scenario: Scenario, kind: str, members: tuple[int, ...]) -> int:
    """Messages that a link passes one after another in one collective."""
    ring = kind != "send" and len({scenario.host(r) for r in members}) > 1
    return (2 if kind == "allReduce" else 1) * (len(members) - 1) if ring and scenario.chunked else 1


def used_links(scenario: Scenario) -> list[tuple[int, int]]:
    """Pairs over which the data- and tensor-parallel collectives send, so that a slow one is felt."""
    links: set[tuple[int, int]] = set()
    for name, members in groups_of(scenario).items():
        if not name.startswith("pp") and len(members) > 1:
            links.update(collective_links(scenario, "allReduce", members, 1.0))
    return sorted(links)
