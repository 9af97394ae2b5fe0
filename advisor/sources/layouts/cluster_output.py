"""cluster_analysis_output: what a cluster analyser made of all ranks' profiles.

One rank per row of cluster_step_trace_time.csv. Its stage rows hold the largest value of each column, not a stage's
times, so only their members are used.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.base import Rank
from advisor.sources.database import cluster_database
from advisor.sources.folders import Judgement, Listing
from advisor.sources.metadata import add_group, as_int, ranks_of
from advisor.sources.readers import reader
from advisor.sources.reference import Note, Notes, TableRef, nothing
from advisor.sources.text.cluster_summary import find_summary
from advisor.sources.text.jsontext import load_json
from advisor.sources.text.textfiles import TooLarge, require_file, why_unreadable

if TYPE_CHECKING:
    import pandas as pd

STEPS, COMMUNICATION, MATRIX = "cluster_step_trace_time", "cluster_communication", "cluster_communication_matrix"
GROUPS = "communication_group"
_TOTAL = "Total Op Info"


def _file(listing: Listing, stem: str, ending: str) -> Path | None:
    found = listing.find(rf"(?:.*[^a-z_])?{stem}(?:[^a-z_].*)?\.{ending}")
    return found[0] if found else None


def judge(listing: Listing) -> Judgement:
    """Whether the folder holds the result of a cluster analysis."""
    for stem, ending in ((STEPS, "csv"), (COMMUNICATION, "json"), (MATRIX, "json"), (cluster_database.FILE, "db")):
        path = _file(listing, stem, ending)
        if path is not None:
            return Judgement("cluster", True, f"it holds {path.name}")
    if (summary := find_summary(listing)) is not None:
        return Judgement("cluster", True, f"it holds {summary.name}")
    text = f"it holds no {STEPS}.csv, {COMMUNICATION}.json, {MATRIX}.json or {cluster_database.FILE}.db"
    return Judgement("cluster", False, text)


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """Every rank the analysis names."""
    database = _file(listing, cluster_database.FILE, "db")
    steps = _file(listing, STEPS, "csv") or find_summary(listing) or database
    communication = _file(listing, COMMUNICATION, "json") or database
    matrix = _file(listing, MATRIX, "json") or database
    note = Notes()
    ranks: set[int] = set()
    stages: list[tuple[int, ...]] = []
    with_steps: set[int] = set()
    if steps is not None:
        with_steps, stages = _members(steps, note)
        ranks |= with_steps
    said = None if communication is None else _load(communication, COMMUNICATION, note)
    moved = None if matrix is None else _load(matrix, MATRIX, note)
    talking = {rank for _, _, _, entries in _operations(said) for rank in _numbers(entries)}
    linked = {
        int(match.group(1))
        for _, _, _, entries in _operations(moved)
        for link in entries
        if (match := re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", link))
    }
    for path, numbers in ((communication, talking), (matrix, linked)):
        if path is not None and path != database and not numbers:
            note(str(path), "holds no operation of any rank")
    ranks |= talking | linked
    groups, names, found_stages = read_groups(_file(listing, GROUPS, "json") or database, note)
    stages = stages or found_stages
    result = []
    for number in sorted(ranks):
        rank = Rank(number, listing.path, layout="cluster", base=base, groups=groups)
        options = {"rank": number}
        if steps is not None and number in with_steps:
            rank.tables["steps"] = TableRef("steps", (steps,), "cluster.steps", options)
        if communication is not None and number in talking:
            for table in ("collectives", "transports", "packets"):
                rank.tables[table] = TableRef(table, (communication,), "cluster.communication", options)
        if matrix is not None and number in linked:
            rank.tables["links"] = TableRef("links", (matrix,), "cluster.links", options)
        rank.info = {"group_names": names, "stages": stages}
        result.append(rank)
    for rank in result[:1]:
        note.tell(rank.note_path)
    return result


def _numbers(entries: Mapping[str, Any]) -> Iterator[int]:
    return (number for key in entries if (number := as_int(key)) is not None)


def _members(path: Path, note: Note) -> tuple[set[int], list[tuple[int, ...]]]:
    """Ranks with a row of their own, and the members of each stage, in order of their first rank."""
    from advisor.sources.text.csvfiles import read_rows, split_heading

    ranks: set[int] = set()
    stages: set[tuple[int, ...]] = set()
    try:
        require_file(path)
        coded = cluster_database.is_coded(path)
        rows = cluster_database.read_step_names(path, nothing) if coded else list(read_rows(path, nothing))
    except OSError as error:
        note(str(path), why_unreadable(error))
        return ranks, []
    except (TooLarge, csv.Error) as error:
        note(str(path), f"was not read: {error}")
        return ranks, []
    heading = [split_heading(cell)[0] for cell in rows[0]] if rows else []
    if "type" not in heading or "index" not in heading:
        note(str(path), "lacks the columns Type and Index, without which its rows cannot be told apart")
        return ranks, []
    kind, index = heading.index("type"), heading.index("index")
    lost = 0
    for row in rows[1:]:
        if len(row) <= max(kind, index):
            lost += 1
            continue
        members = tuple(int(text) for text in re.findall(r"[0-9]{1,9}", _whole(row[index])))
        if row[kind].strip().lower() == "rank" and len(members) == 1:
            ranks.add(members[0])
        elif row[kind].strip().lower() == "stage" and members:
            stages.add(tuple(sorted(members)))
        else:
            lost += 1
    if lost:
        note(str(path), f"{lost} rows name neither a rank nor the ranks of a stage and were left out")
    if not ranks and not coded:
        note(str(path), "has no row of a rank")
    return ranks, sorted(stages)


def _whole(index: str) -> str:
    """An index as the analyser writes it: spreadsheets and data frames make 0.0 of 0."""
    return re.sub(r"(?<=[0-9])\.0*(?![0-9])", "", index)


def read_groups(
    path: Path | None, note: Note
) -> tuple[dict[str, tuple[int, ...]], dict[str, str], list[tuple[int, ...]]]:
    """communication_group.json: (groups, names of groups, stages). The p2p groups are the pipeline's stages."""
    groups: dict[str, tuple[int, ...]] = {}
    names: dict[str, str] = {}
    if path is None:
        return groups, names, []
    if path.suffix == cluster_database.ENDING:
        data = cluster_database.read_groups(path, note)
        if data is None:
            return groups, names, []
    else:
        data = load_json(path, note)
    if not isinstance(data, dict):
        note(str(path), "holds no object: groups of communication are unknown")
        return groups, names, []
    collective = data.get("collective")
    for value in collective if isinstance(collective, list) else []:
        ranks = ranks_of(value)
        if ranks:
            groups[str(tuple(sorted(ranks)))] = tuple(sorted(ranks))
    details = data.get("comm_group_parallel_info")
    for entry in details if isinstance(details, list) else []:
        if not isinstance(entry, dict):
            continue
        ranks, name = ranks_of(entry.get("rank_set")), str(entry.get("pg_name") or "")
        if not ranks and entry.get("rank_set"):
            note(str(path), f"the ranks of group {str(entry.get('group_name'))[:40]} cannot be read")
        for group in (str(entry.get("group_name") or ""), str(entry.get("group_id") or "")):
            if ranks and group:
                add_group(groups, names, group, name, ranks)
    p2p = data.get("p2p")
    if not groups:
        note(str(path), "names no communication group")
    stages = sorted({tuple(sorted(ranks_of(value))) for value in (p2p if isinstance(p2p, list) else [])} - {()})
    return groups, names, stages if len(stages) > 1 else []


@lru_cache(maxsize=4)
def _cached(path: Path, what: str, changed: int) -> tuple[Any, Notes]:
    del changed
    notes = Notes()
    if path.suffix == cluster_database.ENDING:
        read = cluster_database.read_communication if what == COMMUNICATION else cluster_database.read_links
        return read(path, notes), notes
    data = load_json(path, notes)
    if odd := _odd_entries(data):
        notes(str(path), f"has {odd} entries that are not as in a communication file; they were left out")
    return data, notes


def _odd_entries(data: Any) -> int:
    """Groups, steps and operations of a cluster file that are there and hold nothing."""
    odd, level = 0, [data] if isinstance(data, dict) else []
    for _ in range(3):
        inside = [each for named in level for name, each in named.items() if name != _TOTAL]
        level = [each for each in inside if isinstance(each, dict)]
        odd += len(inside) - len(level)
    return odd


def _load(path: Path, what: str, note: Note) -> Any:
    """All ranks read the same file; it is decoded once per process."""
    try:
        data, notes = _cached(path, what, _changed(path))
    except OSError as error:
        note(str(path), why_unreadable(error))
        return None
    notes.tell(note)
    return data


def _operations(data: Any) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(group or "p2p", step, operation, what it holds) of a cluster file."""
    for group, steps in data.items() if isinstance(data, dict) else ():
        for step, operations in steps.items() if isinstance(steps, dict) else ():
            for name, entries in operations.items() if isinstance(operations, dict) else ():
                if name != _TOTAL and isinstance(entries, dict):
                    yield group, step, name, entries


@lru_cache(maxsize=2)
def _steps_of(
    path: Path, changed: int, columns: tuple[str, ...] | None
) -> tuple[pd.DataFrame | None, dict[int, list[int]], Notes]:
    """(the steps of all ranks, places of each rank's rows, notes)."""
    from advisor.sources.text.csvfiles import read_file
    from advisor.tables import TABLES, Column, Table

    del changed
    steps = TABLES["steps"]
    extended = Table(
        "steps", steps.meaning, (*steps.columns, Column("kind", "str", ("Type",)), Column("index", "str", ("Index",)))
    )
    notes = Notes()
    wanted = None if columns is None else (*columns, "kind", "index")
    read = cluster_database.read_step_frame if cluster_database.is_coded(path) else read_file
    frame = read(extended, path, wanted, notes)
    if frame is None:
        return None, {}, notes
    rows: dict[int, list[int]] = {}
    nobody = 0
    for place, (kind, index) in enumerate(zip(frame["kind"], frame["index"], strict=True)):
        if str(kind).lower() != "rank":
            continue
        rank = as_int(_whole(str(index)))
        if rank is None:
            nobody += 1
        else:
            rows.setdefault(rank, []).append(place)
    if nobody:
        notes(str(path), f"{nobody} rows are of a rank that is none; left out", (steps.name,))
    told = [name for name in steps.names if name in frame]
    of_ranks = frame.loc[sorted(place for places in rows.values() for place in places), told]
    for column in of_ranks.columns[of_ranks.notna().any() & of_ranks.isna().any()]:
        lost, heading = int(of_ranks[column].isna().sum()), steps.column(column).headings[0]
        if not notes.holds(f"values of {heading} are"):
            notes(str(path), f"{lost} of {len(of_ranks)} rows lack {heading}: cells were moved or lost", (steps.name,))
    return frame.drop(columns=["kind", "index"]), rows, notes


@reader("cluster.steps")
def read_steps(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """This rank's rows of cluster_step_trace_time.csv, which is read once a process."""
    from advisor.sources.frames import to_step

    path = reference.paths[0]
    try:
        every, rows, notes = _steps_of(path, _changed(path), None if columns is None else tuple(columns))
    except OSError as error:
        note(str(path), why_unreadable(error))
        return None
    if every is None:
        notes.tell(note)
        return None
    frame = every.iloc[rows.get(reference.options["rank"], [])]
    lacks = frame.loc[:, every.notna().any()].isna().any(axis=None)
    notes.tell(note, doubting=bool(lacks))  # what other ranks lost is not in doubt here
    again = frame.duplicated()
    if again.any():
        note(str(reference.paths[0]), f"{int(again.sum())} rows of rank {reference.options['rank']} stand there twice; "
                                      "each was used once")  # fmt: skip
    once: pd.DataFrame = frame[~again].reset_index(drop=True)
    if "step" in once:
        once["step"] = [to_step(name) for name in once["step"]]
    return once


Steps = dict[str, dict[str, dict[str, Any]]]
"""step -> section -> operation -> what a rank's own file would hold of it."""


@lru_cache(maxsize=2)
def _talks(path: Path, changed: int) -> tuple[dict[str, Steps], Notes]:
    """(cluster_communication.json taken apart by ranks, notes)."""
    data, notes = _cached(path, COMMUNICATION, changed)
    found: dict[str, Steps] = {}
    for group, step, name, entries in _operations(data):
        for rank, entry in entries.items():
            _section(found.setdefault(rank, {}), group, step)[name] = entry
    return found, notes


@lru_cache(maxsize=2)
def _moves(path: Path, changed: int) -> tuple[dict[str, Steps], Notes]:
    """(cluster_communication_matrix.json taken apart by the ranks where links start, notes)."""
    data, notes = _cached(path, MATRIX, changed)
    found: dict[str, Steps] = {}
    for group, step, name, entries in _operations(data):
        for link, entry in entries.items():
            steps = found.setdefault(link.partition("-")[0], {})
            _section(steps, group, step).setdefault(name, {})[link] = entry
    return found, notes


def _section(steps: Steps, group: str, step: str) -> dict[str, Any]:
    return steps.setdefault(step, {}).setdefault("p2p" if group == "p2p" else "collective", {})


def _own(
    taken_apart: Callable[[Path, int], tuple[dict[str, Steps], Notes]],
    reference: TableRef, note: Note,
) -> Steps:  # fmt: skip
    """This rank's part of a file that is read and taken apart once a process."""
    path = reference.paths[0]
    try:
        found, notes = taken_apart(path, _changed(path))
    except OSError as error:
        note(str(path), why_unreadable(error))
        return {}
    notes.tell(note)
    return found.get(str(reference.options["rank"]), {})


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns


@reader("cluster.communication")
def read_communication(
    reference: TableRef, columns: Sequence[str] | None, note: Note
) -> dict[str, pd.DataFrame | None]:
    """This rank's operations, transports and packets in cluster_communication.json."""
    from advisor.sources.text.jsonfiles import communication_frames

    del columns
    own = _own(_talks, reference, note)
    frames = communication_frames(own, str(reference.paths[0]), note)
    if own and frames[0] is None:  # what moved is told of operations that have no times
        note(str(reference.paths[0]), "holds no collectives")
    return dict(zip(("collectives", "transports", "packets"), frames, strict=True))


@reader("cluster.links")
def read_links(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The links that start at this rank; the cluster file names global ranks, so each link is in one rank's table."""
    from advisor.sources.text.jsonfiles import links_frame

    return links_frame(_own(_moves, reference, note), str(reference.paths[0]), columns, note)
