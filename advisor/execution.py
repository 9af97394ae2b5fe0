"""Where ranks are reduced: in this process, in several, or on a running Dask cluster."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from advisor.basics.errors import NoVerdict, UsageError
from advisor.basics.garbage import collect_seldom, keep_memory, spare_lasting
from advisor.model import Problem
from advisor.sources.base import Profile, Rank

log = logging.getLogger("advisor")

Names = tuple[str, ...]


class Reduced(NamedTuple):
    """What is left of a rank: its reductions, what was told of its files, and which tables are its own."""

    reductions: dict[Any, Any]
    problems: list[Problem]
    tables: frozenset[str]


PARALLEL_BYTES = 48_000_000
"""Below this much input a process pool costs more than it brings."""
LEAST_ADDRESSES = 1_000_000_000
"""Bytes of address space below which the native libraries end the process instead of telling; where `ulimit -v` leaves
less, nothing is started."""


def input_sizes(profile: Profile, tables: Collection[str]) -> list[int]:
    """Bytes that reading these tables takes, rank by rank; a file that vanished counts nothing."""
    return [sum(_size(path) for table in set(tables) & set(rank.tables) for path in rank.tables[table].paths)
            for rank in profile.ranks]  # fmt: skip


def prepare(paths: Iterable[str | Path], jobs: int = 0, cluster: str | None = None, *, threads: bool) -> None:
    """Starts the server that processes are forked from while the caller still reads rules, where the input is so
    large that they will be needed: it takes as long to start as the rules to read. Not where they will be copies of
    this process, which may have no other `threads`."""
    if cluster or (jobs or os.cpu_count() or 1) < 2 or not (threads or _FORK is None) or not _is_large(paths):
        return
    _fresh()
    if _METHOD == "forkserver":
        from multiprocessing.forkserver import ensure_running

        with _uninterrupted():
            ensure_running()


def _is_large(paths: Iterable[str | Path]) -> bool:
    """Whether the files below hold enough for several processes; tells from the first few hundred folders."""
    size = 0
    for path in paths:
        for folder, _, files in itertools.islice(os.walk(path), 500):
            size += sum(_size(Path(folder, file)) for file in files)
            if size >= PARALLEL_BYTES:
                return True
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def require_memory() -> None:
    """Raises NoVerdict where a limit leaves too little address space to read profiles."""
    try:
        import resource
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise NoVerdict(
            f"a limit leaves {limit // 1_000_000} MB of address space; reading profiles needs "
            f"{LEAST_ADDRESSES // 1_000_000} MB",
            hint="raise it: ulimit -v",
        )


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
    with _local(processes) as pool:
        yield pool


@contextmanager
def _local(processes: int) -> Iterator[ProcessPoolExecutor]:
    """A process pool that ends with its user: an interrupt stops the workers instead of waiting for them."""
    pool = ProcessPoolExecutor(processes, _processes(), initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        workers = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        raise
    pool.shutdown()


def _start_worker() -> None:
    """Ctrl-C reaches the whole process group; only the process that the user started answers it."""
    threading.Thread(target=_end_with_parent, name="parent's end", daemon=True).start()
    collect_seldom()
    spare_lasting()
    keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end_with_parent() -> None:
    """Ends this worker as soon as the process that wants its results is gone, however that ended: what was killed
    tells nobody. The server that workers are forked from ends with the last of them."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def run_each(
    pool: Executor,
    function: Callable[[Rank, Names], Reduced],
    ranks: Sequence[Rank],
    names: Names,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[Reduced]:
    """What the function gives for each rank, in order; while the first are worked on, this process does what is to be
    done `meanwhile`. Where a worker was killed, the ranks it took with it get a process each; one that kills that too
    is left out and told."""
    futures: list[Future[Reduced] | None] = []
    for rank in ranks:
        try:
            futures.append(pool.submit(function, rank, names))
        except BrokenExecutor:
            futures.append(None)
    if meanwhile is not None:
        meanwhile()
    for rank, future in zip(ranks, futures, strict=True):
        try:
            if future is None:
                raise BrokenExecutor
            yield future.result()
        except BrokenExecutor:
            log.warning("a worker process was killed; rank %s is measured again in one of its own", rank.rank)
            yield _alone(function, rank, names)


def _alone(function: Callable[[Rank, Names], Reduced], rank: Rank, names: Names) -> Reduced:
    try:
        with _local(1) as pool:
            return pool.submit(function, rank, names).result()
    except BrokenExecutor:
        text = "its process was killed while it was measured (out of memory?); its facts are missing"
        return Reduced({}, [*rank.problems, Problem(rank.relative(rank.root), text)], frozenset(rank.tables))


_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_BASE: Any = multiprocessing.get_context(_METHOD)
_FORK: Any = multiprocessing.get_context("fork") if sys.platform == "linux" and sys.version_info >= (3, 11) else None
"""Copies of this process; older pools start some of them when threads of their own run already."""


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the process is started, and is blocked in it from its first moment: while it still imports,
    it would answer with a traceback. Only this process answers Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker(_BASE.Process):  # type: ignore[misc]  # which class it is depends on the platform
    """A process that does not run the caller's main module again: the advisor is called from training scripts, which
    begin to train where nothing keeps them from it, and a worker needs nothing of them."""

    def start(self) -> None:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            with _uninterrupted():
                super().start()
        finally:
            sys.modules["__main__"] = main


class _Context(type(_BASE)):  # type: ignore[misc]
    Process = _Worker


class _Fork(_BASE.Process if _FORK is None else _FORK.Process):  # type: ignore[misc]  # as above
    """A copy of this process, with all that it has imported."""

    def start(self) -> None:
        with _uninterrupted():
            super().start()


class _ForkContext(type(_BASE if _FORK is None else _FORK)):  # type: ignore[misc]
    Process = _Fork


_LOADED = ("pandas", "advisor.pipeline", "advisor.sources.text.csvfiles")
"""What a worker needs beside the families of facts."""


def _processes() -> BaseContext:
    """Copies of this process where nothing else runs in it, else those of a server: of a process with threads a copy
    may hold what one of them was just changing."""
    if not _is_alone():
        return _fresh()
    for module in _needed():
        import_module(module)
    context: BaseContext = _ForkContext()
    return context if _is_alone() else _fresh()


def _is_alone() -> bool:
    """Whether this process has a single thread, native ones counted, and may be copied."""
    return _FORK is not None and sum(1 for _ in Path("/proc/self/task").iterdir()) == 1


def _needed() -> list[str]:
    from advisor.facts.registry import MODULES

    return [*_LOADED, *(f"advisor.facts.{module}" for module in MODULES)]


def _fresh() -> BaseContext:
    """Processes that share their imports where the system can fork from a server, else fresh ones."""
    context: BaseContext = _Context()
    if _METHOD == "forkserver":
        context.set_forkserver_preload(_needed())
    return context


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster needs the extra: pip install 'advisor[cluster]'") from None
    try:
        client: Any = Client(address, timeout=15)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no scheduler answers at {address}: {error}", hint="start one with `dask scheduler`"
        ) from None
    with client:
        yield client.get_executor(retries=3)
