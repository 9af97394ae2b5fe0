"""Nothing is read twice: opens and bytes of every file of a profile, counted by the system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
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
from advisor.sources.database import rowchecks
rowchecks.LOOKED_AT = 100  # of full-size tables the first rows are a small part
def read():
    return int(open("/proc/self/io").read().split()[1])
measure([sys.argv[1]], None, Options(jobs=1))  # imports what is imported late
sys.addaudithook(hook)
before = read()
measure([sys.argv[2]], None, Options(jobs=1))
print(json.dumps([read() - before, opened]))
"""
SNIFFED = {"mindspore": 1.1, "pytorch": 1.1, "database": 1.2}
"""Bytes read for each byte there is: beginnings are looked at to tell encodings and columns. Of databases the texts,
the schema and the largest number of a rank are read more than once."""
OPENS = {"communication.json": 3, "trace_view.json": 2, "communication_matrix.json": 3}
"""Times a file is opened: to see whether one may, and to read it; also a matrix, of which two want something, how its
groups are numbered and its links. The first of a kind is opened once more: its beginning tells what it calls the
columns that evidence names."""
MOST_OPENS = {"mindspore": 5, "pytorch": 5, "database": 16}
"""Of every other file; one of databases is opened for each of its tables."""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["mindspore", "pytorch", "database"])
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
    assert read <= SNIFFED[kind] * size
    times: dict[str, set[int]] = defaultdict(set)
    for path, count in opened.items():
        if path.startswith(str(whole)):
            times[Path(path).name].add(count)
    told = {name: OPENS[name] for name in OPENS if kind != "database"}
    assert {name: max(times[name]) for name in told} == told
    assert max(max(counts) for counts in times.values()) <= MOST_OPENS[kind]
