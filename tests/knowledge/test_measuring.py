"""The numbers that facts are measured by: each has an origin, and each is used."""

from __future__ import annotations

import re
from pathlib import Path

from advisor.knowledge.statements import document

ROOT = Path(__file__).parents[2]


def numbers() -> set[tuple[str, str]]:
    return {(section, name) for section, entries in document("measuring.yaml").items() for name in entries}


def test_every_number_says_where_it_comes_from() -> None:
    """A number without an origin cannot be doubted, and so never gets better."""
    for section, name in numbers():
        entry = document("measuring.yaml")[section][name]
        assert set(entry) == {"value", "origin"} and entry["value"] > 0, (section, name)
        assert len(entry["origin"]) > 20, (section, name)


def test_facts_use_these_numbers_and_no_others() -> None:
    """What stands in the file is used, and what is used stands in the file."""
    code = "\n".join(path.read_text() for path in (ROOT / "advisor").rglob("*.py"))
    assert set(re.findall(r'limit\("(\w+)", "(\w+)"\)', code)) == numbers()
