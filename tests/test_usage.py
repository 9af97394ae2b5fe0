"""Wrong usage is told before any analysis: empty arguments, outputs that collide or have no folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.basics.errors import UsageError
from advisor.cli.main import main

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "slow-rank-pipeline")


@pytest.mark.parametrize(
    "arguments",
    [["advise", ""], ["advise", "", "-q"], ["gate", ""], ["gate", EXAMPLE, "--baseline", ""], ["doctor", ""],
     ["facts", ""], ["compare", EXAMPLE, ""], ["advise", EXAMPLE, "--config="], ["advise", EXAMPLE, "--rules", ""],
     ["baseline", "add", "", "--baseline", "b#m"], ["serve", ""], ["advise", EXAMPLE, "--format", "json:"]],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_argument_is_no_folder(arguments, tmp_path, monkeypatch, capsys):
    """An unset variable in CI is wrong usage and no verdict on whatever lies in the current folder."""
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert "empty" in capsys.readouterr().err


def test_scripts_are_told_too():
    """`advise("")` of the Python API does not mean the current folder either."""
    from advisor.api import load_profile

    with pytest.raises(UsageError, match="empty"):
        load_profile("")


@pytest.mark.parametrize(
    ("formats", "told"),
    [
        (["json:{}/a.json", "html:{}/a.json"], "two outputs go to"),
        (["json:{}/a.json", "html:{}/../{name}/a.json"], "two outputs go to"),
        (["text", "json"], "standard output"),
        (["text", "json:-"], "standard output"),
        (["json", "sarif:/dev/stdout"], "standard output"),
        (["json:{}/none/a.json"], "mkdir -p"),
        (["json:{}"], "is a folder"),
    ],
)
@pytest.mark.parametrize("command", [["advise"], ["gate", "--baseline", "b#m"]], ids=["advise", "gate"])
def test_outputs_that_cannot_be_are_told_first(tmp_path, capsys, command, formats, told):
    """One output would overwrite the other, or the analysis would be for nothing; no profile is opened before."""
    asked = [word for each in formats for word in ("--format", each.format(tmp_path, name=tmp_path.name))]
    assert main([command[0], "/nowhere/at/all", *command[1:], *asked]) == 2
    error = capsys.readouterr().err
    assert told in error and "/nowhere" not in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", [["facts", "/nowhere", "--save"], ["compare", "/no", "/nor", "-o"], ["collect", "-o"]]
)
def test_every_output_file_is_checked_first(tmp_path, capsys, command):
    """Not only reports."""
    assert main([*command, str(tmp_path / "none" / "file")]) == 2
    assert "mkdir -p" in capsys.readouterr().err


def test_one_device_takes_two_outputs(capsys):
    """/dev/null overwrites nothing."""
    assert main(["advise", EXAMPLE, "-q", "--format", "json:/dev/null", "--format", "html:/dev/null"]) == 0


@pytest.mark.parametrize("kind", ["pipe", "device", "hole"])
@pytest.mark.parametrize(
    "arguments",
    [["advise", EXAMPLE, "--config"], ["collect", "--for-missing"], ["collect", "--check"], ["compare", EXAMPLE]],
    ids=lambda given: given[0] + given[-1],
)
def test_what_is_no_plain_file_of_its_kind_is_told(arguments, kind, tmp_path, capsys):
    """A pipe never answers, a device never ends, eight gigabytes of nothing fill the memory: none of them is read."""
    target = tmp_path / "given.json"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "device":
        target.symlink_to("/dev/zero")
    else:
        target.touch()
        os.truncate(target, 8 << 30)
    assert main([*arguments, str(target)]) in (2, 3)
    assert "Traceback" not in (said := capsys.readouterr().err) and "given.json" in said


def test_a_giant_configuration_beside_data_is_not_read(tmp_path, monkeypatch, capsys):
    """A stranger's profile brings an advisor.toml of eight gigabytes."""
    (tmp_path / "advisor.toml").touch()
    os.truncate(tmp_path / "advisor.toml", 8 << 30)
    monkeypatch.chdir(tmp_path)
    assert main(["advise", EXAMPLE, "-q"]) == 2
    assert "too many" in capsys.readouterr().err
