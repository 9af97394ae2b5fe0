"""Waiting is told from transferring by who was inside a collective shortest, wherever the profiler books it."""

import json
from dataclasses import replace

import pytest
from clusters import PIPELINE, SMALL, facts_of

from advisor.facts.collectives.communication import gathered_behind
from advisor.facts.collectives.exchanges import kind_of
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("hcom_allReduce__586_0_1", "allreduce"), ("AllReduce-op4582", "allreduce"),
        ("hcom_reduceScatter__1_2", "reducescatter"),
        ("hcom_alltoAllv__1", "alltoall"), ("Receive-op2068", "receive"), ("hcom_batchSendRecv__1", "batchsendrecv"),
        ("hcom_send__822_0", "send"), ("Notify_Wait", "other"),
    ],
)  # fmt: skip
def test_kind_of_any_spelling(name, kind):
    """Every version's spelling of an operation has one kind."""
    assert kind_of(name) == kind


@pytest.mark.parametrize("waiting", ["wait", "idle", "mixed"])
def test_last_arrival_wherever_waiting_is_booked(tmp_path, waiting):
    """The rank that comes last is found whether waiting is booked as Wait, Idle or both."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),), waiting=waiting), tmp_path)
    assert facts.value("rank.last_arrival_share", Subject("rank", "2", (2,))) > 0.8
    assert facts.value("rank.wait_us", Subject("rank", "0", (0,))) > 5 * facts.value(
        "rank.wait_us", Subject("rank", "2", (2,))
    )


def test_waiting_for_a_rank_without_files(tmp_path):
    """Where the late rank left no files, the waiting that no rank at hand causes is told, and not called transfer."""
    scenario = replace(SMALL, faults=(Fault("slow_compute", 2, 0.6),), missing_ranks=(2, 3))
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("communication.absent_wait_share", RUN) > 0.15
    assert facts.value("allreduce.exposed_share", RUN) is None
    assert facts.value("allreduce.transfer_us", RUN) < 0.1 * facts.value("step.time_us", RUN)
    assert all(f.value < 0.05 for f in facts.of("rank.lateness_share").values())


@pytest.mark.parametrize("slower", [0.2, 0.6])
def test_what_an_absent_rank_costs_is_no_less_than_the_step_would_gain(tmp_path, slower):
    """The bound holds beside the same run without the fault, whatever transfer would then be overlapped."""
    late = replace(SMALL, faults=(Fault("slow_compute", 2, slower),), missing_ranks=(2, 3))
    facts, _ = facts_of(late, tmp_path / "late")
    even, _ = facts_of(replace(late, faults=()), tmp_path / "even")
    gain = facts.value("step.time_us", RUN) - even.value("step.time_us", RUN)
    assert sum(f.value for f in facts.of("collective.absent_wait_us").values()) >= 0.98 * gain > 0


def test_what_a_rank_waits_in_one_group_is_not_thinned_by_its_other_groups(tmp_path):
    """Each rank waits 90 ms in a group whose other members are absent, and hardly in the group that both share: a rank
    waits 90 ms, whoever counts groups, and the collective named is told of the rank that takes part in it. An
    operation without a transfer time of its own tells no wait."""
    for rank, own in ((0, "459"), (1, "303")):
        output = tmp_path / f"rank_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        operations = {f"hcom_allReduce__{own}_0@9{own}": _waiting(1e9, 95.0, 5.0)}
        operations |= {f"hcom_allReduce__483_{i}@9483": _waiting(2e9 + i * 2e5, 1.0, 0.9) for i in range(2)}
        operations |= {f"hcom_allGather__{own}_7@9{own}": _waiting(3e9, 30.0, 0.0)}
        (output / "communication.json").write_text(json.dumps({"step1": {"p2p": {}, "collective": operations}}))
        info = {"rank_id": rank, "config": {"common_config": {}}}
        (tmp_path / f"rank_{rank}_ascend_pt" / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    facts = measure([tmp_path], None).facts
    waits = {subject: fact.value for subject, fact in facts.of("collective.absent_wait_us").items()}
    waited = {subject.id.rpartition("_")[0]: (us, subject.ranks) for subject, us in waits.items() if us > 0}
    assert len(waited) == 1
    ((name, (us, ranks)),) = waited.items()
    assert us == pytest.approx(90_000.0) and ranks == ((0,) if "459" in name else (1,))


def _waiting(start_us, elapsed_ms, transit_ms):
    times = {"Elapse": elapsed_ms, "Transit": transit_ms, "Wait": elapsed_ms - transit_ms, "Synchronization": 0.0}
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": start_us, "Idle Time(ms)": 0.0, **{f"{n} Time(ms)": ms for n, ms in times.items()},
        },
        "Communication Bandwidth Info": {},
    }  # fmt: skip


def test_ranks_whose_collectives_are_lost_are_counted(tmp_path):
    """What a rank without communication.json waits in collectives its kernels tell, and without these nobody."""
    facts, _ = facts_of(SMALL, tmp_path)
    assert facts.value("communication.untold_ranks", RUN) == 0
    for name, untold in (("communication.json", 0), ("kernel_details.csv", 1)):
        max(tmp_path.rglob(name)).unlink()
        facts = measure([tmp_path], None, Options(jobs=1)).facts
        assert facts.value("communication.untold_ranks", RUN) == untold


@pytest.mark.parametrize("reported", [True, False])
def test_bubble_is_no_exposed_communication(tmp_path, reported):
    """A pipeline's waiting for stages is kept apart, also where the Bubble column stays 0."""
    facts, _ = facts_of(replace(PIPELINE, bubble_reported=reported, batch_send_receive=not reported), tmp_path)
    assert facts.value("step.exposed_communication_share", RUN) > 0.15
    assert facts.value("communication.exposed_without_bubble_share", RUN) < 0.05
    assert facts.value("pipeline.bubble_share", RUN) == pytest.approx(0.2, abs=0.06)


def test_small_packets_of_larger_messages_are_told(tmp_path):
    """A ring of sixteen cuts messages of 1 MB into packets of 62 kB, each with a start-up: the bytes that an operation
    moves, and a fit through one size, would tell nothing."""
    ring = Scenario(data=16, layers=20, buckets=20, kernel_us=30.0, steps=4, gradient_mb_per_layer=1.0, chunked=True)
    write_profile(simulate(ring), tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    found = [f for f in report.findings if f.verdict == "small-packets"]
    assert [f.role for f in found] == ["root_cause"] and found[0].confidence == "high"
    assert not report.problems  # what is counted from shapes may be off, and damages no file
    assert "in packets of 62.5\u00a0kB" in found[0].message.en
    longer = simulate(ring).step_us - simulate(replace(ring, buckets=10)).step_us
    assert found[0].saving is not None and found[0].saving.us_per_step == pytest.approx(longer, rel=0.3)


def test_a_rank_that_lacks_a_size_is_not_compared(tmp_path):
    """One size is lost on one of two ranks: the other one does not move twice as much for that."""
    facts_of(replace(SMALL, data=2, framework="pytorch", steps=2), tmp_path)
    file = max(tmp_path.rglob("communication.json"))
    content = json.loads(file.read_text())
    entries = [
        entry
        for step in content.values()
        for name, operation in step["collective"].items()
        if not name.startswith("Total")
        for entry in operation["Communication Bandwidth Info"].values()
    ]
    for entry in entries[: len(entries) // 2]:
        entry["Transit Size(MB)"] = None
    file.write_text(json.dumps(content))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert len(facts.of("rank.transfer_bytes")) == 1 and not facts.of("rank.transfer_ratio")


def test_gathers_are_of_weights_only_where_their_gradients_are_scattered(tmp_path):
    """Sharded parameters are gathered, and the gradients of as many are scattered; where these are reduced in full,
    what is gathered is something else and nobody is told to prefetch weights."""
    sharded = replace(SMALL, sharded=True)
    facts, _ = facts_of(sharded, tmp_path / "sharded")
    assert facts.number("communication.weights_us", RUN) > 0
    write_profile(simulate(sharded), tmp_path / "whole")
    for file in (tmp_path / "whole").rglob("*"):
        if file.is_file():
            text = file.read_text().replace("reduceScatter", "allReduce").replace("ReduceScatter", "AllReduce")
            file.write_text(text)
    whole = measure([tmp_path / "whole"], None, Options(jobs=1)).facts
    assert whole.number("communication.exposed_transfer_us", RUN) > 0
    assert whole.number("communication.weights_us", RUN) is None


def test_what_is_gathered_behind_the_update_is_a_cause_with_what_it_costs(tmp_path):
    """The weights that ranks just updated could be gathered beside the next step's forward pass."""
    write_profile(simulate(replace(SMALL, sharded=True, gradient_mb_per_layer=150.0)), tmp_path)
    for file in tmp_path.rglob("communication.json"):
        content = json.loads(file.read_text())
        for step in content.values():
            told = {name: each["Communication Time Info"] for name, each in step["collective"].items() if "@" in name}
            last = max(float(info["Start Timestamp(us)"]) for info in told.values())
            for name, info in told.items():
                if "allGather" in name:
                    info["Start Timestamp(us)"] = last + 1
        file.write_text(json.dumps(content))
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    told = {f.name: f.value for f in report.facts if f.subject == RUN}
    (found,) = (f for f in report.findings if f.rule == "COMM011")
    assert found.saving is not None and found.saving.us == pytest.approx(told["communication.updated_weights_us"])
    assert found.remedies[0].id == "gather-beside-forward"


@pytest.mark.parametrize(
    ("gathers", "scatters", "behind"),
    [
        ({(0, "1"): [90], (0, "2"): [190]}, {(0, "1"): [20, 60], (0, "2"): [150]}, True),  # after the update
        ({(0, "1"): [10, 50, 90]}, {(0, "1"): [60, 80]}, False),  # layer by layer
        ({(0, "1"): [90], (0, "2"): [110]}, {(0, "1"): [60], (0, "2"): [150]}, False),  # one step gathers first
        ({(0, "1"): [0]}, {(0, "1"): [0]}, False),
        ({(0, "1"): [90]}, {}, False),
    ],
)
def test_what_is_gathered_behind_the_last_gradients_is_no_layers_weights(gathers, scatters, behind):
    """A sharded update gathers what it changed once, and no layer of this step waits for it."""
    assert gathered_behind(gathers, scatters) == behind
