"""What a finding rests on, in people's words: what was measured against its limit, and what points to this cause.

A rule states the failing condition. A quantity above its limit is the symptom; everything else that had to hold tells
this cause from others. It held, so it is said as it is, never turned round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.basics.units import EXACT, NBSP, show, show_apart
from advisor.knowledge.fact_titles import fact_title
from advisor.knowledge.values import say_value
from advisor.knowledge.words import word
from advisor.model import Evidence
from advisor.render.wording import where

_CLAUSE = re.compile(
    r"^(?:(?P<what>.+?) = (?P<value>\S.*?) )?(?P<op><=|>=|==|!=|<|>|≤|≥) ?(?P<limit>.+?)(?: \((?P<origin>.*)\))?$"
)
_NUMBER = re.compile(r"^-?\d+(\.\d+)?([eE][-+]?\d+)?$")
_NAME = re.compile(r"^(?:not )?\w+$")
"""A name of the rule's own: what stands behind it is evidence by itself."""
_VALUE = re.compile(r"^[^()\[\]_]*$")
_SAID = {
    "<": "below", "<=": "at_most", "≤": "at_most", ">": "above", ">=": "at_least", "≥": "at_least",
    "==": "equal", "!=": "not_equal",
}  # fmt: skip
_COUNTED = ("count", "number", "text", "bool", "list")
"""Units of what is no quantity with a limit: how many there must be, which one it is."""


@dataclass(frozen=True)
class Rest:
    """The evidence of a finding in three groups."""

    symptoms: tuple[Evidence, ...]
    """Quantities beyond their limit."""
    grounds: tuple[Evidence, ...]
    """What else held: it points to this cause, and rules others out."""
    context: tuple[Evidence, ...]
    """Measured without a condition."""


def grouped(evidence: Sequence[Evidence]) -> Rest:
    """The evidence by what it shows. Where no quantity is above a limit, one that is below its limit is the symptom."""
    symptoms = [item for item in evidence if _is_symptom(item, (">", ">=", "≥"))]
    symptoms = symptoms or [item for item in evidence if _is_symptom(item, ("<", "<=", "≤"))][:1]
    rest = [item for item in evidence if item not in symptoms]
    return Rest(tuple(symptoms), tuple(i for i in rest if i.condition), tuple(i for i in rest if not i.condition))


def _is_symptom(item: Evidence, signs: tuple[str, ...]) -> bool:
    if item.unit in _COUNTED or isinstance(item.value, (bool, str, tuple)):
        return False
    return any(match["op"] in signs and not match["what"] for match in _matches(item.condition))


def _matches(condition: str) -> list[re.Match[str]]:
    return [match for clause in _clauses(condition) if (match := _CLAUSE.match(clause))]


def _is_own_limit(match: re.Match[str]) -> bool:
    """Whether the clause holds the fact itself against a number in its own unit."""
    return not match["what"] and bool(_NUMBER.match(match["limit"]))


def _own_limits(condition: str, sign: str = "") -> list[float]:
    """The numbers that the fact itself is held against, in its own unit; only those it must be above (>) or below."""
    own = [match for match in _matches(condition) if _is_own_limit(match)]
    return [float(match["limit"]) for match in own if match["op"].startswith(sign)]


def limit_of(item: Evidence) -> float | None:
    """The number that the value was held against, in the fact's own unit."""
    return next(iter(_own_limits(item.condition)), None)


def telling(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Measured quantities against a limit first, then what points to the cause, then what only gives the context."""
    rest = grouped(evidence)
    return [*rest.symptoms, *rest.grounds, *rest.context]


def measured(item: Evidence, lang: str) -> str:
    """The value in the units people use."""
    value = item.value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and item.unit not in _COUNTED:
        near = min(_own_limits(item.condition), key=lambda limit: abs(limit - value), default=None)
        if near is not None:
            return show_apart(value, near, item.unit)[0]
    return say_value(value, item.unit, lang, item.fact)


def standing(item: Evidence, lang: str, *, symptom: bool = False) -> str:
    """What stands behind the value: the limit of a symptom, else how the value stood to what was asked: "below 5 ms".
    Empty where the value says it all."""
    if isinstance(item.value, bool):
        return ""
    said = []
    for clause in _clauses(item.condition):
        match = _CLAUSE.match(clause)
        if match is None:
            said += [clause] if _VALUE.match(clause) and not _NAME.match(clause) else []
            continue
        if not _is_looser(match, item.condition) and (text := _said(item, match, lang, symptom)):
            said.append(text)
    return word(lang, "conditions.and").join(dict.fromkeys(said))


def _is_looser(match: re.Match[str], condition: str) -> bool:
    """Whether another clause holds the same fact against a limit that is harder to pass."""
    if not _is_own_limit(match) or match["op"] in ("==", "!="):
        return False
    limits = _own_limits(condition, match["op"][0])
    hardest = max(limits) if match["op"][0] in ">≥" else min(limits)
    return float(match["limit"]) != hardest


def _said(item: Evidence, match: re.Match[str], lang: str, symptom: bool) -> str:
    own = not match["what"]
    limit = match["limit"]
    if _is_own_limit(match) and isinstance(item.value, (int, float)):
        if match["origin"]:  # computed by the rule: with as many digits as tell it from the value
            limit = show_apart(item.value, float(limit), item.unit)[1]
        else:
            limit = show(float(limit), item.unit, EXACT)
    if not _VALUE.match(limit) or (match["op"] in ("==", "!=") and isinstance(item.value, str)):
        return ""  # a word says itself, and with that what it is not
    if symptom and own and match["op"] not in ("==", "!="):
        return word(lang, "conditions.limit", limit=_about(limit, lang))
    if not own and match["value"].replace(NBSP, " ") != show(item.value, item.unit).replace(NBSP, " "):
        return ""  # a quantity without a name of its own: the JSON's condition has it, and `explain`
    return word(lang, f"conditions.{_SAID[match['op']]}", limit=_about(limit, lang))


def _about(number: str, lang: str) -> str:
    """ "about 2" for what conditions write as ≈ 2."""
    return word(lang, "values.about", count=number[2:]) if number.startswith("≈") else number


def _clauses(condition: str) -> list[str]:
    """Parts between commas that stand in no parentheses or brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(condition):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append(condition[start:index].strip())
            start = index + 1
    return [part for part in (*parts, condition[start:].strip()) if part]


def titled(item: Evidence, evidence: Sequence[Evidence], lang: str) -> str:
    """`line` behind the title of the fact: "idle share of the step: 21 % (limit 3 %)"."""
    return word(lang, "conditions.titled", title=fact_title(item.fact, lang), line=line(item, evidence, lang))


def line(item: Evidence, evidence: Sequence[Evidence], lang: str) -> str:
    """The value and what stands behind it: "21.4 % (limit 3 %)"; `evidence` is all that the finding rests on, and where
    the same is told of others there, whose it is: "21.4 %, rank 3 (limit 3 %)"."""
    text = standing(item, lang, symptom=item in grouped(evidence).symptoms)
    value = measured(item, lang)
    if any(other.fact == item.fact and other.subject != item.subject for other in evidence):
        value = word(lang, "conditions.of", value=value, subject=where(item.subject, lang))
    return word(lang, "conditions.line", value=value, standing=text) if text else value
