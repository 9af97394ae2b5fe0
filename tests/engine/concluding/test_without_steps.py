"""A report on a recording without step marks speaks of the recording; a finding about the schedule speaks of steps."""

from dataclasses import replace

import pytest
from fake_reports import data_bound

from advisor.engine.concluding.without_steps import tell_of_recording
from advisor.model import Direction, Subject, Text

SENTENCE = Text("The schedule asks for 6 training steps per round.", "schedule要求每个step调用step()。")


@pytest.mark.parametrize("direction", [Direction.EVIDENCE, Direction.SCHEDULING])
def test_a_schedule_keeps_its_steps_where_the_recording_has_none(direction: Direction) -> None:
    """How often a script must call step() does not change because nothing of it was recorded."""
    report = data_bound()
    finding = replace(report.findings[0], direction=direction, message=SENTENCE)
    told = tell_of_recording(replace(report, findings=(finding,))).findings[0].message
    assert (told == SENTENCE) is (direction == Direction.EVIDENCE)


def test_the_data_pipeline_is_told_of_a_batch() -> None:
    """What an operation needs, it needs for each batch; said of the whole recording it would be twenty times too
    little."""
    report = data_bound()
    message = Text("Each step waits 8 ms (41 % of the step) for data.", "每个step等待数据8 ms（占step的41 %）。")
    finding = replace(report.findings[0], subject=Subject("pipeline_op", "Map(2)", (0,)), message=message)
    told = tell_of_recording(replace(report, findings=(finding,))).findings[0].message
    assert told.en == "Each batch waits 8 ms (41 % of the time for a batch) for data."
    assert told.zh == "每个batch等待数据8 ms（占batch间隔的41 %）。"


def test_what_happens_a_step_happens_in_the_recording() -> None:
    """A sentence keeps its spaces: "kernels a step" is no "kernelsin the recording"."""
    report = data_bound()
    finding = replace(
        report.findings[0], message=Text("The host launches 12 kernels a step.", "每个step下发12个kernel。")
    )
    told = tell_of_recording(replace(report, findings=(finding,))).findings[0].message
    assert told.en in ("The host launches 12 kernels in the recording.", "The host launches 12 kernels per batch.")
