"""What sharded layers and experts exchange by their nature is told, weighed by its bytes, and accuses nobody."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusters import SMALL, facts_of

from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.collectives.inherent import link_limit, links_at_once
from advisor.facts.collectives.parallelism import partition
from advisor.facts.device.forward import communicator
from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import simulate, write_profile

TENSOR = replace(SMALL, data=2, tensor=4, ranks_per_host=8, activation_mb=24.0)


def test_sharded_layers_at_the_links_speed_are_no_redistribution(tmp_path: Path) -> None:
    """Two AllReduce a layer as fast as the links are: their bytes need what they take."""
    facts, _ = facts_of(TENSOR, tmp_path)
    took = facts.number("communication.redistribution_share", RUN)
    needed = facts.number("communication.sharding_needed_share", RUN)
    assert took is not None and needed is not None
    assert took > 0.1 and 0.8 * took < needed <= took
    assert "sharding-redistribution" not in {f.verdict for f in advise([tmp_path], load_rules()).findings}


@pytest.mark.parametrize(
    ("kinds", "part"),
    [
        (("allReduce",), 0.0),
        (("allGather", "reduceScatter"), 0.0),
        (("allGather", "reduceScatter", "allReduce", "allReduce"), 0.5),
    ],
    ids=["sums", "sums in parts", "layouts beside sums"],
)
def test_a_gather_beside_sums_changes_layouts(tmp_path: Path, kinds: tuple[str, ...], part: float) -> None:
    """Layers sum with AllReduce, or with ReduceScatter and AllGather in turn (sequence parallelism). Who does the first
    needs no gathers, whose gradient is a ReduceScatter."""
    _, run = facts_of(TENSOR, tmp_path)
    layout = partition(run)
    of = {
        communicator(ex.names[name])
        for ex in run.each(EXCHANGES).values()
        for name, group in zip(ex.name, ex.group, strict=True)
        if layout.role_of(ex.groups[group]) == "tensor"
    }

    def other(found: re.Match[str]) -> str:
        of_layers = found[1] in of
        return f"hcom_{kinds[int(found[2]) % len(kinds)] if of_layers else 'allReduce'}__{found[1]}_{found[2]}_"

    for path in (*tmp_path.rglob("*.csv"), *tmp_path.rglob("*.json")):
        path.write_text(re.sub(r"hcom_allReduce__(\d+)_(\d+)_", other, path.read_text()))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    whole, moved = (facts.number(f"communication.{name}_share", RUN) for name in ("redistribution", "reshuffle"))
    assert whole and moved is not None
    assert moved == pytest.approx(part * whole, abs=0.05 * whole)


@pytest.mark.parametrize("slower", [1.0, 4.0])
def test_what_the_bytes_need_does_not_grow_with_the_time_they_take(tmp_path: Path, slower: float) -> None:
    """Links of a quarter of the speed that the knowledge base tells do not make the exchange any more needed."""
    scenario = replace(TENSOR, hccs_gb_s=link_limit("HCCS") / 1e9 / slower)
    facts, _ = facts_of(scenario, tmp_path)
    took = facts.number("communication.redistribution_us", RUN)
    step = facts.number("step.time_us", RUN)
    needed = facts.number("communication.sharding_needed_share", RUN)
    assert took and step and needed
    assert needed * step == pytest.approx(took / slower, rel=0.25)


def test_a_ring_between_hosts_needs_what_its_slowest_hop_takes(tmp_path: Path) -> None:
    """Most ranks of a ring over two hosts have fast links; it moves at the pace of the two hops between the hosts, and
    at their speed its bytes need what they take."""
    ring = replace(SMALL, data=8, ranks_per_host=4, gradient_mb_per_layer=60.0, hccs_gb_s=60.0, rdma_gb_s=20.0)
    facts, _ = facts_of(ring, tmp_path)
    took, needed = (facts.number(f"communication.exposed_{name}_share", RUN) for name in ("transfer", "needed"))
    assert took is not None and needed is not None
    assert took > 0.1 and 0.8 * took < needed <= took


def test_experts_exchange_tokens_and_redistribute_nothing(tmp_path: Path) -> None:
    """AlltoAll between data-parallel ranks is expert parallelism: told as such, and no sharding strategy is blamed."""
    write_profile(simulate(replace(SMALL, gradient_mb_per_layer=120.0)), tmp_path)
    for path in (*tmp_path.rglob("*.csv"), *tmp_path.rglob("*.json")):
        path.write_text(path.read_text().replace("hcom_allReduce_", "hcom_alltoAllV_"))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    experts, needed = (facts.number(f"communication.expert_{name}", RUN) for name in ("share", "needed_share"))
    assert experts is not None and needed is not None and 0 < needed <= experts
    assert facts.number("communication.redistribution_share", RUN) == 0.0
    report = advise([tmp_path], load_rules())
    assert "sharding-redistribution" not in {f.verdict for f in report.findings}
    told = [f.message.en for f in report.findings if f.rule == "COMM010"]
    assert told and "exchange of tokens" in told[0]


def test_many_barriers_do_not_tell_how_many_links_move_at_once() -> None:
    """Fifteen barriers of a few bytes, whose times are the files' last digit, beside six collectives over three links
    at once: the time is in the six, and so is the answer."""
    links_us = np.array([0.001] * 15 + [3500.0] * 6)
    moving_us = np.array([0.00018] * 15 + [1166.7] * 6)
    assert links_at_once(links_us, moving_us) == pytest.approx(3.0, rel=0.01)
    assert links_at_once(links_us[:0], moving_us[:0]) == 1.0
