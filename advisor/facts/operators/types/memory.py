"""What memory has to do with how long the kernels of a type take."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from advisor.facts.base import Told
from advisor.facts.device.pipes import busiest_pipe
from advisor.facts.operators.types.cases import Case, macs_of
from advisor.sources.streams.kernels import Kernels


class Memory(Struct, frozen=True):
    """Times over the profile, microseconds."""

    limited_us: float = 0.0
    """Time of multiplications whose shapes move more bytes than the cube unit could work on meanwhile."""
    idle_us: float = 0.0
    """The part of that time in which not even the busiest unit works, but for calls that the card's memory limits."""
    at_speed_us: float = 0.0
    """Time of calls whose bytes come at half of the card's memory bandwidth or more."""
    bytes_per_s: float | None = None
    """Bytes of inputs and outputs ÷ time, of calls whose shapes tell them; `speed`: ÷ the card's bandwidth."""
    speed: float | None = None
    rest_mac_ratio: float | None = None
    """Busy part of the cube unit in the multiplications that memory does not limit."""
    rest_shape: str = ""
    """Input shapes of those in which it idles longest."""

    def told(self, total_us: float) -> Told:
        """The facts of a type whose kernels take `total_us` over the profile."""

        def share(us: float, known_us: float) -> float | None:
            return us / total_us if known_us and total_us else None

        return {
            "memory_bound_share": share(self.limited_us, self.limited_us),
            "memory_idle_share": share(self.idle_us, self.limited_us),
            "at_memory_share": share(self.at_speed_us, self.at_speed_us),
            "bytes_per_s": self.bytes_per_s, "memory_speed_share": self.speed,
            "rest_mac_ratio": self.rest_mac_ratio, "rest_shapes": self.rest_shape.rstrip(";") or None,
        }  # fmt: skip


def memory_of(cases: Sequence[Case], kernels: Kernels, carries: float) -> Memory:
    """`carries` is the card's memory bandwidth, bytes a second."""
    limited = [case for case in cases if case.limited]
    rest = [case for case in cases if not case.limited]
    sized = [case for case in cases if case.moved > 0]
    sized_us = sum(case.us for case in sized)
    speed = 1e6 * sum(case.moved * case.calls for case in sized) / sized_us if sized_us else None
    macs = macs_of(kernels, [case.index for case in rest]).tolist()
    idle = [(case.us * (1 - mac), case) for case, mac in zip(rest, macs, strict=True) if mac == mac]
    longest = max(idle, key=lambda pair: pair[0], default=(0.0, None))[1] if any(us for us, _ in idle) else None
    return Memory(
        sum(case.us for case in limited),
        # experts at once: nobody knows of how many the weights are read
        sum(case.us * (1 - (case.busiest or 1.0)) for case in limited if case.product is None or not case.reaches),
        sum(case.us for case in cases if case.reaches),
        speed,
        None if speed is None else min(speed / carries, 1.0),
        busiest_pipe(kernels, [case.index for case in rest])[2] if rest else None,
        longest.signature.input_shapes if longest else "",
    )
