"""What ranks wait for a device that idles is lost where it idles."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor import advise
from advisor.facts.base import FactSet
from advisor.model import RUN
from advisor.pipeline import measure

HEADING = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"
STEPS = 3


def _write(folder: Path, rank: int, computing: float, exposed: float, idle: float) -> None:
    """A rank whose steps take as long as these times together, milliseconds."""
    output = folder / f"rank_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output.parent / f"profiler_info_{rank}.json").write_text(f'{{"rank_id": {rank}}}')
    times = [1000 * value for value in (computing, exposed, 0, exposed, idle, computing + exposed + idle, 0, 1)]
    rows = [",".join(map(str, (rank, step, *times))) for step in range(STEPS)]
    (output / "step_trace_time.csv").write_text("\n".join([HEADING, *rows]) + "\n")


def _facts(folder: Path) -> FactSet:
    return measure([folder], ["communication.behind_idle_share"]).facts


def test_waiting_for_a_rank_that_idles_gives_the_step_no_direction_of_communication(tmp_path: Path) -> None:
    """Rank 0 idles 290 of 640 ms longer, and rank 1 waits as long for it: on average 160 ms are idle and 250 are
    exposed, of which 145 are that wait."""
    _write(tmp_path, 0, computing=230, exposed=105, idle=305)
    _write(tmp_path, 1, computing=230, exposed=395, idle=15)
    summary = advise(tmp_path).summary
    assert summary.breakdown["exposed_communication"] > summary.breakdown["idle"]
    assert summary.direction == "scheduling" and "idle" in summary.headline.en


def test_waiting_for_a_rank_that_computes_stays_communication(tmp_path: Path) -> None:
    """Nothing idles: where the time of the step goes is exposed communication, whoever causes it."""
    _write(tmp_path, 0, computing=520, exposed=105, idle=15)
    _write(tmp_path, 1, computing=230, exposed=395, idle=15)
    assert _facts(tmp_path).value("communication.behind_idle_share", RUN) == 0
    assert advise(tmp_path).summary.direction != "scheduling"


@pytest.mark.parametrize(("waiting", "share"), [(1, 0.5), (3, 0.75)])
def test_the_wait_is_counted_for_each_rank_that_waits(tmp_path: Path, waiting: int, share: float) -> None:
    """A mean over all ranks, as the idle time that it is held against."""
    _write(tmp_path, 0, computing=230, exposed=105, idle=305)
    for rank in range(1, waiting + 1):
        _write(tmp_path, rank, computing=230, exposed=395, idle=15)
    told = _facts(tmp_path).number("communication.behind_idle_share", RUN)
    assert told == pytest.approx(share * 290 / 640, rel=0.01)
