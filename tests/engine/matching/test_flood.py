"""A rule that matches about hundreds of subjects does not drown the others."""

import json

import pytest

from advisor.cli.main import main
from advisor.facts import saved
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, ProfileInfo, Subject
from advisor.pipeline import Measured

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
    """Six hundred ranks in one group, as saved facts, and a rule."""
    facts = FactSet([Fact("step.time_us", RUN, 1e5)])
    for rank in range(600):
        subject = Subject("rank", str(rank), (rank,))
        facts.add(Fact("step.time_us", subject, 1e5))
        facts.add(Fact("rank.peer_group", subject, "all"))
    info = ProfileInfo("many", ranks=tuple(range(600)))
    (tmp_path / "facts.json").write_text(saved.dump(Measured(info, facts)))
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "FINE001-time.yaml").write_text(FINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_rule_does_not_flood_the_report(place, capsys):
    """Of six hundred findings of one rule five hundred are told, and the rest is said to exist."""
    assert main(["advise", "--facts", "facts.json", "--rules", "rules", "--select", "FINE001", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["findings"]) == 500
    told = [(problem["file"], problem["problem"]) for problem in report["problems"]]
    assert ("FINE001", "reached its verdict about 600 subjects; only 500 of them are told") in told
