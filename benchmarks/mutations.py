"""Breaks profiles in every way there is and looks whether the advisor stays right.

    python -m benchmarks.mutations [--count 1000 | --made 1000] [--minutes 50] [--seed 0] [--kinds csv,json.cut]
                                   [--profiles ms,db] [--jobs 2] [--replay 17,204] [--keep DIR]

Each mutant is one change to one profile, drawn from the seed and its number alone, so that `--replay` repeats it. With
ADVISOR_CORPUS set, the real profiles there are originals too. Ends with 1 where a mutant showed a hard flaw.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

from benchmarks.mutants import cells, columns, databases, folders, meaning, rawbytes, trees  # noqa: F401  (they register)
from benchmarks.mutants.base import MUTATIONS, OTHER, Mutation
from benchmarks.mutants.judging import HARD, SOFT, accusations, blamed, flaws
from benchmarks.mutants.profiles import TRUE, what_to_judge, write_originals
from benchmarks.mutants.runs import Outcome, Workers, advise, drop_privileges
from benchmarks.mutants.warmth import learn, learning, warm_up

LIMIT_S = 40.0
_TOLD = 3
"""Flaws of one kind told of one mutant."""
_NOT_READ = (".md", ".log")
_MOST_DRAWN = 1_000_000


@dataclass(frozen=True)
class Mutant:
    """Which mutation of which file (relative; "" for the folder) of which original."""

    number: int
    seed: int
    original: str
    mutation: Mutation
    file: str

    def draw(self) -> Random:
        return Random(f"{self.seed}/{self.number}/apply")

    def __str__(self) -> str:
        return f"#{self.number} {self.original} {self.mutation.name} {self.file}"


@dataclass
class Tally:
    """What a series of mutants came to."""

    run: int = 0
    skipped: int = 0
    last: int = 0
    """Highest number that was drawn."""
    by_family: Counter[str] = field(default_factory=Counter)
    flaws: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """kind -> what was seen, with the mutant."""
    exits: Counter[int | None] = field(default_factory=Counter)
    slowest_s: float = 0.0
    largest_bytes: int = 0

    @property
    def hard(self) -> list[str]:
        return [text for kind in HARD for text in self.flaws.get(kind, ())]


@lru_cache(maxsize=256)
def files_of(original: Path) -> list[str]:
    """Relative names of the files a mutation may change."""
    found = (path for path in sorted(original.rglob("*")) if path.is_file() and path.suffix not in _NOT_READ)
    return [path.relative_to(original).as_posix() for path in found]


def choose(number: int, seed: int, originals: dict[str, Path], kinds: Sequence[str] = ()) -> Mutant | None:
    """The mutant of this number: the kind first, then a profile that has such a file, then a kind of file."""
    draw = Random(f"{seed}/{number}")
    names = [name for name in sorted(MUTATIONS) if not kinds or any(name.startswith(kind) for kind in kinds)]
    mutation = MUTATIONS[draw.choice(names)]
    for original in draw.sample(sorted(originals), len(originals)):
        if mutation.whole:
            return Mutant(number, seed, original, mutation, "")
        fitting = [
            file
            for file in files_of(originals[original])
            if not mutation.suffixes or Path(file).suffix in mutation.suffixes
        ]
        if fitting:
            kind = draw.choice(sorted({Path(file).name for file in fitting}))
            return Mutant(number, seed, original, mutation, draw.choice([f for f in fitting if Path(f).name == kind]))
    return None


def run_mutant(mutant: Mutant | None, original: Path, folder: Path, control: str = "") -> Outcome:
    """Copies the original, changes the copy, advises on it; without a mutant the copy stays intact.

    `control` removes the mutant's file ("file"), the folder of its rank ("rank") or the folder that the mutation closed
    ("folder") instead of changing it.
    """
    profile, report = folder / original.name, folder / "report.json"
    shutil.copytree(original, profile, symlinks=True, ignore_dangling_symlinks=True)
    done: str | None = "intact"
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777)
    if control and mutant is not None:
        _remove(profile, mutant, control)
    elif mutant is not None:
        drop_privileges()
        done = mutant.mutation.apply(profile / mutant.file if mutant.file else profile, mutant.draw())
    if done is None:
        return Outcome(exit=0)
    if mutant is None:
        lessons = Outcome()
        with learning(lessons):
            outcome = advise(what_to_judge(profile), report)
        outcome.modules, outcome.texts, outcome.patterns = lessons.modules, lessons.texts, lessons.patterns
    else:
        outcome = advise(what_to_judge(profile), report)
    outcome.done = done
    return outcome


def _remove(profile: Path, mutant: Mutant, control: str) -> None:
    parts = Path(mutant.file).parts
    if control == "folder":
        mutant.mutation.apply(profile, mutant.draw())
        for path in [p for p in (profile, *profile.rglob("*")) if p.is_dir() and not p.stat().st_mode & 0o777]:
            path.chmod(0o777)
            shutil.rmtree(path)
        profile.mkdir(exist_ok=True)
    elif control == "file" or len(parts) < 2:
        (profile / mutant.file).unlink()
    else:
        shutil.rmtree(profile / parts[0])


def _controls(mutant: Mutant) -> tuple[str, ...]:
    """What to leave out to learn which verdicts the rest of the profile deserves."""
    if mutant.mutation.name == "folder.unreadable":
        return ("folder",)
    return ("file", "rank") if mutant.file else ()


def run_series(
    numbers: Iterable[int],
    originals: dict[str, Path],
    folder: Path,
    *,
    seed: int = 0,
    kinds: Sequence[str] = (),
    jobs: int = 2,
    limit_s: float = LIMIT_S,
    tell: bool = False,
    made: int | None = None,
    until: float = math.inf,
) -> Tally:
    """Runs the mutants of these numbers and judges each against its original. Ends before the last number once `made`
    of them could be made, or at the time `until` (monotonic, in seconds)."""
    warm_up()
    folder.chmod(0o777)
    workers = Workers(folder, jobs, limit_s)
    tally = Tally()
    intact: dict[str, Outcome] = {}
    waiting: dict[str, Mutant] = {}
    doubtful: list[tuple[Mutant, Outcome]] = []
    controls: dict[str, set[tuple[str, str]]] = {}
    done = 0

    def collect() -> None:
        nonlocal done
        key, outcome = workers.wait()
        clean(folder / f"work-{key}")
        if key in waiting:
            mutant = waiting.pop(key)
            done += outcome.done is not None
            tally.last = max(tally.last, mutant.number)
            base = intact[mutant.original]
            if _controls(mutant) and mutant.mutation.effect != OTHER and blamed(outcome) - accusations(base):
                doubtful.append((mutant, outcome))
            else:
                _judge(tally, mutant, outcome, base, frozenset(), tell)
        elif key.startswith("control~"):
            controls[key.partition("~")[2]] = accusations(outcome)
        else:
            intact[key.partition("~")[2].replace("+", "/")] = outcome

    def start(key: str, mutant: Mutant | None, original: Path, control: str = "") -> None:
        while workers.full:
            collect()
        work = folder / f"work-{key}"
        clean(work)
        work.mkdir()
        workers.start(key, lambda: run_mutant(mutant, original, work, control))

    chosen = (choose(number, seed, originals, kinds) for number in numbers) if isinstance(numbers, list) else ()
    needed = {mutant.original for mutant in chosen if mutant is not None} or set(originals)
    for name, path in ((name, path) for name, path in originals.items() if name in needed):
        start(f"intact~{name.replace('/', '+')}", None, path)
    while workers.busy:
        collect()
    broken = [name for name, outcome in intact.items() if outcome.exit not in (0, 3)]
    if broken:
        raise SystemExit(f"the advisor does not run on the intact {broken[0]}: {intact[broken[0]].stderr.strip()}")
    learn(intact.values())
    for number in numbers:
        if time.monotonic() > until or (made is not None and done >= made):
            break
        mutant = choose(number, seed, originals, kinds)
        if mutant is not None:
            waiting[str(number)] = mutant
            start(str(number), mutant, originals[mutant.original])
    while workers.busy:
        collect()
    for mutant, _ in doubtful:
        for control in _controls(mutant):
            start(f"control~{mutant.number}-{control}", mutant, originals[mutant.original], control)
    while workers.busy:
        collect()
    for mutant, outcome in doubtful:
        without = set().union(*(controls[f"{mutant.number}-{control}"] for control in _controls(mutant)))
        _judge(tally, mutant, outcome, intact[mutant.original], without, tell)
    return tally


def _judge(
    tally: Tally, mutant: Mutant, outcome: Outcome, intact: Outcome, without: Set[tuple[str, str]], tell: bool
) -> None:
    """Adds a mutant to the tally. `without` is what the profile deserves where the mutated file, or its whole rank,
    is absent: such evidence is gone and the report says so."""
    if outcome.done is None:
        tally.skipped += 1
        return
    tally.run += 1
    tally.by_family[mutant.mutation.name.partition(".")[0]] += 1
    tally.exits[outcome.exit] += 1
    tally.slowest_s = max(tally.slowest_s, outcome.seconds)
    tally.largest_bytes = max(tally.largest_bytes, outcome.peak_bytes)
    seen: Counter[str] = Counter()
    true = TRUE.get(mutant.original, set()) | without
    for kind, text in flaws(mutant.mutation, mutant.file, outcome, intact, true):
        seen[kind] += 1
        if seen[kind] > _TOLD:
            continue
        line = f"{kind}: {text} [{mutant}: {outcome.done}]"
        tally.flaws[kind].append(line)
        if tell:
            print(line, flush=True)


def clean(folder: Path) -> None:
    """Removes a folder whatever the mutation did to its permissions."""
    if folder.exists():
        for path in (folder, *(p for p in folder.rglob("*") if p.is_dir() and not p.is_symlink())):
            path.chmod(0o777)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="numbers to draw; some cannot be made")
    parser.add_argument("--made", type=int, help="draw until so many were made, whatever --count says")
    parser.add_argument("--minutes", type=float, default=math.inf, help="draw no more after this time")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="names or prefixes of mutations, with commas")
    parser.add_argument("--profiles", default="", help="originals, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", default="", help="numbers of mutants, with commas")
    parser.add_argument("--keep", type=Path, help="write the replayed mutants below this folder and end")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        Path(temporary).chmod(0o755)
        originals = write_originals(Path(temporary) / "originals")
        wanted = [name for name in given.profiles.split(",") if name]
        originals = {k: v for k, v in originals.items() if not wanted or any(k.startswith(w) for w in wanted)}
        kinds = [kind for kind in given.kinds.split(",") if kind]
        replayed = [int(n) for n in given.replay.split(",") if n]
        count = _MOST_DRAWN if given.made else given.count
        numbers = replayed or range(given.first, given.first + count)
        if given.keep:
            for number in numbers:
                mutant = choose(number, given.seed, originals, kinds)
                assert mutant is not None
                target = given.keep / str(number) / "profile"
                shutil.copytree(originals[mutant.original], target)
                print(mutant, mutant.mutation.apply(target / mutant.file if mutant.file else target, mutant.draw()))
            return 0
        folder = Path(temporary) / "work"
        folder.mkdir()
        started = time.monotonic()
        tally = run_series(
            numbers, originals, folder, seed=given.seed, kinds=kinds, jobs=given.jobs, tell=True,
            made=given.made, until=started + 60 * given.minutes,
        )  # fmt: skip
    _summarise(tally, len(originals), time.monotonic() - started)
    return 1 if tally.hard else 0


def _summarise(tally: Tally, originals: int, seconds: float) -> None:
    drawn = f"{tally.skipped} did not apply, last #{tally.last}"
    print(f"\n{tally.run} mutants of {originals} profiles in {seconds:.0f} s ({drawn})")
    print("by family:", ", ".join(f"{name} {count}" for name, count in sorted(tally.by_family.items())))
    print("exit status:", dict(sorted(tally.exits.items(), key=str)))
    print(f"slowest {tally.slowest_s:.1f} s, largest {tally.largest_bytes / 1e6:.0f} MB")
    for kind in (*HARD, *SOFT):
        told = tally.flaws.get(kind, [])
        by_mutation = Counter(line.rpartition(" [#")[2].split()[2] for line in told)
        print(f"{kind:>12}: {len(told)}  {', '.join(f'{name} {count}' for name, count in by_mutation.most_common())}")


if __name__ == "__main__":
    sys.exit(main())
