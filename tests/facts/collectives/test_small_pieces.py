"""Gradients in pieces so small that starting them costs more than it hides: fuse, never split."""

from dataclasses import replace

import pytest
from clusters import SMALL
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.collectives.allreduce import exposed_promptly, propose_fusion
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import simulate, write_profile

PIECES = st.lists(st.floats(20, 2_000), min_size=1, max_size=300)


@given(PIECES, st.floats(10, 1e5), st.floats(0, 20))
def test_fusing_gains_no_more_than_the_start_ups_that_go(pieces, backward, start_up):
    """Nor more than is exposed; and there are fewer buckets than before."""
    found = propose_fusion(pieces, backward, start_up)
    if found is None:
        return
    count, gain = found
    assert 1 <= count < len(pieces)
    assert 0 < gain <= (len(pieces) - count) * start_up + 1e-9
    assert gain <= exposed_promptly(pieces, backward) + 1e-9


@pytest.mark.parametrize("transfer", [400.0, 2_500.0, 9_000.0])
def test_few_large_buckets_are_not_fused_for_much(transfer):
    """Four buckets that backward hides but for the last one: a start-up of 20 us is all there is to gain, at most."""
    found = propose_fusion([transfer] * 4, 40_000.0, 20.0)
    assert found is None or found[1] <= 3 * 20.0


def _split(small, large, layers):
    """Buckets of so many layers in turn."""
    ends, at = [], 0
    while at < layers:
        at = min(at + (small if len(ends) % 2 else large), layers)
        ends.append(at)
    return tuple(ends)


def _pieces(layers, megabytes, kernel_us, small=1, large=2):
    """Gradients of one and of two layers in turn, or so many; backward is as long as the kernels."""
    return replace(
        SMALL, layers=layers, gradient_mb_per_layer=megabytes, kernel_us=kernel_us, launch_us=0.2,
        split=_split(small, large, layers),
    )  # fmt: skip


@pytest.mark.parametrize(("layers", "megabytes", "kernel_us"), [(96, 2.4, 3.0), (128, 1.8, 2.0)])
def test_many_small_pieces_are_to_be_fused(tmp_path, layers, megabytes, kernel_us):
    """The finding says so and promises about what fewer buckets give; nobody is told to split them."""
    recorded = simulate(_pieces(layers, megabytes, kernel_us))
    write_profile(recorded, tmp_path)
    findings = advise([tmp_path], load_rules(), Options(jobs=1)).findings
    found = [f for f in findings if f.verdict == "small-packets"]
    assert [f.subject.kind for f in found] == ["run"]
    eighth = layers // 8
    gained = recorded.step_us - simulate(_pieces(layers, megabytes, kernel_us, eighth, eighth)).step_us
    assert found[0].saving.us == pytest.approx(gained, rel=0.2)
    assert not {"split-allreduce", "overlap-communication"} & {r.id for f in findings for r in f.remedies}


@pytest.mark.parametrize(
    "well",
    [_pieces(160, 0.5, 14.0), _pieces(96, 2.4, 8.0), _pieces(96, 2.4, 3.0, 10, 14)],
    ids=["hidden", "just hidden", "large"],
)
def test_pieces_that_backward_hides_and_large_ones_are_left_alone(tmp_path, well):
    """However many there are: what nobody waits for costs nothing; and of large ones starting is a trifle."""
    write_profile(simulate(well), tmp_path)
    assert not any(f.verdict == "small-packets" for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings)
