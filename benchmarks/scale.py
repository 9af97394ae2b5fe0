"""Time and memory of `advisor advise` on full-size profiles, against a bare scan of the same bytes.

    python benchmarks/scale.py [--work DIR] [--ranks 8] [--steps 15] [--repeat 3]

Writes a profile (benchmarks/large_profiles.py), then runs in turn, each in processes of its own on as many processors:
a bare scan with the fastest readers known (trace_view.json by msgspec in blocks that stay in the cache, decoded to the
five fields of an event that an analysis needs; kernel_details.csv by polars, the columns that it needs, as texts; one
process a processor, nothing done with what was read), and `advisor advise`. Both are repeated and the least is kept:
other work on the machine only ever adds. Ratios of one run are comparable between machines, seconds are not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from large_profiles import Workload, write

SCAN = """
import os, sys
os.environ["POLARS_MAX_THREADS"] = "1"
from multiprocessing import get_context
WANTED = ("Step ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core", "Start Time(us)", "Duration(us)",
          "Wait Time(us)", "Block Num", "Input Shapes", "Input Data Types", "Input Formats", "Output Shapes",
          "Output Data Types", "cube_utilization(%)")
def scan(folder):
    import msgspec, polars
    table = folder + "/kernel_details.csv"
    with open(table) as stream:
        heading = stream.readline().strip().split(",")
    wanted = [i for i, name in enumerate(heading) if name in WANTED or name.endswith("_ratio")]
    polars.read_csv(table, infer_schema=False, columns=wanted)
    class Event(msgspec.Struct, gc=False):
        ph: str
        name: str = ""
        pid: int | str = 0
        ts: msgspec.Raw = msgspec.Raw(b"")
        dur: float | str | None = None
    decoder = msgspec.json.Decoder(list[Event])
    rest = b""
    with open(folder + "/trace_view.json", "rb") as stream:
        stream.read(1)
        while data := stream.read(1 << 19):
            rest += data
            cut = rest.rfind(b"}, {")
            decoder.decode(b"[" + rest[:cut + 1] + b"]")
            rest = rest[cut + 3:]
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
    """Runs a command to its end and watches it with everything it starts, twenty times a second."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0.0
    used: dict[int, float] = {}
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            pids = children_of(process.pid)
            used.update((pid, max(seconds, used.get(pid, 0.0))) for pid in pids if (seconds := processor_s(pid)))
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
    parser.add_argument("--work", type=Path, help="where to write profiles (default: a temporary folder)")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=15, help="of 13,504 kernels each")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    sizes = [(args.ranks, args.steps)]
    sizes += [(ranks, args.steps) for ranks in (4, 2) if ranks < args.ranks]
    sizes += [(args.ranks, args.steps * 2 // 5)] if args.steps > 2 else []
    heading = (
        "ranks",
        "kernels a rank",
        "MB",
        "scan s",
        "scan CPU s",
        "advise s",
        "advise CPU s",
        "wall ratio",
        "CPU ratio",
    )
    print("| " + " | ".join((*heading, "peak MB")) + " |\n" + "|---" * (len(heading) + 1) + "|")
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        for ranks, steps in sizes:
            load = Workload(ranks=ranks, steps=steps)
            profile = write(load, Path(folder) / f"{ranks}x{steps}", os.cpu_count() or 1)
            scan, advise, size = compare(profile, args.repeat)
            print(
                f"| {ranks} | {steps * load.kernels:,} | {size / 1e6:.0f} | {scan.wall_s:.1f} | {scan.cpu_s:.1f} | "
                f"{advise.wall_s:.1f} | {advise.cpu_s:.1f} | {advise.wall_s / scan.wall_s:.2f} | "
                f"{advise.cpu_s / scan.cpu_s:.2f} | {advise.rss_mb:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
