"""Not the setting is missing where a profile was recorded with it: the file was left behind."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.knowledge.writers import left_behind, written_by


@pytest.mark.parametrize(
    ("settings", "table", "left"),
    [
        ({"level": "Level1"}, "collectives", True),
        ({"level": "Level2"}, "links", True),
        ({"level": "Level0"}, "collectives", False),
        ({"level": "LevelNone"}, "collectives", False),
        ({}, "collectives", False),
        ({"activities": ["CPU", "NPU"]}, "trace", True),
        ({"activities": ["NPU"]}, "trace", False),
        ({"profile_memory": True}, "memory", True),
        ({"profile_memory": False}, "memory", False),
    ],
)
def test_what_was_asked_for_was_left_behind(settings: dict[str, Any], table: str, left: bool) -> None:
    """The settings are told by the profile's own files; what they do not tell may not have been set."""
    writes = written_by("ascend_pt", "pytorch")
    told = left_behind(writes, settings)[table]
    assert told.file == writes[table].file
    assert told.setting == (
        f"the whole result folder ({writes[table].setting} was set)" if left else writes[table].setting
    )


def test_a_database_alone_was_not_asked_for_text() -> None:
    """Whatever else was set: only text beside it brings the timeline."""
    writes = written_by("ascend_pt", "pytorch", True)
    assert left_behind(writes, {"activities": ["CPU", "NPU"]})["trace"] == writes["trace"]
