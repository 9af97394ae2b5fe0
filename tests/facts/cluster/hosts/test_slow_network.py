"""A host whose links to all others are slow is the culprit, whatever files tell of it."""

from __future__ import annotations

from pathlib import Path

from advisor.model import Finding
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.profiles import write_databases
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

SLOW = Scenario(data=8, ranks_per_host=2, layers=3, steps=4, framework="pytorch", gradient_mb_per_layer=60.0,
                metadata=False, faults=(Fault("slow_node_network", 2, 7.0),))  # fmt: skip


def _first(folder: Path) -> Finding:
    return advise([folder], load_rules(), Options(jobs=1)).findings[0]


def test_files_of_communication_alone_weigh_the_host(tmp_path: Path) -> None:
    """Without a step table nobody knows what computation hides: what its transfers take longer than others' weighs it,
    and none of its cards is accused in its place."""
    write_profile(simulate(SLOW), tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and "communication" not in path.name]:
        path.unlink()
    found = _first(tmp_path)
    assert found.verdict == "slow-link" and found.subject.ranks == (4, 5)
    assert found.severity.value == "critical"


def test_databases_number_the_members_of_groups_too(tmp_path: Path) -> None:
    """The links that leave a rank show its number in a group, in a database as in a file of text: all of the host's
    links are seen, not only those of the rank with the last number."""
    write_databases(simulate(SLOW), tmp_path)
    found = _first(tmp_path)
    assert found.verdict == "slow-link" and found.subject.ranks == (4, 5)
