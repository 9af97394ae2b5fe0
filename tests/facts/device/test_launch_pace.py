"""The pace of launches, read from starts and durations of kernels alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import load_config
from advisor.facts.device.launch_pace import pace_of
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

HEADING = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
NAMES = tuple(f"timeline.{name}" for name in ("launch_interval_us", "shorter_count", "shorter_followed_share",
                                              "longer_count", "longer_followed_share"))  # fmt: skip
STEPS = 3
LENGTHS = [30.0, 200.0, 90.0, 1500.0, 60.0, 350.0, 250.0, 40.0, 700.0, 120.0] * 8
"""Of a step's kernels: as unlike as in a model's layer."""


def _launched(lengths: list[float], every: float) -> list[float]:
    """Starts where the host launches one kernel in each interval."""
    ended, starts = 0.0, []
    for i, length in enumerate(lengths):
        starts.append(max(i * every, ended + 1))
        ended = starts[-1] + length
    return starts


def _awaited(lengths: list[float], pause: float) -> list[float]:
    """Starts where the host waits for each result and then takes its time."""
    return [float(start) for start in np.cumsum([0, *lengths[:-1]]) + pause * np.arange(len(lengths))]


def _write(folder: Path, starts: list[float], lengths: list[float]) -> Path:
    whole, rows = starts[-1] + lengths[-1] + 50, []
    for step in range(STEPS):
        rows += [f"{step},Op{i % 10}_1,Op{i % 10},AI_VECTOR_CORE,{1e6 + step * whole + start:.3f},{length:.3f}"
                 for i, (start, length) in enumerate(zip(starts, lengths, strict=True))]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return folder


def _blamed(folder: Path) -> bool:
    report = advise([folder], load_rules(config=load_config(None)), Options(jobs=1))
    return any(finding.rule == "SCHED014" for finding in report.findings)


def test_a_late_host_leaves_gaps_behind_short_kernels_alone(tmp_path: Path) -> None:
    """Kernels of 334 us on average, launched every 500 us: what is longer gives the host time to catch up."""
    folder = _write(tmp_path, _launched(LENGTHS, 500.0), LENGTHS)
    facts = measure([folder], NAMES, Options(jobs=1)).facts
    assert facts.number(NAMES[0], RUN) == pytest.approx(500.0)
    assert facts.number(NAMES[2], RUN) > 0.9 and facts.number(NAMES[4], RUN) == 0.0
    assert facts.number(NAMES[3], RUN) >= 5
    assert facts.number(NAMES[0], Subject("rank", "0", (0,))) == pytest.approx(500.0)
    assert _blamed(folder)


def test_who_waits_for_each_result_leaves_gaps_behind_all_of_them(tmp_path: Path) -> None:
    """The same kernels and about the same idle time: launching blocks, or each result is read."""
    folder = _write(tmp_path, _awaited(LENGTHS, 200.0), LENGTHS)
    facts = measure([folder], NAMES, Options(jobs=1)).facts
    assert facts.number(NAMES[2], RUN) == facts.number(NAMES[4], RUN) == 1.0
    assert not _blamed(folder)


def test_a_pause_here_and_there_is_no_pace(tmp_path: Path) -> None:
    """A wait of 900 us before every fifth kernel: what follows it has been launched in time."""
    ended, starts = 0.0, []
    for i, length in enumerate(LENGTHS):
        starts.append(ended + (900.0 if i % 5 == 0 else 1.0))
        ended = starts[-1] + length
    folder = _write(tmp_path, starts, LENGTHS)
    facts = measure([folder], NAMES, Options(jobs=1)).facts
    assert (facts.number(NAMES[2], RUN) or 0.0) == 0.0
    assert not _blamed(folder)


def test_a_host_that_is_ahead_has_no_pace_to_tell(tmp_path: Path) -> None:
    """Nothing begins behind idle time, so nothing is told."""
    facts = measure([_write(tmp_path, _launched(LENGTHS, 20.0), LENGTHS)], NAMES, Options(jobs=1)).facts
    assert all(facts.value(name, RUN) is None for name in NAMES)


def test_one_late_host_is_not_the_run(tmp_path: Path) -> None:
    """Of three ranks one launches late: the run has no kernels that wait for their launch."""
    for rank in range(3):
        folder = tmp_path / f"rank_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        _write(folder, _launched(LENGTHS, 500.0 if rank == 2 else 20.0), LENGTHS)
        (folder.parent / f"profiler_info_{rank}.json").write_text("{}", encoding="utf-8")
    facts = measure([tmp_path], NAMES, Options(jobs=1)).facts
    assert facts.number(NAMES[1], Subject("rank", "2", (2,))) > 20
    assert facts.number(NAMES[1], RUN) == 0.0


@settings(max_examples=200, deadline=None)
@given(lengths=st.lists(st.floats(20.0, 900.0), min_size=30, max_size=80), every=st.floats(100.0, 800.0))
def test_the_interval_is_that_of_the_host_whatever_the_device_computes(lengths: list[float], every: float) -> None:
    """Whatever lengths kernels have: launched at one pace, hardly one that outlasts it is followed by idle time."""
    start = np.round(np.array(_launched(lengths, every)) * 1000).astype(np.int64)
    kernels = SimpleNamespace(start=start, end=start + np.round(np.array(lengths) * 1000).astype(np.int64))
    windows = SimpleNamespace(of=np.zeros(start.size, np.int64), names=("0",))
    found = pace_of(SimpleNamespace(kernels=kernels, windows=windows, communication=np.zeros(start.size, bool)))  # type: ignore[arg-type]
    if found is not None and found.shorter.sum() >= 20:
        assert found.interval_us == pytest.approx(every, rel=0.1)
        assert found.longer_followed.sum() <= max(0.2 * found.longer.sum(), 1)
        assert (found.shorter_followed <= found.shorter).all() and (found.longer_followed <= found.longer).all()
