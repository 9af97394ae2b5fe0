"""Real profiles with known answers: what is known is said, and the contrary is not.

The corpus is not part of the project; ADVISOR_CORPUS names its folder, without it these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.model import Confidence, Role, Severity
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from tests.helpers.texts import faults_in

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")


@dataclass(frozen=True)
class Known:
    """What is known of a case. `roots` and `present` are (verdict, subject id or None for any)."""

    roots: tuple[tuple[str, str | None], ...] = ()
    present: tuple[tuple[str, str | None], ...] = ()
    absent: tuple[str, ...] = ()
    """Verdicts that must not be reached at medium severity or above."""
    direction: str | None = None
    confidence: str | None = None
    """Highest confidence the first root cause may have."""
    quiet: bool = False
    """Nothing of medium severity or above."""


def bottleneck(operation: str, **more) -> Known:
    return Known(roots=(("data-processing-bottleneck", operation),), direction="scheduling", **more)


DDP = Known(
    roots=(("waiting-on-slow-rank", None),),
    present=(("exposed-communication", None),),
    absent=("slow-link", "slow-compute-rank", "small-packets"),
    direction="communication",
)

CASES: dict[str, Known] = {
    "mindinsight-cluster_propose_pp2_4rank": Known(
        roots=(("stage-imbalance", "1"),),
        absent=("slow-link", "sharding-redistribution", "data-starved-rank"),
        direction="computation",
    ),
    "mindinsight-run2_alexnet_data_starved": Known(
        roots=(("data-processing-bottleneck", None),), direction="scheduling", confidence="low"
    ),
    "mindinsight-run1_lenet_operators": Known(present=(("float32-heavy", "MatMul"),)),
    "mindinsight-step_trace_interval_bound": Known(direction="scheduling", absent=("slow-compute-rank",)),
    "mindinsight-oracle_mindspore_bottleneck/A_map_cpu_bound": bottleneck("Map(2)"),
    "mindinsight-oracle_mindspore_bottleneck/B_reader_io_bound": bottleneck("ImageFolder(3)"),
    "mindinsight-oracle_mindspore_bottleneck/C_healthy": Known(quiet=True),
    "mindinsight-oracle_mindspore_bottleneck/D_overprovisioned_map": Known(quiet=True),
    "mindinsight-oracle_mindspore_bottleneck/F_generator_python_bound": bottleneck("Generator(3)"),
    "mindspore-healthy": Known(quiet=True, direction="undetermined"),
    "mindspore-compute_bound": Known(quiet=True, direction="undetermined"),
    "mindspore-gen_slow_io": bottleneck("Generator(2)"),
    "mindspore-gen_iterable": bottleneck("Generator(1)"),
    "mindspore-map_py_slow_io": bottleneck("Map(1)"),
    "mindspore-map_py_gil_threads": bottleneck("Map(1)"),
    "mindspore-map_cpp_decode": bottleneck("Map(2)"),
    "mindspore-batch_per_batch_map": bottleneck("Batch(0)"),
    "mindspore-over_parallel_cpp": bottleneck("Map(2)"),
    "mindspore-sink_probe": bottleneck("Map(3)"),
    "mindspore-user_code_between": Known(roots=(("user-code-feeding-slow", None),), direction="scheduling"),
    "pt-text-ddp-alexnet-level1": DDP,
    "pt-db-ddp-alexnet-level1": DDP,
    "msinsight-cluster-output": Known(present=(("pipeline-bubble", "1"),), absent=("slow-compute-rank",)),
    "real-pt-mlp-5steps": Known(roots=(("host-dispatch-bound", "run"),), direction="scheduling"),
    "real-pt-moe-rank0-cut": Known(
        roots=(("host-dispatch-bound", "run"),), absent=("conversion-overhead",), direction="scheduling"
    ),
    "real-pt-trace-only": Known(roots=(("host-dispatch-bound", "run"),), direction="scheduling"),
    "real-msprof-first-launch": Known(
        roots=(("operator-hotspot", "matmul_kernel"),),
        absent=("device-idle-gaps", "memory-pressure"),
        direction="computation",
    ),
    "real-msprof-rows-cut": Known(
        roots=(("operator-hotspot", "matmul_kernel"),), absent=("device-idle-gaps",), direction="computation"
    ),
    "mstt-kernel-hccl-2023": Known(present=(("aicpu-operators", "Cast"),)),
}


@pytest.fixture(scope="module")
def rules():
    return load_rules()


def folders():
    return sorted(path.name for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []


@pytest.mark.parametrize("name", folders())
def test_every_profile_is_judged_in_seconds_without_a_defect(name, rules):
    """Whatever is in a real folder, rules are judged or say what they lack."""
    start = time.perf_counter()
    report = advise([CORPUS / name], rules)
    assert time.perf_counter() - start < 30
    assert [c for c in report.checked if c.outcome.value == "error"] == []
    assert not [p for p in report.problems if "could not be measured" in p.problem or "incomplete:" in p.problem]
    assert faults_in(report, rules) == []
    assert set(report.summary.breakdown) <= {"computing", "exposed_communication", "idle"}
    assert not (report.summary.breakdown and report.summary.host_breakdown)


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_is_said_and_the_contrary_is_not(name, rules):
    """Root cause, direction and certainty of every case whose answer is known."""
    known, report = CASES[name], advise([CORPUS / name], rules)
    said = {(f.verdict, f.subject.id): f for f in report.findings}
    told = [(f.role.value, f.severity.value, f.verdict, f.subject.id) for f in report.findings]

    def has(verdict, subject, role=None):
        return any(
            v == verdict and subject in (None, s) and (role is None or f.role == role) for (v, s), f in said.items()
        )

    assert all(has(v, s, Role.ROOT_CAUSE) for v, s in known.roots), told
    assert all(has(v, s) for v, s in known.present), told
    serious = [f for f in report.findings if f.severity.rank >= Severity.MEDIUM.rank]
    assert not [f.verdict for f in serious if f.verdict in known.absent], told
    if known.direction:
        assert report.summary.direction == known.direction, told
    if known.confidence:
        first = next(f for f in report.findings if f.role == Role.ROOT_CAUSE)
        assert first.confidence.rank <= Confidence(known.confidence).rank, told
    if known.quiet:
        assert serious == [], told


def test_waiting_for_the_lock_is_seen_without_a_pause_of_the_pipeline(tmp_path, rules):
    """The recording ends before the pipeline rests: the loop's wait for the lock hides in its own time."""
    folder = tmp_path / "gil"
    shutil.copytree(CORPUS / "mindspore-map_py_gil_threads", folder)
    (path,) = folder.rglob("dataset_iterator_profiling_0.txt")
    lines = [line for line in path.read_text().splitlines() if int(line.split()[2]) <= 215]
    path.chmod(0o644)
    path.write_text("\n".join(lines) + "\n")
    first = advise([folder], rules).findings[0]
    assert (first.verdict, first.subject.id, first.role) == ("data-processing-bottleneck", "Map(1)", Role.ROOT_CAUSE)
    assert 0.15 < first.saving.share_of_step < 0.5
