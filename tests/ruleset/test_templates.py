"""Texts with placeholders, in a sandbox."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CATALOGUE, facts, rule

from advisor.basics.errors import RuleError
from advisor.model import RUN
from advisor.ruleset.truth import templates
from advisor.ruleset.truth.evaluate import Scope
from advisor.ruleset.truth.templates import Variables, placeholders, render


def _variables() -> Variables:
    made = rule(
        "params: {share: {value: 0.1, unit: ratio, origin: sample}}\n"
        "let: {half: step.time_us / 2}\nwhen: [step.time_us > 0, half > 0, step.idle_share > $share]"
    )
    found = facts({"step.time_us": 1500.0, "run.world_size": 8, "run.versions": ("a", "b")})
    return Variables(Scope(made, RUN, found, CATALOGUE))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ step.time_us }}", "1.5 ms"),
        ("{{ step.time_us.value }}", "1500"),
        ("{{ half }} of {{ param.share }}", "750 µs of 10 %"),
        ("{{ run.versions }}: {% for v in run.versions %}{{ v }};{% endfor %}", "a, b: a;b;"),
        ("{% if run.world_size > 4 %}many{% else %}few{% endif %}", "many"),
        ("{{ subject.id }} {{ 'x' if step.idle_share is known else 'y' }}", "run y"),
        ("{{ half / step.time_us }}", "50 %"),
        ("no placeholder", "no placeholder"),
    ],
)
def test_facts_print_with_their_unit(source: str, text: str) -> None:
    """Readers see milliseconds and percent; scripts get the bare number by `.value`."""
    assert render(source, _variables()).replace("\xa0", " ") == text


def test_unknown_values_are_errors_in_messages_and_words_in_remedies() -> None:
    """A message never says 'None'; a remedy says 'unknown' where the profile does not tell."""
    with pytest.raises(RuleError, match="unknown"):
        render("{{ step.idle_share }}", _variables())
    variables = _variables().with_values({"current": None, "proposed": (85.0, 160.0)}, {"proposed": "list"})
    assert render("{{ current }} → {{ proposed }}", variables, lenient=True) == "unknown → 85, 160"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}", "{{ step.__class__ }}", "{{ step.time_us.__init__ }}", "{{ range(10**9) }}",
        "{{ 'a' * 10**9 }}", "{{ step.time_us ** 99 }}", "{% set x = 1 %}", "{% include 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{% for a in run.versions %}{% for b in run.versions %}{% endfor %}{% endfor %}", "{{ lipsum() }}",
        "{{ run.versions | map('upper') }}", "{{ cycler }}", "{{ self }}", "{{ step }}",
        "{{ step.nothing }}", "{{ nothing }}",
        "{{ 1 / 0 }}", "{{ " + "(" * 300 + "1" + ")" * 300 + " }}", "x" * 9000 + "{{ half }}", "{{ 'a' + 'b' }}",
        "{{ subject._scope }}", "{{ param.share.value.real }}",
    ],
)  # fmt: skip
def test_templates_can_do_no_harm(source: str) -> None:
    """A text from an untrusted pack reaches no Python object, runs no loop in a loop and grows no bomb."""
    with pytest.raises(RuleError):
        render(source, _variables())


@given(st.text(alphabet="{}%() abh.fl|'\"1*+-~[]_", max_size=40) | st.text(max_size=20).map(lambda t: "{{" + t + "}}"))
@settings(max_examples=300)
def test_any_text_renders_or_is_refused(source: str) -> None:
    """No text ends in anything but text or RuleError."""
    try:
        assert isinstance(render(source, _variables()), str)
    except RuleError as error:
        assert error.message


def test_placeholders_are_the_names_a_text_mentions() -> None:
    """Both languages can be checked for the same values."""
    text = "{{ step.time_us.value }} {% for v in run.versions %}{{ v }}{% endfor %} {{ proposed }} {{ param.share }}"
    assert placeholders(text) == {"step.time_us", "run.versions", "proposed", "param.share"}


def test_an_unknown_value_is_no_truth() -> None:
    """`{% if proposed %}` without a proposal takes the other way, so that no snippet says "unknown"."""
    text = "x={% if proposed %}{{ proposed }}{% else %}8{% endif %}"
    made = rule("when: step.time_us > 1")
    variables = Variables(Scope(made, RUN, facts({"step.time_us": 3.0}), CATALOGUE))
    assert render(text, variables.with_values({"proposed": None}, {}), lenient=True) == "x=8"
    assert render(text, variables.with_values({"proposed": 4}, {}), lenient=True) == "x=4"


def test_a_join_of_joins_stays_within_a_text() -> None:
    """Each join multiplies what is inside by its separator: three reached gigabytes before any piece was shown."""
    inner = "'" + "x" * 2000 + "'"
    bomb = f"{{{{ {inner}|join({inner}|join({inner}|join('y'))) }}}}"
    with pytest.raises(RuleError, match="join of more than"):
        render(bomb, _variables())
    assert render("{{ run.versions|join(' and ') }}", _variables()) == "a and b"


_PARTS = (
    "{{ half }}", "{{step.time_us}}", "{{  run.versions }}", "{{ step.time_us.value }}", "{{ none }}", "{{ step }}",
    "{{ nothing }}", "{{ step.nothing }}", "{{ step.idle_share }}", "{{ run.in }}", "{{ proposed }}", "{{- half -}}",
    "{{{ half }}}", "{{ half", "}}", "{", "{# c #}", "{% if half %}", "{% endif %}", " 文 ", "\r\n", "\n", "{{ a-b }}",
    "{{ half.__class__ }}", "{{ step.time_us.digits }}", "{{ loop }}", "{{ self }}", "{{ param.share }}", "{{ param }}",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PARTS), max_size=5).map("".join), st.booleans())
@settings(max_examples=300, deadline=None)
def test_names_are_filled_in_without_compiling_as_a_template_would(source: str, lenient: bool) -> None:
    """Texts of names alone, which are looked up, and all others, which are compiled, follow the same language."""
    variables = _variables().with_values({"proposed": (85.0, 160.0)}, {"proposed": "list"})

    def told() -> str:
        try:
            return render(source, variables, "en", lenient=lenient)
        except RuleError as error:
            return f"refused: {error.message}"

    looked_up = told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "_pieces", lambda source: None)
        assert told() == looked_up
