"""What step tables and statistics tell that somebody copied out of a profile, without kernels and timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from advisor.collect.plan import next_collection
from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import COLLECTION, RUN, Fact, Report
from advisor.pipeline import Options, advise
from advisor.render import render
from advisor.ruleset.files.loader import load_rules

STEPS = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
TYPES = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


def write(
    folder: Path,
    steps: Sequence[tuple[str, float, float, float]],
    types: Sequence[tuple[str, int, float, float]] = (),
    kind: str = "pt",
    number: int = 0,
) -> Path:
    """The folder of a rank: (name, computing, exposed communication, idle) of each step, (type, count, time, share in
    percent) of each operator type; microseconds."""
    output = folder / f"rank{number}_{100 + number}_20260101000000000_ascend_{kind}" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [
        f"{number},{name},{busy},{exposed},0,{exposed},{idle},{busy + exposed + idle},0,{exposed},1200"
        for name, busy, exposed, idle in steps
    ]
    (output / "step_trace_time.csv").write_text("\n".join([STEPS, *rows]) + "\n")
    if types:
        rows = [
            f"{number},{name},AI_CORE,{count},{us},1,{us / count:.3f},{us},{share}" for name, count, us, share in types
        ]
        (output / "op_statistic.csv").write_text("\n".join([TYPES, *rows]) + "\n")
    return folder


def told(folder: Path) -> tuple[Report, str]:
    report = advise([folder], load_rules(), Options())
    return report, " ".join(render(report, "text", "en").split())


SERVING = [("QuantBatchMatmul", 4000, 8_000_000.0, 55.0), ("FusedInferAttentionScore", 300, 6_500_000.0, 45.0)]


def test_a_step_table_without_step_names_is_not_called_missing(tmp_path):
    """A profiler without a schedule writes one row without a number: the table is there, and the report says so."""
    report, text = told(write(tmp_path, [("", 14_700_000.0, 0.0, 1_700_000.0)], SERVING))
    assert "names no step" in text and "neither a step table" not in text
    assert report.profile.recording == "inference"


def test_nobody_who_serves_a_model_is_told_of_gradients(tmp_path):
    """Cards that serve one model expose their exchange: there are neither gradients nor a backward pass to hide it."""
    for number in (0, 1):
        write(tmp_path, [("", 14_700_000.0, 3_000_000.0, 100_000.0)], SERVING, number=number)
    report, text = told(tmp_path)
    (finding,) = (f for f in report.findings if f.rule == "COMM010")
    assert [remedy.id for remedy in finding.remedies] == ["shrink-serving-exchange"]
    assert "gradient" not in text and "training" not in text


def test_nobody_is_sent_to_gradients_that_may_not_be_there(tmp_path):
    """A step table alone does not tell whether a run trains: the advice says what to do in either case. Steps are
    taken for those of a training."""
    for name, rows in (("whole", [("", 29e6, 3.4e6, 2e5)]), ("steps", [(str(n), 29e4, 34e3, 2e3) for n in (3, 4, 5)])):
        for number in (0, 1):
            write(tmp_path / name, rows, number=number)
    remedies = {}
    for name in ("whole", "steps"):
        report, _ = told(tmp_path / name)
        (finding,) = (f for f in report.findings if f.rule == "COMM010")
        remedies[name] = [remedy.id for remedy in finding.remedies]
    assert remedies == {"whole": ["overlap-or-shrink"], "steps": ["overlap-communication"]}


@pytest.mark.parametrize(
    "kernel",
    ["DispatchFFNCombine", "MoeDistributeDispatchV3", "QuantLightningIndexerV2", "RecurrentGatedDeltaRule", "MatMulV2"],
)
def test_kernels_that_only_serving_launches_tell_that_a_model_is_served(tmp_path, kernel):
    """Tokens go to experts in the kernel that multiplies them, and a state is carried from token to token."""
    types = [(kernel, 180, 1_500_000.0, 53.0), ("MatMul", 5000, 1_315_000.0, 47.0)]
    report, _ = told(write(tmp_path, [("", 2_829_000.0, 1_361_000.0, 365_000.0)], types))
    assert report.profile.recording == ("unmarked" if kernel == "MatMulV2" else "inference")


def test_layers_of_a_served_model_need_no_other_layout(tmp_path):
    """What sharded layers of a served model exchange by their nature is no redistribution, however slow it is."""
    served = {"parallelism.strategy": "model", "step.time_us": 41400.0, "communication.redistribution_us": 16560.0}
    served |= {"communication.redistribution_share": 0.4, "communication.sharding_needed_share": 0.05}
    for kind, remedies in (
        ("inference", ["shrink-serving-exchange"]),
        ("training_steps", ["shrink-layer-exchange", "change-shard-strategy"]),
    ):
        facts = {**served, "recording.kind": kind, "communication.reshuffle_share": 0.0, "run.missing_ranks": 0}
        measured = FactSet(Fact(name, RUN, value) for name, value in facts.items())
        findings = decide(load_rules(), measured).findings
        (finding,) = (f for f in findings if f.rule == "COMM030")
        assert [remedy.id for remedy in finding.remedies] == remedies


@pytest.mark.parametrize(("recorded", "advised"), [(False, False), (True, True), (None, True)])
def test_nobody_is_told_to_switch_off_what_was_off(recorded, advised):
    """Call stacks slow the host while it is profiled: where the settings show none, there is nothing to switch off."""
    facts = {"step.idle_share": 0.8, "step.idle_us": 80_000.0, "step.time_us": 100_000.0, "operators.kernel_count": 900}
    measured = [Fact(name, RUN, value) for name, value in {**facts, "operators.compute_us": 9000.0}.items()]
    if recorded is not None:
        measured.append(Fact("collection.with_stack", COLLECTION, recorded))
    findings = decide(load_rules(), FactSet(measured)).findings
    (remedy,) = next(finding.remedies for finding in findings if finding.rule == "SCHED014")
    assert ("with_stack" in remedy.action.en, "with_stack" in remedy.action.zh) == (advised, advised)


def _with_collectives_on_ai_cpus(folder: Path, number: int, steps: tuple[str, float, float, float]) -> None:
    """A rank whose statistic lists, beside what computes, the kernels by which the AI CPUs carry collectives out: those
    last as long as the collectives do, waiting included."""
    write(folder, [steps], number=number)
    kernels = {"QuantBatchMatmulV3": ("MIX_AIC", 72_000.0), "Transpose": ("AI_VECTOR_CORE", 8_000.0)}
    kernels |= {"allreduceAicpuKernel": ("AI_CPU", 110_000.0), "allgatherAicpuKernel": ("AI_CPU", 10_000.0)}
    rows = [
        f"{number},{name},{core},100,{us},1,{us / 100},{us / 50},{us / 2000}" for name, (core, us) in kernels.items()
    ]
    (output,) = folder.glob(f"rank{number}_*/ASCEND_PROFILER_OUTPUT")
    (output / "op_statistic.csv").write_text("\n".join([TYPES, *rows]) + "\n")


@pytest.mark.parametrize("name", ["allreduce", "hcomAicpuInit", "RunAicpuRpcSrvLaunchV2_allreduce", "reduce_scatterv"])
def test_what_the_communication_library_runs_on_the_ai_cpu_is_no_operator(tmp_path, name):
    """msprof lists it by a collective's bare name, or as the library's server or set-up: nobody can replace it by an
    operator with an AI Core kernel. An operator that computes there still can be."""
    write(tmp_path, [("", 80_000.0, 50_000.0, 10_000.0)])
    (output,) = tmp_path.glob("rank0_*/ASCEND_PROFILER_OUTPUT")
    rows = ["0,MatMulV2,AI_CORE,100,60000,1,600,1200,60", "0,IndexPut,AI_CPU,12,9000,1,750,1200,9"]
    rows.append(f"0,{name},AI_CPU,900,31000,1,34,1200,31")
    (output / "op_statistic.csv").write_text("\n".join([TYPES, *rows]) + "\n")
    report, _ = told(tmp_path)
    on_ai_cpu = {f.subject.id for f in report.findings if f.rule == "COMP050"}
    assert on_ai_cpu == {"IndexPut"}
    assert name not in {f.subject.id for f in report.facts if f.name == "operator_type.compute_share"}


def test_kernels_that_carry_collectives_out_compute_nothing(tmp_path):
    """They fill no step beside its computation, and shares of the kernel time are shares of what computes."""
    _with_collectives_on_ai_cpus(tmp_path, 0, ("", 80_000.0, 50_000.0, 10_000.0))
    report, _ = told(tmp_path)
    assert not [problem for problem in report.problems if "op_statistic" in problem.file]
    shares = {f.subject.id: f.value for f in report.facts if f.name == "operator_type.compute_share"}
    assert shares == {"QuantBatchMatmulV3": pytest.approx(0.9), "Transpose": pytest.approx(0.1)}


def test_conversions_of_a_twentieth_do_not_lead_where_a_third_is_idle(tmp_path):
    """What no start times bound costs no more than it takes: a rank whose device idles for half of the recording, while
    the other waits for it, is what the recording is about."""
    _with_collectives_on_ai_cpus(tmp_path, 0, ("", 80_000.0, 100_000.0, 20_000.0))
    _with_collectives_on_ai_cpus(tmp_path, 1, ("", 80_000.0, 10_000.0, 110_000.0))
    report, text = told(tmp_path)
    assert report.summary.direction == "scheduling" and "idle more than their peers': rank 1" in text
    (conversion,) = (f for f in report.findings if f.rule == "COMP020")
    assert conversion.saving is not None and conversion.saving.us == pytest.approx(8_000.0)


def test_the_first_rows_of_a_statistic_make_no_inference(tmp_path):
    """Whoever keeps the busiest three types of a training drops its optimizer: the shares tell that others ran."""
    some = [("Cast", 240, 23_000.0, 10.5), ("BatchMatMulV3", 45, 20_000.0, 9.1), ("MatMulV2", 332, 18_000.0, 8.2)]
    whole = [("Cast", 240, 23_000.0, 38.0), ("BatchMatMulV3", 45, 20_000.0, 32.0), ("MatMulV2", 332, 18_000.0, 30.0)]
    kinds = []
    for name, types in (("some", some), ("whole", whole)):
        report, _ = told(write(tmp_path / name, [("6", 60_000.0, 2_000.0, 3_000.0)], types, "ms"))
        kinds.append(report.profile.recording)
    assert kinds == ["training_steps", "inference"]


def test_a_rank_whose_device_idles_is_not_sent_to_its_operators(tmp_path):
    """Six ranks wait for two whose devices idle for longer: their operators take as long as those of the peers, so
    comparing them tells nothing; the hosts do."""
    for number in range(8):
        idle = 300_000.0 if number in (3, 5) else 100_000.0
        write(tmp_path, [("", 80_000.0, 400_000.0 - idle, idle)], number=number)
    report, _ = told(tmp_path)
    late = [f for f in report.findings if f.rule == "CLUS040"]
    assert {remedy.id for f in late for remedy in f.remedies} == {"inspect-launching-host"}
    assert all("because the device idles longer there" in f.message.en for f in late)


def test_a_table_that_cannot_be_true_does_not_say_that_nothing_was_found(tmp_path):
    """More is computed than all kernels take: nothing is certain, and the communication that the table shows is not
    called insignificant in the same sentence."""
    types = [("MatMul", 300, 150_000.0, 100.0)]
    _, text = told(write(tmp_path, [("6", 420_000.0, 2_300_000.0, 630_000.0)], types, "ms"))
    assert "Nothing is certain" in text and "No significant bottleneck" not in text


@pytest.mark.parametrize("stated", [True, False])
def test_the_ranks_of_groups_are_not_taken_for_all(tmp_path, stated):
    """Members of a communication group are some of the ranks: nobody is told to profile "all 2 ranks"."""
    report, _ = told(write(tmp_path, [("6", 420_000.0, 230_000.0, 63_000.0)]))
    values = {
        "communication.absent_wait_share": 0.3,
        "run.missing_ranks": 1,
        "run.world_size": 2,
        "run.world_is_stated": stated,
    }
    facts = [f for f in report.facts if not (f.subject == RUN and f.name in values)]
    facts += [Fact(name, RUN, value) for name, value in values.items()]
    assert ("all 2 ranks" in next_collection(replace(report, facts=tuple(facts))).get("en")) is stated


def test_a_statistic_tells_that_one_call_is_unlike_the_others(tmp_path):
    """Of 73 multiplications of a decoding step the last one, over the whole vocabulary, takes more than a quarter."""
    rows = [
        "0,MatMul,AI_CORE,73,1361.78,3.74,18.65,386.32,46.5",
        "0,IncreFlashAttention,MIX_AIC,24,1120.1,21.1,46.7,61.2,38.3",
        "0,RmsNorm,AI_VECTOR_CORE,96,445.0,1.86,4.6,6.86,15.2",
    ]
    (tmp_path / "op_statistic_20260101000000.csv").write_text("\n".join([TYPES, *rows]) + "\n")
    _, text = told(tmp_path)
    assert "One call alone takes 390 µs, against 19 µs on average" in text.replace("\xa0", " ")
    assert text.count("One call alone") == 1


def test_gaps_of_a_few_kernels_are_not_those_of_a_step_that_computes_a_thousand_times_as_long(tmp_path):
    """Whoever shares the first rows of a table of kernels without step ids shares no course: the step table tells how
    much is idle, and nothing tells where."""
    write(tmp_path, [("1", 85_000.0, 4_000.0, 21_000.0)])
    (output,) = tmp_path.glob("rank0_*/ASCEND_PROFILER_OUTPUT")
    heading = "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    rows = [f"0,aclnnMul_{n},Mul,AI_VECTOR_CORE,{1000 + 200 * n}.000\t,20.0,0" for n in range(40)]
    (output / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n")
    report, text = told(tmp_path)
    assert "0.94 % of the computing time" in text.replace("\xa0", " ")
    (finding,) = (f for f in report.findings if f.rule == "SCHED020")
    assert "No gap lasts longer" not in finding.message.en and "between aclnnMul" not in text


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_the_kernels_makes_no_launch_slower(tmp_path, seed):
    """The device idles for half of the time. Whoever shares the first kernels alone divides all of it by few of them:
    the computing time of the step tells how many there were, so a cut never accuses the host's launches."""
    draw = Random(seed)
    each, count = draw.uniform(20.0, 60.0), draw.randint(2_000, 6_000)
    gap = each * draw.uniform(0.6, 1.4)
    accused = []
    for part in (1.0, draw.uniform(0.03, 0.2)):
        folder = write(tmp_path / str(part), [("", each * count, 0.0, gap * count)])
        types = [
            f"0,{name},AI_VECTOR_CORE,{round(count * part / 4)},{each * round(count * part / 4):.1f}" for name in "ABCD"
        ]
        statistic = next(folder.rglob("step_trace_time.csv")).with_name("op_statistic.csv")
        statistic.write_text("\n".join([",".join(TYPES.split(",")[:5]), *types]) + "\n")
        report, _ = told(folder)
        accused.append([f.rule for f in report.findings if f.rule == "SCHED014"])
    assert accused == [[], []]


@pytest.mark.parametrize("seed", range(4))
def test_a_statistic_without_its_last_rows_is_no_benchmark(tmp_path, seed):
    """A decoder spends most of its time in products, and the first rows of its statistic list nothing else than a few
    types: their shares tell that others ran, so nobody measured one kernel there."""
    draw = Random(seed)
    layers = draw.randint(20, 80) * 10
    types = [("MatMulV2", 4 * layers, 80.0 * 4 * layers), ("FusedInferAttentionScore", layers, 21.0 * layers)]
    types += [
        ("split_qkv_rmsnorm_rope", layers, 11.0 * layers),
        *((f"Norm{i}", layers, 9.0 * layers) for i in range(4)),
    ]
    whole = sum(us for *_, us in types)
    kinds = []
    for name, rows in (("first", types[: draw.randint(1, 3)]), ("all", types)):
        (tmp_path / name).mkdir()
        lines = [f"0,{t},AI_CORE,{n},{us},1,{us / n:.3f},{us},{100 * us / whole:.3f}" for t, n, us in rows]
        (tmp_path / name / "op_statistic.csv").write_text("\n".join([TYPES, *lines]) + "\n")
        report, _ = told(tmp_path / name)
        kinds.append((report.profile.recording, [f.rule for f in report.findings if f.role == "root_cause"]))
    assert kinds == [("fragment", []), ("fragment", [])]


@pytest.mark.parametrize("seed", range(4))
def test_receiving_that_nothing_hides_is_said_where_no_stages_are_told(tmp_path, seed):
    """All exposed communication of a rank is receiving: a stage of a pipeline does so, and a rank whose experts others
    run. Nobody is accused, and nobody is told that nothing significant was found."""
    draw = Random(seed)
    said = []
    for name, least, most in (("much", 0.2, 0.4), ("little", 0.01, 0.08)):
        rows = []
        for step in range(5):
            whole, exposed = draw.uniform(70_000, 90_000), draw.uniform(least, most)
            idle = 0.03 * whole
            busy, alone = whole * (1 - exposed) - idle, whole * exposed
            received = alone * draw.uniform(1.0, 1.6)
            times = (busy, alone, 9000, alone + 9000, idle, whole - received, received, alone - received, 900)
            rows.append(",".join(map(str, (0, step, *times))))
        output = tmp_path / name / "rank0_100_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "step_trace_time.csv").write_text("\n".join([STEPS, *rows]) + "\n")
        report, text = told(tmp_path / name)
        found = [(f.severity, f.role) for f in report.findings if f.rule == "COMM014"]
        said.append((found, report.summary.direction, "may be at stake" in text))
    assert said[0] == ([("low", "contributing")], "undetermined", True)
    assert said[1][0] == [] and not said[1][2]
