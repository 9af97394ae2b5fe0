"""What no text may show once its values are in."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.authoring.lint import lint
from advisor.authoring.new import NewRule, write_rule
from advisor.authoring.style import faults_of
from advisor.facts.registry import catalogue
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from tests.helpers.texts import faults_in

FACTS = ("step.idle_share", "rank.late_cause")


@pytest.mark.parametrize(
    ("text", "lang", "fault"),
    [
        ("Start with unknown.", "en", "unfilled"),
        ("首先分析未知。", "zh", "unfilled"),
        ("The rank is None late", "en", "unfilled"),
        ("It waits (nan ms)", "en", "unfilled"),
        ("It is mostly in ('MatMul', 3)", "en", "brackets"),
        ("It is mostly in ['MatMul']", "en", "brackets"),
        ("Mostly in _ZN2at6native4fillEv", "en", "mangled name"),
        ("step.idle_share is high", "en", "id of a fact"),
        ("It takes 3 ms µs", "en", "doubled unit"),
        ("110\u00a0% times per launch", "en", "doubled unit"),
        ("1 ranks wait", "en", "plural of one"),
        ("for 12 step in a row", "en", "singular of several"),
        ("The rank () waits", "en", "empty slot"),
        ("It waits for : the rank", "en", "space before a mark"),
        ("It  waits", "en", "doubled space"),
        ("rank 1等待,很久", "zh", "half-width punctuation"),
        ("等待(很久)", "zh", "half-width parentheses"),
        ("communication that nothing hides", "en", "exposed communication"),
        ("减少显存占用", "zh", "设备内存"),
    ],
)
def test_a_text_that_went_wrong_is_found(text, lang, fault):
    """Each of these has once been read by a user."""
    assert any(fault in each for each in faults_of(text, lang, "", FACTS))


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Start with X (8192,2,640;;83886112;).", "en"),
        ("Rank 1 computes 11\u00a0ms longer per step than its peers (stage 0), which wait 11\u00a0ms for it.", "en"),
        ("In step 3 ranks wait; Dataset::Pipeline::GetNext runs, see kernel_details.csv and 1 rank.", "en"),
        ("rank 1每个step的计算比同组（stage 0）其他rank多11\u00a0ms，其他rank为此等待11\u00a0ms。", "zh"),
    ],
)
def test_a_text_in_order_is_left_alone(text, lang):
    """A lint that cries at good sentences is switched off."""
    assert list(faults_of(text, lang, "", FACTS)) == []


def test_what_the_template_says_itself_is_meant():
    """A rule may say that something is unknown; a value may not."""
    text = "the parallel strategy is unknown"
    assert list(faults_of(text, "en", text)) == []


@pytest.mark.parametrize(
    ("kind", "where", "size"), [("slow_compute", 2, 0.4), ("small_packets", None, 1.0), ("slow_host", 1, 0.5)]
)
def test_texts_of_simulated_recordings_are_in_order(tmp_path: Path, kind, where, size):
    """What the cases of the rules do not think of, a recording of a whole training brings."""
    from benchmarks.simulator import Fault, Scenario, simulate, write_profile

    write_profile(simulate(Scenario(data=4, seed=1, faults=(Fault(kind, where, size),))), tmp_path)
    rules = load_rules()
    report = advise([tmp_path], rules)
    assert report.findings and faults_in(report, rules) == []


def test_texts_of_a_pack_of_ones_own_are_warned_of_with_the_case(tmp_path: Path):
    """The author sees the sentence as a user would, and the pack works all the same."""
    spec = NewRule("ACME001", "acme/too-much", "step.idle_share", ">", 0.2, "Idle", "空转")
    rule, _ = write_rule(spec, tmp_path / "own", catalogue())
    found = [error for error in lint([tmp_path / "own"]) if "空闲时间" in error.message]
    assert found and {error.level for error in found} == {"warning"} and found[0].file == str(rule)
    assert any("ACME001" in error.hint for error in found), found
