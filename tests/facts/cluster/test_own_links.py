"""A rank whose transfers take longer than its peers' for the same bytes has slow links, matrix or not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import SMALL
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.cluster.own_links import compare
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile

HEAVY = replace(SMALL, gradient_mb_per_layer=60.0, buckets=1)


def _without_matrix(scenario, folder):
    write_profile(simulate(scenario), folder)
    for file in folder.rglob("communication_matrix.json"):
        file.unlink()
    return folder


@given(st.integers(3, 9), st.integers(0, 8), st.floats(1.0, 9.0), st.floats(1e6, 1e9))
def test_who_takes_longer_is_told_by_how_much(ranks, odd, factor, size):
    """The others are as fast as each other."""
    odd %= ranks
    each = {rank: (size, 1000.0 * (factor if rank == odd else 1.0)) for rank in range(ranks)}
    found = compare({("1", "HCCS"): each})
    assert found[odd].usual_us / found[odd].own_us == pytest.approx(1 / factor)
    assert all(one.own_us <= one.usual_us * 1.001 for rank, one in found.items() if rank != odd)


def test_other_bytes_another_transport_and_a_pair_are_no_comparison():
    """A root moves more; the two ranks at the edges of their hosts use the network."""
    assert compare({("1", "HCCS"): {0: (3e6, 900.0), 1: (1e6, 300.0), 2: (1e6, 300.0)}}) == {}
    edges = {("1", "RDMA"): {7: (1e6, 900.0), 15: (1e6, 900.0)}}
    assert compare({("1", "HCCS"): dict.fromkeys(range(7), (1000000.0, 300.0)), **edges}).keys() == set(range(7))
    assert compare({("1", "HCCS"): {0: (1e6, 900.0), 1: (1e6, 300.0)}}) == {}


def test_a_healthy_run_without_its_matrix_has_links_of_one_speed(tmp_path):
    facts = measure([_without_matrix(HEAVY, tmp_path)], ["link.own_ratio"], Options(jobs=1)).facts
    assert all(fact.value > 0.9 for fact in facts.of("link.own_ratio").values())


def test_less_evidence_accuses_nobody_else(tmp_path):
    """With the matrix the card is found; without it the card is, or nobody."""
    scenario = replace(HEAVY, data=8, faults=(Fault("slow_card", 2, 4.0),))
    write_profile(simulate(scenario), tmp_path / "whole")
    bare = _without_matrix(scenario, tmp_path / "bare")
    told = [_slow(tmp_path / "whole"), _slow(bare)]
    assert told[0] == {"2-*"}
    assert told[1] <= {"2-*"}


def _slow(folder):
    findings = advise([folder], load_rules(), Options(jobs=1)).findings
    return {f.subject.id for f in findings if f.verdict == "slow-link"}


def test_collectives_alone_name_the_card_and_bound_what_it_costs(tmp_path):
    """No step table tells how much is hidden: the gain is at most what its transfers take longer."""
    scenario = replace(HEAVY, data=8, faults=(Fault("slow_card", 2, 4.0),))
    bare = _without_matrix(scenario, tmp_path)
    for file in [*bare.rglob("*.csv"), *bare.rglob("trace_view.json")]:
        file.unlink()
    (found,) = (f for f in advise([bare], load_rules(), Options(jobs=1)).findings if f.verdict == "slow-link")
    assert found.subject.id == "2-*" and found.severity.value == "medium" and found.confidence.value == "low"
    assert found.saving is not None and found.saving.kind == "upper_bound" and found.saving.us > 0
