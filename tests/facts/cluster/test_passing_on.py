"""What is handed on from rank to rank, round a ring or along a pipeline: a slow card costs what others wait for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from advisor.facts.cluster.replay import Change, gain, model
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

RANKS = 4
LAYERS = 6
STEPS = 3


@dataclass
class Card:
    """One rank of a ring, as it runs: rows of kernel_details and the times at which its queues are free."""

    factor: float
    rows: list[tuple[str, float, float]] = field(default_factory=list)
    at: float = 0.0
    sending: float = 0.0
    receiving: float = 0.0

    def compute(self, name: str, us: float, since: float = 0.0) -> None:
        begin = max(self.at, since)
        self.at = begin + us * self.factor
        self.rows.append((name, begin, self.at))


def ring(factors: list[float], moves_us: float, attends_us: float, projects_us: float) -> list[Card]:
    """Each layer projects, then attends to the blocks of all ranks in turn: each goes on to the next rank while it is
    attended to."""
    cards = [Card(factor) for factor in factors]
    for layer in range(LAYERS):
        for card in cards:
            card.compute(f"project_{layer}", projects_us)
        here = [card.at for card in cards]
        for hop in range(RANKS):
            arrives = list(here)
            for rank, card in enumerate(cards):
                other = cards[(rank + 1) % RANKS]
                if hop < RANKS - 1:
                    begin = max(here[rank], card.sending)
                    card.sending = begin + moves_us
                    card.rows.append(("send", begin, card.sending))
                    other.rows.append(("receive", max(other.receiving, 0.0), card.sending))
                    arrives[(rank + 1) % RANKS] = card.sending
            for rank, card in enumerate(cards):
                if hop < RANKS - 1:
                    card.receiving = arrives[rank]
                card.compute(f"attend_{layer}_{hop}", attends_us, here[rank])
            here = arrives
    end = max(card.at for card in cards) + 2 * moves_us
    for card in cards:
        card.rows += [("allReduce", card.at, end)]
        card.at = end
        card.compute("update", 50.0)
    return cards


def line(factors: list[float], moves_us: float, works_us: float, batches: int) -> list[Card]:
    """Stages that hand each micro-batch on; each asks for the next one as soon as it has one."""
    cards = [Card(factor) for factor in factors]
    for _ in range(batches):
        arrives = 0.0
        for stage, card in enumerate(cards):
            if stage:
                card.rows.append(("receive", card.receiving, arrives))
                card.receiving = arrives
            card.compute("layer", works_us, arrives)
            if stage < len(cards) - 1:
                begin = max(card.at, card.sending)
                arrives = card.sending = begin + moves_us
                card.rows.append(("send", begin, arrives))
    return cards


def write(root: Path, cards: list[Card], shifts: list[float], group: str = "cp") -> float:
    """The ranks as torch_npu writes it, every step alike, each host on a clock of its own; microseconds of a step."""
    period = max(card.at for card in cards) + 20
    names = {"g1": group} | ({"g2": "dp"} if group == "cp" else {})
    info = {key: {"group_name": name, "global_ranks": list(range(len(cards)))} for key, name in names.items()}
    for rank, card in enumerate(cards):
        out = root / f"host_{rank}_20240101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        out.mkdir(parents=True)
        (out.parent / f"profiler_info_{rank}.json").write_text("{}")
        (out.parent / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": info}))
        rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"]
        table = ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"]
        groups: dict[str, dict[str, object]] = {}
        for step in range(STEPS):
            counts = {"send": 0, "receive": 0, "allReduce": 0}
            origin = 1e6 + shifts[rank] + step * period
            computed = 0.0
            ops: dict[str, object] = {}
            for name, begin, end in sorted(card.rows, key=lambda row: row[1]):
                if name in counts:
                    place = 11 if name == "allReduce" else 10
                    number = counts["send"] + counts["receive"] if place == 10 else counts[name]
                    label = f"hcom_{name}__{place}_{number}_1"
                    counts[name] += 1
                    rows.append(f"{step},{label},hcom_{name}_,COMMUNICATION,{origin + begin:.2f},{end - begin:.2f},0")
                    ops[f"{label}@{'g1' if place == 10 else 'g2'}"] = {
                        "Communication Time Info": {
                            "Start Timestamp(us)": origin + begin,
                            "Elapse Time(ms)": (end - begin) / 1000,
                            "Transit Time(ms)": 0.0,
                            "Wait Time(ms)": 0.0,
                            "Synchronization Time(ms)": 0.0,
                            "Idle Time(ms)": 0.0,
                        }
                    }
                else:
                    computed += end - begin
                    kind = name.split("_")[0]
                    rows.append(f"{step},{name},{kind},AI_CORE,{origin + begin:.2f},{end - begin:.2f},0")
            alone = period - 20 - computed
            table.append(f"{rank},{step},{computed},{alone},0,{alone},20")
            groups[f"step{step}"] = {
                "p2p": {k: v for k, v in ops.items() if "@g1" in k},
                "collective": {k: v for k, v in ops.items() if "@g2" in k},
            }
        (out / "kernel_details.csv").write_text("\n".join(rows) + "\n")
        (out / "step_trace_time.csv").write_text("\n".join(table) + "\n")
        (out / "communication.json").write_text(json.dumps(groups))
    return period


@pytest.mark.parametrize(
    ("moves", "attends", "projects"),
    [(400.0, 150.0, 2000.0), (400.0, 150.0, 300.0), (50.0, 300.0, 500.0), (300.0, 280.0, 1000.0)],
    ids=["transfers longer than attention", "mostly transfers", "hidden transfers", "as long as attention"],
)
def test_a_slow_card_of_a_ring_costs_what_its_neighbours_wait_for(
    tmp_path: Path, moves: float, attends: float, projects: float
) -> None:
    """A card that takes 1.3 times as long: part of it lies behind transfers that all wait for. What the step gains
    without it is what the same ring takes less with equal cards, whatever the clocks say."""
    shifts = [0.0, 5e5, -3e4, 123.0]
    slow = write(tmp_path, ring([1.0, 1.0, 1.3, 1.0], moves, attends, projects), shifts)
    even = max(card.at for card in ring([1.0] * RANKS, moves, attends, projects)) + 20
    run = measure([tmp_path], None, Options(jobs=1)).run
    assert run is not None
    found = model(run)
    assert found is not None
    assert found.baseline_us == pytest.approx(slow, rel=0.03)
    assert gain(found, {2: Change(compute=1 / 1.3)}) == pytest.approx(slow - even, rel=0.2)


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_a_slow_stage_counts_once_for_each_micro_batch(tmp_path: Path, slow: int) -> None:
    """Receives are asked for long before anything is sent: their start is no work that the receiver had to do first."""
    factors = [1.3 if stage == slow else 1.0 for stage in range(3)]
    taken = write(tmp_path, line(factors, 100.0, 1000.0, 12), [0.0, 4e5, -2e4], "pp")
    even = max(card.at for card in line([1.0] * 3, 100.0, 1000.0, 12)) + 20
    run = measure([tmp_path], None, Options(jobs=1)).run
    assert run is not None
    found = model(run)
    assert found is not None
    assert gain(found, {slow: Change(compute=1 / 1.3)}) == pytest.approx(taken - even, rel=0.05)


def test_who_receives_round_a_ring_is_no_stage(tmp_path: Path) -> None:
    """torch_npu counts the time of receives as bubbles; without a pipeline there are none to speak of."""
    write(tmp_path, ring([1.0] * RANKS, 400.0, 150.0, 300.0), [0.0] * RANKS)
    for table in tmp_path.rglob("step_trace_time.csv"):
        head, *rows = table.read_text().splitlines()
        alone = [row.split(",")[3] for row in rows]
        table.write_text(
            "\n".join([f"{head},Bubble", *(f"{r},{us}" for r, us in zip(rows, alone, strict=True))]) + "\n"
        )
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert {"exposed-communication"} <= {finding.verdict for finding in report.findings}
    words = [report.summary.headline.en, *(finding.message.en for finding in report.findings)]
    assert not any("bubble" in text or "stage" in text for text in words), words
