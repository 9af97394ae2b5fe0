"""What a team runs into in its first weeks with the gate, from the command line: histories by kind, runs that count
once, first use, new findings, waivers, unreadable runs, destroyed baselines, step times."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from advisor.basics.resources import resource
from advisor.cli.main import main
from tests.helpers.profiles import RULE, write_run

GOOD = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8)
FORMATS = ("text", "json", "html", "markdown", "sarif", "junit", "github")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Profiles of good, equal and slow runs of two batch sizes, and a policy with a rule of its own."""
    root = tmp_path_factory.mktemp("team")
    for i, step in enumerate(GOOD):
        write_run(root / f"good{i}", step)
    for i, step in enumerate(GOOD[:5]):
        write_run(root / f"same{i}", step + 0.2)
        write_run(root / f"slow{i}", step * 1.1 + 0.01, exposed=0.4)
        write_run(root / f"fast{i}", step * 0.85)
        write_run(root / f"exposed{i}", step + 0.3, exposed=0.4)
        write_run(root / f"large{i}", step * 1.33, batch=16)
        write_run(root / f"largesame{i}", step * 1.33 + 0.2, batch=16)
        write_run(root / f"largeslow{i}", step * 1.33 * 1.3, batch=16)
    (root / "pack").mkdir()
    (root / "pack" / "ACME001-exposed.yaml").write_text(RULE, encoding="utf-8")
    (root / "empty").mkdir()
    (root / "empty" / "notes.txt").write_text("nothing")
    return root


@pytest.fixture
def call(site, capsys, monkeypatch, tmp_path):
    """call(command, *names of runs, options…, policy=TOML): status, output, errors; the baseline is the test's own."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def run(command: str, *arguments: str, policy: str = ""):
        config = tmp_path / "advisor.toml"
        config.write_text(
            f'extend = []\nrules = ["{site / "pack"}"]\n[gate]\nbaseline = "base#main"\n{policy}\n', encoding="utf-8"
        )
        named = [_run(site, argument) for argument in arguments]
        with_config = [] if command.split()[-1] in ("promote", "freeze") else ["--config", str(config)]
        status = main([*command.split(), *named, *with_config])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def _run(site: Path, name: str) -> str:
    """The profile of this name, where there is one; anything else stands for itself."""
    found = [path for path in (site / f"{name}_ascend_ms", site / name) if path.exists()]
    return str(found[0]) if found and name else name


def names(prefix: str, count: int = 5) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


# 1. Comparability partitions the history.


def test_two_batch_sizes_are_two_histories(call):
    """The gate's own hint once mixed them: then equal runs failed by 33 %, and runs 30 % slower passed as better."""
    call("baseline add", *names("good"))
    status, out, _ = call("gate", *names("large"))
    assert status == 3 and "batch: × 1 → × 2" in out
    status, out, _ = call("baseline add", *names("large"))
    assert status == 0 and out.count("opens a history of its own (batch: × 1 → × 2)") == 1
    assert "(5 of its kind)" in out
    assert call("gate", *names("same"))[0] == 0
    assert call("gate", *names("largesame"))[0] == 0
    status, out, _ = call("gate", *names("largeslow"))
    assert (status == 1 and "step time +29" in out) or "step time +30" in out
    assert call("gate", *names("slow"))[0] == 1
    _, out, _ = call("baseline show")
    assert "step time: 100\xa0ms" in out and "step time: 133\xa0ms" in out and "kind 2, against kind 1: batch" in out


def test_key_fields_part_histories_and_promote_replaces_its_own_kind_only(call, tmp_path):
    """An accepted change of one model must not throw away the history of another."""
    call("baseline add", *names("good"), "--key", "model=a")
    call("baseline add", *names("large"), "--key", "model=b")
    base = str(tmp_path / "base")
    call("baseline add", *names("fast"), "--key", "model=a", "--baseline", f"{base}#next")
    assert call("baseline promote", f"{base}#next", f"{base}#main", "--reason", "fused kernels")[0] == 0
    assert call("gate", *names("largesame"), "--key", "model=b")[0] == 0
    status, out, _ = call("gate", *names("same"), "--key", "model=a")
    assert (status == 1 and "step time +17" in out) or "step time +18" in out
    status, out, _ = call("gate", *names("same"))
    assert status == 3 and "model:" in out


def test_longer_sequences_are_another_kind_and_a_flipped_kernel_is_not(call, tmp_path):
    """Other shapes are other work; which kernel of one type is the costliest may change by itself."""
    call("baseline add", *names("good"))
    kernels = Path("ASCEND_PROFILER_OUTPUT") / "kernel_details.csv"
    for name, operators, status in (("long", ("MatMul", "Add"), 3), ("flip", ("MatMul",), 0)):
        runs = [write_run(tmp_path / f"{name}{i}", step + 0.3) for i, step in enumerate(GOOD[:5])]
        for run in runs:
            lines = (run / kernels).read_text(encoding="utf-8").splitlines()
            changed = [
                line.replace("8,1024;", "8,4096;") if any(f",{op}," in line for op in operators) else line
                for line in lines
            ]
            (run / kernels).write_text("\n".join(changed) + "\n", encoding="utf-8")
        found, out, _ = call("gate", *map(str, runs))
        assert found == status, out
        assert ("shapes: MatMul 8,1024;1024,1024 → MatMul 8,4096;1024,1024" in out) == (status == 3)


# 2. A run counts once.


def test_a_copied_run_is_the_same_run(call, site, tmp_path):
    """Content tells, not the path: copies are not added, and five of them are one run."""
    copies = []
    for i in range(4):
        copies.append(str(tmp_path / f"copy{i}" / "other_name_ascend_ms"))
        shutil.copytree(_run(site, "good0"), copies[-1])
    assert call("baseline add", "good0")[0] == 0
    status, out, _ = call("baseline add", *copies, "good1")
    assert status == 0 and out.count("is there already") == 4 and "(2 of its kind)" in out
    call("baseline add", *names("good"))
    status, out, _ = call("gate", "good0", *copies)
    assert status == 3 and "1 of the 5 runs needed" in out and "copies of other runs, counted once: 4" in out


def test_a_run_is_not_judged_against_itself(call):
    """Runs that are in the baseline are left out of it, and a confirming copy confirms nothing."""
    call("baseline add", *names("good", 7))
    status, out, _ = call("gate", *names("good"))
    assert status == 3 and "left out of it: 5" in out and "the baseline has 2 of the 5 runs needed" in out


def test_copied_files_of_a_baseline_count_once(call, tmp_path):
    """A merge of two folders of files must not turn three runs into six."""
    call("baseline add", *names("good", 3))
    folder = tmp_path / "base" / "main"
    for path in sorted(folder.glob("*.json")):
        shutil.copy(path, folder / path.name.replace("-run-", "-run-a"))
    status, out, _ = call("gate", *names("same"))
    assert status == 3 and "3 of the 5 runs needed" in out
    assert "counted once: 3" in call("baseline show")[1]


def test_a_name_that_does_not_exist_is_wrong_usage(call, tmp_path):
    """2 is a mistake in the pipeline, 3 is an open question: a misspelt baseline is the former."""
    call("baseline add", *names("good"))
    base = tmp_path / "base"
    for command, arguments in (
        ("gate", [*names("same"), "--baseline", f"{base}#mian"]),
        ("baseline show", [f"{base}#mian"]),
        ("baseline trend", [f"{base}#mian"]),
        ("baseline promote", [f"{base}#mian", f"{base}#main", "--reason", "x"]),
        ("baseline freeze", [f"{base}#mian"]),
    ):
        status, _, err = call(command, *arguments)
        assert status == 2 and "no such baseline; there are: main" in err, command
    status, _, err = call("gate", *names("same"), "--baseline", str(tmp_path / "nowhere"))
    assert status == 2 and "the folder does not exist" in err
    (base / "hollow").mkdir()
    status, out, _ = call("gate", *names("same"), "--baseline", f"{base}#hollow")
    assert status == 3 and "no other runs to compare with" in out


def test_first_use_records_and_later_use_judges(call, tmp_path):
    """`--record` from the first day on: no verdict and exit 0 until the history is long enough, then verdicts."""
    status, out, _ = call("gate", "good0", "good1", "--record", "--format", f"json:{tmp_path / 'out.json'}")
    document = json.loads((tmp_path / "out.json").read_text())
    assert status == 0 and document["verdict"] == "recorded"
    assert document["recorded"]["total"] == 2 and document["recorded"]["needed"] == 5
    status, out, _ = call("gate", "good1", "good2", "--record")
    assert status == 0 and "No verdict yet: 3 of the 5 runs needed are recorded." in out
    status, out, _ = call("gate", "good3", "good4", "--record")
    assert status == 0 and "The next run is judged" in out
    assert call("gate", *names("slow"), "--record")[0] == 1
    assert call("gate", *names("same"), "--record")[0] == 0
    assert "5 runs" in call("baseline show")[1].splitlines()[0], "judged runs are not recorded"
    assert call("gate", "good0", "--record", policy='budgets.step.time_us = "50 ms"\nmin_history = 9')[0] == 1
    assert "5 runs" in call("baseline show")[1].splitlines()[0], "a run over its budget is no good run"


def test_record_needs_a_baseline_that_is_open(call, tmp_path, site):
    """Recording into nothing, or into a frozen release, would look like it had worked."""
    status = main(["gate", _run(site, "good0"), "--record"])
    assert status == 2
    call("baseline add", "good0")
    call("baseline freeze", str(tmp_path / "base"), "--reason", "release")
    assert call("gate", "good1", "--record")[0] == 2


# 3. New findings are visible, and so are waivers.


@pytest.mark.parametrize("form", FORMATS)
def test_a_new_finding_at_equal_speed_is_in_every_format(call, form):
    """As fast as before and newly exposed: nobody may miss it because the policy lets it through."""
    call("baseline add", *names("good"))
    status, out, _ = call("gate", *names("exposed"), "--format", form)
    assert status == 0
    plain = out.replace("\\", "")
    assert "Communication is exposed" in plain and "new, not gated" in plain
    if form == "text":
        assert "Not gated:" in out.splitlines()[0] and "1 new finding" in out.splitlines()[0]
    if form == "github":
        assert "::notice title=Communication is exposed" in out


def test_a_new_finding_fails_where_the_policy_says_so_and_shows_evidence(call):
    """Gated, with what was measured; a finding that the baseline has stays a note."""
    call("baseline add", *names("good"))
    status, out, _ = call("gate", *names("exposed"), policy='fail_on = "medium"')
    assert status == 1 and "40\xa0%" in out and "limit" in out
    call("baseline add", *names("exposed"), "--key", "model=b")
    status, out, _ = call("gate", *names("slow"), "--key", "model=b")
    assert "1 new finding" not in out


def test_a_waived_regression_is_in_the_headline(call):
    """ "Nothing got worse" above a waived +10 % is how regressions become the new normal."""
    call("baseline add", *names("good"))
    waiver = '[[gate.waivers]]\nmetric = "step.time_us"\nreason = "bigger model"\nuntil = 2099-01-01'
    status, out, _ = call("gate", *names("slow"), policy=waiver)
    assert status == 0 and out.startswith("Passed with 1 waiver: step time +10")
    status, out, _ = call("gate", *names("slow"), "--lang", "zh", policy=waiver)
    assert out.startswith("通过，含1项豁免：单步时间 +10")


# 4. Waivers are checked.


@pytest.mark.parametrize(
    ("waiver", "words"),
    [
        ('metric = "step.time_su"', "unknown metric step.time_su (did you mean step.time_us?)"),
        ('finding = "exposed-comunication"', "did you mean exposed-communication?"),
        ('finding = "acme/exposde"', "did you mean acme/exposed?"),
        ('budget = "memory.peak_bytes"', "unknown budget memory.peak_bytes"),
    ],
)
def test_a_waiver_of_nothing_that_exists_is_an_error(call, waiver, words):
    """A misspelt waiver waives nothing and looks like it did."""
    call("baseline add", *names("good"))
    policy = f'[[gate.waivers]]\n{waiver}\nreason = "x"\nuntil = 2099-01-01'
    status, _, err = call("gate", *names("same"), policy=policy)
    assert status == 2 and words in err


def test_waivers_that_are_unused_ending_or_too_long_are_told(call):
    """Exceptions are work that was put off: somebody has to hear of them."""
    import datetime

    call("baseline add", *names("good"))
    soon = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=9)
    entry = lambda what, until: f'[[gate.waivers]]\n{what}\nreason = "x"\nuntil = {until}\n'  # noqa: E731
    policy = "waiver_days = 90\n" + entry('metric = "step.time_us"', soon) + entry('finding = "acme/*"', "2099-01-01")
    status, out, _ = call("gate", *names("slow"), policy=policy)
    assert status == 0
    assert f"the waiver of step.time_us ends on {soon} (days left: 9" in out
    assert "the waiver of acme/* until 2099-01-01 waives nothing" in out
    assert "the waiver of acme/* lasts until 2099-01-01" in out and "the policy allows 90" in out
    assert "days left: 9" not in call("gate", *names("slow"), policy=entry('metric = "step.time_us"', "2099-01-01"))[1]


# 5. Whatever happens, the files asked for are written.


@pytest.mark.parametrize(
    ("runs", "status"),
    [(["empty"], 3), ([*names("same", 4), "empty"], 3), (["empty", "nowhere"], 2), ([*names("same", 4), "large0"], 3)],
)
def test_files_are_written_whatever_happens(call, tmp_path, runs, status):
    """A pipeline that publishes junit.xml must publish the reason, not yesterday's file."""
    call("baseline add", *names("good"))
    written = {form: tmp_path / f"out.{form}" for form in FORMATS}
    found, _, _ = call("gate", *runs, *(f"--format={form}:{path}" for form, path in written.items()))
    assert found == status
    document = json.loads(written["json"].read_text())
    schema = json.loads(resource("reports", "schemas", "gate.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["verdict"] == "inconclusive" and document["hindrances"]
    assert ElementTree.fromstring(written["junit"].read_text()).find(".//error") is not None
    (result, *_) = json.loads(written["sarif"].read_text())["runs"][0]["results"]
    assert result["ruleId"] == "gate/undecided" and result["message"]["text"].startswith("Could not tell")
    assert all(path.stat().st_size for path in written.values())


def test_a_wrong_policy_still_writes_the_files(call, tmp_path):
    """Also where nothing was measured at all."""
    status, _, _ = call("gate", "same0", "--format", f"junit:{tmp_path / 'gate.xml'}", policy="min_rnus = 3")
    assert status == 2 and "min_rnus" in (tmp_path / "gate.xml").read_text()


def test_readable_runs_are_judged_if_enough_remain(call):
    """One lost profile of six must not cost the night's verdict, where the team says so."""
    call("baseline add", *names("good"))
    status, out, _ = call("gate", *names("same"), "empty")
    assert status == 3 and "runs that could not be read: 1; allowed: 0" in out and "--allow-unreadable 1" in out
    status, out, _ = call("gate", *names("same"), "empty", "--allow-unreadable", "1")
    assert status == 0 and "Runs that could not be read" in out
    assert call("gate", *names("same", 4), "empty", "--allow-unreadable", "1")[0] == 3, "too few remain"
    assert call("gate", *names("slow"), "empty")[0] == 1, "what the others show is shown"


def test_a_run_without_step_times_is_none(call, site, tmp_path):
    """A damaged step table must not turn a metric of five runs into one of four that is quietly not judged."""
    call("baseline add", *names("good"))
    broken = tmp_path / "broken_ascend_ms"
    shutil.copytree(_run(site, "same4"), broken)
    (broken / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").write_text("Step,Computing\n")
    status, out, _ = call("gate", *names("same", 4), str(broken), "--fail-on", "high")
    assert status == 3 and ("did not measure it" in out or "such values are not compared" in out)


# A baseline that is named and unreadable, empty or absent is never a pass.


@pytest.mark.parametrize("policy", ['fail_on = "high"\nmin_runs = 1', 'budgets.step.time_us = "1 s"\nmin_runs = 1'])
def test_a_destroyed_baseline_is_never_a_pass(call, tmp_path, policy):
    """Files cut to 100 bytes, emptied, or gone: whatever else the policy judges."""
    call("baseline add", *names("good"))
    assert call("gate", "same0", policy=policy)[0] == 0
    files = sorted((tmp_path / "base" / "main").glob("*.json"))
    for path in files:
        path.write_bytes(path.read_bytes()[:100])
    status, out, _ = call("gate", "large0", policy=policy)
    assert status == 3 and "files that cannot be read: 5" in out and "Restore the files" in out
    assert call("gate", "large0", "--record", policy=policy)[0] == 3, "nor is it a first use"
    for path in files:
        path.unlink()
    assert call("gate", "large0", policy=policy)[0] == 3
    shutil.rmtree(tmp_path / "base")
    assert call("gate", "large0", policy=policy)[0] == 2


@pytest.mark.parametrize("value", ["1" + "0" * 400, "-1", "1e300", "true", '"12"', "1e999", "null"])
def test_impossible_values_of_a_baseline_are_told_and_do_not_count(call, tmp_path, value):
    """A baseline of −1 µs or 10^400 µs makes every run look as somebody wants it to."""
    call("baseline add", *names("good"))
    for path in (tmp_path / "base" / "main").glob("*.json"):
        document = json.loads(path.read_text())
        del document["seal"]  # as of an advisor that wrote none
        document["facts"]["step.time_us"]["run/run"][0] = "VALUE"
        path.write_text(json.dumps(document).replace('"VALUE"', value))
    status, out, err = call("gate", *names("same"))
    assert (status == 3 and "Traceback" not in err and "step.time_us" in out) or "no JSON" in out
    assert call("baseline show")[0] == 3


def test_an_edited_baseline_lets_nothing_pass(call, tmp_path):
    """A run whose step time somebody doubled would let a run twice as slow pass."""
    call("baseline add", *names("good"))
    for path in (tmp_path / "base" / "main").glob("*.json"):
        document = json.loads(path.read_text())
        document["facts"]["step.time_us"]["run/run"][0] *= 2
        path.write_text(json.dumps(document))
    status, out, _ = call("gate", *names("slow"))
    assert status == 3 and "was changed after it was written" in out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_and_devices_in_a_baseline_do_not_hang(call, tmp_path):
    """Reading a pipe nobody writes to would hold the pipeline until its time limit."""
    call("baseline add", *names("good"))
    folder = tmp_path / "base" / "main"
    os.mkfifo(folder / "20990101T000000Z-run-pipe.json")
    (folder / "20990101T000000Z-run-zero.json").symlink_to("/dev/zero")
    status, out, _ = call("gate", *names("same"))
    assert status == 0 and out.count("is no plain file") == 2


# 6. History can be seen.


def test_trend_shows_levels_changes_findings_and_unsteady_runs(call, tmp_path, site):
    """What happened to this baseline over the months, one section for each kind of run."""
    base = str(tmp_path / "base")
    call("baseline add", *names("good"))
    call("baseline add", _run(site, "largeslow0"), "--key", "model=b")
    call("baseline add", *names("exposed"))
    call("baseline add", "slow0", "--meta", "commit=abc123")
    call("baseline add", *names("fast"), "--baseline", f"{base}#next")
    call("baseline promote", f"{base}#next", f"{base}#main", "--reason", "fused kernels")
    status, out, _ = call("baseline trend")
    assert status == 0
    first, second = out.partition("kind 2")[::2]
    assert "new level accepted: fused kernels" in first and "new: Communication is exposed" in first
    assert "abc123" in first and "unsteady: +9" in first and "fails beyond" in first
    assert "173\xa0ms" in second and "173\xa0ms" not in first and "model" in second
    document = json.loads(call("baseline trend", "--format", "json")[1])
    points = document["kinds"][0]["metrics"][0]["points"]
    assert len(document["kinds"][0]["runs"]) == len(points) == 16
    assert [run["accepted"] for run in document["kinds"][0]["runs"]].count("fused kernels") == 1
    assert sum(point["unsteady"] for point in points) == 1
    status, out, _ = call("baseline trend", "--metric", "step.idle_us", "--lang", "zh")
    assert status == 0 and "空闲" in out
    assert call("baseline trend", "--metric", "nothing")[0] == 2


def test_a_gain_suggests_promote_with_commands_that_work(call, tmp_path, monkeypatch):
    """A gain that nobody accepts is lost with the next regression."""
    call("baseline add", *names("good"))
    status, out, _ = call("gate", *names("fast"))
    assert status == 0
    line = next(line for line in out.splitlines() if line.startswith("→"))
    add, promote = line[line.index("advisor baseline add") :].split(" && ")
    import shlex

    assert main([*shlex.split(add)[1:], "--config", str(tmp_path / "advisor.toml")]) == 0
    assert main(shlex.split(promote)[1:]) == 0
    assert call("gate", *names("same"))[0] == 1, "the old level is now a regression"


def test_runs_that_disagree_are_named_with_what_differs(call, tmp_path):
    """One disturbed run of five passes, and is not passed over."""
    call("baseline add", *names("good"))
    odd = write_run(tmp_path / "odd", 130.0, exposed=0.3)
    status, out, _ = call("gate", *names("same", 4), str(odd))
    assert status == 0 and "Runs that disagree with the others" in out
    assert f"{odd}: step time 130\xa0ms" in out and "it differs most in exposed communication" in out


# 7. A gate on step times only.


@pytest.fixture
def logs(tmp_path):
    """logs(name, ms, count): files of step times, in one of the forms that are read."""

    def write(name: str, step_ms: float, form: str = "csv") -> str:
        draw = random.Random(f"{name}{step_ms}")
        steps = [step_ms * (5 if i < 5 else 1) * (1 + draw.gauss(0, 0.01)) for i in range(100)]
        path = tmp_path / f"{name}.{form}"
        texts = {
            "csv": "epoch,Step Time (ms),loss\n" + "".join(f"1,{step:.4f},0.1\n" for step in steps),
            "json": json.dumps({"step_time_us": [1000 * step for step in steps], "model": "m"}),
            "jsonl": "".join(
                json.dumps({"step": i, "step_time_s": step / 1000}) + "\n" for i, step in enumerate(steps)
            ),
            "txt": "".join(f"{step:.4f}\n" for step in steps),
        }
        path.write_text(texts[form])
        return str(path)

    return write


def test_a_pause_in_every_fifth_step_is_a_regression(call, logs, tmp_path):
    """A checkpoint in each fifth step: the typical step is as it was, the training a fifth slower."""
    call("baseline add", *(logs(f"old{i}", 100 + i / 10) for i in range(5)), "--steps-only")
    paused = []
    for i in range(3):
        path = Path(logs(f"new{i}", 100, "txt"))
        steps = [float(line) * (2 if n % 5 == 0 else 1) for n, line in enumerate(path.read_text().splitlines())]
        path = path.with_suffix(".json")
        path.write_text(json.dumps({"step_time_ms": steps}))
        paused.append(str(path))
    status, out, _ = call("gate", *paused, "--steps-only")
    assert status == 1
    assert "Failed: mean step time with all pauses" in out
    (tmp_path / "empty.csv").write_text("")
    assert "holds no step times" in "".join(call("gate", str(tmp_path / "empty.csv"), "--steps-only")[1:])


def test_step_times_alone_make_a_gate(call, logs, tmp_path):
    """No profile: three logs a side, read in each of the forms a training log has."""
    old = [logs(f"old{i}", 100 + i / 10, form) for i, form in enumerate(("csv", "json", "jsonl", "txt", "csv"))]
    unit = ("--steps-only", "--step-unit", "ms")
    assert call("baseline add", *old, *unit)[0] == 0
    assert call("gate", *(logs(f"new{i}", 100.2) for i in range(3)), *unit)[0] == 0
    slow = [logs(f"slow{i}", 108) for i in range(3)]
    status, out, _ = call("gate", *slow, *unit, policy='fail_on = "low"\nbudgets.memory.peak_bytes = "1 GB"')
    assert (status == 1 and "step time +7" in out) or "step time +8" in out
    assert call("gate", *slow, *unit, "--fail-on", "low")[0] == 2
    assert call("gate", *slow[:2], *unit)[0] == 3
    call("baseline add", *names("good"))
    status, out, _ = call("gate", *slow, *unit)
    assert status == 1, "profiled runs in the same baseline are a history of their own"
    status, out, _ = call("gate", *slow, *unit, "--key", "model=b")
    assert status == 3


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("step_time_ms\n" + "nan\n" * 50, 3),
        ("step_time_ms\n" + "-1\n" * 50, 3),
        ("step_time_ms\n" + "1e999\n" * 50, 3),
        ("[" + "1" + "0" * 400 + ",1" * 50 + "]", 3),
        ("[true" + ",1" * 50 + "]", 3),
        ("loss\n" + "1\n" * 50, 3),
        ("step_time_ms\n1\n2\n", 3),
        ("", 3),
        ("[" * 5000, 3),
        ("\x00\x01", 3),
    ],
)
def test_step_times_that_no_step_can_have_are_refused(call, logs, tmp_path, text, status):
    """A number that is none must not become a level."""
    call("baseline add", *(logs(f"old{i}", 100 + i) for i in range(5)), "--steps-only")
    path = tmp_path / "strange.csv"
    path.write_text(text)
    found, _, err = call("gate", str(path), "--steps-only", "--step-unit", "ms")
    assert found == status and "Traceback" not in err
    assert call("baseline add", str(path), "--steps-only", "--step-unit", "ms")[0] == status
    assert call("gate", str(tmp_path / "nowhere.csv"), "--steps-only")[0] == 2


def test_recordings_without_steps_are_not_compared_by_time(call, site, tmp_path):
    """How long somebody recorded is no step time: twice as long is no regression, and half as long no gain."""
    call("baseline add", *names("good"))
    kernels = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Input Shapes\n"
    runs = []
    for i in range(5):
        run = write_run(tmp_path / f"unmarked{i}", 500.0 + i)
        (run / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").unlink()
        rows = [f'op{n},Add,AI_CORE,{1000 * n},{700 + i + n},0,24,"8,1024"' for n in range(40)]
        (run / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").write_text(kernels + "\n".join(rows) + "\n")
        runs.append(str(run))
    status, out, _ = call("gate", *runs, "--fail-on", "critical")
    assert status == 3 and "nothing marks training steps in these recordings" in out
    assert call("gate", *runs, "--record", "--baseline", str(tmp_path / "fresh"))[0] == 3
    status, _, err = call("baseline add", *runs, "--baseline", str(tmp_path / "fresh"))
    assert status == 3 and "nothing was added" in err


# 8. Sources, and what accounts for a change.


def test_metrics_of_two_sources_are_refused(call, site, tmp_path):
    """A step timed by another table differs by itself: held against each other it would pass or fail for nothing."""
    call("baseline add", *names("good"))
    for path in (tmp_path / "base" / "main").glob("*.json"):
        document = json.loads(path.read_text())
        measured_from = document["facts"]["step.time_us"]["run/run"][2]
        assert measured_from[0] == "step_trace_time.csv"
        del document["seal"]
        document["facts"]["step.time_us"]["run/run"][2] = ["trace_view.json"]
        path.write_text(json.dumps(document))
    status, out, _ = call("gate", *names("slow"))
    assert status == 3 and "the baseline measured it from trace_view.json, these runs from " in out
    assert measured_from[0] in out


def test_what_accounts_for_it_adds_up(call, tmp_path):
    """Parts that sum to more than the change send people after the wrong one."""
    call("baseline add", *names("good"))
    out = tmp_path / "out.json"
    assert call("gate", *names("slow"), "--format", f"json:{out}")[0] == 1
    document = json.loads(out.read_text())
    step = next(j["comparison"] for j in document["judgements"] if j["name"] == "step.time_us")
    parts = [change for change in document["changes"] if change["role"] == "part"]
    total = sum(change["after_us"] - change["before_us"] for change in parts)
    assert total == pytest.approx(step["after"] - step["before"], abs=0.01)
    assert sum(abs(change["share_of_change"]) for change in parts) == pytest.approx(1)
    assert {change["fact"] for change in parts} <= {
        "step.computing_us", "step.exposed_communication_us", "step.idle_us", "",
    }  # fmt: skip
