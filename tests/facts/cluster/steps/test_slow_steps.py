"""Slow steps among usual ones: what they cost, when they come, whose they are; noise makes none."""

from dataclasses import replace

import numpy as np
import pytest
from clusters import SMALL, facts_of
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.base import FactSet
from advisor.facts.cluster.accounts import Accounts
from advisor.facts.cluster.steps.slow_steps import (
    _find,
    _usual_jitter,
    listing,
    owner_of,
    pattern_of,
    split,
)  # fmt: skip
from advisor.facts.collectives.exchanges import Exchanges
from advisor.facts.device.course import Course
from advisor.facts.recording.windows import follows
from advisor.model import RUN, Fact, Subject
from advisor.pipeline import Options, advise
from advisor.render.wording import where
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

LONG = replace(SMALL, layers=2, steps=15)


def mask(text: str) -> np.ndarray:
    """ "..#." -> slow in the third step."""
    return np.array([c == "#" for c in text])


@pytest.mark.parametrize(
    ("steps", "pattern"),
    [
        ("....######", ("since", 4, None)), ("....##.###########", ("since", 4, None)),
        ("..#..#..#.", ("periodic", 2, 3)), (".#..##...#", ("scattered", 1, None)), (".....#....", ("once", 5, None)),
        ("##........", ("until", 1, None)), ("#.........", ("until", 0, None)),
    ],
)  # fmt: skip
def test_when_slow_steps_come(steps, pattern):
    """A change that stays, a period, chance and warm-up are different findings."""
    assert pattern_of(mask(steps)) == pattern


@given(st.integers(0, 10_000), st.floats(0.001, 0.1))
def test_noise_alone_makes_no_step_slow(seed, noise):
    """Steps that differ by normal noise are one group, however loud it is: at most one of twenty sticks out."""
    slow = split(1e5 * (1 + noise * np.random.default_rng(seed).standard_normal(20)))
    assert slow is None or slow.sum() <= 1


@given(st.integers(0, 10_000), st.lists(st.booleans(), min_size=10, max_size=30))
def test_steps_half_as_long_again_are_found(seed, wanted):
    """Whatever steps they are, as long as most are usual."""
    wanted = np.array(wanted)
    if not 0 < wanted.sum() <= len(wanted) / 2:
        return
    times = 1e5 * (1 + 0.5 * wanted) * (1 + 0.005 * np.random.default_rng(seed).standard_normal(len(wanted)))
    assert (split(times) == wanted).all()


@given(st.integers(0, 10_000), st.integers(4, 7), st.integers(0, 6), st.floats(2.2, 20))
def test_a_step_several_times_as_long_is_slow_in_a_short_run(seed, steps, place, times):
    """Among few steps only what is far off shows: one that saves a checkpoint, not one that varies."""
    at = place % steps
    lengths = 1e5 * (1 + 0.01 * np.random.default_rng(seed).standard_normal(steps))
    assert split(lengths) is None
    lengths[at] *= times
    assert (split(lengths) == (np.arange(steps) == at)).all()


@given(st.lists(st.booleans(), min_size=10, max_size=30))
def test_what_most_steps_take_is_usual(longer):
    """More long steps than short ones, in turn: the short ones are the exception, and nothing is slow. A run that
    changed once may be slow for longer than it was fast."""
    longer = np.array(longer)
    slow = split(1e5 * (1 + 0.5 * longer))
    assert slow is None or slow.sum() <= len(longer) / 2 or pattern_of(slow)[0] in ("since", "until")
    changed = np.arange(30) >= 12
    assert (split(1e5 * (1 + 0.5 * changed)) == changed).all()


def test_seven_steps_are_too_few():
    """Of seven steps none is said to be usual because one is half as long again."""
    assert split(np.array([100.0, 100, 100, 100, 100, 100, 150])) is None


def test_step_names_are_told_as_ranges():
    """Twenty steps in a row are one range, and a long list ends in how many more there are."""
    assert listing(tuple(map(str, range(22, 30)))) == "22-29"
    assert listing(("11", "14", "17")) == "11, 14, 17"
    assert listing(tuple(map(str, range(0, 40, 4)))) == "0, 4, 8, 12, 16, 20 (+4)"


def test_names_of_steps_that_only_look_like_numbers_are_names():
    """Damaged files hold them, and Python reads neither raised digits nor thousands of them as a number."""
    endless = "9" * 5000
    assert listing(("1", "²", "³")) == "1, ², ³"
    assert listing((endless, endless)) == f"{endless}, {endless}"
    assert follows(["1", "2", "²", endless]) == [True, True, True]


def test_card_that_fails_in_mid_run_is_found_with_its_first_slow_step(tmp_path):
    """Medians over steps show nothing of a card that becomes slow after the middle."""
    scenario = replace(LONG, faults=(Fault("failing_card", 2, 0.4),))
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("step.slow_pattern", RUN) == "since"
    assert facts.value("step.slow_since", RUN) == "18"
    assert facts.value("step.slow_origin", RUN) == "rank"
    assert facts.value("rank.slow_steps_part", Subject("rank", "2", (2,))) == "compute"
    assert facts.value("step.slow_kernel_ratio", RUN) == pytest.approx(1.4, rel=0.05)
    gained = simulate(scenario).mean_us - simulate(replace(scenario, faults=())).mean_us
    assert facts.value("step.slow_cost_us", RUN) == pytest.approx(gained, rel=0.2)


def test_card_that_fails_in_a_late_stage_is_found_although_its_first_step_is_short(tmp_path):
    """A stage behind others ends its steps before them, and waits for them in all but the first recorded step."""
    scenario = Scenario(
        data=2, pipeline=4, layers=1, micro_batches=4, kernel_us=460.0, gradient_mb_per_layer=7.0,
        activation_mb=1.0, steps=12, seed=7, faults=(Fault("failing_card", 2, 0.5),),
    )  # fmt: skip
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("step.slow_ranks", RUN) == "2"
    gained = simulate(scenario).mean_us - simulate(replace(scenario, faults=())).mean_us
    assert facts.value("step.slow_cost_us", RUN) == pytest.approx(gained, rel=0.2)


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
@pytest.mark.parametrize("kernels", [True, False])
def test_host_that_pauses_every_third_step(tmp_path, framework, kernels):
    """The step table alone tells who pauses, how often, and what it costs everybody."""
    scenario = replace(LONG, faults=(Fault("pauses", 1, 0.2),), framework=framework, kernels=kernels)
    facts, _ = facts_of(scenario, tmp_path)
    expected = {"pattern": "periodic", "period": 3, "origin": "rank", "part": "start", "ranks": "1"}
    assert {name: facts.value(f"step.slow_{name}", RUN) for name in expected} == expected
    gained = simulate(scenario).mean_us - simulate(replace(scenario, faults=())).mean_us
    assert facts.value("step.slow_cost_us", RUN) == pytest.approx(gained, rel=0.2)


def test_one_rank_that_pauses_is_named_where_the_verdict_is_of_the_run(tmp_path):
    """The contract knows step-jitter about runs alone: the finding has that subject, with the rank behind it."""
    write_profile(simulate(replace(LONG, faults=(Fault("pauses", 1, 0.5),))), tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    jitter = next(f for f in report.findings if f.verdict == "step-jitter")
    assert (jitter.subject.kind, jitter.subject.id, jitter.subject.ranks) == ("run", "run", (1,))
    assert "rank 1" in report.summary.headline.en and where(jitter.subject, "en") == "rank 1"


def test_checkpoints_are_everybodys(tmp_path):
    """A pause of all ranks accuses none of them."""
    facts, _ = facts_of(replace(LONG, faults=(Fault("checkpoints", 0, 0.5),)), tmp_path)
    assert facts.value("step.slow_origin", RUN) == "all"
    assert facts.value("step.slow_period", RUN) == 5
    assert facts.value("step.usual_jitter", RUN) < 0.1 < facts.value("step.jitter", RUN)
    assert not facts.has("rank.slow_steps_us")


def test_quiet_run_has_no_slow_steps(tmp_path):
    """Looked for and not found is a fact, and the usual step is the step."""
    facts, _ = facts_of(replace(LONG, seed=4), tmp_path)
    assert facts.value("step.slow_count", RUN) == 0
    assert facts.value("step.usual_us", RUN) == pytest.approx(facts.value("step.time_us", RUN), rel=0.02)


def test_step_time_agrees_with_its_shares(tmp_path):
    """The step's time is the one its shares are shares of, however uneven the steps are."""
    facts, _ = facts_of(replace(LONG, faults=(Fault("checkpoints", 0, 0.5),)), tmp_path)
    parts = ("computing", "exposed_communication", "idle")
    whole = sum(facts.value(f"step.{part}_us", RUN) for part in parts)
    assert whole == pytest.approx(facts.value("step.time_us", RUN), rel=1e-6)
    assert facts.value("step.median_us", RUN) < 0.8 * facts.value("step.time_us", RUN)


@pytest.mark.parametrize(
    ("owners", "longest", "told"),
    [
        (("save", "save", "save", "load"), 180_000, "save"),  # all pause for the same
        (("save", "save", "load", "load"), 180_000, None),  # for two things
        (("save", None, None, None), 180_000, None),  # what most do is not recorded
        (("save", "save", "save", "save"), 20_000, None),  # which is not what makes the step slow
    ],
)
def test_what_all_hosts_do_in_slow_steps_is_named_where_most_do_it(owners, longest, told):
    """A checkpoint that every rank writes owns the slow step as well as one that a single rank writes."""
    facts = FactSet()
    for number, owner in enumerate(owners):
        subject = Subject("rank", str(number), (number,))
        share = 0.9 if owner else 0.0
        seen = {"longest_gap_owner_us": longest, "longest_gap_owner": owner, "gap_owner_share": share}
        for name, value in seen.items():
            if value is not None:
                facts.add(Fact(f"timeline.{name}", subject, value, 1, ()))
    assert owner_of(facts, range(4), 185_000) == told


@pytest.mark.parametrize("late", [0, 1])
def test_who_worked_before_the_others_waited_is_found(late):
    """One rank evaluates at the end of a step; its peers wait for it at the first collective of their next one."""
    ranks, steps = 4, 12
    compute = np.full((ranks, steps), 11e3)
    exposed = np.full((ranks, steps), 1e3)
    for slow in (3, 8):
        compute[0, slow - late] += 18e3
        exposed[1:, slow] += 18e3
    zeros = np.zeros_like(compute)
    balance = Accounts(
        list(range(ranks)), list(map(str, range(steps))), compute + exposed, compute, zeros, zeros, exposed, zeros, True
    )  # fmt: skip
    found = _find(balance, {})
    assert found is not None
    assert (found.names, found.origin, found.ranks) == (("3", "8"), "rank", (0,))


@pytest.mark.parametrize(
    ("idle", "origin", "ranks"),
    [
        ([[1, 1, 1, 1], [23, 1, 14, 1]], "rank", (1,)),
        ([[9, 1, 1, 9, 1, 1], [1, 1, 5, 1, 1, 8]], "rotating", ()),
        ([[14, 1, 1, 15, 1, 1]], "all", ()),
        ([[14, 14, 15, 14, 14, 14], [14, 14, 14, 14, 25, 14]], None, ()),
    ],
)
def test_a_pause_that_was_measured_is_told_of_few_steps(idle, origin, ranks) -> None:
    """A device that stands still while its peers wait for it is seen, in four steps as in forty, and in most of them
    as in few; where devices stand still as long in every step, a longer one shows nothing."""
    own = 1000.0 * np.array(idle)
    exposed = own.max(axis=0) - own
    steps = [str(i) for i in range(own.shape[1])]
    computing, start = np.full(own.shape, 30e3), np.full(own.shape, 200.0)
    whole = computing + own + exposed
    found = _find(Accounts(list(range(len(own))), steps, whole, computing, start, own - start, exposed, own, True), {})
    assert (found.origin, found.ranks) == (origin, ranks) if origin else found is None
    if found is not None:
        assert found.part == "host"
        assert found.cost_us == pytest.approx(whole[0].mean() - whole[0].min())
    computes = Accounts(list(range(len(own))), steps, whole, computing + own, start, 0 * own, exposed, start, True)
    assert _find(computes, {}) is None


@pytest.mark.parametrize(("kernels", "told"), [([200, 200, 320, 200, 200], True), ([200, 200, 200, 200, 200], False)])
def test_a_step_that_runs_more_kernels_is_told_in_a_short_run(kernels: list[int], told: bool) -> None:
    """An evaluation inside a step is counted, however few steps there are; of kernels that took longer in one of five
    steps nobody knows whether that is chance."""
    steps, computing = list(map(str, range(5))), np.tile([45e3, 45e3, 83e3, 45.1e3, 45e3], (2, 1))
    zeros = np.zeros_like(computing)
    balance = Accounts([0, 1], steps, computing + 4e3, computing, zeros, zeros, zeros + 4e3, zeros, True)
    flat = np.zeros(5)
    course = Course(
        tuple(steps), computing[0], flat, flat, flat, flat + 4e3, np.array(kernels), {},
        expected_us=computing[0], measured_us=computing[0],
    )  # fmt: skip
    found = _find(balance, {0: course, 1: course})
    assert (found is not None and found.names == ("2",) and found.origin == "all") == told


@pytest.mark.parametrize(
    ("slow", "ranks", "told"),
    [("..###", 1, True), (".....##", 1, False), ("..###", 2, False), ("#..##", 1, False), (".####", 1, False)],
)
def test_a_rank_that_computes_longer_from_a_step_on_is_told_of_few_steps(slow: str, ranks: int, told: bool) -> None:
    """A card that slows down stays slow: three steps in a row behind two usual ones are no chance. One now and then may
    be, or what all ranks do, and a single usual one may be the exception."""
    steps, late = list(map(str, range(len(slow)))), mask(slow)
    noise = 1 + 0.003 * np.random.default_rng(7).standard_normal((4, len(slow)))
    computing = 28e3 * noise
    computing[:ranks, late] *= 1.4
    whole = np.tile(computing.max(axis=0), (4, 1)) + 2e3
    zeros = np.zeros_like(computing)
    found = _find(Accounts(list(range(4)), steps, whole, computing, zeros, zeros, whole - computing, zeros, True), {})
    assert (found is not None) == told
    if found is not None:
        assert (found.origin, found.ranks, found.part) == ("rank", (0,), "compute")


@pytest.mark.parametrize(
    ("prepared_us", "named", "behind"), [(900.0, "1", True), (400e3, "2", False), (None, "2", False)]
)
def test_a_wait_is_named_after_the_step_in_which_the_host_was_busy(prepared_us, named, behind) -> None:
    """A checkpoint written after the update keeps the host in that step, and the device waits before the first kernel
    of the next one. What the host takes after it has begun the step is the step's own."""
    steps = [str(i) for i in range(6)]
    start = np.full((1, 6), 900.0)
    start[0, 2] = 400e3
    computing, zeros = np.full((1, 6), 65e3), np.zeros((1, 6))
    balance = Accounts([0], steps, computing + start, computing, start, zeros, zeros, start, True)
    if prepared_us is not None:
        balance.prepared = np.minimum(start, prepared_us)
    found = _find(balance, {})
    assert (found.names, found.behind, found.part) == ((named,), behind, "start")
    assert _usual_jitter(balance, found) == 0.0  # whatever the slow step is called, it is none of the usual ones


@pytest.mark.parametrize(
    ("prepared_us", "slow"), [(300.0, ("4", "9", "14")), (None, ("4", "5", "9", "10", "14", "15"))]
)
def test_an_evaluation_and_the_save_behind_it_are_one_slow_step(prepared_us, slow) -> None:
    """Kernels of the evaluation stand in the step's own row; while the host saves, the next step has not begun, and its
    first kernel waits: one event of 110 ms every five steps, not two of 50 and 60 ms."""
    steps = 16
    compute, start = (np.full((1, steps), each) for each in (30e3, 100.0))
    compute[0, [3, 8, 13]] += 50e3
    start[0, [4, 9, 14]] += 60e3
    none = np.zeros((1, steps))
    balance = Accounts(
        [0], [str(step) for step in range(1, steps + 1)], compute + start, compute, start, none, none, start, True
    )
    if prepared_us is not None:
        balance.prepared = np.minimum(start, prepared_us)
    found = _find(balance, {})
    assert found is not None and found.names == slow
    assert found.extra.sum() == pytest.approx(330e3, rel=0.01)
    assert (found.period == 5) == (prepared_us is not None)


@pytest.mark.parametrize(("idle", "named"), [([1, 616, 1], ("1",)), ([1, 616, 620], None), ([1, 3, 1], None)])
def test_one_stall_in_three_steps_is_no_part_of_each(idle, named) -> None:
    """The device stands still in one of three steps and not in two that are alike: that one is the exception. Of two
    that stand still nobody knows whether the third is."""
    start, computing, zeros = 1000.0 * np.array([idle]), np.full((1, 3), 199e3), np.zeros((1, 3))
    found = _find(Accounts([0], ["0", "1", "2"], computing + start, computing, start, zeros, zeros, start, True), {})
    assert (found and found.names) == named


@pytest.mark.parametrize(
    ("grown", "part"),
    [
        ((50, 0, 0), "compute"),
        ((0, 50, 0), "start"),
        ((2, 24, 24), "idle"),
        ((2, 0, 48), "host"),
        ((20, 15, 15), "mixed"),
    ],
)
def test_where_the_device_idles_alone_no_computing_grows(grown, part) -> None:
    """A pause before the first kernel and one between kernels are idle time both, whatever computing varies by."""
    late = mask("...#...#...#")
    compute, start, host = (
        np.where(late, ms * 1000.0, 0.0) + usual for ms, usual in zip(grown, (4e4, 500, 500), strict=True)
    )
    zeros = np.zeros((1, len(late)))
    steps = [str(i) for i in range(len(late))]
    whole = (compute + start + host)[None]
    found = _find(Accounts([0], steps, whole, compute[None], start[None], host[None], zeros, zeros, True), {})
    assert found is not None and found.part == part


@pytest.mark.parametrize(("calls", "part"), [((1, 2), "work"), ((1, 1), "communication")])
def test_collectives_that_only_slow_steps_hold_are_more_work(calls, part) -> None:
    """Gradients that are accumulated are reduced and applied in every fourth micro-step: nothing there is slower."""
    steps, late = [str(i) for i in range(8)], mask("...#...#")
    computing = np.tile(np.where(late, 61e3, 42e3), (2, 1))
    exposed, zeros = np.tile(np.where(late, 31e3, 0.0), (2, 1)), np.zeros((2, 8))
    flat = np.zeros(8)
    course = Course(
        tuple(steps), computing[0], flat, flat, flat, exposed[0], np.full(8, 60), {},
        collectives=np.array(calls)[late.astype(int)],
    )  # fmt: skip
    balance = Accounts([0, 1], steps, computing + exposed, computing, zeros, zeros, exposed, zeros, True)
    found = _find(balance, {0: course, 1: course})
    assert (found.origin, found.part) == ("communication", part)


@pytest.mark.parametrize(
    ("bytes_in_slow", "part"), [(320.0, "work"), (20.0, "communication"), (0.0, "communication")],
    ids=["sixteen times as much", "as much", "untold"],
)  # fmt: skip
def test_collectives_that_move_more_at_the_usual_pace_are_more_work(bytes_in_slow: float, part: str) -> None:
    """A long prompt among short ones is exchanged for longer, at the links' usual pace: nothing there is slower."""
    steps, late = [str(i) for i in range(8)], mask("...#....")
    computing, zeros = np.full((2, 8), 42e3), np.zeros((2, 8))
    exposed = np.tile(np.where(late, 32e3, 2e3), (2, 1))
    place = np.arange(8)
    moved = Exchanges(
        tuple(steps), ("g",), ("hcom_allReduce__1_0_1",), place, 0 * place, 0 * place, ("allreduce",), 0 * place,
        place * 10**6, exposed[0], exposed[0], np.zeros(8), np.where(late, bytes_in_slow, 20.0) * 1e6, zeros[0], None,
    )  # fmt: skip
    balance = Accounts([0, 1], steps, computing + exposed, computing, zeros, zeros, exposed, zeros, True)
    found = _find(balance, {}, {0: moved, 1: moved})
    assert found is not None and (found.origin, found.part) == ("communication", part)


@pytest.mark.parametrize(
    ("first_us", "origin", "ranks"), [(48e3, "rank", (1,)), (168e3, "communication", ())], ids=["later", "with them"]
)
def test_who_enters_the_first_step_later_is_told(first_us: float, origin: str, ranks: tuple[int, ...]) -> None:
    """What a rank does before its first recorded kernel is in no file; that the others alone wait is.
    Where all of them wait equally long the collective itself takes longer."""
    steps, waits = [str(i) for i in range(8)], np.full((3, 8), 2e3)
    waits[:, 0] += 120e3
    waits[1, 0] = first_us - 46e3
    computing, zeros = np.full((3, 8), 46e3), np.zeros((3, 8))
    balance = Accounts([0, 1, 2], steps, computing + waits, computing, zeros, zeros, waits, zeros, True)
    found = _find(balance, {})
    assert found is not None and (found.origin, found.ranks) == (origin, ranks)


def test_collectives_that_one_rank_does_not_wait_in_are_not_the_network() -> None:
    """Nothing tells what that rank did meanwhile, but it came last: nobody is sent to the network's counters."""
    steps, waits = [str(i) for i in range(8)], np.full((3, 8), 2e3)
    waits[[0, 2], 4] += 120e3
    computing, zeros = np.full((3, 8), 46e3), np.zeros((3, 8))
    time = computing + waits
    balance = Accounts([0, 1, 2], steps, time, computing, zeros, zeros, waits, zeros, True)
    found = _find(balance, {})
    assert found is not None and found.origin != "communication"
