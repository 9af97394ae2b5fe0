"""The document's first rule, literally: every command of the section, in an empty folder, ends as it says."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.cli.main import main

ROOT = Path(__file__).parents[2]
SECTION = "## A first rule in ten minutes"
FAILS = ("advise PROFILE --rules rules --fail-on medium", "gate PROFILE")
"""What the document says ends with 1: the example exposes a third of its step."""


def commands():
    """Lines of the section's shell blocks."""
    text = (ROOT / "docs" / "writing-rules.md").read_text(encoding="utf-8")
    section = text.partition(SECTION)[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```sh\n(.*?)```", section, re.S) for line in block.splitlines() if line]


def run(line, capsys):
    """Exit status and output of one line; `advisor` is run in this process, everything else by the shell."""
    if not line.startswith("advisor "):
        return subprocess.run(["sh", "-c", line], check=False).returncode, ""
    command, _, file = line.partition(" > ")
    status = main(shlex.split(command)[1:])
    output = capsys.readouterr().out
    if file:
        Path(file).write_text(output, encoding="utf-8")
    return status, output


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder, with a profile elsewhere."""
    shutil.copytree(ROOT / "examples" / "slow-rank-pipeline", tmp_path / "profile")
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_first_rule_of_the_document_works_and_gates(empty, capsys):
    """From nothing to a linted, tested rule that fails a pipeline, by the document's own lines."""
    lines = commands()
    assert len(lines) == 12
    outputs = {}
    for line in lines:
        status, output = run(line.replace("PROFILE", "../profile"), capsys)
        assert status == int(any(part in line for part in FAILS)), f"{line}\n{output}"
        outputs[line.split("--")[0].strip()] = output
    assert "step.exposed_communication_share" in (empty / "facts.md").read_text()
    assert "Too much communication is exposed" in outputs["advisor advise PROFILE"]
    assert (
        "3 cases" in outputs["advisor rules test rules -v"] or outputs["advisor rules test rules -v"].count("ok") == 3
    )
    assert "Too much communication is exposed" in outputs["advisor gate PROFILE"]


def test_the_example_extractor_of_the_document_works(empty, capsys):
    """Copied from the document, it adds its fact."""
    text = (ROOT / "docs" / "writing-rules.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text.partition("## Your own facts")[2], re.S)
    (empty / "extractor.py").write_text(block[1], encoding="utf-8")
    (empty / "advisor.toml").write_text('extractors = ["extractor.py"]\n')
    Path("../profile/speed.txt").write_text("4321")
    try:
        status, output = run("advisor facts ../profile -q --allow-code .", capsys)
    finally:
        from advisor.facts.registry import add_families

        add_families(())
    assert status == 0 and re.search(r'"acme\.speed"', output) and "4321" in output
