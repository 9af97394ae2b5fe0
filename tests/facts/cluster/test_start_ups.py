"""How much of a collective's transfer is start-up, and what a step gains without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from clusters import SMALL

from advisor.facts.base import FactSet
from advisor.facts.cluster.start_ups import _share
from advisor.model import Fact, Subject
from advisor.pipeline import Options, measure
from benchmarks.simulator import simulate, write_profile

SUBJECT = Subject("collective", "hcom_allReduce__1_1_1", (0, 1))


@pytest.mark.parametrize(
    ("told", "share"),
    [
        ({"latency_share": 0.04, "bandwidth_bytes_per_s": 12e9, "link_limit_bytes_per_s": 20e9}, 0.424),
        ({"latency_share": 0.6, "bandwidth_bytes_per_s": 12e9, "link_limit_bytes_per_s": 20e9}, 0.76),
        ({"bandwidth_bytes_per_s": 12e9, "link_limit_bytes_per_s": 20e9}, 0.4),
        ({"latency_share": 0.04, "bandwidth_bytes_per_s": 12e9, "large_bandwidth_bytes_per_s": 12e9,
          "link_limit_bytes_per_s": 20e9}, 0.04),
        # 128 of 100 kB, of whose 40 us each the links move data for 10
        ({"latency_share": 0.3, "bandwidth_bytes_per_s": 10e9, "link_limit_bytes_per_s": 10e9, "size_bytes": 100e3,
          "count": 128.0, "transfer_us": 5120.0}, 0.75),
        ({"latency_share": 0.04}, 0.04),
        ({}, None),
    ],
)  # fmt: skip
def test_it_is_what_large_messages_do_not_need(told: dict[str, float], share: float | None) -> None:
    """Small ones lose time before they move, and move more slowly: fused, they lose neither. The recording's own large
    messages go before what links usually carry; no link moves data for longer than its own transfers took."""
    found = _share(FactSet([Fact(f"collective.{name}", SUBJECT, value) for name, value in told.items()]), SUBJECT)
    assert found == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("told", "alone", "share"),
    [
        # three links carry a third each in 31 of 37 us: at its speed a link needs 8 of them
        ({}, 150e3 / 31 * 1e6, 1 - 150e3 / 18e9 * 1e6 / 37),
        ({}, None, 1 - 450e3 / 18e9 * 1e6 / 37),
        ({"large_bandwidth_bytes_per_s": 450e3 / 31 * 1e6}, None, 1 - 31 / 37),
    ],
)
def test_links_that_carry_at_once_are_measured_one_by_one(
    told: dict[str, float], alone: float | None, share: float
) -> None:
    """What they reach together is compared with what one link carries only where nobody tells of a single one."""
    base = {"latency_share": 6 / 37, "bandwidth_bytes_per_s": 450e3 / 31 * 1e6, "link_limit_bytes_per_s": 18e9}
    facts = FactSet([Fact(f"collective.{name}", SUBJECT, value) for name, value in (base | told).items()])
    assert _share(facts, SUBJECT, alone) == pytest.approx(share)


def test_what_start_ups_cost_does_not_depend_on_how_many_collectives_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many only every second or fourth is kept with its size; the step starts all of them."""
    pieces = replace(
        SMALL, layers=128, gradient_mb_per_layer=1.8, kernel_us=2.0, launch_us=0.2, split=tuple(range(1, 129))
    )
    write_profile(simulate(pieces), tmp_path)

    def gain() -> float:
        found = measure([tmp_path], None, Options(jobs=1)).facts.of("collective.start_up_gain_us")
        return sum(float(fact.value) for fact in found.values())

    every = gain()
    monkeypatch.setattr("advisor.facts.collectives.exchanges.MOST_OPERATIONS", 200)
    assert every > 0
    assert gain() == pytest.approx(every, rel=0.05)
