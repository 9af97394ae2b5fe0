"""What collectives need: their bytes at the speed of the links.

A sharded model exchanges by its nature, and ranks their gradients. What the bytes need at the speed that the links
reach is nobody's fault; only what an exchange takes beyond that is lost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.base import Run, computed
from advisor.facts.collectives.exchanges import EXCHANGES, Exchanges
from advisor.facts.collectives.exposure import joints
from advisor.facts.collectives.joints import Joint
from advisor.facts.collectives.parallelism import partition
from advisor.knowledge.statements import document


@cache
def _terms() -> dict[str, Any]:
    return dict(document("links.yaml"))


def link_limit(transport: str) -> float:
    """Bytes per second that a link of this transport carries, by the knowledge base."""
    return float(_terms()["bytes_per_s"].get(transport, _terms()["other"])["value"])


def is_told(transport: str) -> bool:
    """Whether the knowledge base tells what a link of this very transport carries."""
    return transport in _terms()["bytes_per_s"]


def is_side_by_side(transport: str) -> bool:
    """Whether the links of one card carry at once over this transport, each as much as a link does."""
    return transport in _terms()["side_by_side"]


def large_message() -> float:
    """Bytes from which a message shows what a link can do."""
    return float(_terms()["large"]["value"])


@computed
def link_rates(run: Run) -> dict[str, float]:
    """Transport -> bytes per second: what large messages reach in this recording, the knowledge base's limit at
    least."""
    rates: dict[str, list[np.ndarray]] = defaultdict(list)
    large = large_message()
    for ex in run.each(EXCHANGES).values():
        if not ex.transport or not (ex.transport_us > 0).any():  # a timeline tells sizes and nothing of the links
            continue
        usable = (ex.size_bytes >= large) & (ex.transport_us > 0)
        for name in dict.fromkeys(ex.transport):
            mine = usable & (np.array(ex.transport) == name)
            rates[name].append(ex.rates(mine))
    quantile = float(_terms()["quantile"]["value"])
    found = {}
    for name, parts in rates.items():
        values = np.concatenate(parts)
        reached = float(np.quantile(values, quantile)) if values.size else 0.0
        found[name] = max(reached, link_limit(name))
    return found


@computed
def needed_parts(run: Run) -> dict[str, float]:
    """Purpose -> part of the transfer of its collectives that their bytes need at the links' speed; without those of
    which no bytes are told. A ring moves at its slowest hop: of members with links of several transports, the one whose
    bytes need longest counts."""
    exchanges, layout, rates = run.each(EXCHANGES), partition(run), link_rates(run)
    needed: dict[str, float] = defaultdict(float)
    taken: dict[str, float] = defaultdict(float)
    for joint in joints(run):
        role = layout.purpose(joint.kind, joint.group)
        speeds = _speeds(joint, exchanges, rates)
        sized = np.isfinite(joint.size_bytes).any(axis=1)
        if not np.isfinite(speeds).any() or not sized.any():
            continue
        most = np.nanmax(joint.size_bytes[sized], axis=1)  # what ranks book of one collective differs by its algorithm
        least = most / np.nanmin(speeds) * 1e6
        took = joint.transfer_us[sized]
        needed[role] += float(np.minimum(least, took) @ joint.per_step[sized])
        taken[role] += float(took @ joint.per_step[sized])
    return {role: needed[role] / us for role, us in taken.items() if us > 0}


def _speeds(joint: Joint, exchanges: Mapping[int, Exchanges], rates: Mapping[str, float]) -> Floats:
    """Bytes per second that each member's links carry in these operations: of what mostly moves its bytes, over as many
    links at once as there are: the time of all links ÷ the time in which any of them moved. NaN where not told."""
    mostly: list[str] = []
    together: dict[str, list[tuple[Floats, Floats]]] = defaultdict(list)
    for rank in joint.ranks:
        ex, name = exchanges[rank], ""
        if ex.transport and joint.group in ex.groups:
            mine = (ex.group == ex.groups.index(joint.group)) & (ex.kinds() == joint.kind)
            found = Counter(each for each in np.array(ex.transport)[mine].tolist() if each)
            name = found.most_common(1)[0][0] if found else ""
            known = mine & (ex.transport_us > 0) & (ex.transit_us > 0)
            together[name].append((ex.transport_us[known], ex.transit_us[known]))
        mostly.append(name)
    links = {name: links_at_once(*(np.concatenate(each) for each in zip(*parts, strict=True)))
             for name, parts in together.items()}  # fmt: skip
    return np.array([rates.get(name, np.nan) * links.get(name, 1.0) for name in mostly], np.float64)


def links_at_once(links_us: Floats, moving_us: Floats) -> float:
    """How many links move at once: time of all ÷ time in which any did, in the operations with half of that time. Of a
    few bytes both are less than the files' last digit, and such operations are many."""
    if not moving_us.size:
        return 1.0
    order = np.argsort(links_us / moving_us)
    half = np.searchsorted(np.cumsum(moving_us[order]), moving_us.sum() / 2)
    middle = order[min(int(half), order.size - 1)]
    return max(float(links_us[middle] / moving_us[middle]), 1.0)
