"""Takes evidence away from profiles and looks whether the answer ever gets better for it, or anybody new is accused.

    python -m benchmarks.less_evidence [--count 2000] [--first 0] [--seed 0] [--faults 2] [--cuts ranks,columns]
                                       [--minutes 50] [--jobs 2] [--replay 17,204]
                                       [--keep DIR]

The law: with ranks, files, tables, columns, rows, steps or members gone, the answer may become undetermined; it is
never healthy where the whole profile was not, and no verdict is a root cause of weight that the whole profile did not
reach, save that somebody absent is late where all whom the whole profile blames are absent. Originals are the mutants'
intact profiles, simulated runs with every fault and, with ADVISOR_CORPUS set, the real profiles there. Each reduced
profile is drawn from the seed and its number alone. Ends with 1 where the law broke.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.accuracy import draw as draw_scenario
from benchmarks.mutants.cuts import CUTS
from benchmarks.mutants.profiles import write_databases, write_originals
from benchmarks.simulator import simulate, write_profile
from benchmarks.simulator.scenario import FAULTS

BATCH = 200
"""Reduced profiles begun between two looks at the clock."""
SERIOUS = ("medium", "high", "critical")
LARGEST_WORLD = 8
"""Simulated runs of more ranks are drawn again: two thousand profiles are copied and judged."""
EXAMPLE = Path(__file__).parent.parent / "examples" / "slow-rank-pipeline"


@dataclass(frozen=True)
class Answer:
    """What a report says, reduced to what the law is about."""

    direction: str
    reached: frozenset[str]
    """Verdicts of weight, in whatever role, that blame the training; symptoms of any weight, for with the steps that
    show their cause gone they are what is left of it."""
    roots: frozenset[str]
    """Those of them that are root causes."""
    blamed: frozenset[int] = frozenset()
    """Ranks that root causes name."""
    at_hand: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Reduced:
    """One profile with something taken away, and its answer; `taken` is None where the cut did not apply."""

    number: int
    original: str
    cuts: tuple[str, ...]
    taken: str | None
    answer: Answer | None
    error: str = ""

    def __str__(self) -> str:
        return f"#{self.number} {self.original} {'+'.join(self.cuts)}: without {self.taken}"


def answer(folder: Path) -> Answer:
    """Judges a profile in this process."""
    from advisor.pipeline import Options, advise

    report = advise([folder], _rules(), Options(jobs=1))
    blaming = [f for f in report.findings if f.direction != "evidence"]
    reached = frozenset(f.verdict for f in blaming if f.severity in SERIOUS or f.role == "symptom")
    roots = [f for f in blaming if f.severity in SERIOUS and f.role == "root_cause"]
    at_hand = frozenset(report.profile.ranks)
    of_run = {f.verdict: at_hand for f in roots if f.verdict in IN_PARTS}  # of which any may be meant
    blamed = frozenset(rank for f in roots for rank in f.subject.ranks or of_run.get(f.verdict, ()))
    return Answer(report.summary.direction, reached, frozenset(f.verdict for f in roots), blamed, at_hand)


@lru_cache(maxsize=1)
def _rules():  # type: ignore[no-untyped-def]
    from advisor.ruleset.files.loader import load_rules

    return load_rules(strict=False)


ALONE = {"data-starved-rank": "data-processing-bottleneck"}
"""What a rank lacks against its peers the whole run lacks where its peers are absent."""
ELSEWHERE_TOLD = {
    "step-jitter": frozenset({"waiting-on-slow-rank", "idle-imbalance"}),
    "host-dispatch-bound": frozenset({"step-jitter", "idle-imbalance"}),
}
"""The same fault by what is left: whom the others wait for in some of the steps they wait for in the recording, where
steps are not told apart; hosts that pause in turn make some steps slow, and one of them alone is the one that idles."""
IN_PARTS = frozenset({"slow-link", "host-dispatch-bound"})
"""Verdicts about several ranks each of which is late by itself."""
CUT_BEFORE = frozenset({"recording-kernels-cut-in-half"})
"""Healthy but for a table that lacks steps: cut to the steps that all tables hold, it may be called so."""


def violations(whole: Answer, part: Answer) -> Iterator[tuple[str, str]]:
    """(kind, text) of every breach of the law."""
    if part.direction == "healthy" and whole.direction != "healthy":
        yield "healthy", f"was {whole.direction}: {', '.join(sorted(whole.roots)) or 'no cause'}"
    # whoever is to blame is among the absent, as it says; of hosts that pause in turn and of a slow link's ends, some
    # are enough: they keep the others waiting, and what holds them is not at hand
    absent = whole.blamed - part.at_hand
    gone = absent and (absent == whole.blamed or whole.roots <= IN_PARTS)
    allowed = {"waiting-on-slow-rank"} if gone else set()
    allowed |= {other for verdict in whole.roots & ELSEWHERE_TOLD.keys() for other in ELSEWHERE_TOLD[verdict]}
    if part.at_hand and (part.at_hand <= whole.blamed or len(part.at_hand) == 1):  # one alone may not know its number
        allowed |= {ALONE[verdict] for verdict in whole.roots & ALONE.keys()}
    for verdict in sorted(part.roots - whole.reached - allowed):
        yield "accusation", verdict


def reduce_profile(number: int, seed: int, originals: dict[str, Path], kinds: tuple[str, ...], keep: Path) -> Reduced:
    """Copies the original that the number draws below `keep`, cuts the copy, judges what is left."""
    draw = Random(f"{seed}/{number}")
    original = draw.choice(sorted(originals))
    cuts = tuple(draw.choice(kinds) for _ in range(draw.choice((1, 1, 2, 3))))
    target = keep / str(number) / originals[original].name
    shutil.copytree(originals[original], target, symlinks=True)
    taken = [done for name in cuts if (done := CUTS[name](target, draw)) is not None]
    if not taken:
        return Reduced(number, original, cuts, None, None)
    try:
        return Reduced(number, original, cuts, "; ".join(taken), answer(target))
    except Exception as error:
        return Reduced(number, original, cuts, "; ".join(taken), None, f"{type(error).__name__}: {error}")


def write_runs(kind: str, folder: Path, faults: int, first: int, database: bool) -> dict[str, Path]:
    """name -> folder of so many simulated runs with this fault, every second one with a timeline or as databases.
    These assign work to steps by the host's marks: their hosts wait for their devices."""
    written: dict[str, Path] = {}
    for seed in range(first, first + 40):
        if len(written) == faults:
            break
        drawn = draw_scenario(kind, seed, 1.0, LARGEST_WORLD)
        if drawn is None:
            continue
        second, name = len(written) % 2 == 1, f"{kind}-{seed + 1}"
        written[name] = folder / name
        if second and database:
            waiting = replace(drawn[0], framework="pytorch", synchronous=True)
            write_databases(simulate(waiting), written[name])
        else:
            write_profile(simulate(drawn[0]), written[name], trace=second)
    return written


def write_all(folder: Path, faults: int, pool: ProcessPoolExecutor, first: int = 0) -> dict[str, Path]:
    """name -> folder of every original: the mutants', the bundled example, simulated runs with each fault, those of
    every second fault as databases."""
    each = [
        pool.submit(write_runs, kind, folder, faults, first, number % 2 == 1)
        for number, kind in enumerate(("healthy", *FAULTS))
    ]
    originals = write_originals(folder)
    shutil.copytree(EXAMPLE, folder / "example")
    originals["example"] = folder / "example"
    for runs in each:
        originals |= runs.result()
    return originals


def _job(given: tuple[int, int, dict[str, Path], tuple[str, ...], Path, bool]) -> Reduced:
    number, seed, originals, kinds, keep, kept = given
    try:
        return reduce_profile(number, seed, originals, kinds, keep)
    finally:
        if not kept:
            shutil.rmtree(keep / str(number), ignore_errors=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no more after this time")
    parser.add_argument("--first", type=int, default=0, help="number of the first reduced profile")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=2, help="simulated runs of each fault")
    parser.add_argument("--cuts", default="", help=f"of {', '.join(CUTS)}")
    parser.add_argument("--profiles", default="", help="beginnings of originals' names, with commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--replay", default="", help="numbers, with commas")
    parser.add_argument("--keep", type=Path, help="keep the reduced profiles below this folder")
    given = parser.parse_args()
    kinds = tuple(name for name in given.cuts.split(",") if name) or tuple(CUTS)
    numbers = [int(n) for n in given.replay.split(",") if n] or range(given.first, given.first + given.count)
    broken: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    directions: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="less-evidence-") as temporary, ProcessPoolExecutor(given.jobs) as pool:
        originals = write_all(Path(temporary) / "originals", given.faults, pool)
        wanted = [name for name in given.profiles.split(",") if name]
        originals = {k: v for k, v in originals.items() if not wanted or any(k.startswith(w) for w in wanted)}
        keep = given.keep or Path(temporary) / "reduced"
        whole = dict(zip(originals, pool.map(answer, originals.values()), strict=True))
        jobs = ((n, given.seed, originals, kinds, keep, given.keep is not None) for n in numbers)
        while batch := list(islice(jobs, BATCH)):
            if time.monotonic() > started + 60 * given.minutes:
                break
            for reduced in pool.map(_job, batch, chunksize=4):
                if reduced.taken is None:
                    continue
                if reduced.answer is None:
                    broken["error"] += 1
                    print(f"error: {reduced.error} [{reduced}]", flush=True)
                    continue
                judged.update(reduced.cuts)
                directions[reduced.answer.direction] += 1
                for kind, text in violations(whole[reduced.original], reduced.answer):
                    if kind == "healthy" and reduced.original in CUT_BEFORE:
                        continue
                    broken[kind] += 1
                    print(f"{kind}: {text} [{reduced}]", flush=True)
        print(f"\n{directions.total()} reduced profiles of {len(originals)} in {time.monotonic() - started:.0f} s")
        print("whole:", dict(Counter(each.direction for each in whole.values())))
        print("reduced:", dict(directions), "cuts:", dict(judged))
        print("breaches:", {kind: broken[kind] for kind in ("healthy", "accusation", "error")})
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
