"""Calls of a type on the AI CPU, and which data types put them there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from advisor.facts.operators.kinds import AICPU_CORES, SLOW_DTYPES, dtypes, is_aicpu
from advisor.facts.operators.longest import LongCall
from advisor.facts.operators.types.cases import Case
from advisor.sources.streams.kernels import Signature

_LEADING = (("input", 0), ("output", 0))
"""Where data stand; further inputs may be indices, which are 64 bits wide on every core."""
_UNTOLD = ("", "N/A", "UNDEFINED")
_Place = tuple[str, int]


class OnAicpu(Struct, frozen=True):
    """Calls that ran on the AI CPU: their time over the profile, why, and the longest of each step."""

    us: float = 0.0
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Data type that the cores do not compute -> one that they do; in the order of their frequency."""
    longest: tuple[LongCall, ...] = ()


def on_aicpu(cases: Sequence[Case]) -> OnAicpu:
    """Of all cases of a type. Those on a core acquit the data types that they have in the same place; where there are
    none, kernels of the cores for the types of the data are rare."""
    mine = [case for case in cases if is_aicpu(case.signature)]
    on_cores: dict[_Place, Counter[str]] = defaultdict(Counter)
    for case in cases:
        if case.signature.core and case.signature.core.upper() not in AICPU_CORES:
            for place, kind in _places(case.signature):
                on_cores[place][kind] += case.calls
    slow: Counter[str] = Counter()
    instead: dict[str, str] = {}
    for case in mine:
        for place, kind in _places(case.signature):
            known = on_cores.get(place, Counter())
            if (known and kind not in known) or (not on_cores and kind in SLOW_DTYPES and place in _LEADING):
                instead.setdefault(kind, SLOW_DTYPES.get(kind) or known.most_common(1)[0][0])
                slow[kind] += case.calls
    return OnAicpu(sum(case.us for case in mine), {kind: instead[kind] for kind, _ in slow.most_common()})


def _places(signature: Signature) -> Iterator[tuple[_Place, str]]:
    for name, text in (("input", signature.input_dtypes), ("output", signature.output_dtypes)):
        yield from (((name, index), kind) for index, kind in enumerate(dtypes(text)) if kind not in _UNTOLD)
