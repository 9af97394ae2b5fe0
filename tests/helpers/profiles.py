"""Small profiles and samples with chosen step times, for tests of the gate."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor.facts.base import FactSet
from advisor.facts.registry import catalogue
from advisor.gate.decision import decide
from advisor.gate.history.histories import History, Kinds
from advisor.gate.model import Case, Decision
from advisor.gate.policy import Policy, read_policy
from advisor.gate.sample import Sample
from advisor.model import (
    RUN,
    Check,
    Confidence,
    Direction,
    Fact,
    Finding,
    Outcome,
    ProfileInfo,
    Role,
    Severity,
    Subject,
    Summary,
    Text,
)  # fmt: skip

TODAY = datetime.date(2026, 3, 1)
GOOD = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.9, 99.1, 100.0)
"""Step times of an unremarkable history, milliseconds."""
RULE = """
id: ACME001
title: {en: Communication is exposed, zh: 通信未被掩盖}
verdict: acme/exposed
direction: communication
kind: symptom
statements: []
for: run
params:
  share: {value: 0.3, unit: ratio, origin: "chosen for this test"}
needs: [step.exposed_communication_share]
when: [step.exposed_communication_share > $share]
severity: {by: step.exposed_communication_share, high: $share}
impact: step.exposed_communication_share
confidence: high
message: {en: "{{ step.exposed_communication_share }} exposed", zh: "{{ step.exposed_communication_share }}未掩盖"}
"""


def write_run(
    folder: Path, step_ms: float, *, exposed: float = 0.1, level: str = "Level1", steps: int = 4, batch: int | None = 8
) -> Path:
    """A rank folder of MindSpore whose steps take `step_ms`, `exposed` of it in exposed communication; operators have
    inputs of this batch (None: no operators were recorded)."""
    root = folder.with_name(folder.name + "_ascend_ms")
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    step = 1000 * step_ms
    rows = ["Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
            "Communication(Not Overlapped and Exclude Receive),Preparing"]  # fmt: skip
    for number in range(10, 10 + steps):
        hidden, idle = exposed * step, 0.02 * step
        rows.append(f"{number},{step - hidden - idle:.3f},{hidden:.3f},0,{hidden:.3f},{idle:.3f},{step:.3f},0,0,100.0")
    (output / "step_trace_time.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    if batch is not None:
        _write_kernels(output / "kernel_details.csv", step, exposed, steps, batch)
    info = {
        "profiler_parameters": {"profiler_level": level, "activities": ["CPU", "NPU"]},
        "ms_profiler_info": {"rank_id": "0", "device_id": "0"},
        "ms_version": "2.7.0",
        "cann_version": "8.2",
    }
    (root / "profiler_info_0.json").write_text(json.dumps(info), encoding="utf-8")
    return root


def _write_kernels(path: Path, step: float, exposed: float, steps: int, batch: int) -> None:
    """Six calls of two operators a step that take what is computed, with inputs of this batch, and an AllReduce."""
    head = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Input Shapes"
    rows = [head]
    for number in range(10, 10 + steps):
        start = number * step
        for call in range(6):
            name, share = ("MatMul", 0.2) if call % 2 else ("Add", 0.4 / 3)
            time = share * (0.98 - exposed) * step
            shapes = f'"{batch},1024;1024,1024"'
            rows.append(f"{number},{name}_{call},{name},AI_CORE,{start:.3f},{time:.3f},0,24,{shapes}")
            start += time
        rows.append(f"{number},hcom_allReduce__1_0,hcom_allReduce_,HCCL,{start:.3f},{exposed * step:.3f},0,0,N/A")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def sample(
    step_ms: float | None = 100.0,
    *,
    findings: Sequence[Finding] = (),
    key: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    facts: Mapping[str, float] | None = None,
    checked: Sequence[Check] = (Check("ACME001", Outcome.PASS),),
    name: str = "run",
    more: Sequence[Fact] = (),
    version: str = "",
) -> Sample:
    """A sample as `take_sample` would make it."""
    found = [Fact(fact, RUN, value) for fact, value in (facts or {}).items()]
    if step_ms is not None:
        found.append(Fact("step.time_us", RUN, 1000.0 * step_ms, 4))
    info = ProfileInfo(f"profiles/{name}", "mindspore", "ascend_ms", (0,), 1)
    summary = Summary("healthy", Text("fine", "正常"), None if step_ms is None else 1000.0 * step_ms)
    return Sample(
        name, dict(key or {"model": "m"}), info, summary, FactSet([*found, *more]), tuple(findings), tuple(checked),
        metadata=dict(metadata or {}), digest=f"{name} {step_ms}", version=version,
    )  # fmt: skip


def finding(
    verdict: str = "acme/exposed",
    severity: Severity = Severity.HIGH,
    *,
    subject: Subject = RUN,
    status: str = "stable",
    confidence: Confidence = Confidence.HIGH,
    rule: str = "ACME001",
    title: str = "Exposed",
) -> Finding:
    return Finding(
        "F1", rule, verdict, Direction.COMMUNICATION, Role.ROOT_CAUSE, severity, confidence, subject,
        Text(title, "未掩盖"), Text("much of it", "很多"), status=status,
    )  # fmt: skip


def policy(**table: object) -> Policy:
    return read_policy(table, catalogue())


def judge(
    runs: Sequence[Sample],
    history: Sequence[Sample] = (),
    *,
    confirming: Sequence[Sample] = (),
    baseline: str | None = "base#main",
    rules: Policy | None = None,
    fail_on: str | None = None,
) -> Decision:
    rules = rules or policy()
    case = Case(tuple(runs), tuple(confirming), baseline, histories(history, rules.key_ignored))
    return decide(case, rules, today=TODAY, fail_on=fail_on)


def histories(runs: Sequence[Sample], ignored: Sequence[str] = ()) -> tuple[History, ...]:
    """Runs sorted into kinds as a baseline sorts them."""
    kinds = Kinds(tuple(ignored))
    for run in runs:
        kinds.place(run)
    return tuple(History(tuple(members)) for members in kinds.members)


def runs_of(*steps_ms: float, name: str = "run", **given: object) -> list[Sample]:
    return [sample(step, name=f"{name}{i}", **given) for i, step in enumerate(steps_ms)]  # type: ignore[arg-type]
