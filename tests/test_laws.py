"""Laws that hold for every profile: of scale, of names, of company, of evidence.

Profiles are tables of numbers drawn by hypothesis, or simulated runs; what is compared are facts and findings.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.exchange import report_from_json
from advisor.facts.registry import catalogue
from advisor.model import Report
from advisor.pipeline import advise
from advisor.render import render
from advisor.ruleset.files.loader import RuleSet, load_rules

ROOT = Path(__file__).parent.parent
HEADING = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
Rows = list[list[list[int]]]
"""rows[rank][step] = [computing, exposed, overlapped, free] in microseconds."""
SEVERE = ("medium", "high", "critical")


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load_rules()


def write(folder: Path, rows: Rows, numbers: list[int] | None = None, scale: int = 1) -> Path:
    """Rank folders with these steps; `numbers` are the ranks' names."""
    for place, steps in enumerate(rows):
        rank = place if numbers is None else numbers[place]
        root = folder / f"host_{rank}_20260101{rank:09d}_ascend_pt"
        output = root / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        lines = [HEADING]
        for number, (computing, exposed, overlapped, free) in enumerate(steps, 5):
            values = (computing, exposed, overlapped, exposed + overlapped, free, 0, 0, exposed, 0)
            lines.append(",".join(map(str, (number, *(value * scale for value in values)))))
        (output / "step_trace_time.csv").write_text("\n".join(lines) + "\n")
        (root / f"profiler_info_{rank}.json").write_text(json.dumps({"config": {}, "rank_id": rank}))
    return folder


def report_of(rules: RuleSet, rows: Rows, **options: object) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        return advise([write(Path(folder), rows, **options)], rules)  # type: ignore[arg-type]


def facts_of(report: Report) -> dict[tuple[str, str, str], object]:
    return {(f.name, f.subject.kind, f.subject.id): f.value for f in report.facts}


def accused(report: Report) -> set[tuple[str, str, str]]:
    return {
        (f.verdict, f.subject.kind, f.subject.id)
        for f in report.findings
        if f.severity.value in SEVERE and f.direction.value != "evidence"
    }


def tables(ranks: st.SearchStrategy[int] | int = 4) -> st.SearchStrategy[Rows]:
    """Steps of 20 to 200 ms; computing, exposed and free differ by rank and step."""
    times = st.integers(5_000, 90_000)
    step = st.tuples(times, st.integers(0, 60_000), st.integers(0, 5_000), st.integers(0, 40_000)).map(list)
    count = ranks if isinstance(ranks, st.SearchStrategy) else st.just(ranks)
    return count.flatmap(lambda n: st.lists(st.lists(step, min_size=4, max_size=4), min_size=n, max_size=n))


@settings(max_examples=12)
@given(rows=tables(st.integers(1, 5)), scale=st.sampled_from([2, 5, 10]))
def test_times_scale_and_ratios_do_not(rules: RuleSet, rows: Rows, scale: int) -> None:
    """A profile of a machine k times slower has k times the times, and the same shares, counts and verdicts."""
    fast, slow = report_of(rules, rows), report_of(rules, rows, scale=scale)
    assert accused(fast) == accused(slow)
    once, slower = facts_of(fast), facts_of(slow)
    units = {kind.name: kind.unit for kind in catalogue().values()}
    assert once.keys() == slower.keys()
    for key, value in once.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or key[0].startswith("collection."):
            continue
        factor = scale if units[key[0]] == "us" else 1
        assert slower[key] == pytest.approx(value * factor, rel=1e-6, abs=1e-6), key


@settings(max_examples=12)
@given(rows=tables(5), order=st.permutations(range(5)))
def test_renaming_ranks_renames_the_verdicts(rules: RuleSet, rows: Rows, order: list[int]) -> None:
    """Rank numbers are names: whoever was slow as rank 2 is as slow as rank 4, and nobody else is accused."""

    def renamed(report: Report, names: list[int]) -> set[tuple[str, str, str]]:
        return {(v, k, str(names[int(i)]) if k == "rank" else i) for v, k, i in accused(report)}

    plain = report_of(rules, rows)
    other = report_of(rules, rows, numbers=list(order))
    assert renamed(plain, list(order)) == accused(other)


@settings(max_examples=12)
@given(base=st.integers(20_000, 80_000), slow=st.integers(3_000, 40_000), seed=st.integers(0, 1 << 16))
def test_a_healthy_rank_more_accuses_nobody_new(rules: RuleSet, base: int, slow: int, seed: int) -> None:
    """One more rank like the healthy ones adds no culprit."""
    draw = random.Random(seed)
    longest = base + slow + 2_000

    def rank(extra: int) -> list[list[int]]:
        steps = []
        for _ in range(4):
            computing = base + extra + draw.randint(0, 300)
            steps.append([computing, longest - computing, 200, 500])
        return steps

    rows = [rank(0), rank(0), rank(slow), rank(0)]
    before, after = accused(report_of(rules, rows)), accused(report_of(rules, [*rows, rank(0)]))
    assert {each for each in after - before if each[1] in ("rank", "host", "link")} == set()
    if slow > 0.2 * longest:
        assert ("slow-compute-rank", "rank", "2") in before & after, "where nobody is accused the law says nothing"


@settings(max_examples=15)
@given(rows=tables(st.integers(1, 4)))
def test_a_report_survives_json(rules: RuleSet, rows: Rows) -> None:
    """What is written can be read back and written again to the same bytes: saved reports are compared later."""
    text = render(report_of(rules, rows), "json", facts="all")
    assert render(report_from_json(text.encode()), "json", facts="all") == text


def simulated(folder: Path, kind: str, seed: int, evidence: str) -> Path:
    """A simulated run with a fault, written with steps only, with kernels, or with everything."""
    script = (
        "import sys, dataclasses; from pathlib import Path; from benchmarks.simulator import *;"
        "kind, seed, evidence, folder = sys.argv[1:];"
        "scenario = dataclasses.replace(random_scenario(kind, int(seed)), kernels=evidence != 'steps',"
        " level=1 if evidence == 'all' else 0);"
        "write_profile(simulate(scenario), Path(folder), trace=False)"
    )
    folder.mkdir()
    subprocess.run([sys.executable, "-c", script, kind, str(seed), evidence, str(folder)], check=True, cwd=ROOT)
    return folder


@pytest.mark.parametrize(("kind", "seed"), [("slow_compute", 3), ("slow_compute", 4), ("slow_data", 5), ("healthy", 1)])
def test_more_evidence_never_lowers_confidence(rules: RuleSet, tmp_path: Path, kind: str, seed: int) -> None:
    """A verdict that stands with less evidence stands at least as surely with more of the same run."""
    levels = [advise([simulated(tmp_path / name, kind, seed, name)], rules) for name in ("steps", "kernels", "all")]
    compared = 0
    for less, more in pairwise(levels):
        sure = {(f.verdict, f.subject.kind, f.subject.id): f.confidence.rank for f in more.findings}
        for finding in less.findings:
            key = (finding.verdict, finding.subject.kind, finding.subject.id)
            if key in sure and finding.direction.value != "evidence":
                assert sure[key] >= finding.confidence.rank, key
                compared += 1
    assert compared or kind == "healthy", "where nothing is found the law says nothing"
