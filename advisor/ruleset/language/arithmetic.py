"""Arithmetic on values that may be unknown (None). Total: no input raises, nothing non-finite comes out."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Sequence
from typing import Any

MAD_TO_SIGMA = 1.4826
"""Turns a median absolute deviation into the standard deviation of a normal distribution."""

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_ROUNDING = 1e-9
"""Part of a number that sums and quotients of what files hold may be off: nearer numbers are one number."""


def number(value: Any) -> float | None:
    """The value as a finite float; truth values, texts and lists are no numbers."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        converted = float(value)
    except OverflowError:
        return None
    return converted if math.isfinite(converted) else None


def normal(value: Any) -> Any:
    """A measured value as expressions see it: numbers are finite floats, lists are tuples of such values."""
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return tuple(normal(item) for item in value)
    return number(value)


def calculate(op: str, left: Any, right: Any) -> float | None:
    """left op right, for + - * /; division by zero is unknown."""
    a, b = number(left), number(right)
    if a is None or b is None:
        return None
    if op == "/":
        return number(a / b) if b else None
    return number(a + b if op == "+" else a - b if op == "-" else a * b)


def compare(op: str, left: Any, right: Any) -> bool | None:
    """left op right. Order is one of numbers; values of different types are neither equal nor different: unknown."""
    if type(left) is float and type(right) is float and op in _ORDER:
        return _in_order(op, left, right)
    if left is None or right is None:
        return None
    if op in ("in", "not in"):
        if not isinstance(right, tuple):
            return None
        found = [compare("==", left, item) for item in right]
        inside = True if True in found else None if None in found else False
        return inside if op == "in" or inside is None else not inside
    a, b = number(left), number(right)
    if op in _ORDER:
        return None if a is None or b is None else _in_order(op, a, b)
    if a is not None and b is not None:
        return (a == b) is (op == "==")
    if type(left) is not type(right):
        return None
    return (left == right) is (op == "==")


def _in_order(op: str, left: float, right: float) -> bool:
    """left op right; what only rounding tells apart stands exactly at its limit."""
    if left != right and abs(left - right) <= _ROUNDING * max(abs(left), abs(right)):
        return op in ("<=", ">=")
    return _ORDER[op](left, right)


def exact_limit(op: str, limit: float) -> float:
    """The number with which an exact `left op number` says what `left op limit` does here, for who compares exactly."""
    if op not in _ORDER or limit == 0:
        return limit
    below = op in (">=", "<")  # the least number that stands at the limit parts these two, the greatest the others
    inner, outer = (">=", -math.inf) if below else ("<=", math.inf)
    found = limit * (1 - _ROUNDING) if below is (limit > 0) else limit / (1 - _ROUNDING)
    if not math.isfinite(found):  # no number lies beyond it
        return limit
    while not _in_order(inner, found, limit):
        found = math.nextafter(found, -outer)
    while math.isfinite(further := math.nextafter(found, outer)) and _in_order(inner, further, limit):
        found = further
    return found


def both(values: Sequence[bool | None]) -> bool | None:
    """And: false where one is false, unknown where one is unknown, else true."""
    return False if False in values else None if None in values else True


def either(values: Sequence[bool | None]) -> bool | None:
    """Or: true where one is true, unknown where one is unknown, else false."""
    return True if True in values else None if None in values else False


def scalar(function: str, values: Sequence[Any]) -> float | None:
    """min, max, abs, ceil, floor, round, sqrt; unknown where an argument is."""
    numbers = [number(value) for value in values]
    known = [value for value in numbers if value is not None]
    if not known or len(known) < len(numbers):
        return None
    first = known[0]
    if function in ("min", "max"):
        return min(known) if function == "min" else max(known)
    if function == "sqrt":
        return math.sqrt(first) if first >= 0 else None
    simple: dict[str, Callable[[float], float]] = {"abs": abs, "ceil": math.ceil, "floor": math.floor}
    return float(simple[function](first)) if function in simple else float(math.floor(first + 0.5))


def summary(function: str, values: Sequence[float]) -> float | None:
    """median, mean, sum, lowest, highest, spread, mad (median absolute deviation) of finite numbers."""
    if not values:
        return None
    if function == "median":
        return number(statistics.median(values))
    if function == "mean":
        return number(math.fsum(values) / len(values))
    if function == "sum":
        return number(math.fsum(values))
    if function == "lowest":
        return min(values)
    if function == "highest":
        return max(values)
    if function == "spread":
        return calculate("/", max(values) - min(values), summary("mean", values))
    middle = statistics.median(values)
    return number(statistics.median([abs(value - middle) for value in values]))


def peer(function: str, own: Any, values: Sequence[float], stat: Callable[[str], float | None]) -> float | None:
    """ratio_to_median, share_of_sum, deviation of one subject among its peers."""
    if function == "ratio_to_median":
        return calculate("/", own, stat("median"))
    if function == "share_of_sum":
        return calculate("/", own, stat("sum"))
    if len(values) < 3:
        return None
    return calculate("/", calculate("-", own, stat("median")), calculate("*", MAD_TO_SIGMA, stat("mad")))
