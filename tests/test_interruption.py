"""Interrupted runs: no half report under the final name, no temporary files, no orphans, and a message."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from advisor.basics.errors import UsageError
from advisor.basics.files import write_atomically
from advisor.execution import Reduced, executor, run_each
from advisor.sources.base import Rank

HEADING = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Two ranks of three steps."""
    for rank in range(2):
        output = tmp_path / "profile" / f"w_{rank}_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        rows = "".join(f"{step},{90000 + rank},1000,500,1500,9000\n" for step in range(5, 8))
        (output / "step_trace_time.csv").write_text(HEADING + rows)
    return tmp_path / "profile"


SLOW = """
import os, sys, time
import advisor.render as rendering, advisor.basics.files as files
kind, ready = sys.argv[1:3]
def stall(*given, **named):
    os.close(os.open(ready, os.O_CREAT))    # a file object that dies would swallow what the signal raises
    time.sleep(60)
if kind == "rendering":
    rendering.render = stall
else:
    files.os.fsync = stall
from advisor.cli.main import main
sys.exit(main(sys.argv[3:]))
"""


def interrupt(profile: Path, tmp_path: Path, kind: str, number: int) -> tuple[int, str, list[str]]:
    """Runs advise until it stalls at `kind`, sends a signal, and gives status, messages and the files left."""
    out, ready = tmp_path / "out", tmp_path / "ready"
    out.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, kind, str(ready), "advise", str(profile), "--format", f"json:{out / 'r.json'}"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ready.exists(), process.communicate()[1]
    process.send_signal(number)
    try:
        _, messages = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    return process.returncode, messages, [path.name for path in out.iterdir()]


@pytest.mark.parametrize("kind", ["rendering", "writing"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_half_done(profile: Path, tmp_path: Path, kind: str, number: int) -> None:
    """Neither a report nor its temporary file stays, whenever the signal comes; a sentence says so, no traceback."""
    status, messages, left = interrupt(profile, tmp_path, kind, number)
    assert status == 128 + number
    assert left == []
    assert "no unfinished file was left" in messages
    assert "Traceback" not in messages


def test_a_full_disk_keeps_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new text goes to a file beside the old one; where the disk is full the old one is untouched."""
    target = tmp_path / "report.json"
    target.write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def limited(size: int) -> None:
    """No file of this process, or of its children, may grow beyond so many bytes: writing more fails half-way."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


_NEW_RULE = [
    "rules", "new", "OUT", "--id", "ACME001", "--verdict", "acme/x", "--fact", "step.idle_share", "--op", ">",
    "--threshold", "0.5", "--origin", "x", "--title", "Idle", "--title-zh", "Idle",
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (["advise", "PROFILE", "--format", "json:OUT"], 4096),
        (["advise", "PROFILE", "--format", "html:OUT"], 4096),
        (["facts", "PROFILE", "--save", "OUT"], 512),
        (["baseline", "add", "PROFILE", "--baseline", "OUT"], 512),
        (_NEW_RULE, 64),
    ],
)
def test_a_disk_that_fills_up_leaves_nothing(profile: Path, tmp_path: Path, arguments: list[str], size: int) -> None:
    """Writing fails in the middle of the file: a message with the place, no half file, the older one untouched."""
    out = tmp_path / "out"
    out.mkdir()
    folder = arguments[0] in ("baseline", "rules")
    target = out / ("new" if folder else "old.txt")
    if not folder:
        target.write_text("old")
    named = {"PROFILE": str(profile), "OUT": str(target)}
    ended = subprocess.run(
        [sys.executable, "-m", "advisor", *(named.get(each, each) for each in arguments)],
        capture_output=True, text=True, timeout=60, preexec_fn=lambda: limited(size),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert "cannot be written" in ended.stderr and "Traceback" not in ended.stderr
    assert [path.read_text() for path in out.rglob("*") if path.is_file()] == ([] if folder else ["old"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [[], ["--format", "json:/dev/full"]])
def test_a_full_device_is_a_message(profile: Path, arguments: list[str]) -> None:
    """Output that does not fit ends with 2 and the reason, without a traceback from the interpreter's end."""
    command = [sys.executable, "-m", "advisor", "advise", str(profile), *arguments]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr


def test_a_reader_that_leaves_is_no_error(profile: Path) -> None:
    """`advisor advise … | head -1` ends quietly."""
    command = f"{sys.executable} -m advisor advise {profile} --format html | head -c 10"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr


def test_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As root, a rename over /dev/null would destroy it for everybody."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def measured(rank: Rank, names: tuple[str, ...]) -> Reduced:
    """Stands for a reduction: kills its process for rank 1, which takes the others of the pool with it."""
    if rank.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Reduced({"rank": rank.rank}, [], frozenset())


def test_a_killed_worker_loses_one_rank_at_most(tmp_path: Path) -> None:
    """Ranks whose process was killed along with another's are measured again; the one that kills is left out, told."""
    ranks = [Rank(number, tmp_path / str(number), base=tmp_path) for number in range(4)]
    for rank in ranks:
        rank.root.mkdir()
    with executor(4, 0, jobs=2) as pool:
        assert pool is not None
        results = list(run_each(pool, measured, ranks, ()))
    assert [found.reductions.get("rank") for found in results] == [0, None, 2, 3]
    assert "was killed" in results[1].problems[0].problem


def wait_for(path: Path) -> bool:
    """Whether the file is there within a minute."""
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def met(rank: Rank, names: tuple[str, ...]) -> Reduced:
    """Stands for a reduction: whether the process that asked for it did something else in the meantime."""
    (rank.root / "begun").touch()
    return Reduced({"met": wait_for(rank.root / "ready")}, [], frozenset())


def test_while_ranks_are_read_what_comes_after_is_got_ready(tmp_path: Path) -> None:
    """The first ranks are read while this process imports the rest: neither waits for the other to be done."""

    def get_ready() -> None:
        assert wait_for(tmp_path / "begun")
        (tmp_path / "ready").touch()

    ranks = [Rank(number, tmp_path, base=tmp_path) for number in range(2)]
    with executor(2, 0, jobs=2) as pool:
        assert pool is not None
        results = list(run_each(pool, met, ranks, (), get_ready))
    assert [found.reductions for found in results] == [{"met": True}] * 2


def test_an_interrupt_ends_the_workers() -> None:
    """The pool is left at once, not when the longest task is done, and its processes are gone."""
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), executor(2, 0, jobs=2) as pool:
        assert pool is not None
        future = pool.submit(time.sleep, 60)
        pool.submit(os.getpid).result()
        processes = list(pool._processes.values())  # type: ignore[attr-defined]
        assert future.running()
        raise KeyboardInterrupt
    for process in processes:
        process.join(10)
        assert not process.is_alive()
    assert time.monotonic() - started < 30


def test_a_broken_pool_is_what_a_killed_worker_gives() -> None:
    """The fallback rests on this error of the standard library."""
    with pytest.raises(BrokenProcessPool), executor(2, 0, jobs=2) as pool:
        assert pool is not None
        pool.submit(os._exit, 1).result()


KINDS = """
import threading
from advisor.execution import executor
def kind():
    with executor(2, 1 << 40, 2) as pool:
        return pool._mp_context.get_start_method()
alone, held = kind(), threading.Event()
threading.Thread(target=held.wait).start()
print(alone, kind())
held.set()
"""


@pytest.mark.skipif(sys.platform != "linux" or sys.version_info < (3, 11), reason="nothing is copied there")
def test_a_process_with_threads_is_not_copied() -> None:
    """A copy may hold what a thread was just changing, a lock for one, and wait for it for ever."""
    surroundings = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", KINDS], capture_output=True, text=True, timeout=60, env=surroundings)
    assert done.stdout.split() == ["fork", "forkserver"], done.stderr


SCRIPT = """
import sys
from advisor import advise, load_rules
print("training starts")
print(len(advise([sys.argv[1]], load_rules(), jobs=2).profile.ranks), "ranks")
"""


def test_a_training_script_is_not_run_again_in_the_workers(profile: Path, tmp_path: Path) -> None:
    """Scripts that call the advisor after training have no guard around what they do."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, profile], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "training starts\n2 ranks\n", done.stderr


WORKERS = """
import multiprocessing, os, sys, time
from pathlib import Path
from advisor.execution import executor
with executor(2, 1 << 40, 2) as pool:
    started = [pool.submit(os.getpid) for _ in range(2)]
    stalled = [pool.submit(time.sleep, 120) for _ in range(2)]
    pids = {each.result() for each in started}
    Path(sys.argv[1]).write_text(" ".join(map(str, pids)))
    time.sleep(120)
"""


def is_running(pid: int) -> bool:
    """Whether a process lives; one that nobody has buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path, threads: str) -> None:
    """A CI step that kills the advisor gets its pipes back: nothing started by it lives on, be it copied from a process
    of one thread or by a server."""
    told, surroundings = tmp_path / "pids", {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    process = subprocess.Popen([sys.executable, "-c", WORKERS, str(told)], stdout=subprocess.PIPE, env=surroundings)
    deadline = time.monotonic() + 60
    while not (told.exists() and told.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = [int(pid) for pid in told.read_text().split()]
    assert workers and all(map(is_running, workers))
    process.kill()
    process.communicate(timeout=30)  # ends once nobody holds the pipe any more: workers, and the server they come from
    while any(map(is_running, workers)) and time.monotonic() < deadline:  # files are closed before a process has ended
        time.sleep(0.05)
    assert not any(map(is_running, workers))
