"""What is kept between runs: texts and documents are the same, and never somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from samples import CATALOGUE, facts, rule

from advisor.basics.errors import RuleError
from advisor.basics.resources import document, resource
from advisor.model import RUN
from advisor.ruleset.truth import templates
from advisor.ruleset.truth.evaluate import Scope

TEXT = "{% if run.world_size > 4 %}many: {{ run.world_size }}{% endif %}"
UNKNOWN = "{% if true %}{{ step.idle_share }}{% endif %}"
DOCUMENTS = sorted(path.relative_to(resource("knowledge_base")) for path in resource("knowledge_base").glob("*.yaml"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "advisor"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are checked, and with that compiled."""
    found: list[str] = []
    check = templates.check_template
    monkeypatch.setattr(templates, "check_template", lambda source: (found.append(source), check(source))[1])
    return found


def told(source: str = TEXT, **given: bool) -> str:
    """The text as a new process tells it."""
    templates._compiled.cache_clear()
    made = rule("when: [step.idle_share > 0]")
    variables = templates.Variables(Scope(made, RUN, facts({"run.world_size": 8}), CATALOGUE))
    return templates.render(source, variables, **given)


def test_a_text_is_compiled_once(cache: Path, checked: list[str]) -> None:
    """The next run takes it as it was made, and says the same."""
    assert told() == told() == "many: 8"
    assert checked == [TEXT]


def test_what_may_be_unknown_in_one_text_is_no_text_of_the_other_kind(cache: Path) -> None:
    """A text that was compiled for remedies does not let rules speak of what nobody measured."""
    assert told(UNKNOWN, lenient=True) == "unknown"
    with pytest.raises(RuleError, match="unknown"):
        told(UNKNOWN)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("damage", ["cut", "nothing", "open to others", "a link"])
def test_an_entry_that_is_not_whole_or_not_ones_own_is_none(cache: Path, checked: list[str], damage: str) -> None:
    """The code of a text is run: only what this user's advisor wrote."""
    told()
    entry = next((cache / "texts").iterdir())
    if damage == "open to others":
        entry.chmod(0o666)
    elif damage == "a link":
        entry.symlink_to(entry.rename(cache / "elsewhere"))
    else:
        entry.write_bytes(entry.read_bytes()[:-9] if damage == "cut" else b"")
    assert told() == "many: 8"
    assert checked == [TEXT, TEXT]


def test_what_is_refused_is_not_kept(cache: Path) -> None:
    """A text beyond expressions is refused in every run."""
    for _ in range(2):
        with pytest.raises(RuleError, match="no place in a text"):
            told("{% set x = 1 %}{{ x }}")
    assert not list((cache / "texts").iterdir())


@pytest.mark.parametrize("name", DOCUMENTS, ids=str)
def test_kept_documents_are_the_documents(cache: Path, name: Path) -> None:
    """With numbers for keys, infinities and all."""
    parsed = yaml.safe_load(resource("knowledge_base", str(name)).read_text(encoding="utf-8"))
    first, kept = document("knowledge_base", str(name)), document("knowledge_base", str(name))
    assert first == kept == parsed and repr(kept) == repr(parsed)
    assert len(list((cache / "documents").iterdir())) == 1
