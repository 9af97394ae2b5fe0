"""Where to look in a timeline for what a finding tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_reports import cluster, data_bound, healthy
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model import Direction, Subject
from advisor.render.report.places import Place, place_of

LATE = cluster().findings[0]
WAIT = {"step": "50", "duration_us": 134000.0, "ranks": 2, "rows": [], "links": [],
        "path": [[1, 0.0, 33000.0, "computing"], [1, 33000.0, 106000.0, "absent"],
                 [1, 106000.0, 110000.0, "communication"]]}  # fmt: skip


def test_the_longest_piece_of_the_finding_s_ranks_on_the_critical_path():
    """The slow rank's computing, not the transfer after it."""
    assert place_of(cluster(), LATE) == Place(3, "50", 0.0, 140000.0)


def test_a_wait_for_a_rank_without_a_profile_is_where_the_ranks_at_hand_wait():
    """For communication the wait is the place, however long the computing before it."""
    report = replace(cluster(), charts={"step_ranks": WAIT})
    found = replace(LATE, direction=Direction.COMMUNICATION, subject=Subject("collective", "hcom_allReduce_", (0, 1)))
    assert place_of(report, found) == Place(1, "50", 33000.0, 106000.0)


def test_without_a_picture_of_all_ranks_the_single_step_tells():
    """The longest span of the finding's kind in the step that is drawn."""
    (timeline, *_) = cluster().charts["timeline"]
    report = replace(cluster(), charts={"timeline": [timeline]})
    found = replace(LATE, direction=Direction.SCHEDULING, subject=Subject("run", "run"))
    idle = next(lane["spans"] for lane in timeline["lanes"] if lane["name"] == "idle")
    begin, length = max(idle, key=lambda span: span[1])
    assert place_of(report, found) == Place(0, "50", begin, begin + length)


@pytest.mark.parametrize("subject", [Subject("operator_type", "MatMul"), Subject("collection", "collection")])
def test_no_place_is_made_up(subject):
    """An operator's call is told in its message, settings have no time, a healthy run no step."""
    assert place_of(cluster(), replace(LATE, subject=subject)) is None
    assert place_of(replace(healthy(), charts={}), LATE) is None
    assert place_of(data_bound(), replace(LATE, subject=Subject("rank", "77", (77,)))) is None


_broken = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["path", "rows", "step", "rank"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(_broken, _broken)
def test_damaged_pictures_have_no_place_and_no_error(course, timeline):
    """Saved reports may be anything."""
    report = replace(cluster(), charts={"step_ranks": course, "timeline": timeline})
    for finding in cluster().findings:
        assert isinstance(place_of(report, finding), Place | None)
