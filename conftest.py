"""Settings of all tests: laws are tried without deadlines, because a busy machine is no defect of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("undisturbed", deadline=None)
settings.load_profile("undisturbed")
