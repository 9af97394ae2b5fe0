"""Configuration files: what they may say, and how mistakes are answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.basics.errors import ConfigError, RuleError
from advisor.config import Config, load_config, parse_config
from advisor.ruleset.files.loader import load_rules


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ({"selct": ["COMM001"]}, "unknown key selct", "did you mean select?"),
        ({"models": {"m": {"lang": "en"}}}, "unknown key models.m.lang", ""),
        ({"severities": {"COMM001": "urgent"}}, "severities.COMM001", ""),
        ({"params": {"COMM001": 0.1}}, "params.COMM001 must be a table", ""),
        ({"lang": "de"}, "lang must be en or zh", ""),
        ({"engine": "clips"}, "engine must be", ""),
        ({"select": "COMM001"}, "select must be a list", ""),
    ],
)
def test_mistakes_name_the_key(table: dict, message: str, hint: str) -> None:
    """A misspelt key is never silently without effect."""
    with pytest.raises(ConfigError) as error:
        parse_config(table, Path("advisor.toml"))
    assert message in error.value.message
    assert hint in error.value.hint
    assert error.value.place == "advisor.toml"


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    """Configuration is found from any folder of the project, in advisor.toml or pyproject.toml."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.advisor]\nlang = "zh"\nrules = ["own"]\n[tool.advisor.gate]\nx = 1\n'
    )
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    config = load_config(start=inner)
    assert (config.lang, config.rules, config.gate) == ("zh", (tmp_path / "own",), {"x": 1})
    (tmp_path / "a" / "advisor.toml").write_text('engine = "python"\n')
    assert load_config(start=inner).engine == "python"
    assert load_config(start=inner).lang is None


def test_broken_files_are_told(tmp_path: Path) -> None:
    """A file that is no TOML ends in an error that names it."""
    path = tmp_path / "advisor.toml"
    path.write_text("lang = ")
    with pytest.raises(ConfigError, match="no valid TOML"):
        load_config(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.toml")


def test_a_model_has_its_own_thresholds() -> None:
    """A section for one model adds to the general one: lists are appended, parameters replaced one by one."""
    config = parse_config(
        {
            "ignore": ["A1"],
            "params": {"COMM001": {"share": 0.1, "n": 2}},
            "models": {"llama": {"ignore": ["B1"], "params": {"COMM001": {"share": 0.3}}}},
        }
    )
    tuned = config.for_model("llama")
    assert tuned.params == {"COMM001": {"share": 0.3, "n": 2}}
    assert tuned.ignore == ("A1", "B1")
    assert config.params["COMM001"]["share"] == 0.1
    with pytest.raises(ConfigError, match="lama"):
        config.for_model("lama")


def test_options_come_on_top() -> None:
    """What the command line says adds to, or replaces, what files say."""
    config = Config(ignore=("A1",), select=("COMM",)).with_options(
        ignore=["B1"], select=["DATA"], rules=["x"], lang="zh"
    )
    assert (config.ignore, config.select, config.rules, config.lang) == (("A1", "B1"), ("DATA",), (Path("x"),), "zh")


def test_a_pack_that_does_not_exist_is_told_with_the_file_that_names_it(tmp_path: Path) -> None:
    """The reader must know what to edit."""
    file = tmp_path / "advisor.toml"
    file.write_text('extend = ["nopack"]\n')
    with pytest.raises(RuleError, match="no pack 'nopack'") as caught:
        load_rules(config=load_config(file))
    assert caught.value.place == str(file)
