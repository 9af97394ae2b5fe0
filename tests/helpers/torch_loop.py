"""One rank of a loop as torch's profiler writes it: kernels, the host's calls and the rows of steps; microseconds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_MARKED: dict[str, Any] = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}}


@dataclass
class TorchLoop:
    """What was recorded so far; `write` makes files of it."""

    kernels: list[str] = field(
        default_factory=lambda: ["Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)"]
    )
    events: list[dict[str, Any]] = field(default_factory=lambda: [_MARKED])
    steps: list[str] = field(
        default_factory=lambda: [
            "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Preparing"
        ]
    )

    def launch(self, step: int, kind: str, number: int, start: int, lasts: int) -> None:
        """A kernel of this type."""
        self.kernels.append(f"{step},{kind}{number},{kind},AI_CORE,{start}.0,{lasts}")

    def call(self, name: str, start: int, lasts: int) -> None:
        """Something that the host's thread does."""
        self.events.append({"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": f"{start}.0", "dur": lasts})

    def row(self, step: int, computing: int, stage: int, preparing: int) -> None:
        """The step's row: what of the stage is not computing is free."""
        self.steps.append(f"0,{step},{computing},0,0,0,{stage - computing},{stage},{preparing}")

    def write(self, folder: Path) -> None:
        """The files, below a rank's folder."""
        output = folder / "a_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "step_trace_time.csv").write_text("\n".join(self.steps) + "\n")
        (output / "kernel_details.csv").write_text("\n".join(self.kernels) + "\n")
        (output / "trace_view.json").write_text(json.dumps(self.events))
