"""Who talks to whom: members of communication groups, from what each rank's own links say.

A rank's communication_matrix.json numbers the members of a group from 0. The link from a member to itself shows which
number the rank has in that group, and so does the source of its links where they have only one, for a rank lists the
links that leave it. The ranks' files together give the members where no metadata does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from advisor.sources.text.textfiles import decoded, require_file

LARGEST_WORLD = 1 << 20
"""Ranks of a training: ten times the largest there were."""
_MOST_BYTES = 32 << 20
_DATABASE = "db.links"
_OPERATION = re.compile(
    r'"(?:[^"@]*@)+(?P<group>[^"@]+)"\s*:\s*\{|"(?P<source>[0-9]{1,7})-(?P<target>[0-9]{1,7})"\s*:\s*\{|'
    r'"Total Op Info"\s*:'
)


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


class Numbers(Struct, frozen=True):
    """What one rank's file says of one group, in the group's own numbers."""

    itself: frozenset[int]
    """Members with a link to themselves: the rank's own number where it is one."""
    sources: frozenset[int]
    every: frozenset[int]
    always: frozenset[int]
    """Members that take part in every link."""

    @property
    def own(self) -> int | None:
        """The rank's own number, where its links tell."""
        told = self.itself or self.sources
        return next(iter(told)) if len(told) == 1 else None


def numbers_in(text: str) -> dict[str, Numbers]:
    """Group -> numbers that a communication_matrix.json uses for its members."""
    links: dict[str, set[tuple[int, int]]] = {}
    group = ""
    for match in _OPERATION.finditer(text):
        if match["source"] is None:
            group = match["group"] or ""  # sums over operations belong to no group, wherever they stand
        elif group:
            links.setdefault(group, set()).add((int(match["source"]), int(match["target"])))
    return {group: _numbers(pairs) for group, pairs in links.items()}


def _numbers(links: Iterable[tuple[int, int]]) -> Numbers:
    links = list(links)
    pairs = [frozenset(link) for link in links]
    every, always = frozenset[int]().union(*pairs), frozenset.intersection(*pairs)
    return Numbers(frozenset(a for a, b in links if a == b), frozenset(a for a, _ in links), every, always)


class _Group(Struct):
    """One group as the files of several ranks number it."""

    by_rank: dict[int, Numbers] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Members, as far as links show them."""
        return max(max(numbers.every) for numbers in self.by_rank.values()) + 1

    def members(self, at_hand: set[int], world_size: int) -> tuple[int, ...] | None:
        """Global ranks in the order of their numbers; None where the files do not tell, or contradict each other."""
        own = {rank: numbers.own for rank, numbers in self.by_rank.items()}
        numbered = {number: rank for rank, number in own.items() if number is not None}
        unique = None not in own.values() and len(numbered) == len(own)
        if unique and len(numbered) == self.size > 1 and sorted(numbered) == list(range(self.size)):
            return tuple(numbered[number] for number in range(self.size))
        if all(rank in numbers.every for rank, numbers in self.by_rank.items()) and self._is_global(at_hand):
            return tuple(sorted(frozenset[int]().union(*(n.every for n in self.by_rank.values()))))
        if unique and len(own) > 1 and self.size == world_size and all(rank == n for n, rank in numbered.items()):
            return tuple(range(world_size))
        ranks = sorted(self.by_rank)
        placed = all(place in self.by_rank[rank].always for place, rank in enumerate(ranks))
        if len(ranks) == self.size > 1 and placed:
            return tuple(ranks)
        return None

    def _is_global(self, at_hand: set[int]) -> bool:
        """Whether the numbers can only be global ranks: everyone finds its own in all its links, and one of them has a
        rank below it that is no member, so that its number within the group would be smaller."""
        found = self.by_rank
        inside = all(rank in numbers.always for rank, numbers in found.items())
        return len(found) > 1 and inside and any(other < max(found) for other in at_hand - set(found))


def largest(sizes: Iterable[int]) -> int:
    """The largest of the sizes that a world can have, 0 where none is: a number beyond is damage."""
    return max((size for size in sizes if size <= LARGEST_WORLD), default=0)


def resolve_groups(
    ranks: Sequence[Rank],
    groups: MutableMapping[str, tuple[int, ...]],
    world_size: int,
    in_database: Callable[[Path], Mapping[str, Iterable[tuple[int, int]]]],
) -> tuple[int, bool]:
    """Completes `groups` and the ranks' own from their link files; gives the world size these files show, and whether
    they close it: every rank has links, and every member of every group in them is at hand.

    Looks at as many files as stay below a fixed total size; one is enough where the profile names the groups as that
    file does: metadata may know them by other names than the files of links do. Of a database, `in_database` gives
    group -> (source, destination) of the first rows.
    """
    budget = _MOST_BYTES
    found: dict[str, _Group] = {}
    for rank in ranks:
        ref = rank.tables.get("links")
        if ref is None or not ref.reader.startswith(("json.", _DATABASE)):
            continue
        for path in ref.paths:
            if ref.reader == _DATABASE:
                for group, links in in_database(path).items():
                    found.setdefault(group, _Group()).by_rank[rank.rank] = _numbers(links)
                continue
            try:
                budget -= path.stat().st_size
                if budget < 0:
                    break
                require_file(path)
                content = path.read_bytes()
            except OSError:
                continue
            rank.held[path] = content
            numbers = numbers_in(decoded(content))
            for group, own in numbers.items():
                found.setdefault(group, _Group()).by_rank[rank.rank] = own
        if budget < 0 or (groups and rank is not ranks[0] and found.keys() <= groups.keys()):
            break
    size = largest([world_size, *(group.size for group in found.values())])
    at_hand = {rank.rank for rank in ranks}
    for name, numbered in found.items():
        if name not in groups and (members := numbered.members(at_hand, size)):
            groups[name] = members
    own_groups: dict[int, dict[str, tuple[int, ...]]] = {}
    for name, members in groups.items():
        for number in members:
            own_groups.setdefault(number, {})[name] = members
    for rank in ranks:
        _tell_links(rank, own_groups.get(rank.rank, {}), size)
    told = {rank for own in found.values() for rank in own.by_rank}
    closed = told == at_hand and all(set(groups.get(name, (-1,))) <= at_hand for name in found)
    return size, closed


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
