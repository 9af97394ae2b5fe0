"""Digits of other scripts make no ranks, and one event nested too deep costs itself alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from clusters import SMALL

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.discover import load_profile
from advisor.sources.streams.trace_events import stream
from advisor.sources.topology import LARGEST_WORLD
from benchmarks.simulator import simulate, write_profile


def test_digits_of_other_scripts_are_no_rank_numbers(tmp_path: Path) -> None:
    """`profiler_info_٣.json` names no rank 3."""
    folder = tmp_path / "host_1_20240101000000000_ascend_ms"
    (folder / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (folder / "profiler_info_٣.json").write_text("{}")
    (folder / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Free\n1,2,3,4\n"
    )
    (rank,) = load_profile([tmp_path]).ranks
    assert rank.rank == 0 and not rank.info_files


@pytest.mark.parametrize("depth", [3_000, 200_000])
def test_deep_arguments_cost_one_event(depth: int, tmp_path: Path) -> None:
    """All other events of the timeline are read, and what was left out is told."""
    deep = '{"a":' * depth + "1" + "}" * depth
    plain = '{"ph":"X","name":"step","pid":1,"tid":1,"ts":"17.000","dur":1}'
    path = tmp_path / "trace_view.json"
    path.write_text("[" + ",".join([plain] * 3 + [plain[:-1] + f',"args":{deep}}}'] + [plain] * 3) + "]")
    told: list[str] = []
    events = [event for block, _ in stream(path, lambda place, text, *_: told.append(text)) for event in block]
    assert len(events) == 6 and "left out" in told[0]


def test_a_queue_with_more_than_it_holds_is_told(tmp_path: Path) -> None:
    """Samples above the capacity are percentages, or of another queue: the report says so."""
    path = tmp_path / "pipeline_profiling_0.json"
    queue = (
        '{"op_id": 0, "op_type": "Map", "num_workers": 1, "metrics": {"output_queue": {"length": 16, "size": [90]}}}'
    )
    path.write_text(f'{{"sampling_interval": 10, "op_info": [{queue}]}}')
    (rank,) = load_profile([tmp_path]).ranks
    rank.read("pipeline_ops")
    assert any("more in their queue than it holds" in problem.problem for problem in rank.problems)


def test_a_rank_of_a_world_that_cannot_be_makes_no_world(tmp_path: Path) -> None:
    """A number of a damaged or hostile file is no reason to think of five hundred million ranks one by one."""
    write_profile(simulate(replace(SMALL, data=2, steps=2, layers=2)), tmp_path)
    for path in tmp_path.rglob("communication_matrix.json"):
        path.write_text(path.read_text().replace('"0-1"', '"0-536870911"'))
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert (report.profile.world_size or 0) <= LARGEST_WORLD
    assert not [problem for problem in report.problems if "Error" in problem.problem]
