"""communication.json and communication_matrix.json as real ranks have them: thousands of collectives over four
transports with their packet sizes, and the links of each group with their best, middle and worst operations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.simulator.physics import group_key

KINDS = ("allReduce", "allGather", "reduceScatter")
PICKS = ("top1", "middle", "bottom1", "bottom2", "bottom3", "total")
MATRIX_NAMES = {"allReduce": "allreduce", "allGather": "allgather", "reduceScatter": "reduce"}
_MB_PER_US = {"HCCS": 0.0178, "RDMA": 0.0221, "SIO": 0.031, "SDMA": 0.0169}
"""What each transport moves when nothing disturbs it."""


@dataclass(frozen=True)
class Group:
    """A communication group: what its framework calls it, and its members."""

    name: str
    members: tuple[int, ...]

    @property
    def key(self) -> str:
        return group_key(self.name)


@dataclass(frozen=True)
class Collective:
    """One collective of a rank; times in nanoseconds."""

    step: int
    kind: str
    name: str
    group: Group
    start: int
    duration: int
    megabytes: float


def groups_of(rank: int, ranks: int) -> tuple[Group, ...]:
    """The world, and the pair and the host of eight that the rank belongs to, where they are smaller."""
    sets = {(0, ranks): "hccl_world_group"}
    for size, word in ((8, "host"), (2, "pair")):
        first = rank // size * size
        if first + size <= ranks:
            sets.setdefault((first, first + size), f"{size}-{word}-{rank // size}")
    return tuple(Group(name, tuple(range(*members))) for members, name in sets.items())


def collective(groups: Sequence[Group], step: int, ordinal: int, whole: int, start: int, duration: int) -> Collective:
    """The `ordinal`-th collective of its step, the `whole`-th of the profile."""
    group, kind = groups[ordinal // len(KINDS) % len(groups)], KINDS[ordinal % len(KINDS)]
    name = f"hcom_{kind}__{group.key[-3:]}_{whole}_1"
    return Collective(step, kind, name, group, start, duration, 0.5 + ordinal % 7 * 3.25)


def transports(one: Collective) -> Iterator[tuple[str, float, float, tuple[tuple[float, int, float], ...]]]:
    """(name, MB, ms, packets of (MB, count, ms)) of what moved the collective's bytes; SDMA repeats the others."""
    total = spent = 0.0
    for place, (name, rate) in enumerate(_MB_PER_US.items()):
        if name == "SDMA":
            yield name, total, spent, ()
            continue
        size = one.megabytes / (place + 1)
        ms = size / rate / 1000
        total, spent = total + size, spent + ms
        large, count = (2.064384, 1.937312, 0.114688)[place], max(int(size / 2.2), 1)
        rest = max(size - count * large, 0.000512)
        part = ms * rest / size
        yield name, size, ms, ((large, count, ms - part), (round(rest, 6), 1, part))


def _entry(one: Collective) -> str:
    elapsed = one.duration / 1e6
    transit = elapsed * 0.62
    bands = [
        f'"{name}": {{"Transit Size(MB)": {size!r}, "Transit Time(ms)": {ms!r}, "Bandwidth(GB/s)": {size / ms:.4f}, '
        f'"Large Packet Ratio": {0.5 if packets else 0}, "Size Distribution": {{'
        + ", ".join(f'"{each:.6f}": [{count}, {lasts!r}]' for each, count, lasts in packets)
        + "}}"
        for name, size, ms, packets in transports(one)
    ]
    bands.append(
        '"PCIE": {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Large Packet Ratio": 0, '
        '"Size Distribution": {}}'
    )
    return (
        f'"{one.name}@{one.group.key}": {{"Communication Time Info": {{"Start Timestamp(us)": {one.start / 1000!r}, '
        f'"Elapse Time(ms)": {elapsed!r}, "Transit Time(ms)": {transit!r}, "Wait Time(ms)": {elapsed * 0.3!r}, '
        f'"Synchronization Time(ms)": {elapsed * 0.21!r}, "Idle Time(ms)": {elapsed * 0.08!r}, '
        f'"Wait Time Ratio": 0.3261, "Synchronization Time Ratio": 0.2527}}, '
        f'"Communication Bandwidth Info": {{{", ".join(bands)}}}}}'
    )


def write_communication(path: Path, found: Sequence[Collective]) -> None:
    """communication.json, written piece by piece: a rank's is 17 MB."""
    by_step: dict[int, list[Collective]] = defaultdict(list)
    for one in found:
        by_step[one.step].append(one)
    with path.open("w") as out:
        out.write("{")
        for place, (step, collectives) in enumerate(by_step.items()):
            out.write(f'{", " if place else ""}"step{step}": {{"p2p": {{}}, "collective": {{')
            out.write(", ".join(map(_entry, collectives)))
            out.write("}}")
        out.write("}")


Cells = Iterator[tuple[int, str, str, int, int, str, float, float, str]]


def matrix_cells(found: Sequence[Collective], rank: int) -> Cells:
    """(step, name without group, group's key, source, destination, transport, MB, ms, operation) of each link that
    leaves this rank, numbered within the group."""
    by: dict[tuple[int, Group, str], list[Collective]] = defaultdict(list)
    for one in found:
        by[one.step, one.group, one.kind].append(one)
    for (step, group, kind), own in by.items():
        me = group.members.index(rank)
        for peer in sorted({(me + hop) % len(group.members) for hop in (0, 1, 2, -1, -2)}):
            near = group.members[peer] // 8 == rank // 8
            transport = "LOCAL" if peer == me else "HCCS" if near else "RDMA"
            size = own[0].megabytes
            ms = size / _MB_PER_US.get(transport, 0.5) / 1000 * (1 + (rank * 7 + peer * 3) % 11 / 400)
            for pick in PICKS:
                many = len(own) if pick == "total" else 1
                name = f"{MATRIX_NAMES[kind]}-{pick}"
                yield step, name, group.key, me, peer, transport, size * many, ms * many, own[0].name


def write_matrix(path: Path, found: Sequence[Collective], rank: int, heading: str) -> None:
    """communication_matrix.json; `heading` is how the framework writes the operation's name."""
    steps: dict[str, dict[str, dict[str, dict[str, dict[str, object]]]]] = {}
    for step, name, group, source, destination, transport, size, ms, operation in matrix_cells(found, rank):
        sections = steps.setdefault(f"step{step}", {"p2p": {}, "collective": {}})
        sections["collective"].setdefault(f"{name}@{group}", {})[f"{source}-{destination}"] = {
            "Transport Type": transport, "Transit Size(MB)": size, "Transit Time(ms)": ms,
            "Bandwidth(GB/s)": round(size / ms, 4), heading: operation,
        }  # fmt: skip
    path.write_text(json.dumps(steps))
