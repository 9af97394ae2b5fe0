"""The older MindSpore layout (1.x, 2.0 to 2.2): a flat folder of files that end in the number of their device.

One folder may hold the files of several devices; each number becomes a rank. Nothing here depends on the folder's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.model import Parallelism
from advisor.sources.base import Rank
from advisor.sources.folders import Judgement, Listing, list_folder, plain_name
from advisor.sources.older.legacy_clock import shares_clock
from advisor.sources.older.legacy_files import finite
from advisor.sources.reference import TableRef
from advisor.sources.text.jsontext import load_json
from advisor.sources.text.textfiles import read_text
from advisor.sources.text.unread import OF_GPU
from advisor.sources.topology import LARGEST_WORLD

LAYOUT = "mindspore_legacy"

_OWN = {
    "step_trace": r"step_trace_raw_([0-9]+)_detail_time\.csv",
    "cluster": r"ascend_cluster_analyse_.+_([0-9]+)\.csv",
    "hccl": r"hccl_raw_([0-9]+)\.csv",
    "aicore_types": r"aicore_intermediate_([0-9]+)_type\.csv",
    "aicore_detail": r"aicore_intermediate_([0-9]+)_detail\.csv",
    "pynative_types": r"pynative_op_intermediate_([0-9]+)_type\.csv",
    "pynative_detail": r"pynative_op_intermediate_([0-9]+)_detail\.csv",
    "framework": r"framework_raw_([0-9]+)\.csv",
    "aicpu": r"aicpu_intermediate_([0-9]+)\.csv",
    "aicpu_text": r"output_data_preprocess_aicpu_([0-9]+)\.txt",
    "flops_summary": r"flops_summary_([0-9]+)\.json",
    "flops": r"flops_([0-9]+)\.txt",
    "strategy": r"parallel_strategy_([0-9]+)\.json",
    "timeline": r"(?:ascend_)?timeline_display_([0-9]+)\.json",
    "gpu_timeline": r"gpu_timeline_display_([0-9]+)\.json",
    "operator_times": r"output_timeline_data_([0-9]+)\.txt",
    "dynamic_shapes": r"dynamic_shape_info_([0-9]+)\.json",
    "memory": r"memory_usage_summary_([0-9]+)\.json",
}
"""Files that only this layout has; one of them, or a data pipeline file below, makes a folder one of it."""
_SHARED = {
    "profiler_info": r"profiler_info_([0-9]+)\.json",
    "cpu_detail": r"cpu_op_detail_info_([0-9]+)\.csv",
    "cpu_types": r"cpu_op_type_info_([0-9]+)\.csv",
    "points": r"step_trace_point_info_([0-9]+)\.json",
    "clock": r"min_cycle_counter_([0-9]+)\.txt",
}
"""Files of this layout that others have too."""
_DATA = (
    r"(?:minddata_pipeline_raw|minddata_pipeline_summary|pipeline_profiling|minddata_cpu_utilization|minddata_aicpu|"
    r"device_queue_profiling|dataset_iterator_profiling|minddata_getnext_profiling)_([0-9]+)\.(?:csv|json|txt)"
)
_WITHOUT_USE = (
    r"(?:(?:ascend|gpu)_)?timeline_summary_[0-9]+\.json",
    r"flops_scope_[0-9]+\.json",
    r"output_op_compute_time_(?:detail_)?[0-9]+\.txt", r"output_format_data_hwts_[0-9]+\.txt",
    r"memory_usage_details_[0-9]+\.json",
    r"step_trace_point_info\.json", r"parallel_strategy\.json", r"gpu_op_(?:type|detail)_info_[0-9]+\.csv",
    r"gpu_activity_data_[0-9]+\.csv", r"cpu_op_execute_timestamp_[0-9]+\.txt", r"(?:cpu|gpu)_framework_[0-9]+\.txt",
    r"cpu_ms_memory_record_[0-9]+\.txt", r"host_ips_mapping\.txt", r"hccl\.json", r"task_id_full_op_name.*\.json",
)  # fmt: skip
_KNOWN = re.compile("|".join(f"(?:{each})" for each in (*_OWN.values(), *_SHARED.values(), _DATA, *_WITHOUT_USE)))
_NEWER = ("FRAMEWORK", "ASCEND_PROFILER_OUTPUT")
_OF_ALL = ("parallel_mode", "stage_num", "rank_size", "stage_devices", "context_mode", "ms_version")
"""Settings that hold for all ranks of a run: one rank's file tells them for the others."""
_CLUSTER_NAME = re.compile(r"ascend_cluster_analyse_(.+)_([0-9]+)_([0-9]+)_([0-9]+)\.csv")
_CONFIG_BYTES = 1 << 20
"""`config` stands first in parallel_strategy files, before a graph of any size."""

_WHOLE = {"step_phases", "cluster_phases", "operators", "operator_types"}
"""Tables of the whole run: beside them the timeline, of which the writer keeps a part, tells nothing more, unless its
clock tells which of the steps these are."""

Files = Mapping[str, Sequence[Path]]


def is_known(name: str) -> bool:
    """Whether a file name belongs to this layout, read by the advisor or not."""
    return _KNOWN.fullmatch(plain_name(name)) is not None


def judge(listing: Listing) -> Judgement:
    """Whether files of older MindSpore lie in the folder itself."""
    known = next((name for name in listing.files if is_known(name)), None)
    if known is None:
        return Judgement(LAYOUT, False, "it holds no files of older MindSpore")
    return Judgement(LAYOUT, True, f"it holds {known}, a file of older MindSpore")


def recognise(listing: Listing, base: Path) -> list[Rank]:
    """The devices whose files lie in the folder; empty where they cannot be read."""
    try:
        return find_ranks(listing.path, base)
    except OSError:
        return []


def find_ranks(folder: Path, base: Path) -> list[Rank]:
    """The devices whose files lie in `folder`, in order; empty where it is no folder of this layout."""
    if folder.name in _NEWER or folder.name.endswith(("_ascend_ms", "_ascend_pt")):
        return []
    by_rank = _collect(folder)
    ranks = []
    for number, files in sorted(by_rank.items()):
        rank = Rank(number, folder, layout=LAYOUT, framework="mindspore", base=base)
        _read_info(rank, files, folder)
        rank.tables.update(_find_tables(files))
        if "timeline" in files and "kernels" not in rank.tables:
            text = "is not read: other files tell of the whole run, and no whole step of it is known to lie in this one"
            rank.note(rank.relative(files["timeline"][0]), text)
        rank.tables.update(_find_data_tables(folder, number, rank))
        # its kernels are no NPU's: no core, unit or setting of ours is theirs
        for path in files.get("gpu_timeline", ()):
            rank.note(rank.relative(path), OF_GPU)
        ranks.append(rank)
    _resolve_stages(ranks)
    _add_communication(ranks, by_rank)
    numbers = [rank.rank for rank in ranks]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        text = ", ".join(map(str, numbers))
        ranks[0].note(ranks[0].relative(folder), f"holds devices {text}: some are missing, or these are different runs")
    return ranks


def find_host_operators(folder: Path, number: int) -> dict[str, TableRef]:
    """Operators that ran on the host (`core` HostCpu) in this folder: cpu_op_detail_info, else cpu_op_type_info."""
    for stem in ("cpu_op_detail_info", "cpu_op_type_info"):
        path = folder / f"{stem}_{number}.csv"
        if path.is_file():
            return {"operators": TableRef("operators", (path,), "legacy.operators")}
    return {}


def _collect(folder: Path) -> dict[int, dict[str, list[Path]]]:
    found: dict[int, dict[str, list[Path]]] = {}
    own: set[int] = set()
    for name in sorted(list_folder(folder).files, key=lambda name: plain_name(name) != name):  # copies last
        for kind, pattern in (*_OWN.items(), *_SHARED.items(), ("data", _DATA)):
            match = re.fullmatch(pattern, plain_name(name))
            if match:
                number = int(match[1])
                found.setdefault(number, {}).setdefault(kind, []).append(folder / name)
                if kind not in _SHARED:
                    own.add(number)
                break
    return {number: files for number, files in found.items() if number in own}


def _first_line(path: Path) -> str:
    try:
        return read_text(path, 1 << 16).lstrip().partition("\n")[0]
    except OSError:
        return ""


def _find_tables(files: Files) -> dict[str, TableRef]:
    def refer(table: str, name: str, *kinds: str) -> None:
        paths = [path for kind in kinds for path in files.get(kind, ())[:1]]
        if paths:
            tables[table] = TableRef(table, tuple(paths), f"legacy.{name}")

    tables: dict[str, TableRef] = {}
    refer("step_phases", "step_phases", "step_trace")
    refer("step_phases_average", "step_average", "step_trace")
    if any("stream_" in _first_line(path).lower() for path in files.get("step_trace", ())):
        refer("step_collectives", "step_collectives", "step_trace")
    if any("iteration_interval" in _first_line(path) for path in files.get("cluster", ())[:1]):
        if "step_phases" not in tables:
            refer("step_phases", "step_ticks", "cluster")
    else:
        refer("cluster_phases", "cluster_phases", "cluster")
        refer("cluster_phases_average", "cluster_average", "cluster")
    refer("operator_types", "operator_types", "aicore_types" if "aicore_types" in files else "pynative_types")
    host = "cpu_detail" if "cpu_detail" in files else "cpu_types"
    refer("operators", "operators", "aicore_detail", host)
    if "operators" in tables and "framework" in files:
        refer("operators", "operators", "aicore_detail", host, "framework")
    refer("aicpu", "aicpu", "aicpu" if "aicpu" in files else "aicpu_text")
    refer("flops", "flops", "flops_summary" if "flops_summary" in files else "flops")
    clock = next((files[kind][0] for kind in ("clock", "operator_times") if kind in files), None)
    trace = next(iter(files.get("step_trace", ())), None)
    if trace is not None and clock is not None and "timeline" in files and shares_clock(trace, clock):
        options = {"trace": str(trace), "clock": str(clock)}
        tables["kernels"] = TableRef("kernels", (files["timeline"][0],), "legacy.timeline_in_steps", options)
    elif not _WHOLE & tables.keys():
        refer("kernels", "timeline", "timeline")
    refer("dynamic_shapes", "dynamic_shapes", "dynamic_shapes")
    return tables


def _find_data_tables(folder: Path, number: int, rank: Rank) -> dict[str, TableRef]:
    from advisor.sources.minddata.minddata import find_minddata

    try:
        return find_minddata(folder, number)
    except OSError as error:
        rank.note(rank.relative(folder), f"cannot be listed: {error.strerror}")
        return {}


def _read_info(rank: Rank, files: Files, folder: Path) -> None:
    """Settings and the parallel layout, as far as small files tell them, into `rank.info`."""

    def load(path: Path) -> dict[str, Any]:
        try:
            document = load_json(path, rank.note_path)
        except OSError as error:
            rank.note(rank.relative(path), f"cannot be opened: {error.strerror}")
            return {}
        if isinstance(document, dict):
            return document
        if document is not None:
            rank.note(rank.relative(path), "holds no object; it was not used")
        return {}

    for path in files.get("profiler_info", ())[:1]:
        rank.info_files["profiler_info"] = path
        rank.info.update(load(path))
    for name in ("stage_num", "rank_size"):
        number = finite(rank.info.get(name))
        rank.info.pop(name, None)
        if number:
            rank.info[name] = int(number)
    for path in files.get("cluster", ())[:1]:
        match = _CLUSTER_NAME.fullmatch(plain_name(path.name))
        if match:
            rank.info["legacy_mode"] = match[1]
            rank.info.setdefault("stage_num", int(match[2]))
            rank.info.setdefault("rank_size", int(match[3]))
    for name in ("stage_num", "rank_size"):
        if rank.info.get(name, 0) > LARGEST_WORLD:  # as large as nothing is: its ranks would be counted up
            rank.note(rank.relative(folder), f"has no usable {name}: {str(rank.info.pop(name))[:40]!r}")
    for path in files.get("strategy", ())[:1]:
        _read_strategy(rank, path)
    general = folder / "step_trace_point_info.json"
    for path in (*files.get("points", ()), *([general] if general.is_file() else []))[:1]:
        rank.info.update((k, v) for k, v in load(path).items() if k in ("fp_start", "bp_end"))
    for path in files.get("memory", ())[:1]:
        sizes = {key: finite(value) for key, value in load(path).items()}
        rank.info["memory_usage"] = {
            f"{name}_bytes": size * 2.0**30
            for name, key in (("capacity", "capacity"), ("peak", "peak_mem"), ("static", "static_mem"))
            if (size := sizes.get(key)) is not None
        }


def _read_strategy(rank: Rank, path: Path) -> None:
    try:
        text = read_text(path, _CONFIG_BYTES)
    except OSError as error:
        rank.note(rank.relative(path), f"cannot be opened: {error.strerror}")
        return
    match = re.search(r'"config"\s*:\s*', text)
    try:
        config = json.JSONDecoder().raw_decode(text, match.end())[0] if match else None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        rank.note(rank.relative(path), "its config cannot be read; stages and parallel mode are unknown")
        return
    if isinstance(config.get("parallelType"), str):
        rank.info.setdefault("parallel_mode", config["parallelType"])
    stages = config.get("stageDevices") or []
    if not isinstance(stages, list) or not all(isinstance(entry, dict) for entry in stages):
        rank.note(rank.relative(path), "its stages are no list of devices; which ranks belong to one is unknown")
        return
    members = [_members(entry) for entry in stages]
    if members and all(members):
        rank.info["stage_devices"] = members
        rank.info.setdefault("stage_num", len(members))


def _members(entry: Mapping[str, Any]) -> list[int]:
    dims = entry.get("dim")
    sizes = [finite(dim.get("size")) for dim in (dims if isinstance(dims, list) else ()) if isinstance(dim, dict)]
    return [int(size) for size in sizes if size is not None]


def _resolve_stages(ranks: Sequence[Rank]) -> None:
    """Gives every rank `stage_devices` (members by stage) and `stage`. MindSpore hands ranks to stages in order, in
    equal shares, so that stage and rank counts tell the members where no strategy file does."""
    shared: dict[str, Any] = {}
    for rank in ranks:
        shared = {**{name: rank.info[name] for name in _OF_ALL if name in rank.info}, **shared}
    for rank in ranks:
        rank.info.update({name: value for name, value in shared.items() if name not in rank.info})
        stages, size = rank.info.get("stage_num"), rank.info.get("rank_size")
        if "stage_devices" not in rank.info and stages and size and size % stages == 0 and rank.rank < size:
            share = size // stages
            rank.info["stage_devices"] = [list(range(i * share, (i + 1) * share)) for i in range(stages)]
        members = [tuple(stage) for stage in rank.info.get("stage_devices", ())]
        for number, stage in enumerate(members):
            if rank.rank in stage:
                rank.info["stage"] = number
        if len(members) > 1:
            rank.info["stages"] = tuple(members)
        if size:
            rank.info["world_size"] = size
        if size and rank.info.get("legacy_mode") == "data-parallel":
            rank.info["parallelism"] = Parallelism(data=size, source="name of ascend_cluster_analyse_*.csv")
        if isinstance(rank.info.get("ms_version"), str):
            rank.info["versions"] = {"mindspore": rank.info["ms_version"]}


def _add_communication(ranks: Sequence[Rank], by_rank: Mapping[int, Files]) -> None:
    from advisor.sources.older.legacy_communication import file_ids

    paths = {rank.rank: by_rank[rank.rank]["hccl"][0] for rank in ranks if "hccl" in by_rank[rank.rank]}
    if not paths:
        return
    own = {number: ids for number, path in paths.items() if (ids := file_ids(path))}
    is_global = len(own) > 1 and all(number in ids for number, ids in own.items())
    for rank in ranks:
        if rank.rank not in paths:
            continue
        trace = tuple(by_rank[rank.rank].get("step_trace", ())[:1])
        files = (paths[rank.rank], *trace)
        options = {
            "rank": rank.rank,
            "ids": "global" if is_global else "local",
            "stages": tuple(tuple(members) for members in rank.info.get("stage_devices", ())),
        }
        rank.tables["collectives"] = TableRef("collectives", files, "legacy.collectives")
        rank.tables["links"] = TableRef("links", files[:1], "legacy.links", options)
