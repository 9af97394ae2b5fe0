"""YAML as rules use it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.basics.errors import RuleError
from advisor.yamlfiles.document import parse_document


def test_scalars_mean_what_they_look_like() -> None:
    """`on` is a word, 5e4 a number: the surprises of old YAML do not reach rule authors."""
    data = parse_document("{on: any, a: 5e4, b: 0.10, c: yes, d: '1', e: null, f: 12, g: true}").data
    assert data == {"on": "any", "a": 5e4, "b": 0.1, "c": "yes", "d": "1", "e": None, "f": 12, "g": True}


def test_lines_are_known_for_every_value() -> None:
    """Errors can point at the line of the very value that is wrong."""
    document = parse_document("a: 1\nwhen:\n  - x\n  - any:\n      - y\n")
    assert [document.line(p) for p in [("a",), ("when", 0), ("when", 1, "any", 0), ("when", 1, "any", 9)]] == [
        1,
        3,
        5,
        4,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x", "anchors"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("[" * 60 + "]" * 60, "nested"),
        ("a: 1\na: 2", "twice"),
        ("a: b: c", "no valid YAML"),
        ("a: 1\n---\nb: 1", "second document"),
    ],
)
def test_dangerous_and_ambiguous_yaml_is_refused(text: str, message: str) -> None:
    """Code, bombs and silently overwritten keys end in an error with a line, never in a loaded rule."""
    with pytest.raises(RuleError) as error:
        parse_document(text)
    assert message in error.value.message
    assert error.value.place.rpartition(":")[2].isdigit()


@given(st.text(alphabet="ab:-[]{}'\"#&*!|>% \n\t,?0.e", max_size=60))
@settings(max_examples=300)
def test_any_text_loads_or_is_refused(text: str) -> None:
    """No file content ends in a traceback."""
    try:
        parse_document(text)
    except RuleError as error:
        assert error.message
