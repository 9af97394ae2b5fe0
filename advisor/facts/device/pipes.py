"""Which units of the cores were busy, by the counters of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.sources.streams.kernel_blocks import PIPES
from advisor.sources.streams.kernels import Kernels

PIPE_NAMES = {
    "mac_ratio": "cube", "scalar_ratio": "scalar", "mte1_ratio": "memory (L1 to L0)", "mte2_ratio": "memory (read)",
    "fixpipe_ratio": "memory (write)", "vec_ratio": "vector", "aiv_scalar_ratio": "scalar",
    "aiv_mte2_ratio": "memory (read)", "aiv_mte3_ratio": "memory (write)",
}  # fmt: skip

_CUBE = ("mac_ratio", "mte2_ratio", "mte1_ratio", "fixpipe_ratio", "scalar_ratio")
_VECTOR = ("vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "aiv_scalar_ratio")
"""Units of the two kinds of cores: what computes, what reads, the rest."""


def busiest_pipe(kernels: Kernels, members: Sequence[int]) -> tuple[str, float | None, float | None]:
    """(busiest pipe, its time-weighted ratio, the cube's ratio) from the counters, where there are any."""
    best, name, mac = None, "", None
    for pipe, ratio in _ratios(kernels, members):
        if pipe == "mac_ratio":
            mac = ratio
        if best is None or ratio > best:
            best, name = ratio, PIPE_NAMES[pipe]
    return (name, best, mac) if best else ("", None, None)


def second_pipe(kernels: Kernels, members: Sequence[int], busiest: str) -> tuple[str, float | None]:
    """The unit that is busiest but for this one and the scalar unit, and its time-weighted ratio."""
    others = ((ratio, PIPE_NAMES[pipe]) for pipe, ratio in _ratios(kernels, members))
    ratio, name = max(((r, n) for r, n in others if r > 0 and n not in (busiest, "scalar")), default=(None, ""))
    return name, ratio


def transfers(kernels: Kernels, members: Sequence[int]) -> float | None:
    """Busy parts of a vector core's reading and writing units, added; None where either was not counted."""
    ratios = dict(_ratios(kernels, members))
    read, written = ratios.get("aiv_mte2_ratio"), ratios.get("aiv_mte3_ratio")
    return None if read is None or written is None else read + written


def computing(kernels: Kernels, members: Sequence[int]) -> float | None:
    """Busy part of a vector core's computing unit or of the cube, whichever is busier; None where the former was not
    counted."""
    ratios = dict(_ratios(kernels, members))
    return max(ratios["vec_ratio"], ratios.get("mac_ratio", 0.0)) if "vec_ratio" in ratios else None


def main_units_counted(kernels: Kernels, members: Sequence[int]) -> bool:
    """Whether the units that compute and those that read were counted on every kind of core that counters tell of: with
    one of them lost, the busiest of the rest tells no limit."""
    told = {pipe for pipe, _ in _ratios(kernels, members)}
    cores = [units for units in (_CUBE, _VECTOR) if told & set(units)]
    return bool(cores) and all(set(units[:2]) <= told for units in cores)


def counters_blank(kernels: Kernels, members: Sequence[int]) -> bool:
    """Whether counters were recorded and show no unit at work, which no kernel does that runs."""
    told = list(_ratios(kernels, members))
    return bool(told) and not any(ratio > 0 for _, ratio in told)


def _ratios(kernels: Kernels, members: Sequence[int]) -> Iterator[tuple[str, float]]:
    """Each counter of a unit with its time-weighted ratio, where it was counted."""
    for pipe in PIPES:
        weight = kernels.piped[pipe][list(members)].sum()
        if pipe != "cube_utilization" and weight > 0:
            yield pipe, float(kernels.pipes[pipe][list(members)].sum() / weight)
