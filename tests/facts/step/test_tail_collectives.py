"""What the older step trace tells of collectives behind the backward pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.api import advise
from advisor.model import RUN
from advisor.pipeline import measure

STEP_MS, BACKWARD_MS = 70.0, 50.0


def _write(
    root: Path, starts_ms: list[float], lasts_ms: float, rank: int = 0, waits_ms: float = 0.0, kind: str = "AllReduce"
) -> None:
    """A rank of 20 steps whose backward ends after 50 of 70 ms, with reductions of so many ms that start then; its
    first computation comes `waits_ms` late."""
    names = [f"stream_{52 + i}_{i}_{kind}-op{i}" for i in range(len(starts_ms))]
    head = ["step_num", "start_point", "end_point", "total", "fp_point", "bp_point", "iteration_interval", "fp_and_bp",
            "tail", *(f"{name}{end}" for name in names for end in ("", "_start_point", "_end_point"))]  # fmt: skip
    ticks = 100_000  # of 10 ns in a millisecond
    rows = [",".join(head)]
    for step in range(20):
        begin = int((step * STEP_MS + 1000) * ticks)
        whole, backward = int(STEP_MS * ticks), int(BACKWARD_MS * ticks)
        late = int(waits_ms * ticks) if step else 0
        cells = [step + 1, begin, begin + whole, whole, begin + late, begin + backward, late, backward - late,
                 whole - backward]  # fmt: skip
        for start in starts_ms:
            first = begin + int(start * ticks)
            cells += [int(lasts_ms * ticks), first, first + int(lasts_ms * ticks)]
        rows.append(",".join(map(str, cells)))
    root.mkdir(parents=True, exist_ok=True)
    (root / f"step_trace_raw_{rank}_detail_time.csv").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("starts", "lasts", "gains", "remedy"),
    [
        ([50.1, 54.5, 58.9, 63.3], 4.3, 3 * 4.3, "reduce-as-ready"),
        ([50.1], 17.2, 17.2, "split-allreduce"),
        ([20.0, 50.1, 54.4, 58.7], 4.3, 3 * 4.3, "split-allreduce"),
    ],
    ids=["several behind backward", "one", "some start within backward"],
)
def test_of_several_reductions_behind_backward_only_the_last_has_to_stay(
    tmp_path: Path, starts: list[float], lasts: float, gains: float, remedy: str
) -> None:
    """Started as their gradients get ready, all but the last lie beside backward. Nobody is told to split what is split
    already; where some start within backward, or there is one, what lies behind it bounds what splitting gives."""
    _write(tmp_path / "run", starts, lasts)
    found = next(f for f in advise(tmp_path / "run").findings if f.rule == "COMM021")
    assert found.saving is not None and found.saving.us == pytest.approx(gains * 1000, rel=0.02)
    assert [each.id for each in found.remedies] == [remedy]


@pytest.mark.parametrize(("received_ms", "waited_ms"), [(12.0, 0.0), (9.0, 3.0), (0.0, 12.0)])
def test_a_stage_that_waits_for_its_first_activation_waits_for_no_data(
    tmp_path: Path, received_ms: float, waited_ms: float
) -> None:
    """Of the gap before the first computation what communication covers is no wait for data."""
    _write(tmp_path / "run", [0.0], received_ms, waits_ms=12.0, kind="Receive")
    found = measure([tmp_path / "run"], ["step.interval_us"]).facts.number("step.interval_us", RUN)
    assert found == pytest.approx(waited_ms * 1000, abs=1)


def test_stages_of_a_pipeline_in_balance_are_not_accused_of_late_data(tmp_path: Path) -> None:
    """Each stage waits longer than the one before it, for what that one sends."""
    for rank, waits in enumerate((0.0, 4.0, 8.0, 12.0)):
        _write(tmp_path / "run", [0.0], waits, rank=rank, waits_ms=waits, kind="Receive" if rank else "Send")
    assert not [f for f in advise(tmp_path / "run").findings if f.verdict == "data-starved-rank"]
