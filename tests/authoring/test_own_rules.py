"""What a newcomer trips over with rules of his own is found by lint, all at once, with a hint that fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.basics.errors import ConfigError
from advisor.basics.suggest import suggest
from advisor.cli.main import main
from advisor.config import parse_config
from advisor.facts.registry import catalogue
from advisor.gate.metrics import defaults
from advisor.ruleset.files.loader import load_rules

ROOT = Path(__file__).parents[2]
RULE = """
id: {id}
title: {{en: Too much, zh: 过多}}
verdict: {verdict}
direction: communication
kind: symptom
for: run
params:
  share: {{value: {value}, unit: {unit}, origin: "our target"}}
needs: [step.exposed_communication_share]
when: {when}
explains: [{explains}]
severity: high
message: {{en: "{{{{ step.exposed_communication_share }}}}", zh: "{{{{ step.exposed_communication_share }}}}"}}
"""


def write(folder: Path, id: str, **given: str) -> Path:
    """A rule of one's own, without cases."""
    filled = {
        "id": id, "verdict": f"acme/{id.lower()}", "value": "0.3", "unit": "ratio", "explains": "",
        "when": "[step.exposed_communication_share > $share]", **given,
    }  # fmt: skip
    path = folder / f"{id}-rule.yaml"
    path.write_text(RULE.format(**filled), encoding="utf-8")
    return path


def told(folder: Path, capsys) -> str:
    """What lint says of a folder."""
    main(["rules", "lint", str(folder)])
    return capsys.readouterr().out


def explains(verdict: str) -> str:
    return f'{{verdict: {verdict}, "on": any}}'


def test_an_id_of_the_shipped_pack_is_told(tmp_path, capsys):
    """`advise` refuses two rules of one id; lint says so before."""
    write(tmp_path, "COMM070")
    assert "COMM070 is a rule of the shipped pack" in told(tmp_path, capsys)


def test_circles_of_explanations_are_told(tmp_path, capsys):
    """Two rules that explain each other, and one that explains itself."""
    write(tmp_path, "ACME001", explains=explains("acme/acme002"))
    write(tmp_path, "ACME002", explains=explains("acme/acme001"))
    write(tmp_path, "ACME003", explains=explains("acme/acme003"))
    text = told(tmp_path, capsys)
    assert "explains itself: acme/acme001 → acme/acme002 → acme/acme001" in text
    assert "explains itself: acme/acme003 → acme/acme003" in text


def test_rules_that_need_each_other_are_told(tmp_path, capsys):
    """Neither is ever reached; one that needs a third rule's finding is fine."""
    write(tmp_path, "ACME001", when="[{finding: acme/acme002}, step.exposed_communication_share > $share]")
    write(tmp_path, "ACME002", when="[{finding: acme/acme001}, step.exposed_communication_share > $share]")
    write(tmp_path, "ACME003", when="[{finding: acme/acme004}, step.exposed_communication_share > $share]")
    write(tmp_path, "ACME004")
    lines = [line for line in told(tmp_path, capsys).splitlines() if "never reached" in line]
    assert [line.rpartition("/")[2][:7] for line in lines] == ["ACME001", "ACME002"]
    assert "the finding of ACME002" in lines[0]


@pytest.mark.parametrize(
    ("when", "bare"),
    [
        ("[step.exposed_communication_share > 0.3]", "0.3"),
        ("[step.exposed_communication_share > $share, run.rank_count >= 4]", ""),
        ("[step.exposed_communication_share > 0]", ""),
        ("[step.time_us > 5000, step.exposed_communication_share > $share]", "5000"),
    ],
)  # fmt: skip
def test_a_bare_number_is_told(tmp_path, capsys, when, bare):
    """A threshold needs a name and an origin; how many ranks there must be speaks for itself."""
    write(tmp_path, "ACME001", when=when)
    found = re.search(r"([\d.]+) in a condition has no name", told(tmp_path, capsys))
    assert (found[1] if found else "") == bare


def test_percent_is_no_unit_and_fifty_percent_a_number(tmp_path, capsys):
    """The unit's hint says how shares are written; "50 %" is a half in a rule."""
    write(tmp_path, "ACME001", unit="percent", value="50")
    text = told(tmp_path, capsys)
    assert "there is no unit 'percent'" in text and '"50 %"' in text
    path = write(tmp_path, "ACME001", value='"50 %"')
    rules = load_rules([path.parent], catalogue=catalogue())
    assert rules.by_id["ACME001"].params["share"].value == 0.5


@pytest.mark.parametrize(("value", "meant"), [("50 %", 0.5), (0.5, 0.5), ("0.5", 0.5), ("5%", 0.05)])
def test_fifty_percent_means_the_same_in_a_configuration(value, meant):
    """In `[params]` as in a rule, a case or the gate."""
    table = {"params": {"COMM070": {"share": value}}}
    rules = load_rules(config=parse_config(table, Path("advisor.toml")), strict=False)
    param = rules.by_id["COMM070"].params["share"]
    assert param.value == pytest.approx(meant) and param.overridden == "advisor.toml"


@pytest.mark.parametrize("value", [50, 1.5, "150 %", "fifty"])
def test_a_share_above_one_is_refused(value):
    """A rule that waits for 5000 % never says anything."""
    with pytest.raises(ConfigError) as error:
        load_rules(config=parse_config({"params": {"COMM070": {"share": value}}}, Path("advisor.toml")), strict=False)
    assert "COMM070" in str(error.value)
    if value == 50:
        assert '0.5 or "50 %"' in str(error.value)


def test_missing_cases_are_told_with_the_other_errors(tmp_path, capsys):
    """Not after the rest was repaired."""
    write(tmp_path, "ACME001", when="[step.exposed_comunication_share > $share]")
    text = told(tmp_path, capsys)
    assert "did you mean step.exposed_communication_share?" in text and "the rule has no cases" in text


def test_an_overridden_threshold_says_whose_value_it_is(tmp_path, monkeypatch, capsys):
    """`explain` and `rules show` name the file that set it."""
    (tmp_path / "advisor.toml").write_text('[params.COMM070]\nshare = "7 %"\n')
    for command in (["explain", "COMM070"], ["rules", "show", "COMM070"]):
        assert main([*command, "--config", str(tmp_path / "advisor.toml")]) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if "share =" in line)
        assert "7\xa0%" in line and "advisor.toml" in line


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [("COMP08O", ["COMP080", "COMP081", "COMM080"], "COMP080"), ("comm070", ["COMM070", "COMM071"], "COMM070"),
     ("selct", ["select", "severities"], "select"), ("step.time_ms", ["step.time_us", "step.tail_us"], "step.time_us"),
     ("exposed_communication", ["exposed-communication", "hidden"], "exposed-communication"),
     ("xyz", ["select"], None)],
)  # fmt: skip
def test_suggestions_fit(word, known, meant):
    """What was mistyped: a swapped letter, an O for a 0, another case."""
    assert suggest(word, known) == ([meant] if meant else [])


def test_yaml_of_both_versions_is_content(tmp_path, capsys):
    """Shipped files are read alike by parsers of YAML 1.1 and 1.2; lint warns of one's own that are not."""
    from advisor.authoring.chains import read_otherwise
    from advisor.ruleset.files.found import rule_files

    files = [*rule_files(ROOT / "rules"), *sorted((ROOT / "rules").rglob("*.test.yaml"))]
    assert len(files) > 200 and [fault for path in files for fault in read_otherwise(path)] == []
    write(tmp_path, "ACME001", explains="{verdict: acme/other, on: any}", value="5e-1")
    text = told(tmp_path, capsys)
    assert "'on' is True for tools of YAML 1.1" in text and 'quote it: "on"' in text and "5.0e+4" in text


def test_a_hexadecimal_number_without_end_is_told(tmp_path):
    """Parsers of YAML 1.1 read it as a number of more digits than Python writes out."""
    from advisor.authoring.chains import read_otherwise

    path = tmp_path / "a.yaml"
    path.write_text("x: 0x" + "f" * 10_000, encoding="utf-8")
    (fault,) = read_otherwise(path)
    assert "thousands of digits" in str(fault) and len(str(fault)) < 20_000


def test_documents_name_only_facts_that_exist():
    """Whoever copies a name from the documents must not be told that it does not exist."""
    known = catalogue()
    areas = {name.partition(".")[0] for name in known}
    files = [ROOT / "docs" / name for name in ("writing-rules.md", "gate.md", "api.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    named = set(re.findall(r"(?<![\w./-])([a-z_]+\.[a-z_]+(?:_us|_share|_bytes|_count|_ratio))(?![\w./-])", text))
    named = {name for name in named if name.partition(".")[0] in areas}
    metrics = set(defaults()["metrics"])  # a metric of the gate may stand for several facts
    assert len(named) > 5 and named - set(known) - metrics == set()
