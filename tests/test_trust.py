"""Trust: what a configuration may do depends on whose it is, and code runs only where the user asked for it."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.basics.errors import UsageError
from advisor.cli.main import main
from advisor.facts import registry
from advisor.trust import settle, trust, trust_file, trusted_folders

EXAMPLE = Path(__file__).parents[1] / "examples" / "slow-rank-pipeline"
HOSTILE = 'extractors = ["e.py"]\n'


@pytest.fixture(autouse=True)
def own_list(tmp_path, monkeypatch):
    """Each test has a list of trusted folders of its own, and no extractors of another."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield
    registry.add_families(())


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file that appears when a stranger's program has run."""
    return tmp_path / "ran"


def modern(folder: Path) -> Path:
    """A folder of rank folders, as it comes from a cluster."""
    shutil.copytree(EXAMPLE, folder)
    return folder


def loose(folder: Path) -> Path:
    """The files of one rank without the folders around them."""
    shutil.copytree(next(EXAMPLE.glob("node0_4000*/ASCEND_PROFILER_OUTPUT")), folder)
    return folder


def older(folder: Path) -> Path:
    """A folder of rank folders with files of older MindSpore."""
    (folder / "rank_0" / "profiler").mkdir(parents=True)
    (folder / "rank_0" / "profiler" / "step_trace_raw_0_detail_time.csv").write_text("step_num\n1\n")
    return folder


def plant(folder: Path, text: str, ran: Path) -> None:
    """A configuration with a program beside data."""
    (folder / "advisor.toml").write_text(text)
    (folder / "e.py").write_text(f"open({str(ran)!r}, 'w').close()\n")


@pytest.mark.parametrize("layout", [modern, loose, older])
@pytest.mark.parametrize(
    "command",
    [["advise", "."], ["doctor", "."], ["facts", "."], ["rules", "lint", "."], ["rules", "list"], ["facts", "list"],
     ["gate", "."], ["baseline", "add", ".", "--baseline", "kept#main"], ["compare", ".", "."],
     ["explain", "COMM070", "--profile", "."], ["collect", "--for", "."],
     ["advise", ".", "--config", "advisor.toml"]],
    ids=" ".join,
)  # fmt: skip
def test_no_program_runs_from_inside_data(tmp_path, monkeypatch, capsys, ran, layout, command):
    """`cd` into a stranger's profile of any layout and run any command: his program does not run, and that is told."""
    folder = layout(tmp_path / "profile")
    plant(folder, HOSTILE, ran)
    monkeypatch.chdir(folder)
    main(command)
    told = capsys.readouterr()
    assert not ran.exists()
    assert "advisor.toml" in told.err + told.out


def test_nor_from_the_level_above(tmp_path, monkeypatch, ran, capsys):
    """A configuration one level above the rank folder that is judged is a stranger's too."""
    folder = modern(tmp_path / "profile")
    plant(folder, HOSTILE, ran)
    monkeypatch.chdir(next(folder.glob("*_ascend_ms")))
    main(["advise", "."])
    assert not ran.exists()


@pytest.mark.parametrize("ask", ["allow", "trust"])
def test_it_runs_where_the_user_asked(tmp_path, monkeypatch, ran, ask):
    """Named on the command line, or its folder trusted once."""
    folder = modern(tmp_path / "profile")
    plant(folder, HOSTILE, ran)
    monkeypatch.chdir(folder)
    more = ["--allow-code", "."] if ask == "allow" else []
    if ask == "trust":
        assert main(["trust", "."]) == 0
    elif not more:
        pytest.fail("nothing asked")
    main(["advise", ".", *more, "--config", "advisor.toml", "-q"])
    assert ran.exists()


def test_trust_does_not_reach_below(tmp_path, monkeypatch, ran):
    """A stranger's profile unpacked inside a trusted project stays a stranger's."""
    project = tmp_path / "project"
    folder = modern(project / "downloads" / "profile")
    trust(project)
    plant(folder, HOSTILE, ran)
    monkeypatch.chdir(folder)
    main(["advise", ".", "-q"])
    assert not ran.exists()


def test_trust_can_be_withdrawn(tmp_path, monkeypatch, ran, capsys):
    """`advisor trust` without a folder lists, --remove takes back."""
    folder = modern(tmp_path / "profile")
    plant(folder, HOSTILE, ran)
    assert main(["trust", str(folder)]) == 0
    capsys.readouterr()
    assert main(["trust"]) == 0 and capsys.readouterr().out.split() == [str(folder)]
    assert main(["trust", "--remove", str(folder)]) == 0
    monkeypatch.chdir(folder)
    main(["advise", ".", "-q"])
    assert not ran.exists() and trusted_folders() == frozenset()


def advised(capsys, *arguments: str) -> tuple[int, dict]:
    """Exit status and JSON report of `advisor advise`."""
    status = main(["advise", *arguments, "--format", "json", "-q"])
    return status, json.loads(capsys.readouterr().out)


def test_a_configuration_with_the_data_hides_no_finding(tmp_path, monkeypatch, capsys):
    """`ignore` beside the data makes no faulty run healthy, and the report names what it would have done."""
    folder = modern(tmp_path / "profile")
    before, plain = advised(capsys, str(folder), "--fail-on", "medium")
    (folder / "advisor.toml").write_text('ignore = ["*"]\n[severities]\nHOST001 = "low"\n')
    monkeypatch.chdir(folder)
    status, report = advised(capsys, ".", "--fail-on", "medium")
    assert status == before == 1
    assert [f["rule"] for f in report["findings"]] == [f["rule"] for f in plain["findings"]]
    [told] = [p["problem"] for p in report["problems"] if "advisor.toml" in p["file"]]
    assert "not in force" in told and "ignore (*)" in told and "HOST001" in told


def test_a_configuration_that_was_found_is_named_in_the_report(tmp_path, monkeypatch, capsys):
    """One's own, in the folder above: it is in force, and a reader of the report sees what it chose."""
    modern(tmp_path / "project" / "runs" / "one")
    (tmp_path / "project" / "advisor.toml").write_text('ignore = ["COMM"]\n')
    monkeypatch.chdir(tmp_path / "project")
    _, report = advised(capsys, "runs/one")
    assert not any(check["rule"].startswith("COMM") for check in report["checked"])
    [told] = [p["problem"] for p in report["problems"] if "advisor.toml" in p["file"]]
    assert "in force" in told and "ignore (COMM)" in told
    for quiet in (["--config", "advisor.toml"], []):
        trust(tmp_path / "project")
        _, report = advised(capsys, "runs/one", *quiet)
        assert not any("advisor.toml" in p["file"] for p in report["problems"])


@pytest.mark.parametrize("key", ["extend", "rules"])
def test_a_configuration_with_the_data_names_no_folders(tmp_path, monkeypatch, capsys, key):
    """It may not send the advisor through other folders of this machine for rules."""
    folder = modern(tmp_path / "profile")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SECRET1-x.yaml").write_text("password: 1234")
    (folder / "advisor.toml").write_text(f'{key} = ["{outside}"]\n')
    monkeypatch.chdir(folder)
    main(["advise", ".", "--format", f"json:{tmp_path / 'r.json'}"])
    told = capsys.readouterr().err + (tmp_path / "r.json").read_text()
    assert "not in force" in told and "password" not in told and "SECRET1" not in told


def test_what_the_user_asks_for_is_not_left_out_silently(tmp_path, monkeypatch, capsys):
    """A gate whose policy, or a model whose section, lies with the data is wrong usage, not a weaker gate."""
    folder = modern(tmp_path / "profile")
    (folder / "advisor.toml").write_text('[models.m]\nignore = ["COMM"]\n[gate]\nmin_runs = 1\n')
    monkeypatch.chdir(folder)
    assert main(["gate", ".", "--baseline", "kept#main"]) == 2
    assert main(["advise", ".", "--model", "m"]) == 2
    assert "advisor trust" in capsys.readouterr().err
    assert main(["advise", ".", "--model", "m", "--config", "advisor.toml", "-q"]) == 0


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[1]", '["relative"]', "[" * 100_000, "x" * 2_000_000])
def test_a_damaged_list_trusts_nobody(tmp_path, text, capsys):
    """It is named with what to do, and no folder counts as trusted."""
    trust(tmp_path)
    trust_file().write_text(text)
    with pytest.raises(UsageError, match="trust"):
        trusted_folders()
    (tmp_path / "advisor.toml").write_text("")
    with pytest.raises(UsageError):
        settle(tmp_path / "advisor.toml")


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_list_that_others_can_write_trusts_nobody(tmp_path):
    """Else anybody on the machine could add a folder to it."""
    trust(tmp_path)
    assert trust_file().stat().st_mode & 0o077 == 0
    trust_file().chmod(0o666)
    with pytest.raises(UsageError, match="others can write"):
        trusted_folders()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("opened", ["e.py", "."])
def test_what_anybody_can_write_is_not_the_users_own(tmp_path, monkeypatch, ran, capsys, opened):
    """In a trusted folder a program that everybody on the machine can replace does not run, unless it is asked for."""
    folder = modern(tmp_path / "profile")
    plant(folder, HOSTILE, ran)
    trust(folder)
    (folder / opened).chmod(0o777)
    monkeypatch.chdir(folder)
    _, report = advised(capsys, ".", "--config", "advisor.toml")
    assert not ran.exists() and any("anybody can write" in each["problem"] for each in report["problems"])
    main(["advise", ".", "--config", "advisor.toml", "--allow-code", ".", "-q"])
    assert ran.exists()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_folder_that_anybody_can_write_is_not_trusted(tmp_path, monkeypatch, capsys):
    """Nor is what it says in force, where it was opened later."""
    folder = modern(tmp_path / "profile")
    (folder / "advisor.toml").write_text('ignore = ["CLUS010"]\n')
    monkeypatch.chdir(folder)
    trust(folder)
    assert all(f["rule"] != "CLUS010" for f in advised(capsys, ".")[1]["findings"])
    (folder / "advisor.toml").chmod(0o666)
    assert any(f["rule"] == "CLUS010" for f in advised(capsys, ".")[1]["findings"])
    folder.chmod(0o777)
    assert main(["trust", str(folder)]) == 2 and "anybody can write" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["trust", "nowhere"], ["advise", str(EXAMPLE), "--allow-code", "nowhere"]])
def test_a_folder_that_does_not_exist_is_wrong_usage(wrong, capsys):
    """Trusting a misspelt folder helps nobody."""
    assert main(wrong) == 2
    assert "no such folder" in capsys.readouterr().err


def test_a_folder_whose_name_is_no_text_can_be_trusted(tmp_path, capsys):
    """Bytes that are no UTF-8 are kept as they are, and the list shows no control characters."""
    folder = tmp_path / os.fsdecode(b"odd\x1b[31m\xff")
    folder.mkdir()
    assert main(["trust", str(folder)]) == 0
    assert trusted_folders() == {folder.resolve()}
    capsys.readouterr()
    assert main(["trust"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_what_is_withdrawn_does_not_come_back(tmp_path):
    """Commands that change the list at the same time lose nothing of one another's."""
    folders = [tmp_path / f"f{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:6]:
        trust(folder)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda folder: trust(folder, withdraw=folder in folders[:6]), folders))
    assert trusted_folders() == {folder.resolve() for folder in folders[6:]}
