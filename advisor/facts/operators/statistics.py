"""Operator types from tables that sum kernels up: op_statistic.csv and the tables of older MindSpore.

The former holds the whole profile, most of the latter one step's average, with the AI CPU's operators in a table of
their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.basics.units import show
from advisor.facts.device.kernel_time import is_communication
from advisor.facts.operators.gates import is_counted
from advisor.facts.operators.kinds import (
    AICPU_CORES,
    dtypes,
    is_conversion,
    is_cube,
    is_fetch,
    is_fused_update,
    moved_bytes,
)
from advisor.facts.operators.patterns import MOST, SmallRuns
from advisor.facts.operators.reduction import OperatorRow, Operators
from advisor.facts.operators.shapes.work import FULL as FLOAT32
from advisor.facts.operators.shapes.work import LAUNCH_US, REACH
from advisor.facts.operators.types.cases import call_text
from advisor.facts.operators.types.data_types import DataTypes
from advisor.facts.operators.types.on_aicpu import OnAicpu
from advisor.facts.operators.types.row import TypeRow
from advisor.facts.operators.updates import SmallUpdates
from advisor.facts.recording.counts import HOST_CORE, executions_of_table
from advisor.facts.recording.limits import section
from advisor.facts.recording.sums import aicpu_of, has_evaluation, operators_of, whole_time
from advisor.knowledge.cards import bandwidth
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Signature, operator_name

if TYPE_CHECKING:
    import pandas as pd


def from_statistics(rank: Rank) -> Operators | None:
    """Types and operators without times of day, shapes or steps; None where no table tells."""
    mixed = has_evaluation(rank.read("operators") if rank.has("operators") else None)  # a statistic of types sums both
    order = ("operators",) if mixed else ("operator_types", "operators")
    table = next((t for t in order if rank.has(t)), None)
    if table is None:
        return None
    frame = _device_rows(rank, table)
    if frame is None or frame.empty or "total_us" not in frame:
        return None
    total: dict[str, float] = defaultdict(float)
    count: dict[str, float] = defaultdict(float)
    cores: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, core, times, us in zip(frame["type"], frame["core"], frame["count"], frame["total_us"], strict=True):
        if not isinstance(name, str) or us != us or us < 0:
            continue
        total[name] += float(us)
        count[name] += float(times) if times == times else 0.0
        cores[name][core if isinstance(core, str) else ""] += float(us)
    if not total:
        return None
    if table == "operator_types":
        _tell_apart(rank, sum(total.values()))
    of_one = bool("steps" in frame and (frame["steps"] == 1).all())
    executions = 1 if of_one else executions_of_table(rank)
    averaged = of_one or (table == "operators" and executions == 1)
    extra = _aicpu_rows(rank, executions) if averaged or executions > 1 else {}
    for name, (times, us) in extra.items():
        total[name] += us
        count[name] += times
        cores[name]["AI_CPU"] += us
    told, longest, shortest = _inputs(rank), _longest(frame), _shortest(frame)
    types = {}
    for name in sorted(total, key=lambda n: (-total[n], n)):
        core = max(cores[name], key=cores[name].__getitem__)
        signature = Signature(name, core, "", "", "", "", "", "")
        aicpu = sum(us for c, us in cores[name].items() if c.upper() in AICPU_CORES)
        types[name] = TypeRow(
            name, core, np.array([count[name]]), np.array([total[name]]), np.array([np.nan]),
            communication=is_communication(signature), conversion=is_conversion(name), cube=is_cube(signature),
            aicpu=OnAicpu(0.0 if is_fetch(name) else aicpu), longest_us=longest.get(name),
            shortest_us=shortest.get(name), **told.get(name, {}),
        )  # fmt: skip
    idle = [name for name in total if types[name].communication or is_fetch(name)]  # nobody computes in these
    compute = sum(total.values()) - sum(total[name] for name in idle)
    if whole := whole_time(frame):  # of the types in the table alone
        compute = whole + sum(us for name, (_, us) in extra.items() if not is_fetch(name))
        compute -= sum(total[name] - extra.get(name, (0, 0.0))[1] for name in idle)
    types |= _collectives(rank, types) if table == "operator_types" else {}
    unknown = np.full(1, np.nan)
    # one fused update runs behind the other: here the sum is the time, and no names tell of an update that is not fused
    fused = [row for row in types.values() if is_fused_update(row.type)]
    update_us = np.array([sum(total[row.type] for row in fused)]) if fused else unknown
    updates = np.array([sum(count[row.type] for row in fused)]) if fused else unknown
    return Operators(
        ("0",), dict(_most(types)), _operators(rank), (), np.array([compute]), unknown, unknown, update_us, updates,
        unknown, SmallRuns(unknown, unknown, unknown, "", 0, unknown, unknown), bool(fused),
        ", ".join(row.type for row in fused[:3]),
        (rank.source(table, "type", "total_us"),), has_shapes=False, averaged=averaged,
        executions=0 if averaged or executions == 1 else executions, small_update=_small_updates(rank),
    )  # fmt: skip


def _small_updates(rank: Rank) -> SmallUpdates | None:
    """As of kernels (`small_updates`), of operators one by one, whose outputs are not told: an update writes no more
    than it reads."""
    frame = _device_rows(rank, "operators") if rank.has("operators") else None
    if frame is None or "input_dtypes" not in frame:
        return None
    # an empty list would choose columns
    update = frame[np.array([isinstance(kind, str) and is_fused_update(kind) for kind in frame["type"]], bool)]
    reads = [
        moved_bytes(Signature("", "", "", _told(shapes), _told(kinds), "", "", ""))
        for shapes, kinds in zip(update["input_shapes"], update["input_dtypes"], strict=True)
    ]
    need = 2e6 * np.array(reads, float) / bandwidth(str(rank.info.get("npu") or ""))
    calls = update["count"].fillna(1.0).to_numpy(float)
    each = update["total_us"].to_numpy(float) / calls
    small = (need > 0) & (each < LAUNCH_US) & (need < REACH * each)
    return SmallUpdates(*(np.array([values[small].sum()]) for values in (calls, calls * each, calls * need)))


def _most(types: dict[str, TypeRow]) -> Iterator[tuple[str, TypeRow]]:
    """The types that take most time of those that compute, those whose number tells something, all that exchange."""
    computing = [each for each in types.items() if not each[1].apart]
    yield from computing[: 2 * MOST]
    yield from (each for each in computing[2 * MOST :] if is_counted(each[0]))
    yield from (each for each in types.items() if each[1].apart)


def _collectives(rank: Rank, known: Container[str]) -> dict[str, TypeRow]:
    """Types of collectives that a table of their own sums up, where the table of all types does not."""
    frame = rank.read("collective_types") if rank.has("collective_types") else None
    if frame is None or "total_us" not in frame or "count" not in frame:
        return {}
    usable = frame[frame["type"].notna() & (frame["total_us"] > 0) & frame["count"].notna()]
    longest, unknown = _longest(usable), np.full(1, np.nan)
    return {
        str(name): TypeRow(
            str(name), "COMMUNICATION", np.array([rows["count"].sum()]), np.array([rows["total_us"].sum()]), unknown,
            communication=True, longest_us=longest.get(str(name)), apart=True,
        )
        for name, rows in usable.groupby("type") if name not in known
    }  # fmt: skip


def _longest(frame: pd.DataFrame) -> dict[str, float]:
    """Type -> how long its longest call takes, where the table tells and it is a part of their sum."""
    if "max_us" not in frame:
        return {}
    told = frame[(frame["max_us"] > 0) & (frame["max_us"] <= frame["total_us"])]
    return {str(name): float(us) for name, us in told.groupby("type")["max_us"].max().items()}


def _shortest(frame: pd.DataFrame) -> dict[str, float]:
    """Type -> what its calls would take at the length of the shortest in their row, where each row tells that."""
    if "min_us" not in frame or "count" not in frame:
        return {}
    least = frame["count"] * frame["min_us"].where(frame["min_us"] > 0)
    sums = least.where(least <= frame["total_us"]).groupby(frame["type"]).agg(lambda each: each.sum(skipna=False))
    return {str(name): float(us) for name, us in sums.items() if us == us}


def _tell_apart(rank: Rank, of_types: float) -> None:
    """Notes where the operators one by one take another time than their types: both are sums of the same step."""
    frame = _device_rows(rank, "operators") if rank.has("operators") else None
    if frame is None or frame.empty:
        return
    single = float(frame["total_us"].sum())
    if abs(single - of_types) > section("contradiction")["sum_share"] * max(single, of_types):
        types = rank.tables["operator_types"].paths[0].name
        text = (
            f"lists operators of {show(single, 'us')}, {types} counts {show(of_types, 'us')} for the same step: rows "
        )
        file = rank.relative(rank.tables["operators"].paths[0])
        rank.note(file, text + ("are missing" if single < of_types else f"of {types} are missing"))


def _aicpu_rows(rank: Rank, executions: int) -> dict[str, tuple[float, float]]:
    """AI CPU operator -> (calls, microseconds) of what the other table sums up: so many executions, all that were
    recorded, or one step; empty where the number of steps is not told."""
    frame = aicpu_of(rank)
    phases = rank.read("step_phases") if rank.has("step_phases") and executions == 1 else None
    steps = 1 if executions > 1 else 0 if phases is None else len(phases)
    if frame is None or not steps:
        return {}
    usable = frame[frame["total_us"].notna() & (frame["total_us"] > 0)]
    sums = usable.groupby("name")["total_us"].agg(["count", "sum"]) / steps
    return {str(name): (float(times), float(us)) for name, times, us in sums.itertuples()}


def _inputs(rank: Rank) -> dict[str, dict[str, Any]]:
    """Type -> what the table of single operators says of its inputs, as fields of a type's row."""
    frame = _device_rows(rank, "operators") if rank.has("operators") else None
    if frame is None or "input_dtypes" not in frame:
        return {}
    found: dict[str, dict[str, Any]] = {}
    known = frame[frame["total_us"].notna() & (frame["input_dtypes"].fillna("") != "")]
    for name, rows in known.groupby("type"):
        longest = rows.loc[rows["total_us"].idxmax()]
        full = rows[[dtypes(kinds)[0] in FLOAT32 for kinds in rows["input_dtypes"]]]
        top = full.loc[full["total_us"].idxmax()] if len(full) else None
        found[str(name)] = {
            "dtypes": longest["input_dtypes"],
            "shapes": _told(longest["input_shapes"]),
            "data_types": DataTypes(
                float(rows["total_us"].sum()),
                float(full["total_us"].sum()),
                "" if top is None else call_text(top["name"], top["input_shapes"]),
                "" if top is None else top["input_dtypes"],
            ),
        }
    return found


def _told(value: object) -> str:
    return value if isinstance(value, str) else ""


def _device_rows(rank: Rank, table: str) -> pd.DataFrame | None:
    """The table without operators that ran on the host's processor: those cost no device time."""
    frame = operators_of(rank, table)
    return None if frame is None else frame[frame["core"] != HOST_CORE]


def _operators(rank: Rank) -> tuple[OperatorRow, ...]:
    frame = _device_rows(rank, "operators") if rank.has("operators") else None
    if frame is None or frame.empty:
        return ()
    rows: dict[str, tuple[str, float, float]] = {}
    columns = (frame[name] for name in ("name", "type", "core", "count", "total_us"))
    for name, kind, core, count, us in zip(*columns, strict=True):
        signature = Signature(str(kind), core if isinstance(core, str) else "", "", "", "", "", "", "")
        if isinstance(name, str) and us == us and not is_communication(signature):
            short = operator_name(name)
            _, before, calls = rows.get(short, ("", 0.0, 0.0))
            rows[short] = (str(kind), before + float(us), calls + (float(count) if count == count else 1.0))
    best = sorted(rows, key=lambda n: -rows[n][1])[:MOST]
    return tuple(OperatorRow(n, rows[n][0], int(rows[n][2]), rows[n][1]) for n in best)
