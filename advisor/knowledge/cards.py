"""What cards can compute and move at most (knowledge_base/cards.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from advisor.knowledge.statements import document

KINDS = {
    "FLOAT16": "half", "HALF": "half", "BF16": "half", "BFLOAT16": "half", "FLOAT": "single", "FLOAT32": "single",
    "INT8": "int8",
}  # fmt: skip
"""Data type -> how the peaks are listed."""


@lru_cache(maxsize=1)
def _known() -> dict[str, Any]:
    return dict(document("cards.yaml"))


def _card(name: str) -> Mapping[str, Any]:
    known = {one.lower(): entry for one, entry in _known()["cards"].items()}
    return dict(known.get(name.replace(" ", "").lower(), {}))


def peaks(card: str) -> Mapping[str, float]:
    """half, single, int8 -> operations per second of the card of this name; empty where its variant is not known."""
    found = _card(card)
    return {kind: float(found[kind]) for kind in sorted({*KINDS.values()} & {*found})}


def least_peak(card: str, kind: str) -> float:
    """Operations per second of the card of this name; of the slowest that is listed where its variant is not known. 0
    where no card tells this kind."""
    told = (entry[kind] for entry in _known()["cards"].values() if kind in entry)
    return float(peaks(card).get(kind) or min(told, default=0.0))


def bandwidth(card: str) -> float:
    """Bytes per second of the device memory of the card of this name; those of the slowest that trains where its
    variant is not known, so that nobody is told to be faster than his card may be."""
    return float(_card(card).get("bytes_per_s", _known()["memory"]["value"]))


def rated_mhz(card: str) -> float | None:
    """The clock that the cube cores of the card of this name are rated at; None where that is not known."""
    told = _card(card).get("mhz")
    return None if told is None else float(told)


def rated_between() -> tuple[float, float]:
    """Lowest and highest clock, MHz, that cards are rated at which count what their vector cores compute by
    themselves."""
    apart = _known()["apart"]
    return float(apart["least_mhz"]["value"]), float(apart["most_mhz"]["value"])


def cube_cores() -> tuple[int, ...]:
    """How many cube cores those cards may have."""
    return tuple(int(count) for count in _known()["cube_cores"]["values"])


def peaks_of_cores(cores: int, mhz: float) -> Mapping[str, float]:
    """The same of so many cube cores at this clock; empty where either is not told."""
    if cores <= 0 or mhz <= 0:
        return {}
    return {kind: float(entry["value"]) * cores * mhz * 1e6 for kind, entry in _known()["cycle"].items()}
