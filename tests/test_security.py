"""Profiles, packs and names as an attacker writes them: nothing runs, nothing leaves, nothing is written or blocked.

Each line of docs/security.md names one of these tests, or one in tests/ruleset, tests/render or tests/test_serve.py.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fake_reports import healthy

import advisor
from advisor.basics.errors import RuleError
from advisor.cli.main import main
from advisor.knowledge.remedies import load_remedies
from advisor.render import formats_of, render
from advisor.ruleset.files.loader import load_rules
from advisor.ruleset.language.expression import ExpressionError, parse
from advisor.ruleset.truth.templates import check_template

PACKAGE = Path(advisor.__file__).parent
KERNELS = "Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n"
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "::error::injected%0A::set-output name=x::y",
    "](javascript:alert(1)) | `$(id)` ${IFS} @everyone #1 <!-- ]]> --> &#x3c;",
    "\u202eevil\u2066\u200b\ufeff",
    "{{ 7 * 7 }}{% for x in range(9) %}x{% endfor %}",
    "../../../../etc/passwd",
)


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """A test that blocks has failed."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError("blocked")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def write_rank(folder: Path, names: tuple[str, ...] = ("MatMul",)) -> Path:
    """A rank of three steps whose kernels have these names, which are also their types."""
    output = folder / "w_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text(STEPS + "".join(f"{n},90000,0,0,0,10000\n" for n in (5, 6, 7)))
    rows, start = [], 1_700_000_000_000_000
    for step in (5, 6, 7):
        for name in names:
            cell = '"' + name.replace('"', '""') + '"'
            rows.append(f"{step},{cell},{cell},AI_CORE,{start},{90000 / len(names):.3f},0\n")
            start += round(100_000 / len(names))
    (output / "kernel_details.csv").write_bytes((KERNELS + "".join(rows)).encode("utf-8", "surrogatepass"))
    return folder


def reports(profile: Path, out: Path) -> dict[str, str]:
    """The profile's report in every format."""
    names = formats_of("report")
    arguments = [item for name in names for item in ("--format", f"{name}:{out / name}")]
    assert main(["advise", str(profile), "-q", *arguments]) == 0
    return {name: (out / name).read_text(encoding="utf-8") for name in names}


class _Markup(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[str] = []
        self.images: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        self.images += [value or "" for name, value in attributes if tag == "img" and name == "src"]


def test_operator_names_are_inert_in_every_format(tmp_path: Path) -> None:
    """A kernel may be called anything: no cursor moves, no script runs, no table ends, no workflow command starts."""
    found = reports(write_rank(tmp_path / "profile", HOSTILE), tmp_path)
    assert "injected" in found["json"], "the names must reach the report, or this proves nothing"
    for name, text in found.items():
        if name != "json":
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text), name
        assert "49" not in re.findall(r"\b49\b.{0,9}xxxxxxxxx", text), "a template in a name was filled in"
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", found["json"])
    markup = _Markup()
    markup.feed(found["html"])
    assert markup.handlers == [] and "x" not in markup.images
    assert "<script>alert" not in found["html"] and "<script>alert" not in found["markdown"]
    commands = [line for line in found["github"].splitlines() if line.startswith("::")]
    assert all(re.match(r"::(error|warning|notice) title=", line) for line in commands)
    assert not [line for line in found["github"].splitlines() if not line.startswith("::")]
    ElementTree.fromstring(found["junit"])
    assert json.loads(found["sarif"])["version"] == "2.1.0"


def test_names_are_inert_in_remarks_and_errors(tmp_path, capsys):
    """What is said on standard error of a stranger's file moves no cursor and hides no letters either."""
    path = tmp_path / "report.json"
    odd = "\\u001b[31mx\\u202e\\u009b"
    document = json.loads(render(healthy(), "json"))
    document["facts"] = [{"name": "step.idle_share", "subject": {"kind": "rank", "id": "ODD"}, "value": 9}]
    path.write_text(json.dumps(document).replace("ODD", odd), encoding="utf-8")
    assert main(["compare", str(path), str(path)]) == 0
    document["summary"]["breakdown"] = {"ODD": 9}
    path.write_text(json.dumps(document).replace("ODD", odd), encoding="utf-8")
    assert main(["compare", str(path), str(path)]) == 2
    for lang in ("en", "zh"):
        assert main(["compare", "a", "b", "c\x1b[31m", "--lang", lang]) == 2
    told = capsys.readouterr().err
    assert "left out" in told and "not a report" in told
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", told)


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch owned']",
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]",
        "a: " + "[" * 5000,
        "{" * 5000,
        "a: " + "x" * 2_000_000,
        "? [complex, key]\n: 1",
        "<<: {id: X}\nid: Y",
        "a: 1\na: 2",
        "\ufeff\x00",
        "%TAG ! tag:evil,2024:\n---\n!run x",
        "id: EVIL1\n" + "k: 1\n" * 200_000,
    ],
)
def test_hostile_rule_files_are_told_and_nothing_else(tmp_path: Path, monkeypatch, text: str) -> None:
    """Tags, bombs, depth and size end in an error that names the file, within moments; no code of theirs runs."""
    monkeypatch.chdir(tmp_path)
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "EVIL1-x.yaml").write_text(text)
    started = time.monotonic()
    rules = load_rules([pack], strict=False)
    assert time.monotonic() - started < 10
    assert rules.rules == () and rules.errors and "EVIL1-x.yaml" in rules.errors[0].file
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ step['__init__'].__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ self._TemplateReference__context }}",
        "{{ lipsum.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% set x = 1 %}",
        "{% macro m() %}{% endmacro %}",
        "{{ 'a' ** 9999999999 }}",
        "{{ range(10**9) | list }}",
        "{% for a in b %}{% for c in d %}x{% endfor %}{% endfor %}",
        "{{ x | attr('__class__') }}",
        "{{ x() }}",
        "{{ [1, 2] }}",
        "{{ {'a': 1} }}",
        "{{ " + "(" * 500 + "1" + ")" * 500 + " }}",
        "{{ a }}" * 5000,
    ],
)
def test_templates_reach_no_python(text: str) -> None:
    """Texts of packs know facts, comparisons, `if` and one `for`; everything else is refused when the pack is loaded,
    and what is accepted touches no attribute of an object."""
    try:
        tree = check_template(text)
    except RuleError:
        return
    from advisor.facts.base import FactSet
    from advisor.ruleset.truth.templates import render

    assert tree is not None

    class Nothing:
        def find(self, name: str, lang: str = "en") -> object:
            raise KeyError(name)

    del FactSet
    with pytest.raises(RuleError):
        render(text, Nothing())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "not " * 100_000 + "true",
        "-" * 100_000 + "1",
        "1" + " + 1" * 100_000,
        "1" + " < 1" * 100_000,
        "max(" * 1000 + "1",
        "[" * 1000,
        "9" * 100_000,
        "9e999999",
        "a" * 100_000,
        "a.b" + ".c" * 100_000,
        "'" + "x" * 100_000,
        "2 ** 99999999",
        "__import__('os').system('id')",
        "lambda: 1",
        "a if b else c",
        "[x for x in y]",
        "x.__class__()",
        "\x00",
        "exec('1')",
    ],
)
def test_expression_bombs_end_quickly(text: str) -> None:
    """Length and depth are bounded before anything is computed, and there is no way to Python."""
    started = time.monotonic()
    with pytest.raises(ExpressionError):
        parse(text)
    assert time.monotonic() - started < 2


def test_nested_calls_and_conditions_are_checked_once_each() -> None:
    """Units are worked out once a level: twice a level made thirty levels a billion."""
    from advisor.ruleset.language.dimensions import Dimensions

    known = Dimensions("run", {}, params={"x": "number", "yes": "bool"})
    calls, choices, equal = "$x", "$x", "$yes"
    for _ in range(14):
        calls = f"max({calls}, $x)"
        choices = f"if({choices} > $x, $x, $x)"
        equal = f"(($yes) == ({equal}) == $yes)"
    started = time.monotonic()
    for text, unit in ((calls, "number"), (choices, "number"), (equal, "bool")):
        assert known.unit(parse(text)) == unit
    assert time.monotonic() - started < 2


def test_links_in_packs_lead_nowhere(tmp_path: Path) -> None:
    """A pack cannot show files that lie outside it, neither as rules nor as remedies."""
    (tmp_path / "secret.yaml").write_text("password: 1234")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "R1-x.yaml").write_text("password: 1234")
    pack = tmp_path / "pack"
    (pack / "remedies").mkdir(parents=True)
    (pack / "SECRET1-x.yaml").symlink_to(tmp_path / "secret.yaml")
    (pack / "remedies" / "secret.yaml").symlink_to(tmp_path / "secret.yaml")
    (pack / "deep").symlink_to(tmp_path / "outside")
    (pack / "loop").symlink_to(pack)
    os.mkfifo(pack / "PIPE1-x.yaml")
    rules = load_rules([pack], strict=False)
    remedies, faults = load_remedies([pack])
    assert rules.rules == () and "secret" not in remedies
    told = " ".join(map(str, (*rules.errors, *faults)))
    assert "password" not in told and "1234" not in told


@pytest.mark.parametrize("kind", ["fifo", "zero", "socket", "self", "folder"])
@pytest.mark.parametrize("name", ["communication.json", "kernel_details.csv", "step_trace_time.csv", "analysis.db"])
def test_pipes_and_devices_are_not_opened(tmp_path: Path, kind: str, name: str) -> None:
    """Reading a pipe would wait for ever and a device never ends; both are named, and the rest is judged."""
    profile = write_rank(tmp_path / "profile")
    path = next(profile.iterdir()) / "ASCEND_PROFILER_OUTPUT" / name
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as server:
            short = tmp_path.parent / "s"
            short.unlink(missing_ok=True)
            server.bind(str(short))
        path.symlink_to(short)
    elif kind == "self":
        path.symlink_to(path.name)
    else:
        path.mkdir()
    out = tmp_path / "r.json"
    assert main(["advise", str(profile), "-q", "--format", f"json:{out}"]) in (0, 3)
    assert any(name in problem["file"] for problem in json.loads(out.read_text())["problems"])


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    """Folders that contain themselves are looked at once."""
    profile = write_rank(tmp_path / "profile")
    for number in range(8):
        (profile / f"l{number}").symlink_to(profile)
    assert main(["advise", str(profile), "-q", "--format", f"json:{tmp_path / 'r.json'}"]) == 0


def _state(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_profile_is_never_written_to(tmp_path: Path) -> None:
    """No journal, cache or lock appears beside the files, not even for a database that asks for one."""
    profile = write_rank(tmp_path / "profile")
    database = next(profile.iterdir()) / "ASCEND_PROFILER_OUTPUT" / "ascend_mindspore_profiler_0.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, globalTaskId INTEGER)")
        connection.execute("CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER, opType INTEGER)")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON TASK BEGIN DELETE FROM TASK; END")
    connection.close()
    before = _state(profile)
    assert main(["advise", str(profile), "-q", "--format", f"json:{tmp_path / 'r.json'}"]) == 0
    assert _state(profile) == before


@pytest.mark.parametrize("table", ["TASK", "COMMUNICATION_OP", "STRING_IDS", "STEP_TIME", "CANN_API"])
def test_views_of_a_database_are_not_run(tmp_path: Path, table: str) -> None:
    """A view is its author's program: one that never ends costs nothing here."""
    output = tmp_path / "profile" / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    tables = {
        "TASK": "startNs INTEGER, endNs INTEGER, globalTaskId INTEGER, connectionId INTEGER",
        "COMPUTE_TASK_INFO": "name INTEGER, globalTaskId INTEGER, opType INTEGER, taskType INTEGER",
        "COMMUNICATION_OP": "opName INTEGER, startNs INTEGER, endNs INTEGER",
        "STRING_IDS": "id INTEGER, value TEXT",
        "STEP_TIME": "id INTEGER, startNs INTEGER, endNs INTEGER",
        "CANN_API": "startNs INTEGER, endNs INTEGER, type INTEGER, name INTEGER, connectionId INTEGER",
    }
    connection = sqlite3.connect(output / "ascend_pytorch_profiler_0.db")
    for name, columns in tables.items():
        if name != table:
            connection.execute(f"CREATE TABLE {name}({columns})")
            connection.execute(f"INSERT INTO {name} VALUES ({','.join('7' for _ in columns.split(','))})")
    fields = ", ".join(f"n AS {column.split()[0]}" for column in tables[table].split(", "))
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
    connection.execute(f"CREATE VIEW {table} AS {endless} SELECT {fields} FROM c")
    connection.commit()
    connection.close()
    started = time.monotonic()
    assert main(["advise", str(tmp_path / "profile"), "-q", "--format", f"json:{tmp_path / 'r.json'}"]) in (0, 3)
    assert time.monotonic() - started < 20
    assert "views" in (tmp_path / "r.json").read_text()


def test_queries_of_hostile_size_stop(tmp_path: Path) -> None:
    """A join that multiplies its rows ends with the time that a file of its size may take."""
    from advisor.sources.connection import connect

    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE TABLE t(a INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(5000)])
    connection.commit()
    connection.close()
    reading = connect(tmp_path / "a.db", limit_s=0.3)
    started = time.monotonic()
    with pytest.raises(sqlite3.OperationalError):
        reading.execute("SELECT COUNT(*) FROM t a, t b, t c WHERE a.a + b.a = c.a").fetchall()
    reading.close()
    assert time.monotonic() - started < 20


def _calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


FORBIDDEN = re.compile(
    r"^(eval|exec|compile|__import__)$|pickle\.|marshal\.|shelve\.|os\.system|subprocess\.|yaml\.(load|unsafe_load|full_load)$"
    r"|(ElementTree|ET|minidom|sax|expat)\.(parse|fromstring|XML|iterparse)|enable_load_extension|load_extension"
)


def test_the_code_has_no_door_to_execution() -> None:
    """No eval, no pickle, no shell, no YAML with objects, and XML is written but never parsed: no XXE."""
    found = [
        f"{path.relative_to(PACKAGE)}: {call}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for call in _calls(ast.parse(path.read_text(encoding="utf-8")))
        if FORBIDDEN.search(call)
    ]
    own = [
        "authoring/chains.py: yaml.load",  # as others' tools read a rule, with the safe loader
        "basics/resources.py: yaml.load",  # of the advisor's own words, with the safe loader
        "callbacks/beside.py: subprocess.Popen",  # the advisor itself, beside a training
        "facts/extractors.py: compile",  # in folders that the user trusted or allowed
        "facts/extractors.py: exec",
        "watch/alarms.py: subprocess.run",  # what the user named with --exec
    ]
    assert sorted(found) == own, "only what the user allowed, trusted or named runs"


def _patterns() -> dict[str, re.Pattern[str]]:
    import importlib
    import pkgutil

    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(advisor.__path__, "advisor."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:
            continue
        for name, value in vars(loaded).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                found[f"{module.name}.{name}"] = value
    return found


def test_a_pack_builds_on_no_foreign_folder(tmp_path: Path, monkeypatch) -> None:
    """`extend` of a stranger's pack reaches shipped and installed packs, its own folders and packs beside it."""
    (tmp_path / "home" / "secrets").mkdir(parents=True)
    (tmp_path / "home" / "secrets" / "S1-x.yaml").write_text("password: 1234")
    (tmp_path / "packs" / "base").mkdir(parents=True)
    (tmp_path / "packs" / "loose").mkdir()
    (tmp_path / "packs" / "base" / "pack.yaml").write_text("name: base\n")
    evil = tmp_path / "packs" / "evil"
    (evil / "inner").mkdir(parents=True)
    (evil / "out").symlink_to(tmp_path / "home" / "secrets")
    monkeypatch.chdir(tmp_path / "home")
    from advisor.config import Config

    config = Config(extend=(str(evil),))
    for name in (
        "../../home/secrets",
        str(tmp_path / "home" / "secrets"),
        "secrets",
        "/",
        "..",
        ".",
        "out",
        "../loose",
    ):
        (evil / "pack.yaml").write_text(f"extend: ['{name}']\n")
        with pytest.raises(RuleError, match="may not build on") as error:
            load_rules(config=config)
        assert "1234" not in str(error.value)
    for name in ("inner", "./inner", "../base", "default"):
        (evil / "pack.yaml").write_text(f"extend: ['{name}']\n")
        load_rules(config=config)


def test_no_pattern_explodes() -> None:
    """Names of a profile are matched against the advisor's patterns: long hostile ones cost moments, not minutes."""
    units = ("a", "/", "_", "0", " ", "a_0/", "a::", "::", '"', "\\", "<", "\x1b]", "-op1", "step_1", "0,", "(", "@",
             ".py:", "\n", "a b", "1-", "x;")  # fmt: skip
    evil = [unit * (1024 // len(unit)) for unit in units]
    slow = []
    for name, pattern in _patterns().items():
        for text in evil:
            for end in ("", "!", "\x00"):
                started = time.perf_counter()
                pattern.search(text + end)
                pattern.fullmatch(text + end)
                if time.perf_counter() - started > 0.5:
                    slow.append(f"{name} on {text[:8]!r}")
    assert slow == []


def test_serve_listens_on_loopback_unless_told() -> None:
    """There is no login: another machine sees the reports only where the user names an address."""
    import inspect

    from advisor.cli.serve import serve as command
    from advisor.serve.app import LOOPBACK, serve

    assert inspect.signature(serve).parameters["host"].default in LOOPBACK
    given = {option.name: option.default for option in command.params}
    assert given["host"] in LOOPBACK


def test_every_promise_names_a_test_that_exists() -> None:
    """docs/security.md promises nothing that no test would miss."""
    tests = Path(__file__).parent
    text = (tests.parent / "docs" / "security.md").read_text(encoding="utf-8")
    for file, name in re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", text):
        assert f"def {name}" in (tests / file).read_text(encoding="utf-8") if name else (tests / file).is_file()
    rows = [row for row in text.splitlines() if row.startswith("| ") and not row.startswith("| promise")]
    promises = [row for row in rows if row.count("|") == 4 and "| what |" not in row]
    assert len(promises) > 20
    assert all(re.search(r"`[\w/]+\.py(::\w+)?`|benchmarks\.mutations", row.split("|")[3]) for row in promises)
