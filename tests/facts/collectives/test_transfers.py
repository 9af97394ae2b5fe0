"""Packets off the alignment, transfers beside matrix products, repeated transfers, core use and the environment."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.intervals import clip, measure, union
from advisor.facts.collectives.transfers import _covered, _ratio
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise
from advisor.pipeline import measure as measure_profile
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Scenario, simulate, write_profile


@pytest.fixture
def profile(tmp_path):
    write_profile(simulate(Scenario(data=2, seed=1)), tmp_path)
    return tmp_path


def facts_of(folder: Path):
    return measure_profile([folder], None, Options(jobs=1)).facts


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 60)), max_size=12),
    st.integers(0, 500),
    st.integers(1, 100),
)
def test_coverage_agrees_with_the_algebra_of_intervals(spans, begin, length):
    """The fast form over many transfers gives what clipping each would."""
    start = np.array([s for s, _ in spans], np.int64)
    busy = union(start, start + np.array([n for _, n in spans], np.int64)) if spans else (start, start)
    fast = _covered(busy, np.array([float(begin)]), np.array([float(begin + length)]))[0]
    assert fast == pytest.approx(measure(clip(busy, begin, begin + length)) / length)


def test_only_transfers_of_one_size_class_are_compared():
    """Small ones are slower by nature; that is no contention."""
    bandwidth = np.array([1.0, 1.0, 1.0, 10.0, 10.0, 10.0])
    classes = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    on = np.array([True] * 3 + [False] * 3)
    assert _ratio(bandwidth, np.ones(6), classes, on, ~on) == (0.0, None)
    time, ratio = _ratio(bandwidth, np.ones(6), np.ones(6), on, ~on)
    assert (time, ratio) == (3.0, pytest.approx(0.1))


def _packets(folder: Path, sizes: dict[str, list[float]]) -> None:
    for path in folder.rglob("communication.json"):
        document = json.loads(path.read_text())
        for step in document.values():
            for operations in step.values():
                for name, operation in operations.items():
                    if name != "Total Op Info":
                        for transport in operation["Communication Bandwidth Info"].values():
                            if transport.get("Size Distribution"):
                                transport["Size Distribution"] = sizes
        path.write_text(json.dumps(document))


def test_packets_off_the_alignment_are_set_against_aligned_ones(profile):
    """1.000001 MB is off the multiples of 512 bytes, 1.048576 MB is not; the first takes four times as long."""
    _packets(profile, {"1.048577": [4, 4.0], "1.048576": [4, 1.0]})
    facts = facts_of(profile)
    assert facts.value("transfer.unaligned_share", RUN) == pytest.approx(0.8)
    assert facts.value("transfer.unaligned_ratio", RUN) == pytest.approx(0.25, rel=0.01)


def test_without_aligned_packets_nothing_is_compared(profile):
    """The share alone says nothing about harm."""
    _packets(profile, {"1.048577": [4, 4.0]})
    facts = facts_of(profile)
    assert facts.value("transfer.unaligned_share", RUN) == pytest.approx(1.0)
    assert not facts.has("transfer.unaligned_ratio")


def _environment(folder: Path, **variables: str) -> None:
    for path in folder.rglob("profiler_metadata.json"):
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "ENV_VARIABLES": variables}))


def test_what_was_not_recorded_is_unknown_not_unset(profile):
    """A variable that is recorded as empty is unset; one that is not recorded may be anything."""
    assert not facts_of(profile).has("environment.launch_blocking")
    _environment(profile, ASCEND_LAUNCH_BLOCKING="1", ASCEND_GLOBAL_LOG_LEVEL="", HCCL_RDMA_TC="132", HCCL_ALGO="")
    facts = facts_of(profile)
    assert facts.value("environment.launch_blocking", RUN) is True
    assert facts.value("environment.protocol_variables", RUN) == ("HCCL_RDMA_TC=132",)
    assert not facts.has("environment.log_level") and not facts.has("environment.allocator_expandable")


@pytest.mark.parametrize("value", ["", "debug", "-1", "9" * 30, "1.5"])
def test_odd_values_of_variables_are_no_numbers(profile, value):
    """Whatever stands in the environment, no crash and no guess."""
    _environment(profile, ACLNN_CACHE_LIMIT=value)
    assert not facts_of(profile).has("environment.operator_cache_limit")


def test_cores_of_the_short_last_round_are_unused(profile):
    """The simulator's kernels have as many blocks as stated; the card's cores come from info.json, and without it those
    that most types use are no more than these."""
    matmul = Subject("operator_type", "MatMulV2")
    assert facts_of(profile).value("operator_type.core_idle_share", matmul) in (None, 0.0)
    for root in profile.glob("*_ascend_ms"):
        device = root / "PROF_000001_20260101000000000_ABC" / "device_0"
        device.mkdir(parents=True)
        (device / "info.json.0").write_text(json.dumps({"DeviceInfo": [{"ai_core_num": 1000, "aiv_num": 2000}]}))
    facts = facts_of(profile)
    blocks = facts.value("operator_type.blocks", matmul)
    assert facts.value("operator_type.core_idle_share", matmul) == pytest.approx(1 - blocks / 1000)


def test_longest_rdma_transfer_names_its_operation(tmp_path):
    """Two hosts: what went over the network is told per rank."""
    write_profile(simulate(Scenario(data=4, ranks_per_host=2, seed=1)), tmp_path)
    longest = facts_of(tmp_path).of("link.rdma_longest_us")
    assert longest and all(subject.id.endswith("-*") for subject in longest)


def test_how_fast_data_moves_is_told_without_a_matrix(profile):
    """Nearly every recording has communication.json, and few a matrix: both tell the same transport and its speed."""
    whole = facts_of(profile)
    for file in profile.rglob("communication_matrix*.json"):
        file.unlink()
    less = facts_of(profile)
    assert less.value("communication.main_transport", RUN) == whole.value("communication.main_transport", RUN) == "HCCS"
    speeds = [facts.number("communication.main_transport_bytes_per_s", RUN) for facts in (whole, less)]
    assert speeds[1] == pytest.approx(speeds[0], rel=0.5)


def test_links_that_have_no_other_beside_them_are_held_against_what_such_links_carry(tmp_path):
    """One rank of two hosts records a single link: nothing to compare it with, and a twelfth of what such a link
    carries is told."""
    write_profile(simulate(Scenario(data=2, seed=1)), tmp_path)
    for file in tmp_path.rglob("communication_matrix*.json"):
        told = json.loads(file.read_text())
        _slow(told, 12.0)
        file.write_text(json.dumps(told))
    for folder in [one for one in sorted(tmp_path.iterdir()) if one.is_dir()][1:]:
        shutil.rmtree(folder)
    facts = facts_of(tmp_path)
    assert any((facts.number("link.limit_ratio", subject) or 1) < 0.25 for subject in facts.subjects("link"))


def test_links_between_hosts_are_held_against_what_they_carry_beside_faster_ones_inside(tmp_path):
    """Stages on two hosts, whose links are all under a quarter of what such links carry; most data moves inside of the
    hosts."""
    scenario = Scenario(data=4, pipeline=2, micro_batches=2, layers=12, ranks_per_host=4, seed=1)
    write_profile(simulate(scenario), tmp_path)
    for file in tmp_path.rglob("communication_matrix*.json"):
        told = json.loads(file.read_text())
        _slow(told, 4.5, "RDMA")
        file.write_text(json.dumps(told))
    facts = facts_of(tmp_path)
    assert facts.value("communication.main_transport", RUN) == "HCCS"
    told = {facts.value("link.all_of", link): facts.number("link.limit_ratio", link) for link in facts.subjects("link")}
    assert (told["RDMA"] or 1) < 0.25 and "HCCS" not in told


def _slow(told, times, transport=None):
    for one in told.values() if isinstance(told, dict) else ():
        if isinstance(one, dict):
            if "Transit Time(ms)" in one and transport in (None, one["Transport Type"]):
                one["Transit Time(ms)"] *= times
            _slow(one, times, transport)


def test_more_bytes_that_take_no_time_accuse_nobody(profile):
    """A rank that moves three times the bytes of its peers is told where that takes time, and where it moves a few
    kilobytes of control messages more, no time is lost by it."""
    document = sorted(profile.rglob("communication.json"))[1]
    both, whole, told = r'("Transit Size\(MB\)": )([\d.]+)(, "Transit Time\(ms\)": )([\d.]+)', document.read_text(), []
    for longer in (2, 1):

        def more(match: re.Match[str], longer: int = longer) -> str:
            return f"{match[1]}{float(match[2]) * 3}{match[3]}{float(match[4]) * longer}"

        document.write_text(re.sub(both, more, whole))
        report = advise([profile], load_rules(), Options(jobs=1))
        told.append([f.subject.id for f in report.findings if f.rule == "COMM060"])
    assert told == [["1"], []]
