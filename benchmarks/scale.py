"""Time and memory of `advisor advise` on full-size profiles, against a bare scan of the same bytes.

    python -m benchmarks.scale [--work DIR] [--ranks 8] [--steps 15] [--repeat 2] [--kinds mindspore pytorch database]

Writes a profile of each kind (benchmarks/large_profiles.py), then runs in turn, each in processes of its own on as many
processors: a bare scan (duckdb: every event of trace_view.json with four fields, every row and column of the CSV files,
every operation of the communication files; SQLite itself: every value of the tables that an analysis reads; nothing is
kept), and `advisor advise`. Both are repeated and the least is kept: other work on the machine only ever adds. Ratios
of one run are comparable between machines, seconds are not. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.large_profiles import write
from benchmarks.large_workload import KINDS, real_size

SCAN = """
import glob, os, sqlite3, sys
from multiprocessing import get_context
TABLES = ("STRING_IDS", "COMPUTE_TASK_INFO", "TASK", "TASK_PMU_INFO", "COMMUNICATION_OP", "CANN_API", "PYTORCH_API",
          "StepTraceTime", "CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix")
def scan(folder):
    import duckdb
    d = duckdb.connect()
    d.execute("SET threads = 1")
    for path in glob.glob(folder + "/*.csv"):
        d.execute(f"SELECT max(hash(COLUMNS(*))) FROM read_csv('{path}', all_varchar = true)").fetchall()
    for path in glob.glob(folder + "/trace_view.json"):
        columns = "{ph: 'VARCHAR', name: 'VARCHAR', ts: 'VARCHAR', dur: 'VARCHAR'}"
        d.execute(f"SELECT ph, count(*), max(name), max(ts), max(dur) FROM read_json('{path}', format = 'array', "
                  f"columns = {columns}, maximum_object_size = 67108864) GROUP BY ph").fetchall()
    for path in glob.glob(folder + "/communication*.json"):
        d.execute(f"SELECT max(length(json)) FROM (SELECT unnest(json_extract(json, '$.*.*.*')) AS json FROM "
                  f"read_json_objects('{path}', maximum_object_size = 268435456))").fetchall()
    for path in glob.glob(folder + "/*.db"):
        c = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        for table in TABLES:
            columns = [row[1] for row in c.execute(f"PRAGMA table_info({table})")]
            if columns:
                c.execute(f"SELECT {', '.join(f'max({name})' for name in columns)} FROM {table}").fetchall()
if __name__ == "__main__":
    with get_context("spawn").Pool(min(os.cpu_count() or 1, len(sys.argv) - 1)) as pool:
        pool.map(scan, sys.argv[1:], chunksize=1)
"""


@dataclass(frozen=True)
class Cost:
    """One run: wall clock and processor seconds, and the highest sum of resident memory over its processes."""

    wall_s: float
    cpu_s: float
    rss_mb: float


def children_of(pid: int) -> list[int]:
    """The process and all its descendants (Linux)."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [p for child in task.read_text().split() for p in children_of(int(child))]
        except OSError:
            continue
    return found


def resident_mb(pid: int) -> float:
    """Memory of a process without what it shares with others, where the system tells."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    fields = {line.split(":")[0]: line.split()[1] for line in text.splitlines()[1:] if len(line.split()) > 1}
    return int(fields.get("Pss", 0)) / 1024


def processor_s(pid: int) -> float:
    """Processor seconds that a process itself has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command: list[str]) -> Cost:
    """Runs a command to its end and watches it with everything it starts: processor seconds twenty times a second,
    memory four times: to tell it, the system walks through all pages of a process, 17 ms for a gigabyte.

    Modules are compiled once and kept, as on a user's machine: without, each process would compile all of them anew.
    """
    start = time.perf_counter()
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=surroundings)
    peak = 0.0
    used: dict[int, float] = {}
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        for number in itertools.count():
            if done.wait(0.05):
                return
            pids = children_of(process.pid)
            used.update((pid, max(seconds, used.get(pid, 0.0))) for pid in pids if (seconds := processor_s(pid)))
            if number % 5 == 0:
                peak = max(peak, sum(resident_mb(pid) for pid in pids))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    _, errors = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)[:200]} ended with {process.returncode}:\n{errors.decode()[-2000:]}")
    return Cost(time.perf_counter() - start, sum(used.values()), peak)


def least(costs: list[Cost]) -> Cost:
    """The least time and processor use, and the highest memory."""
    return Cost(min(c.wall_s for c in costs), min(c.cpu_s for c in costs), max(c.rss_mb for c in costs))


def compare(profile: Path, repeat: int) -> tuple[Cost, Cost, float]:
    """(bare scan, advise, bytes read) of one profile, measured in turn."""
    outputs = sorted(profile.glob("*/ASCEND_PROFILER_OUTPUT"))
    size = sum(path.stat().st_size for folder in outputs for path in folder.iterdir())
    scans, advised = [], []
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(SCAN)
        script.flush()
        for _ in range(repeat):
            scans.append(run([sys.executable, script.name, *map(str, outputs)]))
            advised.append(run([sys.executable, "-m", "advisor", "advise", str(profile)]))
    return least(scans), least(advised), size


def main() -> None:
    """Command line: prints one table row per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="where profiles lie, or are written to (default: a temporary folder)")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=15, help="of 13,504 kernels and 1,038 collectives each")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    heading = ("kind", "ranks", "kernels a rank", "MB", "scan s", "scan CPU s", "scan MB", "advise s", "advise CPU s",
               "ratio by the clock", "ratio of CPU", "peak MB")  # fmt: skip
    print("| " + " | ".join(heading) + " |\n" + "|---" * len(heading) + "|")
    with tempfile.TemporaryDirectory() as temporary:
        for kind in args.kinds:
            load = real_size(args.ranks, kind, args.steps)
            profile = (args.work or Path(temporary)) / f"{kind}-{args.ranks}x{args.steps}"
            if not profile.is_dir():
                write(load, profile, os.cpu_count() or 1)
            scan, advise, size = compare(profile, args.repeat)
            print(
                f"| {kind} | {args.ranks} | {args.steps * load.kernels:,} | {size / 1e6:.0f} | {scan.wall_s:.1f} | "
                f"{scan.cpu_s:.1f} | {scan.rss_mb:.0f} | {advise.wall_s:.1f} | {advise.cpu_s:.1f} | "
                f"{advise.wall_s / scan.wall_s:.2f} | {advise.cpu_s / scan.cpu_s:.2f} | {advise.rss_mb:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
