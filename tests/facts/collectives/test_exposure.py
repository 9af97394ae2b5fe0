"""Whose exposed time it is, where kernels and collectives call one thing by different names."""

from dataclasses import replace

import pandas as pd
import pytest
from clusters import SMALL, facts_of

from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.exposure import _Alone, _measured
from advisor.model import RUN
from advisor.pipeline import Options, measure
from benchmarks.simulator import Fault


@pytest.mark.parametrize("name", ["Default/AllReduce-op534_0", "AllReduce-op534_0"])
def test_a_collective_named_by_its_path_keeps_its_role(name):
    """A path in the graph before a collective's name does not make it another one: its transfer is exposed."""
    kernels = {"Default/AllReduce-op534_0": 900.0}
    found = _measured(_Alone.of({0: kernels}), 0, {name: ("data", 700.0, 700.0)}, None)
    assert found.told
    assert dict(found.transfer) == {"data": 700.0}
    assert found.wait == pytest.approx(200.0)


def test_names_that_have_nothing_in_common_tell_nothing_hidden():
    """Where no exposed collective can be found in the collectives' own table, theirs is not taken for hidden."""
    kernels = {"hcom_broadcast__1_0": 900.0}
    assert not _measured(_Alone.of({0: kernels}), 0, {"AllReduce-op534_0": ("data", 700.0, 700.0)}, None).told


def test_waiting_is_told_where_kernels_have_no_names(tmp_path):
    """The collectives' own table tells that most of the exposed time is waiting for the slow rank."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),)), tmp_path)
    named = facts.number("communication.exposed_wait_share", RUN)
    for file in tmp_path.rglob("kernel_details.csv"):
        pd.read_csv(file, dtype=str).drop(columns="Name").to_csv(file, index=False)
    nameless = measure([tmp_path], None, Options(jobs=1)).facts.number("communication.exposed_wait_share", RUN)
    assert named is not None and named > 0.1
    assert nameless == pytest.approx(named, rel=0.3)


def test_what_is_exposed_is_told_alike_of_a_part_of_many_collectives(tmp_path, monkeypatch):
    """Of more collectives than are kept every second is looked at; kernels name all of them. Where each has
    a name of its own, those that are not kept wait and move data as those of their communicator do."""
    layers = replace(SMALL, data=2, tensor=2, layers=4, buckets=4, faults=(Fault("slow_compute", 2, 0.4),))
    facts_of(layers, tmp_path)
    shares = [f"communication.exposed_{part}_share" for part in ("wait", "transfer", "unknown")]
    whole = measure([tmp_path], None, Options(jobs=1)).facts
    monkeypatch.setattr("advisor.facts.collectives.exchanges.MOST_OPERATIONS", 60)
    part = measure([tmp_path], None, Options(jobs=1)).facts
    told, left = ([each.number(name, RUN) or 0.0 for name in shares] for each in (whole, part))
    assert told[0] > 0.1
    assert left == pytest.approx(told, abs=0.02)


def test_gradients_are_told_whole_where_many_others_are_thinned(tmp_path, monkeypatch):
    """A few reductions a step, each of its own size, stand beside thousands of sharded layers: which of them are kept
    must not decide what gradients move and how often they are reduced."""
    layers = replace(SMALL, data=2, tensor=2, layers=4, buckets=4)
    facts_of(layers, tmp_path)
    whole = measure([tmp_path], None, Options(jobs=1))
    monkeypatch.setattr("advisor.facts.collectives.exchanges.MOST_OPERATIONS", 60)
    part = measure([tmp_path], None, Options(jobs=1))
    for one, other in zip(*(each.run.each(EXCHANGES).values() for each in (whole, part)), strict=True):
        assert len(other.name) < len(one.name) and other.counts() == one.counts()
    names = [fact.name for fact in whole.facts if fact.name.startswith("allreduce.")]
    assert "allreduce.repeats" in names
    told = [[each.facts.value(name, RUN) for name in names] for each in (whole, part)]
    assert told[1] == pytest.approx(told[0], rel=0.05, abs=50)


def test_exposed_time_of_the_whole_recording_is_none_of_a_step(tmp_path):
    """Kernels without steps, beside a table that has them: what nothing hides is told by the collectives' own table."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),)), tmp_path)
    stepped = facts.number("communication.exposed_wait_share", RUN)
    for file in tmp_path.rglob("kernel_details.csv"):
        pd.read_csv(file, dtype=str).drop(columns="Step ID").to_csv(file, index=False)
    found = measure([tmp_path], None, Options(jobs=1)).facts
    assert found.number("communication.exposed_wait_share", RUN) == pytest.approx(stepped, rel=0.3)
    assert not found.doubted


def test_one_collective_that_takes_most_is_named(tmp_path):
    """The first thing an engineer sees in such a profile has its name, and is no longer than the rank's whole."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),)), tmp_path)
    longest, name = facts.number("communication.longest_us", RUN), facts.value("communication.longest_name", RUN)
    shares = [facts.number("step.exposed_communication_us", subject) for subject in facts.subjects("rank")]
    assert longest is not None and 0 < longest <= max(share for share in shares if share is not None) * 1.01
    names = [subject.id for subject in facts.subjects("collective")]
    assert isinstance(name, str) and any(name.split("__")[0] == other.split("__")[0] for other in names)


def test_the_kind_that_takes_most_is_named_without_the_table_of_collectives(tmp_path):
    """At the lowest level there are kernels and no communication.json: names alone tell what is waited for."""
    facts_of(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),)), tmp_path)
    for file in tmp_path.rglob("communication*.json"):
        file.unlink()
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    exposed = max(facts.number("step.exposed_communication_us", subject) or 0.0 for subject in facts.subjects("rank"))
    kind, us = facts.value("communication.main_kind", RUN), facts.number("communication.main_kind_us", RUN)
    assert kind == "allreduce" and 0 < us <= exposed * 1.01


def test_ranks_whose_collectives_are_not_recorded_do_not_tell_what_is_transfer(tmp_path):
    """Step tables of all ranks beside the collectives of one: the time of the others may be waiting as well."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),)), tmp_path)
    told = facts.number("communication.exposed_transfer_share", RUN)
    for kept, ending in enumerate(("kernel_details.csv", "communication_matrix.json", "communication.json")):
        for file in sorted(tmp_path.rglob(ending))[kept // 2 :]:
            file.unlink()
    found = measure([tmp_path], None, Options(jobs=1)).facts
    moved = found.number("communication.exposed_transfer_share", RUN)
    assert told is not None and moved is not None and moved <= 1.3 * told
