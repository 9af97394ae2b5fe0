"""Matrices that hold nothing but sums: size over time needs no single operation, only how many there were."""

import json
import warnings
from dataclasses import replace

import pytest
from clusters import SMALL

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile


def keep_sums(folder):
    """Leaves of every matrix what it sums up over operations."""
    for file in folder.rglob("communication_matrix.json"):
        steps = json.loads(file.read_text())
        for kinds in steps.values():
            for kind, told in kinds.items():
                kinds[kind] = {name: links for name, links in told.items() if "-total@" in name}
        file.write_text(json.dumps(steps))


def slow_links_of(folder):
    """(ranks, promised microseconds) of what is said of links; a warning of numpy's is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        report = advise([folder], load_rules(), Options(jobs=1))
    return [(f.subject.ranks, f.saving and f.saving.us) for f in report.findings if f.verdict == "slow-link"]


@pytest.mark.parametrize(("where", "factor"), [((1, 2), 3.0), ((0, 3), 12.0), (3, 4.0)])
@pytest.mark.parametrize("size_mb", [12.0, 40.0])
def test_sums_tell_a_slow_link_as_single_operations_do(tmp_path, where, factor, size_mb):
    """The pair or the card is named, with what the full matrix promises."""
    fault = Fault("slow_link" if isinstance(where, tuple) else "slow_card", where, factor)
    write_profile(simulate(replace(SMALL, gradient_mb_per_layer=size_mb, faults=(fault,))), tmp_path)
    full = slow_links_of(tmp_path)
    assert [ranks for ranks, _ in full] == [where if isinstance(where, tuple) else (where,)]
    keep_sums(tmp_path)
    summed = slow_links_of(tmp_path)
    assert [ranks for ranks, _ in summed] == [ranks for ranks, _ in full]
    assert summed[0][1] == pytest.approx(full[0][1], rel=0.1)


@pytest.mark.parametrize(("tensor", "activation_mb"), [(1, 0.0), (2, 0.05), (2, 6.0)])
def test_sums_of_small_and_of_large_messages_accuse_nobody(tmp_path, tensor, activation_mb):
    """Links of many small messages beside links of a few large ones are as fast as these, start-up apart."""
    scenario = replace(SMALL, gradient_mb_per_layer=24.0, tensor=tensor, activation_mb=activation_mb)
    write_profile(simulate(scenario), tmp_path)
    keep_sums(tmp_path)
    assert slow_links_of(tmp_path) == []


def test_sums_of_nobody_knows_how_many_accuse_nobody(tmp_path):
    """Without communication.json a long sum may be of many small messages, unless the kernels tell how many."""
    write_profile(simulate(replace(SMALL, faults=(Fault("slow_link", (1, 2), 6.0),))), tmp_path)
    keep_sums(tmp_path)
    for file in tmp_path.rglob("communication.json"):
        file.unlink()
    assert [pair for pair, _ in slow_links_of(tmp_path)] == [(1, 2)]
    for name in ("kernel_details.csv", "trace_view.json"):
        for file in tmp_path.rglob(name):
            file.unlink()
    assert slow_links_of(tmp_path) == []
