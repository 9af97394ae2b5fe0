"""What the command line ends with; the contract of everything that calls it."""

from __future__ import annotations

from advisor.basics.errors import AdvisorError, NoVerdict

DONE = 0
FAILED = 1
"""A finding of --fail-on's severity, a gate that fails, a case that does not hold."""
USAGE = 2
"""Wrong arguments, configuration or rules."""
NO_VERDICT = 3
"""Nothing readable, nothing comparable: neither good nor bad can be said."""
DEFECT = 4
"""A defect of the advisor itself."""
INTERRUPTED = 130
SIGNALLED = 128
"""To this the number of the signal is added that ended the process."""


def status_of(error: AdvisorError) -> int:
    """What the command line ends with for this error."""
    return NO_VERDICT if isinstance(error, NoVerdict) else USAGE
