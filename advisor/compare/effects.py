"""Findings on both sides, and whether remedies kept their promise."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.compare.absent import OPERATORS, is_gone, is_none, is_taken_over
from advisor.compare.facts import FactTable, key_of, number
from advisor.compare.metrics import KERNEL_TIME, MEASURED_KERNEL
from advisor.compare.model import Cause, Effect, Matched, Metric
from advisor.compare.sight import Sight
from advisor.engine.concluding.joint import is_promise
from advisor.knowledge.comparison import settings
from advisor.model import SUBJECT_KINDS, Direction, Finding, Remedy, Report, Role, Value

_OF_A_CALL = re.compile(r"average|mean|median|longest|ratio|per_s")
"""Facts about one call, of which those of a kind are no sum."""
_LIMIT = re.compile(r"^\s*(<=|>=|=|<|>|≤|≥)\s*(.+?)\s*$")


def causes(
    matched: Sequence[Matched], old: FactTable, new: FactTable, step: Metric, against_us: float
) -> Iterator[Cause]:
    """Who the step's change is attributed to: causes that came, went or grew, each with what it still gives once those
    above it are repaired, the largest first; after them, what the step loses for a reason that nobody has found. What
    was as large on the other side is not what changed. Parts of the step that moved `against_us` the other way are told
    of their own causes: those that moved it as it went account for as much more, and together for no more than that."""
    if step.before is None or step.after is None or not step.moved:
        return
    change = step.after - step.before
    sign = 1.0 if change > 0 else -1.0
    told = []
    for match in matched:
        lone = match.before is None or match.after is None
        unknown = match.reason and not (lone and match.state == "remaining")
        if unknown or _stayed(match, old, new):  # what was not judged on a side may have been there
            continue
        before, after = (_costs(found) for found in (match.before, match.after))
        if match.before is None and match.after is not None:
            after *= 1 - _there(match.after, new, old)
        elif match.after is None and match.before is not None:
            before *= 1 - _there(match.before, old, new)
        finding = match.after if match.after is not None and after >= before else match.before
        if finding is not None and after != before:
            told.append(Cause(match.state, finding, after - before))
    told.sort(key=lambda cause: (not _is_cause(cause.finding), -cause.finding.weight_us))
    least = settings().limits["account_share"] * abs(change)
    shown = list(_within([c for c in told if c.us * sign > 0], abs(change) + against_us, least))
    yield from shown
    if shown:
        yield from _within([c for c in told if c.us * sign < 0], against_us, least)


def _within(told: Sequence[Cause], left: float, least: float) -> Iterator[Cause]:
    """Causes in this order, with no more together than there is; those of less than the least are not told."""
    for cause in told:
        part = min(abs(cause.us), left)
        left -= part
        if part >= least and part:
            yield replace(cause, us=part if cause.us > 0 else -part)


def _stayed(match: Matched, old: FactTable, new: FactTable) -> bool:
    """Whether a cause is on both sides and what its remedies watch moved nowhere: then it costs more or less because
    what it is a part of grew or shrank."""
    if match.before is None or match.after is None:
        return False
    watched = {remedy.verify.fact for remedy in match.after.remedies if remedy.verify is not None}
    pairs = [(old.value(fact, match.after.subject), new.value(fact, match.after.subject)) for fact in watched]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return bool(known) and all(a == b or _alike(a, b) for a, b in known)


def _is_cause(finding: Finding) -> bool:
    return is_promise(finding) or finding.role == Role.ROOT_CAUSE


def _costs(finding: Finding | None) -> float:
    """What the step is longer by for this cause, once those above it are repaired, or what it loses there where nobody
    knows what a remedy gives; nothing for symptoms."""
    if finding is None or not (_is_cause(finding) or (finding.at_stake is not None and finding.role != Role.SYMPTOM)):
        return 0.0
    after = finding.saving.after_others_us if finding.saving is not None else None
    return finding.weight_us if after is None else after


def _there(finding: Finding, own: FactTable, other: FactTable) -> float:
    """The part of what the finding measured that was there on the other side as well: a cause that crosses a limit by a
    little has changed by a little. Of its measures the one that tells what it costs; where none does, what its remedies
    watch: products that are no longer in float32 are as large a part of the kernels as before."""
    told = finding.saving or finding.at_stake
    costs = {"_us": told.us, "_share": told.share} if told is not None else {}
    found = [
        (abs(value / cost - 1), (other.number(evidence.fact, evidence.subject) or 0.0) / value)
        for evidence in finding.evidence for ending, cost in costs.items()
        if evidence.fact.endswith(ending) and cost and (value := number(evidence.value))
    ]  # fmt: skip
    if found and min(found)[0] > settings().limits["tells_cost"]:
        facts = {remedy.verify.fact for remedy in finding.remedies if remedy.verify and remedy.verify.expect == "falls"}
        pairs = [(own.number(fact, finding.subject), other.number(fact, finding.subject)) for fact in facts]
        watched = [after / before for before, after in pairs if before and after is not None]
        if watched:
            return min(max(max(watched), 0.0), 1.0)
    return min(max(min(found)[1], 0.0), 1.0) if found else 0.0


def effects(
    before: Report, seen: Sight, units: dict[str, str], step: Metric | None, shown: Sequence[Metric] = ()
) -> Iterator[Effect]:
    """For each remedy that names a fact to watch: before, after, and the outcome. `step` is None where step times
    may not be compared: then only facts that are no times are judged by themselves, and no gain is stated. Where tables
    are lost, a fault of the collection that no longer shows is not repaired. What is `shown` as within noise did not go
    the wrong way."""
    still = {(metric.fact, metric.before, metric.after) for metric in shown if not metric.moved}
    blind = {"kept": "unmeasured"} if seen.lost else {}

    def outcome(effect: Effect) -> str:
        if effect.finding.direction == Direction.EVIDENCE:
            return blind.get(effect.outcome, effect.outcome)
        astray = effect.outcome == "opposite" and (effect.fact, effect.before, effect.after) in still
        return "unmoved" if astray else effect.outcome

    told = (
        _effect(finding, remedy, seen.old, seen.new, units, step)
        for finding in before.findings
        for remedy in finding.remedies
        if remedy.verify is not None
    )
    yield from _shared([replace(effect, outcome=outcome(effect)) for effect in told], step)


def _effect(
    finding: Finding, remedy: Remedy, old: FactTable, new: FactTable, units: dict[str, str], step: Metric | None
) -> Effect:
    assert remedy.verify is not None
    name, expect = _own(remedy.verify.fact, finding.subject.kind, units), remedy.verify.expect
    name = _known(_timed(name, finding, old, new), finding, old, new)
    unit = units.get(name, "")
    a, b = old.value(name, finding.subject), _after(name, finding, old, new, step is not None)
    if step is None and finding.direction != Direction.EVIDENCE:
        return Effect(finding, remedy, name, unit, expect, a, b, "unmeasured")
    outcome = judge_expectation(expect, a, b, _noise(unit, step))
    if outcome == "kept" and finding.subject.kind in OPERATORS and is_taken_over(name, finding.subject.kind, old, new):
        outcome = "unmeasured"  # what is less here goes on elsewhere
    if outcome == "unmoved" and judge_expectation(expect, a, b, settings().limits["fact_noise"]) != "unmoved":
        outcome = "unsure"
    if outcome == "kept" and finding.direction != Direction.EVIDENCE:
        outcome = {True: "kept", False: "not_applied", None: "moved"}[_applied(remedy.id, finding, old, new)]
    promised = finding.saving.us if finding.saving is not None else None
    return Effect(finding, remedy, name, unit, expect, a, b, outcome, promised)


def _applied(remedy: str, finding: Finding, old: FactTable, new: FactTable) -> bool | None:
    """Whether the profiles show that the remedy was applied; None where nothing that is recorded could."""
    signs = settings().signs.get(remedy, ())
    pairs = [(old.value(name, finding.subject), _after(name, finding, old, new, True)) for name in signs]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return None
    return any(a != b and not _alike(a, b) for a, b in known)


def _alike(before: Value, after: Value) -> bool:
    a, b = number(before), number(after)
    return a is not None and b is not None and abs(b - a) <= settings().limits["least_change"] * max(abs(a), abs(b))


def _shared(found: list[Effect], step: Metric | None) -> Iterator[Effect]:
    """The effects with their parts of what the step gained: of remedies that were applied, one of each finding, by what
    was promised. A gain that stays under half of what was promised is a part of it."""
    gained = None
    alone = (MEASURED_KERNEL, KERNEL_TIME)
    if step is not None and step.fact not in alone and step.before is not None and step.after is not None:
        gained = step.before - step.after  # what kernels gained is no part of what is lost between them
    credited: dict[str, Effect] = {}
    for effect in found:
        if effect.outcome == "kept" and effect.finding.direction != Direction.EVIDENCE:
            credited.setdefault(effect.finding.id, effect)
    promised = sum(effect.promised_us or 0.0 for effect in credited.values())
    for effect in found:
        if credited.get(effect.finding.id) is not effect or gained is None or gained <= 0:
            yield effect
            continue
        part = gained * (effect.promised_us or 0.0) / promised if promised > 0 else gained / len(credited)
        part = min(part, max(effect.promised_us or 0.0, _fell(effect)))
        few = effect.promised_us and part < settings().limits["kept_promise"] * effect.promised_us
        yield replace(effect, gained_us=part, outcome="partly" if few else effect.outcome)


def _fell(effect: Effect) -> float:
    """Microseconds per step by which the time that a remedy watches fell, which bounds what it gave where that is more
    than was promised; without end where it watches no such time."""
    before, after = number(effect.before), number(effect.after)
    if effect.unit != "us" or _OF_A_CALL.search(effect.fact) or before is None or after is None:
        return math.inf
    return before - after


def _own(name: str, kind: str, units: dict[str, str]) -> str:
    """A remedy serves several kinds of subject: operator.time_us of an operator type is operator_type.time_us."""
    prefix, _, rest = name.partition(".")
    own = f"{kind}.{rest}"
    return own if prefix != kind and prefix in SUBJECT_KINDS and prefix != "run" and own in units else name


def _timed(name: str, finding: Finding, old: FactTable, new: FactTable) -> str:
    """The time that is told as a share of the step, where both sides know it: in a shorter step all that stayed is a
    larger share."""
    time = name.removesuffix("_share") + "_us"
    known = name.endswith("_share") and None not in (old.value(time, finding.subject), new.value(time, finding.subject))
    return time if known else name


def _known(name: str, finding: Finding, old: FactTable, new: FactTable) -> str:
    """The fact, or where neither side measured it the time of the operator that the finding is about: what a
    conversion costs shows in the one that converts. Else the same of another witness, on which the finding rests."""
    kind = finding.subject.kind
    if any(side.value(name, finding.subject) is not None for side in (old, new)):
        return name
    times = f"{kind}.time_us"
    if kind in OPERATORS and name.endswith("_us") and any(key_of(finding.subject) in t.of(times) for t in (old, new)):
        return times
    what = name.partition(".")[2]
    return next((found.fact for found in finding.evidence if found.fact.partition(".")[2] == what), name)


def _after(name: str, finding: Finding, old: FactTable, new: FactTable, comparable: bool) -> Value | None:
    """The fact afterwards. A subject that had time and is gone where the others of its kind were measured takes
    none any more: a removed operator, a collective that no longer happens. How long a call of it takes is not told by
    one that is not called; nor has work gone where others that were not there before take as long as those that went.
    A run of another kind may name it otherwise.
    """
    before, after, key = old.of(name), new.of(name), key_of(finding.subject)
    if not comparable or key not in before or key in after:
        return new.value(name, finding.subject)
    if number(before[key].value) is None or _OF_A_CALL.search(name):
        return None
    if is_none(name, new, old) or is_gone(finding.subject, old, new):
        return 0.0
    siblings = any(kind == key[0] for kind, _ in after)
    return 0.0 if siblings and not is_taken_over(name, key[0], old, new) else None


def _noise(unit: str, step: Metric | None) -> float:
    """Relative change of a fact below which it has not moved."""
    least = settings().limits["fact_noise"]
    if step is None or unit != "us":
        return least
    whole = max(step.before or 0.0, step.after or 0.0)
    return max(least, step.noise, step.floor / whole if whole > 0 else 0.0)


def judge_expectation(expect: str, before: Value | None, after: Value | None, noise: float) -> str:
    """kept, unmoved, opposite or unmeasured: did the value go where it was expected? `expect` is "falls", "rises",
    or a limit such as "= 0", "< 0.1", "= Level1", "= false", "= CPU, NPU"."""
    if after is None:
        return "unmeasured"
    limit = _LIMIT.match(expect)
    if limit:
        return "kept" if _meets(limit.group(1), limit.group(2), after) else "unmoved"
    if isinstance(before, tuple) and isinstance(after, tuple):
        before, after = float(len(before)), float(len(after))
    a, b = number(before), number(after)
    if a is None or b is None:
        return "unmeasured"
    if abs(b - a) <= noise * max(abs(a), abs(b)):
        return "unmoved"
    return "kept" if (b < a) == expect.strip().lower().startswith("fall") else "opposite"


def _meets(op: str, text: str, value: Value) -> bool:
    wanted = _plain(text)
    if op == "=" and isinstance(value, tuple):
        return sorted(map(str, value)) == sorted(text.split(", "))
    if op == "=":
        return value == wanted or str(value).lower() == text.lower()
    a, b = number(value), number(wanted)
    if a is None or b is None:
        return False
    return {"<": a < b, ">": a > b, "<=": a <= b, "≤": a <= b, ">=": a >= b, "≥": a >= b}[op]


def _plain(text: str) -> Value:
    if text.endswith("%"):
        try:
            return float(text[:-1]) / 100
        except ValueError:
            return text
    try:
        return float(text)
    except ValueError:
        return text
