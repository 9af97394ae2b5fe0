"""Time and memory of a thousand ranks, and the size of their report: simulated small profiles, one slow rank among
them.

python -m benchmarks.cluster_scale --ranks 1024 --jobs 2
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.simulator import Fault, Scenario, simulate, write_profile


def scenario(ranks: int) -> Scenario:
    """Eight-way tensor parallel inside hosts, four stages, the rest data parallel; one rank a third slower."""
    tensor, pipeline = 8, 4
    return Scenario(
        data=max(ranks // (tensor * pipeline), 1), tensor=tensor, pipeline=pipeline, layers=1, micro_batches=4, steps=3,
        kernel_us=1200.0, gradient_mb_per_layer=8.0, activation_mb=1.0, buckets=1,
        faults=(Fault("slow_compute", ranks // 3, 0.35),), seed=1,
    )  # fmt: skip


def main() -> None:
    """Generates, advises, prints one line of a table."""
    from advisor.pipeline import Options, advise
    from advisor.render import render
    from advisor.ruleset.files.loader import load_rules

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="folder to write to and keep, or to read if it exists")
    arguments = parser.parse_args()
    folder = Path(arguments.keep or tempfile.mkdtemp(prefix="advisor-scale-"))
    if not any(folder.glob("*_ascend_*")):
        began = time.perf_counter()
        write_profile(simulate(scenario(arguments.ranks)), folder)
        print(f"written in {time.perf_counter() - began:.0f} s")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    began, used = time.perf_counter(), time.process_time()
    report = advise([folder], load_rules(strict=False), Options(jobs=arguments.jobs))
    seconds, here = time.perf_counter() - began, time.process_time() - used
    began = time.perf_counter()
    page = render(report, "html")
    drawn = time.perf_counter() - began
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    roots = [f"{f.verdict} {f.subject.id} ({f.severity.value})" for f in report.findings if f.role == "root_cause"]
    print("| ranks | input | wall | processor | peak memory (main, largest worker) | page | findings | root causes |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {arguments.ranks} | {size / 1e6:.0f} MB | {seconds:.0f} s "
        f"| {here + children.ru_utime + children.ru_stime:.0f} s "
        f"| {peak:.0f} MB, {children.ru_maxrss / 1024:.0f} MB "
        f"| {len(page.encode()) / 1e3:.0f} kB in {drawn:.1f} s | {len(report.findings)} | {', '.join(roots)} |"
    )
    if not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
