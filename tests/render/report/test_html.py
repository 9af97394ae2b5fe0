"""The HTML report as a file: what is in it, how large it is, what it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fake_reports import HOSTILE, SAMPLES, cluster, data_bound, healthy, hostile, reports
from hypothesis import given, settings

from advisor.model import Role
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
    assert page.tags.count("script") == 2 and "img" not in page.tags and "iframe" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_comes_from_a_network(name):
    """Reports are read on machines without one, and must not tell anybody that they are read."""
    text = render(SAMPLES[name](), "html")
    attributes = Page(text).attributes
    assert not [value for key, value in attributes if key in ("src", "srcset", "action", "data")]
    assert all(value.startswith("#") for key, value in attributes if key == "href")
    assert "default-src 'none'" in text


def test_the_policy_names_exactly_our_script_and_style():
    """With a wrong hash the browser shows a page without looks and pictures."""
    text = render(cluster(), "html")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    for tag in ("script", "style"):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content[-1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize(("ranks", "limit"), [(8, 1_500_000), (1024, 5_000_000)])
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
        "pipeline operation Map(2)",
        "98.1 %",
        "≤ 85 %",
        "−36.1 ms · 60.5 %",
        "→",
        "num_parallel_workers: 2 → 6",
        "num_parallel_workers=6)",
        "pipeline_op.busy_share falls",
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
        "breakdown-steps",
        "breakdown-ranks",
        "timeline-0",
        "timeline-1",
        "lateness",
        "links",
        "stages",
        "memory",
    }
    assert {"pipeline", "operator-types"} <= {figure.id for figure in figures(data_bound())}
    broken = replace(
        cluster(),
        charts=dict(zip(cluster().charts, ([], {}, None, "x", 5, [{}], [None]), strict=False)),
    )
    assert figures(broken) == []
    render(broken, "html")


def test_every_picture_has_its_table_and_marks_the_culprit():
    """A picture without numbers cannot be checked; one without the culprit has to be searched."""
    for report in (cluster(), data_bound()):
        for figure in figures(report):
            assert figure.rows and all(len(row) == len(figure.head) for row in figure.rows)
    specs = {figure.id: figure for figure in figures(cluster())}
    assert specs["breakdown-ranks"].spec["marked"] == [3] and specs["lateness"].spec["marked"] == [0]
    assert next(cell for cell in specs["links"].spec["cells"] if cell["marked"])["v"] == 4.1
    boxes = {figure.id: figure for figure in figures(data_bound())}["pipeline"].graph["boxes"]
    assert [box["name"] for box in boxes if box["finding"]] == ["Map(2)"]


def test_a_pipeline_whose_edges_form_a_loop():
    """A damaged file must not hang the report."""
    nodes = [{"id": i, "type": "Map", "name": f"Map({i})"} for i in range(3)]
    edges = [{"source": i, "target": (i + 1) % 3, "use": 0.5} for i in range(3)]
    assert figures(replace(healthy(), charts={"pipeline": {"nodes": nodes, "edges": edges}}))[0].rows


def test_hostile_names_stay_readable_and_cannot_leave_the_data_block():
    """Script data is JSON in the page: a name with </script> must not end it."""
    text = render(hostile(), "html")
    data = re.search(r'<script type="application/json" id="figures-data">(.*?)</script>', text, re.DOTALL)[1]
    assert "<" not in data and json.loads(data)["operator-types"]["items"][0]["name"] == "<script>alert('x')</script>"
    assert "\u202e" not in text and "\x1b" not in text and HOSTILE[0] not in text.replace("&#39;", "'")


def test_the_licences_of_inlined_libraries_go_along():
    """Every report is a copy of these libraries."""
    text = render(healthy(), "html")
    assert "Permission is hereby granted" in text and "Jukka Kurkela" in text and "Chart.js Contributors" in text
