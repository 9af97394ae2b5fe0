"""Words for conclusions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.authoring.cases import run_cases
from advisor.authoring.lint import lint
from advisor.authoring.new import NewRule, write_rule
from advisor.basics.errors import UsageError
from advisor.basics.resources import resource
from advisor.facts.registry import catalogue
from advisor.knowledge import verdicts


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The vocabulary in a file of its own, which a test may add to."""
    file = tmp_path / "verdicts.yaml"
    file.write_text(resource("knowledge_base", "verdicts.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(verdicts, "resource", lambda *_: file)
    verdicts.verdict_words.cache_clear()
    yield file
    verdicts.verdict_words.cache_clear()


def test_a_new_word_is_a_line_of_data(words: Path, tmp_path: Path) -> None:
    """Whoever adds a verdict writes it down once, and a rule can reach it: no list in a program names it again."""
    pack = tmp_path / "pack"
    pack.mkdir()
    asked = NewRule(
        id="TEST900", verdict="cold-cards", direction="", fact="step.idle_share", op=">", threshold=0.5,
        origin="chosen for this test", title="Cards are cold", title_zh="卡很闲",
    )  # fmt: skip
    with pytest.raises(UsageError, match="no verdict 'cold-cards'"):
        write_rule(asked, pack, catalogue())
    with words.open("a", encoding="utf-8") as stream:
        stream.write("cold-cards: {direction: computation, subjects: [run]}\n")
    verdicts.verdict_words.cache_clear()
    files = write_rule(asked, pack, catalogue())
    assert [str(error) for error in lint([pack]) if error.level == "error"] == []
    results = run_cases([path for path in files if not path.stem.endswith(".test")])
    assert results and all(result.passed for result in results)
