"""A rule that explodes is stopped and told; the others are judged as ever."""

import json

import pytest

from advisor.cli.main import main
from advisor.facts import saved
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, ProfileInfo, Subject
from advisor.pipeline import Measured

JOINED = """
id: {id}
title: {{en: Any three ranks}}
verdict: boom/{slug}
direction: computation
kind: cause
for: rank
join:
  a: {{kind: rank, on: {{rank.peer_group: rank.peer_group}}}}
  b: {{kind: rank, on: {{rank.peer_group: rank.peer_group}}}}
needs: [step.time_us]
when: [{when}]
severity: high
message: {{en: three}}
"""
FINE = """
id: FINE001
title: {en: A rank takes time}
verdict: fine/time
direction: computation
kind: cause
for: rank
needs: [step.time_us]
when: step.time_us > 1
severity: high
message: {en: time}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Six hundred ranks in one group, as saved facts, and three rules."""
    facts = FactSet([Fact("step.time_us", RUN, 1e5)])
    for rank in range(600):
        subject = Subject("rank", str(rank), (rank,))
        facts.add(Fact("step.time_us", subject, 1e5))
        facts.add(Fact("rank.peer_group", subject, "all"))
    info = ProfileInfo("many", ranks=tuple(range(600)))
    (tmp_path / "facts.json").write_text(saved.dump(Measured(info, facts)))
    rules = tmp_path / "rules"
    rules.mkdir()
    plain, mixed = '"a:step.time_us > 0", "b:step.time_us > 0"', '"a:step.time_us + b:step.time_us > 0"'
    (rules / "BOOM001-plain.yaml").write_text(JOINED.format(id="BOOM001", slug="plain", when=plain))
    (rules / "BOOM002-mixed.yaml").write_text(JOINED.format(id="BOOM002", slug="mixed", when=mixed))
    (rules / "FINE001-time.yaml").write_text(FINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_an_exploding_rule_is_stopped_and_the_others_are_judged(place, capsys, engine):
    """215 million triples would take hours; the rule is outcome error, and a problem says why."""
    command = ["advise", "--facts", "facts.json", "--rules", "rules", "--select", "BOOM*,FINE*"]
    assert main([*command, "--engine", engine, "--format", "json", "-q"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {c["rule"]: c["outcome"] for c in report["checked"]} == {
        "BOOM001": "error", "BOOM002": "error", "FINE001": "fail",
    }  # fmt: skip
    told = [problem["problem"] for problem in report["problems"]]
    assert any("BOOM001" in text and "matches in one run" in text for text in told)
    assert any("BOOM002" in text and "50000 combinations" in text for text in told)


def test_one_rule_does_not_flood_the_report(place, capsys):
    """Of six hundred findings of one rule five hundred are told, and the rest is said to exist."""
    assert main(["advise", "--facts", "facts.json", "--rules", "rules", "--select", "FINE001", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["findings"]) == 500
    assert {"file": "FINE001", "problem": "reached its verdict about 600 subjects; only 500 of them are told"} in (
        report["problems"]
    )
