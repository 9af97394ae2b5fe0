"""Bandwidth from rank to rank, or from host to host where there are too many ranks to tell apart."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Run
from advisor.facts.collectives.link_speed import Link, hosts_of, links_of
from advisor.facts.collectives.parallelism import partition

MATRIX_RANKS = 64
"""More ranks than this are averaged by host."""


def link_matrix(run: Run, facts: FactSet) -> list[dict[str, Any]]:
    """One matrix a transport: `cells` are [row, column, bytes per second, part of the usual bandwidth or null],
    `groups` the first row of each host or stage with its name."""
    del facts
    links = links_of(run)
    layout = partition(run)
    hosts = hosts_of(layout.host, links)
    by_transport: dict[str, list[Link]] = defaultdict(list)
    for link in links.values():
        if link.us > 0:
            by_transport[link.transport].append(link)
    return [
        {"transport": transport, **_matrix(found, hosts, layout.stage)}
        for transport, found in sorted(by_transport.items())
    ]


def _matrix(links: list[Link], hosts: dict[int, str], stages: dict[int, int]) -> dict[str, Any]:
    ranks = sorted({end for link in links for end in (link.source, link.destination)})
    if len(ranks) > MATRIX_RANKS and hosts:
        return _by_host(links, hosts)
    slowest = sorted(links, key=lambda link: link.ratio if link.ratio is not None else 1.0)
    if len(ranks) > MATRIX_RANKS:
        kept = list(dict.fromkeys(end for link in slowest for end in (link.source, link.destination)))[:MATRIX_RANKS]
        ranks = sorted(kept)
    place = {rank: at for at, rank in enumerate(ranks)}
    belongs = {rank: hosts.get(rank, "") for rank in ranks}
    by = "host" if len(set(belongs.values())) > 1 else "stage"
    if by == "stage":
        belongs = {rank: str(stages.get(rank, "")) for rank in ranks}
    groups = [
        {"name": belongs[rank], "at": at}
        for at, rank in enumerate(ranks)
        if at == 0 or belongs[rank] != belongs[ranks[at - 1]]
    ]
    cells = [
        [place[link.source], place[link.destination], _rate(link.bytes, link.us), _ratio(link.ratio)]
        for link in links
        if link.source in place and link.destination in place
    ]
    return {
        "of": "rank", "labels": [str(rank) for rank in ranks], "groups": groups if len(groups) > 1 else [],
        "grouped_by": by, "cells": cells,
    }  # fmt: skip


def _by_host(links: list[Link], hosts: dict[int, str]) -> dict[str, Any]:
    """Sums of bytes and time of all links between two hosts: their mean bandwidth."""
    sums: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in links:
        sums[hosts.get(link.source, ""), hosts.get(link.destination, "")].append(link)
    first = {host: rank for rank, host in sorted(hosts.items(), reverse=True)}
    names = sorted({name for pair in sums for name in pair}, key=lambda name: (first.get(name, -1), name))
    place = {name: at for at, name in enumerate(names)}
    cells = []
    for (source, destination), found in sums.items():
        ratios = [link.ratio for link in found if link.ratio is not None]
        rate = _rate(sum(link.bytes for link in found), sum(link.us for link in found))
        cells.append([place[source], place[destination], rate, _ratio(float(np.median(ratios)) if ratios else None)])
    return {"of": "host", "labels": names, "groups": [], "grouped_by": "host", "cells": cells}


def _rate(size: float, us: float) -> float:
    return float(f"{size / us * 1e6:.3g}")


def _ratio(ratio: float | None) -> float | None:
    return None if ratio is None else float(f"{ratio:.3g}")
