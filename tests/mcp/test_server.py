"""`advisor mcp`, asked by the SDK's own client over standard input and output, as an agent does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
sdk = pytest.importorskip("mcp")

from advisor.cli.main import main  # noqa: E402
from advisor.mcp.pages import LONGEST_REFUSAL, PAGE_BYTES  # noqa: E402
from advisor.mcp.schemas import inputs  # noqa: E402
from benchmarks.surroundings import _conversation  # noqa: E402

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "slow-rank-pipeline"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A root with a profile, an archive of it, a saved report, a link out, and a secret beside the root."""
    folder = tmp_path_factory.mktemp("agents")
    root = folder / "root"
    shutil.copytree(EXAMPLE, root / "run")
    shutil.make_archive(str(root / "packed"), "gztar", EXAMPLE.parent, EXAMPLE.name)
    assert main(["advise", str(root / "run"), "-q", "--format", f"json:{root / 'saved.json'}"]) == 0
    shutil.copytree(EXAMPLE, folder / "outside")
    (root / "link").symlink_to(folder / "outside")
    shutil.copytree(EXAMPLE, root / "linked")
    inside = next((root / "linked").glob("*_ascend_ms")) / "ASCEND_PROFILER_OUTPUT" / "more.csv"
    inside.symlink_to("/etc/passwd")
    return root


def with_client(root: Path, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a client's questions to a server of its own, started as a process, come to."""
    arguments = ["-m", "advisor", "mcp", "--root", str(root), "-q"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = sdk.StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=str(root))

    async def run() -> Any:
        async with sdk.Client(server, read_timeout_seconds=120) as client:
            return await ask(client)

    return anyio.run(run)


def test_an_agent_finds_its_way(place):
    """From the list of tools to the cause, its rule, the statement behind it and the remedy; every answer fits the
    schema of its tool and is small."""
    import jsonschema

    async def ask(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"advise", "explain", "facts", "compare", "whatif", "doctor", "rules_search"}
        assert all(tool.annotations.read_only_hint and tool.description for tool in tools.values())
        answers = {}

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content[0].text
            jsonschema.validate(result.structured_content, tools[name].output_schema)
            assert len(json.dumps(result.structured_content)) < 3 * PAGE_BYTES
            assert json.loads(result.content[0].text) == result.structured_content
            answers[name] = result.structured_content
            return result.structured_content

        assert (await call("doctor", path="run"))["recognised"]
        told = await call("advise", path="run")
        cause = told["findings"][0]
        assert cause["verdict"] == "slow-compute-rank" and cause["subject"]["id"] == "1"
        rule = await call("explain", rule=cause["rule"], path="run")
        assert rule["profile"]["outcome"] == "fail" and rule["rule"]["params"]
        found = await call("facts", path="run", prefix="step.time", subject="rank")
        assert {row["subject"]["id"] for row in found["facts"]} == {"0", "1", "2", "3"}
        assert (await call("compare", before="saved.json", after="packed.tar.gz"))["outcome"] == "same"
        repaired = await call("whatif", path="run", without=[cause["id"]])
        assert repaired["step_time_without_us"] < repaired["step_time_us"]
        assert any(
            row["id"] == cause["rule"] for row in (await call("rules_search", query="slow-compute-rank"))["rules"]
        )
        text = (await client.read_resource(told["report"])).contents[0].text
        assert "rank 1" in text.lower()
        statement = json.loads(
            (await client.read_resource(f"advisor://statement/{cause['statements'][0]}")).contents[0].text
        )
        assert statement["text"]["en"] and statement["text"]["zh"]
        remedy = json.loads(
            (await client.read_resource(f"advisor://remedy/{cause['remedies'][0]['id']}")).contents[0].text
        )
        assert remedy["action"]["en"]
        return answers

    with_client(place, ask)


def test_long_answers_come_in_pages(place):
    """Following next_offset gives every row once; resources have a cursor."""

    async def ask(client):
        rows, offset = [], 0
        while offset is not None:
            result = (
                await client.call_tool("facts", {"path": "run", "offset": offset, "limit": 200})
            ).structured_content
            assert len(json.dumps(result["facts"], ensure_ascii=False)) < PAGE_BYTES + 4000
            rows += result["facts"]
            offset = result["next_offset"]
        assert len(rows) == result["total"] > 200
        assert len({json.dumps(row, sort_keys=True) for row in rows}) == len(rows)
        uris, cursor = [], None
        while True:
            found = await client.list_resources(cursor=cursor)
            uris += [str(each.uri) for each in found.resources]
            cursor = found.next_cursor
            if not cursor:
                break
        assert len(uris) == len(set(uris)) > 100
        assert len((await client.list_resource_templates()).resource_templates) == 3

    with_client(place, ask)


def test_nothing_outside_of_the_root_is_read(place):
    """Neither by path nor by a link, at the top or deep in a profile; and the refusal says which."""

    async def ask(client):
        told = []
        for path in (
            "../outside",
            "/etc/passwd",
            str(place.parent / "outside"),
            "link",
            "linked",
            "-",
            " ",
            "none",
            "a\0b",
        ):
            for name, arguments in (
                ("advise", {"path": path}),
                ("doctor", {"path": path}),
                ("facts", {"path": path}),
                ("compare", {"before": "run", "after": path}),
                ("explain", {"rule": "COMM070", "path": path}),
            ):
                result = await client.call_tool(name, arguments)
                assert result.is_error, (name, path)
                told.append(result.content[0].text)
        for uri in (
            "advisor://report/../outside",
            "advisor://report/%2e%2e/outside",
            "advisor://report//etc/passwd",
            "advisor://statement/../../x",
            "file:///etc/passwd",
            "advisor://remedy/../x",
            "advisor://report/link",
        ):
            with pytest.raises(sdk.MCPError):
                await client.read_resource(uri)
        return told

    told = "\n".join(with_client(place, ask))
    assert "root:x:" not in told and "lies outside" in told and "leads outside" in told


def test_wrong_arguments_are_told_and_end_nothing(place):
    """An agent that errs is told how to ask, and the server goes on."""

    async def ask(client):
        for name, arguments in (
            ("advise", {}),
            ("advise", {"path": "run", "ofset": 1}),
            ("advise", {"path": 7}),
            ("advise", {"path": "run", "offset": -1}),
            ("explain", {"rule": "COMM999"}),
            ("facts", {"path": "run", "prefix": "nothing."}),
            ("compare", {"before": "run", "after": "run", "part": "x"}),
            ("advise", {"path": "run/../run/none"}),
            ("remove", {"path": "run"}),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error and result.content[0].text and "defect" not in result.content[0].text, (
                name,
                arguments,
            )
        assert not (await client.call_tool("rules_search", {})).is_error

    with_client(place, ask)


def test_numbers_and_cursors_of_any_size_are_no_defect(place):
    """A number that JSON takes for a whole one is used as such, however it is spelt; a cursor of six thousand digits
    leads nowhere, and the server goes on."""

    async def ask(client):
        spelt = (await client.call_tool("rules_search", {"offset": 2.0, "limit": 1.0})).structured_content
        assert spelt == (await client.call_tool("rules_search", {"offset": 2, "limit": 1})).structured_content
        assert (await client.call_tool("rules_search", {"offset": 1e308})).structured_content["rules"] == []
        for cursor in ("9" * 6000, "²", "-1", "x"):
            with pytest.raises(sdk.MCPError, match="no such page"):
                await client.list_resources(cursor=cursor)
        assert (await client.list_resources()).resources

    with_client(place, ask)


def test_refusals_are_short(place):
    """What was asked is repeated in part: an agent pays for every character."""

    async def ask(client):
        long = "x" * 1_000_000
        for name, arguments in (
            (long, {}),
            ("advise", {"path": long}),
            ("advise", {long: 1}),
            ("explain", {"rule": long}),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error and len(result.content[0].text) < 2 * LONGEST_REFUSAL

    with_client(place, ask)


def test_nothing_is_written(place):
    """The root is the same after every tool."""

    def listing():
        return sorted((str(path), path.stat().st_mtime_ns) for path in place.rglob("*") if path.is_file())

    before = listing()

    async def ask(client):
        for name, arguments in (
            ("advise", {"path": "packed.tar.gz"}),
            ("facts", {"path": "run"}),
            ("doctor", {"path": "run"}),
        ):
            assert not (await client.call_tool(name, arguments)).is_error

    with_client(place, ask)
    assert listing() == before


def test_a_profile_that_changes_is_read_again(place, tmp_path, monkeypatch):
    """Pages of one state come from one reading; a changed profile is another."""
    import advisor.pipeline
    from advisor.mcp.places import Root
    from advisor.mcp.tools import KEPT, Tools

    root = tmp_path / "root"
    for number in range(KEPT + 2):
        shutil.copytree(EXAMPLE, root / f"run{number}")
    tools = Tools(Root(root))
    first = tools._report("run0")
    assert tools._report("run0") is first and tools._report("./run0/../run0") is first
    next((root / "run0").rglob("step_trace_time.csv")).touch()
    assert tools._report("run0") is not first
    measured, measure = [], advisor.pipeline.measure
    monkeypatch.setattr(advisor.pipeline, "measure", lambda *each: measured.append(1) or measure(*each))
    pages = [tools.facts("run1", "step.", offset=offset, limit=5) for offset in (0, 5, 10)]
    assert len(measured) == 1 and len({json.dumps(row) for each in pages for row in each["facts"]}) == 15
    next((root / "run1").rglob("step_trace_time.csv")).touch()
    assert tools.facts("run1", "step.", offset=0, limit=5) == pages[0] and len(measured) == 2
    for number in range(KEPT + 2):
        tools.facts(f"run{number}", "step.")
    assert len(tools._kept) <= KEPT


def test_questions_that_were_piped_in_are_answered(place):
    """A script closes its input behind the last question; the answers come all the same, and the server ends."""
    questions = "\n".join(json.dumps(each) for each in _conversation()) + "\nno JSON\n"
    command = [sys.executable, "-m", "advisor", "mcp", "--root", str(place), "-q"]
    ended = subprocess.run(
        command, input=questions, capture_output=True, text=True, timeout=120, check=False, cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    answers = {answer["id"]: answer for answer in map(json.loads, ended.stdout.splitlines()) if "id" in answer}
    asked = {each["id"] for each in _conversation() if "id" in each}
    assert ended.returncode == 0 and asked <= answers.keys()
    assert json.loads(answers[10]["result"]["content"][0]["text"])["schema_version"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are any bytes there")
def test_names_that_are_no_text_end_no_conversation(tmp_path):
    """A rank folder whose name is no UTF-8: every tool answers, and the server goes on."""
    shutil.copytree(EXAMPLE, tmp_path / "run")
    first = min((tmp_path / "run").glob("*_ascend_ms"))
    first.rename(os.fsdecode(os.fsencode(first.parent) + b"/no\xffde_4009_20240101000000000_ascend_ms"))

    async def ask(client):
        for name in ("doctor", "advise", "facts"):
            assert not (await client.call_tool(name, {"path": "run"})).is_error

    with_client(tmp_path, ask)


def test_a_missing_root_is_told(capsys):
    """Before a client is kept waiting."""
    assert main(["mcp", "--root", "/nowhere"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_what_the_harness_damages_are_questions_that_the_server_takes() -> None:
    """Else no damaged message ever comes further than the check of its arguments."""
    for each in _conversation():
        if each["method"] == "tools/call":
            schema, given = inputs()[each["params"]["name"]], each["params"]["arguments"].keys()
            assert set(schema["required"]) <= given <= schema["properties"].keys()
