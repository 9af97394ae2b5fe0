"""The calls of one operator type by what they are given: each signature with what its shapes and counters tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats
from advisor.facts.device.pipes import busiest_pipe
from advisor.facts.operators.kinds import is_cube, moved_bytes
from advisor.facts.operators.longest import ending
from advisor.facts.operators.shapes.work import REACH, MatMul, matmul
from advisor.sources.streams.kernels import Kernels, Signature, operator_name


class Case(Struct, frozen=True):
    """All calls of one signature on one rank; `us` is their time over the profile, microseconds."""

    index: int
    """The signature's number among the kernels'."""
    signature: Signature
    calls: int
    us: float
    moved: float
    """Bytes of inputs and outputs, a call; 0 where shapes do not tell them."""
    product: MatMul | None
    multiplies: bool
    """By its shapes, or by its type and core."""
    reaches: bool
    """Its bytes come at half of the card's memory bandwidth or more."""
    busiest: float | None = None
    """How busy the busiest unit is, of a multiplication that counters tell of; `mac`: the cube unit."""
    mac: float | None = None

    @property
    def limited(self) -> bool:
        """Whether memory limits a multiplication by its shapes; where these do not tell the work, as of several experts
        at once, whether counters show another unit busier than the cube."""
        if self.product is not None:
            return self.moved > self.product.balanced
        return self.multiplies and self.busiest is not None and self.mac is not None and self.mac < self.busiest


def cases_of(
    name: str, kernels: Kernels, members: Sequence[int], counts: Floats, totals: Floats, carries: float
) -> list[Case]:
    """The cases of a type. `counts` and `totals` (microseconds) are of all signatures, `carries` is the card's memory
    bandwidth, bytes a second."""
    found = []
    for member in members:
        signature = kernels.signatures[member]
        signature = signature if signature.type else replace(signature, type=name)
        calls, us = int(counts[member]), float(totals[member])
        moved, product = moved_bytes(signature), matmul(signature)
        reaches = us > 0 and moved * calls / us * 1e6 >= REACH * carries
        multiplies = product is not None or is_cube(signature)
        _, busiest, mac = busiest_pipe(kernels, [member]) if multiplies else ("", None, None)
        found.append(Case(member, signature, calls, us, moved, product, multiplies, reaches, busiest, mac))
    return found


def by_inputs(cases: Iterable[Case]) -> dict[str, tuple[int, float]]:
    """Input shapes -> calls and their microseconds, those that take longest first."""
    found: dict[str, tuple[int, float]] = {}
    for case in cases:
        calls, us = found.get(case.signature.input_shapes, (0, 0.0))
        found[case.signature.input_shapes] = (calls + case.calls, us + case.us)
    found.pop("", None)
    return dict(sorted(found.items(), key=lambda item: (-item[1][1], item[0])))


def macs_of(kernels: Kernels, members: Sequence[int]) -> Floats:
    """The cube unit's busy part of each signature, NaN where it was not counted."""
    known_us, busy_us = kernels.piped["mac_ratio"][members], kernels.pipes["mac_ratio"][members]
    macs: Floats = np.divide(busy_us, known_us, out=np.full(known_us.size, np.nan), where=known_us > 0)
    return macs


def costliest_call(kernels: Kernels, signature: int) -> str:
    """The operator that spends most time with this signature, and its input shapes."""
    mine = kernels.signature == signature
    longest = int(np.bincount(kernels.name[mine], kernels.duration[mine]).argmax())
    return call_text(kernels.names[longest], kernels.signatures[signature].input_shapes)


def call_text(name: str, shapes: str) -> str:
    """An operator with its input shapes, where these are known, for a message."""
    return ", ".join(filter(None, (ending(operator_name(name)), shapes)))
