"""Kernels and timelines of real profiles: what is known of them is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.facts.base import Measured
from advisor.facts.step.from_kernels import KERNEL_STEPS
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Subject
from advisor.pipeline import Options, measure

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")


def measured(case: str) -> Measured:
    return measure([CORPUS / case], None, Options(jobs=1))


def kind(name: str) -> Subject:
    return Subject("operator_type", name)


def test_recomputed_steps_agree_with_the_profilers_own() -> None:
    """Interval unions of the kernels against step_trace_time.csv of the same rank: within a microsecond."""
    result = measured("pt-text-ddp-alexnet-level1")
    assert result.run is not None
    told = result.run.each(STEPS)
    for rank, found in result.run.each(KERNEL_STEPS).items():
        times = told[rank]
        (step,) = found.steps
        assert step.computing_us == pytest.approx(times.phases["computing"][0], abs=1)
        assert step.exposed_us == pytest.approx(times.phases["exposed"][0], abs=1)
        assert step.idle_us == pytest.approx(times.phases["idle"][0], abs=1)


@pytest.mark.parametrize("case", ["pt-text-ddp-alexnet-level1", "pt-db-ddp-alexnet-level1"])
def test_text_and_database_tell_the_same(case: str) -> None:
    """57 TransData, an unfused SGD, a sixth of the kernels launched too late: in either export."""
    facts = measured(case).facts
    assert facts.value("operator_type.count", kind("TransData")) == 57
    assert facts.value("operator_type.compute_share", kind("TransData")) == pytest.approx(0.16, abs=0.01)
    assert facts.value("operators.update_fused", RUN) is False
    assert facts.value("operators.update_compute_share", RUN) == pytest.approx(0.25, abs=0.01)
    assert facts.value("dispatch.starved_share", RUN) == pytest.approx(0.2, abs=0.05)
    assert facts.value("host_api.single_op_count", RUN) == 19
    assert facts.value("timeline.idle_share", RUN) == pytest.approx(0.195, abs=0.01)


def test_one_broadcast_and_seven_casts_on_the_ai_cpu() -> None:
    """The long broadcast is no operator that computes, but what the device waits behind; the casts are found with the
    type that put them there."""
    facts = measured("mstt-kernel-hccl-2023").facts
    assert facts.value("operator.time_us", Subject("operator", "hcom_broadcast__445_0")) is None
    assert facts.value("timeline.longest_gap_before", RUN) == "hcom_broadcast__445_0"
    assert facts.value("operator_type.aicpu_us", kind("Cast")) == pytest.approx(785.18)
    assert facts.value("operator_type.aicpu_dtypes", kind("Cast")) == "UINT64"
    assert facts.value("operators.update_fused", RUN) is True


def test_hand_picked_rows_are_judged_by_operator_only() -> None:
    """Rows taken out of a profile tell nothing of steps or idle time."""
    result = measured("mstt-kernel-computeadvice-small")
    assert result.facts.value("timeline.idle_share", RUN) is None
    assert result.facts.value("operator_type.time_us", kind("MatMulV3")) == pytest.approx(4122.342)
    assert result.facts.value("operator_type.pipe", kind("FlashAttentionScore")) == "memory (read)"


def test_older_tables_give_the_shares_of_types() -> None:
    """aicore_intermediate: MatMul takes 57.6 %."""
    facts = measured("mindinsight-run1_lenet_operators").facts
    assert facts.value("operator_type.compute_share", kind("MatMul")) == pytest.approx(0.576, abs=0.02)


def test_waiting_in_the_data_queue_is_no_share_of_the_kernels() -> None:
    """InitData and GetNext on the AI CPU took 9.7 ms; MatMul's 89.47 % are of what computes, as the table says."""
    result = measured("mindinsight-run2_alexnet_data_starved")
    assert result.facts.value("operator_type.compute_share", kind("MatMul")) == pytest.approx(0.8947, abs=2e-3)
