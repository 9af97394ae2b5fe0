"""The partition is read from metadata, else from who talks to whom, else from the data's shape."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import PIPELINE, SMALL, facts_of, forget_groups

from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.parallelism import Partition, _in_order, partition
from advisor.model import RUN, Parallelism, Subject
from advisor.pipeline import Options, measure
from benchmarks.simulator import Fault, Scenario, simulate, write_profile


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_partition_with_and_without_metadata(tmp_path, metadata, framework, pairwise):
    """Stages and sizes are the same whether the framework names its groups or only uses them."""
    scenario = replace(PIPELINE, tensor=2, steps=2, metadata=metadata, framework=framework, pairwise=pairwise)
    facts, _ = facts_of(scenario, tmp_path)
    assert [facts.value(f"parallelism.{k}", RUN) for k in ("data", "tensor", "pipeline")] == [2, 2, 2]
    assert facts.value("parallelism.strategy", RUN) == "pipeline"
    stages = {f.subject.ranks[0]: f.value for f in facts.of("rank.stage").values()}
    assert stages == {r: scenario.place(r)[0] for r in range(8)}


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("metadata", [True, False])
def test_one_communicator_for_each_pair_of_stages(tmp_path, metadata, batched):
    """Communicators of two ranks each make one pipeline of four stages, not many of two."""
    scenario = replace(
        PIPELINE, pipeline=4, layers=1, steps=2, metadata=metadata, pairwise=True, batch_send_receive=batched
    )
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("parallelism.pipeline", RUN) == 4
    stages = {f.subject.ranks[0]: f.value for f in facts.of("rank.stage").values()}
    assert stages == {r: scenario.place(r)[0] for r in range(8)}


def test_stages_before_those_at_hand_are_counted(tmp_path):
    """Ranks know their own partners alone: with one rank of stage 2 and one of stage 3, the sender to stage 2 is no
    first stage where the job has ranks for one before it."""
    scenario = replace(PIPELINE, pipeline=4, layers=1, steps=2, pairwise=True, framework="pytorch")
    write_profile(simulate(scenario), tmp_path)
    chosen = [next(r for r in range(8) if scenario.place(r)[0] == stage) for stage in (2, 3)]
    for info in list(tmp_path.rglob("profiler_info_*.json")):
        if int(info.stem.rpartition("_")[2]) not in chosen:
            shutil.rmtree(info.parent)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("parallelism.pipeline", RUN) == 4
    assert {f.subject.ranks[0]: f.value for f in facts.of("rank.stage").values()} == {chosen[0]: 2, chosen[1]: 3}


@pytest.mark.parametrize(
    ("products", "attention", "purpose"),
    [("MatMulV2", "FlashAttentionScore", "exchange"), ("MatMulV2", "EmbeddingBag", "exchange"),
     ("GroupedMatmul", "FlashAttentionScore", "expert")],
)  # fmt: skip
def test_kernels_tell_what_ranks_exchange_all_with_all_for(tmp_path, products, attention, purpose):
    """Tokens go to experts where kernels multiply for several; without, the same exchange may be of anything, and
    nobody is told of tokens or of keys and values."""
    facts_of(replace(SMALL, experts=True, framework="pytorch", steps=3), tmp_path)
    for file in tmp_path.rglob("*.csv"):
        text = file.read_text("utf-8").replace("MatMulV2", products).replace("FlashAttentionScore", attention)
        file.write_text(text, "utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    told = {name: facts.number(f"communication.{name}_share", RUN) or 0.0 for name in ("exchange", "expert", "context")}
    assert [name for name, share in told.items() if share > 0.01] == [purpose]


def test_stage_order_follows_the_sender():
    """Where ranks count against the stages, the rank that sends first in a step is the first stage."""
    assert _in_order((0, 1, 2), [(2, 1), (1, 0)], {(2, 1), (1, 0)}) == (2, 1, 0)
    assert _in_order((0, 1, 2), [(0, 1), (1, 2)], {(0, 1), (1, 2)}) == (0, 1, 2)
    assert _in_order((0, 1, 2), [(0, 1), (1, 2), (0, 2)], {(0, 1), (1, 2), (2, 0)}) == (0, 1, 2)


def test_stages_from_step_times_alone(tmp_path):
    """With step tables only, ranks that report bubbles are put into contiguous equal blocks of equal ranks."""
    scenario = replace(
        PIPELINE,
        kernels=False,
        level=0,
        metadata=False,
        framework="pytorch",
        faults=(Fault("stage_imbalance", 0, 1.0),),
    )
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("parallelism.pipeline", RUN) == 2
    assert facts.value("parallelism.is_told", RUN) is False
    assert facts.value("rank.stage", Subject("rank", "3", (3,))) == 1


def test_a_slow_rank_makes_no_stage_of_its_own(tmp_path):
    """Four ranks a stage of which one computes longer: the others of its stage still do the same work."""
    scenario = replace(
        PIPELINE, data=4, kernels=False, level=0, metadata=False, steps=4, faults=(Fault("slow_compute", 1, 0.2),)
    )
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("parallelism.pipeline", RUN) == 2
    assert facts.value("rank.late_cause", Subject("rank", "1", (1,))) == "compute"


@pytest.mark.parametrize(("called", "stages"), [("HcclSend", 4), ("HcclAllreduce", 1), ("HcclBatchSendRecv", 1)])
def test_ranks_whose_hosts_send_to_single_others_are_no_peers(tmp_path, called, stages):
    """Where timelines name no groups, who sends and receives may hold another part of the model than its neighbour."""
    write_profile(simulate(replace(SMALL, steps=2, metadata=False, framework="pytorch")), tmp_path, trace=True)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        if path.name != "trace_view.json":
            path.unlink()
            continue
        events = json.loads(path.read_text())
        step = next(event for event in events if str(event.get("name")).startswith("ProfilerStep"))
        path.write_text(json.dumps([*events, {**step, "name": called, "dur": 20}]))
    forget_groups(tmp_path)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert len({fact.value for fact in facts.of("rank.stage").values()}) == stages


@pytest.mark.parametrize(("found", "world", "sizes"), [
    (Partition(2, 2, 2, source="communication groups"), 8, (2, 2, 2)),
    (Partition(4, 1, 2, source="stages in the cluster analysis"), 16, (None, None, 2)),
    (Partition(8, None, 1), 8, (None, None, None)),
    (Partition(1, None, 1), 1, (1, 1, 1)),
])  # fmt: skip
def test_sizes_that_do_not_make_up_the_world_are_not_reported(found, world, sizes):
    """A reader multiplies the sizes: what was only assumed, or leaves ranks over, is unknown and no number."""
    told = found.surely(world, Parallelism())
    assert (told.data, told.tensor, told.pipeline) == sizes
    assert found.surely(world, Parallelism(data=3)).data in (sizes[0], 3)


@pytest.mark.parametrize(("own", "role"), [("17000000000000000999", "tensor"), ("17000000000000000602", "data")])
def test_a_communicator_under_another_name_is_told_by_the_number_of_its_operations(
    tmp_path: Path, own: str, role: str
) -> None:
    """Metadata call a group ...602, as its operations do (hcom_allReduce__602_0_1), and files of collectives otherwise;
    an id that ends with that number is another group's."""
    write_profile(simulate(Scenario(data=2, layers=3, steps=3, framework="pytorch")), tmp_path)
    for file in tmp_path.rglob("communication*.json"):
        text = file.read_text()
        number = re.search(r"__([0-9]+)_0_1@([0-9]+)", text)
        if number is not None:
            file.write_text(text.replace(f"__{number[1]}_", "__602_").replace(number[2], own))
    group = {"16000000000000000602": {"group_name": "tp", "group_rank": 0, "global_ranks": [0, 1]}}
    for file in tmp_path.rglob("profiler_metadata.json"):
        file.write_text(json.dumps({"parallel_group_info": group}))
    run = measure([tmp_path], None, Options(jobs=1)).run
    used = {group for ex in run.each(EXCHANGES).values() for group in ex.groups}
    assert {partition(run).role_of(group) for group in used} == {role}
