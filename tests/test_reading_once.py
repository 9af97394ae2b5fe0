"""Nothing is read twice: opens and bytes of every file of a profile, counted by the system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers.large import real_size, write

COUNT = """
import json, sys
opened = {}
def hook(event, arguments):
    if event in ("open", "sqlite3.connect") and isinstance(arguments[0], str):
        path = arguments[0].removeprefix("file:").partition("?")[0]
        opened[path] = opened.get(path, 0) + 1
from advisor.pipeline import Options, measure
def read():
    return int(open("/proc/self/io").read().split()[1])
measure([sys.argv[1]], None, Options(jobs=1))  # imports what is imported late
sys.addaudithook(hook)
before = read()
measure([sys.argv[2]], None, Options(jobs=1))
print(json.dumps([read() - before, opened]))
"""
SNIFFED = 1.1
"""Bytes read for each byte there is: beginnings are looked at to tell encodings and columns."""
OPENS = 5


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["mindspore", "pytorch"])
def test_every_file_is_read_once(tmp_path: Path, kind: str) -> None:
    """All facts of a profile cost little more reading than its files have bytes, and no file is opened again and
    again."""
    import json

    small = write(real_size(2, kind, steps=2, kernels=40), tmp_path / "small")
    whole = write(real_size(2, kind, steps=3, kernels=4000), tmp_path / "whole")
    ended = subprocess.run(
        [sys.executable, "-c", COUNT, str(small), str(whole)], capture_output=True, text=True, check=True,
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
    )  # fmt: skip
    read, opened = json.loads(ended.stdout)
    size = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    assert read <= SNIFFED * size
    times = Counter({Path(path).name: count for path, count in opened.items() if path.startswith(str(whole))})
    assert times["communication.json"] == times["trace_view.json"] == 1
    assert max(times.values()) <= OPENS
