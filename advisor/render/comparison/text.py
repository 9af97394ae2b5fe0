"""A comparison as text, Markdown or JSON, in English or Chinese."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from advisor.basics.jsonout import shield_json
from advisor.basics.units import show
from advisor.compare.model import Account, Comparison, Effect, Matched, Metric
from advisor.model import Finding, Value
from advisor.render.escaping import printable

SCHEMA_VERSION = "1.0"

_WORDS = {
    "en": {
        "differs": "What else differs", "blocks": "blocks", "metric": "metric", "before": "before", "after": "after",
        "change": "change", "noise": "within noise", "accounts": "What accounts for it", "new": "New",
        "remaining": "Remaining", "resolved": "Resolved", "unjudged": "Can no longer be judged", "effects": "Remedies",
        "promised": "promised up to", "gained": "step gained", "gone": "gone", "appeared": "appeared",
        "kept": "worked", "partly": "worked in part", "unmoved": "not moved (not applied, or without effect)",
        "opposite": "moved the wrong way", "unmeasured": "cannot be judged", "none": "none", "of": "of",
    },
    "zh": {
        "differs": "其他差异", "blocks": "不可比", "metric": "指标", "before": "之前", "after": "之后",
        "change": "变化", "noise": "波动以内", "accounts": "变化的来源", "new": "新增",
        "remaining": "仍存在", "resolved": "已解决", "unjudged": "已无法判断", "effects": "优化措施",
        "promised": "承诺至多", "gained": "单步实际减少", "gone": "消失", "appeared": "出现",
        "kept": "有效", "partly": "部分有效", "unmoved": "未变化（未实施或无效）",
        "opposite": "反向变化", "unmeasured": "无法判断", "none": "无", "of": "/",
    },
}  # fmt: skip


def render_text(comparison: Comparison, lang: str = "en", **_: Any) -> str:
    """The comparison for a terminal."""
    return _joined(_text(comparison, _WORDS["zh" if lang == "zh" else "en"], lang))


def render_markdown(comparison: Comparison, lang: str = "en", **_: Any) -> str:
    """The comparison for a comment on a change."""
    return _joined(_markdown(comparison, _WORDS["zh" if lang == "zh" else "en"], lang))


def render_json(comparison: Comparison, lang: str = "en", **_: Any) -> str:
    """The comparison as a JSON document."""
    document = comparison_to_json(comparison)
    return shield_json(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)) + "\n"


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(printable(line) for line in lines) + "\n"


def _value(value: Value | None, unit: str) -> str:
    return "-" if value is None else show(value, unit)


def _change(metric: Metric, words: dict[str, str]) -> str:
    if metric.before is None or metric.after is None:
        return "-"
    if not metric.moved:
        return words["noise"]
    if metric.change is None:
        return _value(metric.after, metric.unit)
    return f"{100 * metric.change:+.1f} %"


def _rows(comparison: Comparison, words: dict[str, str]) -> list[tuple[str, str, str, str]]:
    return [(m.fact, _value(m.before, m.unit), _value(m.after, m.unit), _change(m, words)) for m in comparison.metrics]


def _obstacle_lines(comparison: Comparison, words: dict[str, str], lang: str) -> Iterator[str]:
    for o in comparison.obstacles:
        mark = f" [{words['blocks']}]" if o.blocks else ""
        yield f"{o.what}{mark}: {o.before} → {o.after} ({o.why.get(lang)})"


def _account_line(account: Account, words: dict[str, str]) -> str:
    if account.before is None:
        moved = f"{words['appeared']}, {show(account.after, 'us')}"
    elif account.after is None:
        moved = f"{words['gone']}, {show(account.before, 'us')}"
    else:
        moved = f"{show(account.before, 'us')} → {show(account.after, 'us')}"
    part = f"{words['of']} {_signed(account.part_change_us)} {account.part.removesuffix('_us')}"
    refers = f" [{', '.join(account.findings)}]" if account.findings else ""
    return f"{account.subject}: {_signed(account.change_us)} ({account.fact}: {moved}) {part}{refers}"


def _signed(us: float) -> str:
    return ("+" if us > 0 else "−") + show(abs(us), "us")


def _finding_line(match: Matched, lang: str) -> str:
    old, new = match.before, match.after
    finding = new or old
    assert finding is not None
    line = f"{finding.title.get(lang)} · {match.subject} ({match.verdict}, {finding.rule}"
    if old is not None and new is not None:
        line += f", {_pair(old.severity.value, new.severity.value)}"
        if old.saving is not None and new.saving is not None:
            line += f", {show(old.saving.us_per_step, 'us')} → {show(new.saving.us_per_step, 'us')}"
    else:
        line += f", {finding.severity.value}"
    return line + ")" + (f": {match.reason}" if match.reason else "")


def _pair(old: str, new: str) -> str:
    return old if old == new else f"{old} → {new}"


def _effect_line(effect: Effect, words: dict[str, str], lang: str) -> str:
    line = (
        f"{effect.finding.id} {effect.remedy.title.get(lang)}: {words[effect.outcome]}. "
        f"{effect.fact} {_value(effect.before, effect.unit)} → {_value(effect.after, effect.unit)} ({effect.expect})"
    )
    if effect.promised_us is not None:
        line += f"; {words['promised']} {show(effect.promised_us, 'us')}"
        if effect.gained_us is not None and effect.outcome in ("kept", "partly"):
            line += f", {words['gained']} {show(effect.gained_us, 'us')}"
    return line


def _sections(comparison: Comparison, words: dict[str, str], lang: str) -> Iterator[tuple[str, list[str]]]:
    yield words["differs"], list(_obstacle_lines(comparison, words, lang))
    yield words["accounts"], [_account_line(a, words) for a in comparison.accounts]
    for state in ("new", "remaining", "unjudged", "resolved"):
        yield words[state], [_finding_line(m, lang) for m in comparison.of(state)]
    yield words["effects"], [_effect_line(e, words, lang) for e in comparison.effects]


def _text(comparison: Comparison, words: dict[str, str], lang: str) -> Iterator[str]:
    yield comparison.headline.get(lang)
    yield f"{comparison.before.path} → {comparison.after.path}"
    rows = [(words["metric"], words["before"], words["after"], words["change"]), *_rows(comparison, words)]
    if len(rows) > 1:
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        yield ""
        for row in rows:
            cells = (row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3])
            yield "  ".join(cells).rstrip()
    for title, lines in _sections(comparison, words, lang):
        if lines:
            yield ""
            yield f"{title} ({len(lines)})"
            yield from (f"  {line}" for line in lines)


def _markdown(comparison: Comparison, words: dict[str, str], lang: str) -> Iterator[str]:
    yield f"**{_escape(comparison.headline.get(lang))}**"
    rows = _rows(comparison, words)
    if rows:
        yield ""
        yield f"| {words['metric']} | {words['before']} | {words['after']} | {words['change']} |"
        yield "|---|---:|---:|---:|"
        yield from (f"| `{row[0]}` | {row[1]} | {row[2]} | {row[3]} |" for row in rows)
    for title, lines in _sections(comparison, words, lang):
        if lines:
            yield ""
            yield f"### {title} ({len(lines)})"
            yield from (f"- {_escape(line)}" for line in lines)


def _escape(text: str) -> str:
    for letter in "\\`*_[]<>|#@":
        text = text.replace(letter, f"\\{letter}")
    return text


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Plain dictionaries and lists; numbers that are not finite become null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "before": comparison.before.path,
        "after": comparison.after.path,
        "comparable": comparison.comparable,
        "outcome": comparison.outcome,
        "headline": {"en": comparison.headline.en, "zh": comparison.headline.zh},
        "obstacles": [
            {
                "what": o.what, "before": o.before, "after": o.after, "blocks": o.blocks,
                "why": {"en": o.why.en, "zh": o.why.zh},
            }
            for o in comparison.obstacles
        ],
        "metrics": [
            {
                "fact": m.fact, "unit": m.unit, "before": _plain(m.before), "after": _plain(m.after),
                "change": _plain(m.change), "noise": _plain(m.noise), "moved": m.moved,
            }
            for m in comparison.metrics
        ],
        "findings": [
            {
                "state": m.state, "verdict": m.verdict, "subject": _subject(m.subject), "reason": m.reason,
                "before": _finding(m.before), "after": _finding(m.after),
            }
            for m in comparison.findings
        ],
        "effects": [
            {
                "finding": e.finding.id, "remedy": e.remedy.id, "fact": e.fact, "unit": e.unit, "expect": e.expect,
                "before": _plain(e.before), "after": _plain(e.after), "outcome": e.outcome,
                "promised_us_per_step": _plain(e.promised_us), "gained_us_per_step": _plain(e.gained_us),
            }
            for e in comparison.effects
        ],
        "accounts": [
            {
                "part": a.part, "part_change_us": _plain(a.part_change_us), "fact": a.fact,
                "subject": _subject(a.subject), "before": _plain(a.before), "after": _plain(a.after),
                "change_us": _plain(a.change_us), "findings": list(a.findings),
            }
            for a in comparison.accounts
        ],
    }  # fmt: skip


def _finding(finding: Finding | None) -> dict[str, Any] | None:
    if finding is None:
        return None
    return {
        "id": finding.id, "rule": finding.rule, "severity": finding.severity.value, "role": finding.role.value,
        "saving_us_per_step": _plain(finding.saving.us_per_step) if finding.saving else None,
    }  # fmt: skip


def _subject(subject: Any) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "ranks": list(subject.ranks)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
