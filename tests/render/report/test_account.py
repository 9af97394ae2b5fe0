"""The account of the step in words and as a picture: what is not explained has a name, and nothing is left out."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from fake_reports import data_bound

from advisor.model import Accounting, Utilisation
from advisor.render.report.pictures.of_account import draw_account
from advisor.render.report.whatif import spent, used

TOLD = Accounting(
    100_000.0, 20_000.0, {"F1": 15_000.0}, {"transfer": 5_000.0}, 60_000.0,
    {"absent_wait": 50_000.0, "idle": 10_000.0},
)  # fmt: skip


def test_each_part_begins_where_the_one_before_ends():
    """The bars are a waterfall: together they are as long as the step."""
    (figure,) = draw_account(replace(data_bound(), accounting=TOLD))
    boxes = re.findall(r'<rect class="[^"]*" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', figure.drawing)
    ends = [(float(x), float(x) + float(width)) for x, width in boxes]
    assert all(abs(after[0] - before[1]) < 1 for before, after in pairwise(ends))
    assert len(figure.rows) == len(ends) == 5
    assert figure.findings == ("F1",)


def test_half_a_step_of_waiting_is_named_in_both_languages():
    """Not "unexplained" but who is waited for."""
    report = replace(data_bound(), accounting=TOLD)
    assert "waiting for ranks without a profile 50\xa0ms" in spent(report, "en")[-1]
    assert "等待未采集的rank 50\xa0ms" in spent(report, "zh")[-1]


def test_utilisation_is_told_against_a_known_peak_only():
    """Without a peak the work is told, and no share of anything."""
    use = Utilisation(1e12, 1e13, 1.0, "Ascend910B3", 2.95e14, 0.034, (80_000.0, 90_000.0))
    known = used(replace(data_bound(), accounting=replace(TOLD, use=use)), "en")
    assert "Ascend910B3" in known
    assert "3.4\xa0%" in known
    assert "80\xa0ms to 90\xa0ms" in known
    blind = replace(use, peak_flop_per_s=None, model_flops_share=None, best_step_us=None)
    told = used(replace(data_bound(), accounting=replace(TOLD, use=blind)), "zh")
    assert "MFU" not in told
    assert "%" not in told
    assert used(replace(data_bound(), accounting=None), "en") == ""
