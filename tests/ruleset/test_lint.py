"""Lint and cases: what authors are told before a rule is used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from samples import CATALOGUE, PACK

from advisor.authoring.cases import run_cases
from advisor.authoring.lint import lint
from advisor.authoring.new import NewRule, write_rule
from advisor.basics.errors import UsageError
from advisor.basics.resources import resource
from advisor.knowledge.remedies import load_remedies
from advisor.knowledge.verdicts import verdict_words
from advisor.ruleset.files.found import rule_files
from advisor.ruleset.files.reading import read_rules
from advisor.ruleset.files.schema import json_schema
from advisor.yamlfiles.document import read_document


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACK, tmp_path / "pack"))


def test_the_sample_pack_is_clean() -> None:
    """A correct pack has nothing to report: no false alarms."""
    assert lint([PACK], catalogue=CATALOGUE) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("TEST001-exposed.yaml", "needs: [step.exposed_share]", "needs: []", "which `needs` does not name"),
        ("TEST001-exposed.yaml", "high: 0.25", "high: 0.05", "high must be above"),
        ("TEST001-exposed.yaml", "verdict: exposed-communication", "verdict: exposed", "there is no verdict"),
        ("TEST001-exposed.yaml", "direction: communication", "direction: scheduling", "is a matter of communication"),
        ("TEST001-exposed.yaml", "for: run", "for: stage", "is about a run or rank"),
        ("TEST001-exposed.yaml", "id: sample-split", "id: sample-spilt", "there is no remedy"),
        ("TEST001-exposed.yaml", "proposed: ", "wanted: ", "needs the value proposed"),
        ("TEST001-exposed.yaml", "count < $min_steps", "count < 2", "min_steps is used nowhere"),
        ("TEST001-exposed.yaml", '  zh: "单步{{ step.exposed_share }}是', '  zh: "是', "stands in one language only"),
        ("TEST001-exposed.yaml", '  zh: "单步{{ step.exposed_share }}是未被计算掩盖的通信。"\n', "", "missing in zh"),
        ("TEST001-exposed.yaml", "{{ step.exposed_share }} of", "{{ step.exposd }} of", "there is no fact"),
        ("TEST001-exposed.yaml", "kind: symptom", "kind: symptom\nparents: [NONE1]", "there is no rule 'NONE1'"),
        ("TEST002-slow-rank.yaml", "waiting-on-slow-rank", "waiting-on-slow-rnk", "no rule reaches the verdict"),
        ("TEST003-unexplained.yaml", "[slow-compute-rank, slow-link]", "acme/unexplained-wait", "its own verdict"),
        ("TEST001-exposed.test.yaml", "boundary: true", "boundary: false", "case at its limit"),
        ("TEST001-exposed.test.yaml", "outcome: fail", "outcome: pass", "case in which the rule fires"),
        ("TEST001-exposed.test.yaml", "step.time_us: 1.0e+5, s", "step.tim_us: 1.0e+5, s", "no fact 'step.tim_us'"),
        ("TEST001-exposed.test.yaml", "rule: TEST001", "rule: TEST009", "the cases are of TEST009"),
        ("TEST001-exposed.test.yaml", "outcome: not_applicable", "outcome: n/a", "outcome"),
        ("remedies/sample-split.yaml", "fact: step.exposed_share", "fact: step.exposed", "there is no fact"),
        ("remedies/sample-split.yaml", "{% if current is known %}；原为{{ current }}{% endif %}", "", "one language"),
        ("remedies/sample-split.yaml", "config={{ proposed }}", "config={{ proposed() }}", "call has no place"),
        ("remedies/sample-split.yaml", "effort: minutes", "effort: minuets", "effort"),
    ],
)  # fmt: skip
def test_each_defect_is_found_with_its_line(pack: Path, file: str, old: str, new: str, message: str) -> None:
    """Every kind of defect is reported at the file and line where it stands."""
    text = (pack / file).read_text(encoding="utf-8")
    assert old in text
    (pack / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    found = lint([pack], catalogue=CATALOGUE)
    assert any(message in each.message for each in found), found
    assert all(Path(each.file).is_file() and each.line >= 1 for each in found)


def test_a_rule_without_cases_is_reported(pack: Path) -> None:
    """No rule goes untested unnoticed."""
    (pack / "TEST003-unexplained.test.yaml").unlink()
    assert [each.message for each in lint([pack], catalogue=CATALOGUE)] == ["the rule has no cases"]


def _run(pack: Path) -> dict[str, tuple[str, ...]]:
    remedies, _ = load_remedies([pack])
    return {r.case: r.failures for r in run_cases(rule_files(pack), catalogue=CATALOGUE, remedies=remedies)}


def test_the_sample_cases_hold() -> None:
    """Cases run through the judge that judges profiles."""
    results = _run(PACK)
    assert len(results) == 8
    assert not any(results.values()), results


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ("severity: critical", "severity: low", "severity is critical, expected low"),
        ("saving_us: 5.0e+4", "saving_us: 6.0e+4", "saving is 50\xa0ms, expected 60\xa0ms"),
        ("message: 50 %", "message: 60 %", "no message contains"),
        ("outcome: fail", "outcome: pass", "outcome is fail, expected pass"),
        ("step.exposed_share: 0.5, step.time", "step.exposed_shar: 0.5, step.time", "there is no fact"),
    ],
)
def test_a_case_that_does_not_hold_says_why(pack: Path, old: str, new: str, failure: str) -> None:
    """The author sees what was concluded instead."""
    path = pack / "TEST001-exposed.test.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    assert any(failure in each for failures in _run(pack).values() for each in failures)


def test_a_failed_case_shows_what_came_near(pack: Path) -> None:
    """Each clause is listed with the value it saw, so that the threshold or the fact at fault is plain."""
    path = pack / "TEST001-exposed.test.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("outcome: pass", "outcome: fail", 1), encoding="utf-8")
    remedies, _ = load_remedies([pack])
    failed = [r for r in run_cases(rule_files(pack), catalogue=CATALOGUE, remedies=remedies) if not r.passed]
    assert any("step.exposed_share > $share: false  [step.exposed_share = 10\xa0%]" in line for line in failed[0].near)


@pytest.mark.parametrize(("fact", "op", "threshold"), [("step.idle_share", ">", 0.2), ("link.bandwidth", "<=", 1e9)])
def test_a_new_rule_works_at_once(tmp_path: Path, fact: str, op: str, threshold: float) -> None:
    """`rules new` writes a rule that lints clean and whose cases hold, ready to be refined."""
    spec = NewRule("ACME001", "acme/too-much", fact, op, threshold, "Too much of it", "过多")
    path, tests = write_rule(spec, tmp_path / "own", CATALOGUE)
    assert path.name == "ACME001-too-much-of-it.yaml"
    assert tests.is_file()
    assert lint([tmp_path / "own"], catalogue=CATALOGUE) == []
    assert not any(_run(tmp_path / "own").values())
    with pytest.raises(UsageError, match="exists already"):
        write_rule(spec, tmp_path / "own", CATALOGUE)


def test_a_shared_threshold_is_written_once_and_a_wrong_name_is_told(pack: Path) -> None:
    """Siblings that mean the same number have it from one line with one origin."""
    path = pack / "TEST001-exposed.yaml"
    text = path.read_text(encoding="utf-8")
    line = next(each for each in text.splitlines() if each.strip().startswith("share:"))
    path.write_text(text.replace(line, "  share: {shared: data_wait}"), encoding="utf-8")
    rule = next(each for each in read_rules([pack], CATALOGUE)[0] if each.id == "TEST001")
    assert rule.params["share"].value == 0.1 and "profiling itself costs" in rule.params["share"].origin.en
    path.write_text(text.replace(line, "  share: {shared: data_waits}"), encoding="utf-8")
    assert any("data_wait" in error.message for error in lint([pack], catalogue=CATALOGUE))


def test_the_published_schema_is_current() -> None:
    """Editors check rules against the schema that the loader uses, and it accepts the sample rules."""
    published = json.loads(resource("reports", "schemas", "rule.schema.json").read_text(encoding="utf-8"))
    assert published == json_schema(), "`make docs` writes it anew"
    validator = jsonschema.Draft202012Validator(published)
    for path in rule_files(PACK):
        assert not list(validator.iter_errors(read_document(path).data))
    assert list(validator.iter_errors({**read_document(rule_files(PACK)[0]).data, "whenn": 1}))


def test_every_verdict_has_direction_and_subjects() -> None:
    """The vocabulary is complete: no word without a direction or a kind of subject."""
    words = verdict_words()
    assert len(words) >= 40
    assert all(word.direction in ("computation", "scheduling", "communication", "evidence") for word in words.values())
    assert all(word.subjects for word in words.values())
