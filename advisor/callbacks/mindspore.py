"""MindSpore: `on_trace_ready=advise_handler("./profile")`, or `callbacks=[advise_callback("./profile")]` of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advisor.callbacks.handler import AdviseHandler
from advisor.collect.plan import limit


def advise_handler(folder: str | Path, **options: Any) -> AdviseHandler:
    """An `on_trace_ready` handler for `mindspore.profiler.profile`: writes to `folder` as MindSpore's own does, then
    advises. `options`: formats, lang, all_ranks, tell (see `AdviseHandler`). Raises ImportError without MindSpore."""
    from mindspore.profiler import tensorboard_trace_handler

    return AdviseHandler(folder, tensorboard_trace_handler(str(folder)), **options)


def advise_callback(
    folder: str | Path, *, start: int | None = None, steps: int | None = None, level: int = 1, **options: Any
) -> Any:
    """A `mindspore.Callback` that records `steps` steps from step `start` of `model.train` on and then advises.

    `level` is the profiler level. Raises ImportError without MindSpore.
    """
    import mindspore
    from mindspore import profiler

    first = int(limit("start")) if start is None else start
    last = first + (int(limit("steps")) if steps is None else steps) - 1

    class AdviseCallback(mindspore.Callback):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.profile = profiler.profile(
                activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
                start_profile=False,
                schedule=profiler.schedule(wait=0, warmup=0, active=last - first + 1, repeat=1, skip_first=0),
                on_trace_ready=advise_handler(folder, **options),
                experimental_config=profiler._ExperimentalConfig(
                    profiler_level=getattr(profiler.ProfilerLevel, f"Level{level}")
                ),
            )

        def on_train_step_begin(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == first:
                self.profile.start()

        def on_train_step_end(self, run_context: Any) -> None:
            number = run_context.original_args().cur_step_num
            if first <= number <= last:
                self.profile.step()
            if number == last:
                self.profile.stop()

    return AdviseCallback()
