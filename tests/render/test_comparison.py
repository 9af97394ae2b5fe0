"""Two reports side by side as a page."""

from __future__ import annotations

from dataclasses import replace

from fake_reports import cluster, data_bound, healthy, hostile

from advisor.compare import compare
from advisor.model import RUN, Fact, Subject
from advisor.render import render


def _page(before, after, lang="en"):
    return render(compare(before, after), "html", lang, sides=(before, after))


def test_shows_both_sides_with_pictures_and_findings():
    """What moved, what is new and what is gone stand on one page."""
    after = replace(healthy(), profile=replace(data_bound().profile, path="after"))
    text = _page(data_bound(), after)
    assert "59.7\xa0ms" in text and "84.2\xa0ms" in text and "figure-breakdown" in text
    assert "runs/data_bound_ascend_ms" in text and ">after<" in text


def test_operator_types_change_side_by_side():
    """The type that grew is the first one, whatever its size."""
    facts = [
        Fact("operator_type.time_us", Subject("operator_type", name), us)
        for name, us in (("MatMul", 900.0), ("Cast", 10.0))
    ]
    before = replace(cluster(), facts=(Fact("step.time_us", RUN, 1e3), *facts))
    after = replace(cluster(), facts=(Fact("step.time_us", RUN, 1.3e3), facts[0], replace(facts[1], value=300.0)))
    text = _page(before, after)
    table = text[text.index('id="figure-operator-types"') :]
    assert table.index("Cast") < table.index("MatMul") and "+290\xa0µs" in table


def test_hostile_names_are_inert():
    """Both sides may come from anywhere."""
    text = _page(hostile(), hostile(), "zh")
    assert text.count("<script") == 1 and "<img" not in text and "\u202e" not in text and 'lang="zh-CN"' in text
