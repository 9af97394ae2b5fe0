"""How often the advisor names the right root cause, on simulated runs whose fault is known.

    python -m benchmarks.accuracy --runs 40            # every fault 40 times, and healthy runs
    python -m benchmarks.accuracy --runs 40 --noise 2  # at twice the noise
    python -m benchmarks.accuracy --kinds slow_link,healthy --runs 10 --misses

Right means: a root cause with the fault's verdict and subject, and no more valuable root cause that is not a fault of
this run. A fault counts as obvious, and is drawn again otherwise, where it makes the step at least 5 % longer.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from advisor.model import Finding, Report
from benchmarks.simulator import Fault, Scenario, Truth, random_scenario, simulate, truths, write_profile
from benchmarks.simulator.scenario import FAULTS, IN_TURN, PARTIAL, RUN_UP

OBVIOUS = 0.05
PAIRS = (
    "slow_compute+slow_link", "slow_host+slow_link", "stage_imbalance+slow_compute",
    "unsplit_allreduce+slow_compute", "unsplit_allreduce+slow_host",
)  # fmt: skip
TOGETHER = (
    "slow_compute+slow_compute", "slow_compute+slow_host", "slow_compute+slow_card",
    "slow_compute+slow_compute+slow_compute", "slow_compute+slow_compute+slow_link", "slow_compute+slow_host+slow_link",
    "unsplit_allreduce+slow_compute+slow_compute",
)  # fmt: skip
"""Pairs and triples that hide each other: two ranks late alike gain nothing one by one. Not two slow hosts or loaders:
behind the slower one the other keeps up, and nothing that was recorded shows it."""
NO_WORK_TAKEN = ("stage_imbalance", "redistribution")
"""Removing the others leaves the work of a step as it is, so that what is gained can be simulated."""
SHORT = 5
"""Steps that tell the length of one, where all are alike; faults of a part of the steps need more."""
CLOSE = 0.2
"""Part of the gain by which a promise may be off and still be one to bank on."""
SERIOUS = ("medium", "high", "critical")


@dataclass(frozen=True)
class Outcome:
    """One simulated run: what was wrong with it and what the advisor said."""

    kind: str
    seed: int
    cost: float
    """How much longer the step is than without the fault."""
    right: bool
    first: str
    """Verdict and subject of the first serious root cause; empty where there is none."""
    extra: tuple[str, ...]
    """Serious root causes that are no fault of this run."""
    expected: tuple[str, ...]
    saving: float | None
    """What is promised for all faults that were named, together."""
    gained: float
    """What taking these out gains."""

    @property
    def off(self) -> float:
        """By what part of the gain the promise is off."""
        return abs((self.saving or 0.0) - self.gained) / self.gained


def draw(kind: str, seed: int, noise: float, largest: float = math.inf) -> tuple[Scenario, float] | None:
    """An obvious scenario of this kind and the share its fault costs; None where 40 draws bring none. Worlds of more
    than `largest` ranks are drawn again before anything is simulated."""
    for attempt in range(40):
        scenario = random_scenario(kind, seed * 1000 + attempt, noise)
        if scenario.world_size > largest:
            continue
        if kind == "healthy":
            return scenario, 0.0
        short = _short(scenario)
        healthy = _length(replace(short, faults=()))
        costs = [_length(replace(short, faults=(fault,))) - healthy for fault in scenario.faults]
        hidden = kind.rpartition("/")[2] in TOGETHER
        if hidden and not _told(scenario):
            continue
        if min(costs) >= OBVIOUS * healthy and (hidden or all(_visible(short, fault) for fault in scenario.faults)):
            return scenario, min(costs) / healthy
    return None


def _told(scenario: Scenario) -> bool:
    """Whether anything that is recorded could show every fault: most of the ranks alike are well, and no host that runs
    ahead keeps up behind a slower one."""
    slow = [
        scenario.place(f.where)[0] for f in scenario.faults if f.kind == "slow_compute" and isinstance(f.where, int)
    ]
    most = max(map(slow.count, slow), default=0)
    ahead = not scenario.synchronous and scenario.fault("slow_host") is not None
    return 2 * most < scenario.data * scenario.tensor and not ahead


def _short(scenario: Scenario) -> Scenario:
    """The same with as few steps as tell its length."""
    partial = any(fault.kind in (*PARTIAL, *IN_TURN) for fault in scenario.faults)
    run_up = 0 if scenario.synchronous else RUN_UP  # a host that runs ahead is gained from once it has fallen behind
    return replace(scenario, steps=scenario.steps if partial else SHORT, run_up=run_up, warm_up=False)


def _length(scenario: Scenario) -> float:
    """Step time: of the median step, or the mean where the faults are of a part of the steps."""
    run = simulate(scenario)
    return run.mean_us if scenario.steps > SHORT else run.step_us


def _visible(scenario: Scenario, fault: Fault) -> bool:
    """Whether a fault still costs beside the other: a slower step leaves time to prepare data, and a slow link costs
    nothing while all wait for a slow rank anyway. (Two late ranks hide each other, so no pair has two.)"""
    if len(scenario.faults) == 1:
        return True
    run = simulate(scenario)
    rest = tuple(f for f in scenario.faults if f != fault)
    return run.step_us - simulate(replace(scenario, faults=rest)).step_us >= OBVIOUS * run.step_us


def run_one(job: tuple[str, int, float, str | None]) -> Outcome | None:
    """Simulates, writes, advises, compares."""
    from advisor.pipeline import Options, advise
    from advisor.ruleset.files.loader import load_rules

    kind, seed, noise, only = job
    drawn = draw(kind, seed, noise)
    if drawn is None:
        return None
    scenario, cost = drawn
    if only == "steps":
        scenario = replace(scenario, kernels=False, level=0, metadata=False)
    elif only == "no-kernels":
        scenario = replace(scenario, kernels=False)
    folder = tempfile.mkdtemp(prefix="advisor-accuracy-")
    try:
        write_profile(simulate(scenario), folder)
        report = advise([folder], load_rules(strict=False), Options(jobs=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    roots = [f for f in report.findings if f.role == "root_cause" and f.severity in SERIOUS]
    expected = truths(scenario)
    found = [any(_matches(f, truth) for f in roots) for truth in expected]
    extra = [f for f in roots if not any(_matches(f, truth) for truth in expected)]
    first = roots[0] if roots else None
    right = all(found) and not (first is not None and extra and first is extra[0])
    named = [f for f in roots if any(_matches(f, truth) for truth in expected)]
    taken = tuple(fault for fault, hit in zip(scenario.faults, found, strict=True) if hit)
    short = _short(scenario)
    left = replace(
        short, faults=tuple(fault for fault in scenario.faults if fault not in taken), split=_split(named, scenario)
    )
    gained = _length(short) - _length(left) if taken and not set(NO_WORK_TAKEN) & {f.kind for f in taken} else 0.0
    return Outcome(
        kind, seed, cost, right, _name(first), tuple(_name(f) for f in extra),
        tuple(f"{t.verdict} {'/'.join(t.subjects)}" for t in expected), _promised(report, named), gained,
    )  # fmt: skip


def _split(named: list[Finding], scenario: Scenario) -> tuple[int, ...]:
    """The proposed split of the gradients in layers: each has as many weights, and what is cut inside of one waits for
    the rest of it. Empty where none is proposed."""
    told = [r.proposed for f in named for r in f.remedies if r.parameter == "all_reduce_fusion_config" and r.proposed]
    if not told:
        return ()
    each = max(told[0][-1] // scenario.layers, 1)
    return tuple(sorted({-(-index // each) for index in told[0][:-1]} | {scenario.layers}))


def _promised(report: Report, named: list[Finding]) -> float | None:
    """What the report says a step gains without these, together; what is at stake where nothing is promised."""
    if not named:
        return None
    ids = {f.id for f in named}
    if report.whatif is not None and ids <= set(report.whatif.causes):
        key = ",".join(one for one in report.whatif.causes if one in ids)
        return report.whatif.step_time_us[""] - report.whatif.step_time_us[key]
    return sum(f.weight_us for f in named) or None


def _matches(finding: Finding, truth: Truth) -> bool:
    subject = finding.subject
    same = subject.id in truth.subjects or (
        subject.kind == "rank" and set(map(str, subject.ranks)) & set(truth.subjects)
    )
    return finding.verdict == truth.verdict and (not truth.subjects or bool(same))


def _name(finding: Finding | None) -> str:
    return "" if finding is None else f"{finding.verdict} {finding.subject.id}"


def table(outcomes: Iterable[Outcome]) -> str:
    """Right answers per kind, extra accusations, and the confusion of verdicts."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.kind].append(outcome)
    lines = [
        "| fault | runs | right | other serious root causes | saving within ±20 % | said instead |",
        "|---|---|---|---|---|---|",
    ]
    for kind, group in by_kind.items():
        right = sum(o.right for o in group)
        extra = sum(bool(o.extra) for o in group)
        told = [o for o in group if o.saving is not None and o.gained > 0]
        close = sum(o.off <= CLOSE for o in told)
        wrong = Counter(o.first.partition(" ")[0] or "nothing" for o in group if not o.right)
        said = ", ".join(f"{name} {count}" for name, count in wrong.most_common())
        share = f"{close} of {len(told)}" if told else "–"
        lines.append(f"| {kind} | {len(group)} | {100 * right / len(group):.1f} % | {extra} | {share} | {said} |")
    told = [o for group in by_kind.values() for o in group if o.saving is not None and o.gained > 0]
    close = sum(o.off <= CLOSE for o in told)
    whole = f"{close} of {len(told)}" if told else ""
    faulty = [o for kind, group in by_kind.items() if kind != "healthy" for o in group]
    if faulty:
        lines.append(
            f"| all faults | {len(faulty)} | {100 * sum(o.right for o in faulty) / len(faulty):.1f} % "
            f"| {sum(bool(o.extra) for o in faulty)} | {whole} | |"
        )
    for name, group in (
        ("single", [o for o in told if "+" not in o.kind]),
        ("joint", [o for o in told if "+" in o.kind]),
    ):
        if group:
            near = sum(o.off <= CLOSE for o in group)
            nine = float(np.quantile([o.off for o in group], 0.9))
            lines.append(f"{name}: {near} of {len(group)} within 20 %, nine of ten off by at most {100 * nine:.1f} %")
    return "\n".join(lines)


def main() -> None:
    """Parses, runs in processes, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="runs of each fault")
    parser.add_argument("--healthy", type=int, help="healthy runs (default: four times --runs)")
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--kinds", help="comma-separated; default: all faults, pairs and healthy")
    parser.add_argument("--only", choices=("steps", "no-kernels"), help="step_trace_time.csv alone, or all but kernels")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--misses", action="store_true", help="list every wrong answer")
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",") if arguments.kinds else ["healthy", *FAULTS, *PAIRS, *TOGETHER]
    healthy = arguments.healthy or 4 * arguments.runs
    jobs = [
        (kind, seed, arguments.noise, arguments.only)
        for kind in kinds
        for seed in range(arguments.first, arguments.first + (healthy if kind == "healthy" else arguments.runs))
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        outcomes = []
        for outcome in filter(None, pool.map(run_one, jobs)):
            outcomes.append(outcome)
            off = outcome.saving is not None and outcome.gained > 0 and outcome.off > CLOSE
            if arguments.misses and (not outcome.right or outcome.extra or off):
                print(outcome, flush=True)
    print(table(outcomes))


if __name__ == "__main__":
    main()
