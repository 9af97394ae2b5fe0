"""A user of `--lang zh` reads Chinese, whatever the command and whatever went wrong."""

from __future__ import annotations

import re

import click
import pytest

from advisor.basics.resources import resource
from advisor.cli import language
from advisor.cli.main import cli, main
from advisor.knowledge.messages import translated
from tests.helpers.texts import english_in

EXAMPLE = str(resource("examples", "slow-rank-pipeline"))
BAD_RULE = """id: ACME001
title: {en: Idle, zh: 空闲}
verdict: acme/idle
direction: scheduling
kind: cause
for: run
params:
  limit: {value: 0.2, unit: ratio, origin: "our target"}
needs: [step.idle_share]
when: {condition}
severity: low
message: {en: "It is idle.", zh: "空闲。"}
"""


@pytest.fixture(autouse=True)
def _of_nobody():
    """Every test asks for its own language."""
    yield
    language.settle([], {})


def run(capsys, *arguments: str) -> str:
    """Everything a command says on either stream."""
    main([*arguments, "--lang", "zh"])
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor", EXAMPLE),
        ("explain", "CLUS010", "--profile", EXAMPLE),
        ("explain", "COMM010"),
        ("advise", EXAMPLE, "-q"),
        ("rules", "list"),
        ("collect", "--evidence", "communication"),
        ("collect", "--for", EXAMPLE),
        ("advise", "/no/such/folder"),
        ("explain", "NOSUCH1"),
        ("explain",),
        ("advise", EXAMPLE, "--fail", "high"),
        ("collect", "--steps", "many"),
        ("advise", EXAMPLE, "--format", "word"),
        ("advise", EXAMPLE, "--select", "NOSUCH"),
        ("--help",),
        ("rules", "--help"),
    ],
    ids=" ".join,
)
def test_no_command_falls_back_to_english(capsys, arguments):
    """Four English words in a row are a sentence that nobody translated."""
    said = run(capsys, *arguments)
    assert re.search("[\u4e00-\u9fff]", said)
    assert english_in(said) == []


def test_every_page_of_help_is_chinese(capsys):
    """What an option does is no secret of those who read English."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        for page in ((name,), *((name, each) for each in getattr(command, "commands", {}))):
            assert english_in(run(capsys, *page, "--help")) == [], page


@pytest.mark.parametrize(
    "condition",
    [
        "step.idle_share >", "step.idle_share = 0.2", "step.idle_shar > $limit", "step.idle_share > step.time_us",
        "step.idle_share > $limt", "medain(step.idle_share) > 2", "step.idle_share", "(step.idle_share > 1",
        "len(step.idle_share) > 1", "median(rank.compute_us, 2) > 1", "step.idle_share > 'a", "not",
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rule_is_told_in_chinese(tmp_path, capsys, condition):
    """Authors of rules read where and why in their language."""
    path = tmp_path / "ACME001-idle.yaml"
    path.write_text(BAD_RULE.replace("{condition}", f'"{condition}"'), encoding="utf-8")
    said = run(capsys, "rules", "lint", str(path))
    assert "ACME001-idle.yaml" in said and english_in(said) == []


def test_the_configuration_names_the_language_of_errors(tmp_path, monkeypatch, capsys):
    """Also where the configuration itself is what is wrong."""
    (tmp_path / "advisor.toml").write_text('lang = "zh"\nbogus = 3\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["advise", EXAMPLE]) == 2
    said = capsys.readouterr().err
    assert "bogus" in said and english_in(said) == []


def test_the_language_is_found_before_arguments_are_checked(tmp_path):
    """`--lang` wherever it stands, then the configuration that is named; help follows the system where neither does."""
    (tmp_path / "own.toml").write_text('[gate]\n[tool]\nlang = "zh"\n', encoding="utf-8")
    language.settle(["advise", "--lang=zh", "--bogus"], {})
    assert language.spoken() == language.of_help() == "zh"
    language.settle(["advise", "--config", str(tmp_path / "own.toml")], {"LANG": "C.UTF-8"})
    assert language.spoken() == language.of_help() == "en", "lang of another section is not the advisor's"
    language.settle(["--help"], {"LC_ALL": "", "LANG": "zh_CN.UTF-8"})
    assert (language.named(), language.spoken(), language.of_help()) == (None, "en", "zh")
    language.settle(["--lang", "en"], {"LANG": "zh_CN.UTF-8"})
    assert language.of_help() == "en"


def test_a_group_tells_the_whole_first_sentence_of_its_commands(capsys):
    """A sentence cut off in the middle tells nothing."""
    main(["rules", "--help"])
    page = " ".join(capsys.readouterr().out.split())
    assert "with file, line and a hint." in page and "..." not in page.replace("[ARGS]...", "")


def test_a_message_within_a_message_is_translated_too():
    """What the parser says stands within what the rule file says."""
    assert translated("unexpected ')' in 'a)' (character 2)", "zh") == "'a)'中多出')'（第2个字符）"
