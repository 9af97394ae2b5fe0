"""Attention backward against forward: on the same inputs one multiplies two and a half times as often as the other, and
on the same card takes about as long for each operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from advisor.facts.operators.kinds import dtypes, is_attention, is_attention_gradient
from advisor.facts.operators.shapes.work import LAUNCH_US
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Signature

TIMES = limit("kernels", "attention_backward")
"""Products of a backward call for each of the forward one."""


class Call(Struct, frozen=True):
    """All calls of one signature: microseconds over the profile, the cube unit's busy part, NaN where not counted."""

    signature: Signature
    calls: float
    us: float
    mac: float


class Backward(Struct, frozen=True):
    """Backward calls of one type on inputs that attention runs forward on as well; microseconds over the profile."""

    us: float
    forward_us: float
    """What they would take with as long for each operation as forward."""
    shape: str
    """Inputs of the costliest: queries, keys and values."""
    mac_ratio: float | None = None
    forward_mac_ratio: float | None = None
    """Busy parts of the cube unit, weighted by time; None where a call was not counted."""


def backward_of(kind: str, calls: Sequence[Call]) -> Backward | None:
    """None where the type is no attention's gradient, or no call of the recording computes forward on its inputs."""
    if not is_attention_gradient(kind):
        return None
    forward: dict[tuple[str, ...], list[Call]] = defaultdict(list)
    for call in calls:
        inputs, of = _inputs(call.signature), call.signature.type
        if inputs and call.us > 0 and is_attention(of) and not is_attention_gradient(of):
            forward[inputs].append(call)
    pairs = [
        (call, forward[_inputs(call.signature)])
        for call in calls
        if call.signature.type == kind and call.calls and call.us / call.calls >= LAUNCH_US
        and forward.get(_inputs(call.signature))
    ]  # fmt: skip
    if not pairs:
        return None
    us, forward_us = sum(call.us for call, _ in pairs), 0.0
    for call, ones in pairs:
        forward_us += call.calls * TIMES * sum(each.us for each in ones) / sum(each.calls for each in ones)
    worst = max((call for call, _ in pairs), key=lambda call: call.us)
    shape = ";".join(_inputs(worst.signature)[:3])
    return Backward(us, forward_us, shape, _busy([c for c, _ in pairs]), _busy([f for _, ones in pairs for f in ones]))


def _inputs(signature: Signature) -> tuple[str, ...]:
    """Shapes and data types of queries, keys and values."""
    shapes = signature.input_shapes.strip('"').split(";")[:3]
    return (*shapes, *dtypes(signature.input_dtypes)[:3]) if len(shapes) == 3 and all(shapes) else ()


def _busy(calls: Sequence[Call]) -> float | None:
    share = sum(call.us * call.mac for call in calls) / sum(call.us for call in calls)
    return share if share == share else None
