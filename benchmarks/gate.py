"""Error rates of the gate on simulated histories; writes the table of docs/gate.md.

Runs differ by 1.5 %, 8 % of them are disturbed (5 to 40 % slower: a bad node, a busy file system), and the level
drifts: a random walk of 0.1 % a run on top of a trend of 0.05 % a run. The candidate's runs are made at one time, with
the same noise and disturbances. Drift is doubled in the rows that say so.

The gate on step times alone gets its own table: a run is a training log of 200 steps (2 % from step to step, one in a
hundred 2 to 6 times as long: a checkpoint, an evaluation; the first ten compile), condensed as `--steps-only` does it.

    python -m benchmarks.gate [--trials 20000] [--write]
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.gate.judging.measures import result_of
from advisor.gate.judging.statistics import Limits, compare
from advisor.gate.metrics import defaults
from advisor.gate.model import Result
from advisor.gate.policy import MEAN, STEP, read_policy
from advisor.gate.steptimes import mean_step, typical_step

CV, DISTURBED, WALK, TREND = 0.015, 0.08, 0.001, 0.0005
STEP_US = 100_000.0
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "gate.md"
START, END = "<!-- table: python -m benchmarks.gate --write -->", "<!-- end of table -->"
STEPS_START = "<!-- table of step times: python -m benchmarks.gate --write -->"
STEPS, STEP_CV, LONG_STEPS, COMPILING = 200, 0.02, 0.01, 10

Rule = Callable[[Sequence[float], Sequence[float], Sequence[float]], Result]
"""rule(history, runs, confirming) -> what becomes of the metric"""
Run = tuple[float, ...]
"""The metrics of one run, microseconds: the step time; of a log, also the mean with all pauses."""


@dataclass(frozen=True)
class Row:
    """One line of the table: rates of failing for no change, a slowdown of 5 % and one of 10 %, and how often nobody
    can tell where nothing changed."""

    title: str
    history: int
    runs: int
    confirming: int
    rules: tuple[Rule, ...]
    """One for each metric of a run."""
    drift: float = 1.0
    """Times WALK and TREND."""
    steps: bool = False
    """Whether runs are logs of step times."""


def default_limits(name: str = STEP) -> Limits:
    """The limits of a metric at the defaults."""
    metrics = read_policy({}, {}).for_run({}).metrics
    return next(metric.limits for metric in metrics if metric.name == name)


def gate(limits: Limits) -> Rule:
    def rule(history: Sequence[float], runs: Sequence[float], confirming: Sequence[float]) -> Result:
        return result_of(compare(history, runs, limits, confirming=confirming))[0]

    return rule


def one_against_one(history: Sequence[float], runs: Sequence[float], confirming: Sequence[float]) -> Result:
    """What most pipelines do: the new run against the last one, 5 %."""
    del confirming
    return Result.FAIL if runs[0] > 1.05 * history[-1] else Result.PASS


def simulate(
    draw: random.Random, history: int, runs: int, slowdown: float, drift: float = 1.0, steps: bool = False
) -> tuple[list[Run], list[Run]]:
    """A history, oldest first, and the candidate's runs."""

    def run(level: float, factor: float = 1.0) -> Run:
        disturbance = draw.uniform(1.05, 1.40) if draw.random() < DISTURBED else 1.0
        time = STEP_US * math.exp(level) * max(0.5, 1 + draw.gauss(0, CV)) * disturbance * factor
        if not steps:
            return (time,)
        logged = log(draw, time)
        return typical_step(logged), mean_step(logged)

    level, before = 0.0, []
    for _ in range(history):
        before.append(run(level))
        level += drift * (TREND + draw.gauss(0, WALK))
    return before, [run(level, 1 + slowdown) for _ in range(runs)]


def log(draw: random.Random, time: float) -> list[float]:
    """Step times of one run, microseconds."""
    steps = [time * max(0.5, 1 + draw.gauss(0, STEP_CV)) for _ in range(STEPS)]
    for index in range(STEPS):
        if index < COMPILING or draw.random() < LONG_STEPS:
            steps[index] *= draw.uniform(2, 6)
    return steps


def rate(row: Row, slowdown: float, trials: int, seed: int = 7, wanted: Result = Result.FAIL) -> float:
    """Share of simulated histories with this result: failed where one metric does, not judged where one is not."""
    draw = random.Random(f"{seed}/{row.title}/{slowdown}")
    found = 0
    for _ in range(trials):
        history, runs = simulate(draw, row.history, row.runs + row.confirming, slowdown, row.drift, row.steps)
        metrics = zip(row.rules, zip(*history, strict=True), zip(*runs, strict=True), strict=True)
        results = {rule(before, now[: row.runs], now[row.runs :]) for rule, before, now in metrics}
        found += wanted in results and (wanted is Result.FAIL or Result.FAIL not in results)
    return found / trials


def rows() -> list[Row]:
    limits = default_limits()
    rules = (gate(limits),)
    return [
        Row("one run against the last one, 5 %", 1, 1, 0, (one_against_one,)),
        Row("median of five, without agreement of the runs", 10, 5, 0, (gate(replace(limits, agreement=-math.inf)),)),
        Row("**the gate: 5 runs, history of 10**", 10, 5, 0, rules),
        Row("**the same with a confirming run**", 10, 5, 1, rules),
        Row("5 runs, history of 20 or more", 20, 5, 0, rules),
        Row("the same with a confirming run", 20, 5, 1, rules),
        Row("5 runs, history of 5 (the least)", 5, 5, 0, rules),
        Row("3 runs, history of 10 (`min_runs = 3`)", 10, 3, 0, rules),
        Row("5 runs, history of 10, twice the drift", 10, 5, 0, rules, 2.0),
        Row("the same with a confirming run, twice the drift", 10, 5, 1, rules, 2.0),
        Row("5 runs, history of 20 or more, twice the drift", 20, 5, 0, rules, 2.0),
        Row("the same, history of 20 or more, with a confirming run", 20, 5, 1, rules, 2.0),
    ]


def step_rows() -> list[Row]:
    """The gate on step times alone."""
    rules = (gate(default_limits()), gate(default_limits(MEAN)))
    runs = int(defaults()["step_times"]["min_runs"])
    return [
        Row(f"**`--steps-only`: {runs} logs, history of 10**", 10, runs, 0, rules, 1.0, True),
        Row("**the same with a confirming log**", 10, runs, 1, rules, 1.0, True),
        Row(f"{runs} logs, history of 20 or more", 20, runs, 0, rules, 1.0, True),
        Row(f"{runs} logs, history of 10, twice the drift", 10, runs, 0, rules, 2.0, True),
        Row("the same with a confirming log, twice the drift", 10, runs, 1, rules, 2.0, True),
        Row("5 logs, history of 10", 10, 5, 0, rules, 1.0, True),
    ]


def table(rows: Sequence[Row], trials: int) -> str:
    lines = [
        "| | false alarms | could not tell, nothing changed | 5 % slower, caught | 10 % slower, caught |",
        "|---|---:|---:|---:|---:|",
    ]
    columns = ((0, 2, Result.FAIL), (0, 2, Result.NOT_JUDGED), (0.05, 1, Result.FAIL), (0.1, 1, Result.FAIL))
    for row in rows:
        cells = [
            f"{100 * rate(row, slowdown, trials, wanted=wanted):.{digits}f} %" for slowdown, digits, wanted in columns
        ]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--write", action="store_true", help="replace the table in docs/gate.md")
    arguments = parser.parse_args()
    written = DOCUMENT.read_text(encoding="utf-8")
    for start, found, trials in (
        (START, rows(), arguments.trials),
        (STEPS_START, step_rows(), max(1, arguments.trials // 4)),
    ):
        text = table(found, trials)
        print(f"{text}\n")
        head, _, rest = written.partition(start)
        written = f"{head}{start}\n{text}\n{END}{rest.partition(END)[2]}"
    if arguments.write:
        DOCUMENT.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
