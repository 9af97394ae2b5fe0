"""Who talks to whom: members of communication groups, from what each rank's own links say.

A rank's communication_matrix.json numbers the members of a group from 0. The link from a member to itself shows which
number the rank has in that group, so the ranks' files together give the members where no metadata does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path

from advisor.sources.base import Rank, TableRef
from advisor.sources.textfiles import read_text

_MOST_BYTES = 32 << 20
_OPERATION = re.compile(r'"(?:[^"@]*@)+([^"@]+)"\s*:\s*\{|"(\d{1,7})-(\d{1,7})"\s*:\s*\{')


def joined(groups: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Ranks that groups connect: one communicator for each pair of neighbouring stages makes one pipeline."""
    head: dict[int, int] = {}

    def find(rank: int) -> int:
        while head[rank] != rank:
            head[rank] = rank = head[head[rank]]
        return rank

    for group in groups:
        for rank in group:
            head.setdefault(rank, rank)
            head[find(rank)] = find(group[0])
    parts: dict[int, list[int]] = {}
    for rank in sorted(head):
        parts.setdefault(find(rank), []).append(rank)
    return sorted(map(tuple, parts.values()))


def local_numbers(path: Path) -> tuple[dict[str, int], dict[str, set[int]], dict[str, set[int]]]:
    """Of a communication_matrix.json: group -> the rank's own number in it, group -> all numbers seen, and group ->
    numbers that take part in every link."""
    own: dict[str, set[int]] = {}
    every: dict[str, set[int]] = {}
    always: dict[str, set[int]] = {}
    group = ""
    for match in _OPERATION.finditer(read_text(path, _MOST_BYTES)):
        if match.group(1) is not None:
            group = match.group(1)
            continue
        source, destination = int(match.group(2)), int(match.group(3))
        every.setdefault(group, set()).update((source, destination))
        always[group] = always.get(group, {source, destination}) & {source, destination}
        if source == destination:
            own.setdefault(group, set()).add(source)
    return {group: numbers.pop() for group, numbers in own.items() if len(numbers) == 1}, every, always


def resolve_groups(ranks: Sequence[Rank], groups: MutableMapping[str, tuple[int, ...]], world_size: int) -> int:
    """Completes `groups` and the ranks' own from their link files; gives the world size these files show.

    Looks at as many files as stay below a fixed total size; a profile that names its groups needs only one.
    """
    budget = _MOST_BYTES
    members: dict[str, dict[int, int]] = {}
    seen: dict[str, set[int]] = {}
    themselves: dict[str, dict[int, bool]] = {}
    """group -> rank that names it -> whether the rank's global number is in all its links."""
    size = world_size
    for rank in ranks:
        ref = rank.tables.get("links")
        if ref is None or not ref.reader.startswith("json."):
            continue
        for path in ref.paths:
            try:
                budget -= path.stat().st_size
                if budget < 0:
                    break
                own, every, always = local_numbers(path)
            except OSError:
                continue
            for group, common in always.items():
                themselves.setdefault(group, {})[rank.rank] = rank.rank in common
            for group, numbers in every.items():
                seen.setdefault(group, set()).update(numbers)
            size = max([size, *(max(numbers) + 1 for numbers in every.values())])
            for group, number in own.items():
                members.setdefault(group, {})[number] = rank.rank
        if budget < 0 or (groups and rank is not ranks[0]):
            break
    for group, by_number in members.items():
        if group not in groups and len(by_number) == max(seen[group]) + 1 > 1:
            groups[group] = tuple(by_number[number] for number in sorted(by_number))
    at_hand = {rank.rank for rank in ranks}
    for group, found in themselves.items():
        if group not in groups and _are_global(found, at_hand):
            groups[group] = tuple(sorted(seen[group]))
    own_groups: dict[int, dict[str, tuple[int, ...]]] = {}
    for group, ranks_of_group in groups.items():
        for number in ranks_of_group:
            own_groups.setdefault(number, {})[group] = ranks_of_group
    for rank in ranks:
        _tell_links(rank, own_groups.get(rank.rank, {}), size)
    return size


def _are_global(found: Mapping[int, bool], at_hand: set[int]) -> bool:
    """Whether numbers of a group can only be global ranks: everyone finds its own in all its links, and one of them has
    a rank below it that is no member, so that its number within the group would be smaller."""
    return len(found) > 1 and all(found.values()) and any(other < max(found) for other in at_hand - set(found))


def _tell_links(rank: Rank, groups: Mapping[str, tuple[int, ...]], world_size: int) -> None:
    ref = rank.tables.get("links")
    if ref is not None and not ref.reader.startswith("cluster."):
        options = {**ref.options, "rank": rank.rank, "groups": groups, "world_size": world_size}
        rank.tables["links"] = TableRef(ref.table, ref.paths, ref.reader, options)


def global_ranks(
    numbers: Sequence[tuple[int, int]], group: str, rank: int, groups: Mapping[str, tuple[int, ...]], world_size: int
) -> dict[int, int | None]:
    """Number in a group -> global rank, for the links (source, destination) one rank wrote for this group.

    Where the members are unknown: a group as large as the world numbers its members by rank; otherwise only the rank
    itself can be named, and the others stay None rather than accuse the wrong one.
    """
    selves = {source for source, destination in numbers if source == destination}
    sources = {source for source, _ in numbers}
    own = selves or sources
    every = {number for link in numbers for number in link}
    members = groups.get(group, ())
    mine = next(iter(own)) if len(own) == 1 else None
    if members:
        if not selves and rank in members:  # one transfer: its link may lead to this rank as well as from it
            within = max(every) < len(members) and all(members.index(rank) in link for link in numbers)
            if not within and every <= set(members) and all(rank in link for link in numbers):
                return {n: n for n in every}
            if within:
                return {n: members[n] for n in every}
        if mine is not None and mine < len(members) and members[mine] == rank:
            return {n: members[n] if n < len(members) else None for n in every}
        if every <= set(members) and (mine is None or mine == rank):
            return {n: n for n in every}
        return {n: members[n] if n < len(members) else None for n in every} if mine is None else {}
    if every and max(every) + 1 == world_size and mine in (rank, None):
        return {n: n for n in every}
    return {n: rank if n == mine else None for n in every}
