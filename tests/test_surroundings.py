"""Whatever a command is started in: a clear word and the right status, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROFILE = Path(__file__).resolve().parents[1] / "examples" / "slow-rank-pipeline"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="file descriptors and limits of POSIX")


def _advise(before: str = "", after: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = f"{before} {sys.executable} -m advisor advise {PROFILE} -q --jobs 1 {after}"
    where = {"PYTHONPATH": os.pathsep.join([str(PROFILE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])}
    whole = {**os.environ, **where, **environment}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, errors="replace", env=whole)


def test_closed_streams_change_no_status() -> None:
    """Where standard output or error is closed, the verdict still decides the status, and what is lost is told."""
    silent = _advise(after="--fail-on high >&-")
    assert silent.returncode in (0, 1) and "standard output is closed" in silent.stderr
    unheard = _advise(after="2>&-")
    assert unheard.returncode == 0 and "rank" in unheard.stdout


def test_an_encoding_without_chinese_is_spelt_out() -> None:
    """PYTHONIOENCODING=latin-1 cannot hold Chinese: it is escaped, and the report is whole."""
    done = _advise(after="--lang zh", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and "\\u" in done.stdout and "Error" not in done.stderr


@pytest.mark.parametrize("threads", ["0", "-1", "many", "٣"])
def test_an_impossible_number_of_threads_is_ignored(threads: str) -> None:
    """POLARS_MAX_THREADS=0 makes the library panic, which a shell reads as "gate failed": it is told and left out."""
    done = _advise(POLARS_MAX_THREADS=threads)
    assert done.returncode == 0 and "no number of threads" in done.stderr


def test_a_working_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    """The command says what is wrong with where it stands."""
    gone = tmp_path / "gone"
    done = _advise(before=f"mkdir {gone}; cd {gone}; rmdir {gone};")
    assert done.returncode == 2 and "working folder is gone" in done.stderr


@pytest.mark.parametrize("kilobytes", [150_000, 300_000, 600_000])
def test_little_memory_is_told(kilobytes: int) -> None:
    """With too little address space there is no verdict (3): no abort of a native library, no half of a report."""
    done = _advise(before=f"ulimit -v {kilobytes};")
    assert done.returncode == 3 and ("memory" in done.stderr or "address space" in done.stderr), done.stderr
    assert "Traceback" not in done.stderr and not done.stdout
