"""For all tests: a fact that its family has not declared is an error, not a problem of the report; and what hypothesis
draws is the same in every run, so that a change is judged by itself and not by its luck. `pytest --hypothesis-profile
searching` draws anew, and more."""

from __future__ import annotations

import logging
import os

import pytest
from hypothesis import settings

from advisor.basics.garbage import collect_seldom
from advisor.facts import declared

declared.STRICT = True

# As many processes as there are processors run tests: threads of one only stand in the others' way. And garbage is as
# rare as in the command. Together a fifth of the processor time.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
collect_seldom()

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("searching", max_examples=1000)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _log_of_its_own() -> None:
    """Every test begins with Python's own level: a quiet command of an earlier one, or of what a whole file of
    tests shares, silences no log."""
    logging.getLogger().setLevel(logging.WARNING)
