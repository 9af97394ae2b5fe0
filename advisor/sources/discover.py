"""From the paths a user names to a profile: which ranks there are, what each has, and what they say of the whole."""

from __future__ import annotations

import filecmp
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from advisor.basics.errors import UsageError
from advisor.model import Parallelism, Problem
from advisor.sources.base import Profile, Rank
from advisor.sources.captures import of_one_run, with_one_collection, without_earlier
from advisor.sources.database.dbfile import links_in
from advisor.sources.folders import Judgement, Listing, Walk, is_folder, parallelism_of
from advisor.sources.gaps import tell_gaps
from advisor.sources.layouts import LAYOUTS, ascend, is_known, loose, opprof
from advisor.sources.layouts.packed import NOT_READ, is_packed, unread_in, unread_of_rank
from advisor.sources.metadata import infer_parallelism
from advisor.sources.text.textfiles import why_unreadable
from advisor.sources.text.unread import unread_files, why_unread
from advisor.sources.topology import largest, resolve_groups

log = logging.getLogger("advisor")

_LOOKED_FOR = (
    "rank folders (*_ascend_ms, *_ascend_pt or ASCEND_PROFILER_OUTPUT), PROF_*/mindstudio_profiler_output, OPPROF_*, "
    "cluster_analysis_output, files of older MindSpore (step_trace_raw_*, minddata_pipeline_raw_*, …), "
    "or single files of these"
)
_MIXED = "cluster"


class Recognition(Struct, frozen=True):
    """What every layout said about one folder."""

    folder: Path
    judgements: tuple[Judgement, ...]

    @property
    def recognised(self) -> bool:
        return any(judgement.recognised for judgement in self.judgements)


def load_profile(paths: Sequence[str | Path], shown: str = "") -> Profile:
    """Everything recognised under these files and folders; no table is read yet. `shown` is what reports call them.

    Raises UsageError where a path does not exist, or where folders are of different jobs. Where nothing is recognised
    the profile has no ranks, and its problems say what was looked for.
    """
    roots = [_existing(path) for path in paths]
    if not roots:
        raise UsageError("no profile given", hint="name a profiler result: a folder of ranks, a rank folder or a file")
    base = roots[0] if len(roots) == 1 and roots[0].is_dir() else _common_base(roots)
    profile = Profile(shown or ", ".join(str(path) for path in paths))
    seen: dict[Path, Recognition] = {}
    of_folders = {root: _search(root, base, profile, seen) for root in dict.fromkeys(roots) if root.is_dir()}
    _require_one_job(of_folders)
    found = [rank for ranks in of_folders.values() for rank in ranks]
    found += _loose_files([root for root in roots if not root.is_dir()], base, profile)
    profile.ranks = _number(_merge(found, profile), profile)
    for rank in profile.ranks:
        _leave_out_empty(rank)
    if not profile.ranks:
        simulated = [one for one in seen.values() if any(each.reason == opprof.SIMULATION for each in one.judgements)]
        for one in simulated[:1]:
            profile.problems.append(Problem(_relative(one.folder, base), opprof.SIMULATION))
        if not simulated:
            profile.problems.append(Problem(profile.path, f"no profile recognised; looked for {_LOOKED_FOR}"))
    if not any(rank.tables for rank in profile.ranks):
        inside = [path for rank in profile.ranks for path in (rank.root, rank.root / ascend.OUTPUT) if is_folder(path)]
        unread = unread_files(dict.fromkeys((*seen, *inside)))
        profile.problems += [Problem(_relative(path, base), text) for path, text in unread]
    _summarise(profile)
    tell_gaps(profile.ranks)
    _tell_packed(profile, seen, base)
    return profile


def _leave_out_empty(rank: Rank) -> None:
    """A file without a byte is an absent one, and told: what other files say is not held against it."""
    empty: dict[Path, list[str]] = {}
    for name, reference in list(rank.tables.items()):
        nothing = [path for path in reference.paths if path.is_file() and not path.stat().st_size]
        for path in nothing:
            empty.setdefault(path, []).append(name)
        if len(nothing) == len(reference.paths):
            del rank.tables[name]
        elif nothing:
            paths = tuple(path for path in reference.paths if path not in nothing)
            rank.tables[name] = replace(reference, paths=paths)
    for path, lost in empty.items():
        rank.problems.append(Problem(rank.relative(path), "is empty", lost=tuple(lost)))


def _tell_packed(profile: Profile, looked_at: Iterable[Path], base: Path) -> None:
    """Tells each file that somebody compressed by itself, so that nobody takes it for read."""
    told: set[Path] = set()
    first = {rank.root: rank for rank in reversed(profile.ranks)}  # thousands of devices may share one folder
    for rank in first.values():
        of_rank = set(unread_of_rank(rank)) - told if is_folder(rank.root) else set()
        for path in sorted(of_rank):
            rank.note_path(str(path), NOT_READ)
        told |= of_rank
    others = (folder for folder in looked_at if first.keys().isdisjoint((folder, *folder.parents)))
    profile.problems += [Problem(_relative(path, base), NOT_READ) for path in unread_in(others)]


def _require_one_job(found: Mapping[Path, Sequence[Rank]]) -> None:
    """Raises UsageError where two named folders cannot be of one job: their frameworks or the sizes of their worlds
    differ, or both hold several ranks and some of them are the same. One report of both would state the step of one
    beside the shares of the other. Two captures of one rank are no two jobs: the newest of them counts."""
    first: dict[str, tuple[Path, str]] = {}
    several: dict[Path, dict[int, Path]] = {}
    for folder, ranks in found.items():
        sizes = {rank.info.get("world_size") for rank in ranks}
        for what, values in (("framework", {rank.framework for rank in ranks} - {"unknown"}), ("world size", sizes)):
            value = str(next(iter(values))) if len(values) == 1 and None not in values else None
            other, told = first.setdefault(what, (folder, value)) if value else (folder, value)
            if value != told:
                raise _two_jobs(other, folder, f"{what} {told}", f"{what} {value}")
        own = {rank.rank: rank.root for rank in ranks if rank.rank_known and rank.layout != _MIXED}
        for other, theirs in several.items():
            twice = [rank for rank in sorted(own) if theirs.get(rank, own[rank]) != own[rank]]
            if twice and len(own) > 1:
                said = f"rank {', '.join(map(str, twice[:3]))}" + (", …" if len(twice) > 3 else "")
                raise _two_jobs(other, folder, said, said)
        if len(own) > 1:
            several[folder] = own


def _two_jobs(first: Path, second: Path, one: str, other: str) -> UsageError:
    return UsageError(
        f"these profiles cannot be joined into one: {first} has {one}, {second} has {other}",
        hint="name the ranks of one job; `advisor compare BEFORE AFTER` compares two profiles",
    )


def explain_folders(paths: Sequence[str | Path]) -> list[Recognition]:
    """Why each folder looked at was or was not recognised, for `advisor doctor`."""
    seen: dict[Path, Recognition] = {}
    for path in paths:
        root = _existing(path)
        if root.is_dir():
            _search(root, root, Profile(str(path)), seen)
    return list(seen.values())


def _existing(path: str | Path) -> Path:
    if not str(path).strip():
        raise UsageError("the name of the profile is empty", hint="is a variable not set? `.` is the current folder")
    given = Path(path).expanduser()
    try:
        exists = given.exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        raise UsageError("no such file or folder", place=str(path), hint="check the path of the profiler result")
    return given if given.name and given.name != ".." else given.resolve()


def _common_base(roots: Sequence[Path]) -> Path:
    parents = [root.parent if not root.is_dir() else root for root in roots]
    base = parents[0]
    while not all(base == parent or base in parent.parents for parent in parents):
        if base == base.parent:
            return parents[0]
        base = base.parent
    return base


def _search(root: Path, base: Path, profile: Profile, seen: dict[Path, Recognition]) -> list[Rank]:
    """All ranks below a folder. A folder that a layout knows as a rank's is not searched further."""
    found: list[Rank] = []
    walk = Walk(root)
    for listing in walk:
        if listing.path != root and is_known(listing.name):
            walk.prune(listing.path)  # what lies in it took a file's place, and is no capture of its own
            profile.problems.append(Problem(_relative(listing.path, base), why_unreadable(IsADirectoryError())))
            continue
        try:
            found += _ranks_in(listing, walk, base, seen)
            if listing.path in seen and seen[listing.path].recognised:
                walk.recognised()
        except OSError as error:
            text = f"cannot be read: {error.strerror or error}"
            profile.problems.append(Problem(_relative(listing.path, base), text))
        except Exception as error:
            log.debug("folder %s", listing.path, exc_info=True)
            text = f"cannot be recognised: {type(error).__name__}: {error}"
            profile.problems.append(Problem(_relative(listing.path, base), text))
    for path, problem in walk.problems:
        profile.problems.append(Problem(_relative(path, base), problem))
    return found


def _ranks_in(listing: Listing, walk: Walk, base: Path, seen: dict[Path, Recognition]) -> list[Rank]:
    """The ranks of one folder, and what each layout said of it."""
    judged = [(layout, layout.judge(listing)) for layout in LAYOUTS if not layout.by_files]
    first = next((layout for layout, judgement in judged if judgement.recognised), None)
    ranks = first.recognise(listing, base) if first is not None else []
    if ranks and all(layout.holds_all for layout, judgement in judged if judgement.recognised):
        walk.prune(listing.path)
    elif listing.files and not ranks:
        for layout in (layout for layout in LAYOUTS if layout.by_files):
            judged.append((layout, layout.judge(listing)))
            ranks = ranks or layout.recognise(listing, base)
    seen[listing.path] = Recognition(listing.path, tuple(judgement for _, judgement in judged))
    return ranks


def _loose_files(files: Sequence[Path], base: Path, profile: Profile) -> list[Rank]:
    """Ranks from files named one by one: files of one folder belong together."""
    found: list[Rank] = []
    by_folder: dict[Path, list[Path]] = {}
    for path in files:
        by_folder.setdefault(path.parent, []).append(path)
    for folder, group in by_folder.items():
        given = Listing(folder, files=[path.name for path in group])
        wanted = set(group)
        single = (layout for layout in LAYOUTS if layout.single and layout.judge(given).recognised)
        ranks = [rank for layout in single for rank in layout.recognise(given, base) if _keep_only(rank, wanted)]
        taken = _paths(ranks)
        own = loose.ranks_of(folder, [path for path in group if path not in taken], base)
        ranks += [rank for rank in own if rank.tables or (rank.problems and not ranks)]
        used = _paths(ranks)
        for path in group:
            if path not in used and not re.fullmatch(
                r"(profiler_info|profiler_metadata|communication_group).*", path.name
            ):
                text = NOT_READ if is_packed(path.name) else why_unread(path)
                text = text or "is not recognised by its name as a file of a profile; not read"
                profile.problems.append(Problem(_relative(path, base), text))
        found += [rank for rank in ranks if rank.tables]
    return found


def _paths(ranks: Sequence[Rank]) -> set[Path]:
    """The files that these ranks' tables stand in."""
    return {path for rank in ranks for ref in rank.tables.values() for path in ref.paths}


def _keep_only(rank: Rank, wanted: set[Path]) -> bool:
    rank.tables = {table: ref for table, ref in rank.tables.items() if set(ref.paths) & wanted}
    return bool(rank.tables)


def _relative(path: Path, base: Path) -> str:
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        return str(path)


def _shown(rank: Rank) -> str:
    """The folder of a recording; the first file of one that shares its folder with others."""
    alone = rank.layout != "files" or not rank.tables
    return _relative(rank.root if alone else next(iter(rank.tables.values())).paths[0], rank.base)


def _merge(found: Iterable[Rank], profile: Profile) -> list[Rank]:
    """One entry a rank: the newest of several captures; a cluster analysis fills what rank folders lack."""
    known: list[Rank] = []
    unknown: list[Rank] = []
    analysed: dict[int, Rank] = {}
    for rank in found:
        if rank.layout == _MIXED:
            analysed.setdefault(rank.rank, rank)
        elif rank.rank_known:
            known.append(rank)
        else:
            unknown.append(rank)
    of_rank: dict[int, list[Rank]] = {}
    for rank in _of_one_run(known, profile):
        of_rank.setdefault(rank.rank, []).append(rank)
    merged: list[Rank] = []
    for number in sorted(of_rank):
        captures = sorted(sorted(of_rank[number], key=_length_of_name), key=ascend.started, reverse=True)
        parts = [other for other in captures[1:] if other.root == captures[0].root]
        older = [other for other in captures[1:] if other.root != captures[0].root]
        for other in parts:
            for table, ref in other.tables.items():
                captures[0].tables.setdefault(table, ref)
        if older:
            names = ", ".join(_relative(other.root, other.base) for other in older[:3])
            more = f" and {len(older) - 3} more" if len(older) > 3 else ""
            text = f"rank {number} is there {len(older) + 1} times; this newest one is used, left out: {names}{more}"
            profile.problems.append(Problem(_relative(captures[0].root, captures[0].base), text))
        merged.append(captures[0])
    unknown = with_one_collection(_without_copies(unknown, profile), _shown, merged)
    unknown = without_earlier(unknown, _shown)
    together = {id(rank) for rank in _of_one_run(merged + unknown, profile)}
    merged, unknown = ([rank for rank in part if id(rank) in together] for part in (merged, unknown))
    of_number = {rank.rank: rank for rank in merged}
    for number, extra in analysed.items():
        own = of_number.get(number)
        if own is None and not (len(unknown) == 1 and len(analysed) == 1):
            merged.append(extra)
            continue
        own = own or unknown[0]
        for table, ref in extra.tables.items():
            own.tables.setdefault(table, ref)
        own.groups = own.groups or extra.groups
        own.info.setdefault("stages", extra.info.get("stages"))
    return merged + unknown


def _of_one_run(ranks: Sequence[Rank], profile: Profile) -> list[Rank]:
    kept, told = of_one_run(ranks, _shown)
    profile.problems += [Problem(folder, text) for folder, text in told]
    return kept


def _without_copies(ranks: Sequence[Rank], profile: Profile) -> list[Rank]:
    """The ranks without those whose files repeat another one's byte for byte: a copy is no second rank."""
    kept: dict[tuple[tuple[str, int], ...], list[Rank]] = {}
    result = []
    for rank in sorted(ranks, key=_length_of_name):
        try:
            files = sorted({path for ref in rank.tables.values() for path in ref.paths})
            key = ((rank.device or "", 0), *((path.name, path.stat().st_size) for path in files))
            copied = next((o for o in kept.get(key, ()) if files and _equal_files(files, o)), None)
        except OSError:
            result.append(rank)
            continue
        if copied is None:
            kept.setdefault(key, []).append(rank)
            result.append(rank)
            continue
        text = f"holds the same files as {_relative(copied.root, copied.base)}: a copy, left out"
        profile.problems.append(Problem(_relative(rank.root, rank.base), text))
    chosen = {id(rank) for rank in result}
    return [rank for rank in ranks if id(rank) in chosen]


def _length_of_name(rank: Rank) -> int:
    """Of its folder: whoever copies one adds to its name, which tells the host otherwise."""
    return len(rank.root.name)


def _equal_files(files: Sequence[Path], other: Rank) -> bool:
    others = sorted({path for ref in other.tables.values() for path in ref.paths})
    return all(filecmp.cmp(a, b, shallow=False) for a, b in zip(files, others, strict=True))


def _number(ranks: list[Rank], profile: Profile) -> list[Rank]:
    """Gives ranks without a number the lowest free ones, in the order of their folders, and says so."""
    taken = {rank.rank for rank in ranks if rank.rank_known}
    unknown = [rank for rank in ranks if not rank.rank_known]
    free = (number for number in range(len(ranks) + len(taken) + 1) if number not in taken)
    for rank, number in zip(unknown, free, strict=False):
        rank.rank = number
        ascend.link_ranks(rank)
        if len(ranks) > 1:
            text = "says nowhere which rank it is; taken as the lowest free one, in the order of the folders"
            profile.problems.append(Problem(_relative(rank.root, rank.base), text))
    return sorted(ranks, key=lambda rank: rank.rank)


def _common(values: Iterable[str], default: str) -> str:
    counts = Counter(value for value in values if value and value != default)
    return counts.most_common(1)[0][0] if counts else default


def _is_closed(ranks: Sequence[Rank]) -> bool:
    """Whether every rank tells its groups and all their members are at hand: the world, whatever its numbering."""
    at_hand = {rank.rank for rank in ranks}
    if any(rank.info.get("world_size") or rank.info.get("rank_size") or not rank.groups for rank in ranks):
        return False
    groups = {id(members): members for rank in ranks for members in rank.groups.values()}  # most share one object
    return at_hand == {member for members in groups.values() for member in members}


def _summarise(profile: Profile) -> None:
    """What the ranks say together: layout, framework, versions, settings, groups, sizes.

    Older MindSpore numbers its files by device, so that a lone number there says nothing of the size of the world.
    """
    ranks = profile.ranks
    profile.layout = _common((rank.layout for rank in ranks), "files")
    profile.framework = _common((rank.framework for rank in ranks), "unknown")
    names: dict[str, str] = {}
    numbers = [rank.rank for rank in ranks]
    older = any(rank.layout == "mindspore_legacy" for rank in ranks)
    sizes = [max(numbers) + 1] if ranks and not (older and numbers != list(range(len(ranks)))) else [0]
    stated: Parallelism | None = None
    stages: Sequence[tuple[int, ...]] = ()
    for rank in ranks:
        profile.versions.update(rank.info.get("versions", {}))
        settings = rank.info.get("settings")
        if settings:
            profile.settings.append({"rank": rank.rank, **settings})
        profile.groups.update(rank.groups)
        names.update(rank.info.get("group_names", {}))
        sizes.append(rank.info.get("world_size") or rank.info.get("rank_size") or 0)
        parallelism = rank.info.get("parallelism")
        if isinstance(parallelism, Parallelism) and parallelism.source != "unknown":
            stated = stated or parallelism
        stages = stages or rank.info.get("stages") or ()
    sizes += [max(members) + 1 for members in profile.groups.values() if members]
    if ranks:
        stated_size = any(sizes[1:])
        size, closed = resolve_groups(ranks, profile.groups, largest(sizes), links_in)
        sizes.append(size)
        profile.world_size = len(ranks) if _is_closed(ranks) else largest(sizes) or None
        profile.world_is_stated = any(rank.info.get("world_size") or rank.info.get("rank_size") for rank in ranks)
        profile.world_is_told = _is_closed(ranks) or closed or stated_size or sizes[-1] > sizes[0]
    for number, members in enumerate(stages):
        profile.groups[f"stage {number}"] = members
    if stated is None:
        stated = infer_parallelism(profile.groups, names)
    if stated is None and len(stages) > 1:
        stated = Parallelism(pipeline=len(stages), source="stages in the cluster analysis")
    profile.parallelism = stated or parallelism_of([rank.root for rank in ranks]) or Parallelism()
