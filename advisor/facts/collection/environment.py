"""What the environment told the runtime: variables that profilers record in profiler_metadata.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.model import RUN, Fact, Source

KINDS = (
    kind("environment.log_level", "number", "run", "ASCEND_GLOBAL_LOG_LEVEL where set: 0 debug … 3 error"),
    kind("environment.launch_blocking", "bool", "run", "ASCEND_LAUNCH_BLOCKING: the host waits for every kernel"),
    kind(
        "environment.operator_cache_limit",
        "count",
        "run",
        "ACLNN_CACHE_LIMIT where set: operators kept prepared on the host",
    ),
    kind("environment.allocator_expandable", "bool", "run", "PYTORCH_NPU_ALLOC_CONF allows segments to grow"),
    kind(
        "environment.protocol_variables", "list", "run", "HCCL_RDMA_TC, HCCL_RDMA_SL, HCCL_ALGO where set, with values"
    ),
)

_PROTOCOL = ("HCCL_RDMA_TC", "HCCL_RDMA_SL", "HCCL_ALGO")


def variables(run: Run) -> dict[str, str]:
    """Variables the profile recorded, of all ranks together; "" is recorded as not set."""
    found: dict[str, str] = {}
    for rank in run.ranks:
        metadata = rank.info.get("profiler_metadata")
        recorded = metadata.get("ENV_VARIABLES") if isinstance(metadata, Mapping) else None
        for name, value in recorded.items() if isinstance(recorded, Mapping) else ():
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                found[str(name)] = found.get(str(name)) or str(value).strip()
    return found


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Only what was recorded: a variable the profile does not name is unknown, not unset."""
    del facts
    found = variables(run)
    told = (rank.source_of_info("profiler_metadata", "ENV_VARIABLES") for rank in run.ranks)
    source = next(filter(None, told), Source(""))
    yield from fact("environment.log_level", RUN, _number(found.get("ASCEND_GLOBAL_LOG_LEVEL")), source)
    yield from fact("environment.operator_cache_limit", RUN, _number(found.get("ACLNN_CACHE_LIMIT")), source)
    if "ASCEND_LAUNCH_BLOCKING" in found:
        yield from fact("environment.launch_blocking", RUN, found["ASCEND_LAUNCH_BLOCKING"] == "1", source)
    if "PYTORCH_NPU_ALLOC_CONF" in found:
        expandable = "expandable_segments:true" in found["PYTORCH_NPU_ALLOC_CONF"].replace(" ", "").lower()
        yield from fact("environment.allocator_expandable", RUN, expandable, source)
    if any(name in found for name in _PROTOCOL):
        chosen = tuple(f"{name}={found[name]}" for name in _PROTOCOL if found.get(name))
        yield from fact("environment.protocol_variables", RUN, chosen, source)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 12 else None


FAMILIES = (Family("environment", KINDS, measure),)
