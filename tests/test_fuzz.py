"""Rules, expressions, texts, configurations, saved documents and databases that nobody would write.

Each is used or refused with a reason; nothing else happens. `tests/fuzzing.py` says how to run this for long.
"""

from __future__ import annotations

import copy
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzzing import fuzz
from hypothesis import assume, given
from hypothesis import strategies as st
from test_laws import write
from test_robustness import check

from advisor.authoring.cases import facts_of, run_cases
from advisor.basics.errors import AdvisorError, ConfigError, RuleError, UsageError
from advisor.basics.resources import resource
from advisor.config import Config, load_config, parse_config
from advisor.engine.judge import decide, known_facts
from advisor.exchange import report_from_json
from advisor.facts.base import FactSet
from advisor.facts.saved import dump, load
from advisor.pipeline import advise, judge_saved, measure
from advisor.render import render
from advisor.ruleset.files.found import rule_files
from advisor.ruleset.files.loader import RuleSet, load_rules
from advisor.ruleset.language.expression import ExpressionError, parse
from advisor.ruleset.truth.templates import check_template, placeholders
from advisor.yamlfiles.document import read_document

RULES = rule_files(resource("rules"))
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 10**40, 1e300, float("nan"), float("inf"), [], {}, [[]], [1, "a"], {"a": 1},
    "", "0", "-1", "1e999", "nan", "$share", "$nothing", "step.time_us", "rank.compute_us > 0", "not (", "a.b.c", "x",
    "{{ step.time_us }}", "{{ x", "{% for a in b %}{{ a }}{% endfor %}", "{% if step.time_us > x %}", "true", "\ud800",
    "max(1, 'a')", "or_else(step.time_us, 0) / 0", "spread(step.time_us)", "median()", "[1, 2] < 3", "1 < 2 < 'x'",
    "\x1b[2J", "<script>", "x" * 5000, "../../etc", "medium", "rank", "run", "us", "ratio", "2026-01-01",
)  # fmt: skip
SEEDS = st.integers(0, 1 << 40)
TOKENS = st.sampled_from([
    "step.time_us", "rank.compute_us", "$share", "lost", "0", "1", "0.5", "1e308", "'text'", "true", "false", "(", ")",
    "[", "]", ",", "+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "in", "not", "and", "or", "known(", "or_else(",
    "min(", "max(", "spread(", "median(", "sum(", "abs(", "count(", "a.", ".", " ",
])  # fmt: skip
PIECES = st.sampled_from([
    "{{ ", " }}", "{% if ", "{% else %}", "{% endif %}", "{% for x in ", "{% endfor %}", " %}", "step.time_us", "|",
    "x", "show('us')", "digits(2)", " > ", " is known", " and ", "1", "+", "[0]", ".value", ".unit", "param.share",
    "__class__", "loop.index", "{#", "#}", "text",
])  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(document: Any, seed: int) -> Any:
    """A copy of the document in which one to three values were replaced, deleted, wrapped or renamed."""
    draw = Random(seed)
    document = copy.deepcopy(document)
    for _ in range(draw.randint(1, 3)):
        *inner, key = draw.choice(list(places(document))[1:] or [("",)])
        container = document
        for part in inner:
            container = container[part]
        action = draw.choice(("replace", "replace", "delete", "rename", "wrap"))
        if not isinstance(container, (dict, list)) or not container:
            continue
        if action == "delete":
            del container[key]
        elif action == "wrap":
            container[key] = [container[key]]
        elif action == "rename" and isinstance(container, dict):
            container[draw.choice(("", "x", f"{key}s", "\n", "0"))] = container.pop(key)
        else:
            container[key] = copy.deepcopy(draw.choice(ODD))
    return document


def judge_all(rules: RuleSet, path: Path) -> None:
    """Judges the facts of the rule's own cases: every outcome is one of the five, no exception gets out."""
    cases = read_document(path.with_name(f"{path.stem}.test.yaml")).data["cases"]
    for case in cases:
        facts = facts_of(case["facts"], known_facts()) if case.get("facts") else FactSet()
        verdicts = decide(rules, facts, engine="python")
        assert {check.rule for check in verdicts.checks} >= set(rules.by_id)


@fuzz(60)
@given(seed=SEEDS)
def test_any_change_of_a_rule_is_loaded_or_told(seed: int) -> None:
    """Rules as people mistype them: refused with file and line, or loaded and then judged without an exception."""
    path = Random(seed).choice(RULES)
    document = changed(read_document(path).data, seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / path.name
        target.write_text(json.dumps(document), encoding="utf-8", errors="replace")
        rules = load_rules([Path(folder)], strict=False)
        assert rules.rules or rules.errors
        assert all(error.message and target.name in error.file for error in rules.errors)
        judge_all(rules, path)


@fuzz(40)
@given(seed=SEEDS)
def test_any_change_of_cases_is_run_or_told(seed: int) -> None:
    """`advisor rules test` on broken cases reports them; it never ends with an exception."""
    path = Random(seed).choice(RULES)
    source = path.with_name(f"{path.stem}.test.yaml")
    document = changed(read_document(source).data, seed)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).write_bytes(path.read_bytes())
        (Path(folder) / source.name).write_text(json.dumps(document), encoding="utf-8", errors="replace")
        results = list(run_cases([Path(folder)]))
    assert results and all(result.passed or all(result.failures) for result in results)


@fuzz(40)
@given(seed=SEEDS)
def test_any_pack_description_and_remedy_is_used_or_told(seed: int) -> None:
    """pack.yaml and remedies of strangers: a defect with its file, or a pack."""
    remedy = Random(seed).choice(sorted(resource("knowledge_base", "remedies").glob("*.yaml")))
    pack = {"name": "p", "extend": ["default"], "ignore": ["COMM001"], "params": {"COMM010": {"share": 0.1}}}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "remedies" / "own.yaml"
        target.parent.mkdir()
        target.write_text(json.dumps(changed(read_document(remedy).data, seed)), encoding="utf-8", errors="replace")
        described = changed(pack, seed)
        (Path(folder) / "pack.yaml").write_text(json.dumps(described), encoding="utf-8", errors="replace")
        try:
            load_rules(config=Config(extend=(folder,)), strict=False)
        except AdvisorError as error:
            assert str(error)


@fuzz(400)
@given(st.lists(TOKENS, max_size=14).map(" ".join))
def test_any_words_of_the_grammar_are_an_expression_or_refused(text: str) -> None:
    """Nearly right expressions: a tree, or an error that says where."""
    try:
        parse(text)
    except ExpressionError as error:
        assert str(error)


@fuzz(200)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_pieces_of_a_text_are_a_template_or_refused(text: str) -> None:
    """Nearly right texts are checked when the pack is loaded, not when a finding needs them."""
    try:
        check_template(text)
        placeholders(text)
    except RuleError as error:
        assert str(error)


KEYS = ("extend", "select", "ignore", "rules", "params", "severities", "lang", "engine", "models", "gate", "extractors")
INTACT = {
    "extend": ["default"], "select": ["COMM*", "computation"], "ignore": ["SCHED020"], "rules": [], "lang": "zh",
    "engine": "auto", "params": {"COMM010": {"share": 0.15}}, "severities": {"COMM010": "low"}, "extractors": [],
    "models": {"llama": {"ignore": ["MEM*"], "params": {"COMM010": {"share": 0.3}}}}, "gate": {"metrics": {}},
}  # fmt: skip


@fuzz(80)
@given(seed=SEEDS)
def test_any_change_of_a_configuration_is_used_or_told(seed: int) -> None:
    """A configuration of the right shape with wrong values: rules are tuned by it, or an error names what is wrong."""
    table = changed(INTACT, seed)
    assume(isinstance(table, dict) and not table.get("extractors"))
    try:
        config = parse_config(table, Path("advisor.toml"))
        for model in (None, *config.models):
            load_rules(config=config.for_model(model), strict=False)
    except (ConfigError, RuleError) as error:
        assert str(error)


TOML = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@fuzz(80)
@given(table=st.dictionaries(st.sampled_from([*KEYS, "extends", "gate.metrics", "params.X"]), TOML, max_size=4))
def test_any_toml_is_used_or_told(tmp_path: Path, table: dict[str, Any]) -> None:
    """Any types under the known keys, and keys nobody knows."""
    path = tmp_path / "advisor.toml"
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items()), encoding="utf-8")
    try:
        load_config(path)
    except ConfigError as error:
        assert "advisor.toml" in str(error)


@cache
def documents() -> dict[str, Any]:
    """A saved report and saved facts of a small profile."""
    with tempfile.TemporaryDirectory() as folder:
        profile = write(Path(folder), [[[9000, 4000, 100, 900]] * 4, [[12000, 1000, 100, 900]] * 4])
        rules = load_rules()
        report = render(advise([profile], rules), "json", facts="all")
        return {"report": json.loads(report), "facts": json.loads(dump(measure([profile], None)))}


@fuzz(60)
@given(seed=SEEDS)
def test_any_change_of_a_saved_report_is_read_or_refused(seed: int) -> None:
    """`compare` and `serve` read reports from anywhere: read and shown, or refused."""
    text = json.dumps(changed(documents()["report"], seed))
    try:
        report = report_from_json(text)
    except UsageError as error:
        assert str(error)
        return
    for form in ("html", "markdown", "text", "sarif", "junit", "github"):
        render(report, form)


@fuzz(40)
@given(seed=SEEDS)
def test_any_change_of_saved_facts_is_judged_or_refused(tmp_path: Path, seed: int) -> None:
    """`advise --facts` on an edited file: judged, or refused."""
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(changed(documents()["facts"], seed)), encoding="utf-8", errors="replace")
    try:
        measured = load(path)
    except UsageError as error:
        assert str(error)
        return
    assert judge_saved(measured, load_rules(), "python").checked


TABLES = {
    "TASK": "startNs endNs globalTaskId connectionId streamId", "STRING_IDS": "id value",
    "COMPUTE_TASK_INFO": "name globalTaskId opType taskType inputShapes inputDataTypes blockDim",
    "COMMUNICATION_OP": "opName startNs endNs groupName rankSize opId", "STEP_TIME": "id startNs endNs",
    "CANN_API": "startNs endNs type name connectionId", "RANK_DEVICE_MAP": "rankId deviceId", "HOST_INFO": "hostName",
    "CommAnalyzerTime": "hccl_op_name group_name step elapse_time transit_time wait_time start_timestamp",
    "CommAnalyzerBandwidth": "hccl_op_name transport_type transit_size transit_time package_size count step",
    "CommAnalyzerMatrix": "hccl_op_name src_rank dst_rank transit_size transit_time group_name step",
    "StepTraceTime": "step computing communication_not_overlapped free overlapped", "META_DATA": "name value",
    "MEMORY_RECORD": "component timestamp total_allocated total_reserved", "TASK_PMU_INFO": "globalTaskId name value",
    "OP_MEMORY": "name size allocation_time release_time", "NPU_MEM": "type ddr hbm timestampNs", "AICORE_FREQ": "freq",
}  # fmt: skip
VALUES = st.one_of(
    st.none(), st.integers(0, 9), st.integers(-(1 << 62), 1 << 62), st.floats(), st.text(max_size=6),
    st.binary(max_size=4), st.sampled_from(["5", "hcom_allReduce__1_0_1@g1", "[0, 1]", "{}", "step5", 1_700_000_000]),
)  # fmt: skip


@fuzz(50)
@given(data=st.data())
def test_any_rows_in_a_database_are_measured_or_told(data: Any) -> None:
    """SQLite keeps any type in any column; whatever is there, facts are measured and nothing is rescued."""
    chosen = data.draw(st.lists(st.sampled_from(sorted(TABLES)), min_size=1, max_size=9, unique=True))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        for name in ("ascend_pytorch_profiler_0.db", "analysis.db")[: data.draw(st.integers(1, 2))]:
            connection = sqlite3.connect(output / name)
            for table in chosen:
                columns = TABLES[table].split()
                kept = data.draw(st.lists(st.sampled_from(columns), min_size=1, unique=True)) if data.draw(
                    st.integers(0, 4)) == 0 else columns  # fmt: skip
                connection.execute(f"CREATE TABLE {table} ({', '.join(kept)})")
                for row in data.draw(st.lists(st.lists(VALUES, min_size=len(kept), max_size=len(kept)), max_size=4)):
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(kept))})", row)
            connection.commit()
            connection.close()
        check(Path(folder))
