"""Units of facts and how people read them: the only place that knows how a number is written.

Two significant digits unless more is known (`MEASURED`) or was written by somebody (`EXACT`); counts are whole; number
and unit are never torn apart. Words for values (yes, about 3, what a late rank does) are `knowledge/values`.
"""

from __future__ import annotations

import re

UNITS = {
    "ratio": "a share or ratio, 0.1 is shown as 10 %",
    "us": "microseconds",
    "count": "a number of things",
    "bytes": "bytes",
    "bytes_per_s": "bytes per second",
    "per_s": "events per second",
    "percent_of_core": "processor use, 100 is one core",
    "flop": "floating-point operations",
    "flop_per_s": "floating-point operations per second",
    "mhz": "megahertz",
    "text": "a word",
    "bool": "true or false",
    "list": "a list of words or numbers",
    "number": "a plain number",
}

WHOLE = re.compile("[0-9]{1,18}")
"""A number that a counter may reach."""


def whole(text: str) -> int | None:
    """The number that a name of digits is, as those of steps are; None of any other name, and of more digits than a
    counter has: Python refuses thousands of them."""
    return int(text) if WHOLE.fullmatch(text) else None


DIGITS = 2
"""Significant digits of what is estimated, divided or told in passing."""
MEASURED = 3
"""Significant digits of what was measured directly and is compared: the time of a step, bytes, clocks."""
EXACT = 6
"""Significant digits of what somebody wrote: thresholds, budgets, parameters."""
NANOSECONDS = 3
"""Digits of a microsecond that profilers tell; what is left of a difference beyond is no time."""
NBSP = "\u00a0"
"""Between a number and its unit."""

_OWN_DIGITS = {"bytes": MEASURED, "mhz": 4}
_TIME = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_LEAST = {"ratio": 0.001, "us": 0.1}
"""What is smaller is told as smaller than this."""
_ROUNDING = 0.01
"""Part of a count by which the mean of several may differ from a whole number and still be told as one."""
_TIMES = 10.0
"""From here on a ratio is read more easily as a multiple than in percent."""
_NEAR_ONE = (0.95, 1.1)
"""Factors that tell by how much they are off one: with a digit more, as 1.045 times as long is not as long."""
_NEARLY_ALL = (0.995, 0.9995)
"""Shares that would round to a whole although something is left of it."""


def significant(number: float, digits: int = DIGITS) -> str:
    """`number` with so many significant digits, no exponent and no zeros that tell nothing."""
    text = f"{float(f'{number:.{digits}g}'):.9f}"
    return text.rstrip("0").rstrip(".") if float(text) else "0"


def _scaled(value: float, scale: tuple[tuple[float, str], ...], digits: int, suffix: str = "") -> str:
    value = float(f"{value:.{digits}g}")
    size, name = next(((size, name) for size, name in scale if abs(value) >= size), scale[-1])
    return f"{significant(value / size, digits)}{NBSP}{name}{suffix}".rstrip()


_LOOSE = re.compile(r"(?<=\d) (?=(?:%|ms|µs|s|[kMG]?B(?:/s)?|MHz)(?![A-Za-z]))")


def tied(text: str) -> str:
    """The text with no-break spaces between its numbers and their units."""
    return _LOOSE.sub(NBSP, text)


def is_whole(value: float) -> bool:
    """A count that is one, not the mean of several."""
    return abs(value - round(value)) <= _ROUNDING * abs(value)


def show(value: object, unit: str, digits: int | None = None) -> str:
    """A value in the units people use: `show(1500.0, "us")` is "1.5 ms", `show(0.25, "ratio")` is "25 %".

    `digits`: significant ones, where they are not those of the unit.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ", ".join(show(item, "number", digits) for item in value) or "–"
    if not isinstance(value, (int, float)):
        return str(value)
    text = _number(float(value) if unit != "number" else value, unit, digits or _OWN_DIGITS.get(unit, DIGITS))
    return text.replace("-", "−")


def _number(value: float, unit: str, digits: int) -> str:
    least = _LEAST.get(unit, 0.0)
    if 0 < abs(value) < least and digits < EXACT:
        return f"{'<' if value > 0 else '>'}{NBSP}{_number(least if value > 0 else -least, unit, digits)}"
    if unit == "ratio":
        if digits == DIGITS and _NEARLY_ALL[0] <= value < _NEARLY_ALL[1]:
            return f">{NBSP}99{NBSP}%"
        if abs(value) >= _TIMES:
            return f"{significant(value, digits)}{NBSP}×"
        return f"{significant(100 * value, digits)}{NBSP}%"
    if unit == "us":
        return _scaled(value, _TIME, digits)
    if unit == "count":
        return f"{value:.0f}" if is_whole(value) else f"≈{NBSP}{round(value) or significant(value, 1)}"
    if unit == "bytes":
        return _scaled(value, _BYTES, digits)
    if unit == "bytes_per_s":
        return _scaled(value, _BYTES, digits, "/s")
    if unit == "per_s":
        return f"{significant(value, digits)}{NBSP}/s"
    if unit == "percent_of_core":
        return f"{significant(value, digits)}{NBSP}%"
    if unit == "flop":
        return _scaled(value, _LARGE, digits, "FLOP")
    if unit == "flop_per_s":
        return _scaled(value, _LARGE, digits, "FLOP/s")
    if unit == "mhz":
        return f"{significant(value, digits)}{NBSP}MHz"
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:.0f}"
    return significant(value, digits + (digits == DIGITS and _NEAR_ONE[0] <= value < _NEAR_ONE[1]))


def signed(value: float, unit: str) -> str:
    """A difference with its sign: "+1.2 ms", "−4.3 %"; one that is many times what was there as how many times as much
    it is now, "× 12"."""
    if unit == "ratio" and value >= _TIMES:
        return f"×{NBSP}{significant(value + 1)}"
    size = show(abs(value), unit, DIGITS)
    if size.startswith(">"):
        size = show(abs(value), unit, MEASURED)
    return size if size.startswith("<") else ("+" if value > 0 else "−" if value < 0 else "") + size


def show_apart(first: float, second: float, unit: str, digits: int | None = None) -> tuple[str, str]:
    """Two values that differ, with as many digits as it takes to see that they do: a value and its limit, a metric
    before and after. Those that no digits tell apart take no more than usual."""
    least = digits or _OWN_DIGITS.get(unit, DIGITS)
    for some in range(least, EXACT + 1):
        told = show(first, unit, some), show(second, unit, some)
        if told[0] != told[1]:
            return told
    return show(first, unit, least), show(second, unit, least)


def rank_list(ranks: tuple[int, ...], limit: int = 6) -> str:
    """Runs of ranks in short: "0-7, 12"; at most `limit` runs, then how many there are in all."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    shown = [f"{a}-{b}" if b > a else f"{a}" for a, b in runs[:limit]]
    return ", ".join(shown) + (f", … ({len(set(ranks))})" if len(runs) > limit else "")
