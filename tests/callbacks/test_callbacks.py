"""One line in a training script: the framework's own handler runs first, then the report; training never stops."""

from __future__ import annotations

import sys
import types

import pytest

from advisor.callbacks.handler import AdviseHandler, rank_of_this_process
from benchmarks.simulator import Scenario, simulate, write_profile


@pytest.fixture
def written(tmp_path):
    """A function that writes what the framework's handler would have written."""

    def write(profiler=None):
        write_profile(simulate(Scenario(data=2, seed=5)), tmp_path)
        return profiler

    return tmp_path, write


def test_the_report_follows_the_frameworks_own_analysis(written):
    """The user sees a verdict without a second command."""
    folder, write = written
    told: list[str] = []
    handler = AdviseHandler(folder, write, formats=("text", f"json:{folder / 'report.json'}"), tell=told.append)
    assert handler("profiler") == "profiler"
    assert "Step" in told[0] and (folder / "report.json").is_file()


def test_only_what_is_new_is_advised_on(written):
    """An older result in the same folder is not reported again."""
    folder, write = written
    write()
    told: list[str] = []
    AdviseHandler(folder, lambda _: None, tell=told.append)(None)
    assert "nothing was written" in told[0]


def test_a_failure_of_the_advisor_does_not_end_the_training(tmp_path):
    """Hours of training are worth more than a report."""

    def write(_):
        (tmp_path / "x_ascend_ms" / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
        (tmp_path / "x_ascend_ms" / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").write_text("\x00")

    told: list[str] = []
    AdviseHandler(tmp_path, write, formats=("no-such-format",), tell=told.append)(None)
    assert told and told[0].startswith("advisor:")


def test_other_ranks_keep_silent(written, monkeypatch):
    """Eight ranks must not print eight reports."""
    folder, write = written
    monkeypatch.setenv("RANK_ID", "3")
    told: list[str] = []
    AdviseHandler(folder, write, tell=told.append)(None)
    assert told == [] and rank_of_this_process() == 3
    AdviseHandler(folder / "absent", lambda _: None, all_ranks=True, tell=told.append)(None)
    assert len(told) == 1


class FakeProfile:
    """The documented interface of mindspore.profiler.profile: start, step, stop, and the handler at the end."""

    def __init__(self, **arguments):
        self.arguments, self.calls = arguments, []

    def start(self):
        self.calls.append("start")

    def step(self):
        self.calls.append("step")

    def stop(self):
        self.calls.append("stop")
        self.arguments["on_trace_ready"](self)


def fake_profiler(name, calls):
    module = types.ModuleType(name)
    module.tensorboard_trace_handler = lambda folder: lambda profiler: calls.append((folder, profiler))
    module.profile = FakeProfile
    module.schedule = lambda **entries: entries
    module.ProfilerActivity = types.SimpleNamespace(CPU="CPU", NPU="NPU")
    module.ProfilerLevel = types.SimpleNamespace(Level0=0, Level1=1)
    module._ExperimentalConfig = lambda **entries: entries
    return module


@pytest.fixture
def mindspore(monkeypatch):
    """A stand-in for MindSpore with the documented interface."""
    calls: list = []
    module = types.ModuleType("mindspore")
    module.Callback = type("Callback", (), {})
    module.profiler = fake_profiler("mindspore.profiler", calls)
    module.calls = calls
    monkeypatch.setitem(sys.modules, "mindspore", module)
    monkeypatch.setitem(sys.modules, "mindspore.profiler", module.profiler)
    return module


def test_the_mindspore_callback_records_the_steps_asked_for(mindspore, tmp_path):
    """Warm-up is left out, the steps are whole, and the framework's handler writes where the user said."""
    from advisor.callbacks.mindspore import advise_callback

    told: list[str] = []
    callback = advise_callback(tmp_path, start=3, steps=2, tell=told.append)
    for number in range(1, 8):
        context = types.SimpleNamespace(original_args=lambda n=number: types.SimpleNamespace(cur_step_num=n))
        callback.on_train_step_begin(context)
        callback.on_train_step_end(context)
    assert callback.profile.calls == ["start", "step", "step", "stop"]
    assert callback.profile.arguments["schedule"]["active"] == 2
    assert mindspore.calls == [(str(tmp_path), callback.profile)]
    assert len(told) == 1


def test_torch_npu_gets_a_handler(monkeypatch, tmp_path):
    """The same line serves torch_npu."""
    calls: list = []
    module = fake_profiler("torch_npu.profiler", calls)
    package = types.ModuleType("torch_npu")
    package.profiler = module
    monkeypatch.setitem(sys.modules, "torch_npu", package)
    monkeypatch.setitem(sys.modules, "torch_npu.profiler", module)
    from advisor.callbacks.pytorch import advise_handler

    advise_handler(tmp_path, tell=calls.append)("profiler")
    assert calls[0] == (str(tmp_path), "profiler")


def test_neither_module_imports_its_framework():
    """Importing the helper costs nothing where the framework is absent."""
    import importlib

    for name in ("mindspore", "pytorch"):
        importlib.import_module(f"advisor.callbacks.{name}")
    assert "torch_npu" not in sys.modules


def test_with_the_real_mindspore(tmp_path):
    """MindSpore itself calls the handler with its profiler, and the report appears."""
    mindspore = pytest.importorskip("mindspore")
    if not hasattr(mindspore, "set_device"):
        pytest.skip("a MindSpore without set_device")
    import numpy as np
    from mindspore import profiler

    from advisor.callbacks.mindspore import advise_handler

    mindspore.set_device("CPU")
    told: list[str] = []
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=0, active=1, repeat=1),
        on_trace_ready=advise_handler(tmp_path, tell=told.append),
    ) as running:
        for _ in range(3):
            mindspore.ops.add(mindspore.Tensor(np.ones(4)), mindspore.Tensor(np.ones(4)))
            running.step()
    assert told
