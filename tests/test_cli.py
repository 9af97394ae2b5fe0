"""The command line: exit statuses of the contract, files written whole, bad input told in words."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.cli.main import main
from advisor.render import formats_of

EXAMPLE = Path(__file__).parents[1] / "examples" / "slow-rank-pipeline"
HEADER = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing\r\n"
)


@pytest.fixture
def profile(tmp_path):
    """One rank with four steps, nine tenths computing."""
    output = tmp_path / "w_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = "".join(f"{i},90000.0,1000.0,500.0,1500.0,9000.0,0,0,1000.0,100.0\r\n" for i in range(5, 9))
    (output / "step_trace_time.csv").write_text(HEADER + rows, newline="")
    return output.parent


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    return status, capsys.readouterr()


def test_advise_ends_with_0_and_a_json_report(profile, capsys):
    """The report of a readable profile goes to standard output and nothing else does."""
    status, out = run(capsys, "advise", profile, "--format", "json")
    report = json.loads(out.out)
    assert status == 0
    assert report["summary"]["step_time_us"] == pytest.approx(100_000)
    assert report["summary"]["breakdown"]["computing"] == pytest.approx(0.9)
    assert report["profile"]["steps"] == ["5", "6", "7", "8"]


def test_a_folder_without_a_profile_gives_3_and_a_report_that_says_what_was_sought(tmp_path, capsys):
    """Nothing measured is never health."""
    status, out = run(capsys, "advise", tmp_path, "--format", "json")
    report = json.loads(out.out)
    assert status == 3
    assert report["summary"]["direction"] == "undetermined" and report["problems"]


BROKEN = """
id: ACME001
title: {en: Too long, zh: 过长}
verdict: acme/too-long
direction: computation
kind: cause
for: run
needs: [step.time_us]
when: [step.time_us >]
severity: high
message: {en: Too long., zh: 过长。}
"""


def test_a_wrong_rule_ends_with_2_and_the_rest_is_judged_all_the_same(profile, tmp_path, capsys):
    """A pipeline must not take a rule that was never judged for one that holds; what failed before it has failed."""
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "ACME001-long.yaml").write_text(BROKEN, encoding="utf-8")
    arguments = ("advise", profile, "--rules", tmp_path / "pack", "--format", "json")
    status, out = run(capsys, *arguments)
    outcomes = {check["rule"]: check["outcome"] for check in json.loads(out.out)["checked"]}
    assert status == 2 and outcomes["ACME001"] == "error" and "pass" in outcomes.values()
    assert "ACME001-long.yaml:9: " in out.err


def test_verbose_tells_what_was_read_on_standard_error(profile, capsys):
    """Standard output stays the report."""
    _, quiet = run(capsys, "advise", profile)
    _, out = run(capsys, "advise", profile, "-v")
    assert out.out == quiet.out and quiet.err == ""
    assert "1 ranks" in out.err and "facts measured" in out.err


@pytest.mark.parametrize("form", formats_of("report"))
def test_a_file_holds_what_standard_output_would(profile, tmp_path, capsys, monkeypatch, form):
    """Byte for byte, with the last line ended, where no terminal asks for another width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    _, out = run(capsys, "advise", profile, "--format", form, "--format", f"{form}:{tmp_path / 'out'}")
    assert (tmp_path / "out").read_text(encoding="utf-8") == out.out


def test_every_command_that_judges_a_profile_knows_the_models_of_the_configuration(profile, tmp_path, capsys):
    """What `advise --model` judges can be explained, compared and examined."""
    config = tmp_path / "c.toml"
    config.write_text("[models.small]\nparams = {SCHED020 = {share = 0.42}}\n")
    given = ("--config", config, "--model", "small")
    assert "share = 42\xa0%" in run(capsys, "explain", "SCHED020", *given)[1].out
    assert run(capsys, "doctor", profile, *given)[0] == 0
    assert run(capsys, "compare", profile, profile, "-q", *given)[0] == 0
    assert run(capsys, "explain", "SCHED020", "--config", config, "--model", "large")[0] == 2


def test_a_profile_of_unreadable_files_gives_3(profile, capsys):
    """That no rank is missing is no verdict about the training."""
    (profile / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").write_bytes(b"\x00\xff" * 50)
    status, out = run(capsys, "advise", profile, "--format", "json", "--fail-on", "low")
    report = json.loads(out.out)
    assert status == 3 and report["summary"]["direction"] == "undetermined"
    assert any("step_trace_time.csv" in problem["file"] for problem in report["problems"])
    assert run(capsys, "advise", profile, "--select", "COLL")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [["advise"], ["advise", "/no/such/folder"], ["advise", ".", "--format", "pdf"], ["advise", ".", "--select", "NOPE"],
     ["nonsense"], ["advise", ".", "--config", "/no/such.toml"], ["explain", "NOPE999"]],
)  # fmt: skip
def test_wrong_usage_ends_with_2_and_says_why(arguments, capsys):
    """A typing error is told in words, never as a traceback."""
    status, out = run(capsys, *arguments)
    assert status == 2
    assert out.err.strip() and "Traceback" not in out.err


def test_fail_on_ends_with_1_where_a_finding_is_severe_enough(capsys):
    """In CI the threshold decides; without it the worst profile ends with 0."""
    assert run(capsys, "advise", EXAMPLE, "-q")[0] == 0
    assert run(capsys, "advise", EXAMPLE, "-q", "--fail-on", "medium")[0] == 1
    assert run(capsys, "advise", EXAMPLE, "-q", "--fail-on", "medium", "--ignore", "COMM,CLUS")[0] == 0


def test_formats_go_to_files_whole(profile, tmp_path, capsys):
    """Several formats in one run, each under its final name only when complete."""
    html, report = tmp_path / "r.html", tmp_path / "r.json"
    assert run(capsys, "advise", profile, "--format", f"html:{html}", "--format", f"json:{report}")[0] == 0
    assert json.loads(report.read_text())["schema_version"] == "1.1"
    assert html.read_text().lstrip().lower().startswith("<!doctype html")
    assert not list(tmp_path.glob(".r.*"))
    assert run(capsys, "advise", profile, "--format", f"json:{tmp_path}/none/r.json")[0] == 2


def test_facts_are_saved_and_judged_again_without_the_profile(profile, tmp_path, capsys):
    """A bug report needs the facts, not gigabytes of traces."""
    saved = tmp_path / "facts.json"
    status, out = run(capsys, "facts", profile, "--save", saved)
    assert status == 0 and json.loads(out.out) == json.loads(saved.read_text())
    first = json.loads(run(capsys, "advise", profile, "--format", "json")[1].out)
    again = json.loads(run(capsys, "advise", "--facts", saved, "--format", "json")[1].out)
    assert again["findings"] == first["findings"] and again["summary"] == first["summary"]
    saved.write_text("{}")
    assert run(capsys, "advise", "--facts", saved)[0] == 2


def test_doctor_and_explain_answer(profile, capsys):
    """What was recognised, and why a rule fired or not."""
    status, out = run(capsys, "doctor", profile, "--format", "json")
    assert status == 0 and json.loads(out.out)["ranks"][0]["rank"] == 0
    status, out = run(capsys, "explain", "DATA010", "--profile", profile)
    assert status == 0 and "Not enough evidence" in out.out


def test_a_finding_is_explained_from_the_file_to_the_verdict(capsys):
    """Who doubts F1 sees its rule, every clause with its value, the file and column behind it, and what came of it."""
    example = str(Path(__file__).parents[1] / "examples" / "slow-rank-pipeline")
    status, out = run(capsys, "advise", example, "--format", "json")
    first = json.loads(out.out)["findings"][0]
    status, out = run(capsys, "explain", "F1", "--profile", example, "--format", "json")
    told = json.loads(out.out)
    assert status == 0 and told["rule"]["id"] == first["rule"]
    (subject,) = told["profile"]["subjects"]
    assert subject["fired"] and subject["finding"]["id"] == "F1" and subject["finding"]["role"] == "root_cause"
    source = first["evidence"][0]["source"]
    read = [o for clause in subject["clauses"] for o in clause["observed"] if o["fact"] == first["evidence"][0]["fact"]]
    assert read[0]["value"] == first["evidence"][0]["value"]
    assert {"file": source["file"], "columns": source["columns"]} in read[0]["sources"]
    status, out = run(capsys, "explain", "F1", "--profile", example)
    assert source["file"] in out.out and "so F1: Cause" in out.out


def test_help_answers_at_once():
    """Nothing heavy is imported before it is needed."""
    code = (
        "import sys; from advisor.cli.main import main; main(['--help']); print(sorted(m for m in ('pandas', 'numpy', "
    )
    code += "'pydantic', 'polars', 'jinja2', 'yaml', 'rich') if m in sys.modules))"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
    assert time.perf_counter() - start < 5


def test_whatif_replays_the_step_without_a_finding(capsys):
    """The step then, each rank's new share, and an id that promises nothing is told with those that do."""
    status, out = run(capsys, "whatif", "examples/slow-rank-pipeline", "--without", "F1", "-q", "--format", "json")
    answer = json.loads(out.out)
    assert status == 0
    assert 0 < answer["step_time_without_us"] < answer["step_time_us"]
    shares = answer["computing_share"]
    assert shares["1"]["after"] < shares["1"]["before"] and shares["0"]["after"] > shares["0"]["before"]
    status, out = run(capsys, "whatif", "examples/slow-rank-pipeline", "--without", "F99", "-q")
    assert status == 2 and "F99" in out.err and "F1" in out.err
