"""What was recorded, and that nothing is "per step" where nothing marks steps."""

import csv
import json
import re
from itertools import pairwise

import pytest

from advisor.knowledge.messages import translated
from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.render import render
from advisor.ruleset.files.loader import load_rules

HEAD = [
    "Step Id",
    "Model ID",
    "Task ID",
    "Stream ID",
    "Name",
    "Type",
    "OP State",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Num",
    "Input Shapes",
    "Input Data Types",
    "Input Formats",
    "Output Shapes",
    "Output Data Types",
    "Output Formats",
]
ORIGIN_US = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def rules():
    return load_rules()


def write(folder, kernels, name="kernel_details.csv"):
    """A table of kernels from (step, type, start us, duration us)."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, busy_until = [], None
    for step, kind, start, duration in kernels:
        wait = 0.0 if busy_until is None else max(start - busy_until, 0.0)
        busy_until = max(start + duration, busy_until or 0.0)
        rows.append([
            step, 4294967295, 1, 1, f"aclnn{kind}_{kind}", kind, "dynamic", "AI_CORE", f"{ORIGIN_US + start:.3f}",
            duration, wait, 24, '"32,32;32,32"', "FLOAT16;FLOAT16", "ND;ND", '"32,32"', "FLOAT16", "ND",
        ])  # fmt: skip
    with (folder / name).open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    return folder


def loop(sequence, times, start=0.0, gap=10.0, duration=20.0, step=""):
    """Kernels of a sequence executed again and again."""
    at, found = start, []
    for number in range(times):
        for kind in sequence:
            found.append((step and str(number), kind, at, duration))
            at += duration + gap
    return found


def facts_of(folder, *names):
    return measure([folder], ["recording.kind", "step.time_us", "step.idle_share", *names], Options(jobs=1)).facts


def test_numbers_of_launches_are_no_steps(tmp_path, rules):
    """One kernel on one input, each with an id of its own and nothing else: no program's step is a single kernel, and
    the pauses between launches are no idle time of steps."""
    single = [(str(16 + n), "RmsNorm", 165.0 * n, 9.0) for n in range(3)]
    folder = write(tmp_path / "launches", single)
    assert not facts_of(folder, "recording.has_steps").value("recording.has_steps", RUN)
    report = advise([folder], rules, Options(jobs=1))
    assert report.profile.recording == "kernel_benchmark"
    assert "number launches of one kernel" in report.profile.recording_reason.en
    assert [found.rule for found in report.findings] == ["COMP087"]
    several = facts_of(write(tmp_path / "steps", loop(["RmsNorm", "MatMulV2"], 4, step="1")), "recording.has_steps")
    rows = (tmp_path / "steps" / "kernel_details.csv").read_text().splitlines()
    part = write(tmp_path / "part", []) / "kernel_details.csv"
    part.write_text("\n".join(row for row in rows if "MatMul" not in row) + "\n")
    assert facts_of(part.parent).value("recording.kind", RUN) == "unmarked"  # other kernels ran between these
    assert several.value("recording.has_steps", RUN)


def test_one_kernel_again_and_again_is_a_benchmark(tmp_path, rules):
    """Its compilation is set-up, its pauses are nobody's idle time, and no step is spoken of."""
    before = [("", "Cast", 0.0, 3.0), ("", "Fill", 500.0, 3.0)]
    report = advise([write(tmp_path, [*before, *loop(["custom_kernel"], 40, 170_000.0)])], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert report.summary.step_time_us is None
    assert report.summary.recording_us == pytest.approx(40 * 30 - 10, rel=0.01)
    assert report.summary.direction not in ("scheduling", "healthy")
    assert "170\xa0ms" in report.profile.recording_reason.en
    assert not {f.verdict for f in report.findings} & {"device-idle-gaps", "host-dispatch-bound", "too-few-samples"}


@pytest.mark.parametrize(
    ("kinds", "kind"), [(["ApplyAdamW"], "kernel_benchmark"), (["MatMul", "ApplyAdamW"], "unmarked")]
)
def test_an_update_alone_is_measured_and_beside_other_work_trains(tmp_path, kinds, kind):
    """Whoever tunes an optimizer's kernel launches it again and again; a training computes gradients as well."""
    name = "op_summary_20260101000000.csv"
    assert facts_of(write(tmp_path, loop(kinds, 40), name)).value("recording.kind", RUN) == kind


def test_one_kernel_of_a_numbered_step_is_no_benchmark(tmp_path):
    """Only the framework's profiler numbers steps: where one kernel of such a table is left, it is what is left."""
    name = "op_summary_20260101000000.csv"
    assert facts_of(write(tmp_path / "a", [("", "ZerosLike", 0.0, 500.0)], name)).value("recording.kind", RUN) == (
        "kernel_benchmark"
    )
    rest = write(tmp_path / "b", [("2", "ZerosLike", 0.0, 500.0)], name)
    assert facts_of(rest).value("recording.kind", RUN) != "kernel_benchmark"


def test_one_kernel_without_a_name_is_no_benchmark(tmp_path):
    """A table without its names was reduced: what is left of it may have been any part of a program."""
    name = "op_summary_20260101000000.csv"
    path = write(tmp_path, loop(["custom_kernel"], 1), name) / name
    assert facts_of(tmp_path).value("recording.kind", RUN) == "kernel_benchmark"
    path.write_text(path.read_text().replace("aclnncustom_kernel_custom_kernel", ""))
    assert facts_of(tmp_path).value("recording.kind", RUN) != "kernel_benchmark"


def test_kernels_that_lost_their_names_are_not_one_kernel(tmp_path):
    """Nothing tells that what has neither name nor type is the same thing again and again."""
    path = write(tmp_path, loop(["custom_kernel"], 40)) / "kernel_details.csv"
    path.write_text(path.read_text().replace("aclnncustom_kernel_custom_kernel", "").replace("custom_kernel", ""))
    assert facts_of(tmp_path).value("recording.kind", RUN) == "unmarked"


def test_a_decoding_loop_is_inference(tmp_path):
    """Kernels of a key-value cache and no gradient: the same sequence for every token."""
    token = ["RmsNorm", "MatMulV2", "ReshapeAndCache", "PagedAttentionMaskNd", "MatMulV2", "SwiGlu", "MatMulV2"]
    facts = facts_of(write(tmp_path, loop(token, 25)), "recording.executions")
    assert facts.value("recording.kind", RUN) == "inference"
    assert facts.value("recording.executions", RUN) == 25
    assert facts.value("recording.has_steps", RUN) is False


def test_a_whole_training_without_marks_is_judged_as_a_recording(tmp_path, rules):
    """Savings are of the recording, in JSON as in the sentences of both languages."""
    step = ["MatMulV2", "Cast", "ReluGrad", "MatMulV2", "ApplyAdamV2"]
    report = advise([write(tmp_path, loop(step, 30, gap=400.0))], rules)
    assert report.profile.recording == "unmarked"
    assert report.profile.steps == ()
    told = [report.summary.headline, *(text for f in report.findings for text in (f.title, f.message))]
    told += [f.saving.basis for f in report.findings if f.saving]
    assert not [text.en for text in told if " step" in text.en.lower().replace("timestep", "")]
    assert not [text.zh for text in told if "step" in text.zh or "单步" in text.zh or "每步" in text.zh]
    shown = {lang: render(report, "text", lang) for lang in ("en", "zh")}
    body = shown["en"].partition(" 1. ")[2].partition("Next collection")[0] or shown["en"]
    assert not re.search(r"\b(per|of the|of each|each) step\b", body.partition("Fine:")[0])
    assert "单步" not in shown["zh"] and "每个step" not in shown["zh"].partition("下次采集")[0]
    savings = [f.saving for f in report.findings if f.saving]
    assert savings
    assert all(s.us_per_step is None and s.share_of_step is None and s.us_of_recording for s in savings)


def test_kernels_without_a_step_id_belong_to_no_step(tmp_path):
    """Warm-up before the first marked step, and an evaluation between two, are in no step's time."""
    steps = [loop(["MatMulV2", "MulGrad"], 1, at) for at in (10_000.0, 11_000.0, 50_000.0, 51_000.0)]
    marked = [(str(n + 1), *row[1:]) for n, rows in enumerate(steps) for row in rows]
    stray = [*loop(["MatMulV2"], 100), *loop(["Softmax"], 100, 12_000.0)]
    kernels = sorted([*marked, *stray], key=lambda row: row[2])
    facts = facts_of(write(tmp_path, kernels), "recording.stray_kernels", "operators.kernel_count")
    assert facts.value("recording.stray_kernels", RUN) == 200
    assert facts.value("operators.kernel_count", RUN) == 2
    assert facts.number("step.time_us", RUN) < 1100


def test_a_cut_table_never_beats_a_whole_statistic(tmp_path):
    """With a hundredth of the kernels at hand, times come from the statistic and nothing is said of idle time."""
    write(tmp_path, loop(["Cast", "MatMulV2"], 50, gap=900.0))
    (tmp_path / "op_statistic.csv").write_text(
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,MatMulV2,AI_CORE,8000,800000,1,100,200,80\n0,Cast,AI_VECTOR_CORE,2000,200000,1,100,200,20\n"
    )
    measured = measure([tmp_path], None, Options(jobs=1))
    shares = {s.id: f.value for s, f in measured.facts.of("operator_type.compute_share").items()}
    assert shares == pytest.approx({"MatMulV2": 0.8, "Cast": 0.2})
    assert measured.facts.value("timeline.idle_share", RUN) is None
    assert measured.facts.value("step.idle_share", RUN) is None
    assert sum("op_statistic.csv counts" in problem.problem for problem in measured.problems) == 1


@pytest.mark.parametrize(
    "row",
    [
        "64,44042.728,251.228,688.168,1135.102,72.149",
        "64,13.386,0.2,0.209,0.3,0.0",
        "2,600.0,300.0,300.0,300.0,100.0",
    ],
)
def test_one_row_of_a_statistic_is_no_benchmark(tmp_path, rules, row):
    """The row's share tells that others took a quarter of the time, or all of it but what rounds to nothing; two calls
    are not one operator again and again."""
    (tmp_path / "op_statistic.csv").write_text(
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        f"0,MatMulV2,AI_CORE,{row}\n"
    )
    report = advise([tmp_path], rules, Options(jobs=1))
    assert report.profile.recording != "kernel_benchmark"
    assert [f.verdict for f in report.findings if f.role == "root_cause" and f.severity != "low"] == []


def test_contradicted_gaps_must_be_a_visible_part_of_the_recording(tmp_path):
    """A few gaps of 0.1 ms in tightly packed 90 ms switch off nothing; where they are most of the time, they do."""
    tight = loop(["MatMulV2", "MulGrad"], 2000, gap=0.0)
    shifted = [(step, kind, at + 100.0 * (i // 1000), us) for i, (step, kind, at, us) in enumerate(tight)]
    folder = write(tmp_path / "tight", shifted)
    forget_waits(folder / "kernel_details.csv")
    assert facts_of(folder).value("step.idle_share", RUN) is not None
    folder = write(tmp_path / "filtered", loop(["MatMulV2", "MulGrad"], 100, gap=500.0))
    forget_waits(folder / "kernel_details.csv")
    assert facts_of(folder).value("step.idle_share", RUN) is None


def forget_waits(path):
    """All waits but the last are noted as nothing, as when rows between them were taken out."""
    with path.open() as file:
        head, *rows = csv.reader(file)
    at = head.index("Wait Time(us)")
    for row in rows:
        row[at] = "0.001"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def test_a_clock_counts_only_while_kernels_run(tmp_path):
    """The idle clock before the first kernel is no drop."""
    write(tmp_path, loop(["MatMulV2", "MulGrad"], 100, 2_000_000.0, step="1"))
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "AI Core Freq"}}]
    events += [
        {"ph": "C", "name": "AI Core Freq", "pid": 1, "tid": 0, "ts": f"{ORIGIN_US + at}.000", "args": {"MHz": mhz}}
        for at, mhz in ((0, 800), (1_000_000, 800), (1_999_000, 1650), (2_001_000, 1650), (2_003_000, 1650))
    ]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], ["timeline.core_mhz_drop"], Options(jobs=1)).facts
    drops = [fact.value for fact in facts.of("timeline.core_mhz_drop").values()]
    assert drops == pytest.approx([0.0])


def test_a_clock_that_never_changes_is_recorded_all_the_same(tmp_path):
    """One sample holds until the next one: a card that is throttled all the time changes its clock in no step."""
    write(tmp_path, loop(["MatMulV2", "MulGrad"], 100, 2_000_000.0, step="1"))
    events = [{"ph": "C", "name": "AI Core Freq", "pid": 1, "tid": 0, "ts": f"{ORIGIN_US}.000", "args": {"MHz": 1300}}]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], ["timeline.core_mhz_mean", "timeline.core_mhz_drop"], Options(jobs=1)).facts
    assert [fact.value for fact in facts.of("timeline.core_mhz_mean").values()] == pytest.approx([1300.0])
    assert [fact.value for fact in facts.of("timeline.core_mhz_drop").values()] == pytest.approx([0.0])


def test_one_operator_measured_alone_is_told_as_that(tmp_path, rules):
    """`msprof op`: which unit binds it, on how many blocks; nothing of steps, and never healthy."""
    folder = tmp_path / "OPPROF_20260101000000_ABC"
    folder.mkdir()
    (folder / "OpBasicInfo.csv").write_text(
        "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid\nadd_custom_0,vector,29.68,8,NA,0,1\n"
    )
    (folder / "PipeUtilization.csv").write_text(
        "block_id,sub_block_id,aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio\n0,vector0,0.04,0.05,0.9\n"
        "1,vector0,0.04,0.05,0.86\n"
    )
    report = advise([tmp_path], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert "30\xa0µs on 8 blocks, busiest unit memory (read) at 88\xa0%" in report.profile.recording_reason.en
    assert report.summary.direction not in ("scheduling", "healthy")
    assert report.problems == ()


def test_older_timelines_of_single_iterations_are_parsed(tmp_path):
    """PROF_*/device_0/timeline with a file for every iteration: each is a step, and what lies between is none."""
    folder = tmp_path / "PROF_000001_20230818142704322_ABCDEF" / "device_0" / "timeline"
    folder.mkdir(parents=True)
    starts = [1000.0 + 30_000.0 * n for n in range(6)]
    for number, begin in enumerate(starts, 1):
        tasks = [
            {"ph": "X", "name": "Default/net/MatMul-op1", "pid": 3, "tid": 2, "ts": begin, "dur": 5000.0,
             "args": {"Task Type": "AI_CORE", "Stream Id": 2}},
            {"ph": "X", "name": "NOTIFY_WAIT", "pid": 3, "tid": 3, "ts": begin, "dur": 9000.0,
             "args": {"Task Type": "NOTIFY_WAIT_SQE", "Stream Id": 3}},
        ]  # fmt: skip
        exchange = [
            {"ph": "M", "name": "thread_name", "pid": 4, "tid": 70000, "args": {"name": "Communication Kernel"}},
            {"ph": "X", "name": "Default/AllReduce-op2", "pid": 4, "tid": 70000, "ts": begin + 5000.0, "dur": 8000.0},
            {"ph": "X", "name": "Memcpy", "pid": 4, "tid": 0, "ts": begin + 5100.0, "dur": 7000.0},
        ]
        (folder / f"task_time_0_2_{number}.json").write_text(json.dumps(tasks))
        (folder / f"hccl_0_2_{number}.json").write_text(json.dumps(exchange))
    assert all(b - a > 13_000 for a, b in pairwise(starts))
    measured = measure([tmp_path], None, Options(jobs=1))
    assert measured.facts.number("step.time_us", RUN) == pytest.approx(13_000)
    assert measured.facts.number("step.exposed_communication_share", RUN) == pytest.approx(8 / 13)
    assert measured.facts.value("collection.unparsed_ranks", measured.facts.subjects("collection")[0]) == 0
    assert measured.info.framework == "mindspore"


def test_start_times_that_a_spreadsheet_rounded_are_told_as_lost(tmp_path, rules):
    """1.7E+15 for every start: no kernel is missing, and the user must not look for one; the file wants another
    export."""
    folder = write(tmp_path, loop(["MatMulV2", "Add", "Mul"], 20))
    table = folder / "kernel_details.csv"
    text = re.sub(rf"{ORIGIN_US // 10**9}[0-9.]+", "1.70000E+15", table.read_text(encoding="utf-8"))
    table.write_text(text, encoding="utf-8")
    report = advise([folder], rules)
    told = " ".join(problem.problem for problem in report.problems)
    assert "Export the file again" in told and "missing between the rows" not in told
    assert report.profile.recording == "fragment" and "only some" not in report.profile.recording_reason.en


def test_what_was_picked_of_the_kernels_is_a_suspicion(tmp_path, rules):
    """The longest kernels of a recording, their waiting times left as they were: what takes half of these may take
    little of the whole, and the report says what would tell."""
    update = [f"Foreach{kind}" for kind in ("AddcdivList", "MulScalar", "Sqrt", "LerpList", "DivList", "AddcmulList")]
    lines = loop([*update, "MatMulV2", "Cast"], 10, duration=200.0, step="x")
    folder = write(tmp_path, lines)
    assert not facts_of(tmp_path, "recording.is_picked").value("recording.is_picked", RUN)
    table = folder / "kernel_details.csv"
    kept = [
        row for i, row in enumerate(table.read_text(encoding="utf-8").splitlines()) if i == 0 or i % 8 in range(1, 7)
    ]
    table.write_text("\n".join(kept) + "\n", encoding="utf-8")
    report = advise([folder], rules)
    assert facts_of(tmp_path, "recording.is_picked").value("recording.is_picked", RUN) is True
    accused = [finding for finding in report.findings if finding.rule == "COMP071"]
    assert accused and all(finding.severity.value == "low" for finding in accused)
    assert "rows are missing" in render(report, "text", "en")


def test_where_nothing_was_read_nothing_is_cleared(tmp_path, rules):
    """A table of kernels without a single number: that no bottleneck was found would be a judgement."""
    folder = write(tmp_path, loop(["MatMulV2", "Add", "Mul"], 20))
    table = folder / "kernel_details.csv"
    table.write_text(re.sub(r"\b[0-9.]+,", "x,", table.read_text(encoding="utf-8")), encoding="utf-8")
    report = advise([folder], rules)
    assert report.summary.direction == "undetermined"
    assert "told nothing that counts" in report.summary.headline.en and "was found" not in report.summary.headline.en


@pytest.mark.parametrize("sequence", [["RmsNorm", "triton_rms_norm"], ["RmsNorm"] * 600 + ["triton_rms_norm"] * 600])
def test_kernels_that_are_compared_are_a_benchmark(tmp_path, rules, sequence):
    """Two kernels for one input, in turn or one after the other: nobody launches them too late, and neither is accused
    of being no matrix operator."""
    kernels = loop(sequence, 1200 // len(sequence), duration=190.0, gap=40.0)
    report = advise([write(tmp_path, kernels)], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert {f.rule for f in report.findings} <= {"COMP087", "COMP083", "COMP080"}


def test_layers_on_different_inputs_are_not_measured(tmp_path):
    """A network may run twelve convolutions and then twelve products, each on inputs of its own."""
    path = write(tmp_path, loop(["Conv2D"] * 12 + ["MatMulV2"] * 12, 1)) / "kernel_details.csv"
    rows = path.read_text().splitlines()
    shaped = [row.replace("32,32;32,32", f"{i},32;32,32") for i, row in enumerate(rows[1:], 32)]
    path.write_text("\n".join([rows[0], *shaped]))
    assert facts_of(tmp_path).value("recording.kind", RUN) == "unmarked"


def test_many_layers_of_one_type_are_a_network(tmp_path):
    """A vision model is nearly all convolutions: forty of them by name, each launched once an inference, are no
    benchmark of one kernel."""
    kinds = [f"layer{i}" for i in range(40)]
    path = write(tmp_path, loop(kinds, 3)) / "kernel_details.csv"
    rows = [row.split(",") for row in path.read_text().splitlines()]
    for row in rows[1:]:
        row[rows[0].index("Type")] = "Conv2D"
    path.write_text("\n".join(",".join(row) for row in rows))
    assert facts_of(tmp_path).value("recording.kind", RUN) == "unmarked"


def test_a_chain_of_different_work_is_no_comparison(tmp_path):
    """Kernels that take turns on different inputs are a program, however few they are."""
    path = write(tmp_path, loop(["MatMulV2", "Relu"], 60)) / "kernel_details.csv"
    rows = [row.replace("32,32;32,32", "64,64") if "Relu" in row else row for row in path.read_text().splitlines()]
    path.write_text("\n".join(rows))
    assert facts_of(tmp_path).value("recording.kind", RUN) == "unmarked"


@pytest.mark.parametrize(("operator", "benchmark"), [("MatMulV2", True), ("hcom_allReduce_", False)])
def test_a_statistic_of_collectives_is_no_benchmark(tmp_path, operator, benchmark):
    """One kernel launched again and again is measured; collectives alone are a part of some program's tables."""
    heading = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    path = tmp_path / "op_statistic_20260101000000.csv"
    path.write_text(f"{heading}\n0,{operator},AI_CORE,480,480000,990,1000,1100,100\n", encoding="utf-8")
    report = advise([path], load_rules())
    assert (report.profile.recording == "kernel_benchmark") is benchmark


def test_what_ranks_do_together_is_not_divided_by_their_batches(tmp_path, rules):
    """Eight batches of a rank are an eighth of what it waits for data, and no steps of the recording of two ranks."""
    for rank, wait in enumerate((100.0, 100.0, 9000.0)):
        kernels = [each for n in range(8) for each in loop(["MatMul", "Add", "Mul"], 3, start=n * 10_000.0, gap=1.0)]
        write(tmp_path / f"rank{rank}", kernels)
        named = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "MindSpore"}}
        fetch = {"ph": "X", "name": "Dataset::Pipeline::GetNext", "pid": 1, "tid": 1, "dur": wait}
        fetches = [fetch | {"ts": f"{ORIGIN_US + n * 10_000 - wait:.3f}"} for n in range(8)]
        (tmp_path / f"rank{rank}" / "trace_view.json").write_text(json.dumps([named, *fetches]))
    report = advise([tmp_path], rules, Options(jobs=1))
    assert report.summary.step_time_us is None
    waits = next(f for f in report.findings if f.rule == "DATA040")
    assert waits.subject.ranks == (2,) and waits.saving.share > 0.8


def layers(folder, sizes, times, pause):
    """Convolutions of one name on inputs of these sizes, executed again and again with a pause between."""
    kernels = [each for n in range(times) for each in loop(["Conv2D"] * len(sizes), 1, n * pause)]
    path = write(folder, kernels) / "kernel_details.csv"
    rows = path.read_text().splitlines()
    shaped = [row.replace("32,32;32,32", f"{sizes[i % len(sizes)]},32;32,32") for i, row in enumerate(rows[1:])]
    path.write_text("\n".join([rows[0], *shaped]))
    return path.parent


def draw(folder, process, events):
    """A timeline of (name, start us, duration us) in one process of the host."""
    named = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": process}}
    drawn = [
        {"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": f"{ORIGIN_US + at:.3f}", "dur": us} for n, at, us in events
    ]
    (folder / "trace_view.json").write_text(json.dumps([named, *drawn]))


def test_layers_of_one_name_on_other_inputs_are_a_network(tmp_path, rules):
    """A framework calls all convolutions by one name; their inputs tell the layers apart, and idle time is told."""
    report = advise([layers(tmp_path, list(range(32, 44)), 12, 40_000.0)], rules, Options(jobs=1))
    assert report.profile.recording == "unmarked"
    assert "a sequence of 12 kernels is executed 12 times" in report.profile.recording_reason.en
    assert any(f.rule == "SCHED020" for f in report.findings)


@pytest.mark.parametrize(("process", "told"), [("Python", "inference"), ("CANN", "kernel_benchmark")])
def test_work_of_the_host_between_launches_is_a_program(tmp_path, process, told):
    """Twelve launches of one convolution, then 40 ms in which the script reads images: it is no benchmark."""
    layers(tmp_path, [32] * 12, 12, 40_000.0)
    draw(tmp_path, process, [("imread", n * 40_000.0 + 400, 39_000.0) for n in range(11)])
    assert facts_of(tmp_path).value("recording.kind", RUN) == told


def test_a_frame_around_all_launches_is_no_work_between_them(tmp_path):
    """The script of a benchmark, drawn as one event, holds its launches and its pauses alike."""
    layers(tmp_path, [32] * 12, 12, 40_000.0)
    draw(tmp_path, "Python", [("bench.py(3): main", 0.0, 480_000.0)])
    assert facts_of(tmp_path).value("recording.kind", RUN) == "kernel_benchmark"


def test_a_host_that_executes_a_compiled_model_runs_inference(tmp_path):
    """aclmdlExecute runs a model offline, also one of a single operator; what to collect next needs no framework."""
    write(tmp_path, loop(["Conv2D"], 60, gap=500.0))
    calls = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
    (tmp_path / "api_statistic.csv").write_text(f"{calls}host,acl,aclmdlExecute,3600.000,60,60.0,60,60,0.1\n")
    facts = facts_of(tmp_path, "recording.executes_model")
    assert facts.value("recording.kind", RUN) == "inference"
    assert facts.value("recording.executes_model", RUN) is True


def test_three_rows_of_a_framework_table_are_no_benchmark(tmp_path, rules):
    """An excerpt of three kernels carries no verdict."""
    report = advise([write(tmp_path, loop(["MatMulV2"], 3))], rules)
    assert report.profile.recording == "unmarked"
    assert all(f.severity == "low" for f in report.findings)


def test_one_marked_step_around_one_operator_is_a_benchmark(tmp_path, rules):
    """Five hundred launches of one operator on one input in the only step: what is measured is how fast they come."""
    report = advise([write(tmp_path, [("0", *each[1:]) for each in loop(["Add"], 500, gap=45.0)])], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert report.summary.step_time_us is None
    (found,) = [f for f in report.findings if f.rule == "COMP087"]
    assert "how fast the host launches" in found.message.en


def test_steps_of_one_operator_are_no_benchmark(tmp_path):
    """Two steps divide the launches: each of them may be a batch."""
    kernels = [(str(n // 250), *each[1:]) for n, each in enumerate(loop(["Add"], 500, gap=45.0))]
    assert facts_of(write(tmp_path, kernels)).value("recording.kind", RUN) == "inference"


def test_what_clears_the_cache_between_launches_is_not_measured(tmp_path, rules):
    """Benchmarks fill a large buffer before each launch; however long that takes, the other kernel is their subject."""
    kernels = [each for n in range(60) for each in
               (("", "ZerosLike", n * 300.0, 200.0), ("", "softmax_custom", n * 300.0 + 210, 40.0))]  # fmt: skip
    report = advise([write(tmp_path, kernels)], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert [f.subject.id for f in report.findings] == ["softmax_custom"]


@pytest.mark.parametrize(("rows", "measured"), [(4096, "concat_custom"), (1024, "Mul")])
def test_a_large_product_between_all_launches_clears_the_cache(tmp_path, rows, measured):
    """192 MB go through the cache before each launch of a small kernel: that one is measured. A product that leaves
    the cache as it is may be the subject."""
    kernels = [each for n in range(12) for each in
               (("", "Mul", n * 400.0, 330.0), ("", "concat_custom", n * 400.0 + 340, 8.0))]  # fmt: skip
    folder = write(tmp_path, kernels)
    table = folder / "kernel_details.csv"
    lines = table.read_text().splitlines(keepends=True)
    large = f"{rows},4096"
    shaped = [line.replace("32,32;32,32", f"{large};{large}").replace("32,32", large).replace("FLOAT16", "FLOAT")
              if "Mul" in line else line for line in lines]  # fmt: skip
    table.write_text("".join(shaped))
    assert facts_of(folder).value("recording.measured_type", RUN) == measured


@pytest.mark.parametrize("drawing", [20.0, 200_000.0])
def test_inputs_drawn_at_random_are_no_part_of_a_benchmark(tmp_path, rules, drawing):
    """However long the random numbers take and are converted: the kernel behind them is what was recorded."""
    inputs = [
        ("", kind, 1_000.0 + n * (drawing + 50.0), drawing) for n, kind in enumerate(["DSARandomNormal", "Cast"] * 2)
    ]
    last = inputs[-1][2] + drawing
    folder = write(tmp_path, [*inputs, *loop(["custom_kernel"], 3, last + 500_000.0, 100.0)], "op_summary_1.csv")
    report = advise([folder], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert {finding.subject.id for finding in report.findings} == {"custom_kernel"}


def test_a_measured_kernel_at_the_speed_of_memory_is_told_so(tmp_path, rules):
    """Two gigabytes in 1.7 ms: whatever its units do, how its bytes come and how many they are decides."""
    folder = write(tmp_path, loop(["amin_custom"], 12, gap=5.0, duration=1_700.0))
    table = folder / "kernel_details.csv"
    table.write_text(table.read_text().replace("32,32;32,32", "1024,1024,1024").replace("FLOAT16;FLOAT16", "FLOAT16"))
    (found,) = [f for f in advise([folder], rules).findings if f.rule == "COMP087"]
    assert "about what the memory of a card carries" in found.message.en
    assert "about what the memory of a card carries" in found.message.en
    assert "bypass the L2 cache" in found.remedies[0].action.en


def test_inputs_of_a_network_are_its_own(tmp_path):
    """Random numbers and a pause before one kernel do not make a benchmark of the many that follow it."""
    layers = ["MatMulV2", "Gelu", "MatMulV2", "LayerNorm", "Softmax", "Add", "Cast", "BatchMatMul"]
    kernels = [("", "DSARandomNormal", 0.0, 20.0), ("", "Cast", 30.0, 5.0), *loop(layers, 3, 500_000.0)]
    assert facts_of(write(tmp_path, kernels)).value("recording.kind", RUN) != "kernel_benchmark"


def test_fills_alone_are_measured_all_the_same(tmp_path):
    """Whoever launches nothing but fills measures them."""
    assert facts_of(write(tmp_path, loop(["ZerosLike"], 60))).value("recording.kind", RUN) == "kernel_benchmark"


def test_pauses_between_a_handful_of_launches_give_no_direction(tmp_path, rules):
    """A test launches a custom kernel, then its reference: what the script does between is nobody's idle time."""
    kernels = [("", "gemm_custom", 0.0, 2300.0), ("", "MatMulV2", 3100.0, 520.0), ("", "IsClose", 3680.0, 30.0)]
    report = advise([write(tmp_path, kernels, "op_summary_20260101000000.csv")], rules)
    assert report.summary.direction != "scheduling"


@pytest.mark.parametrize("kind", ["ApplyAdamW", "FastGeluGrad", "MaxPoolGradWithArgmax"])
def test_an_update_or_a_gradient_alone_is_a_benchmark(tmp_path, rules, kind):
    """Whatever a kernel is called: nothing was trained where no forward pass ran, and nothing had a gradient."""
    inputs = [("", "Fill", 0.0, 3.0), ("", "Cast", 10.0, 3.0)]
    path = write(tmp_path, [*inputs, *loop([kind], 40, 100.0)], "op_summary_20260101000000.csv")
    report = advise([path], rules)
    assert report.profile.recording == "kernel_benchmark"
    assert kind in report.profile.recording_reason.en


@pytest.mark.parametrize("step", [["MatMulV2", "ApplyAdamW"], ["MatMulV2", "ReluGrad", "MatMulV2"]])
def test_an_update_beside_work_of_its_own_is_training(tmp_path, step):
    """A small network, of which the update takes nearly all time, launches its other kernels as often."""
    loops = loop(step, 40, gap=2.0)
    long = [(s, kind, at, 18.0 if kind == "ApplyAdamW" else 1.0) for s, kind, at, _ in loops]
    assert facts_of(write(tmp_path, long)).value("recording.kind", RUN) != "kernel_benchmark"


def test_launches_that_warm_a_kernel_up_are_set_up(tmp_path):
    """Ten launches, a pause for the inputs, a hundred launches: the hundred are measured, and the pause is nobody's."""
    warm, measured = loop(["custom_kernel"], 10), loop(["custom_kernel"], 100, 50_000.0)
    facts = facts_of(write(tmp_path, [*warm, *measured]), "recording.set_up_us", "operator_type.count")
    assert facts.value("recording.kind", RUN) == "kernel_benchmark"
    assert facts.value("recording.set_up_us", RUN) == pytest.approx(50_000)
    assert facts.number("step.idle_share", RUN) == pytest.approx(1 / 3, rel=0.02)


def test_a_pause_that_comes_again_is_no_end_of_a_warm_up(tmp_path):
    """A program that pauses after every ten launches does so all the time."""
    bursts = [kernel for n in range(6) for kernel in loop(["custom_kernel"], 10, n * 50_000.0)]
    facts = facts_of(write(tmp_path, bursts), "recording.set_up_us")
    assert facts.value("recording.set_up_us", RUN) is None
    assert facts.number("step.idle_share", RUN) > 0.9


def test_one_call_that_takes_nearly_all_of_a_recording_is_its_headline(tmp_path, rules):
    """Nothing comes again in it, so nobody calls it healthy; where its time goes is certain all the same."""
    others = [("", kind, 10_000.0 + 30 * n, 20.0) for n, kind in enumerate(["Add", "Tile", "Transpose"] * 4)]
    report = advise([write(tmp_path, [("", "Conv2D", 0.0, 9_990.0), *others])], rules)
    assert report.profile.recording == "unmarked"
    assert report.summary.direction == "computation"
    assert "Conv2D" in report.summary.headline.en and "low confidence" in report.summary.headline.en


@pytest.mark.parametrize(("lost", "said"), [(1, "holds 1 kernel fewer"), (2, "holds 2 kernels fewer")])
def test_missing_rows_are_counted_in_words_that_fit(tmp_path, rules, lost, said):
    """One row is a row, in both languages."""
    write(tmp_path, loop(["MatMulV2", "Add"], 100)[lost:])
    head = "Device_id,OP Type,Core Type,Count,Total Time(us)"
    (tmp_path / "op_statistic.csv").write_text(f"{head}\n0,MatMulV2,AI_CORE,100,2000\n0,Add,AI_CORE,100,2000\n")
    (problem,) = advise([tmp_path], rules).problems
    assert said in problem.problem
    assert "少" in translated(problem.problem, "zh")


def test_a_step_table_of_unknown_columns_names_no_recording(tmp_path):
    """Nothing in it was read: it is told as unreadable, not as a table without steps; and what the other table shows
    was judged."""
    output = tmp_path / "host_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text("Number,DataTime(ms),StepTime(ms)\n1,6,86\n2,5,83\n")
    rows = ["Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"]
    kinds = (("MatMulV2", "AI_CORE", 50), ("Add", "AI_VECTOR_CORE", 30), ("RmsNorm", "AI_VECTOR_CORE", 20))
    rows += [f"0,{name},{core},30,{30 * us},{us},{us},{us},{us}" for name, core, us in kinds]
    (output / "op_statistic.csv").write_text("\n".join(rows) + "\n")
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert "holds the recording as a whole" not in report.profile.recording_reason.en
    assert "Nothing could be judged" not in report.summary.headline.en
    assert "has none of the columns" in " ".join(problem.problem for problem in report.problems) and report.findings
