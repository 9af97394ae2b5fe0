"""What a change did (S42): metrics, findings, and whether each remedy had the effect it promised.

`compare` is pure: two reports in, one `Comparison` out. `read_report` brings a profile, a JSON report or saved facts
into the form it takes; `advisor/render/comparison/` writes the result.
"""

from advisor.compare.changes import Change
from advisor.compare.model import Cause, Comparison, Effect, Matched, Metric, Obstacle
from advisor.compare.reports import compare, read_report

__all__ = [
    "Cause",
    "Change",
    "Comparison",
    "Effect",
    "Matched",
    "Metric",
    "Obstacle",
    "compare",
    "read_report",
]
