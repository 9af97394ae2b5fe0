"""One real MindSpore data pipeline with a known fault, run by an interpreter that has MindSpore (no part of CI).

    python data_fault.py FAULT '{"workers": 2}' [--profile FOLDER]

Prints one JSON line: the mean step in milliseconds after the start-up, and the wait in it. The accelerator is a sleep.
With `--profile` MindSpore's own collectors write a `*_ascend_ms` folder as they do beside an NPU; a CPU build does
not start them by itself, so the exported entry points are called here.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import platform
import re
import time
from pathlib import Path

import mindspore
import mindspore._c_dataengine as dataengine
import mindspore._c_expression as expression
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np

BATCH = 4
LEAD = 25
"""Batches left out at the start: they were prepared while nothing ran."""

FAULTS: dict[str, dict] = {
    "healthy": {"step_ms": 20},
    "source_blocks": {"source_ms": 6, "source_workers": 1},
    "source_iterable": {"source_ms": 5, "source_workers": 2, "random_access": False},
    "map_blocks": {"map_ms": 6, "map_workers": 1},
    "map_blocks_batch_of_map": {"batch_ms": 25, "batch_workers": 1},
    "map_decodes": {"image": 1024, "map_workers": 1, "step_ms": 8},
    "map_holds_lock": {"map_burn_ms": 4, "map_workers": 2},
    "loop_code": {"loop_burn_ms": 20},
    "source_holds_lock": {"source_burn_ms": 4},
    "map_pauses": {"spike_ms": 400, "spike_every": 120, "prefetch": 1, "step_ms": 20},
    "zip_branch": {"branch_ms": 5, "branch_workers": 1},
    "concat_branch": {"join": "concat", "branch_ms": 6, "branch_workers": 1},
    "shuffle_start": {"buffer": 400, "source_ms": 4, "source_workers": 2, "step_ms": 20},
}
"""Fault -> settings that differ from DEFAULTS."""
DEFAULTS = {
    "step_ms": 5, "steps": 250, "prefetch": 16, "join": "zip", "buffer": 0, "processes": False, "loop_burn_ms": 0,
    "source_ms": 0, "source_burn_ms": 0, "source_workers": 1, "random_access": True, "image": 0,
    "map_ms": 0, "map_burn_ms": 0, "map_workers": 1, "spike_ms": 0, "spike_every": 0,
    "batch_ms": 0, "batch_burn_ms": 0, "batch_workers": 1, "branch_ms": 0, "branch_workers": 1,
}  # fmt: skip


def burn(milliseconds: float) -> None:
    """Python work that keeps the interpreter lock, measured in processor time of this thread."""
    end = time.thread_time() + milliseconds / 1e3
    x = 0
    while time.thread_time() < end:
        for _ in range(200):
            x += 1


def pause(milliseconds: float) -> None:
    if milliseconds:
        time.sleep(milliseconds / 1e3)


def row(index: int) -> np.ndarray:
    return np.full((8,), index, np.float32)


class Indexed:
    """A random-access source."""

    def __init__(self, length: int, milliseconds: float, busy: float = 0, content: np.ndarray | None = None) -> None:
        self.length, self.milliseconds, self.busy, self.content = length, milliseconds, busy, content

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[np.ndarray]:
        pause(self.milliseconds)
        if self.busy:
            burn(self.busy)
        return (row(index) if self.content is None else self.content,)


class Iterated:
    """The same as an iterable, which MindSpore reads with one thread whatever its workers."""

    def __init__(self, length: int, milliseconds: float) -> None:
        self.source = Indexed(length, milliseconds)

    def __iter__(self):
        return (self.source[i] for i in range(len(self.source)))


def picture(size: int) -> np.ndarray:
    """A JPEG file's bytes."""
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (size // 8, size // 8, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((size, size)).save(file, "JPEG", quality=85)
    return np.frombuffer(file.getvalue(), np.uint8)


def build(s: dict):
    """The pipeline: source, optional branch, shuffle, map, batch."""
    ds.config.set_prefetch_size(s["prefetch"])
    ds.config.set_auto_offload(False)
    length = s["steps"] * BATCH
    parts = 2 if s["branch_ms"] and s["join"] == "concat" else 1
    if s["random_access"]:
        content = picture(s["image"]) if s["image"] else None
        source = Indexed(length // parts, s["source_ms"], s["source_burn_ms"], content)
    else:
        source = Iterated(length, s["source_ms"])
    data = ds.GeneratorDataset(source, ["x"], shuffle=False, num_parallel_workers=s["source_workers"],
                               python_multiprocessing=s["processes"])  # fmt: skip
    if s["branch_ms"]:
        name = "y" if s["join"] == "zip" else "x"
        other = ds.GeneratorDataset(Indexed(length // parts, 0), [name], shuffle=False, num_parallel_workers=1,
                                    python_multiprocessing=False)  # fmt: skip
        other = other.map(lambda y: (pause(s["branch_ms"]), y)[1], [name], num_parallel_workers=s["branch_workers"])
        data = ds.zip((data, other)) if s["join"] == "zip" else data.concat(other)
    if s["buffer"]:
        data = data.shuffle(s["buffer"])
    if s["image"]:
        data = data.map([vision.Decode(), vision.Resize((32, 32))], ["x"], num_parallel_workers=s["map_workers"])
    elif s["map_ms"] or s["map_burn_ms"] or s["spike_ms"]:
        done = [0]

        def work(x):
            done[0] += 1
            if s["spike_every"] and done[0] % s["spike_every"] == 0:
                pause(s["spike_ms"])
            pause(s["map_ms"])
            if s["map_burn_ms"]:
                burn(s["map_burn_ms"])
            return x

        data = data.map(work, ["x"], num_parallel_workers=s["map_workers"], python_multiprocessing=s["processes"])
    if s["batch_ms"] or s["batch_burn_ms"]:

        def whole(xs, info):
            pause(s["batch_ms"])
            if s["batch_burn_ms"]:
                burn(s["batch_burn_ms"])
            return (xs,)

        return data.batch(BATCH, per_batch_map=whole, input_columns=["x"], num_parallel_workers=s["batch_workers"],
                          python_multiprocessing=s["processes"])  # fmt: skip
    return data.batch(BATCH, num_parallel_workers=s["batch_workers"])


class Collector:
    """MindSpore's sampling of the pipeline and its recording of dataset events, started by hand."""

    def __init__(self, folder: Path) -> None:
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime()) + "000"
        self.root = folder / f"{folder.name}_1_{stamp}_ascend_ms"
        self.raw = self.root / "FRAMEWORK"
        self.raw.mkdir(parents=True)
        (self.root / "ASCEND_PROFILER_OUTPUT").mkdir()
        (self.root / "logs").mkdir()
        library = Path(mindspore.__file__).parent / "lib" / "libmindspore_profiler.so"
        self.library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.monitor = dataengine.GlobalContext.profiling_manager()
        self.manager = expression.ProfilerManager.get_instance()

    def _dumper(self, function: str, *arguments: object) -> None:
        prefix = "_ZN9mindspore8profiler6ascend19ProfilingDataDumper"
        instance = getattr(self.library, f"{prefix}11GetInstanceEv")
        instance.restype = ctypes.c_void_p
        method = getattr(self.library, prefix + function)
        method.restype = None
        method(ctypes.c_void_p(instance()), *arguments)

    def start(self) -> None:
        ds.config.set_monitor_sampling_interval(100)
        text = str(self.raw).encode()
        # a text of the old C++ library: a pointer to characters that length, capacity and a count precede
        self.text = ctypes.create_string_buffer(
            len(text).to_bytes(8, "little") * 2 + (1).to_bytes(8, "little") + text + b"\0"
        )
        self.pointer = ctypes.c_void_p(ctypes.addressof(self.text) + 24)
        self._dumper("4InitERKSsm", ctypes.byref(self.pointer), ctypes.c_size_t(1 << 20))
        self._dumper("5StartEv")
        self.manager.set_profile_framework("time")
        self.monitor.init()
        self.monitor.start()

    def stop(self) -> None:
        self.monitor.stop()
        self.manager.set_profile_framework("NULL")
        self._dumper("4StopEv")
        self._dumper("6UnInitEv")
        self.monitor.save(str(self.raw))
        self._write_dataset_table()

    def _write_dataset_table(self) -> None:
        """dataset.csv by MindSpore's own decoder and viewer."""
        from mindspore.profiler.analysis.parser.ms_framework_parser import FrameworkParser
        from mindspore.profiler.analysis.time_converter import TimeConverter
        from mindspore.profiler.analysis.viewer.ms_dataset_viewer import MsDatasetViewer
        from mindspore.profiler.common.log import ProfilerLogger

        ProfilerLogger.init(str(self.root))
        TimeConverter.init_parameters(freq=counter_mhz(), cntvct=0, localtime_diff=0)
        places = {"ascend_ms_dir": str(self.root), "framework_path": str(self.raw),
                  "ascend_profiler_output_path": str(self.root / "ASCEND_PROFILER_OUTPUT")}  # fmt: skip
        # a parser told of a CPU reads no events
        events = FrameworkParser(rank_id=0, activities=["CPU"], device_target="Ascend", **places)._parse({})
        MsDatasetViewer(**places).save(events)


def counter_mhz() -> float:
    """Rate of the processor's time counter: 100 MHz on Kunpeng, the nominal clock on x86."""
    if platform.machine() != "x86_64":
        return 100.0
    match = re.search(r"cpu MHz\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text())
    return float(match.group(1)) if match else 100.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("fault", choices=sorted(FAULTS))
    parser.add_argument("changes", nargs="?", default="{}")
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    settings = {**DEFAULTS, **FAULTS[options.fault], **json.loads(options.changes)}
    print(json.dumps(run(settings, options.profile)), flush=True)
    # MindSpore's threads now and then crash an interpreter that ends the ordinary way
    os._exit(0)


def run(settings: dict, folder: Path | None) -> dict:
    """The loop: take a batch, the loop's own code, the emulated accelerator."""
    collector = None
    if folder is not None:
        collector = Collector(folder)
        collector.start()
    iterator = build(settings).create_tuple_iterator(num_epochs=1, output_numpy=True)
    began, times, waits = time.perf_counter(), [], []
    while True:
        before = time.perf_counter()
        batch = next(iterator, None)
        if batch is None:
            break
        waits.append(time.perf_counter() - before)
        if settings["loop_burn_ms"]:
            burn(settings["loop_burn_ms"])
        pause(settings["step_ms"])
        times.append(time.perf_counter())
    if collector is not None:
        collector.stop()
    steady = len(times) - LEAD - 1
    return {
        "step_ms": 1e3 * (times[-1] - times[LEAD]) / steady,
        "wait_ms": 1e3 * sum(waits[LEAD + 1:]) / steady,
        "first_wait_ms": 1e3 * waits[0],
        "total_s": times[-1] - began,
        "batches": len(times),
        "profile": str(collector.root) if collector else None,
    }  # fmt: skip


if __name__ == "__main__":
    main()
