"""The operation that is left when all others are seen to rest: of one whose number of workers no file tells, how busy
it is stays unknown, and its neighbours tell instead.

Utilisation law: its work ÷ wall is the mean number of its workers that are at work. Who limits the pipeline always has
rows before it, and whoever takes its rows waits for them; a fast one waits for rows itself, or is blocked by a full
queue, in front of which nobody waits.
"""

from __future__ import annotations

from advisor.facts.data.network import CONTENDED, Feeding
from advisor.facts.data.pipeline_tree import Operation


def remaining(one: Feeding, op: Operation) -> dict[str, float]:
    """The facts of an operation whose workers nobody tells; empty for one whose busy share is known, and where the
    step, or a neighbour's time, is not, or threads fight for the interpreter lock."""
    data, wall = one.data, one.wall_us
    if one.network is None or not one.network.own_known or not wall:
        return {}
    if not op.work_us or data.untold or one.busy_share(op) is not None:
        return {}
    if (data.gil_wait_total_us or 0.0) >= CONTENDED * wall or op.input_wait_us is None or op.awaited_us is None:
        return {}
    others = [one.most_busy(each) for each in data.operations.values() if each.op_id != op.op_id]
    known = [busy for busy in others if busy is not None]
    if not known or len(known) < len(others):
        return {}
    return {
        "workers_at_work": op.work_us / wall,
        "beside_busy_share": max(known),
        "input_wait_share": min(1.0, op.input_wait_us / wall),
        "awaited_share": min(1.0, op.awaited_us / wall),
    }
