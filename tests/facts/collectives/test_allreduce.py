"""The proposed split hides what backward can hide, and no more segments than pay."""

import json
import re
from dataclasses import replace

import pytest
from clusters import PIPELINE, SMALL, facts_of
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.judge import judge
from advisor.facts.collectives.accumulation import until_reduced
from advisor.facts.collectives.allreduce import exposed_after, exposed_promptly, propose_split
from advisor.model import RUN
from advisor.pipeline import Options, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault

WEIGHTS = st.integers(2, 500)
TIMES = st.floats(10, 1e5)


@given(WEIGHTS, TIMES, TIMES, st.floats(0, 500))
def test_split_is_valid_and_never_worse(weights, backward, transfer, latency):
    """Indices rise and end with the last weight; what stays exposed is not more than without a split."""
    split = propose_split(weights, backward, transfer, latency)
    if split is None:
        return
    assert list(split.indices) == sorted(set(split.indices))
    assert split.indices[-1] == weights
    assert split.exposed_us <= exposed_after((weights,), weights, backward, transfer, latency) + 1e-6
    assert split.exposed_us >= transfer * 0  # what is exposed is never negative


def test_resnet_50_of_the_documents():
    """160 weights, a tail of 6.15 ms: a few segments leave well under the documents' 4.20 ms for two by trial."""
    split = propose_split(160, 14_000, 6_150, 100)
    assert 2 <= len(split.indices) <= 4
    assert split.indices[-1] == 160
    assert 60 <= split.indices[0] <= 120
    assert exposed_after((85, 160), 160, 14_000, 6_150, 100) < 4_200
    assert split.exposed_us < exposed_after((85, 160), 160, 14_000, 6_150, 100)


def test_high_latency_asks_for_few_segments():
    """Where every segment costs much, splitting stops early."""
    split = propose_split(160, 14_000, 6_150, 5_000)
    assert split is None or len(split.indices) <= 2


def test_few_weights_are_split_too():
    """Four optimizer kernels and a long backward (several micro-batches): of two layers the last one's is left."""
    assert propose_split(4, 26_000, 2_800, 0).indices == (2, 4)


def test_the_gradients_of_one_layer_are_not_parted():
    """A matrix and its bias are ready together: no split hides the one behind the other."""
    split = propose_split(8, 21_000, 2_700, 0)
    assert all(index % 2 == 0 for index in split.indices)
    assert split.exposed_us >= 2_700 / 4


def test_one_size_tells_no_start_up(tmp_path):
    """A single AllReduce a step has one size: its start-up is unknown and not zero."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("unsplit_allreduce"),)), tmp_path)
    assert facts.value("allreduce.latency_us", RUN) is None


def test_unsplit_and_split_gradients(tmp_path):
    """One AllReduce after backward hides nothing; three segments hide most."""
    heavy = replace(SMALL, gradient_mb_per_layer=30.0)
    unsplit, _ = facts_of(replace(heavy, faults=(Fault("unsplit_allreduce"),)), tmp_path / "a")
    split, _ = facts_of(heavy, tmp_path / "b")
    assert unsplit.value("allreduce.count", RUN) == pytest.approx(1)
    assert unsplit.value("allreduce.hidden_share", RUN) < 0.1
    assert split.value("allreduce.hidden_share", RUN) > 0.5
    assert unsplit.value("allreduce.saving_us", RUN) > 0.4 * unsplit.value("allreduce.exposed_us", RUN)
    assert unsplit.value("allreduce.weight_count", RUN) == 6


def test_buffers_of_many_weights_are_no_weights(tmp_path):
    """An optimizer that lays its weights flat into a few buffers tells of no layers: more is gained than the halves of
    two could, and no split is proposed by their number."""
    heavy = replace(SMALL, gradient_mb_per_layer=80.0, faults=(Fault("unsplit_allreduce"),))
    by_weight, _ = facts_of(heavy, tmp_path)
    for table in tmp_path.rglob("kernel_details.csv"):
        lines = [
            re.sub(r'"+[\d,;]+"+', '"""1024;1024;1024"""', line) if "ApplyAdamW" in line else line
            for line in table.read_text().splitlines()
        ]
        table.write_text("\n".join([*lines, ""]))
    flat = measure([tmp_path], None, Options(jobs=1)).facts
    assert by_weight.value("allreduce.weight_count", RUN) == 6 and flat.value("allreduce.weight_count", RUN) is None
    assert flat.number("allreduce.saving_us", RUN) > by_weight.number("allreduce.saving_us", RUN)
    assert flat.value("allreduce.proposed_split", RUN) is None


def test_what_data_parallel_ranks_broadcast_is_no_gradient(tmp_path):
    """The last collective of each step, whose time nothing hides, is a broadcast: the sums before it expose next to
    nothing, and no split of them gains its time."""
    facts, _ = facts_of(replace(SMALL, gradient_mb_per_layer=30.0), tmp_path)
    exposed = facts.number("communication.exposed_transfer_us", RUN)
    assert facts.number("allreduce.exposed_us", RUN) == pytest.approx(exposed, rel=0.05)
    for file in (*tmp_path.rglob("*.csv"), *tmp_path.rglob("*.json")):
        last = re.sub(r"hcom_allReduce__(\d+)_(\d*[258]|11)_", r"hcom_broadcast__\1_\2_", file.read_text("utf-8"))
        file.write_text(last, "utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("communication.exposed_transfer_us", RUN) == pytest.approx(exposed, rel=0.05)
    assert facts.number("allreduce.exposed_us", RUN) < 0.2 * exposed


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_no_split_hides_more_than_backward_lasts(tmp_path, framework):
    """Gradients that take twice as long as the whole step computes: what a split promises is less than what is computed
    between the last forward pass and their reduction, and so is the most that it may come to."""
    scenario = replace(SMALL, framework=framework, gradient_mb_per_layer=700.0, faults=(Fault("unsplit_allreduce"),))
    facts, run = facts_of(scenario, tmp_path)
    backward = max(one.backward_us or 0.0 for one in until_reduced(run))
    told = {name: facts.value(f"allreduce.{name}_us", RUN) for name in ("exposed", "saving", "hideable")}
    assert 0 < backward < facts.value("step.computing_us", RUN) * 0.7 and told["exposed"] > backward
    assert 0.5 * backward < told["saving"] <= told["hideable"] <= backward
    report = judge(measure([tmp_path], None, Options(jobs=1)), load_rules())
    found = next(f for f in report.findings if f.rule == "COMM020")
    assert found.saving.range_us[1] <= backward * (1 + 1e-6)


def test_what_is_computed_behind_the_reduction_is_no_backward(tmp_path):
    """The update needs all gradients: where it is longer, backward is not."""
    facts, run = facts_of(replace(SMALL, faults=(Fault("unsplit_allreduce"),)), tmp_path)
    computed = max(one.computed_us for one in until_reduced(run))
    assert computed < facts.value("step.computing_us", RUN)
    assert facts.value("allreduce.backward_us", RUN) <= computed * 2 / 3 * (1 + 1e-6)


def test_kernels_without_the_compute_ones_show_no_overlap(tmp_path):
    """A rank that lost its compute kernels would seem to hide nothing: it is not said of the run."""
    facts_of(replace(SMALL, framework="pytorch"), tmp_path)
    table = min(tmp_path.rglob("kernel_details.csv"))
    heading, *rows = table.read_text().splitlines()
    table.write_text("\n".join([heading, *(row for row in rows if "hcom_" in row), ""]))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("allreduce.transfer_us", RUN) > 0
    assert facts.value("allreduce.exposed_share", RUN) is None


def test_collectives_of_ranks_without_steps_are_not_all_exposed(tmp_path):
    """Collectives alone do not tell what computation hides, and another rank's step is no measure of it."""
    facts_of(replace(SMALL, framework="pytorch"), tmp_path)
    first, *others = sorted(tmp_path.iterdir())
    for lost in (*first.rglob("communication*.json"), *(path for o in others for path in o.rglob("*.csv"))):
        lost.unlink()
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("allreduce.transfer_us", RUN) > 0
    assert facts.value("allreduce.exposed_share", RUN) is None


def test_a_collective_that_stands_there_twice_is_exposed_once(tmp_path):
    """Repeated rows are of the same time."""
    before, _ = facts_of(replace(SMALL, gradient_mb_per_layer=30.0, buckets=2), tmp_path)
    for table in tmp_path.rglob("kernel_details.csv"):
        heading, *rows = table.read_text().splitlines()
        table.write_text("\n".join([heading, *rows, *(row for row in rows if "hcom_" in row), ""]))
    after = measure([tmp_path], None, Options(jobs=1)).facts
    expected = before.value("allreduce.exposed_share", RUN)
    assert expected > 0 and after.value("allreduce.exposed_share", RUN) == pytest.approx(expected, rel=1e-4)


@given(WEIGHTS, TIMES, st.lists(TIMES, min_size=1, max_size=12), st.floats(0, 500))
def test_a_proposal_is_never_coarser_than_the_present_split_and_gains_on_it(weights, backward, present, latency):
    """Nobody is told to fuse six segments into two, or to change a split that gains nothing when it is in time."""
    split = propose_split(weights, backward, sum(present), latency, present)
    if split is not None:
        assert len(split.indices) >= len(present)
        assert split.exposed_us < exposed_promptly(present, backward)


def test_the_last_bucket_stays_exposed_however_long_backward_is():
    """Nothing is computed behind the gradients that are ready last."""
    assert exposed_promptly([500, 300, 200], 1e6) == pytest.approx(200)
    assert exposed_promptly([1000], 1e6) == pytest.approx(1000)
    assert exposed_promptly([500, 300, 200], 100) == pytest.approx(1000 - 50)  # starts with half of the gradients


LARGE = replace(SMALL, gradient_mb_per_layer=80.0, layers=6, reduced_behind=True)


@pytest.mark.parametrize("buckets", [2, 3, 6])
def test_buckets_that_are_all_reduced_behind_backward(tmp_path, buckets):
    """What is named first is that none starts in time; the step without that, at the present split, is what was
    promised. A finer split is named behind it where it gains more, and never a coarser one."""
    behind = replace(LARGE, buckets=buckets)
    facts, _ = facts_of(behind, tmp_path / "behind")
    in_time, _ = facts_of(replace(behind, reduced_behind=False), tmp_path / "in_time")
    truth = facts.number("step.time_us", RUN) - in_time.number("step.time_us", RUN)
    report = judge(measure([tmp_path / "behind"], None, Options(jobs=1)), load_rules())
    found = next(f for f in report.findings if f.rule == "COMM020")
    assert found.saving.us_per_step == pytest.approx(truth, rel=0.1)
    assert found.remedies[0].id == "reduce-as-ready"
    finer = [remedy for remedy in found.remedies if remedy.id == "split-allreduce"]
    assert [len(remedy.proposed) >= buckets for remedy in finer] == ([] if buckets == 6 else [True])
    kept = judge(measure([tmp_path / "in_time"], None, Options(jobs=1)), load_rules())
    assert not any(remedy.id == "reduce-as-ready" for f in kept.findings for remedy in f.remedies)


def test_one_bucket_is_split_first(tmp_path):
    """A single reduction cannot start before the last gradient is there: its size is the cause."""
    facts_of(replace(LARGE, buckets=1), tmp_path)
    report = judge(measure([tmp_path], None, Options(jobs=1)), load_rules())
    found = next(f for f in report.findings if f.rule == "COMM020")
    assert [remedy.id for remedy in found.remedies] == ["split-allreduce"]


def test_the_order_of_a_file_tells_nothing(tmp_path):
    """The buckets of a step are the same wherever in the file it stands."""
    told, _ = facts_of(replace(LARGE, buckets=3), tmp_path)
    for path in tmp_path.rglob("communication.json"):
        steps = json.loads(path.read_text())
        path.write_text(json.dumps(dict(reversed(steps.items()))))
    again = measure([tmp_path], None, Options(jobs=1)).facts
    assert told.number("allreduce.prompt_exposed_us", RUN) == again.number("allreduce.prompt_exposed_us", RUN)


@pytest.mark.parametrize("heavy", [0, 1])
def test_a_split_gains_what_it_gains_on_the_stage_that_is_done_last(tmp_path, heavy):
    """Stages reduce different amounts, at different times: the mean stage, or the one that hides most, is none of
    them (6 of 11 ms were promised where the first stage has more to reduce)."""
    uneven = replace(PIPELINE, gradient_mb_per_layer=60.0, layers=4, hccs_gb_s=30.0, framework="pytorch")
    uneven = replace(uneven, faults=(Fault("stage_imbalance", heavy, 0.5),))
    whole, _ = facts_of(replace(uneven, buckets=1), tmp_path / "whole")
    split, _ = facts_of(replace(uneven, buckets=6), tmp_path / "split")
    truth = whole.number("step.time_us", RUN) - split.number("step.time_us", RUN)
    assert whole.number("allreduce.saving_us", RUN) == pytest.approx(truth, rel=0.1)


def test_even_segments_leave_a_last_one_that_nobody_is_told_of(tmp_path):
    """The last segment stays exposed in every healthy run; only one that is many times the others is a setting."""
    facts, _ = facts_of(replace(LARGE, buckets=6, reduced_behind=False), tmp_path)
    assert facts.number("allreduce.last_us", RUN) == pytest.approx(facts.number("allreduce.transfer_us", RUN) / 6, 0.1)
    report = judge(measure([tmp_path], None, Options(jobs=1)), load_rules())
    assert "COMM095" not in {finding.rule for finding in report.findings}
