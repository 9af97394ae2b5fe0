"""The whole flow, and the only place that knows it: profile → tables → facts → findings → report."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.facts.base import FactSet, Family, Run
from advisor.facts.registry import catalogue, families, plan
from advisor.model import Problem, ProfileInfo, Report
from advisor.sources.base import Profile, Rank

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from advisor.ruleset.loader import RuleSet

log = logging.getLogger("advisor")

PARALLEL_BYTES = 48_000_000
"""Below this much input a process pool costs more than it brings."""

Progress = Callable[[int, int, str], None]
"""progress(ranks done, ranks in all, what was just done)"""


@dataclass
class Options:
    """How to run: processes, a cluster's scheduler, the engine, who to tell about progress."""

    jobs: int = 0
    """0: one process per processor, where the input is large enough."""
    cluster: str | None = None
    engine: str = "auto"
    progress: Progress | None = None


@dataclass
class Measured:
    """A profile with its facts: what judging, comparing and saving start from."""

    info: ProfileInfo
    facts: FactSet
    problems: list[Problem] = field(default_factory=list)
    tables: frozenset[str] = frozenset()
    """Canonical tables at hand on at least one rank."""
    run: Run | None = None
    """Absent where the facts were saved earlier and only read back."""


def advise(paths: Sequence[str | Path], rules: RuleSet, options: Options | None = None) -> Report:
    """Analyses one profiler result. Where nothing was recognised the report has no ranks, and says what was sought."""
    from advisor.engine.judge import judge
    from advisor.facts.charts import charts

    options = options or Options()
    measured = measure(paths, rules.uses_facts(), options, allow_empty=True)
    report = judge(measured, rules, options.engine)
    return replace(report, charts=charts(measured.run, measured.facts)) if measured.run is not None else report


def judge_saved(measured: Measured, rules: RuleSet, engine: str = "auto") -> Report:
    """The report on facts that were saved earlier: no profile is opened."""
    from advisor.engine.judge import judge

    return judge(measured, rules, engine)


def measure(
    paths: Sequence[str | Path],
    names: Iterable[str] | None,
    options: Options | None = None,
    *,
    allow_empty: bool = False,
) -> Measured:
    """Reads a profile and measures these facts (None: every fact there is). Raises NoVerdict where nothing was
    recognised, unless that is allowed."""
    from advisor.errors import NoVerdict
    from advisor.facts.info import describe
    from advisor.sources.discover import load_profile

    options = options or Options()
    profile = load_profile(paths)
    if not profile.ranks and not allow_empty:
        raise NoVerdict(
            "; ".join(p.problem for p in profile.problems[:3]) or "nothing recognised",
            place=profile.path,
            hint="name a *_ascend_ms or *_ascend_pt folder, a folder of them, a cluster output, or one file of it; "
            "`advisor doctor` tells what was looked for",
        )
    tables = frozenset(table for rank in profile.ranks for table in rank.tables)
    chosen = plan(catalogue() if names is None else [*names, *_ALWAYS], tables)
    run = reduce_all(profile, chosen, options)
    facts = FactSet()
    for family in chosen:
        _measure_family(family, run, facts)
    problems = sorted(
        {*profile.problems, *(p for r in profile.ranks for p in r.problems)}, key=lambda p: (p.file, p.problem)
    )
    return Measured(describe(run, facts), facts, problems, tables, run)


_ALWAYS = ("step.time_us", "run.rank_count")
"""The report's summary needs these whatever the rules ask for."""


def _measure_family(family: Family, run: Run, facts: FactSet) -> None:
    try:
        for item in family.measure(run, facts):
            facts.add(item)
    except Exception as error:
        log.debug("family %s", family.name, exc_info=True)
        run.profile.problems.append(
            Problem(run.profile.path, f"facts of {family.name} are incomplete: {type(error).__name__}: {error}")
        )


def reduce_rank(rank: Rank, names: tuple[str, ...]) -> tuple[dict[str, Any], list[Problem]]:
    """One rank's tables, reduced to kilobytes; independent of all others, fit to run anywhere."""
    reductions: dict[str, Any] = {}
    for name in names:
        function = families()[name].reduce
        if function is None:
            continue
        try:
            reduction = function(rank)
        except Exception as error:
            log.debug("family %s of rank %s", name, rank.rank, exc_info=True)
            rank.note(rank.relative(rank.root), f"{name} could not be measured: {type(error).__name__}: {error}")
            continue
        if reduction is not None:
            reductions[name] = reduction
    rank.forget()
    return reductions, rank.problems


def reduce_all(profile: Profile, chosen: Sequence[Family], options: Options) -> Run:
    """Reduces every rank, in parallel where the input is large or a cluster was named."""
    run = Run(profile)
    names = tuple(family.name for family in chosen if family.reduce is not None)
    total = len(profile.ranks)
    with _executor(profile, names, options) as executor:
        if executor is None:
            results = (reduce_rank(rank, names) for rank in profile.ranks)
        else:
            futures = [executor.submit(reduce_rank, rank, names) for rank in profile.ranks]
            results = (future.result() for future in futures)
        for done, (rank, (reductions, problems)) in enumerate(zip(profile.ranks, results, strict=True), 1):
            run.reductions.setdefault(rank.rank, {}).update(reductions)
            rank.problems = problems
            if options.progress:
                options.progress(done, total, f"rank {rank.rank}")
    return run


@contextmanager
def _executor(profile: Profile, names: tuple[str, ...], options: Options):  # type: ignore[no-untyped-def]
    if options.cluster:
        yield from _cluster(options.cluster)
        return
    jobs = options.jobs or os.cpu_count() or 1
    if min(jobs, len(profile.ranks)) < 2 or (not options.jobs and _bytes(profile, names) < PARALLEL_BYTES):
        yield None
        return
    with ProcessPoolExecutor(min(jobs, len(profile.ranks)), _processes()) as pool:
        yield pool


def _processes() -> BaseContext:
    """Processes that share their imports where the system can fork from a server, else fresh ones."""
    import multiprocessing

    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pandas", "msgspec", "advisor.facts.registry", "advisor.sources.csvfiles"])
    return context


def _cluster(address: str) -> Iterable[Executor]:
    from advisor.errors import UsageError

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


def _bytes(profile: Profile, names: tuple[str, ...]) -> int:
    """Input that these families would read."""
    wanted = {table for name in names for table in families()[name].tables}
    total = 0
    for rank in profile.ranks:
        for table in wanted & set(rank.tables):
            for path in rank.tables[table].paths:
                try:
                    total += path.stat().st_size
                except OSError:
                    continue
    return total
