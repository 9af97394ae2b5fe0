"""Does the advice hold? A real MindSpore pipeline with a known fault is profiled, advised on, changed as advised, and
run again; the promised gain is compared with the measured one. No part of CI: the wheel is 800 MB.

    python3.11 -m venv VENV && VENV/bin/pip install mindspore==2.10.0 'numpy<2' pillow
    python benchmarks/closed_loop.py --python VENV/bin/python [--repeat 2] [--only FAULT ...]

Every unprofiled time is the least of `--repeat` runs: what else the machine does only adds time. Prints a table in
Markdown; `--folder` keeps the profiles.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORKER = HERE / "data_fault.py"
FAULTS = {
    "source_blocks": "source reads 6 ms a row, blocking, 1 worker",
    "source_iterable": "iterable source, 5 ms a row, 2 workers ignored",
    "map_blocks": "Python map, 6 ms a row, blocking, 1 worker",
    "map_blocks_batch_of_map": "per_batch_map, 25 ms a batch, 1 worker",
    "map_decodes": "C++ JPEG decode 1024 × 1024, 1 worker",
    "map_holds_lock": "Python map, 4 ms of processor a row, 2 threads",
    "source_holds_lock": "source, 4 ms of processor a row, 1 worker",
    "map_pauses": "map pauses 400 ms every 120 rows, prefetch 1",
    "zip_branch": "zip with a branch mapped 5 ms a row, 1 worker",
    "concat_branch": "second half of a concat mapped 6 ms a row, 1 worker",
    "loop_code": "20 ms of Python between iterator and network",
    "shuffle_start": "shuffle buffer of 400 rows, 4 ms each, to fill first",
    "healthy": "nothing (control)",
}
KNOB = {"Generator": "source_workers", "Batch": "batch_workers", "Map": "map_workers"}


def run_worker(python: Path, fault: str, changes: dict[str, Any], profile: Path | None = None) -> dict[str, Any]:
    """One run of the pipeline; raises with the worker's own words where it failed."""
    command = [str(python), str(WORKER), fault, json.dumps(changes)]
    if profile is not None:
        command += ["--profile", str(profile)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{fault} {changes}: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def advise(folder: str) -> dict[str, Any]:
    """The JSON report of the profile."""
    command = [sys.executable, "-m", "advisor", "advise", folder, "--format", "json", "-q"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent).stdout)


def changes_of(fault: str, finding: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The finding's first remedy as settings of the pipeline; empty where it asks for work no setting can do."""
    remedy = finding["remedies"][0]
    proposed = remedy["proposed"]
    value = int(proposed) if isinstance(proposed, (int, float)) else None
    kind = finding["subject"]["id"].partition("(")[0]
    knob = "branch_workers" if fault in ("zip_branch", "concat_branch") and kind == "Map" else KNOB.get(kind, "")
    changes: dict[str, Any] = {
        "raise-parallel-workers": {knob: value},
        "python-multiprocessing": {"processes": True, knob: value},
        "random-access-source": {"random_access": True, "source_workers": value},
        "move-code-into-pipeline": {"loop_burn_ms": 0, "batch_burn_ms": 20, "processes": True, "batch_workers": 2},
        "raise-prefetch": {"prefetch": value},
        "smaller-shuffle-buffer": {"buffer": 16},
    }.get(remedy["id"], {})
    return remedy["id"], changes


def loop(python: Path, fault: str, folder: Path, repeat: int) -> dict[str, Any]:
    """Base, profile, advice, the same run changed as advised."""
    base = [run_worker(python, fault, {}) for _ in range(repeat)]
    profiled = run_worker(python, fault, {}, folder / fault)
    report = advise(profiled["profile"])
    causes = [f for f in report["findings"] if f["role"] == "root_cause" and f["severity"] != "low"]
    result: dict[str, Any] = {"fault": fault, "step": "total_s" if fault == "shuffle_start" else "step_ms"}
    result["base"], result["profiled"] = least(base, result["step"]), scaled(profiled, result["step"])
    if not causes:
        return {**result, "finding": "none"}
    remedy, changes = changes_of(fault, causes[0])
    result |= {"finding": f"{causes[0]['verdict']} {causes[0]['subject']['id']}", "remedy": remedy, "changes": changes}
    result["others"] = [f"{f['verdict']} {f['subject']['id']}" for f in causes[1:]]
    result["promised"] = (causes[0]["saving"] or {}).get("us_per_step", 0.0) / 1e3
    if changes:
        result["after"] = least([run_worker(python, fault, changes) for _ in range(repeat)], result["step"])
    return result


def scaled(run: dict[str, Any], key: str) -> float:
    """Milliseconds a step; where the start counts, the whole run ÷ batches."""
    return run["step_ms"] if key == "step_ms" else 1e3 * run["total_s"] / run["batches"]


def least(runs: list[dict[str, Any]], key: str) -> float:
    return min(scaled(run, key) for run in runs)


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    cells = [FAULTS[result["fault"]], f"{result['base']:.1f} ({result['profiled']:.1f})", result["finding"]]
    if result.get("after") is not None:
        gained = result["base"] - result["after"]
        change = ", ".join(f"{name}={value}" for name, value in result["changes"].items())
        error = f"{100 * (result['promised'] / gained - 1):+.0f} %" if gained > 0 else "no gain"
        cells += [
            f"{result['remedy']}: {change}",
            f"{result['after']:.1f}",
            f"{result['promised']:.1f}",
            f"{gained:.1f}",
            error,
        ]
    else:
        cells += [result.get("remedy", ""), "", "", "", ""]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="interpreter that has MindSpore")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--folder", type=Path, help="keep the profiles here")
    options = parser.parse_args()
    probe = subprocess.run([str(options.python), "-c", "import mindspore"], capture_output=True, check=False)
    if probe.returncode:
        parser.exit(2, f"{options.python} has no MindSpore. Install it:\n{__doc__}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        print("| fault | step ms (profiled) | finding | change | after ms | promised ms | gained ms | promise ÷ gain |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for fault in options.only:
            try:
                print(row(loop(options.python, fault, folder, options.repeat)), flush=True)
            except (RuntimeError, subprocess.SubprocessError) as error:
                print(f"| {FAULTS[fault]} | failed: {error} |", flush=True)


if __name__ == "__main__":
    main()
