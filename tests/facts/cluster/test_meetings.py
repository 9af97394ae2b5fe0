"""Where ranks meet: a replay needs to know who waited for whom."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from meeting import meeting

from advisor.facts.cluster.meetings import Model, _await_absent
from advisor.facts.cluster.replay import Change, gain, model, play
from advisor.facts.device.chain import Chain
from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.profiles import write_originals
from benchmarks.simulator import Fault, Scenario, simulate, write_profile


def test_collectives_that_one_rank_does_not_name_are_not_replayed(tmp_path: Path) -> None:
    """Without names nobody knows which collectives a rank took part in: no gain of nothing is promised, and who waits
    for the slow rank is still told."""
    write_originals(tmp_path, corpus=False)
    file = next((tmp_path / "db").rglob("ascend_pytorch_profiler_0.db"))
    with sqlite3.connect(file) as connection:
        connection.execute("ALTER TABLE COMMUNICATION_OP RENAME COLUMN opName TO other")
    report = advise([tmp_path / "db"], load_rules())
    roots = {f.verdict: f for f in report.findings if f.role.value == "root_cause"}
    assert "slow-compute-rank" in roots and "exposed-communication" not in roots
    saving = roots["slow-compute-rank"].saving
    assert saving is not None and "comparison" in saving.basis.en and (saving.us or 0) > 1000


def test_ranks_that_send_to_each_other_are_not_compared_as_peers(tmp_path: Path) -> None:
    """With kernels alone the transfers tell that there are stages: more work of the second one accuses no rank."""
    run = simulate(Scenario(pipeline=2, micro_batches=4, steps=4, layers=4, faults=(Fault("stage_imbalance", 1, 0.5),)))
    write_profile(run, tmp_path)
    for path in sorted(tmp_path.rglob("*")):
        if path.is_file() and path.name != "kernel_details.csv" and not path.name.startswith("profiler_info"):
            path.unlink()
    verdicts = {finding.verdict for finding in advise([tmp_path], load_rules()).findings}
    assert "slow-compute-rank" not in verdicts, verdicts


def test_links_and_ranks_at_hand_give_back_nothing_of_the_wait_for_an_absent_rank(tmp_path: Path) -> None:
    """A rank without files is late. However fast the links were, the step gets shorter by no more than they transfer;
    and of what the ranks at hand compute, only what lies behind the last wait shortens it."""
    late = Scenario(
        data=4, layers=3, steps=4, kernel_us=400.0, gradient_mb_per_layer=20.0, buckets=3, seed=3,
        faults=(Fault("slow_compute", 2, 0.6),), missing_ranks=(2, 3),
    )  # fmt: skip
    write_profile(simulate(late), tmp_path)
    measured = measure([tmp_path], None, Options(jobs=1))
    assert measured.run is not None
    found = model(measured.run)
    assert found is not None
    step, moved = (measured.facts.number(name, RUN) for name in ("step.time_us", "communication.transfer_share"))
    assert step and moved and (measured.facts.number("communication.absent_wait_share", RUN) or 0.0) > 0.15
    at_once = gain(found, {}, dict.fromkeys(range(len(found.pure)), 0.0))
    assert at_once is not None and at_once <= moved * step * 1.05
    faster = gain(found, dict.fromkeys(found.chains, Change(compute=0.8)))
    assert faster is not None and faster < 0.05 * step


def _write_rank(root: Path, rank: int, kernels: list[str], steps: list[str]) -> None:
    output = root / f"host_{rank}_20240101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output.parent / f"profiler_info_{rank}.json").write_text("{}")
    (output / "kernel_details.csv").write_text("\n".join(kernels) + "\n")
    (output / "step_trace_time.csv").write_text("\n".join(steps) + "\n")


def _model(root: Path) -> Model:
    run = measure([root], None, Options(jobs=1)).run
    assert run is not None
    found = model(run)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("beside", "behind"), [(0.0, 400.0), (50.0, -0.01)], ids=["a host that waits", "a start rounded to before the end"]
)
def test_what_starts_about_when_a_collective_ends_was_waiting_for_it(
    tmp_path: Path, beside: float, behind: float
) -> None:
    """Rank 1 arrives 40 ms late at a reduction whose result both ranks need: their hosts launch again 0.4 ms behind it,
    or a kernel that a stream holds back starts with its end, which is rounded to a little later, while a small kernel
    ran beside it. Rank 0 starts with it, so the step gains what rank 1 computes less."""
    head = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    for rank in (0, 1):
        rows, times = [head], ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"]
        for step in range(4):
            begin = 1_000_000 + 70_000 * step
            computes = 10_000 if rank == 0 else 50_000
            rows += [
                f"{step},MatMul,MatMulV2,AI_CORE,{begin},{computes},0",
                f"{step},hcom_allReduce__123_{step}_1,hcom_allReduce_,COMMUNICATION,{begin + computes},"
                f"{55_000 - computes},0",
                *([f"{step},Cast,Cast,AI_VECTOR_CORE,{begin + computes},{beside},0"] if beside else []),
                f"{step},Add,Add,AI_VECTOR_CORE,{begin + 55_000 + behind:.2f},10000,0",
            ]
            alone = 55_000 - computes - beside
            times.append(f"{rank},{step},{computes + beside + 10_000},{alone},{beside},{55_000 - computes},400")
        _write_rank(tmp_path, rank, rows, times)
    found = _model(tmp_path)
    even = gain(found, {1: Change(compute=0.2)})
    assert even is not None and abs(even - 40_000) < 4_000


@pytest.mark.parametrize(("waited_for", "gives"), [(True, 40_000.0), (False, 0.0)])
def test_an_absent_rank_goes_on_with_the_others_where_all_wait_for_one_another(waited_for: bool, gives: float) -> None:
    """Rank 1 computes 40 ms longer before the first of two reductions, and a member without files is the last at the
    second one, by 5 ms. Where computing waits for the end of the first, the absent one's does as well, and it comes
    earlier with the others; else what it computes does not depend on them."""
    chains, zeros = {}, np.zeros(4)
    for rank, work in enumerate((10.0, 50.0)):
        begins = 51.0 if waited_for else work
        start, busy = np.array([0.0, work, begins, 61.0]), np.array([work, 51.0 - work, 61.0 - begins, 6.0])
        name, after = ("", "hcom_allReduce__1_1_1", "", "hcom_allReduce__1_2_1"), [-1, -1, 1 if waited_for else -1, -1]
        chains[rank] = Chain("1", name, 1000 * start, 1000 * busy, zeros, zeros, np.array(after))
    step = meeting(chains)
    step.pure, step.absent = [1000.0, 1000.0], [0.0, 0.0]
    _await_absent(step)
    step.baseline_us = play(step, {}) or 0.0
    assert step.baseline_us == pytest.approx(67_000.0)
    sooner = {1: Change(compute=np.array([0.2, 1.0, 1.0, 1.0]))}
    if not waited_for:
        sooner[0] = Change(compute=np.array([1.0, 1.0, 0.2, 1.0]))
    assert gain(step, sooner) == pytest.approx(gives)


def _handing_on(maker_us: float, taker_us: float, micro: int) -> tuple[list[list[tuple[str, float, float]]], float]:
    """(kernels of a stage that makes micro-batches and of one that takes them, how long both need): sends queue behind
    one another, and each moves its bytes in 100 µs once the taker has asked for it."""
    moved, maker, taker = 0.0, [], []
    asked = 0.0
    for i in range(micro):
        maker.append((f"MatMul{i}", maker_us * i, maker_us))
        queued = max(maker_us * (i + 1), moved)
        moved = max(queued, asked) + 100
        maker.append((f"hcom_send__123_{i}_1", queued, moved - queued))
        taker += [(f"hcom_receive__123_{i}_1", asked, moved - asked), (f"MatMul{i}", moved, taker_us)]
        asked = moved + taker_us
    return [maker, taker], asked


def test_queued_transfers_of_a_stage_get_ready_evenly(tmp_path: Path) -> None:
    """A stage makes micro-batches faster than the next one takes them, and its sends queue. Each was ready when its own
    micro-batch was, not at the kernels beside which its turn came: were the stage slower and the other one faster, the
    step would last as their schedule does."""
    recorded, lasts = _handing_on(4_000, 10_000, 12)
    for rank, kernels in enumerate(recorded):
        rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"]
        times = ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"]
        for step in range(4):
            begin = 1_000_000 + (lasts + 100) * step
            for name, start, us in kernels:
                of = ("hcom_send_", "COMMUNICATION") if "send" in name else ("hcom_receive_", "COMMUNICATION")
                kind, core = ("MatMulV2", "AI_CORE") if name.startswith("MatMul") else of
                rows.append(f"{step},{name.replace('123', f'123_{step}')},{kind},{core},{begin + start},{us},0")
            work = sum(us for name, _, us in kernels if name.startswith("MatMul"))
            talk = lasts - work if rank else 12 * 100.0
            times.append(f"{rank},{step},{work},{talk},0,{talk},{lasts - work - talk},{lasts - talk},{talk}")
        _write_rank(tmp_path, rank, rows, times)
    found = _model(tmp_path)
    even = gain(found, {0: Change(compute=1.8), 1: Change(compute=0.72)})
    assert even == pytest.approx(lasts - _handing_on(7_200, 7_200, 12)[1], rel=0.1)
