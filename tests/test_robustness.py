"""Nothing breaks it: a short, seeded selection of the mutation harness, and random input for every reader.

The long run is `python -m benchmarks.mutations --count 10000`; docs/reliability.md tells what it found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


def check(folder: Path) -> None:
    """The profile is measured, and nothing was only rescued by the last net."""
    run = measure_everything(folder)
    rescued = [p.problem for rank in run.profile.ranks for p in rank.problems if "could not be measured" in p.problem]
    assert rescued == []


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
        (Path(folder) / "step_trace_raw_0_detail_time.csv").write_text(
            "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
            "1,100,300,200,120,280,20,160,20\n2,300,500,200,320,480,20,160,20\n"
        )
        (Path(folder) / name).write_text(json.dumps(content), encoding="utf-8", errors="surrogatepass")
        check(Path(folder))


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
