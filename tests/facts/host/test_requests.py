"""A server that idles between requests is not accused of it: nobody knows whether a request was there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from advisor.facts.host.owners import Owners
from advisor.facts.host.requests import may_wait
from advisor.model import Report, Severity
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.streams.trace import Spans, Trace
from benchmarks.simulator.recordings import write_kernels

NONE = np.zeros(0, np.int64)
SERVES = ("RmsNorm", "MatMulV2", "ReshapeAndCache", "PagedAttentionMaskNd", "MatMulV2")
TRAINS = ("LayerNorm", "MatMulV2", "SoftmaxGrad", "MatMulV2", "ApplyAdamW")
QUEUE = "<built-in method acquire of _thread.lock object at 0x7f>"


def report(folder: Path, work: Sequence[str], pauses_us: Sequence[float], between_us: float = 3.0) -> Report:
    """Of bursts of twenty passes, with one of these pauses behind each, and one between any two passes."""
    kernels, at = [], 0.0
    for pause in pauses_us:
        for _ in range(20):
            for kind in work * 4:
                kernels.append((kind, at, 40.0))
                at += 43.0
            at += between_us
        at += pause
    write_kernels(folder, kernels)
    return advise([folder], load_rules(), Options(jobs=1))


def pauses(seed: int, least: float = 50_000, most: float = 500_000) -> list[float]:
    """Twelve pauses of any length between these, microseconds."""
    rng = random.Random(seed)
    return [rng.uniform(least, most) for _ in range(12)]


def test_pauses_between_requests_that_nothing_covers_accuse_nobody(tmp_path: Path) -> None:
    """Neither a cause nor health: what would tell is said."""
    for seed in range(3):
        found = report(tmp_path / str(seed), SERVES, pauses(seed))
        assert found.summary.direction == "undetermined"
        assert "may have waited for requests" in found.summary.headline.en
        assert [f.rule for f in found.findings if f.severity.rank >= Severity.MEDIUM.rank] == []
        assert "SCHED022" in [f.rule for f in found.findings]


def test_the_same_pauses_of_a_training_are_idle_time(tmp_path: Path) -> None:
    """A training waits for no requests."""
    found = report(tmp_path, TRAINS, pauses(0))
    idle = next(f for f in found.findings if f.rule == "SCHED020")
    assert idle.severity is Severity.CRITICAL
    assert found.summary.direction == "scheduling"


def test_what_idles_within_a_request_still_counts(tmp_path: Path) -> None:
    """Pauses of 3 ms between the passes of one request, beside long ones between requests."""
    found = report(tmp_path, SERVES, pauses(1, 50_000, 150_000), between_us=3000.0)
    idle = next(f for f in found.findings if f.rule == "SCHED020")
    assert idle.severity.rank >= Severity.HIGH.rank
    assert "besides" in idle.message.en


def owners(*events: tuple[str, int, int]) -> Owners:
    """Of host events (name, start, end) in milliseconds."""
    start, end = (np.array([event[at] for event in events], np.int64) * 1_000_000 for at in (1, 2))
    names = list(dict.fromkeys(event[0] for event in events))
    spans = Spans(start, end, np.array([names.index(event[0]) for event in events], np.int64), names)
    trace = Trace([], NONE, NONE, {}, spans, (NONE, NONE), (NONE, NONE), (NONE, np.zeros(0)))
    return Owners(trace, (NONE, NONE), 0, 1_000_000_000)


def waits(found: Owners | None, *stretches: tuple[int, int]) -> list[bool]:
    """Of stretches in milliseconds."""
    start, end = (np.array([each[at] for each in stretches], np.int64) * 1_000_000 for at in (0, 1))
    return may_wait(found, start, end).tolist()


@pytest.mark.parametrize(
    ("events", "waiting"),
    [
        ([("core.py(320): _process_input_queue", 100, 300), ("queue.py(154): get", 101, 299), (QUEUE, 101, 299)], True),
        ([("<built-in method poll of select.epoll object at 0x7f>", 101, 299)], True),
        ([("asyncio/base_events.py(1922): _run_once", 90, 310)], True),
        ([], True),
        ([("inputs.py(55): tokenize", 101, 299)], False),
        ([("inputs.py(55): tokenize", 101, 299), *((QUEUE, at, at + 10) for at in range(0, 1000, 10))], False),
        ([("inputs.py(55): tokenize", 101, 299), (QUEUE, 210, 250)], False),
    ],
)
def test_a_host_that_waits_itself_does_no_work(events: list[tuple[str, int, int]], waiting: bool) -> None:
    """For its queue, or its sockets; work during which another thread waits, or which waits for a part of its time, is
    work."""
    assert waits(owners(*events), (100, 300)) == [waiting]


def test_a_loop_s_own_pauses_are_not_requests() -> None:
    """Each is as long as the others; what is far longer, or recorded nowhere for more than a token takes, is none."""
    own = [(at, at + 20) for at in range(0, 900, 100)]
    assert not any(waits(None, *own))
    assert waits(None, *own, (900, 990)) == [False] * len(own) + [True]
    assert all(waits(None, *((at, at + 90) for at in range(0, 900, 100))))
    assert waits(None, (0, 9)) == [False]
