"""A communication group's purpose is read from what it exchanges, and when."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from advisor.facts.collectives.exchanges import Exchanges
from advisor.facts.collectives.parallelism import Partition
from advisor.facts.collectives.roles import roles_of, weights_shared

STEP_US, COMPUTING_US = 25_000.0, 24_000.0
"""Three steps: 8 ms of forward, 16 ms of backward, 1 ms between."""


def exchanges(program: list[tuple[str, float]]) -> Exchanges:
    """Three steps of these operations: kind and start within the step, microseconds; each takes 100."""
    kinds = tuple(dict.fromkeys(kind for kind, _ in program))
    count = len(program)
    start = np.array([[step * STEP_US + at for _, at in program] for step in range(3)]).ravel()
    flat = np.zeros(3 * count)
    whole = np.zeros(3 * count, np.int64)
    return Exchanges(
        ("1", "2", "3"), ("g",), kinds, np.repeat(np.arange(3), count), whole,
        np.tile([kinds.index(kind) for kind, _ in program], 3), kinds, whole, ((start + 1.0) * 1000).astype(np.int64),
        np.full(3 * count, 100.0), flat + 80.0, flat, flat + 1e6, flat + 80.0, None,
    )  # fmt: skip


def layers(kind: str, begin: float, end: float, count: int = 8) -> list[tuple[str, float]]:
    return [(kind, float(at)) for at in np.linspace(begin, end, count, endpoint=False)]


@pytest.mark.parametrize(
    ("program", "role"),
    [
        (layers("allreduce", 8000, 24000), "data"),
        (layers("allreduce", 0, 24000, 16), "tensor"),
        (layers("allgather", 0, 24000, 16) + layers("reducescatter", 9000, 24000), "data"),
        (layers("allgather", 0, 24000, 16) + layers("reducescatter", 500, 24000, 16), "tensor"),
    ],
    ids=["gradients", "tensor-parallel layers", "sharded weights (FSDP)", "sequence-parallel layers"],
)
def test_purpose_of_the_only_kind_of_group(program, role):
    """Weights may be gathered in forward; only sharded layers reduce there."""
    found = roles_of({"g": (0, 1)}, {}, {0: exchanges(program)}, {0: COMPUTING_US}, "", {})
    assert found == {"g": role}
    unmarked = {0: replace((marked := exchanges(program)), steps=("0",), step=np.zeros_like(marked.step))}
    assert roles_of({"g": (0, 1)}, {}, unmarked, {0: COMPUTING_US}, "", {}, turns={0: 3}) == found


def test_ranks_that_train_and_reduce_nothing_gather_weights():
    """An operator divided any other way has sums to complete, forward or backward; while gradients are accumulated,
    nothing of sharded weights is reduced. Beside reductions, gathers all over the step are of sharded operators."""
    gathers = exchanges(layers("allgather", 0, 24000, 16))
    assert roles_of({"g": (0, 1)}, {}, {0: gathers}, {0: COMPUTING_US}, "", {}) == {"g": "data"}
    assert roles_of({"g": (0, 1)}, {}, {0: gathers}, {0: COMPUTING_US}, "", {}, trains=False) == {"g": "tensor"}
    sums = replace(exchanges(layers("allreduce", 0, 24000, 16)), groups=("tp",))
    both = {0: gathers, 1: sums}
    assert (
        roles_of({"g": (0, 1), "tp": (0, 1, 2)}, {}, both, dict.fromkeys(both, COMPUTING_US), "", {})["g"] == "tensor"
    )


def test_what_a_late_member_waits_for_is_no_forward_pass():
    """A rank that waits for data before each step leaves a pause as long as forward; its peers show that they exchange
    all the time."""
    late, peer = (exchanges(layers("allreduce", begin, 24000, 16)) for begin in (12000, 0))
    computing = {0: COMPUTING_US / 2, 1: COMPUTING_US}
    assert roles_of({"g": (0, 1)}, {}, {0: late}, computing, "", {}) == {"g": "data"}
    assert roles_of({"g": (0, 1)}, {}, {0: late, 1: peer}, computing, "", {}) == {"g": "tensor"}


def test_groups_of_other_stages_are_for_one_purpose():
    """A stage that waits for another pauses for as long as a forward pass; what the group of the other shows of the
    same operations holds for both."""
    waiting, steady = (exchanges(layers("allreduce", begin, 24000, 16)) for begin in (12000, 0))
    stages = {0: waiting, 1: replace(steady, groups=("h",))}
    computing = dict.fromkeys(stages, COMPUTING_US)
    assert roles_of({"g": (0,), "h": (1,)}, {}, stages, computing, "", {}) == {}
    assert roles_of({"g": (0, 2), "h": (1, 3)}, {}, stages, computing, "", {}) == {"g": "tensor", "h": "tensor"}


def test_what_serves_reduces_no_gradients():
    """Without a backward pass, whatever is reduced and however seldom is what sharded operators exchange."""
    seldom = {0: exchanges(layers("allreduce", 8000, 24000))}
    assert roles_of({"g": (0, 1)}, {}, seldom, {0: COMPUTING_US}, "", {}, trains=False) == {"g": "tensor"}
    assert roles_of({"h": (0, 1)}, {}, seldom, {0: COMPUTING_US}, "", {}, trains=False) == {"h": "tensor"}
    assert Partition(trains=False).role_of("nobody tells") == "tensor" and Partition().role_of("nobody tells") == "data"


@pytest.mark.parametrize(
    ("exchange", "role"), [("expert", "expert"), ("context", "context"), ("exchange", "exchange"), ("", "tensor")]
)
def test_exchange_of_tokens_is_what_kernels_and_framework_tell(exchange, role):
    """Ranks exchange in every layer: tokens for experts, heads for parts of a sequence, or what operators shard."""
    program = layers("alltoall", 0, 24000, 16)
    assert roles_of({"g": (0, 1)}, {}, {0: exchanges(program)}, {0: COMPUTING_US}, exchange, {})["g"] == role


OF_EACH = (
    "step", "group", "name", "ordinal", "start_ns", "elapsed_us", "transit_us", "booked_us", "size_bytes",
    "transport_us",
)  # fmt: skip
"""Columns of `Exchanges` with an entry an operation."""


def ring(sizes: dict[str, float]) -> tuple[dict[str, tuple[int, ...]], dict[int, Exchanges]]:
    """Four ranks that pass keys and values on in pairs, and reduce something of this many bytes together."""
    groups = {"01": (0, 1), "12": (1, 2), "23": (2, 3), "30": (0, 3), "all": (0, 1, 2, 3)}
    found = {}
    for rank in range(4):
        mine = tuple(name for name, ranks in groups.items() if rank in ranks)
        n = len(mine)
        names = ("batchsendrecv", "allreduce")
        name = np.array([0] * (n - 1) + [1])
        numbers, flat = np.arange(n), np.zeros(n)
        bytes_of = np.array([1e7] * (n - 1) + [sizes["all"]])
        found[rank] = Exchanges(
            ("1",), mine, names, np.zeros(n, np.int64), numbers, name, names, np.zeros(n, np.int64),
            (numbers + 1) * 1_000_000, flat + 100.0, flat + 80.0, flat, bytes_of, flat + 80.0, None,
        )  # fmt: skip
    return groups, found


def _without(ex: Exchanges, group: str) -> Exchanges:
    """The same without what it exchanges in a group."""
    kept = np.array([ex.groups[index] != group for index in ex.group])
    return replace(ex, **{name: getattr(ex, name)[kept] for name in OF_EACH})


@pytest.mark.parametrize("purpose", ["context", "exchange"])
def test_ranks_that_reduce_gradients_together_are_no_stages(purpose):
    """A ring of attention, or neighbours in a grid, share their weights, so their exchange is no pipeline's."""
    groups, found = ring({"all": 1e8})
    roles = roles_of(groups, {}, found, dict.fromkeys(range(4), COMPUTING_US), "", {}, ring=purpose)
    assert {roles[name] for name in ("01", "12", "23", "30")} == {purpose}


@pytest.mark.parametrize(
    ("reduced", "closed", "role"),
    [(2e6, False, "pipeline"), (4e7, False, "context"), (2e6, True, "context"), (2e6, None, "context")],
)
def test_a_ring_closes_and_stages_do_not(reduced: float, closed: bool | None, role: str) -> None:
    """Ranks from one end to the other that reduce less in a step than one message are stages; who all have a next one,
    or an end of which the files tell another partner, may be a ring."""
    groups, found = ring({"all": reduced})
    if not closed:
        groups.pop("30")
        if closed is None:
            groups |= {"3?": (3,), "?0": (0,)}
        for rank in (0, 3):
            ex = found[rank]
            names = tuple({"30": "3?" if rank == 3 else "?0"}.get(g, g) for g in ex.groups)
            kept = np.array([g != "30" or closed is None for g in ex.groups])
            found[rank] = replace(ex, groups=names, **{name: getattr(ex, name)[kept] for name in OF_EACH})
    roles = roles_of(groups, {}, found, dict.fromkeys(range(4), COMPUTING_US), "", {}, ring="context")
    assert {roles[name] for name in ("01", "12", "23")} == {role}


def test_what_some_of_a_chain_reduce_binds_no_layers() -> None:
    """The first and the last stage hold the same embeddings and reduce their gradients."""
    groups, found = ring({"all": 1e8})
    groups = {name: ranks for name, ranks in groups.items() if name != "30"} | {"all": (0, 3)}
    for rank, ex in found.items():
        kept = np.array([g != "30" and (g != "all" or rank in (0, 3)) for g in ex.groups])
        found[rank] = replace(ex, **{name: getattr(ex, name)[kept] for name in OF_EACH})
    roles = dict.fromkeys(groups, "pipeline") | {"all": "data"}
    assert weights_shared(groups, roles, found) == []


@pytest.mark.parametrize(("gathered", "role"), [(1e8, "context"), (64.0, "pipeline"), (0.0, "pipeline")])
def test_one_communicator_may_pass_keys_on_and_share_weights(gathered: float, role: str) -> None:
    """FSDP with ring attention does both in the default group. Stages reduce no more than a norm in theirs, and sizes
    that nobody told show nothing."""
    names = ("batchsendrecv", "reducescatter")
    name, numbers, flat = np.array([0] * 6 + [1] * 2), np.arange(8), np.zeros(8)
    size = np.where(name == 0, 1e7, gathered)
    one = Exchanges(
        ("1",), ("g",), names, np.zeros(8, np.int64), np.zeros(8, np.int64), name, names, numbers,
        (numbers + 1) * 1_000_000, flat + 100.0, flat + 80.0, flat, size, flat + 80.0, None,
    )  # fmt: skip
    groups, found = {"g": (0, 1, 2, 3)}, dict.fromkeys(range(4), one)
    if role == "pipeline":  # whose ends hand on in one direction
        less = {each: getattr(one, each)[3:] for each in OF_EACH}
        found |= {0: replace(one, **less), 3: replace(one, **less)}
    assert roles_of(groups, {}, found, dict.fromkeys(range(4), COMPUTING_US), "", {}) == {"g": role}


def test_who_all_send_as_often_make_a_ring():
    """Forward passes of a ring reduce nothing, and nothing but their hops tells what they are."""
    groups, found = ring({"all": 0.0})
    groups.pop("all")
    for rank, ex in found.items():
        found[rank] = _without(ex, "all")
    asked = dict.fromkeys(range(4), COMPUTING_US)
    assert set(roles_of(groups, {}, found, asked, "", {}, ring="context").values()) == {"context"}
    found[3] = replace(found[3], **{name: getattr(found[3], name)[1:] for name in OF_EACH})
    assert set(roles_of(groups, {}, found, asked, "", {}, ring="context").values()) == {"pipeline"}


def test_a_norm_over_all_stages_binds_no_weights():
    """Clipping gradients reduces eight bytes over a pipeline; its stages' own gradients are a million times larger."""
    groups, found = ring({"all": 8.0})
    groups.pop("30")
    for rank in (0, 3):
        found[rank] = _without(found[rank], "30")
    own = {f"own{rank}": (rank, rank + 4) for rank in range(4)}
    for rank, ex in found.items():
        n = len(ex.name)
        found[rank] = replace(
            ex, groups=(*ex.groups, f"own{rank}"), step=np.zeros(n + 1, np.int64),
            group=np.append(ex.group, len(ex.groups)),
            name=np.append(ex.name, 1), ordinal=np.zeros(n + 1, np.int64), start_ns=np.append(ex.start_ns, 9_000_000),
            size_bytes=np.append(ex.size_bytes, 1e8), elapsed_us=np.full(n + 1, 100.0),
            transit_us=np.full(n + 1, 80.0), booked_us=np.zeros(n + 1), transport_us=np.full(n + 1, 80.0),
        )  # fmt: skip
    roles = roles_of({**groups, **own}, {}, found, dict.fromkeys(range(4), COMPUTING_US), "", {})
    assert {roles[name] for name in ("01", "12", "23")} == {"pipeline"}


def test_weights_may_be_gathered_in_a_communicator_of_their_own():
    """ZeRO-3 gathers each weight in forward and backward, and reduces gradients elsewhere, in backward only."""
    gather, reduce = exchanges(layers("allgather", 0, 24000, 24)), exchanges(layers("reducescatter", 9000, 24000, 4))
    both = replace(
        gather, groups=("g", "r"), names=("allgather", "reducescatter"), kind=("allgather", "reducescatter"),
        **{
            name: np.concatenate((getattr(gather, name), getattr(reduce, name)))
            for name in ("step", "ordinal", "start_ns", "elapsed_us", "transit_us", "booked_us", "size_bytes",
                         "transport_us")
        },
        group=np.repeat([0, 1], [len(gather.name), len(reduce.name)]),
        name=np.repeat([0, 1], [len(gather.name), len(reduce.name)]),
    )  # fmt: skip
    found = roles_of({"g": (0, 1), "r": (0, 1)}, {}, {0: both}, {0: COMPUTING_US}, "", {})
    assert found == {"g": "data", "r": "data"}


@pytest.mark.parametrize(
    ("members", "size", "forward", "role"),
    [
        ((0, 1), 1.6e7, None, "tensor"),  # what a stage hands over, two ranks: a ring moves as many bytes
        ((0, 1, 2, 3), 1.5 * 1.6e7, None, "tensor"),  # four ranks: half as many again
        ((0, 1), 4.0e8, None, "data"),  # buckets of gradients
        ((0, 1), 1.0e6, None, "data"),
        ((0, 1), 1.6e7, 0.11, "tensor"),  # only the passes that fill the pipeline are told for certain
        ((0, 1), 4.0e8, 0.11, "data"),
        ((0, 1), 1.6e7, 0.0, "data"),  # gradients of matrices as large as activations
    ],
)
def test_in_a_pipeline_sharded_operators_are_known_by_what_stages_hand_over(members, size, forward, role):
    """A stage waits half of a step for its first micro-batch, so that pauses tell nothing; sizes do. The passes that
    fill the pipeline follow one another without a gradient, beside which a single pass looks short."""
    program = [("send", 1.6e7)] * 4 + [("allreduce", size)] * 16
    at = 12_000 + 600.0 * np.arange(len(program))
    start = np.array([[step * STEP_US + each for each in at] for step in range(3)]).ravel()
    kinds, count = ("send", "allreduce"), len(program)
    which = np.tile([kinds.index(kind) for kind, _ in program], 3)
    flat, whole = np.zeros(3 * count), np.zeros(3 * count, np.int64)
    found = Exchanges(
        ("1", "2", "3"), ("next", "g"), kinds, np.repeat(np.arange(3), count), which, which, kinds, whole,
        ((start + 1.0) * 1000).astype(np.int64), flat + 100.0, flat + 80.0, flat,
        np.tile([each for _, each in program], 3), flat + 80.0, None,
    )  # fmt: skip
    told = {} if forward is None else {"g": forward}
    roles = roles_of({"next": (0, 8), "g": members}, {}, {0: found}, {0: COMPUTING_US}, "", {}, forward=told)
    assert roles == {"next": "pipeline", "g": role}


@pytest.mark.parametrize(("reduced_bytes", "sharing"), [(1024.0, []), (16e6, ["world"])])
def test_a_flag_of_all_ranks_makes_no_peers_of_stages(reduced_bytes: float, sharing: list[str]) -> None:
    """Stages hand on 16 MB; the norm or overflow flag that all of them reduce is nothing beside that, gradients are."""
    both = exchanges([("send", 0.0), ("allreduce", 24_500.0)])
    both = replace(
        both, groups=("stages", "world"), group=np.tile([0, 1], 3), size_bytes=np.tile([16e6, reduced_bytes], 3)
    )
    groups = {"stages": (0, 1), "world": (0, 1)}
    roles = {"stages": "pipeline", "world": "data"}
    assert weights_shared(groups, roles, {0: both, 1: both}) == sharing
