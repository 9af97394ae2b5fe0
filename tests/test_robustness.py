"""Nothing breaks it: a short, seeded selection of the mutation harness, and random input for every reader.

The long run is `python -m benchmarks.mutations --count 10000`; docs/reliability.md tells what it found.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzzing import fuzz
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.errors import ConfigError, RuleError
from advisor.config import load_config
from advisor.facts.base import Run
from advisor.facts.registry import catalogue, plan
from advisor.pipeline import Options, reduce_all
from advisor.ruleset.files.loader import load_rules
from advisor.ruleset.language.expression import ExpressionError, parse
from advisor.sources.discover import load_profile
from advisor.tables import TABLES
from advisor.yamlfiles.document import parse_document
from benchmarks.mutants.profiles import write_originals

ROOT = Path(__file__).parent.parent
FUZZ = fuzz(25)
CELLS = st.one_of(
    st.sampled_from(["", "N/A", "nan", "inf", "-1", "1e999", "0", "12.5", "1,5", "[1]", "'", '"', "\x00", "9" * 400]),
    st.text(max_size=12),
    st.integers(-10, 10**18).map(str),
)  # fmt: skip
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from([
    "step5", "collective", "p2p", "hcom_allReduce__1_0_1@g1", "Communication Time Info", "Elapse Time(ms)", "0-1", "x",
    "Communication Bandwidth Info", "HCCS", "Size Distribution", "Transit Size(MB)", "Transit Time(ms)", "op_info",
    "op_id", "op_type", "num_workers", "metrics", "output_queue", "size", "length", "children", "op_ids", "time_stamp",
    "device_info", "process_info", "cpu_processor_num", "traceEvents", "ph", "ts", "dur", "name", "args", "(0, 1)",
    "config", "common_config", "experimental_config", "schedule", "rank_id", "parallel_group_info", "global_ranks",
    "distributed_args", "ms_profiler_info", "profiler_parameters", "user_utilization",
    "bottleneck_warning", "bottleneck_suggestion", "pipeline_ops", "queue_utilization_pct",
])  # fmt: skip
SHAPED = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 10**20), st.floats(), st.text(max_size=6)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
FILES = {
    "step_trace_time.csv": "steps", "kernel_details.csv": "kernels", "op_statistic.csv": "operator_types",
    "api_statistic.csv": "host_api", "data_preprocess.csv": "aicpu", "memory_record.csv": "memory",
    "operator_memory.csv": "operator_memory", "npu_module_mem.csv": "module_memory", "dataset.csv": "dataset_stages",
}  # fmt: skip
DOCUMENTS = (
    "communication.json",
    "communication_matrix.json",
    "trace_view.json",
    "minddata_pipeline_summary_0.json",
    "pipeline_profiling_0.json",
    "minddata_cpu_utilization_0.json",
    "profiler_info_0.json",
    "profiler_metadata.json",
)
ANALYSED = (
    "cluster_communication.json", "cluster_communication_matrix.json", "communication_group.json",
    "flops_summary_0.json", "parallel_strategy_0.json", "memory_usage_summary_0.json", "step_trace_point_info_0.json",
    "gpu_timeline_display_0.json", "timeline_0.json",
)  # fmt: skip
STEPS = (
    "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    "1,100,300,200,120,280,20,160,20\n2,300,500,200,320,480,20,160,20\n"
)
LEGACY = (
    "step_trace_raw_0_detail_time.csv", "aicore_intermediate_0_type.csv", "aicore_intermediate_0_detail.csv",
    "aicpu_intermediate_0.csv", "minddata_pipeline_raw_0.csv", "framework_raw_0.csv", "hccl_raw_0.csv",
    "device_queue_profiling_0.txt", "dataset_iterator_profiling_0.txt", "minddata_aicpu_0.txt", "flops_0.txt",
    "output_timeline_data_0.txt", "ascend_timeline_display_0.json", "dynamic_shape_info_0.json",
    "ascend_cluster_analyse_data-parallel_1_1_0.csv", "ascend_cluster_analyse_pipeline-parallel_2_4_0.csv",
    "output_data_preprocess_aicpu_0.txt", "pynative_op_intermediate_0_type.csv", "cpu_op_detail_info_0.csv",
    "minddata_getnext_profiling_0.txt", "host_info_0.csv", "host_memory_0.csv", "RuntimeProfilerDetail0.csv",
)  # fmt: skip


def test_a_selection_of_mutants_breaks_nothing() -> None:
    """Cut, flipped, renamed, emptied, linked, growing: no traceback, no hang, and nobody is accused by damage."""
    command = [sys.executable, "-m", "benchmarks.mutations", "--count", "24", "--seed", "7", "--jobs", "2"]
    environment = {name: value for name, value in os.environ.items() if name != "ADVISOR_CORPUS"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=400)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-2000:]


def test_what_lies_beside_profiles_breaks_nothing() -> None:
    """Damaged caches, lists of trusted folders and messages to a server: no other rules, no program run, no end."""
    command = [sys.executable, "-m", "benchmarks.surroundings", "--count", "6", "--targets", "cache,trust,mcp"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=400)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-2000:]


def measure_everything(folder: Path) -> Run:
    """Every table read and every family measured, as `advisor facts` does; an exception anywhere fails the test."""
    profile = load_profile([folder])
    tables = frozenset(table for rank in profile.ranks for table in rank.tables)
    return reduce_all(profile, plan(catalogue(), tables), Options(jobs=1))


_RESCUED = re.compile(r"could not be measured|cannot be read: (Type|Key|Index|Attribute|Recursion|Overflow)\w*Error")
"""What the nets below every reader and every family say."""


def check(folder: Path) -> None:
    """The profile is measured, and nothing was only rescued by the last net."""
    run = measure_everything(folder)
    told = [*run.profile.problems, *(problem for rank in run.profile.ranks for problem in rank.problems)]
    assert [p.problem for p in told if _RESCUED.search(p.problem)] == []


@contextmanager
def rank_folder() -> Iterator[Path]:
    """The output folder of one rank of two steps, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "x_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        text = "Step,Computing,Communication(Not Overlapped),Free\n5,10,5,3\n6,10,5,3\n"
        (output / "step_trace_time.csv").write_text(text)
        yield output


@pytest.mark.parametrize("name", FILES)
@FUZZ
@given(data=st.data())
def test_any_cells_under_the_right_headings(name: str, data: Any) -> None:
    """The columns are there and the cells hold anything."""
    headings = [column.headings[0] for column in TABLES[FILES[name]].columns if column.headings]
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(headings) - 1, max_size=len(headings) + 1), max_size=6))
    text = "\n".join([",".join(headings), *(",".join(row) for row in rows)])
    with rank_folder() as output:
        (output / name).write_text(text, encoding="utf-8", errors="replace")
        check(output.parent.parent)


@pytest.mark.parametrize("name", [*FILES, *DOCUMENTS, "ascend_mindspore_profiler_0.db"])
@FUZZ
@given(content=st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))))
def test_any_bytes_under_the_right_name(name: str, content: bytes) -> None:
    """A file's name promises nothing about its content."""
    with rank_folder() as output:
        (output / name).write_bytes(content)
        check(output.parent.parent)


@pytest.mark.parametrize("name", DOCUMENTS)
@FUZZ
@given(content=st.one_of(JSON, SHAPED, st.lists(SHAPED, max_size=3)))
def test_any_json_under_the_right_name(name: str, content: Any) -> None:
    """Valid JSON whose keys are the profiler's and whose values are anything."""
    with rank_folder() as output:
        place = output.parent if name.startswith("profiler_info") else output
        (place / name).write_text(json.dumps(content), encoding="utf-8", errors="surrogatepass")
        check(output.parent.parent)


@pytest.mark.parametrize("name", ANALYSED)
@FUZZ
@given(content=st.one_of(JSON, SHAPED, st.dictionaries(KEYS, st.dictionaries(KEYS, SHAPED, max_size=3), max_size=3)))
def test_any_json_of_analysers_and_older_versions(name: str, content: Any) -> None:
    """What a cluster analyser or an older MindSpore wrote beside a trace of steps."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "step_trace_raw_0_detail_time.csv").write_text(STEPS)
        (Path(folder) / name).write_text(json.dumps(content), encoding="utf-8", errors="surrogatepass")
        check(Path(folder))


OLDER: dict[str, Any] = {
    "hccl_0_2_1.json": [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "Communication Kernel"}},
        {"ph": "X", "name": "Default/AllReduce-op5_0", "pid": 1, "tid": 2, "ts": 100.0, "dur": 50.0},
        {"ph": "X", "name": "Memcpy", "pid": 1, "tid": 3, "ts": 120.0, "dur": 20.0, "args": {"transport type": "SDMA"}},
    ],
    "task_time_0_2_1.json": [
        {"ph": "X", "name": "Default/MatMul-op1", "pid": 1, "tid": 4, "ts": 90.0, "dur": 10.0,
         "args": {"Task Type": "AI_CORE", "Stream Id": 4}},
        {"ph": "X", "name": "wait", "pid": 1, "tid": 5, "ts": 110.0, "dur": 10.0,
         "args": {"Task Type": "NOTIFY_WAIT", "Stream Id": 5}},
    ],
    "step_trace_0_2_1.json": [
        {"ph": "X", "cat": "Iteration Time", "name": "1", "ts": 80.0, "dur": 90.0, "args": {"Iteration ID": 1}},
        {"ph": "s", "cat": "Data_aug Bound", "name": "a", "id": "7", "ts": 80.0, "args": {"Iteration ID": 0}},
        {"ph": "t", "cat": "Data_aug Bound", "name": "a", "id": "7", "ts": 85.0, "args": {"Iteration ID": 0}},
    ],
}  # fmt: skip
"""A device's timelines of one iteration, as msprof wrote them."""
ROOM: dict[str, Any] = {
    "ascend_timeline_display_0.json": [
        {"ph": "X", "name": "MatMul-op1", "pid": 0, "tid": "3", "ts": 10.0, "dur": 5.0, "args": {"type": "MatMul"}},
    ],
    "dynamic_shape_info_0.json": {"operator": {"1": [
        {"op_name": "MatMul-op1", "op_type": "MatMul", "dur": 3.0, "shape_info": [[2, 3]]}]}},
    "flops_summary_0.json": {"FLOPs": 12.5, "FLOPS": 3.1, "FLOPS_Utilization": 4.2},
    "parallel_strategy_0.json": {
        "config": {"rankId": "0", "parallelType": "data_parallel", "stageDevices": [{"dim": [{"size": 1}]}]}},
    "memory_usage_summary_0.json": {"capacity": 31.0, "peak_mem": 12.0, "static_mem": 3.0},
    "step_trace_point_info_0.json": {"fp_start": "Default/a-op1", "bp_end": "Default/b-op2"},
    "timeline_0.json": {"traceEvents": [
        {"ph": "X", "name": "KernelExecutor::Launch::Default", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0,
         "args": {"module_name": "m", "event": "e", "stage": "s", "level": "1", "custom_info": "x"}}]},
}  # fmt: skip
"""What older versions wrote beside their trace of steps."""
WRONG: tuple[Any, ...] = (None, True, 7, -1.5, 10**40, "abc", "", [], [1, "a"], [[[]]], {}, {"a": {"b": 1}})


@lru_cache(maxsize=1)
def documents() -> tuple[tuple[Path, Path], ...]:
    """(profile, JSON file in it) of every kind of profile that writes any."""
    folder = Path(tempfile.mkdtemp(prefix="documents-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    roots = [root for name, root in write_originals(folder, corpus=False).items() if not name.startswith("archive")]
    for name, written in (("timelines/PROF_000001_x/device_0/timeline", OLDER), ("older", ROOM)):
        place = folder / name
        place.mkdir(parents=True)
        for file, content in written.items():
            (place / file).write_text(json.dumps(content))
        roots.append(folder / name.partition("/")[0])
    (folder / "older" / "step_trace_raw_0_detail_time.csv").write_text(STEPS)
    return tuple(
        (root, path) for root in roots for path in sorted(root.rglob("*.json")) if path.name != "scenario.json"
    )


def within(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a document."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from within(inner, (*path, key))


@fuzz(40)
@given(seed=st.integers(0, 2**32))
def test_any_value_of_any_json_may_be_of_another_type(seed: int) -> None:
    """A list where a text should be costs what it stands for, and no reader: a name is looked up in sets, sorted and
    split, a number is added up."""
    draw = Random(seed)
    names = sorted({path.name for _, path in documents()})
    name = draw.choice(names)
    root, path = draw.choice([pair for pair in documents() if pair[1].name == name])
    document = json.loads(path.read_text())
    wrong = draw.choice(WRONG)
    kinds: dict[str, list[tuple[Any, ...]]] = {}
    for place in within(document):
        kinds.setdefault(re.sub(r"\d+", "", "/".join(map(str, place))), []).append(place)
    chosen = kinds[draw.choice(sorted(kinds))]
    for place in chosen if draw.random() < 0.3 else [draw.choice(chosen)]:
        if not place:
            document = wrong
            continue
        container = document
        for key in place[:-1]:
            container = container[key]
        container[place[-1]] = wrong
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / root.name
        shutil.copytree(root, copy)
        (copy / path.relative_to(root)).write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
        check(copy)


@pytest.mark.parametrize("name", LEGACY)
@FUZZ
@given(content=st.one_of(st.binary(max_size=200), st.lists(st.lists(CELLS, max_size=9), max_size=5)))
def test_any_content_of_older_files(name: str, content: Any) -> None:
    """Older MindSpore writes many small formats; none is trusted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text("\n".join(",".join(row) for row in content), encoding="utf-8", errors="replace")
        check(Path(folder))


@fuzz(150)
@given(st.text(alphabet="ab.:$()[]+-*/<>=!,'\" 0159eE_not andorin", max_size=60))
def test_any_expression_is_read_or_refused(text: str) -> None:
    """The parser has two answers only: a tree, or an error that names the place."""
    try:
        parse(text)
    except ExpressionError as error:
        assert str(error)


@fuzz(150)
@given(st.one_of(st.text(max_size=120), st.text(alphabet="abc:-{}[]\"'&*!|>#%@ \n", max_size=120)))
def test_any_yaml_is_read_or_refused(text: str) -> None:
    """As for expressions: a document or an error with file and line."""
    try:
        parse_document(text, Path("x.yaml"))
    except RuleError as error:
        assert "x.yaml:" in str(error)


@FUZZ
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))))
def test_any_rule_file_is_loaded_or_told(tmp_path: Path, content: bytes) -> None:
    """A pack of nonsense gives no rules, one defect a file at least, and no exception."""
    pack = tmp_path / "pack"
    pack.mkdir(exist_ok=True)
    (pack / "X1-y.yaml").write_bytes(content)
    rules = load_rules([pack], strict=False)
    assert rules.rules == () and rules.errors


@FUZZ
@given(
    content=st.one_of(
        st.binary(max_size=100),
        st.dictionaries(
            st.sampled_from(["extend", "select", "ignore", "rules", "params", "severities", "lang", "models", "gate"]),
            JSON, max_size=3,
        ).map(lambda table: "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items()).encode()),
    )
)  # fmt: skip
def test_any_configuration_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """advisor.toml is used as it stands or refused with the key that is wrong."""
    path = tmp_path / "advisor.toml"
    path.write_bytes(content)
    try:
        load_config(path)
    except ConfigError as error:
        assert "advisor.toml" in str(error)
