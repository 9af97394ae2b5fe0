"""The step without some of its causes, for a terminal or as JSON: its length, each rank's share, the next limit."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import reduce
from typing import Any

from advisor.basics.jsonout import shield_json
from advisor.basics.units import MEASURED, rank_list, show, show_apart
from advisor.engine.concluding.joint import Repaired
from advisor.model import Accounting, Report
from advisor.plain import to_plain
from advisor.render.escaping import printable
from advisor.render.wording import UPPER_BOUND, hangs_on_absent, labelled, where, word

MOST_RANKS = 16
"""Ranks whose shares are told one by one: those that change most; a group of thousands fits no screen."""


def render_whatif(repaired: Repaired, lang: str = "en") -> str:
    """The answer for a terminal."""
    return "\n".join(printable(line) for line in _lines(repaired, lang)) + "\n"


def render_whatif_json(repaired: Repaired) -> str:
    """The answer as JSON; microseconds and shares of the step."""
    document: dict[str, Any] = {
        "without": list(repaired.without),
        "step_time_us": repaired.before_us,
        "step_time_without_us": repaired.after_us,
        "range_us": repaired.range_us,
        "computing_share": {
            str(rank): {"before": before, "after": after} for rank, (before, after) in repaired.shares.items()
        },
        "next": None if repaired.next is None else repaired.next.id,
        "next_us": repaired.next_us,
    }
    return shield_json(json.dumps(to_plain(document), ensure_ascii=False, sort_keys=True, indent=1)) + "\n"


def _lines(repaired: Repaired, lang: str) -> Iterator[str]:
    gained = repaired.before_us - repaired.after_us
    before, after = show_apart(repaired.before_us, repaired.after_us, "us", MEASURED)
    yield word(
        lang, "whatif.answer", causes=word(lang, "report.separator").join(repaired.without),
        before=before, after=after, gained=show(gained, "us"),
        low=show(repaired.range_us[0], "us"), high=show(repaired.range_us[1], "us"),
        share=show(gained / repaired.before_us, "ratio"),
    )  # fmt: skip
    for finding in repaired.causes:
        said = hangs_on_absent(finding.saving, lang) if finding.saving is not None else ""
        yield " · ".join(
            filter(None, (f"  {finding.id}  {finding.title.get(lang)}", where(finding.subject, lang), said))
        )
    if repaired.shares:
        yield ""
        yield word(lang, "whatif.shares")
        moved = sorted(repaired.shares.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), item[0]))
        for rank, shares in sorted(moved[:MOST_RANKS]):
            yield "  " + labelled(f"{word(lang, 'kinds.rank')} {rank}", " → ".join(show_apart(*shares, "ratio")), lang)
        rest = tuple(rank for rank, _ in moved[MOST_RANKS:])
        if rest:
            yield "  " + word(lang, "whatif.rest", ranks=rank_list(rest))
    yield ""
    if repaired.next is not None:
        yield word(
            lang, "whatif.next", title=repaired.next.title.get(lang), where=where(repaired.next.subject, lang),
            id=repaired.next.id, amount=show(repaired.next_us, "us"),
        )  # fmt: skip
    else:
        yield word(lang, "whatif.no_next")


def ladder(report: Report, lang: str) -> list[tuple[str, str, str]]:
    """Repairing in the best order: (finding and those before it, the step then, what is gained in all), as far as the
    next one still gains something; empty where that is one alone."""
    told = report.whatif
    if told is None:
        return []
    now = told.step_time_us[""]
    rows: list[tuple[str, str, str]] = []
    before = now
    for count in range(1, len(told.causes) + 1):
        then = told.step_time_us[",".join(told.causes[:count])]
        if then >= before or show(then, "us", MEASURED) == show(before, "us", MEASURED):
            break
        before = then
        name, gained = told.causes[count - 1], f"−{show(now - then, 'us')}"
        if _is_bound(report, told.causes[:count]):
            gained = word(lang, "report.up_to", amount=gained)
        rows.append(
            (name if count == 1 else f"+ {name}", step_without(report, told.causes[:count], then, lang), gained)
        )
    return rows if len(rows) > 1 else []


def step_without(report: Report, causes: Collection[str], us: float, lang: str) -> str:
    """The step without these causes; a least where one of their savings is only an upper bound."""
    told = show(us, "us", MEASURED)
    return word(lang, "whatif.at_best", time=told) if _is_bound(report, causes) else told


def _is_bound(report: Report, causes: Collection[str]) -> bool:
    savings = [finding.saving for finding in report.findings if finding.id in causes]
    return any(saving is not None and saving.kind == UPPER_BOUND for saving in savings)


SMALL = 0.005
"""Part of the step below which a part of its account is not worth a word."""


def spent(report: Report, lang: str) -> list[str]:
    """Where every part of the step goes: useful, avoidable by which finding, unavoidable, unexplained."""
    told = report.accounting
    if told is None or told.step_us <= 0:
        return []
    said, left = [], []
    for group, name, us in account_parts(told):
        if group == "open":
            left.append(f"{word(lang, f'account_parts.{name}')} {show(us, 'us')}")
        else:
            title = word(lang, "account.avoidable", id=name) if group == "avoidable" else word(lang, f"account.{name}")
            said.append(f"{title} {show(us, 'us')}")
    return said + ([word(lang, "account.open", parts=word(lang, "report.separator").join(left))] if left else [])


def account_parts(told: Accounting) -> Iterator[tuple[str, str, float]]:
    """(useful, avoidable, unavoidable or open; the name of the part, of what is avoidable its finding; microseconds),
    from the useful to the unexplained; without trifles."""
    groups = {
        "useful": {"useful": told.useful_us},
        "avoidable": told.avoidable_us,
        "unavoidable": told.unavoidable_us,
        "open": told.unexplained_parts_us or {"unexplained": told.unexplained_us},
    }
    for group, parts in groups.items():
        yield from ((group, name, us) for name, us in parts.items() if us >= SMALL * told.step_us)


def used(report: Report, lang: str) -> str:
    """What the step computes against what its card can, and how long it would take at the best speed of its kernels;
    empty where no kernel tells."""
    told = report.accounting.use if report.accounting is not None else None
    if report.accounting is None or told is None:
        return ""
    flop, rate = show(told.flop, "flop"), show(told.flop_per_s, "flop_per_s")
    if told.model_flops_share is not None and told.peak_flop_per_s is not None:
        peak, share = show(told.peak_flop_per_s, "flop_per_s"), show(told.model_flops_share, "ratio")
        said = [word(lang, "use.share", share=share, card=printable(told.card), peak=peak, flop=flop, rate=rate)]
    else:
        said = [word(lang, "use.rate", flop=flop, rate=rate)]
    if told.counted_share < 1 - SMALL:
        said.append(word(lang, "use.counted", share=show(told.counted_share, "ratio")))
    step, ends = report.accounting.step_us, told.best_step_us
    if ends is not None and step - ends[0] >= SMALL * step:
        low, high = show(ends[0], "us", MEASURED), show(min(ends[1], step), "us", MEASURED)
        ends_apart = "best" if low != high else "best_one"
        typical = "typical_" if len(report.profile.ranks) > 1 else ""  # a slow rank among several is no part of it
        said.append(word(lang, f"use.{typical}{ends_apart}", low=low, high=high))
    return reduce(lambda first, second: word(lang, "summary.sentences", first=first, second=second), said)
