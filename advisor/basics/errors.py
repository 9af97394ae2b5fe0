"""Errors for people: what is wrong, where, and what to do next."""

from __future__ import annotations


class AdvisorError(Exception):
    """Base of every error a user can cause."""

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class UsageError(AdvisorError):
    """Wrong arguments or options."""


class ConfigError(AdvisorError):
    """A configuration file that cannot be used."""


class RuleError(AdvisorError):
    """A rule or rule pack that cannot be loaded."""


class NoVerdict(AdvisorError):
    """Nothing readable, nothing comparable: neither good nor bad can be said."""
