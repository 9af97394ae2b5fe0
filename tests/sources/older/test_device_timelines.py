"""msprof's older timelines of a device, one file an iteration."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.sources.older.device_timelines import timeline_frames


def test_events_that_stand_there_twice_ran_once(tmp_path: Path) -> None:
    """A file joined with itself: each task counts once, and that is told; two tasks of one name are two."""
    events = [
        {"ph": "X", "name": "MatMul", "pid": 1, "tid": 2, "ts": at, "dur": 10.0, "args": {"Task Type": "AI_CORE"}}
        for at in (100.0, 120.0)
    ]
    path = tmp_path / "task_time_0_2_1.json"
    path.write_text(json.dumps(events + events))
    told: list[str] = []
    frames = list(timeline_frames(path, lambda place, problem, *_: told.append(problem)))
    assert sum(len(frame) for frame in frames) == 2
    assert told == ["2 events stand there more than once; each was used once"]
