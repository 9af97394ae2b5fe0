"""Time and memory of thousands of ranks with communication files of real size, which they share by links.

    python -m benchmarks.linked_ranks --ranks 64 128 256 [--steps 15] [--cluster 2]
    python -m benchmarks.linked_ranks --ranks 10000 --steps 0

Eight ranks' communication.json of 21 MB and their matrices stand behind all; step tables are each rank's own, and one
rank is slow. With `--steps 0` there are step tables and small matrices only. `--cluster 1 2` adds runs on Dask clusters
of so many local workers, whose reports and exit statuses have to be the same; with `--kill 20` each is run once more,
and a worker is killed after so many seconds, as soon as it has ranks in hand.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.large_communication import Collective, Group, collective, write_communication, write_matrix
from benchmarks.scale import Cost, run

STEP_US = 90_000.0
TEMPLATES = 8
_START = 1_700_000_000_000_000_000


def _collectives(world: Group, rank: int, steps: int, each: int) -> list[Collective]:
    found: list[Collective] = []
    for step in range(steps):
        for ordinal in range(each):
            start = _START + (step * each + ordinal) * 80_000
            lasts = 60_000 + (rank * 131 + ordinal * 17) % 4_000
            found.append(collective((world,), step, ordinal, len(found), start, lasts))
    return found


def write_linked(folder: Path, ranks: int, steps: int) -> Path:
    """A profile of so many ranks; `steps` with 1,038 collectives each, or none at all but in the matrix."""
    world = Group("hccl_world_group", tuple(range(ranks)))
    shared = folder.parent / f"{folder.name}-shared"
    shared.mkdir(parents=True)
    for rank in range(TEMPLATES):
        found = _collectives(world, rank, max(steps, 1), 1038 if steps else 3)
        if steps:
            write_communication(shared / f"communication_{rank}", found)
        write_matrix(shared / f"matrix_{rank}", found, rank, "op_name")
    group = {"group_name": world.name, "group_rank": 0, "global_ranks": world.members}
    (shared / "metadata").write_text(json.dumps({"parallel_group_info": {world.key: group}}))
    for rank in range(ranks):
        own = folder / f"host{rank // 8}_{4000 + rank}_20260101000000000_ascend_ms"
        output = own / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        slow = 1.3 if rank == ranks // 3 else 1.0
        exposed = 40_000 - STEP_US * (slow - 1)
        rows = (
            f"{step},{STEP_US * slow + step + rank % 7:.3f},{exposed:.3f},500,41000,9000,0,0,40000,10\n"
            for step in range(max(steps, 5))
        )
        (output / "step_trace_time.csv").write_text(
            "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
            "Communication(Not Overlapped and Exclude Receive),Preparing\n" + "".join(rows)
        )
        os.link(shared / f"matrix_{rank % TEMPLATES}", output / "communication_matrix.json")
        if steps:
            os.link(shared / f"communication_{rank % TEMPLATES}", output / "communication.json")
        os.link(shared / "metadata", own / "profiler_metadata.json")
        (own / f"profiler_info_{rank}.json").write_text(json.dumps({"ms_profiler_info": {"rank_id": str(rank)}}))
    return folder


ON_CLUSTER = """
import os, signal, sys, threading, time
from dask.distributed import LocalCluster
from advisor.cli.main import main
killed = []
def kill(cluster, after):
    time.sleep(after)
    while not killed:
        for worker in list(cluster.scheduler.workers.values()):
            nanny = next((n for n in cluster.workers.values() if n.worker_address == worker.address), None)
            if worker.processing and nanny is not None:
                os.kill(nanny.pid, signal.SIGKILL)
                killed.append(len(worker.processing))
                return
        time.sleep(0.02)
if __name__ == "__main__":
    folder, workers, after, report = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    if after:
        threading.Thread(target=kill, args=(cluster, after), daemon=True).start()
    began = time.perf_counter()
    command = ["advise", "-q", folder, "--fail-on", "low", "--format", f"json:{report}"]
    status = main([*command, "--cluster", cluster.scheduler_address])
    seconds = time.perf_counter() - began
    with open(report + ".told", "w") as told:
        told.write(f"{seconds:.1f} {status} {killed[0] if killed else 0}")
    cluster.close()
    sys.exit(status)
"""


@dataclass(frozen=True)
class Told:
    """How one run on a cluster ended: by the clock, with which status and report, and the ranks that a killed worker
    had in hand."""

    seconds: float
    status: int
    in_hand: int
    report: bytes


def measure(profile: Path, *options: str) -> Cost:
    """One run of the command line."""
    return run([sys.executable, "-m", "advisor", "advise", "-q", "--format", "html:/dev/null", str(profile), *options])


def on_cluster(profile: Path, workers: int, kill_after: float = 0.0) -> Told:
    """A run on a local cluster whose start is not counted. A worker is killed after so many seconds, as soon as it has
    ranks to reduce."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        script = Path(folder, "on_cluster.py")
        script.write_text(ON_CLUSTER)
        command = [sys.executable, str(script), str(profile), str(workers), str(kill_after), str(report)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        told = Path(f"{report}.told")
        if not told.is_file() or not report.is_file():
            raise SystemExit(f"the run on a cluster ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        seconds, status, in_hand = told.read_text().split()
        return Told(float(seconds), int(status), int(in_hand), report.read_bytes())


def compare_clusters(profile: Path, sizes: Sequence[int], kill_after: float) -> None:
    """Prints a line for each size of cluster; with `kill_after`, one more for a run whose worker is killed at work.
    Ends with an error where a run's report or status is not that of the first."""
    first: Told | None = None
    for workers in sizes:
        for after in (0.0, kill_after) if kill_after else (0.0,):
            told = on_cluster(profile, workers, after)
            first = first or told
            same = told.report == first.report and told.status == first.status
            killed = f", one of them killed with {told.in_hand} ranks in hand" if after else ""
            faster = f"{first.seconds / told.seconds:.2f} times as fast as the first"
            report = "the same" if same else "ANOTHER"
            print(f"{workers} workers{killed}: {told.seconds:.1f} s ({faster}), status {told.status}, report {report}",
                  flush=True)  # fmt: skip
            if not same:
                raise SystemExit("the report or the status of a run on a cluster is another")
            if after and not told.in_hand:
                raise SystemExit("no worker was killed at work: the run was over before")


def main() -> None:
    """Command line: one table row per number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="where profiles lie, or are written to (default: a temporary folder)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--jobs", default="0")
    parser.add_argument("--cluster", type=int, nargs="*", default=[])
    parser.add_argument("--kill", type=float, default=0.0, help="seconds until a worker of the cluster is killed")
    args = parser.parse_args()
    print("| ranks | GB read | seconds | processor seconds | its ms a rank | peak MB |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        for ranks in args.ranks:
            folder = (args.work or Path(temporary)) / f"linked-{ranks}x{args.steps}"
            if not folder.is_dir():
                write_linked(folder, ranks, args.steps)
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            began = time.perf_counter()
            cost = measure(folder, "--jobs", args.jobs)
            print(
                f"| {ranks} | {size / 1e9:.2f} | {time.perf_counter() - began:.0f} | {cost.cpu_s:.0f} | "
                f"{cost.cpu_s / ranks * 1000:.0f} | {cost.rss_mb:.0f} |",
                flush=True,
            )
            compare_clusters(folder, args.cluster, args.kill)


if __name__ == "__main__":
    main()
