"""For all tests: a fact that its family has not declared is an error, not a problem of the report; and what hypothesis
draws is the same in every run, so that a change is judged by itself and not by its luck. `pytest --hypothesis-profile
searching` draws anew, and more."""

from __future__ import annotations

from hypothesis import settings

from advisor.facts import declared

declared.STRICT = True

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("searching", max_examples=1000)
settings.load_profile("repeatable")
