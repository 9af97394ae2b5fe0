"""The whole flow, and the only place that knows it: profile → tables → facts → findings → report."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from advisor.basics.garbage import search_later
from advisor.execution import Reduced, executor, input_sizes, require_memory, run_each
from advisor.facts import declared
from advisor.facts.base import FactSet, Family, Measured, Reduction, Run, fact
from advisor.facts.collection.foreign import leave_out_foreign
from advisor.facts.origins import Origins
from advisor.facts.recording.bounds import bounds_of, impossible
from advisor.facts.recording.doubts import doubt, mark, tables_of
from advisor.facts.recording.witnesses import hear_witnesses
from advisor.facts.registry import catalogue, families, plan
from advisor.model import RUN, Problem, Report
from advisor.sources.base import Profile, Rank, say_once
from advisor.sources.changes import watched

if TYPE_CHECKING:
    from advisor.engine.concluding.joint import Repaired
    from advisor.ruleset.files.loader import RuleSet
    from advisor.sources.archives import Opened

log = logging.getLogger("advisor")


class Advance(Struct, frozen=True):
    """How far reading has come."""

    ranks_done: int
    ranks: int
    bytes_done: int
    bytes: int


Progress = Callable[[Advance], None]


class Options(Struct):
    """How to run: processes, a cluster's scheduler, the engine, who to tell about progress."""

    jobs: int = 0
    """0: one process per processor, where the input is large enough."""
    cluster: str | None = None
    engine: str = "auto"
    progress: Progress | None = None


def advise(paths: Sequence[str | Path], rules: RuleSet, options: Options | None = None) -> Report:
    """Analyses one profiler result. Where nothing was recognised the report has no ranks, and says what was sought."""
    from advisor.knowledge.comparison import compared_facts
    from advisor.sources.archives import opened

    options = options or Options()
    with opened(paths) as given:
        # a report that is saved is compared as its profile would be
        wanted = rules.uses_facts() | compared_facts()
        measured = _measured(given, wanted, options, allow_empty=True)
        # not before: workers begin to read the sooner the less is imported before them
        from advisor.engine.judge import judge
        from advisor.facts.pictures.series import charts
        from advisor.facts.trail import with_rows

        report = judge(measured, rules, options.engine)
        if measured.run is None:
            return report
        findings = with_rows(report.findings, measured.run)
        return replace(report, findings=findings, charts=charts(measured.run, measured.facts))


def repair(
    paths: Sequence[str | Path], without: Sequence[str], rules: RuleSet, options: Options | None = None
) -> Repaired | None:
    """The step of a profile without the findings of these ids; None where nothing of it promises a saving."""
    from advisor.engine.concluding.joint import repaired
    from advisor.engine.judge import judge
    from advisor.sources.archives import opened

    options = options or Options()
    with opened(paths) as given:
        measured = _measured(given, rules.uses_facts(), options, allow_empty=False)
        return repaired(judge(measured, rules, options.engine), without, measured.facts, measured.run)


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
    from advisor.sources.archives import opened

    with opened(paths) as given:
        return _measured(given, names, options or Options(), allow_empty)


def _measured(given: Opened, names: Iterable[str] | None, options: Options, allow_empty: bool) -> Measured:
    from advisor.basics.errors import NoVerdict
    from advisor.facts.collection.info import describe
    from advisor.sources.discover import load_profile

    require_memory()
    profile = load_profile(given.paths, shown=given.shown)
    profile.problems += given.problems
    if not profile.ranks and not allow_empty:
        raise NoVerdict(
            "; ".join(p.problem for p in profile.problems[:3]) or "nothing recognised",
            place=profile.path,
            hint="name a *_ascend_ms or *_ascend_pt folder, a folder of them, a cluster output, or one file of it; "
            "`advisor doctor` tells what was looked for",
        )
    tables = frozenset(table for rank in profile.ranks for table in rank.tables)
    chosen = plan(catalogue() if names is None else [*names, *_ALWAYS], tables)
    log.info("%s: %d ranks, tables: %s", profile.path, len(profile.ranks), ", ".join(sorted(tables)) or "none")
    run = reduce_all(profile, chosen, options)
    hear_witnesses(run)
    facts, origins = FactSet(), Origins(run)
    for family in chosen:
        _measure_family(family, run, facts, origins, chosen)
    mark(run, facts, chosen)
    for item in fact("run.failed_measures", RUN, _failed(run) or None):
        facts.add(item)
    log.info("%d facts measured by %d families", len(facts), len(chosen))
    problems = say_once([*profile.problems, *(p for r in profile.ranks for p in r.problems)])
    return Measured(describe(run, facts), facts, problems, tables, _unusable(run, facts), run)


def _failed(run: Run) -> tuple[str, ...]:
    """The advisor's own families of facts that failed on the run or on a rank of it."""
    problems = [*run.profile.problems, *(problem for rank in run.ranks for problem in rank.problems)]
    return tuple(sorted({name for problem in problems for name in problem.failed}))


def _unusable(run: Run, facts: FactSet) -> tuple[str, ...]:
    """Damaged files of tables that gave nothing: of which no rank's could be used, or where no fact was measured that
    only such a table can give."""
    damaged: dict[str, set[str]] = defaultdict(set)
    lost: dict[str, set[str]] = defaultdict(set)
    usable = set()
    for rank in run.profile.ranks:
        told = {problem.file for problem in rank.problems}
        gone = {table: problem.file for problem in rank.problems for table in problem.lost}
        for table, file in gone.items():
            lost[table].add(file)
        for table, reference in rank.tables.items():
            damaged[table] |= {rank.relative(path) for path in reference.paths} & told
            if table not in gone:
                usable.add(table)
    measured = {fact.name for fact in facts}
    kinds = [kind for kind in catalogue().values() if len(kind.needs) == 1]
    useful = {kind.needs[0] for kind in kinds if kind.name in measured}
    given = {kind.needs[0] for kind in kinds} - useful
    silent = {file for table in given for file in damaged[table]}
    return tuple(sorted(silent.union(*(files for table, files in lost.items() if table not in usable))))


_ALWAYS = (
    "step.time_us", "run.rank_count", "collection.tables", "run.partial_steps", "run.uneven_files",
    "run.failed_measures",
)  # fmt: skip
"""The report's summary needs these whatever the rules ask for."""


def _measure_family(family: Family, run: Run, facts: FactSet, origins: Origins, chosen: Sequence[Family]) -> None:
    kinds = {kind.name: kind for kind in family.kinds}
    place = run.profile.path if family.built_in else family.name
    refused: dict[str, None] = {}
    try:
        for item in family.measure(run, facts):
            if fault := declared.fact_fault(item, kinds, facts):
                refused[fault] = None
            elif cannot_be := impossible(item, kinds[item.name]):
                if bounds_of(item.name, kinds[item.name].unit).counted:
                    continue
                told = f"{cannot_be}: left out, and what rests on the same table is uncertain"
                doubt(run, item, tables_of(kinds[item.name], family, chosen), told)
            else:
                facts.add(origins.traced(item, kinds[item.name], family.tables))
    except Exception as error:
        log.debug("family %s", family.name, exc_info=True)
        told = f"facts of {family.name} are incomplete: {type(error).__name__}: {error}"
        failed = (family.name,) if family.built_in else ()
        run.profile.problems.append(Problem(place, told, failed=failed))
    if refused and family.built_in and declared.STRICT:
        raise declared.DeclarationError(f"{family.name}: {'; '.join(refused)}")
    run.profile.problems += [Problem(place, fault) for fault in refused]


def reduce_rank(rank: Rank, names: tuple[str, ...]) -> Reduced:
    """One rank's tables, reduced to kilobytes; independent of all others, fit to run anywhere."""
    from advisor.sources.database.columns import keeping_columns
    from advisor.sources.database.dbfile import note_odd_rows

    reductions: dict[Reduction[Any], object] = {}
    with watched(rank), keeping_columns(), search_later():
        note_odd_rows(rank)
        _tried("collection.foreign", leave_out_foreign, rank)
        for name in names:
            reducer = families()[name].reduce
            reduction = None if reducer is None else _tried(name, reducer, rank, built_in=families()[name].built_in)
            if reducer is not None and reduction is not None:
                reductions[reducer.key] = reduction
    rank.forget()
    return Reduced(reductions, rank.problems, frozenset(rank.tables))


def _tried(name: str, step: Callable[[Rank], Any], rank: Rank, *, built_in: bool = True) -> Any:
    """What the step gives of the rank; None where it fails, which is told."""
    try:
        return step(rank)
    except Exception as error:
        log.debug("family %s of rank %s", name, rank.rank, exc_info=True)
        told = f"{name} could not be measured: {type(error).__name__}: {error}"
        rank.note(rank.relative(rank.root), told, failed=(name,) if built_in else ())
        return None


def _import_judging() -> None:
    """Imports what comes after the reading, while others read."""
    for module in ("engine.judge", "facts.pictures.series", "facts.trail"):
        import_module(f"advisor.{module}")


def reduce_all(profile: Profile, chosen: Sequence[Family], options: Options) -> Run:
    """Reduces every rank, in parallel where the input is large or a cluster was named."""
    run = Run(profile)
    names = tuple(family.name for family in chosen if family.reduce is not None)
    sizes = input_sizes(profile, {table for name in names for table in families()[name].tables})
    with executor(len(profile.ranks), sum(sizes), options.jobs, options.cluster) as pool:
        if pool is None:
            results: Iterator[Reduced] = (reduce_rank(rank, names) for rank in profile.ranks)
        else:
            results = run_each(pool, reduce_rank, profile.ranks, names, meanwhile=_import_judging)
        for done, (rank, reduced) in enumerate(zip(profile.ranks, results, strict=True), 1):
            run.keep(rank.rank, reduced.reductions)
            rank.problems = reduced.problems
            rank.tables = {name: known for name, known in rank.tables.items() if name in reduced.tables}
            rank.forget()
            if options.progress:
                options.progress(Advance(done, len(profile.ranks), sum(sizes[:done]), sum(sizes)))
    return run
