"""torch_npu: `on_trace_ready=advise_handler("./profile")`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advisor.callbacks.handler import AdviseHandler


def advise_handler(folder: str | Path, **options: Any) -> AdviseHandler:
    """An `on_trace_ready` handler for `torch_npu.profiler.profile`: writes to `folder` as torch_npu's own does, then
    advises. `options`: formats, lang, all_ranks, tell (see `AdviseHandler`). Raises ImportError without torch_npu."""
    from torch_npu.profiler import tensorboard_trace_handler

    return AdviseHandler(folder, tensorboard_trace_handler(str(folder)), **options)
