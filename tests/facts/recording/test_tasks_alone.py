"""A timeline without marks of steps, and no table beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.facts.base import FactSet
from advisor.model import RUN
from advisor.pipeline import Options, measure

WANTED = ["recording.kind", "recording.set_up_us", "recording.executions", "recording.time_us", "step.time_us",
          "step.idle_share"]  # fmt: skip
KERNELS = [("Normal_Cast", 0.0), ("Normal_Cast", 2_000.0), *(("add_kernel", 170_000.0 + 200 * i) for i in range(5))]
"""(name, start in us): inputs are filled, a kernel is compiled for 168 ms and then launched five times."""


def timeline(path: Path, kernels: list[tuple[str, float]]) -> FactSet:
    """Facts of msprof's timeline alone with these kernels, 6 us each."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 96, "args": {"name": "Ascend Hardware"}},
        *({"ph": "X", "name": name, "pid": 96, "tid": 2, "ts": f"{1_000_000 + start:.3f}", "dur": 6.0,
           "args": {"Task Type": "AI_VECTOR_CORE"}} for name, start in kernels),
    ]  # fmt: skip
    path.mkdir()
    (path / "msprof_20260511093035.json").write_text(json.dumps(events))
    return measure([path], WANTED, Options(jobs=1)).facts


def test_compilation_before_the_first_launch_is_no_idle_time(tmp_path: Path) -> None:
    """As with the table of the same kernels: a benchmark of one kernel, and what lies before it is not judged."""
    facts = timeline(tmp_path / "a", KERNELS)
    assert facts.value("recording.kind", RUN) == "kernel_benchmark"
    assert facts.number("recording.set_up_us", RUN) == pytest.approx(170_000)
    assert facts.number("step.time_us", RUN) == pytest.approx(806)


def test_set_up_in_a_timeline_changes_nothing_in_what_is_judged(tmp_path: Path) -> None:
    """The launches alone are judged like the launches behind a set-up."""
    alone, behind = timeline(tmp_path / "a", KERNELS[2:]), timeline(tmp_path / "b", KERNELS)
    for name in ("recording.kind", "recording.executions", "step.time_us", "step.idle_share"):
        assert alone.value(name, RUN) == behind.value(name, RUN) is not None


FORWARD, TRAINING = ("MatMulV2", "SwiGlu", "MatMulV2"), ("MatMulV2", "SwiGlu", "SwiGluGrad", "ApplyAdamW")


@pytest.mark.parametrize(
    ("types", "cut", "kind"),
    [(FORWARD, False, "inference"), (TRAINING, False, "training_steps"), (FORWARD, True, "training_steps")],
)
def test_names_in_a_timeline_tell_whether_a_loop_trains(
    tmp_path: Path, types: tuple[str, ...], cut: bool, kind: str
) -> None:
    """As those in a table do; behind the end of a timeline that was cut there may be what trains."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        for pid, name in ((1, "Python"), (3, "Ascend Hardware"))
    ]
    for step in range(5):
        at = 1_000_000 + 10_000 * step
        events.append({"ph": "X", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": f"{at}.000", "dur": 10_000})
        events += [
            {"ph": "X", "name": f"aclnn{each}_{each}_{each}", "pid": 3, "tid": 2, "ts": f"{at + 2000 * place}.000",
             "dur": 1900, "args": {"Task Type": "AI_CORE"}} for place, each in enumerate(types)
        ]  # fmt: skip
    text = json.dumps(events)
    (tmp_path / "trace_view.json").write_text(text[:-30] if cut else text)
    assert measure([tmp_path], ["recording.kind"], Options(jobs=1)).facts.value("recording.kind", RUN) == kind
