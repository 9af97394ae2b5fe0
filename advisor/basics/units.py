"""Units of facts and how people read them."""

from __future__ import annotations

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

_TIME = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def significant(number: float, digits: int = 3) -> str:
    """`number` with no more digits than evidence carries: 3 significant ones, no exponent."""
    if number == 0:
        return "0"
    magnitude = abs(number)
    if magnitude >= 100:
        return f"{number:.0f}"
    text = f"{number:.{digits}g}"
    return f"{float(text):.6f}".rstrip("0").rstrip(".") if "e" in text else text


def _scaled(value: float, scale: tuple[tuple[float, str], ...], suffix: str = "") -> str:
    for size, name in scale:
        if abs(value) >= size:
            return f"{significant(value / size)} {name}{suffix}".rstrip()
    size, name = scale[-1]
    return f"{significant(value / size)} {name}{suffix}".rstrip()


def show(value: object, unit: str) -> str:
    """A value in the units people use: `show(1500.0, "us")` is "1.5 ms", `show(0.25, "ratio")` is "25 %"."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ", ".join(show(item, "number") for item in value) or "[]"
    if not isinstance(value, (int, float)):
        return str(value)
    if unit == "ratio":
        return f"{significant(100 * value)} %"
    if unit == "us":
        return _scaled(value, _TIME)
    if unit == "bytes":
        return _scaled(value, _BYTES)
    if unit == "bytes_per_s":
        return _scaled(value, _BYTES, "/s")
    if unit == "per_s":
        return f"{significant(value)} /s"
    if unit == "percent_of_core":
        return f"{significant(value)} %"
    if unit == "flop":
        return _scaled(value, _LARGE, "FLOP")
    if unit == "flop_per_s":
        return _scaled(value, _LARGE, "FLOP/s")
    if unit == "mhz":
        return f"{significant(value)} MHz"
    return significant(float(value)) if isinstance(value, float) else str(value)


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
