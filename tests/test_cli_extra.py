"""Working on rule packs from the command line, without importing anything heavy for --help."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from advisor.basics.resources import resource
from advisor.cli.main import main


def test_help_imports_nothing_heavy():
    """--help answers at once because pandas, polars and pydantic stay out of it."""
    code = (
        "import sys; from advisor.cli.main import main; main(['--help']); "
        "print(sorted({'pandas', 'polars', 'pydantic', 'rich', 'yaml', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
    for name in ("collect", "compare", "rules"):
        assert name in done.stdout


@pytest.mark.parametrize("form", ["text", "md", "json"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_rules_are_listed(form, lang, capsys):
    """Every rule with its verdict, in both languages and all formats."""
    assert main(["rules", "list", "--format", form, "--lang", lang]) == 0
    text = capsys.readouterr().out
    assert "COLL001" in text and "unparsed-profile" in text
    if form == "json":
        assert {"id", "verdict", "title"} <= set(json.loads(text)[0])


def test_a_rule_is_shown_with_the_origin_of_its_thresholds(capsys):
    """By id; an unknown one ends with 2 and a suggestion."""
    assert main(["rules", "show", "COLL011"]) == 0
    assert "endless" in capsys.readouterr().out
    assert main(["rules", "show", "COLL01"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_the_shipped_collection_rules_are_clean(capsys):
    """lint and test end with 0 on rules that hold."""
    folder = str(resource("rules", "collection"))
    assert main(["rules", "lint", folder]) == 0
    assert main(["rules", "test", folder]) == 0


def test_a_new_rule_loads_and_holds_as_it_is(tmp_path, capsys):
    """What `new` writes passes lint and its own cases; a broken one ends with 2, a case that fails with 1."""
    answers = {
        "--id": "ACME001", "--verdict": "acme/slow-save", "--fact": "step.idle_share", "--op": ">",
        "--threshold": "0.5", "--origin": "measured on our cluster", "--title": "Idle", "--title-zh": "空闲",
    }  # fmt: skip
    assert main(["rules", "new", str(tmp_path), *(word for pair in answers.items() for word in pair)]) == 0
    rule, cases = sorted(tmp_path.glob("*.yaml"), key=lambda p: len(p.name))
    assert main(["rules", "lint", str(tmp_path)]) == 0
    assert main(["rules", "test", str(tmp_path)]) == 0
    cases.write_text(cases.read_text().replace("outcome: fail", "outcome: pass"))
    assert main(["rules", "test", str(tmp_path)]) == 1
    rule.write_text(rule.read_text().replace("step.idle_share", "step.idle_shar"))
    assert main(["rules", "lint", str(tmp_path)]) == 2
    assert "step.idle_shar" in capsys.readouterr().out


def test_a_new_rule_needs_nobody_to_answer(tmp_path, capsys, monkeypatch):
    """In a script what has a default takes it, and what has none is named."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    given = ["--id", "ACME001", "--verdict", "acme/slow-save", "--fact", "step.idle_share", "--title", "Idle"]
    assert main(["rules", "new", str(tmp_path), *given]) == 2
    assert "--threshold" in capsys.readouterr().err
    assert main(["rules", "new", str(tmp_path), *given, "--threshold", "0.5"]) == 0
    (cases,) = tmp_path.glob("*.test.yaml")
    assert main(["rules", "test", str(cases)]) == 0


def test_wrong_paths_end_with_usage(tmp_path):
    """Not with an empty success."""
    assert main(["rules", "lint", str(tmp_path / "absent")]) == 2
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
