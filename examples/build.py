"""Writes the bundled example: four ranks, two pipeline stages of two, rank 1 computing a third longer.

python -m examples.build            # writes examples/slow-rank-pipeline
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.simulator import Fault, Scenario, simulate, write_profile

HERE = Path(__file__).resolve().parent
SLOW_RANK = Scenario(
    data=2, pipeline=2, ranks_per_host=2, layers=1, micro_batches=2, steps=4, first_step=50, kernel_us=600.0,
    gradient_mb_per_layer=6.0, activation_mb=2.0, buckets=1, seed=7, faults=(Fault("slow_compute", 1, 0.35),),
)  # fmt: skip


def build(folder: Path = HERE / "slow-rank-pipeline") -> Path:
    """Writes the example anew; the same bytes every time."""
    shutil.rmtree(folder, ignore_errors=True)
    write_profile(simulate(SLOW_RANK), folder)
    return folder


if __name__ == "__main__":
    print(build())
