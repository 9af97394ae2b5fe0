"""How long the fuzzing of the tests runs: short in CI, long where ADVISOR_FUZZ says so.

ADVISOR_FUZZ=40 pytest tests/test_fuzz.py tests/test_robustness.py -k any
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("ADVISOR_FUZZ", "1"))
"""How many times as many examples as in CI."""


def fuzz(examples: int) -> settings:
    """Settings for a fuzzed test with so many examples in CI. A long run draws other examples each time."""
    return settings(
        max_examples=examples * TIMES,
        derandomize=TIMES == 1,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )
