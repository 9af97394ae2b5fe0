"""Which unit of a core is busiest, and whether the counters at hand can tell."""

from types import SimpleNamespace

import numpy as np
import pytest

from advisor.facts.device.pipes import main_units_counted
from advisor.sources.streams.kernel_blocks import PIPES

CUBE = ["mac_ratio", "scalar_ratio", "mte1_ratio", "mte2_ratio", "fixpipe_ratio"]
VECTOR = ["vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio"]


@pytest.mark.parametrize("lost", [None, *CUBE, *VECTOR])
@pytest.mark.parametrize("counted", [CUBE, VECTOR, CUBE + VECTOR])
def test_a_lost_counter_of_what_computes_or_reads_leaves_the_busiest_unit_open(counted, lost):
    """Less evidence: the other units look like all there are, and none of them is busy."""
    known = [pipe for pipe in counted if pipe != lost]
    kernels = SimpleNamespace(
        piped={pipe: np.full(2, 5.0 if pipe in known else 0.0) for pipe in PIPES},
        pipes={pipe: np.full(2, 1.0 if pipe in known else 0.0) for pipe in PIPES},
    )
    vital = {"mac_ratio", "mte2_ratio", "vec_ratio", "aiv_mte2_ratio"} & set(counted)
    assert main_units_counted(kernels, [0, 1]) == (lost not in vital)


def test_without_counters_nothing_is_told():
    """No counter, no limit."""
    nothing = {pipe: np.zeros(1) for pipe in PIPES}
    assert not main_units_counted(SimpleNamespace(piped=nothing, pipes=nothing), [0])
