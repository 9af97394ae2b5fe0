"""Links are judged by size over time against links that carry messages like theirs."""

import csv
import json
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import PIPELINE, SMALL, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.cluster.link_gain import _moving, put_together
from advisor.facts.cluster.links import _main_transport, _packet_bytes
from advisor.facts.collectives.inherent import link_limit
from advisor.facts.collectives.link_speed import Link, _compare, cards_of, fit, hosts_of, loads_by_kind, machines_of
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, judge_saved, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile

TRAFFIC = replace(SMALL, gradient_mb_per_layer=24.0)


@given(st.floats(0, 100), st.floats(1e3, 1e5))
def test_fit_finds_latency_and_bandwidth(alpha, rate):
    """Exact messages give back α and β."""
    sizes = np.array([1e5, 1e6, 5e6, 2e7])
    found, speed = fit(sizes, alpha + sizes / rate)
    assert found == pytest.approx(alpha, abs=1e-3 * (1e5 / rate + alpha) + 1e-6)
    assert speed == pytest.approx(rate, rel=1e-3)


def test_times_that_no_machine_can_weigh_end_in_no_fault() -> None:
    """Damaged tables hold times of next to nothing; what they weigh is beyond a number."""
    sizes, times = np.array([1.0, 1e6, 2e6]), np.array([1e-320, 1.0, 2.0])
    start, _ = fit(sizes, times)
    assert start == pytest.approx(0.0, abs=1e-6)


def test_slow_pair_is_told_from_its_cards(tmp_path):
    """One slow pair has a low ratio; the best links of its two cards are as fast as others."""
    facts, _ = facts_of(replace(TRAFFIC, faults=(Fault("slow_link", (1, 2), 4.0),)), tmp_path)
    pair = Subject("link", "1-2", (1, 2))
    assert facts.value("link.bandwidth_ratio", pair) == pytest.approx(0.2, rel=0.1)
    assert facts.value("link.card_ratio", pair) > 0.9
    assert facts.value("link.bandwidth_ratio", Subject("link", "0-3", (0, 3))) > 0.9


def test_one_step_has_many_messages(tmp_path):
    """A link that is slow in each of a step's messages is no accident of one step; a rank that is late may be one."""
    write_profile(simulate(replace(PIPELINE, steps=1, faults=(Fault("slow_link", (0, 2), 8.0),))), tmp_path)
    report = advise([tmp_path], load_rules())
    found = [f for f in report.findings if f.verdict == "slow-link"]
    assert [f.subject.id for f in found] == ["0-2"] and found[0].severity.value in ("high", "critical")
    assert report.summary.direction == "communication"


def test_a_second_rank_at_hand_hides_no_slow_link(tmp_path):
    """Of the ranks that were not recorded nobody knows the hosts; the two that were know theirs, and each other's slow
    link is compared with all their links."""
    told = []
    for kept in ((1,), (1, 2)):
        others = tuple(rank for rank in range(TRAFFIC.world_size) if rank not in kept)
        scenario = replace(TRAFFIC, missing_ranks=others, faults=(Fault("slow_link", (1, 2), 8.0),))
        facts, _ = facts_of(scenario, tmp_path / str(kept))
        told.append(facts.value("link.bandwidth_ratio", Subject("link", "1-2", (1, 2))))
    assert all(ratio == pytest.approx(0.11, rel=0.1) for ratio in told)


def test_slow_card_is_slow_on_its_best_link(tmp_path):
    """All links of one card are slow: the card is, and no neighbour's card."""
    facts, _ = facts_of(replace(TRAFFIC, faults=(Fault("slow_card", 3, 3.0),)), tmp_path)
    assert facts.value("link.bandwidth_ratio", Subject("link", "3-*", (3,))) < 0.4
    assert all(f.value > 0.9 for s, f in facts.of("link.bandwidth_ratio").items() if "*" in s.id and s.ranks != (3,))


def test_a_slow_card_costs_as_much_where_only_the_matrix_tells_of_links(tmp_path):
    """Without communication.json the replay knows no collective that uses the links: which is no gain of 0."""
    facts, _ = facts_of(replace(TRAFFIC, faults=(Fault("slow_card", 3, 3.0),)), tmp_path)
    for file in tmp_path.rglob("communication.json"):
        file.unlink()
    reduced = measure([tmp_path], None, Options(jobs=1)).facts
    card = Subject("link", "3-*", (3,))
    assert reduced.value("link.saving_us", card) == pytest.approx(facts.value("link.saving_us", card), rel=0.5)


@pytest.mark.parametrize("metadata", [True, False])
def test_card_slow_in_what_it_sends_is_one_card(tmp_path, metadata):
    """Every link out of rank 1 is slow, those into it are not: one card with its direction, no pair of its own, and the
    joint gain, also where only outgoing links and no metadata tell who is who."""
    scenario = replace(
        TRAFFIC, faults=(Fault("slow_sending", 1, 3.0),), metadata=metadata, local_copies=False, kernels=metadata
    )
    facts, run = facts_of(scenario, tmp_path)
    card = Subject("link", "1-*", (1,))
    assert facts.value("link.direction", card) == "outgoing"
    assert facts.value("link.bandwidth_ratio", card) == pytest.approx(0.25, rel=0.1)
    assert facts.value("link.card_ratio", Subject("link", "1-2", (1, 2))) < 0.3
    assert facts.value("link.card_ratio", Subject("link", "2-3", (2, 3))) > 0.9
    gained = simulate(scenario).step_us - simulate(replace(scenario, faults=())).step_us
    assert facts.value("link.saving_us", card) == pytest.approx(gained, rel=0.2)
    assert not run.profile.ranks[0].problems


STAGES = replace(
    TRAFFIC, data=1, tensor=4, pipeline=2, micro_batches=4, layers=2, activation_mb=16.0, gradient_mb_per_layer=1.0
)


@pytest.mark.parametrize(
    ("scenario", "pairs"),
    [
        pytest.param(STAGES, [*combinations(range(4, 8), 2)], id="all links of a stage"),
        pytest.param(STAGES, [(0, 1), (0, 2), (1, 2)], id="all links between three ranks"),
        pytest.param(TRAFFIC, [(0, 1), (0, 2)], id="two links of a card that has others"),
        pytest.param(replace(TRAFFIC, data=8), [(1, 5), (5, 6), (6, 2)], id="a chain of links"),
    ],
)
@given(factor=st.floats(1.5, 6.0), seed=st.integers(1, 99))
@settings(max_examples=2)
def test_slow_links_that_share_ranks_are_one_culprit(tmp_path_factory, scenario, pairs, factor, seed):
    """However many of the links are slow and however slow: one finding, about the ranks they join, that promises what
    the step gains once all of them are repaired; none of the links and no card is accused by itself."""
    healthy = replace(scenario, seed=seed)
    slow = replace(healthy, faults=tuple(Fault("slow_link", pair, factor) for pair in pairs))
    folder = tmp_path_factory.mktemp("links")
    write_profile(simulate(slow), folder)
    findings = advise([folder], load_rules(), Options(jobs=1)).findings
    found = [f for f in findings if f.verdict == "slow-link"]
    assert [f.subject.ranks for f in found] == [tuple(sorted({rank for pair in pairs for rank in pair}))]
    gained = simulate(slow).step_us - simulate(healthy).step_us
    assert found[0].saving.us == pytest.approx(gained, rel=0.2)


@pytest.mark.parametrize(
    ("faults", "ranks"),
    [
        pytest.param([("slow_link", (1, 2)), ("slow_link", (5, 6))], (1, 2, 5, 6), id="two links"),
        pytest.param([("slow_card", 2), ("slow_link", (5, 6))], (2, 5, 6), id="a card and a link"),
        pytest.param([("slow_link", pair) for pair in ((0, 3), (1, 2), (4, 7))], (0, 1, 2, 3, 4, 7), id="three links"),
    ],
)
@given(factor=st.floats(2.0, 6.0), seed=st.integers(1, 99))
@settings(max_examples=2)
def test_slow_links_that_hide_each_other_are_promised_together(tmp_path_factory, faults, ranks, factor, seed):
    """A collective waits for its slowest link: links that share no rank are one finding with what all of them give."""
    healthy = replace(TRAFFIC, data=8, seed=seed)
    slow = replace(healthy, faults=tuple(Fault(kind, where, factor) for kind, where in faults))
    folder = tmp_path_factory.mktemp("links")
    write_profile(simulate(slow), folder)
    found = [f for f in advise([folder], load_rules(), Options(jobs=1)).findings if f.verdict == "slow-link"]
    assert [f.subject.ranks for f in found] == [ranks]
    gained = simulate(slow).step_us - simulate(healthy).step_us
    assert found[0].saving.us == pytest.approx(gained, rel=0.2)
    assert "must be repaired together" in found[0].message.en


def test_a_slow_link_that_gives_all_by_itself_stays_alone(tmp_path):
    """A slightly slow link beside a very slow one is no part of what repairing the latter gives."""
    healthy = replace(TRAFFIC, data=8)
    slow = replace(healthy, faults=(Fault("slow_link", (1, 2), 6.0), Fault("slow_link", (5, 6), 0.5)))
    write_profile(simulate(slow), tmp_path)
    found = [f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.verdict == "slow-link"]
    assert found[0].subject.ranks == (1, 2)
    alone = simulate(slow).step_us - simulate(replace(healthy, faults=slow.faults[1:])).step_us
    assert found[0].saving.us == pytest.approx(alone, rel=0.2)


@pytest.mark.parametrize("rate", [3.0, 6.0, 14.0])
@pytest.mark.parametrize("scenario", [TRAFFIC, replace(STAGES, pipeline=1)])
def test_links_that_are_all_slow_are_told_by_what_such_links_carry(tmp_path, scenario, rate):
    """Below half of what HCCS carries all links are slow, none by itself, and the promise is the step with links of
    that speed; near it nobody is accused. What bytes need at that speed is unavoidable, and no microsecond more."""
    recorded = replace(scenario, hccs_gb_s=rate)
    write_profile(simulate(recorded), tmp_path)
    measured = measure([tmp_path], None, Options(jobs=1))
    report = judge_saved(measured, load_rules())
    found = [f for f in report.findings if f.verdict == "slow-link"]
    assert [(f.id, f.subject.ranks) for f in found] == [("F1", (0, 1, 2, 3))] * (rate < 9)
    if found:
        usual = simulate(replace(scenario, hccs_gb_s=link_limit("HCCS") / 1e9)).step_us
        assert found[0].saving.us == pytest.approx(simulate(recorded).step_us - usual, rel=0.2)
    counts, sizes = measured.facts.of("collective.count"), measured.facts.of("collective.size_bytes")
    moved = sum(counts[subject].value * sizes[subject].value for subject in sizes)
    assert measured.facts.number("account.transfer_us", RUN) <= moved / link_limit("HCCS") * 1e6


def test_one_pair_alone_between_two_hosts_is_told_by_its_ranks(tmp_path):
    """Whoever mends the network must not search the cards that send nothing over it."""
    stages = replace(STAGES, tensor=1, pipeline=4, ranks_per_host=2, rdma_gb_s=1.0)
    write_profile(simulate(stages), tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    found = [f for f in report.findings if f.verdict == "slow-link"]
    assert [(f.subject.id, f.subject.ranks) for f in found] == [("1-2", (1, 2))]
    assert found[0].message.en.startswith("Ranks 1 and 2 are the only ones with large messages over RDMA")


def test_metadata_with_other_names_than_the_links_hides_no_slow_link(tmp_path):
    """Metadata name a group in one way and the links in another: then all files together tell who its members are."""
    write_profile(simulate(replace(PIPELINE, faults=(Fault("slow_link", (1, 3), 20.0),))), tmp_path)
    for file in tmp_path.rglob("profiler_metadata.json"):
        groups = json.loads(file.read_text())["parallel_group_info"]
        file.write_text(json.dumps({"parallel_group_info": {f"of_{name}": one for name, one in groups.items()}}))
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert [f.subject.id for f in report.findings if f.verdict == "slow-link"] == ["1-3"]


def test_queued_gradients_get_ready_evenly(tmp_path):
    """Behind a slow link the buckets queue, and their starts no longer tell when they were ready: without the link they
    start as backward goes, not all at its end."""
    ring = replace(TRAFFIC, layers=8, buckets=8, ranks_per_host=2, seed=4)
    slow = replace(ring, faults=(Fault("slow_link", (1, 2), 4.0),))
    facts, _ = facts_of(slow, tmp_path)
    found = max(
        facts.value("link.saving_us", subject)
        for subject, fact in facts.of("link.bandwidth_ratio").items()
        if subject.ranks == (1, 2) and fact.value < 0.5
    )
    assert found == pytest.approx(simulate(slow).step_us - simulate(ring).step_us, rel=0.1)


def test_links_of_a_collective_are_put_together_in_four_ways():
    """Side by side or one after another, on the card and between transports; the slowest card counts."""
    loads = {(0, 1, "HCCS"): 4.0, (0, 2, "HCCS"): 6.0, (1, 2, "HCCS"): 7.0, (1, 9, "RDMA"): 12.0}
    alone, shared = {"HCCS": False, "RDMA": False}, {"HCCS": True, "RDMA": False}
    found = [put_together(loads, way, one_by_one) for way in (alone, shared) for one_by_one in (False, True)]
    assert found == [12.0, 19.0, 12.0, 22.0]


def test_of_large_messages_the_whole_transfer_tells_how_links_are_put_together(tmp_path):
    """Transit holds the longest link of a rank: phases that wait for one another are more than that. What small
    messages last beyond it is their start-up."""
    _, run = facts_of(TRAFFIC, tmp_path)
    sent = {name: sum(one.bytes for one in links.values()) for name, links in loads_by_kind(run).items()}
    assert sent and not _moving(run, dict.fromkeys(sent, 1e12))
    assert _moving(run, dict.fromkeys(sent, 1.0)).keys() == sent.keys()


def test_small_messages_do_not_look_slow(tmp_path):
    """Messages of different sizes on equal links get ratios near 1: latency is not bandwidth."""
    facts, _ = facts_of(replace(TRAFFIC, tensor=2, activation_mb=0.05), tmp_path)
    assert all(f.value > 0.8 for f in facts.of("link.bandwidth_ratio").values())


def test_hosts_without_names_are_told_by_their_inner_links():
    """Ranks that HCCS joins are of one host, also where no folder is named after one; RDMA joins none."""
    keys = [(0, 1, "HCCS"), (2, 1, "HCCS"), (4, 5, "HCCS"), (2, 4, "RDMA")]
    hosts = hosts_of({}, keys)
    assert hosts == {0: "host-of-0", 1: "host-of-0", 2: "host-of-0", 4: "host-of-4", 5: "host-of-4"}


def test_links_of_older_files_are_judged(tmp_path):
    """hccl_raw_*.csv names links by global ranks: the slow pair is found, and bounded by the tail behind backward."""
    for rank in range(4):
        others = {
            f"{o}-{rank}": {"SDMA": [20.0 if {o, rank} == {1, 2} else 1.0, 16000.0, 0.0]} for o in range(4) if o != rank
        }
        cost, wait = (20, 0) if rank in (1, 2) else (1, 19)
        operations = [{"s_0_AllReduce-op1": [str(step), cost, wait, others]} for step in (1, 2, 3)]
        rows = [
            [str(step), str(cost), str(wait), json.dumps(others), json.dumps(operation)]
            for step, operation in enumerate(operations, 1)
        ]
        with (tmp_path / f"hccl_raw_{rank}.csv").open("w", newline="") as file:
            head = ["step_num", "communication_cost", "wait_cost", "link_info", "communication_operator_cost"]
            csv.writer(file).writerows([head, *rows])
        steps = [
            f"{n},{s},{s + 4000000},4000000,{s},{s + 2000000},0,2000000,2000000"
            for n, s in ((1, 0), (2, 4000000), (3, 8000000))
        ]
        head = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
        (tmp_path / f"step_trace_raw_{rank}_detail_time.csv").write_text("\n".join([head, *steps]) + "\n")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    pair = Subject("link", "1-2", (1, 2))
    assert facts.value("link.bandwidth_ratio", pair) == pytest.approx(0.05)
    assert facts.value("link.saving_us", pair) == pytest.approx(0.95 * 20000)
    assert facts.value("link.bandwidth_ratio", Subject("link", "0-3", (0, 3))) == pytest.approx(1)


def _between_hosts(slow):
    """Links of a card with its counterpart on each other host, three hosts of two cards; those in `slow` at 15 %."""
    hosts = {rank: f"node{rank // 2}" for rank in range(6)}
    found = {}
    for a in hosts:
        for b in hosts:
            if a != b and a % 2 == b % 2:
                found[a, b, "RDMA"] = Link(a, b, "RDMA", ratio=0.15 if slow(hosts[a], hosts[b]) else 1.0)
    return found, hosts


def test_a_host_slow_in_what_it_sends_is_one_host():
    """All its cards send slowly and receive as others do: the host with its direction, no card and no other host."""
    found, hosts = _between_hosts(lambda a, b: a == "node1")
    machines = machines_of(found, hosts)
    assert (machines["node1"].best, machines["node1"].direction, machines["node1"].ranks) == (0.15, "outgoing", (2, 3))
    assert all(link.source in (2, 3) for link in machines["node1"].links)
    assert all(machines[name].best == 1.0 for name in ("node0", "node2"))


def test_of_two_hosts_the_sender_is_slow():
    """What one host alone sends to the other is the same set of links seen from both: it is told of the sender."""
    found, hosts = _between_hosts(lambda a, b: a == "node1")
    pair = {key: link for key, link in found.items() if "node2" not in (hosts[key[0]], hosts[key[1]])}
    machines = machines_of(pair, hosts)
    assert machines["node1"].direction == "outgoing" and machines["node1"].best == 0.15
    assert machines["node0"].best == 1.0


@pytest.mark.parametrize("count", [3, 4, 6])
@pytest.mark.parametrize("ways", [("sends",), ("sends", "receives")])
def test_in_a_ring_of_hosts_the_slow_one_explains_what_its_neighbours_exchange_with_it(count, ways):
    """The host before it sends to nobody else, the one after it receives from nobody else: neither is slow, nor is any
    of their cards; and where the slow host only sends slowly, it is so itself."""
    hosts = {rank: f"node{rank // 4}" for rank in range(4 * count)}
    found = {}
    for a in hosts:
        b = (a + 4) % (4 * count)
        slow = (hosts[a] == "node1" and "sends" in ways) or (hosts[b] == "node1" and "receives" in ways)
        found[a, b, "RDMA"] = Link(a, b, "RDMA", ratio=0.125 if slow else 1.0)
        beside = a - a % 4 + (a + 1) % 4
        found[a, beside, "HCCS"] = Link(a, beside, "HCCS", ratio=1.0)
    machines = machines_of(found, hosts)
    told = {name: machine.direction for name, machine in machines.items() if machine.best < 0.7}
    assert told == {"node1": "both" if len(ways) > 1 else "outgoing"}
    slow_cards = [rank for rank, card in cards_of(found, machines, hosts).items() if card.best < 0.7]
    assert {hosts[rank] for rank in slow_cards} == {"node1"}


def test_a_host_slow_both_ways_has_no_direction():
    """Where no link of the host is nearer to the usual, all of them stand together."""
    found, hosts = _between_hosts(lambda a, b: "node1" in (a, b))
    machines = machines_of(found, hosts)
    assert (machines["node1"].best, machines["node1"].direction) == (0.15, "both")
    assert all(machines[name].best == 1.0 for name in ("node0", "node2"))


def test_links_of_one_card_move_their_data_at_once():
    """Eight cards of a host have seven links each inside it and one to the next host: what that one takes is what the
    transfer takes, however many short ones are beside it."""
    inside = {(a, b, "HCCS"): 3.0 for a in range(8) for b in range(8) if a != b}
    between = {(a, a + 8, "RDMA"): 15.0 for a in range(8)}
    links = {key: Link(*key, bytes=1e7, us=us, sizes=[1e7], times=[us]) for key, us in {**inside, **between}.items()}
    told = {fact.name: fact.value for fact in _main_transport(links)}
    assert told["communication.main_transport"] == "RDMA"
    assert told["communication.main_transport_share"] == pytest.approx(15 / 18)


@pytest.mark.parametrize(("pair", "cables"), [((0, 1), False), ((3, 4), True)])
def test_only_links_between_hosts_have_cables(tmp_path, pair, cables):
    """Whoever looks for an optical module inside a host looks in vain: its links are on the board."""
    wide = replace(TRAFFIC, data=8, ranks_per_host=4, faults=(Fault("slow_link", pair, 4.0),))
    write_profile(simulate(wide), tmp_path)
    (slow,) = [found for found in advise([tmp_path], load_rules()).findings if found.rule == "COMM040"]
    assert set(slow.subject.ranks) == set(pair)
    assert [("optical" in remedy.action.en and "without" not in remedy.action.en) for remedy in slow.remedies] == [
        cables
    ]


NOW_AND_THEN = replace(TRAFFIC, gradient_mb_per_layer=60.0, steps=10)


@pytest.mark.parametrize(
    ("fault", "per_host", "told"),
    [
        (Fault("slow_link", (1, 2), 6.0, 0.3), 8, ("1-2", "2-1")),
        (Fault("slow_card", 3, 5.0, 0.2), 2, ("3-*",)),
        (Fault("slow_card", 3, 5.0, 0.4), 2, ("3-*",)),
    ],
)
def test_a_link_that_is_slow_now_and_then_is_told_so_with_what_it_costs(tmp_path, fault, per_host, told):
    """Retransmissions hit a part of its transfers: as a rule they are as fast as those of others, and the sums are not.
    The step without them is what was promised, within a fifth."""
    sick = replace(NOW_AND_THEN, ranks_per_host=per_host, faults=(fault,))
    facts, _ = facts_of(sick, tmp_path / "sick")
    well, _ = facts_of(replace(sick, faults=()), tmp_path / "well")
    lost = facts.number("step.time_us", RUN) - well.number("step.time_us", RUN)
    found = [f for f in advise([tmp_path / "sick"], load_rules()).findings if f.verdict == "slow-link"]
    assert [f.subject.id in told for f in found] == [True]
    assert found[0].saving.us_per_step == pytest.approx(lost, rel=0.2)
    slow, made = (facts.number(f"link.{name}", found[0].subject) for name in ("slow_transfers", "transfer_count"))
    assert 3 <= slow < made and f"{slow:.0f} of its {made:.0f} transfers" in found[0].message.en
    assert not any(f.verdict == "slow-link" for f in advise([tmp_path / "well"], load_rules()).findings)


def test_one_slow_transfer_is_no_slow_link():
    """A connection that opens takes a second once: an event, and nothing to repair."""
    peers = [Link(a, b, "RDMA", 20e6, 2000.0, [1e6] * 20, [100.0] * 20) for a, b in ((0, 1), (1, 0), (0, 2), (2, 0))]
    peers[0].times[0] += 1e6
    peers[0].us += 1e6
    _compare(peers)
    assert peers[0].ratio == pytest.approx(1.0) and peers[0].slow_count == 0
    peers[1].times[:5] = [900.0] * 5
    peers[1].us += 5 * 800.0
    _compare(peers)
    assert peers[1].slow_count == 5
    assert peers[1].ratio == pytest.approx(2000 / 6000)  # Σ size ÷ Σ time against that of the others


@given(st.integers(2, 6), st.floats(0.05, 0.6), st.integers(1, 12))
def test_messages_of_no_size_do_not_make_a_slow_link_slow_now_and_then(ranks, ratio, tiny):
    """The norm of the gradients travels in a few bytes beside the gradients: it takes its start, also over a slow
    link, which is slow in every transfer that tells."""
    peers = []
    for rank in range(ranks + 1):
        big = 11_000.0 / (ratio if rank == 0 else 1.0)
        peers.append(
            Link(rank, rank + 1, "HCCS", 6 * 200e6 + tiny * 250.0, 6 * big + tiny * 2.5,
                 [200e6] * 6 + [250.0] * tiny, [big] * 6 + [2.5] * tiny)
        )  # fmt: skip
    _compare(peers)
    assert peers[0].slow_count == 0
    assert peers[0].ratio == pytest.approx(ratio, rel=0.05)
    assert all(other.ratio > 0.9 for other in peers[1:])


@pytest.mark.parametrize(("sizes", "packet"), [((171e3, 171e3), 57e3), ((171e3, 160e6), 20e6)])
def test_what_no_operation_is_large_enough_for_is_a_sum_of_small_messages(sizes, packet):
    """A matrix that lists 280 messages as one of 16 MB shows their start-up, not what a link carries."""
    file = SimpleNamespace(packet_bytes=np.array([57e3, 20e6 if sizes[1] > 1e6 else 57e3]), size_bytes=np.array(sizes))
    assert _packet_bytes(SimpleNamespace(each=lambda _: {0: file, 1: file})) == pytest.approx(packet)
