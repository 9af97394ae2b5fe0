"""What the advisor says of recordings that are no whole training with steps, where all of it is known.

    python -m benchmarks.recordings --runs 20

A row is right where the kind is right, the step (or what is judged of a recording without steps) is within 5 %, the
idle time within two points, and nothing is "per step" where nothing marks steps.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from advisor.model import Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator.recordings import RECORDINGS, Known

LENGTH, POINTS = 0.05, 0.02


@dataclass(frozen=True)
class Row:
    """How many of the runs of one kind were told rightly, and how."""

    name: str
    runs: int
    right: Counter[str]
    worst: float
    """Largest relative error of the length."""


def judge(report: Report, known: Known) -> tuple[set[str], float]:
    """(what is right, relative error of the length)."""
    length = known.step_us if known.step_us is not None else known.recording_us
    said = report.summary.step_time_us if known.step_us is not None else report.summary.recording_us
    error = abs(said / length - 1) if said and length else 1.0
    right = {"length"} if error <= LENGTH else set()
    if report.profile.recording == known.kind:
        right.add("kind")
    idle = report.summary.breakdown.get("idle")
    if known.busy_share is None or (idle is not None and abs(1 - idle - known.busy_share) <= POINTS):
        right.add("idle")
    if known.step_us is not None or _speaks_of_recording(report):
        right.add("words")
    return right, error


def _speaks_of_recording(report: Report) -> bool:
    texts = [report.summary.headline, *(text for f in report.findings for text in (f.title, f.message))]
    savings = [f.saving for f in report.findings if f.saving is not None]
    return not any(" step" in text.en for text in texts) and all(s.us_per_step is None for s in savings)


def run(name: str, runs: int) -> Row:
    """One kind of recording, with seeds 0 … runs − 1."""
    rules, right, worst = load_rules(), Counter[str](), 0.0
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            known = RECORDINGS[name](Path(folder), seed)
            found, error = judge(advise([folder], rules, Options(jobs=1)), known)
        right.update(found)
        worst = max(worst, error)
    return Row(name, runs, right, worst)


def main() -> None:
    """Prints one line a kind, as docs/accuracy.md shows them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kinds", help="comma separated; all by default")
    options = parser.parse_args()
    print("| recording | runs | kind | length | idle time | words | worst length |\n|---|---|---|---|---|---|---|")
    for name in options.kinds.split(",") if options.kinds else RECORDINGS:
        row = run(name, options.runs)
        counts = " | ".join(str(row.right[key]) for key in ("kind", "length", "idle", "words"))
        print(f"| {name} | {row.runs} | {counts} | {row.worst:.1%} |", flush=True)


if __name__ == "__main__":
    main()
