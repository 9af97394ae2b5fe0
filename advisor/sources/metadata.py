"""Who ran what: profiler_info_*.json and profiler_metadata.json of all versions in one form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from advisor.model import Parallelism
from advisor.sources.folders import plain_name
from advisor.sources.reference import Note
from advisor.sources.text.jsontext import load_json
from advisor.sources.topology import joined

Groups = dict[str, tuple[int, ...]]

_LATEST_NS = 1 << 63
INFO_ENTRY, METADATA_ENTRY = "profiler_info", "profiler_metadata"
_FLAGS = (
    "profile_memory", "l2_cache", "data_process", "with_stack", "with_modules", "with_flops", "record_shapes",
    "data_simplification", "parallel_strategy", "hbm_ddr", "pcie", "sys_io", "sys_interconnection", "mstx", "msprof_tx",
)  # fmt: skip
_ENTRIES = frozenset((
    "config", "rank_id", "device_id", "rank_size", "ms_profiler_info", "profiler_parameters", "start_info", "end_info",
    "torch_npu_version", "cann_version", "ms_version", "context_mode", "ascend_toolkit_version", "python_version",
))  # fmt: skip
"""One of these at least stands in every profiler_info file."""
_GROUPS = "parallel_group_info"
_BEYOND = 10**9
"""No job has so many ranks."""
_UNKNOWN = ("", "not known", "unknown", "none")
_PARALLEL = {"tp": "tensor", "pp": "pipeline", "dp": "data", "dp_cp": "data", "ep": "expert", "exp": "expert"}


class Metadata(Struct):
    """What the metadata files of one rank say. Absent is None or empty."""

    rank: int | None = None
    device: str | None = None
    framework: str = "unknown"
    world_size: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    groups: Groups = field(default_factory=dict)
    group_names: dict[str, str] = field(default_factory=dict)
    """Group id or hash -> what the framework calls it: tp, pp, dp, default_group, …"""
    parallelism: Parallelism = Parallelism()
    raw: dict[str, Any] = field(default_factory=dict)


def as_int(value: Any) -> int | None:
    """A non-negative integer from a number or text, else None (profilers write -1 for "no rank")."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        number = value
    elif isinstance(value, str) and value.isascii() and value.strip().isdecimal() and len(value) < 10:
        number = int(value)
    else:
        return None
    return number if 0 <= number < _BEYOND else None


def hash_group(name: str) -> str:
    """The number under which communication files know a group: two polynomial hashes modulo 2³², joined.

    Bases 29 and 131, as in CANN; checked against pairs of id and hash in a communication_group.json.
    """
    high = low = 0
    for letter in name:
        high = (high * 29 + ord(letter)) & 0xFFFFFFFF
        low = (low * 131 + ord(letter)) & 0xFFFFFFFF
    return str(high << 32 | low)


def number_of_group(name: str) -> str:
    """The last three digits of its group, which an operation such as hcom_allReduce__586_0_1 carries; "" where its name
    does not tell."""
    match = re.search(r"__([0-9]{1,3})_[0-9]+", name)
    return match[1] if match else ""


def group_of_operation(name: str, groups: Mapping[str, tuple[int, ...]]) -> str | None:
    """The group whose number an operation carries, if it is only one."""
    digits = number_of_group(name)
    if not digits:
        return None
    number = int(digits)
    found = [group for group in groups if group.isdecimal() and int(group[-3:]) == number]
    return found[0] if len(found) == 1 else None


LONGEST_SETTING = 200
"""Characters of a setting or version at most: what is longer is damage, and would fill the messages that name it."""
MOST_WORDS = 16
"""Words of a setting at most."""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> list[str]:
    """["ProfilerActivity.CPU"], "CPU" and "CPU,NPU" as plain words."""
    items = value if isinstance(value, list) else re.split(r"[,;|\s]+", value) if isinstance(value, str) else []
    words = [str(item).rpartition(".")[2] for item in items if 0 < len(str(item)) <= LONGEST_SETTING]
    return words[:MOST_WORDS]


def wrong_schedule(schedule: Mapping[str, Any]) -> list[str]:
    """Entries outside their range, as "active=0": all are numbers from 0 on, active from 1 on (S49)."""
    return [
        f"{name}={value}"
        for key, value in sorted(schedule.items())
        if isinstance(value, int) and value < (1 if (name := str(key).lstrip("_")) == "active" else 0)
    ]


def is_database_only(settings: Mapping[str, Any]) -> bool | None:
    """Whether a database was asked for and no text; None where the settings do not tell."""
    exports = settings.get("export_type")
    return ("db" in exports and "text" not in exports) if exports else None


def normalise_settings(info: Mapping[str, Any]) -> dict[str, Any]:
    """The profiler's configuration with one spelling: level, activities, schedule, flags; unknown is absent."""
    config = _mapping(info.get("config"))
    found: dict[str, Any] = {}
    for part in (
        _mapping(info.get("profiler_parameters")),
        _mapping(config.get("common_config")),
        _mapping(config.get("experimental_config")),
    ):
        found.update((str(key).lstrip("_"), value) for key, value in part.items())
    settings: dict[str, Any] = {}
    level = re.search(r"level[_ ]?(none|[0-9])", str(found.get("profiler_level")), re.IGNORECASE)
    if level:
        settings["level"] = "Level" + level.group(1).capitalize()
    if activities := _words(found.get("activities")):
        settings["activities"] = [word.upper() for word in activities]
    if exports := _words(found.get("export_type")):
        settings["export_type"] = [word.lower() for word in exports]
    schedule = {
        str(key).lstrip("_"): number
        for key, value in _mapping(found.get("schedule")).items()
        if (number := as_int(value)) is not None
    }
    if schedule and found.get("is_set_schedule") is not False:
        settings["schedule"] = schedule
    if wrong := wrong_schedule(_mapping(found.get("schedule"))):
        settings["schedule_wrong"] = wrong
    for flag in _FLAGS:
        if isinstance(found.get(flag), bool):
            settings[flag] = found[flag]
    metrics = str(found.get("aic_metrics") or "").rpartition(".")[2].removeprefix("ACL_AICORE_")
    if 0 < len(metrics) <= LONGEST_SETTING:
        parts = metrics.split("_")
        settings["aic_metrics"] = "".join(map(str.capitalize, parts)) if metrics.isupper() else metrics
    if isinstance(info.get("jit_level"), str) and 0 < len(info["jit_level"]) <= LONGEST_SETTING:
        settings["jit_level"] = info["jit_level"]
    return settings


def recorded_ns(info: Mapping[str, Any]) -> tuple[int, int]:
    """When the profiler began and ended, on the host's steady clock; nothing between where its file does not tell."""
    begin = _mapping(info.get("start_info")).get("start_monotonic")
    end = _mapping(info.get("end_info")).get("MonotonicTimeEnd")
    if type(begin) is not int or type(end) is not int or not 0 <= begin < end < _LATEST_NS:
        return 0, 0
    return begin, end


def _versions(info: Mapping[str, Any]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for key, value in info.items():
        told = isinstance(value, (str, int, float)) and str(value).lower() not in _UNKNOWN
        if key.endswith("_version") and told and len(str(value)) <= LONGEST_SETTING:
            name = key.removesuffix("_version")
            versions["mindspore" if name == "ms" else name] = str(value)
    return versions


def add_info(metadata: Metadata, info: Any) -> None:
    """Takes over what a profiler_info file says."""
    if not isinstance(info, dict):
        return
    own = _mapping(info.get("ms_profiler_info"))
    for source in (info, own):
        rank = as_int(source.get("rank_id"))
        metadata.rank = metadata.rank if rank is None else rank
        device = as_int(source.get("device_id"))
        metadata.device = metadata.device if device is None else str(device)
        metadata.world_size = as_int(source.get("rank_size")) or metadata.world_size
    if "profiler_parameters" in info or "ms_version" in info:
        metadata.framework = "mindspore"
    elif isinstance(info.get("config"), dict):
        metadata.framework = "pytorch"
    metadata.versions.update(_versions(info))
    metadata.settings.update(normalise_settings(info))
    metadata.raw[INFO_ENTRY] = info


def add_metadata(metadata: Metadata, data: Any) -> None:
    """Takes over what profiler_metadata.json (or the META_DATA table of a database) says."""
    if not isinstance(data, dict):
        return
    args = _mapping(data.get("distributed_args"))
    metadata.world_size = as_int(args.get("world_size")) or metadata.world_size
    if metadata.rank is None:
        metadata.rank = as_int(args.get("rank"))
    sizes = {
        name: as_int(args.get(f"{key}_parallel_size")) or None
        for name, key in (
            ("data", "data"), ("tensor", "tensor_model"), ("pipeline", "pipeline_model"), ("expert", "expert_model"),
        )
    }  # fmt: skip
    for group, value in _mapping(data.get(_GROUPS)).items():
        entry = _mapping(value)
        ranks = ranks_of(entry.get("global_ranks"))
        if not ranks:
            continue
        add_group(metadata.groups, metadata.group_names, group, str(entry.get("group_name") or ""), ranks)
    if any(sizes.values()):
        metadata.parallelism = Parallelism(**sizes, source="distributed_args in profiler_metadata.json")
    metadata.raw[METADATA_ENTRY] = {name: value for name, value in data.items() if name != _GROUPS}


def ranks_of(value: Any) -> tuple[int, ...]:
    """Global ranks of a group in its own order; empty where the value is none."""
    if not isinstance(value, (list, tuple)):
        return ()
    if value and set(map(type, value)) == {int} and min(value) >= 0 and max(value) < _BEYOND:
        return _same(tuple(value))
    ranks = [as_int(item) for item in value]
    return () if None in ranks else _same(tuple(r for r in ranks if r is not None))


@lru_cache(maxsize=1024)
def _same(ranks: tuple[int, ...]) -> tuple[int, ...]:
    """These ranks, kept once however many files list them: each of thousands of ranks names all of its world."""
    return ranks


def add_group(groups: Groups, names: dict[str, str], group: str, name: str, ranks: tuple[int, ...]) -> None:
    """Enters a group under its id and under the hash that communication files use for it."""
    for key in (group, hash_group(group)) if not group.isdecimal() else (group,):
        groups[key] = ranks
        if name:
            names[key] = name


def infer_parallelism(groups: Mapping[str, tuple[int, ...]], names: Mapping[str, str]) -> Parallelism | None:
    """Sizes from groups the framework calls tp, pp, dp, ep; None where no group has such a name."""
    members: dict[str, list[tuple[int, ...]]] = {}
    for key, name in names.items():
        kind = _PARALLEL.get(name.lower())
        if kind and key in groups:
            members.setdefault(kind, []).append(groups[key])
    if "pipeline" in members:
        members["pipeline"] = joined(members["pipeline"])
    sizes = {kind: max([1, *map(len, parts)]) for kind, parts in members.items()}
    return Parallelism(**sizes, source="names of the communication groups") if sizes else None


def _object(path: Path, note: Note) -> Any:
    data = load_json(path, note)
    if data is not None and not isinstance(data, dict):
        note(str(path), f"holds a {type(data).__name__} where an object was expected; it was not used")
    return data


def _tell_unusable(info: Any, path: Path, note: Note) -> None:
    """Notes identities that are no numbers, and a file that holds nothing a profiler writes."""
    if not isinstance(info, dict):
        return
    if not _ENTRIES & info.keys():
        note(str(path), "holds none of the entries of a profiler_info file")
    for key in ("ms_profiler_info", "config", "profiler_parameters"):
        if key in info and not isinstance(info[key], dict):
            note(str(path), f"holds no object under {key}")
    for source in (info, _mapping(info.get("ms_profiler_info"))):
        for key in ("rank_id", "device_id", "rank_size"):
            value = source.get(key)
            if value not in (None, "", -1, "-1") and as_int(value) is None:
                note(str(path), f"has no usable {key}: {str(value)[:40]!r}")


def read_metadata(infos: Iterable[Path], metadatas: Iterable[Path], note: Note) -> Metadata:
    """All metadata files of one rank; a file name carries the rank where the content does not."""
    metadata = Metadata()
    for path in infos:
        info = _object(path, note)
        add_info(metadata, info)
        _tell_unusable(info, path, note)
        if metadata.rank is None and (suffix := re.search(r"_([0-9]+)\.json$", plain_name(path.name))):
            metadata.rank = as_int(suffix.group(1))
    for path in metadatas:
        add_metadata(metadata, _object(path, note))
    return metadata
