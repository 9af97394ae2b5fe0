"""The HTML report as a file: what is in it, how large it is, what it refuses."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fake_reports import HOSTILE, SAMPLES, cluster, data_bound, healthy, hostile, reports
from hypothesis import given, settings

from advisor.knowledge.statements import documents
from advisor.model import Role, Severity, Subject
from advisor.render import render
from advisor.render.report.figures import figures
from advisor.render.report.html import chains
from advisor.render.report.outline import branches

VOID = {"meta", "br", "input"}


class Page(HTMLParser):
    """Tags in order, attributes, and text outside scripts; raises where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


@settings(max_examples=40)
@given(reports)
def test_any_report_becomes_a_well_formed_page_without_foreign_markup(report):
    """Whatever a profile calls its operators, the page has our tags and our attributes only."""
    page = Page(render(report, "html"))
    assert page.tags.count("script") == 1 and "img" not in page.tags and "iframe" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_comes_from_a_network(name):
    """Reports are read on machines without one, and must not tell anybody that they are read."""
    text = render(SAMPLES[name](), "html")
    attributes = Page(text).attributes
    assert not [value for key, value in attributes if key in ("src", "srcset", "action", "data")]
    public = tuple(entry["url"] for entry in documents().values() if "url" in entry)
    assert all(value.startswith(("#", "data:image/png;base64,", *public)) for key, value in attributes if key == "href")
    assert "default-src 'none'" in text


def test_the_policy_names_exactly_our_script_and_style():
    """With a wrong hash the browser shows a page without looks and pictures."""
    text = render(cluster(), "html")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    for tag in ("script", "style"):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content[-1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize(("ranks", "limit"), [(8, 400_000), (128, 1_200_000), (1024, 2_000_000)])
def test_size(ranks, limit):
    """A report must go through mail and open at once."""
    report = cluster(ranks)
    found = [
        replace(report.findings[0], id=f"R{i}", subject=replace(report.findings[0].subject, id=str(i)))
        for i in range(ranks)
    ]
    waiting = [replace(report.findings[3], id=f"W{i}", because=(f"R{i}",)) for i in range(ranks)]
    text = render(replace(report, findings=(*found, *waiting)), "html")
    assert len(text.encode()) < limit
    assert f"R{ranks - 1}<" in text or f"R{ranks - 1} ·" in text


def test_both_languages_are_in_the_page_and_it_opens_in_the_wanted_one():
    """Teams read one file in two languages."""
    english, chinese = (render(data_bound(), "html", lang) for lang in ("en", "zh"))
    for text in (english, chinese):
        assert "One data operation limits the pipeline" in text and "单个数据操作限制了数据处理速度" in text
    assert 'id="lang-en" value="en" checked' in english and 'id="lang-zh" value="zh" checked' in chinese


def test_a_card_has_everything_a_reader_needs():
    """Verdict, place, measured against expected, saving, chain, remedy, check, document, doubt."""
    text = " ".join("".join(Page(render(data_bound(), "html")).text).split())
    for part in (
        "data-processing-bottleneck",
        "data operation Map(2)",
        "98 %",
        "limit 85 %",
        "−36 ms (60 %)",
        "→",
        "num_parallel_workers: 2 → 6",
        "num_parallel_workers=6)",
        "busy share of the operation should fall",
        "Operator parallelism",
        "S07, S71",
        "Only 2 steps",
        "until Batch(1) limits",
        "ASCEND_PROFILER_OUTPUT/dataset.csv",
        "experimental",
        "profiler_level=ProfilerLevel.Level1",
        "no memory was recorded",
    ):
        assert part in text, part


def test_the_way_from_symptom_to_cause():
    """The chain is read from what was seen to what is to be changed."""
    inner = replace(data_bound().findings[1], because=("F3",))
    report = replace(
        data_bound(), findings=(data_bound().findings[0], inner, replace(data_bound().findings[2], explains=("F2",)))
    )
    report = replace(
        report,
        findings=tuple(replace(f, explains=("F3",)) if f.role is Role.ROOT_CAUSE else f for f in report.findings),
    )
    assert [[found.id for found in chain] for chain in chains(branches(report)[0])] == [["F2", "F3", "F1"]]


def test_pictures_only_where_there_are_data():
    """An empty frame says less than no frame; broken series of a saved report cost a picture, not the page."""
    assert [figure.id for figure in figures(healthy())] == ["breakdown-steps"]
    names = {figure.id for figure in figures(cluster())}
    assert names == {
        "step-ranks",
        "breakdown-steps",
        "breakdown-ranks",
        "rank-steps-computing",
        "timeline-0",
        "timeline-1",
        "lateness",
        "links-0",
        "stages",
        "memory",
    }
    assert {"pipeline", "operator-types"} <= {figure.id for figure in figures(data_bound())}
    for broken in ([], {}, None, "x", 5, [{}], [None], {"rows": [{}]}, {"rows": [], "path": []}):
        report = replace(cluster(), charts=dict.fromkeys(cluster().charts, broken))
        assert figures(report) == []
    render(report, "html")


def test_every_picture_has_its_table_and_marks_the_culprit():
    """A picture without numbers cannot be checked; one without the culprit has to be searched."""
    for report in (cluster(), data_bound()):
        for figure in figures(report):
            assert figure.rows and all(len(row) == len(figure.head) for row in figure.rows)
    slow_rank = next(finding.id for finding in cluster().findings if finding.verdict == "slow-compute-rank")
    made = {figure.id: figure for figure in figures(cluster())}
    for name in ("breakdown-ranks", "rank-steps-computing", "step-ranks"):
        assert slow_rank in made[name].findings and f">{slow_rank}</text></a>" in made[name].drawing
    boxes = {figure.id: figure for figure in figures(data_bound())}["pipeline"].graph["boxes"]
    assert [box["name"] for box in boxes if box["finding"]] == ["Map(2)"]


def test_a_picture_is_marked_only_by_findings_it_measures():
    """A finding about computing does not stand on a picture without computing, whatever its direction is."""
    report = cluster()
    timeline = {**report.charts["timeline"][0], "lanes": [{"name": "idle", "spans": [[0.0, 10.0]]}]}
    alone = next(f for f in figures(replace(report, charts={"timeline": [timeline]})))
    assert not [i for i in alone.findings if next(f for f in report.findings if f.id == i).direction == "computation"]


def test_the_first_findings_stand_with_their_own_picture_and_link_the_others():
    """Finding first; and from each picture back to what it shows."""
    text = render(cluster(), "html")
    card = text[text.index("<article") : text.index("</article>")]
    assert card.count("<figure") == 1
    assert re.findall(r'href="#figure-([\w-]+)"', card)
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert all(target in ids for target in re.findall(r'href="#([^"]+)"', text))
    assert len(ids) == len(re.findall(r' id="([^"]+)"', text))


def test_the_length_of_a_step_has_the_digits_of_the_headline_in_pictures():
    """137 ms beside 134 ms is a step of usual length; 140 ms reads as another step."""
    (first, *_) = cluster().charts["timeline"]
    timeline = {**first, "which": "typical", "step_us": 136_581.0}
    drawn = next(iter(figures(replace(cluster(), charts={"timeline": [timeline]}))))
    assert "137\xa0ms" in drawn.title.en


def test_the_place_in_a_timeline_is_there_to_copy():
    """Rank and time from the start of the step, as one finds it in a viewer."""
    text = render(cluster(), "html")
    assert 'data-copy="rank 3, step 50, 0\xa0µs to 140\xa0ms from the start of the step"' in text


def test_one_aggregation_is_named_in_the_headline_and_in_the_pictures():
    """A bar of 51 ms under a headline of 48.9 needs its reason beside it."""
    text = render(cluster(), "html")
    assert "mean of 2 steps, median of 8 ranks" in text
    notes = {figure.id: figure.note.en for figure in figures(cluster()) if figure.note}
    assert {"step-ranks", "rank-steps-computing", "timeline-0", "lateness", "links-0", "stages"} <= set(notes)


@pytest.mark.parametrize("of", ["rank", "host"])
def test_links_are_drawn_with_and_without_groups(of):
    """Ranks of several hosts or stages have separators with names, hosts that are averaged have none."""
    (matrix,) = cluster().charts["link_matrix"]
    groups = matrix["groups"] if of == "rank" else []
    drawn = figures(replace(cluster(), charts={"link_matrix": [{**matrix, "of": of, "groups": groups}]}))
    assert [figure.id for figure in drawn] == ["links-0"]
    assert ("between" in drawn[0].drawing) == bool(groups)
    assert all(f">{group['name']}<" in drawn[0].drawing for group in groups)
    assert "median" in drawn[0].drawing


def test_only_slow_links_are_marked_as_those_of_a_finding():
    """Links of the same ranks that are as fast as usual, over another transport, say, are not what it is about."""
    report = cluster()
    (matrix,) = report.charts["link_matrix"]
    told = [
        replace(f, evidence=(replace(f.evidence[0], fact="link.bandwidth_ratio", condition="< 0.7", value=0.2),))
        for f in report.findings if f.subject.kind == "link"
    ]  # fmt: skip
    fast = {**matrix, "transport": "SIO", "cells": [[a, b, rate, 1.0] for a, b, rate, _ in matrix["cells"]]}
    slow, usual = figures(replace(report, findings=tuple(told), charts={"link_matrix": [matrix, fast]}))
    assert slow.findings and not usual.findings


def test_every_series_of_a_report_becomes_a_picture():
    """A picture that fails is left out silently in use, so here nothing may be left out."""
    for report in (cluster(8), cluster(128), data_bound()):
        for name, series in report.charts.items():
            assert figures(replace(report, charts={name: series})), name


@pytest.mark.parametrize(("ranks", "limit"), [(128, 500_000), (1024, 1_500_000)])
def test_reports_of_many_ranks_go_through_mail(ranks, limit):
    """The whole page in bytes, with every picture that a cluster has."""
    report = cluster(ranks)
    assert {"step_ranks", "rank_steps", "link_matrix", "breakdown_ranks", "lateness"} <= set(report.charts)
    assert len(render(report, "html").encode()) <= limit


@pytest.mark.parametrize(("ranks", "steps", "limit"), [(128, 20, 40_000), (1024, 10, 100_000)])
def test_the_grid_of_ranks_and_steps_is_small(ranks, steps, limit):
    """Ten thousand cells, with noise, go through mail."""
    noise = random.Random(1)
    us = [[100_000 + round(noise.gauss(0, 9000)) for _ in range(steps)] for _ in range(ranks)]
    data = {
        "ranks": list(range(ranks)),
        "steps": [str(i) for i in range(steps)],
        "parts": [{"name": "computing", "us": us}],
    }
    (figure,) = figures(replace(healthy(), charts={"rank_steps": data}))
    assert len(figure.drawing) + sum(len(str(cell)) + 9 for row in figure.rows for cell in row) < limit


def test_a_healthy_run_with_gaps_says_so():
    """What was not measured is not green."""
    assert 'class="badge partly"' in render(replace(healthy(), missing_evidence=data_bound().missing_evidence), "html")
    assert 'class="badge healthy"' in render(replace(healthy(), missing_evidence=()), "html")


def test_a_pipeline_whose_edges_form_a_loop():
    """A damaged file must not hang the report."""
    nodes = [{"id": i, "type": "Map", "name": f"Map({i})"} for i in range(3)]
    edges = [{"source": i, "target": (i + 1) % 3, "use": 0.5} for i in range(3)]
    assert figures(replace(healthy(), charts={"pipeline": {"nodes": nodes, "edges": edges}}))[0].rows


def test_hostile_names_stay_readable_and_cannot_leave_a_picture():
    """A name with a closing tag must not end the drawing it stands in."""
    text = render(hostile(), "html")
    assert "&lt;script&gt;alert" in text and "<script>alert" not in text
    assert "\u202e" not in text and "\x1b" not in text and HOSTILE[0] not in text.replace("&#39;", "'")


def test_evidence_of_many_ranks_is_one_row_from_the_least_to_the_largest():
    """Eight ranks of one host that are late alike are told once, not in eight tables."""
    first = cluster().findings[0]
    (item,) = first.evidence
    shares = [
        replace(
            item, fact="rank.lateness_share", value=0.25 + r / 100, unit="ratio", subject=Subject("rank", str(r), (r,))
        )
        for r in range(8)
    ]
    late = replace(first, evidence=tuple(shares), subject=Subject("host", "node3", tuple(range(8))))
    page = render(replace(cluster(), findings=(late, *cluster().findings[1:])), "html").replace("\xa0", " ")
    assert page.count('title="rank.lateness_share"') == 1
    assert "25 % to 32 %" in page and "and 7 more" in page


def test_words_of_a_value_are_words_and_not_markup():
    """Yes and no in both languages are spans of the page, never text that shows them."""
    item = replace(cluster().findings[0].evidence[0], value=True, unit="bool", condition="")
    found = replace(cluster().findings[0], evidence=(item,))
    page = render(replace(cluster(), findings=(found, *cluster().findings[1:])), "html")
    assert "&lt;span" not in page and ">yes</span>" in page


def test_a_drawing_does_not_take_the_colours_of_its_card():
    """A class of a severity must not be one of a line in a picture, which would outline every letter of it."""
    page = render(cluster(), "html")
    classes = {name for tag in re.findall(r"<(?:path|line|text)[^>]*class=\"([^\"]*)\"", page) for name in tag.split()}
    assert not classes & {severity.value for severity in Severity}
