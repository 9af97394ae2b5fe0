"""hccl_raw_<rank>.csv: what each collective cost, and over which links.

One row a step: communication_cost and wait_cost (ms) of the whole step, `link_info` {"source-destination": {transport:
[ms, KB of 1000 bytes, rate]}} and `communication_operator_cost` {operation: [step, cost ms, wait ms, links]}. The row
called `-` is an average. The rates are sums over operations and are never used: a rate is size over time.

Link ids are positions in a group whose members the file does not tell: rank 2's "1-0" can be 3 -> 2. They are
translated where that is certain, else NA (the end that is this rank itself is always known):

- all ids are global where in every rank's file the id common to all links is that rank (`ids="global"`);
- a collective whose links show as many ids as the rank's stage has members runs over the stage;
- a receive comes from the same position in a neighbouring stage: its group of two is sorted, so id 0 is the stage
  before and id 1 the stage after. Its destination id counts another group than its source id.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from advisor.basics.units import whole
from advisor.sources.older.legacy_files import assemble, finite, read_sheet, texts
from advisor.sources.older.legacy_steps import read_step_sheet, split_label
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef, nothing
from advisor.sources.text.csvfiles import read_rows
from advisor.sources.text.textfiles import TooLarge

if TYPE_CHECKING:
    import pandas as pd

_LINK = re.compile(r"\s*([0-9]+)\s*-\s*([0-9]+)\s*")
_P2P = re.compile(r"send|recv|receive", re.IGNORECASE)


class Operation(Struct, frozen=True):
    """One collective of one step as the file gives it: milliseconds."""

    step: str
    label: str
    transit_ms: float | None
    wait_ms: float | None
    links: Mapping[str, Any]

    @property
    def name(self) -> str:
        return split_label(self.label)[1]

    @property
    def kind(self) -> str:
        return "p2p" if _P2P.search(self.name) else "collective"


def read_operations(path: Path, note: Note) -> Iterator[Operation]:
    """Every operation of every step; the average row and unreadable cells are left out, the latter noted."""
    frame = read_sheet(path, note)
    if frame is None:
        return
    steps, cells = texts(frame, "step_num"), texts(frame, "communication_operator_cost", document=True)
    if steps is None or cells is None:
        note(str(path), "lacks step_num or communication_operator_cost; it was not read")
        return
    broken: list[str] = []
    told: set[str] = set()
    again: list[str] = []
    for step, cell in zip(steps, cells, strict=True):
        if whole(step) is None or step == "0":
            if step not in ("", "-", "0"):
                note(str(path), f"a row has no step number ({step[:20]!r}) and was left out")
            continue
        if step in told:
            again.append(step)
            continue
        told.add(step)
        document = _decode(cell)
        if not isinstance(document, dict):
            broken.append(step)
            continue
        for label, values in document.items():
            if not isinstance(values, list) or len(values) < 4:
                broken.append(step)
                continue
            links = values[3] if isinstance(values[3], dict) else {}
            yield Operation(step, str(label), finite(values[1]), finite(values[2]), links)
    if again:
        some = ", ".join(dict.fromkeys(again[:50]))
        text = f"tells of step {some} more than once, as with rows of another rank; the first is used"
        note(str(path), text, ("collectives", "links"))
    if broken:
        some = ", ".join(dict.fromkeys(broken[:50]))
        note(str(path), f"operations of step {some} are no valid JSON or incomplete; they are left out")


def _decode(cell: str) -> Any:
    """The JSON in a cell, or None. Large cells need the fast decoder; the other one also takes NaN."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None


@reader("legacy.collectives")
def read_collectives(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """collectives: transit and wait of each operation; elapsed from the step trace (second path), else both added.

    No start: device counters of different hosts have nothing in common.
    """
    elapsed = _elapsed(reference.paths[1], note) if len(reference.paths) > 1 else {}
    rows = [
        (o.step, o.name, o.kind, elapsed.get((o.step, split_label(o.label)), _together(o)),
         _to_us(o.transit_ms), _to_us(o.wait_ms))
        for o in read_operations(reference.paths[0], note)
    ]  # fmt: skip
    if not rows:
        return None
    names = ("step", "name", "kind", "elapsed_us", "transit_us", "wait_us")
    data = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return assemble("collectives", data, columns)


def _together(operation: Operation) -> float | None:
    if operation.transit_ms is None or operation.wait_ms is None:
        return None
    return _to_us(operation.transit_ms + operation.wait_ms)


def _to_us(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds * 1e3


def _elapsed(trace: Path, note: Note) -> dict[tuple[str, tuple[str, str]], float]:
    found = read_step_sheet(trace, note)
    table = found.collectives(note) if found is not None else {}
    if "duration_us" not in table:
        return {}
    keys = zip(table["step"], table["stream"], table["name"], table["duration_us"], strict=True)
    return {(step, (stream, name)): duration for step, stream, name, duration in keys}


@reader("legacy.links")
def read_links(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """links: one row an operation, link and transport. Options: rank, ids ("global" or "local"), stages (members of
    each pipeline stage, empty where unknown)."""
    path, options = reference.paths[0], reference.options
    rank, stages = int(options["rank"]), [tuple(stage) for stage in options.get("stages", ())]
    rows: list[tuple[Any, ...]] = []
    unreadable = 0
    for operation in read_operations(path, note):
        ends = {label: pair for label in operation.links if (pair := split_link(label)) is not None}
        unreadable += len(operation.links) - len(ends)
        if options.get("ids") == "global" and operation.kind == "collective":
            known: Mapping[str, tuple[int | None, int | None]] = ends
        else:
            known = globalise(ends, rank, stages, operation.kind)
        for label, pair in ends.items():
            transports = operation.links[label]
            for transport, values in transports.items() if isinstance(transports, dict) else ():
                time, size = _time_and_size(values)
                if time is None or size is None:
                    unreadable += 1
                    continue
                source, destination = known.get(label, pair)
                rows.append((operation.step, operation.name, source, destination, str(transport).upper(),
                             size * 1e3, time * 1e3, 1.0, ""))  # fmt: skip
    if unreadable:
        note(str(path), f"{unreadable} links have no usable ends, time or size; they are left out")
    if not rows:
        return None
    names = ("step", "name", "source", "destination", "transport", "size_bytes", "time_us", "operations", "aggregate")
    data = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return assemble("links", data, columns)


def _time_and_size(values: Any) -> tuple[float | None, float | None]:
    if not isinstance(values, list) or len(values) < 2:
        return None, None
    return finite(values[0]), finite(values[1])


def split_link(label: str) -> tuple[int, int] | None:
    """("1-0") -> (1, 0), None for anything else."""
    match = _LINK.fullmatch(str(label))
    return (int(match[1]), int(match[2])) if match else None


def own_ids(pairs: Iterable[tuple[int, int]]) -> set[int]:
    """Ids that take part in every link: this rank's own id is one of them."""
    sets = [set(pair) for pair in pairs]
    return set.intersection(*sets) if sets else set()


def globalise(
    ends: Mapping[str, tuple[int, int]], rank: int, stages: Sequence[tuple[int, ...]], kind: str
) -> dict[str, tuple[int | None, int | None]]:
    """Global (source, destination) of each link of one operation of `rank`; None where it can't be known."""
    place = next((i for i, members in enumerate(stages) if rank in members), None)
    if kind == "p2p":
        return {label: (_neighbour(pair[0], rank, stages, place), rank) for label, pair in ends.items()}
    own = own_ids(ends.values())
    seen = {end for pair in ends.values() for end in pair}
    members = stages[place] if place is not None else ()
    if members and seen == set(range(len(members))) and members.index(rank) in own:
        return {label: (members[pair[0]], members[pair[1]]) for label, pair in ends.items()}
    if len(own) != 1:
        return dict.fromkeys(ends, (None, None))
    mine = own.pop()
    return {
        label: (rank if pair[0] == mine else None, rank if pair[1] == mine else None) for label, pair in ends.items()
    }


def _neighbour(position: int, rank: int, stages: Sequence[tuple[int, ...]], place: int | None) -> int | None:
    if place is None or position not in (0, 1):
        return None
    other = place + (1 if position else -1)
    if not 0 <= other < len(stages) or len(stages[other]) != len(stages[place]):
        return None
    return stages[other][stages[place].index(rank)]


def file_ids(path: Path) -> set[int]:
    """The ids that this rank may have in the first step's links; empty where the file does not tell."""
    rows = read_rows(path, nothing)
    try:
        header, first = next(rows, None), next(rows, None)
    except (OSError, TooLarge, csv.Error):
        return set()  # its reader tells
    if header is None or first is None or "link_info" not in header or len(first) < len(header):
        return set()
    links = _decode(first[header.index("link_info")])
    if not isinstance(links, dict):
        return set()
    return own_ids(pair for pair in map(split_link, links) if pair is not None)
