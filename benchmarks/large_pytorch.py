"""Timelines as torch_npu writes them: host operators with their call stacks, Python frames, queues, flows, counters."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.large_workload import Launch

PYTHON, CANN, NPU, HCCL, OVERLAP, HBM, QOS, PMU = (
    3096504, 3170820320, 3170820512, 3170820576, 3170820832, 3170820640, 3170820800, 3170820768,
)  # fmt: skip
_TITLES = {
    PYTHON: "Python", CANN: "CANN", NPU: "Ascend Hardware", HCCL: "HCCL", OVERLAP: "Overlap Analysis", HBM: "HBM",
    QOS: "QoS", PMU: "Acc PMU",
}  # fmt: skip
_STACK = ";\\r\\n".join(
    f"/opt/python/lib/python3.11/site-packages/megatron/core/{folder}/{name}.py({line}): {function}"
    for folder, name, line, function in (
        ("tensor_parallel", "layers", 412, "linear_with_grad_accumulation"), ("transformer", "mlp", 118, "forward"),
        ("transformer", "module", 1751, "_call_impl"), ("transformer", "transformer_layer", 301, "forward"),
        ("transformer", "transformer_block", 512, "forward"), ("models", "gpt_model", 233, "forward"),
        ("pipeline_parallel", "schedules", 187, "forward_step"), ("training", "training", 624, "train_step"),
    )
)  # fmt: skip
STACK_EVERY, FRAME_EVERY, COUNTER_EVERY = 8, 4, 4
"""One host operator in so many carries its stack, one kernel in so many comes with a Python frame, with a counter."""


def metadata() -> Iterator[str]:
    """Names of the processes."""
    for pid, name in _TITLES.items():
        yield json.dumps({"name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}, "ph": "M"})


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _names(k: Launch, collective: str) -> tuple[str, str, str, str]:
    """What the device, the framework, its queue and the runtime call a kernel: a collective bears a number of its own
    on the device only."""
    if k.kernel is not None:
        kind = k.kernel.type
        return kind, f"aten::{kind.lower()}", f"acl{kind}", f"aclnn{kind}"
    kind = collective.partition("__")[0].removeprefix("hcom_")
    return collective, f"c10d::{kind.lower()}_", f"Hccl{kind.capitalize()}", f"hcom_{kind}_"


def events(k: Launch, number: int, collective: str) -> Iterator[str]:
    """Everything that the timeline says of one kernel."""
    launch, start, us = _us(k.launch), _us(k.start), k.duration / 1000
    name, host, queued, called = _names(k, collective)
    pid, tid = (NPU, 2) if k.kernel else (HCCL, 0)
    begin = _us(k.launch - 6000)
    stack = f', "Call stack": "{_STACK}"' if number % STACK_EVERY == 0 else ""
    yield (
        f'{{"ph": "X", "name": "{host}", "pid": {PYTHON}, "tid": {PYTHON}, "ts": "{begin}", "dur": 11.25'
        f', "cat": "cpu_op", "args": {{"Sequence number": {number}, "Fwd thread id": 0, "Input Dims": '
        f'"4096,5120;\\r\\n5120", "Input type": "c10::BFloat16;\\r\\nc10::BFloat16"{stack}}}}}'
    )
    if number % FRAME_EVERY == 0:
        yield (
            f'{{"ph": "X", "name": "megatron/core/transformer/module.py({number % 900}): forward", "pid": {PYTHON}, '
            f'"tid": {PYTHON}, "ts": "{begin}", "dur": 12.5, "cat": "python_function", "args": {{"Python id": {number}'
            f', "Python parent id": {number - 1}}}}}'
        )
    for word, at, lasts, thread in (("Enqueue", k.launch - 4000, 2.3, PYTHON), ("Dequeue", k.launch - 1500, 5.75, 77)):
        yield (
            f'{{"ph": "X", "name": "{word}@{queued}", "pid": {PYTHON}, "tid": {thread}, "ts": "{_us(at)}", '
            f'"dur": {lasts}, "cat": "{word.lower()}", "args": {{"correlation_id": {number}}}}}'
        )
    yield (
        f'{{"name": "AscendCL@{called}", "pid": {CANN}, "tid": 77, "ts": "{launch}", "dur": 4.25, "args": '
        f'{{"Thread Id": 77, "Mode": "ACL_NN", "level": "acl", "id": "{called}", "item_id": "0", "connection_id": '
        f'{number}}}, "ph": "X"}}'
    )
    yield (
        f'{{"name": "{name}", "pid": {pid}, "tid": {tid}, "ts": "{start}", "dur": {us:.3f}, "args": {{"Model Id": '
        f'4294967295, "Task Type": "{k.kernel.core if k.kernel else "COMMUNICATION"}", "Physic Stream Id": {tid}, '
        f'"Task Id": {k.index}, "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": {number}}}, "ph": "X"}}'
    )
    flow = f'"name": "HostToDevice{number}"'
    yield f'{{{flow}, "ph": "s", "cat": "HostToDevice", "id": "{number}", "pid": {CANN}, "tid": 77, "ts": "{launch}"}}'
    yield (
        f'{{{flow}, "ph": "f", "id": "{number}", "ts": "{start}", "cat": "HostToDevice", "pid": {pid}, "tid": {tid}, '
        f'"bp": "e"}}'
    )
    link = f'"bp": "e", "name": "torch_to_npu", "id": {k.start}'
    yield f'{{"ph": "s", {link}, "pid": {PYTHON}, "tid": {PYTHON}, "ts": "{begin}", "cat": "async_npu"}}'
    yield f'{{"ph": "f", {link}, "pid": {pid}, "tid": {tid}, "ts": "{start}", "cat": "async_npu"}}'
    if number % COUNTER_EVERY == 0:
        yield (
            f'{{"name": "HBM {number % 2}/Read", "ts": "{start}", "pid": {HBM}, "tid": 0, "args": {{"Read(MB/s)": '
            f'{number % 977}.5}}, "ph": "C"}}'
        )
        yield (
            f'{{"name": "read_bandwidth", "ts": "{start}", "pid": {PMU}, "tid": 0, "args": {{"value": {number % 31}, '
            f'"acc_id": 0}}, "ph": "C"}}'
        )
        yield (
            f'{{"name": "QoS OTHERS", "ts": "{start}", "pid": {QOS}, "tid": 0, "args": {{"value": {number % 1876}}}, '
            f'"ph": "C"}}'
        )


def step_event(step: int, start: int, end: int) -> str:
    """The host's range of a step (nanoseconds)."""
    return (
        f'{{"ph": "X", "name": "ProfilerStep#{step}", "pid": {PYTHON}, "tid": {PYTHON}, "ts": "{_us(start)}", '
        f'"dur": {(end - start) / 1000:.3f}, "cat": "cpu_op", "args": {{}}}}'
    )
