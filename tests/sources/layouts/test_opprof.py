"""What `msprof op` wrote: one operator with its blocks, launches with stamps, and files that lack others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import load_config
from advisor.model import Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from advisor.sources.discover import load_profile
from advisor.sources.streams.kernels import load_kernels

PIPES = "block_id,sub_block_id,aiv_time(us),aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio,"


def _launch(folder: Path, name: str, us: float, blocks: list[tuple[float, float, float]], stamp: str = "") -> Path:
    """A launch of `us` whose blocks are (time, share of scalar work, share of reading)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"OpBasicInfo{stamp}.csv").write_text(
        f"Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,\n{name},vector,{us},{len(blocks)},NA,\n"
    )
    rows = [f"{n},vector0,{time},0.1,{scalar},{read}," for n, (time, scalar, read) in enumerate(blocks)]
    (folder / f"PipeUtilization{stamp}.csv").write_text("\n".join([PIPES, *rows]) + "\n")
    return folder


def _value(folder: Path, name: str, operator: str) -> object:
    return measure([folder], [name], Options(jobs=1)).facts.value(name, Subject("operator_type", operator))


def test_launches_with_stamps_in_numbered_folders_are_one_operator(tmp_path: Path) -> None:
    """OPPROF_*/<operator>/<launch>/OpBasicInfo_<stamp>.csv: several launches of one operator, no ranks of a cluster."""
    for number in range(3):
        folder = tmp_path / "OPPROF_1_A" / "scatter_34" / str(number)
        _launch(folder, "scatter_34", 20.0 + number, [(19.0, 0.5, 0.4)] * 8, f"_2026082320505{number}000")
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and sorted(kernels.duration) == [20.0, 21.0, 22.0]
    assert {s.type for s in kernels.signatures} == {"scatter"}
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert "21\xa0µs on 8 blocks, busiest unit scalar at 50\xa0%" in report.profile.recording_reason.en
    assert not report.problems


def test_the_slowest_block_decides_what_limits_an_operator(tmp_path: Path) -> None:
    """A vector core that computes addresses for 450 us limits the operator, however long its neighbour only waits."""
    _launch(tmp_path, "decrypt_0_mix_aic", 454, [(452.0, 0.97, 0.01), (402.0, 0.01, 0.0)])
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and kernels.signatures[0].type == "decrypt"
    assert float(kernels.pipes["aiv_scalar_ratio"][0] / kernels.piped["aiv_scalar_ratio"][0]) == pytest.approx(0.97)


def test_without_the_basic_file_blocks_tell_how_long_it_took(tmp_path: Path) -> None:
    """PipeUtilization.csv alone: the time of the slowest block, the folder's name, and one sentence about the lack."""
    folder = _launch(tmp_path / "OPPROF_1_A" / "add_custom" / "0", "x", 9, [(4.2, 0.7, 0.75), (4.5, 0.7, 0.75)])
    (folder / "OpBasicInfo.csv").unlink()
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert "add_custom alone: 4.5\xa0µs on 2 blocks" in report.profile.recording_reason.en
    (problem,) = report.problems
    assert "OpBasicInfo.csv is missing" in problem.problem


def _summarise(folder: Path, **told: object) -> None:
    """What npu-compute writes instead of OpBasicInfo.csv, with the machine's record of its cores."""
    (folder / "OpBasicInfo.csv").unlink()
    whole = {"category": "OpInfoSummary", "Op Name": "gelu_custom", "Op Type": "vector", "Task Duration(us)": 9.5}
    records = [{"category": "PipeUtilization", "aiv_time(us)": 4.3}, whole | told]
    (folder / "summary.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    cores = {"category": "AI Core Information", "ai cube count": 8, "ai vector count": 16}
    (folder / "HardwareInfo.jsonl").write_text(json.dumps(cores) + "\n")


@pytest.mark.parametrize(("bases", "us"), [((9.0, 9.0), 9.0), ((5.0, 6.0), 6.0), ((9.0, 11.0), 6.0)])
def test_what_shares_are_of_tells_how_long_the_launch_took(
    tmp_path: Path, bases: tuple[float, float], us: float
) -> None:
    """Where all units' shares are of one time that is longer than any block, that is the launch's. Shares of each
    block's own time, or of times that differ, tell no more than the slowest block."""
    units = (("aiv_vec", 0.31), ("aiv_scalar", 1.34), ("aiv_mte2", 1.41), ("aiv_mte3", 0.43))
    heading = ",".join(f"{unit}_time(us),{unit}_ratio" for unit, _ in units)
    rows = [
        f"{n},vector0,{block}," + ",".join(f"{time:.6f},{time / base:.6f}" for _, time in units)
        for n, (block, base) in enumerate(zip((5.0, 6.0), bases, strict=True))
    ]
    folder = tmp_path / "add_custom"
    folder.mkdir()
    (folder / "PipeUtilization.csv").write_text(
        "\n".join([f"block_id,sub_block_id,aiv_time(us),{heading}", *rows]) + "\n"
    )
    assert _value(folder, "operator_type.average_us", "add_custom") == pytest.approx(us, rel=1e-3)


def test_a_summary_stands_for_the_basic_file(tmp_path: Path) -> None:
    """summary.jsonl names the operator and its 9.5 us; HardwareInfo.jsonl tells that two of 16 cores worked."""
    folder = _launch(tmp_path / "result", "x", 9, [(4.2, 0.1, 0.7), (4.5, 0.1, 0.7)])
    _summarise(folder, **{"Block Dim": 2})
    (folder / "L2Cache.csv").write_text(
        "block_id,sub_block_id,aiv_time(us),aiv_read_close_hit,aiv_read_far_hit,aiv_read_far_miss,aic_read_far_hit\n"
        "0,vector0,4.2,20,10,70,NA\n"
    )
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert "gelu_custom alone: 9.5\xa0µs on 2 blocks" in report.profile.recording_reason.en
    assert not report.problems
    assert _value(tmp_path, "operator_type.core_count", "gelu_custom") == 16
    assert _value(tmp_path, "operator_type.read_hit_share", "gelu_custom") == pytest.approx(0.3)
    (finding,) = report.findings
    assert "2 of 16 cores" in finding.message.en
    assert "as many blocks as the card has cores" in finding.remedies[0].action.en
    assert finding.saving is None  # nobody knows what starting up takes of 9.5 us


def test_a_summary_without_a_time_leaves_it_to_the_blocks(tmp_path: Path) -> None:
    """null is no time; a damaged summary is told, and what stands beside it is read."""
    folder = _launch(tmp_path / "gelu", "x", 9, [(4.2, 0.1, 0.7)])
    _summarise(folder, **{"Task Duration(us)": None})
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert "gelu alone: 4.2\xa0µs as a single block" in report.profile.recording_reason.en
    (folder / "summary.jsonl").write_text('{"category": "OpInfoSummary", "Task Dur')
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert "gelu alone: 4.2\xa0µs as a single block" in report.profile.recording_reason.en
    assert any("no JSON" in problem.problem for problem in report.problems)


def test_what_was_measured_names_no_operator(tmp_path: Path) -> None:
    """Folders are called after the profiler's own options as well: the operator is the folder above them."""
    folder = _launch(tmp_path / "gelu_custom" / "MemoryDetail" / "OPPROF_1_A", "x", 9, [(4.2, 0.7, 0.75)])
    (folder / "OpBasicInfo.csv").unlink()
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and {s.type for s in kernels.signatures} == {"gelu_custom"}


@pytest.mark.parametrize("below", ["docs/perf/round_001", "case-0", "shape-256/OPPROF_1", "reports/run3"])
def test_what_counts_attempts_names_no_operator(tmp_path: Path, below: str) -> None:
    """Whoever keeps a folder for each attempt calls it after a number; the operator is a folder above."""
    folder = _launch(tmp_path / "attention_custom" / below, "x", 9, [(4.2, 0.7, 0.75)])
    (folder / "OpBasicInfo.csv").unlink()
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and {s.type for s in kernels.signatures} == {"attention_custom"}


def test_memory_and_cache_tell_what_reading_costs(tmp_path: Path) -> None:
    """130 KB read and 64 KB written in 8 us by each of two blocks, of whose reads 2 % were in the cache."""
    _launch(tmp_path, "copy", 8.0, [(5.0, 0.1, 0.6), (5.0, 0.1, 0.6)])
    memory = "block_id,sub_block_id,aiv_time(us),read_main_memory_datas(KB),write_main_memory_datas(KB),\n"
    (tmp_path / "Memory.csv").write_text(memory + "0,vector0,5,130,64,\n1,vector0,5,130,64,\n")
    cache = "block_id,sub_block_id,aiv_r0_read_cache_hit,aiv_r0_read_cache_miss_allocate,aic_r0_read_cache_hit,\n"
    (tmp_path / "L2Cache.csv").write_text(cache + "0,vector0,10,490,NA,\n1,vector0,10,490,NA,\n")
    assert _value(tmp_path, "operator_type.memory_rate", "copy") == pytest.approx(2 * 194 * 1024 / 8e-6)
    assert _value(tmp_path, "operator_type.read_hit_share", "copy") == pytest.approx(0.02)


def test_units_that_fill_a_short_kernel_are_worked_on(tmp_path: Path) -> None:
    """Its blocks run for all of 17 us, and computing and reading fill them in turn: they tell enough."""
    _launch(tmp_path, "gmm_act", 17.5, [(17.0, 0.25, 0.32)] * 32)
    table = tmp_path / "PipeUtilization.csv"
    table.write_text(table.read_text().replace(",0.1,", ",0.64,"))
    (finding,) = advise([tmp_path], load_rules(config=load_config(None))).findings
    assert "Together they fill the time" in finding.message.en
    assert "at the same time" in finding.remedies[0].action.en
    assert "too short" not in finding.remedies[0].action.en


def test_blocks_without_work_are_counted(tmp_path: Path) -> None:
    """Sixteen heads on 24 blocks: eight end at once, and the launch lasts as long as if they were not there."""
    _launch(tmp_path, "attention", 1117.0, [(1105.0, 0.3, 0.25)] * 16 + [(20.0, 0.9, 0.0)] * 8)
    assert _value(tmp_path, "operator_type.idle_blocks", "attention") == 8
    (finding,) = advise([tmp_path], load_rules(config=load_config(None))).findings
    assert "8 of its 24 blocks get hardly any work" in finding.message.en
    assert "more finely" in finding.remedies[0].action.en


@pytest.mark.parametrize(
    ("short", "computed", "speed", "idle"),
    [(14.0, 0.02, 30.0, 7), (14.0, 0.6, 30.0, 0), (30.0, 0.02, 30.0, 0), (30.0, 0.02, 0.07, 7), (30.0, 0.6, 0.07, 0)],
    ids=["starts up", "computes a little", "moves data for long", "moves nothing for long", "computes what it has"],
)
def test_blocks_that_only_start_up_have_no_work(
    tmp_path: Path, short: float, computed: float, speed: float, idle: int
) -> None:
    """Starting up takes a third of a launch of 42 us, on some cards more than half: what a block computed and moved
    tells whether it had anything to do."""
    _launch(tmp_path, "attention", 44.0, [(42.0, 0.1, 0.25)] + [(short, 0.6, 0.3)] * 7)
    table = tmp_path / "PipeUtilization.csv"
    header, *rows = table.read_text().splitlines()
    rows = [f"{row}{'4.6,7,30' if at == 0 else f'{computed},5,{speed}'}," for at, row in enumerate(rows)]
    added = "aiv_vec_time(us),aiv_mte2_time(us),aiv_mte2_active_bw(GB/s),"
    table.write_text("\n".join([header + added, *rows]) + "\n")
    assert _value(tmp_path, "operator_type.idle_blocks", "attention") == idle


def _mixed(folder: Path, us: float, blocks: list[tuple[float, ...]], beside: int = 2) -> None:
    """A launch on both kinds of cores whose blocks have vector cores that run for so long, in scalar code alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "OpBasicInfo.csv").write_text(
        "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,\n"
        f"main_kernel_mix_aic,mix,{us},{len(blocks)},{beside * len(blocks)},\n"
    )
    rows = [PIPES.replace("aiv_time", "aic_time(us),aiv_time", 1)]
    for number, times in enumerate(blocks):
        rows.append(f"{number},cube0,3.4,NA,NA,NA,NA,")
        rows += [f"{number},vector{at},NA,{time},0.0,{0.99 * time / us},0.0," for at, time in enumerate(times)]
    (folder / "PipeUtilization.csv").write_text("\n".join(rows) + "\n")


def test_vector_cores_without_work_are_told(tmp_path: Path) -> None:
    """Each block computes on the first of its two vector cores: shared out, the work takes half the time."""
    _mixed(tmp_path, 83000.0, [(82900.0, 3.2)] * 24)
    assert _value(tmp_path, "operator_type.working_vectors", "main_kernel") == 1
    (finding,) = advise([tmp_path], load_rules(config=load_config(None))).findings
    assert "the other half of the vector cores stays idle" in finding.message.en
    assert "distributed unevenly" not in finding.message.en
    assert finding.saving is not None and finding.saving.us == pytest.approx(41500, rel=0.02)


@pytest.mark.parametrize(
    ("blocks", "working"), [([(900.0, 880.0)] * 16 + [(12.0, 9.0)] * 8, 2), ([(900.0,)] * 24, None)]
)
def test_blocks_without_work_say_nothing_of_vector_cores(
    tmp_path: Path, blocks: list[tuple[float, ...]], working: float | None
) -> None:
    """What has nothing to do as a whole leaves neither of its cores out; of a single core nobody knows another."""
    _mixed(tmp_path, 930.0, blocks)
    assert _value(tmp_path, "operator_type.working_vectors", "main_kernel") == working


def test_a_launch_of_one_vector_core_beside_each_cube_core_is_told(tmp_path: Path) -> None:
    """As many vector cores as cube cores: of each pair one is not even launched, and has no row of its own."""
    _mixed(tmp_path, 930.0, [(900.0,)] * 24, beside=1)
    assert _value(tmp_path, "operator_type.vectors_per_cube", "main_kernel") == 1
    assert _value(tmp_path, "operator_type.working_vectors", "main_kernel") is None


def test_blocks_that_run_in_rounds_are_told(tmp_path: Path) -> None:
    """32 blocks of 27 us in a launch of 52: the second round leaves cores idle, which a block a core would not."""
    _mixed(tmp_path, 52.0, [(27.0, 26.0)] * 32)
    (finding,) = advise([tmp_path], load_rules(config=load_config(None))).findings
    assert "lasts 1.9 times as long as its slowest block" in finding.message.en
    assert "one block for each core" in finding.remedies[0].action.en


def test_a_table_of_memory_that_is_something_else_is_no_operator(tmp_path: Path) -> None:
    """Memory.csv is a common name: without blocks in its heading it is none of msprof op's."""
    (tmp_path / "Memory.csv").write_text("time,used\n1,2\n")
    assert not load_profile([tmp_path]).ranks


def test_a_recorded_program_outweighs_operators_measured_beside_it(tmp_path: Path) -> None:
    """reports/app holds the program, reports/op an operator measured alone: the program is judged."""
    output = tmp_path / "app" / "PROF_000001_A" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    heading = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)"
    rows = [f"a,Add,AI_VECTOR_CORE,{1000 + 10 * i}.0,8" for i in range(9)]
    (output / "op_summary_1.csv").write_text("\n".join([heading, *rows]) + "\n")
    _launch(tmp_path / "op" / "OPPROF_1", "add", 8.0, [(7.0, 0.1, 0.6)])
    (rank,) = load_profile([tmp_path]).ranks
    assert rank.root.name == "PROF_000001_A" and "op/OPPROF_1" in rank.problems[0].problem


def test_a_table_of_kernels_among_the_counters_is_told(tmp_path: Path) -> None:
    """People lay op_summary of the program into the folder of the operator: nobody takes it for read."""
    _launch(tmp_path, "add", 8.0, [(7.0, 0.1, 0.6)])
    heading = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)"
    (tmp_path / "op_summary_20260101.csv").write_text(f"{heading}\nadd,add,AI_VECTOR_CORE,1000.0,80\n")
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and list(kernels.duration) == [8.0]
    assert [problem.file for problem in rank.problems] == ["op_summary_20260101.csv"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1.0, 1e4), min_size=1, max_size=50), st.floats(1.0, 3.0))
def test_shares_of_blocks_are_shares(tmp_path_factory, times: list[float], longer: float) -> None:
    """However blocks differ, the slowest takes the average's time at least, and no share leaves 0 … 1."""
    folder = _launch(tmp_path_factory.mktemp("op"), "op", max(times) * longer, [(time, 0.5, 0.5) for time in times])
    factor = _value(folder, "operator_type.slowest_block_factor", "op")
    outside = _value(folder, "operator_type.outside_blocks_share", "op")
    assert isinstance(factor, float) and 1 - 1e-9 <= factor <= len(times) + 1e-6
    expected = pytest.approx(1 - 1 / longer, abs=1e-4) if len(times) == 1 else None
    assert outside == expected


def test_an_operator_measured_again_after_a_change_is_no_mean_of_both(tmp_path: Path) -> None:
    """OPPROF_* before and after tuning: the newer one is judged, the older one named."""
    _launch(tmp_path / "before" / "OPPROF_20260101000000_A", "sigmoid", 72.0, [(70.0, 0.1, 0.6)] * 2)
    _launch(tmp_path / "after" / "OPPROF_20260102000000_B", "sigmoid", 31.0, [(30.0, 0.1, 0.6)] * 2)
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and list(kernels.duration) == [31.0]
    assert [problem.file for problem in rank.problems] == ["before/OPPROF_20260101000000_A"]


def test_different_operators_stay_together(tmp_path: Path) -> None:
    """Operators measured one by one are one collection, in which each counts."""
    for number, name in enumerate(("add", "mul")):
        _launch(tmp_path / f"OPPROF_2026010{number}000000_A", name, 20.0 + number, [(19.0, 0.1, 0.6)] * 2)
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and sorted(kernels.duration) == [20.0, 21.0]


def test_blocks_one_after_the_other_are_no_launch_overhead(tmp_path: Path) -> None:
    """512 blocks of 5 us on a card's cores take 70 us: what lies outside one block is the others' work."""
    _launch(tmp_path, "sigmoid", 70.0, [(5.0, 0.1, 0.6)] * 512)
    assert _value(tmp_path, "operator_type.outside_blocks_share", "sigmoid") is None


def test_a_cube_core_that_waits_for_vector_cores_limits_nothing(tmp_path: Path) -> None:
    """97 % in the cube core's scalar unit, which issues next to nothing, beside vector units that compute for 73 %."""
    _launch(tmp_path, "Kkt_1f444be706a062fefb190a53c330768a_0_mix_aic", 576, [(572.0, 0.35, 0.03)])
    heading = (
        "block_id,sub_block_id,aic_time(us),aic_cube_ratio,aic_scalar_time(us),aic_scalar_ratio,"
        "aic_scalar_single_time(us),aic_scalar_dual_time(us),aiv_time(us),aiv_vec_ratio,aiv_scalar_ratio"
    )
    rows = ["0,cube0,572,0.003,560,0.974,21,22,NA,NA,NA", "0,vector0,NA,NA,NA,NA,NA,NA,572,0.726,0.348"]
    (tmp_path / "PipeUtilization.csv").write_text("\n".join([heading, *rows]) + "\n")
    assert _value(tmp_path, "operator_type.pipe", "Kkt") == "vector"
    assert _value(tmp_path, "operator_type.pipe_ratio", "Kkt") == pytest.approx(0.726)


@pytest.mark.parametrize(("single", "dual", "wait", "share"), [(48, 120, 0, 440 / 452), (10, 10, 0, 20 / 452),
                                                               (48, 120, 300, 168 / 452)])  # fmt: skip
def test_waiting_is_no_work_of_the_scalar_unit(
    tmp_path: Path, single: float, dual: float, wait: float, share: float
) -> None:
    """A scalar unit that issues instructions is busy; one that hardly does, or booked its time as waiting, is not."""
    _launch(tmp_path, "decrypt", 454, [(452.0, 0.97, 0.01)])
    heading = (
        "block_id,sub_block_id,aiv_time(us),aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,"
        "aiv_scalar_single_time(us),aiv_scalar_dual_time(us),aiv_scalar_wait_time(us)"
    )
    row = f"0,vector0,452,0.0,440,0.97,{single},{dual},{wait}"
    (tmp_path / "PipeUtilization.csv").write_text(f"{heading}\n{row}\n")
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None
    found = float(kernels.pipes["aiv_scalar_ratio"][0] / kernels.piped["aiv_scalar_ratio"][0])
    assert found == pytest.approx(share)


def test_times_say_what_a_share_is_of(tmp_path: Path) -> None:
    """64 blocks of 20 us on fewer cores take 73 us: a unit that works for 18 us of each is busy for 90 % of the time,
    though the profiler, dividing by the 73 us, writes 24 %."""
    _launch(tmp_path, "matmul_0_mix_aic", 73.0, [(20.0, 0.1, 0.1)] * 64)
    heading = (
        "block_id,sub_block_id,aic_time(us),aic_cube_time(us),aic_cube_ratio,aic_mte2_time(us),aic_mte2_ratio,"
        "aiv_time(us),aiv_vec_time(us),aiv_vec_ratio"
    )
    rows = [f"{n},cube0,20,3,0.041,18,0.247,NA,NA,NA\n{n},vector0,NA,NA,NA,NA,NA,21,1,0.014" for n in range(64)]
    (tmp_path / "PipeUtilization.csv").write_text("\n".join([heading, *rows]) + "\n")
    assert _value(tmp_path, "operator_type.pipe", "matmul") == "memory (read)"
    assert _value(tmp_path, "operator_type.pipe_ratio", "matmul") == pytest.approx(0.9)
    assert _value(tmp_path, "operator_type.mac_ratio", "matmul") == pytest.approx(0.15)


def test_a_simulation_is_told_as_one(tmp_path: Path) -> None:
    """Instructions of single cores are no recording of a device; beside one they are passed over."""
    core = tmp_path / "OPPROF_1_A" / "simulator" / "core0.veccore0"
    core.mkdir(parents=True)
    (core / "core0.veccore0_instr_exe.csv").write_text("instr,addr,pipe,call_count,cycles\nADD,0x1,SCALAR,1,2\n")
    (core.parent / "trace.json").write_text('{"traceEvents": []}')
    profile = load_profile([tmp_path])
    assert not profile.ranks
    assert ["msprof op simulator" in p.problem for p in profile.problems] == [True]
    _launch(tmp_path / "OPPROF_1_A", "add_custom", 9.0, [(8.0, 0.5, 0.5)])
    both = load_profile([tmp_path])
    assert len(both.ranks) == 1
    assert not [p for p in both.problems if "simulator" in p.problem]


@pytest.mark.parametrize(("current", "told"), [("1000", True), ("1800", False), ("NA", False)])
def test_a_card_that_clocks_low_is_told_before_its_kernel(tmp_path: Path, current: str, told: bool) -> None:
    """OpBasicInfo.csv: 1000 of 1800 MHz makes every time a slow card's; at its rating, or untold, nothing is said."""
    folder = _launch(tmp_path, "add_custom", 75.0, [(72.0, 0.1, 0.9)] * 4)
    (folder / "OpBasicInfo.csv").write_text(
        "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,\n"
        f"add_custom,vector,75,4,NA,0,23456,{current},1800,\n"
    )
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert (report.findings[0].rule == "COMP090") is told
    assert any(finding.rule == "COMP090" for finding in report.findings) is told


def _counted(folder: Path, kind: str, columns: str, blocks: list[str]) -> None:
    """A collection of one group of counters, without the file that names the operator."""
    folder.mkdir(parents=True)
    rows = [f"{n},vector0,{row}" for n, row in enumerate(blocks)]
    (folder / f"{kind}.csv").write_text("\n".join([f"block_id,sub_block_id,aiv_time(us),{columns}", *rows]) + "\n")


@pytest.mark.parametrize("names", [("sfa_default_v1", "sfa_memory_v1"), ("default", "memory")])
def test_groups_of_counters_without_names_are_of_one_operator(tmp_path: Path, names: tuple[str, str]) -> None:
    """msprof op was called once for its units and once for memory: one operator, told by both."""
    root, moved = tmp_path / "7", "read_main_memory_datas(KB),write_main_memory_datas(KB)"
    _counted(root / names[0] / "OPPROF_1_A", "PipeUtilization", "aiv_vec_ratio", ["40,0.8", "20,0.8"])
    _counted(root / names[1] / "OPPROF_2_B", "Memory", moved, ["40,100,0", "20,100,0"])
    (rank,) = load_profile([root]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and len({s.type for s in kernels.signatures}) == 1
    name = kernels.signatures[0].type
    assert _value(root, "operator_type.pipe_ratio", name) == pytest.approx(0.8)
    assert _value(root, "operator_type.memory_rate", name) == pytest.approx(200 * 1024 / 40e-6)


def test_the_same_counters_again_are_a_later_measurement(tmp_path: Path) -> None:
    """Collected before and after a change: the later one is judged."""
    for number, time in enumerate((40, 20)):
        folder = tmp_path / "sfa" / f"OPPROF_{number}_A"
        _counted(folder, "PipeUtilization", "aiv_vec_ratio", [f"{time},0.8"])
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and list(kernels.duration) == [20.0]


def test_waiting_for_instructions_is_told_of_the_slowest_blocks(tmp_path: Path) -> None:
    """The block that the operator waits for fetches its code for half of its time, whatever the others do."""
    blocks = ["10,0.2,5", "9.8,0.2,4.9", "4,0.2,0.1"]
    _counted(tmp_path / "swiglu", "PipeUtilization", "aiv_vec_ratio,aiv_scalar_wait_ib_time(us)", blocks)
    assert _value(tmp_path / "swiglu", "operator_type.fetch_wait_share", "swiglu") == pytest.approx(0.5)
