"""Loading rules: every defect with its place, and none that takes other rules with it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CATALOGUE, PACK, faulty

from advisor.basics.errors import ConfigError, RuleError
from advisor.config import Config
from advisor.ruleset.files.loader import load_rules

_SOURCE = (PACK / "TEST001-exposed.yaml").read_text(encoding="utf-8")


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACK, tmp_path / "pack"))


def test_one_broken_file_never_loses_the_others(pack: Path) -> None:
    """A typo in one rule leaves the others judging, and shows up as an error of that rule."""
    (pack / "BAD001-x.yaml").write_text(
        _SOURCE.replace("TEST001", "BAD001").replace("step.exposed_share >", "step.exposd >")
    )
    (pack / "BAD002-x.yaml").write_text("id: [")
    rules = load_rules([pack], catalogue=CATALOGUE, strict=False)
    assert [rule.id for rule in rules.rules] == ["TEST001", "TEST002", "TEST003"]
    assert set(rules.broken()) == {"BAD001", "BAD002"}
    assert any("BAD001-x.yaml:15" in problem.file for problem in rules.problems())


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("id: sample-split", "id: sample-spilt", "there is no remedy"),
        ("verdict: ", "verdict: un", "there is no verdict"),
        ('message:\n  en: "', 'message:\n  en: "{{ step.nothing }} ', "there is no fact"),
    ],
)
def test_a_rule_that_refers_to_nothing_is_not_judged(pack: Path, before: str, after: str, told: str) -> None:
    """What lint refuses is never judged: a misspelt verdict would stand in the report, a remedy would be lost."""
    source = (pack / "TEST001-exposed.yaml").read_text(encoding="utf-8")
    assert before in source
    (pack / "TEST001-exposed.yaml").write_text(source.replace(before, after, 1), encoding="utf-8")
    rules = load_rules([pack], catalogue=CATALOGUE, strict=False)
    assert told in rules.broken()["TEST001"]


def test_strict_loading_lists_all_errors_with_lines(pack: Path) -> None:
    """An author sees everything that is wrong at once, each with file, line and a hint."""
    broken = (
        _SOURCE.replace("TEST001", "BAD001")
        .replace("step.exposed_share > $share", "step.exposed_share > $shares")
        .replace("severity:", "severty:")
        .replace("kind: symptom", "kind: sympton")
    )
    (pack / "BAD001-x.yaml").write_text(broken)
    (pack / "BAD002-x.yaml").write_text(_SOURCE)
    with pytest.raises(RuleError) as error:
        load_rules([pack], catalogue=CATALOGUE)
    text = str(error.value)
    assert "did you mean severity?" in text
    assert "BAD001-x.yaml:5: kind" in text
    assert "BAD002-x.yaml:1: the rule TEST001 stands in BAD002-x.yaml" in text


def test_two_rules_of_one_id_are_an_error(pack: Path) -> None:
    """A pack cannot silently replace a rule of another."""
    shutil.copy(pack / "TEST001-exposed.yaml", pack / "TEST001-other.yaml")
    with pytest.raises(RuleError, match="a second rule TEST001"):
        load_rules([pack], catalogue=CATALOGUE)


def test_configuration_tunes_and_selects(pack: Path) -> None:
    """Thresholds and severities are changed by name; a name that does not exist is an error with a suggestion."""
    config = Config(params={"TEST001": {"share": 0.3}}, severities={"TEST003": "low"}, ignore=("computation",))
    rules = load_rules([pack], config=config, catalogue=CATALOGUE)
    assert sorted(rules.by_id) == ["TEST001", "TEST003"]
    assert rules.by_id["TEST001"].params["share"].value == 0.3
    assert rules.by_id["TEST001"].params["share"].overridden
    for wrong, hint in (
        (Config(params={"TEST001": {"shares": 1}}), "did you mean share?"),
        (Config(params={"TEST010": {"share": 1}}), "did you mean TEST"),
        (Config(params={"TEST001": {"share": "much"}}), ""),
        (Config(select=("slow-compute-rnk",)), "did you mean slow-compute-rank?"),
    ):
        with pytest.raises(ConfigError) as error:
            load_rules([pack], config=wrong, catalogue=CATALOGUE)
        assert hint in error.value.hint


def test_packs_build_on_each_other(pack: Path, tmp_path: Path) -> None:
    """A pack takes another's rules, leaves some out and tightens a threshold; the user has the last word."""
    (pack / "pack.yaml").write_text("name: pack\n")
    strict = tmp_path / "strict"
    strict.mkdir()
    (strict / "pack.yaml").write_text(
        "extend: [../pack]\nignore: [TEST003]\nparams: {TEST001: {share: 0.05, min_steps: 5}}\n"
    )
    config = Config(extend=(str(strict),), params={"TEST001": {"min_steps": 9}})
    rules = load_rules(config=config, catalogue=CATALOGUE)
    assert sorted(rules.by_id) == ["TEST001", "TEST002"]
    assert [rules.by_id["TEST001"].params[name].value for name in ("share", "min_steps")] == [0.05, 9]
    assert "sample-split" in rules.remedies
    with pytest.raises(RuleError, match="there is no pack"):
        load_rules(config=Config(extend=("stritc",)), catalogue=CATALOGUE)


def test_packs_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    """A circle of packs is an error, not an endless loop."""
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        (tmp_path / one / "pack.yaml").write_text(f"extend: [../{other}]\n")
    with pytest.raises(RuleError, match="extend each other"):
        load_rules(config=Config(extend=(str(tmp_path / "a"),)), catalogue=CATALOGUE)


def test_links_out_of_a_pack_are_not_followed(pack: Path, tmp_path: Path) -> None:
    """An untrusted pack reads nothing outside its folder."""
    secret = tmp_path / "SECRET1-x.yaml"
    secret.write_text(_SOURCE)
    (pack / "SECRET1-x.yaml").symlink_to(secret)
    assert "SECRET1" not in load_rules([pack], catalogue=CATALOGUE).broken()


def test_many_rules_load_quickly(tmp_path: Path) -> None:
    """150 rules cost a fraction of a second, so that the advisor starts at once."""
    for number in range(150):
        (tmp_path / f"R{number}-x.yaml").write_text(_SOURCE.replace("TEST001", f"R{number}"))
    shutil.copytree(PACK / "remedies", tmp_path / "remedies")
    start = time.process_time()
    assert len(load_rules([tmp_path], catalogue=CATALOGUE).rules) == 150
    assert time.process_time() - start < 1.0


_WRONG = st.sampled_from(
    """
null; 3; []; {}; [[1]]; {any: }; {any: []}; {count: 3}; {count: {of: x, where: [], is: 3}}; {not: {not: }}
{finding: 3}; {finding: a, on: b}; {all: [1], any: [2]}; 'step.count >'; 'step.count > 1'; text; true; 2e400
{x: {kind: run, on: {a: b}}}; {x: {value: 1, unit: furlong, origin: abc}}; {by: step.count}; {en: a, zh: b}
""".strip()
    .replace("\n", "; ")
    .split("; ")
)


@given(st.sampled_from([line.split(":")[0] for line in _SOURCE.splitlines() if line[0].isalpha()]), _WRONG)
@settings(max_examples=250)
def test_wrong_values_anywhere_are_faults(key: str, value: str) -> None:
    """Whatever stands under whatever key, the author gets a rule or a message, never a traceback."""
    kept, skipping = [], False
    for line in _SOURCE.splitlines():
        skipping = line.startswith(f"{key}:") or (skipping and not line[:1].isalpha())
        if not skipping:
            kept.append(line)
    made, faults = faulty("\n".join([*kept, f"{key}: {value}"]))
    assert made is not None or faults
