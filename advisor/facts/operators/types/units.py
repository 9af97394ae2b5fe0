"""Which units of the cores the kernels of a type keep busy, by their counters."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from advisor.facts.base import Told
from advisor.facts.device.pipes import (
    busiest_pipe,
    computing,
    counters_blank,
    main_units_counted,
    second_pipe,
    transfers,
)
from advisor.sources.streams.kernels import Kernels


class Units(Struct, frozen=True):
    """Busy parts of the kernels' time; None where no counter tells them."""

    busiest: str = ""
    ratio: float | None = None
    second: str = ""
    second_ratio: float | None = None
    """The busiest of the other units, but for the scalar unit, which issues what all of them do."""
    transfer_ratio: float | None = None
    """Busy parts of a vector core's reading and writing units, added."""
    computing_ratio: float | None = None
    """Busy part of the unit that computes, vector or cube, whichever is busier."""
    mac_ratio: float | None = None
    counted: bool = False
    """The main units of its cores have counters."""
    blank: bool = False
    """Counters were recorded, and show no unit at work."""

    def told(self) -> Told:
        """The facts of a type, by the ends of their names."""
        return {
            "pipe": self.busiest or None, "pipe_ratio": self.ratio,
            "units_counted": None if self.ratio is None else self.counted, "counters_blank": self.blank or None,
            "second_pipe": self.second or None, "second_pipe_ratio": self.second_ratio,
            "transfer_ratio": self.transfer_ratio, "computing_ratio": self.computing_ratio,
            "mac_ratio": self.mac_ratio,
        }  # fmt: skip


def units_of(kernels: Kernels, members: Sequence[int]) -> Units:
    """The units of all kernels of these signatures."""
    busiest, ratio, mac = busiest_pipe(kernels, members)
    return Units(
        busiest, ratio, *second_pipe(kernels, members, busiest), transfers(kernels, members),
        computing(kernels, members), mac, main_units_counted(kernels, members), counters_blank(kernels, members),
    )  # fmt: skip
