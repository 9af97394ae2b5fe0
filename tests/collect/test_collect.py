"""Configurations that are written hold what they promise, and defects of existing ones are named."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from advisor.basics.errors import UsageError
from advisor.collect import check_file, check_text, next_collection, next_evidence, write_configuration
from advisor.collect.plan import kinds_of_evidence, knowledge, merged
from advisor.model import COLLECTION, RUN, Fact, MissingEvidence, ProfileInfo, Report, Subject, Summary, Text
from advisor.tables import TABLES


def statements(text: str, name: str, **options) -> list[str]:
    return [fault.statement for fault in check_text(text, name, **options)]


@pytest.mark.parametrize("evidence", [(name,) for name in kinds_of_evidence()] + [()])
@pytest.mark.parametrize("form", ["call", "callback"])
def test_calls_that_are_written_parse_and_pass_the_check(evidence, form):
    """A configuration of ours must not be one that our own check refuses."""
    text = write_configuration(evidence, "mindspore", form)
    ast.parse(text)
    steps = 200
    assert not check_text(text, "train.py", total_steps=steps, ranks=1)


def test_the_files_that_are_written_pass_the_check():
    """profiler_config.json and MS_PROFILER_OPTIONS too."""
    assert not check_text(
        write_configuration((), "mindspore", "dynamic"), "profiler_config.json", total_steps=100, ranks=8
    )
    assert not check_text(write_configuration((), "mindspore", "environment"), "run.sh", ranks=1)


def test_data_and_single_steps_are_never_asked_of_one_run():
    """The profiler silently drops data_process where a schedule is set."""
    text = write_configuration(("data", "communication"))
    assert "data_process=True" in text and "schedule=" not in text and "Level1" in text


def test_torch_gets_a_torch_call():
    """What torch_npu cannot do is refused with a way out, not written anyway."""
    assert "torch_npu" in write_configuration(("memory",), "pytorch")
    with pytest.raises(UsageError):
        write_configuration(("data",), "pytorch")
    with pytest.raises(UsageError):
        write_configuration((), "pytorch", "dynamic")


def test_whoever_is_not_known_to_use_a_framework_gets_the_call_of_both():
    """Nothing in a table of kernels tells who launched them: neither framework's call alone may be right."""
    text = write_configuration(("operators",), None)
    assert "from mindspore import profiler" in text and "from torch_npu import profiler" in text
    assert "data_process=True" in write_configuration(("data",), None)  # which MindSpore alone records


def test_unknown_evidence_is_refused_with_a_suggestion():
    """A typing error names the word that was meant."""
    with pytest.raises(UsageError, match="communication"):
        write_configuration(("comunication",))


def test_every_table_named_in_the_knowledge_base_exists():
    """Evidence that no reader knows would never be recognised as missing."""
    named = {table for kind in kinds_of_evidence().values() for table in kind.tables}
    assert named <= set(TABLES)
    assert all(entry["origin"] for entry in knowledge()["limits"].values())


@pytest.mark.parametrize(
    ("change", "statement"),
    [
        ({"stop_step": 1}, "S51"),
        ({"profiler_level": 7}, "S51"),
        ({"profile_memory": 1}, "S51"),
        ({"start_stp": 3}, "S51"),
        ({"analyse_mode": -1}, "S53"),
        ({"export_type": 1}, "S44"),
        ({"profiler_level": 0}, "S44"),
        ({"stop_step": 40}, "S84"),
    ],
)
def test_defects_of_a_dynamic_configuration(change, statement):
    """Each is found where it is the only one."""
    document = json.loads(write_configuration((), "mindspore", "dynamic")) | change
    assert statements(json.dumps(document), "profiler_config.json", ranks=2) == [statement]


def test_a_dynamic_configuration_needs_its_name_and_enough_steps():
    """Any other file name is not looked at by the framework; steps after the end of training never come."""
    text = write_configuration((), "mindspore", "dynamic")
    assert statements(text, "config.json") == ["S51"]
    assert statements(text, "profiler_config.json", total_steps=16) == ["S50"]
    assert statements(text, "profiler_config.json", total_steps=17) == []


@pytest.mark.parametrize(
    ("options", "ranks", "found"),
    [
        ({"start": True}, 1, []),
        ({"start": "true"}, 1, ["S52"]),
        ({"output_path": "x"}, 1, ["S52"]),
        ({"start": True}, 8, ["S52"]),
        ({"start": True, "schedule": {}, "on_trace_ready": 1}, 1, ["S52", "S52"]),
    ],
)
def test_defects_of_the_environment_variable(options, ranks, found):
    """It serves one device, needs start, and takes no schedule."""
    assert statements(json.dumps(options), "options.json", ranks=ranks) == found
    script = f"export MS_PROFILER_OPTIONS='{json.dumps(options)}'\npython train.py\n"
    assert statements(script, "run.sh", ranks=ranks) == found


SCRIPT = """
import mindspore
STEPS = {total}
with mindspore.profiler.profile(
    schedule=mindspore.profiler.schedule({schedule}), data_process={data}) as prof:
    for step in range(STEPS):
        train()
        {step}
"""


def script(schedule="wait=1, warmup=1, active=5, repeat=1, skip_first=10", total=100, data=False, step="prof.step()"):
    return SCRIPT.format(schedule=schedule, total=total, data=data, step=step)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (script(), []),
        (script("wait=1, warmup=1, active=0, repeat=1"), ["S49"]),
        (script("wait=-1, warmup=1, active=5, repeat=1"), ["S49"]),
        (script("wait=1, warmup=1, active=5, repeat=0"), ["S49"]),
        (script("wait=1, warmup=1, active=5"), ["S49"]),
        (script(total=17), ["S50"]),
        (script(total=18), []),
        (script(step="pass"), ["S50"]),
        (script(data=True), ["S44"]),
        (script("wait=1, warmup=1, active=50, repeat=1"), ["S84"]),
        (script("wait=a, warmup=b, active=c, repeat=d"), []),
    ],
)
def test_defects_of_a_script(text, found):
    """Schedules are judged without running the script; what is no constant is not guessed at."""
    assert statements(text, "train.py") == found


@pytest.mark.parametrize("text", ["def f(:", "print(1)", "\x00"])
def test_scripts_without_a_profiler_are_refused(text):
    """A script that holds nothing to check must not pass the check."""
    with pytest.raises(UsageError):
        check_text(text, "train.py")


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "null", '{"a": 1}'])
def test_other_files_are_refused(text, tmp_path):
    """Neither crash nor silent pass."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        check_file(path)


def report(missing, **facts) -> Report:
    same = Text("", "")
    made = tuple(Fact(name.replace("__", "."), RUN, value) for name, value in facts.items())
    return Report(ProfileInfo("p", "mindspore"), Summary("healthy", same), missing_evidence=missing, facts=made)


def test_the_next_collection_is_about_what_takes_the_step():
    """Many rules that wait for memory files decide less than one about three quarters of the step."""
    missing = (
        MissingEvidence("memory_record.csv", "profile_memory=True", ("A", "B", "C")),
        MissingEvidence("communication.json", "Level1", ("D",)),
        MissingEvidence("minddata_pipeline_raw_*.csv", "data_process=True", ("E", "F")),
    )
    bound = report(missing, step__exposed_communication_share=0.75, step__idle_share=0.02)
    assert next_evidence(bound)[0] == "communication" and "data" not in next_evidence(bound)
    assert "Level1" in next_collection(bound).en
    starved = report(missing, step__exposed_communication_share=0.02, step__idle_share=0.8)
    assert next_evidence(starved) == ("data",)
    torch = replace(starved, profile=ProfileInfo("p", "pytorch"))
    assert "data" not in next_evidence(torch)
    assert next_collection(report(())).zh


def test_the_next_collection_brings_what_the_headline_misses():
    """However many other rules wait for other files; of a profiler that never writes it, a later version is named."""
    missing = (
        MissingEvidence("memory_record.csv", "profile_memory=True", tuple("ABCDEFGHIJ")),
        MissingEvidence("communication.json", "Level1", ("K",)),
    )
    made = report(missing)
    assert next_evidence(made) == ("memory",)
    lacks = replace(made, summary=replace(made.summary, wanted=("communication.json",)))
    assert next_evidence(lacks) == ("communication", "memory")
    kernels = replace(made.summary, wanted=("kernel_details.csv",))
    older = replace(made, profile=ProfileInfo("p", "mindspore", "mindspore_legacy"), summary=kernels)
    for lang in ("en", "zh"):
        assert "kernel_details.csv" in getattr(next_collection(older), lang)
        assert "MindSpore 2.3" in getattr(next_collection(replace(older, missing_evidence=())), lang)
    assert "MindSpore 2.3" not in next_collection(replace(made, summary=kernels)).en


@pytest.mark.parametrize(("level", "scheduled"), [("Level1", False), ("Level1", True), ("Level0", False)])
def test_what_the_settings_asked_for_is_looked_for_before_it_is_collected_again(level: str, scheduled: bool) -> None:
    """A profile of Level1 without communication.json was not copied whole; a schedule it may lack all the same."""
    missing = (
        MissingEvidence("communication.json", "Level1", tuple("ABC")),
        MissingEvidence("trace_view.json", "", tuple("DEFGHIJKLMNOPQRSTUVWXYZ")),
    )
    made = report(missing, step__exposed_communication_share=0.5)
    settings = (("level", level), ("has_schedule", scheduled))
    made = replace(made, facts=(*made.facts, *(Fact(f"collection.{n}", COLLECTION, v) for n, v in settings)))
    told = next_collection(made).en
    assert ("copy the whole result folder" in told) == (level == "Level1")
    assert ("profiler_level=ProfilerLevel.Level1" in told) == (level == "Level0")
    assert ("schedule records" in told) == (not scheduled)


def test_what_a_schedule_would_switch_off_is_kept_in_a_run_of_its_own():
    """MindSpore records the data pipeline or single steps: who has the pipeline is told that the next run will not."""
    made = report((MissingEvidence("memory_record.csv", "profile_memory=True", ("A", "B")),))
    assert "data_process" not in next_collection(made).en
    recorded = replace(made, facts=(*made.facts, Fact("collection.data_process", COLLECTION, True)))
    for lang in ("en", "zh"):
        assert "data_process" in getattr(next_collection(recorded), lang)


def test_absent_ranks_come_before_settings():
    """Where the step waits for ranks without files, no setting helps."""
    waiting = report(
        (MissingEvidence("communication.json", "Level1", ("D",)),),
        communication__absent_wait_share=0.6, run__missing_ranks=6, run__world_size=8,
    )  # fmt: skip
    assert "8 ranks" in next_collection(waiting).en


def test_data_excludes_the_schedule_of_what_it_is_merged_with():
    """One run cannot have both."""
    assert "schedule" not in merged(("data", "communication"))
    assert merged(("communication", "aicpu"))["level"] == 2


def test_the_command_checks_and_writes(tmp_path):
    """Exit 1 on a defect, 0 without, 2 on a file that is no configuration."""
    from advisor.cli.main import cli, main

    bad = tmp_path / "config.json"
    bad.write_text(write_configuration((), "mindspore", "dynamic"))
    assert main(["collect", "--check", str(bad)]) == 1
    good = tmp_path / "profiler_config.json"
    assert main(["collect", "--as", "dynamic", "-o", str(good)]) == 0
    assert main(["collect", "--check", str(good), "--total-steps", "100"]) == 0
    assert main(["collect", "--check", str(tmp_path / "absent.json")]) == 2
    assert "schedule" in CliRunner().invoke(cli, ["collect"]).output


@pytest.mark.parametrize(("facts", "said"), [((), "msprof op with"), (("operator_type.memory_rate",), "matters there")])
def test_a_benchmark_of_one_kernel_is_asked_for_no_steps(facts, said):
    """There are no steps to record: the units and the memory of the kernel are what may be missing."""
    told = tuple(Fact(name, Subject("operator_type", "add"), 1.0, "bytes_per_s") for name in facts)
    asked = report((MissingEvidence("step_trace_time.csv", "schedule", ("A1",)),))
    kind = Fact("recording.kind", RUN, "kernel_benchmark", "text")
    assert said in next_collection(replace(asked, facts=(kind, *told))).en
