"""Habits of the command line that people bring along: an example, silence, completion, a table to read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from advisor.cli.main import cli, main

ROOT = Path(__file__).parents[1]


def test_the_example_is_written_and_judged(tmp_path, capsys):
    """What a newcomer types first, and what the command tells to type next."""
    folder = tmp_path / "demo"
    assert main(["example", str(folder)]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == str(folder) and f"advisor advise {folder}" in told.err
    assert main(["advise", str(folder), "-q"]) == 0
    assert "rank 1" in capsys.readouterr().out.lower()


def test_the_example_overwrites_nothing(tmp_path, capsys):
    """A folder with anything in it is refused."""
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["example", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["example", str(tmp_path / "new"), "-q"]) == 0 and capsys.readouterr().err == ""


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        elif command is not None:
            yield (*names, name), command


@pytest.mark.parametrize(
    ("words", "command"), list(commands(cli)), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_can_be_quiet(words, command):
    """`-q` is understood everywhere, so that a script need not know where."""
    assert any("-q" in option.opts for option in command.params), " ".join(words)


def test_quiet_commands_say_results_only(tmp_path, capsys):
    """Remarks on standard error are gone, results stay."""
    assert main(["rules", "lint", str(ROOT / "rules" / "memory"), "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["doctor", str(ROOT / "examples" / "slow-rank-pipeline"), "-q"]) == 0
    told = capsys.readouterr()
    assert told.err == "" and "4 of 4 ranks" in told.out


def test_the_catalogue_is_a_table(capsys):
    """One line a fact, columns aligned; JSON and Markdown on request."""
    assert main(["facts", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["fact", "unit", "of", "meaning"]
    at = lines[0].index("unit")
    assert all(line[at - 1] == " " and line[at] != " " for line in lines[:-1])
    assert int(lines[-1].split()[0]) == len(lines) - 2
    assert main(["facts", "list", "--format", "json"]) == 0 and capsys.readouterr().out.startswith("[")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(shell):
    """The line in the documents gives a script, and the script's question an answer."""
    text = (ROOT / "docs" / "everyday.md").read_text(encoding="utf-8")
    assert f"_ADVISOR_COMPLETE={shell}_source advisor" in text
    run = [sys.executable, "-c", "import sys; from advisor.cli.main import main; sys.exit(main())"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "_ADVISOR_COMPLETE": f"{shell}_source"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=60)
    if shell == "bash" and "Bash version" in done.stderr:
        pytest.skip("an old bash")
    assert "_ADVISOR_COMPLETE" in done.stdout
    environment |= {
        "_ADVISOR_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "advisor ba",
        "COMP_CWORD": "ba" if shell == "fish" else "1",
    }
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert "baseline" in done.stdout


def test_the_wheel_takes_the_example_along():
    """Whoever installed the package has it too."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'"examples/slow-rank-pipeline" = "advisor/_data/examples/slow-rank-pipeline"', text)
