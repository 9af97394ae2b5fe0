"""`advisor collect --for-missing`: what the last report lacked, asked for in the words of each profiler."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from advisor.cli.main import main
from advisor.collect import check_text
from advisor.collect.missing import step_bytes
from advisor.exchange import report_from_json

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A saved report that lacks the data pipeline and device memory."""
    path = tmp_path_factory.mktemp("reports") / "report.json"
    assert main(["advise", str(ROOT / "examples" / "slow-rank-pipeline"), "-q", "--format", f"json:{path}"]) == 0
    return path


def collected(capsys, report: Path, *more: str) -> tuple[str, str]:
    """Standard output and standard error of the command."""
    capsys.readouterr()
    assert main(["collect", "--for-missing", str(report), *more]) == 0
    told = capsys.readouterr()
    return told.out, told.err


def test_mindspore_gets_a_run_for_each_of_two_settings_that_exclude_one_another(report, capsys):
    """Both are Python that the advisor's own check accepts, each with what it brings and costs."""
    text, _ = collected(capsys, report)
    runs = [f"# Run {part}" for part in text.split("# Run ")[1:]]
    loading, memory = sorted(runs, key=lambda run: "data_process=True" not in run)
    assert "data_process=True" in loading and "profile_memory=True" in memory
    for run in runs:
        ast.parse(run)
        assert not [fault for fault in check_text(run, "script.py") if fault.level == "error"]
        assert "slower" in run.splitlines()[0]
    assert "kB per rank and step (39 kernels)" in memory
    assert "Level1" in memory, "what the last report had is recorded again"


def test_dynamic_profiling_gets_a_file_it_can_read(report, capsys, tmp_path):
    """JSON alone in the file; what it cannot bring is said beside it."""
    file = tmp_path / "profiler_config.json"
    _, told = collected(capsys, report, "--as", "dynamic", "-o", str(file))
    document = json.loads(file.read_text())
    assert document["profile_memory"] is True and document["profiler_level"] == 1
    assert "dynamic cannot record the data pipeline" in told and "per rank and step" in told
    assert main(["collect", "--check", str(file)]) == 0


def test_torch_npu_gets_its_own_configuration(report, capsys):
    """No setting that it does not have."""
    document = json.loads(report.read_text())
    document["profile"] |= {"framework": "pytorch", "layout": "ascend_pt"}
    other = report.parent / "pytorch.json"
    other.write_text(json.dumps(document))
    text, _ = collected(capsys, other)
    assert "torch_npu" in text and "_ExperimentalConfig" in text and "data_process" not in text
    ast.parse(text)


def test_msprof_gets_a_command_line(report, capsys):
    """Options a shell takes as they are; that it tells no steps is said."""
    import shlex

    text, told = collected(capsys, report, "--as", "msprof")
    words = shlex.split(text, comments=True)
    assert words[0] == "msprof" and "--task-memory=on" in words and "--task-time=l1" in words
    assert "msprof cannot record" in told and "neither steps" in text


def test_cost_follows_the_kernels_of_the_step(report):
    """Ten times the kernels, ten times the timeline; more evidence is never cheaper."""
    plain = report_from_json(report.read_bytes())
    document = json.loads(report.read_text())
    for fact in document["facts"]:
        if fact["name"] == "operators.kernel_count":
            fact["value"] *= 10
    kernels, size = step_bytes(plain, ["steps"])
    more, larger = step_bytes(report_from_json(document), ["steps"])
    assert more == 10 * kernels and larger == 10 * size
    sizes = [step_bytes(plain, names)[1] for names in (["steps"], ["steps", "memory"], ["steps", "memory", "stacks"])]
    assert sizes == sorted(set(sizes))


def test_a_report_that_lacks_nothing_asks_for_nothing(report, capsys):
    """No configuration, one sentence; in Chinese too."""
    document = json.loads(report.read_text())
    document["missing_evidence"] = []
    other = report.parent / "complete.json"
    other.write_text(json.dumps(document))
    assert collected(capsys, other) == ("", "The report lacks no evidence; no further collection is needed.\n")
    assert collected(capsys, other, "--lang", "zh")[1] == "报告不缺少数据，无需采集。\n"


@pytest.mark.parametrize("stated", [True, False])
def test_ranks_without_a_profile_are_named(report, capsys, stated):
    """Two of eight ranks: the other six, with or without anything else that is missing. Ranks that groups name are not
    taken for all."""
    document = json.loads(report.read_text())
    document["missing_evidence"] = []
    document["profile"] |= {"ranks": [0, 3], "world_size": 8}
    for fact in document["facts"]:
        if fact["name"] == "run.world_is_stated":
            fact["value"] = stated
    other = report.parent / "two.json"
    other.write_text(json.dumps(document))
    assert collected(capsys, other)[1] == (
        "Profile all 8 ranks with the same settings; without a profile so far: rank 1-2, 4-7.\n"
        if stated
        else "Profile all ranks with the same settings; of those that the files name, these have no profile so far: "
        "rank 1-2, 4-7.\n"
    )


def test_what_is_no_report_is_told(tmp_path, capsys):
    """A file of something else, or none."""
    (tmp_path / "x.json").write_text("{}")
    assert main(["collect", "--for-missing", str(tmp_path / "x.json")]) == 2
    assert main(["collect", "--for-missing", str(tmp_path / "none.json")]) == 2
