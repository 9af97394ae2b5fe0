"""For all tests: a fact that its family has not declared is an error, not a problem of the report."""

from __future__ import annotations

from advisor.facts import declared

declared.STRICT = True
