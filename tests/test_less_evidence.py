"""Less evidence never looks better: what is taken away makes an answer undetermined, never healthy, and accuses nobody.

`python -m benchmarks.less_evidence` does the same at full size, over simulated runs of every fault and real profiles.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.less_evidence import Answer, answer, reduce_profile, violations
from benchmarks.mutants.cuts import CUTS
from benchmarks.mutants.profiles import write_databases, write_originals
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "slow-rank-pipeline"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Answer]]:
    """Intact profiles with what is said of them."""
    found = write_originals(tmp_path_factory.mktemp("originals"), corpus=False)
    chosen = {name: found[name] for name in ("ms", "ms-healthy", "pt", "db", "legacy")} | {"example": EXAMPLE}
    return {name: (folder, answer(folder)) for name, folder in chosen.items()}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(number=st.integers(0, 1 << 20))
def test_taking_evidence_away_clears_nothing_and_accuses_nobody(
    originals: dict[str, tuple[Path, Answer]], number: int
) -> None:
    """Ranks, files, tables, columns, rows, steps and members of files are taken away."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: path for name, (path, _) in originals.items()}
        reduced = reduce_profile(number, 7, paths, tuple(CUTS), Path(folder))
        assert not reduced.error, reduced
        if reduced.answer is not None:
            assert list(violations(originals[reduced.original][1], reduced.answer)) == [], str(reduced)


@pytest.mark.parametrize(
    ("kept", "blamed"),
    [
        (("node0_4000", "node0_4001"), True),
        (("node0_400", "node1_4002"), True),
        (("node0_4000", "node1_400"), False),
        (("node0_4000",), False),
    ],
)
def test_some_ranks_of_a_faulty_run_are_not_healthy(tmp_path: Path, kept: tuple[str, ...], blamed: bool) -> None:
    """The slow rank of the bundled example is named where its whole stage is at hand, whoever else is not; without it
    nobody at hand is to blame, and nobody is cleared."""
    for folder in EXAMPLE.iterdir():
        if folder.name.startswith(kept):
            (tmp_path / folder.name).symlink_to(folder)
    found = answer(tmp_path)
    assert found.direction != "healthy" and ("slow-compute-rank" in found.roots) == blamed


def test_a_step_table_alone_with_much_exposed_communication_is_not_healthy(tmp_path: Path) -> None:
    """One file of one rank of a pipeline: most of it may be the bubble, and nobody is cleared or blamed."""
    (source,) = EXAMPLE.glob("node0_4000*/ASCEND_PROFILER_OUTPUT/step_trace_time.csv")
    (tmp_path / "step_trace_time.csv").write_bytes(source.read_bytes())
    found = answer(tmp_path)
    assert found.direction in ("communication", "undetermined") and not found.roots


def test_the_law_can_be_broken() -> None:
    """A healthy rest of a faulty profile, and a verdict that the whole did not reach, are breaches."""
    whole = Answer("communication", frozenset({"slow-link"}), frozenset({"slow-link"}))
    better = Answer("healthy", frozenset(), frozenset())
    other = Answer("computation", frozenset({"conversion-overhead"}), frozenset({"conversion-overhead"}))
    assert [kind for kind, _ in violations(whole, better)] == ["healthy"]
    assert [kind for kind, _ in violations(whole, other)] == ["accusation"]
    assert list(violations(whole, Answer("undetermined", frozenset(), frozenset()))) == []


@pytest.mark.parametrize(
    ("verdict", "at_hand", "breaches"),
    [("slow-link", {0, 1}, 0), ("slow-link", {0, 3}, 0), ("slow-link", {0, 2, 3}, 1), ("idle-imbalance", {0, 3}, 1)],
)
def test_somebody_absent_may_be_named_late_where_the_blamed_are_absent(
    verdict: str, at_hand: set[int], breaches: int
) -> None:
    """Ranks whose links are slow come late to the collectives of the others; so does the absent end of such a link."""
    whole = Answer("communication", frozenset({verdict}), frozenset({verdict}), frozenset({2, 3}))
    late = frozenset({"waiting-on-slow-rank"})
    assert len(list(violations(whole, Answer("communication", late, late, at_hand=frozenset(at_hand))))) == breaches


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [(Fault("slow_link", (1, 2), 4.0), "slow-link"), (Fault("slow_compute", 2, 0.5), "slow-compute-rank")],
)
def test_simulated_databases_tell_what_the_text_files_tell(tmp_path: Path, fault: Fault, verdict: str) -> None:
    """Evidence is taken from both: an original whose fault shows in neither would prove nothing."""
    scenario = Scenario(data=4, steps=4, layers=2, framework="pytorch", gradient_mb_per_layer=30.0, faults=(fault,))
    run = simulate(scenario)
    write_databases(run, tmp_path / "databases")
    write_profile(run, tmp_path / "text")
    found = {name: answer(tmp_path / name).roots for name in ("databases", "text")}
    assert found["databases"] == found["text"] and verdict in found["text"]
