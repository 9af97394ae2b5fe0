"""communication.json and communication_matrix.json of one rank. The matrix numbers members within their group."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.simulator.physics import Op, Simulation, group_key, start_ups, transport

_EPOCH_US = 1_700_000_000_000_000
_TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
_PACKET = 2.0e6


def write_communication(run: Simulation, rank: int, output: Path) -> None:
    """Both files; send and receive are filed under collective by MindSpore, under p2p by torch_npu."""
    pytorch = run.scenario.framework == "pytorch"
    times: dict[str, Any] = {}
    matrices: dict[str, Any] = {}
    for index, step in enumerate(run.ops):
        name = f"step{run.scenario.first_step + index}"
        sections: dict[str, dict[str, Any]] = {"p2p": {}, "collective": {}}
        links: dict[str, dict[tuple[str, str], list[tuple[float, float, str]]]] = {
            "p2p": defaultdict(list),
            "collective": defaultdict(list),
        }
        for op in step[rank]:
            if op.joint is None:
                continue
            section = "p2p" if (pytorch and op.joint.kind == "send") or "SendRecv" in op.type else "collective"
            key = f"{op.name}@{group_key(op.joint.group)}"
            sections[section][key] = _entry(run, op)
            kind = _matrix_kind(op, key)
            for (a, b), (size, lasts) in _own_links(op).items():
                if a == b and not run.scenario.local_copies:
                    continue
                number = run.groups[op.joint.group].index
                pair = f"{number(a)}-{number(b)}"
                links[section][f"{kind}@{group_key(op.joint.group)}", pair].append((size, lasts, op.name))
        for section, entries in sections.items():
            if entries and section == "collective":
                entries["Total Op Info"] = _total(entries)
        times[name] = sections
        matrices[name] = {section: _matrix(run, found, pytorch) for section, found in links.items()}
    (output / "communication.json").write_text(json.dumps(times))
    (output / "communication_matrix.json").write_text(json.dumps(matrices))


def _own_links(op: Op) -> dict[tuple[int, int], tuple[float, float]]:
    """What this rank's profiler sees: its outgoing links, and its local copy."""
    assert op.joint is not None
    found = {pair: value for pair, value in op.joint.links.items() if pair[0] == op.rank}
    found[op.rank, op.rank] = (op.joint.size / 4, op.joint.size / 4 / 6.0e5)
    return found


def _entry(run: Simulation, op: Op) -> dict[str, Any]:
    assert op.joint is not None
    s = run.scenario
    elapsed = op.end - op.start
    sums = dict.fromkeys(_TRANSPORTS, (0.0, 0.0))
    packets: dict[str, dict[str, list[float]]] = {t: {} for t in _TRANSPORTS}
    longest = 0.0
    for (a, b), (size, lasts) in _own_links(op).items():
        kind = transport(s, a, b)
        if kind == "LOCAL":
            continue
        for name in (kind, "SDMA") if kind == "HCCS" else (kind,):
            sums[name] = (sums[name][0] + size, sums[name][1] + lasts)
        count = max(start_ups(s, op.joint.kind, op.joint.members), round(size / _PACKET))
        packet = f"{size / count / 1e6:.6f}"
        entry = packets[kind].setdefault(packet, [0, 0.0])
        entry[0] += count
        entry[1] += lasts / 1000
        longest = max(longest, lasts)
    transit = min(longest, elapsed)
    rest = elapsed - transit
    before = max(op.joint.begin - op.start, 0.0)
    share = {"wait": 0.95, "idle": 0.04, "mixed": 0.5}[s.waiting]
    wait = rest * share
    sync = min(before, rest) * share
    whole = wait + transit
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": _EPOCH_US + round(op.start + run.clock_offset[op.rank], 3),
            "Elapse Time(ms)": elapsed / 1000,
            "Transit Time(ms)": transit / 1000,
            "Wait Time(ms)": wait / 1000,
            "Synchronization Time(ms)": sync / 1000,
            "Idle Time(ms)": (rest - wait) / 1000,
            "Wait Time Ratio": round(wait / whole, 4) if whole else 0,
            "Synchronization Time Ratio": round(sync / (sync + transit), 4) if sync + transit else 0,
        },
        "Communication Bandwidth Info": {
            name: {
                "Transit Size(MB)": size / 1e6,
                "Transit Time(ms)": lasts / 1000,
                "Bandwidth(GB/s)": round(size / lasts / 1e3, 4) if lasts else 0,
                "Large Packet Ratio": float(all(float(p) >= 1 for p in packets[name])) if packets[name] else 0,
                "Size Distribution": packets[name],
            }
            for name, (size, lasts) in sums.items()
        },
    }


def _total(entries: dict[str, Any]) -> dict[str, Any]:
    fields = ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)")
    total = {f: sum(e["Communication Time Info"][f] for e in entries.values()) for f in fields}
    wait, transit, sync = total["Wait Time(ms)"], total["Transit Time(ms)"], total["Synchronization Time(ms)"]
    total["Wait Time Ratio"] = round(wait / (wait + transit), 4) if wait + transit else 0
    total["Synchronization Time Ratio"] = round(sync / (sync + transit), 4) if sync + transit else 0
    bands = {
        name: {
            f: sum(e["Communication Bandwidth Info"][name][f] for e in entries.values())
            for f in ("Transit Size(MB)", "Transit Time(ms)")
        }
        | {"Size Distribution": {}}
        for name in _TRANSPORTS
    }
    return {"Communication Time Info": total, "Communication Bandwidth Info": bands}


def _matrix_kind(op: Op, key: str) -> str:
    assert op.joint is not None
    if op.joint.kind == "send":
        return key
    return {"reduceScatter": "reduce"}.get(op.joint.kind, op.joint.kind.lower())


def _matrix(
    run: Simulation, found: dict[tuple[str, str], list[tuple[float, float, str]]], pytorch: bool
) -> dict[str, Any]:
    """Best, middle and worst three operations of each link by bandwidth, and the sum of all."""
    result: dict[str, Any] = {}
    heading = "Op Name" if pytorch else "op_name"
    for (kind, pair), values in found.items():
        name, _, group = kind.rpartition("@")
        ordered = sorted(values, key=lambda v: -v[0] / v[1])
        last = len(ordered) - 1
        picks = {
            "top1": 0,
            "middle": last // 2,
            "bottom1": last,
            "bottom2": max(last - 1, 0),
            "bottom3": max(last - 2, 0),
        }
        members = next(m for name_, m in run.groups.items() if group_key(name_) == group)
        a, b = (members[int(x)] for x in pair.split("-"))
        for label, index in picks.items():
            size, lasts, op_name = ordered[index]
            result.setdefault(f"{name}-{label}@{group}", {})[pair] = _cell(run, a, b, size, lasts) | {heading: op_name}
        size, lasts = sum(v[0] for v in values), sum(v[1] for v in values)
        result.setdefault(f"{name}-total@{group}", {})[pair] = _cell(run, a, b, size, lasts)
    return result


def _cell(run: Simulation, a: int, b: int, size: float, lasts: float) -> dict[str, Any]:
    return {
        "Transport Type": transport(run.scenario, a, b),
        "Transit Size(MB)": size / 1e6,
        "Transit Time(ms)": lasts / 1000,
        "Bandwidth(GB/s)": round(size / lasts / 1e3, 4) if lasts else 0,
    }
