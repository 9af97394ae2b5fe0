"""Where ranks are reduced: in this process, in several, or on a running Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from pathlib import Path

from advisor.errors import UsageError
from advisor.sources.base import Profile

PARALLEL_BYTES = 48_000_000
"""Below this much input a process pool costs more than it brings."""


def input_sizes(profile: Profile, tables: Collection[str]) -> list[int]:
    """Bytes that reading these tables takes, rank by rank; a file that vanished counts nothing."""
    return [sum(_size(path) for table in set(tables) & set(rank.tables) for path in rank.tables[table].paths)
            for rank in profile.ranks]  # fmt: skip


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def executor(ranks: int, size: int, jobs: int = 0, cluster: str | None = None) -> Iterator[Executor | None]:
    """An executor for `ranks` tasks over `size` bytes of input, or None where this process does best alone.

    `jobs` 0 means one process a processor, where the input is large enough. Raises UsageError where the cluster's
    scheduler does not answer.
    """
    if cluster:
        with _cluster(cluster) as pool:
            yield pool
        return
    processes = min(jobs or os.cpu_count() or 1, ranks)
    if processes < 2 or (not jobs and size < PARALLEL_BYTES):
        yield None
        return
    with ProcessPoolExecutor(processes, _processes()) as local:
        yield local


def _processes() -> BaseContext:
    """Processes that share their imports where the system can fork from a server, else fresh ones."""
    import multiprocessing

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pandas", "msgspec", "advisor.facts.registry", "advisor.sources.csvfiles"])
    return context


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster needs the extra: pip install 'advisor[cluster]'") from None
    try:
        client = Client(address, timeout=15)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no scheduler answers at {address}: {error}", hint="start one with `dask scheduler`"
        ) from None
    with client:
        yield client.get_executor(retries=3)
