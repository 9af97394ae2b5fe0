"""A long training for `advisor watch`: hundreds of recordings, written as profilers write them, with faults thrown in.

    python -m benchmarks.watch_soak [RECORDINGS] [SEED]

A recording is written file by file. Among them: some grow in pieces, some vanish while they are written or judged, some
are cut off, hold garbage, pipes, loops of links or tens of thousands of files; some are moved away and come back. The
process that judges is killed now and then, and so is the watcher, which is started again. In the end every recording
that stayed must have been told exactly once, and the watcher's memory must not have grown.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.simulator import Scenario, simulate, write_profile

FAULTS = ("grows", "vanishes", "cut", "garbage", "pipe", "loop", "crowded", "moved", "raw", "closed")
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Soak:
    """What became of it."""

    written: int = 0
    expected: set[str] = field(default_factory=set)
    """Recordings that were finished and stayed."""
    told: Counter[str] = field(default_factory=Counter)
    """Lines of runs.jsonl by recording."""
    errors: Counter[str] = field(default_factory=Counter)
    rss_kb: list[int] = field(default_factory=list)
    """Of the watcher, sampled while it watched."""
    restarts: int = 0
    worker_kills: int = 0
    seconds: float = 0.0
    output: str = ""

    @property
    def missed(self) -> set[str]:
        return self.expected - set(self.told)

    @property
    def twice(self) -> set[str]:
        return {name for name, count in self.told.items() if count > 1}


class _Watcher:
    """The command, as a user runs it."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._log = log.open("ab")
        arguments = [sys.executable, "-m", "advisor", "watch", str(folder), "--every", "0.2", "--settled", "1.0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(arguments, stdout=self._log, stderr=self._log, env=environment)

    def rss_kb(self) -> int:
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")), 0)

    def kill_worker(self) -> bool:
        """Kills the processes that the watcher started; whether there was one."""
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except OSError:
            return False
        for child in children:
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
                if b"spawn_main" in command:
                    os.kill(int(child), signal.SIGKILL)
            except OSError:
                continue
        return bool(children)

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(30)
        self._log.close()


def soak(folder: Path, recordings: int = 300, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> Soak:
    """Writes the recordings under a running watcher and returns what became of them."""
    draw, result, started = random.Random(seed), Soak(), time.monotonic()
    templates = _templates(folder / "templates")
    watched, log = folder / "training", folder / "watch.log"
    watched.mkdir()
    watcher = _Watcher(watched, log)
    try:
        for number in range(recordings):
            template = draw.choice(templates)
            fault = draw.choice(FAULTS) if draw.random() < 0.3 else ""
            _write(watched, template, number, fault, draw, result)
            result.written += 1
            if number % 10 == 9:
                result.rss_kb.append(watcher.rss_kb())
            if draw.random() < 0.03:
                result.worker_kills += watcher.kill_worker()
            if number % 75 == 50 or (recordings < 75 and number == recordings // 2):
                watcher.end(signal.SIGKILL)
                result.restarts += 1
                watcher = _Watcher(watched, log)
            if number % 50 == 49:
                tell(f"{number + 1} written, {time.monotonic() - started:.0f} s, {watcher.rss_kb() // 1024} MB")
                _wait(watched, result, 60 + recordings)
        _wait(watched, result, 120 + recordings)
        result.rss_kb.append(watcher.rss_kb())
    finally:
        watcher.end(signal.SIGTERM)
    _read(watched, result)
    result.seconds, result.output = time.monotonic() - started, log.read_text(errors="replace")
    return result


def _templates(folder: Path) -> list[list[Path]]:
    """Rank folders of a few small trainings, of one and of two ranks."""
    found = []
    for seed, data in enumerate((1, 1, 2)):
        place = folder / str(seed)
        found.append(sorted(write_profile(simulate(Scenario(data=data, seed=seed + 1)), place)))
    return found


def _write(watched: Path, ranks: list[Path], number: int, fault: str, draw: random.Random, result: Soak) -> None:
    """One recording, as a schedule writes it: a folder a rank with the time in its name."""
    names = [f"host_{100 + index}_{20260101000000000 + number * 1000 + index}_ascend_ms" for index in range(len(ranks))]
    if fault == "moved" or draw.random() < 0.3:
        names = [f"run{number}"]
    targets = [watched / name for name in names]
    for source, target in zip(ranks, targets, strict=False):
        for path in sorted(source.rglob("*")):
            place = target / path.relative_to(source)
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes()
            if fault == "grows":
                for start in range(0, len(content), max(1, len(content) // 3)):
                    with place.open("ab") as stream:
                        stream.write(content[start : start + max(1, len(content) // 3)])
                    time.sleep(0.01)
            else:
                place.write_bytes(content[: len(content) // 2] if fault == "cut" else content)
    first = targets[0]
    if fault == "vanishes":
        time.sleep(draw.random() * 1.5)
        for target in targets:
            shutil.rmtree(target, ignore_errors=True)
        return
    if fault == "garbage":
        for path in list(first.rglob("*.csv"))[:3]:
            path.write_bytes(draw.randbytes(2000))
    elif fault == "pipe":
        os.mkfifo(first / "pipe.json")
    elif fault == "loop":
        (first / "loop").symlink_to(first)
    elif fault == "crowded":
        crowd = first / "logs"
        crowd.mkdir()
        for each in range(20_000):
            (crowd / f"{each}.log").touch()
    elif fault == "moved":
        time.sleep(2.0)
        aside = watched.parent / f"aside{number}"
        first.rename(aside)
        time.sleep(0.5)
        aside.rename(first)
    elif fault == "raw":
        (watched / f"raw{number}" / "PROF_000001_20260101000000000_X").mkdir(parents=True)
        (watched / f"raw{number}" / "PROF_000001_20260101000000000_X" / "data.bin").write_bytes(b"raw")
    elif fault == "closed":
        (watched / f"closed{number}").mkdir(mode=0o000)
    result.expected.add(names[0])


def _wait(watched: Path, result: Soak, longest_s: float) -> None:
    """Until everything written so far was told."""
    end = time.monotonic() + longest_s
    while time.monotonic() < end:
        _read(watched, result)
        if not result.missed:
            return
        time.sleep(0.5)


def _read(watched: Path, result: Soak) -> None:
    path = watched / "advisor-reports" / "runs.jsonl"
    if not path.exists():
        return
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    result.told = Counter(line["entries"][0] for line in lines)
    result.errors = Counter(line["error"].partition("\n")[0][:60] for line in lines if "error" in line)


def main(arguments: list[str]) -> int:
    """Prints what became of the soak; 1 where a recording was missed or told twice, or memory grew by a third."""
    recordings, seed = (int(each) for each in [*arguments, "300", "1"][:2])
    with tempfile.TemporaryDirectory() as folder:
        result = soak(Path(folder), recordings, seed, print)
    early, late = max(result.rss_kb[:5]), max(result.rss_kb[-5:])
    print(f"{result.written} written, {len(result.expected)} stayed, {sum(result.told.values())} told "
          f"({sum(result.errors.values())} with an error), missed {len(result.missed)}, twice {len(result.twice)}; "
          f"watcher killed {result.restarts}×, its worker {result.worker_kills}×; "
          f"memory {early // 1024} MB early, {late // 1024} MB late; {result.seconds:.0f} s")  # fmt: skip
    for error, count in result.errors.most_common():
        print(f"  {count} × {error}")
    for name in sorted(result.missed | result.twice):
        print(f"  {name}: told {result.told[name]} times")
    if "Traceback" in result.output:
        print(result.output[-3000:])
    return int(bool(result.missed or result.twice or late > 1.33 * early or "Traceback" in result.output))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
