"""Words in both languages."""

from __future__ import annotations

import pytest

from advisor.basics.units import rank_list
from advisor.model import Evidence, Remedy, Saving, Subject, Text
from advisor.render.conditions import grouped, line, standing
from advisor.render.escaping import first_sentences
from advisor.render.wording import brief_gain, change, hangs_on_absent, where


@pytest.mark.parametrize(
    ("condition", "unit", "text"),
    [
        ("> 0.10", "ratio", "above 10 %"),
        (">= 5000", "us", "at least 5 ms"),
        ("< 1e10", "bytes_per_s", "below 10 GB/s"),
        ("== 0", "count", "is 0"),
        (">= 80 %", "ratio", "at least 80 %"),
        ("> 1.42 ms ($gain * pipeline_op.step_us)", "us", "above 1.42 ms"),
        ("> 1.48 ms ($gain * a.step_us), >= 0 µs ($b * or_else(a.b, 0))", "us", "above 1.48 ms, at least 0 µs"),
        ("lost = 76.3 % > 10 %", "ratio", ""),
        ("or_else(queue.host_empty_share, 1) = 100 % >= 30 %", "ratio", "at least 30 %"),
        ("or_else(rank.extra_work_us, 0) = 0 µs < 5.24 ms ($more * rank.computing_excess_us)", "us", ""),
        ("odd(a, b)", "us", ""),
        ("not collected", "us", ""),
        ("", "us", ""),
    ],
)  # fmt: skip
def test_a_condition_that_held_is_said_as_it_held(condition, unit, text):
    """What had to be small is told as small: turned round it would read as a demand for more of it. A quantity that has
    no name says nothing to the reader."""
    assert standing(Evidence("a.b", 1.0, unit, condition), "en").replace("\xa0", " ") == text


def test_a_computed_limit_is_told_apart_from_the_value():
    """Of 21.98 GB/s below 22.41 GB/s two digits tell nothing."""
    measured = Evidence("a.b", 21.98e9, "bytes_per_s", "< 22407659504.4 ($slower * a.c)")
    assert standing(measured, "en").replace("\xa0", " ") == "below 22.4 GB/s"


@pytest.mark.parametrize(
    "condition",
    [
        "pattern = scattered != until",
        "== scattered",
        "!= once",
        "in [scattered, once]",
        "pattern = scattered in [once]",
    ],
)
def test_a_word_says_itself(condition):
    """Which word a rule asked for, and which not, is the rule's own matter: `explain` tells it."""
    assert standing(Evidence("step.slow_pattern", "scattered", "text", condition), "en") == ""


def test_among_which_words_a_name_had_to_be_is_not_said_of_a_number_beside_it():
    """The clause of one name about words leaves that of the other about steps as it is."""
    count = Evidence(
        "step.slow_count", 4, "count", "part = host in [start, host, idle], part = host != start, seen = 4 > 3"
    )
    assert line(count, (count,), "en") == "4 (above 3)"


def test_a_quantity_above_its_limit_is_the_symptom_and_the_rest_points_to_the_cause():
    """Readers look for what is wrong first; what rules other causes out is another list."""
    share = Evidence("rank.computing_excess_share", 0.21, "ratio", ">= 0.03")
    more = Evidence("rank.extra_work_us", 0.0, "us", "or_else(rank.extra_work_us, 0) = 0 µs < 5.24 ms ($more * a.b)")
    busiest = Evidence("stage.is_busiest", True, "bool", "is true")
    beside = Evidence("rank.computing_excess_us", 10.0, "us")
    rest = grouped((more, busiest, share, beside))
    assert (rest.symptoms, rest.grounds, rest.context) == ((share,), (more, busiest), (beside,))
    assert line(share, (share,), "en") == "21\xa0% (limit 3\xa0%)"
    assert line(more, (share, more), "en") == "0\xa0µs (below 5.24 ms)"
    assert line(busiest, (share, busiest), "zh") == "是"


def test_a_quantity_below_its_limit_is_the_symptom_where_none_is_above():
    """A slow link is told by a bandwidth that is too low."""
    slow = Evidence("link.bandwidth_ratio", 0.4, "ratio", "< 0.7")
    peers = Evidence("link.peer_count", 7, "count", ">= 3")
    assert grouped((peers, slow)).symptoms == (slow,)
    assert line(slow, (peers, slow), "en") == "40\xa0% (limit 70\xa0%)"


def test_texts_are_shortened_at_the_ends_of_sentences():
    """Half a sentence helps nobody."""
    assert first_sentences("One is done. Two is longer than that.", 20) == "One is done. …"
    assert first_sentences("第一句话。第二句话更长一些。", 8) == "第一句话。 …"
    assert first_sentences("No end in sight here", 5) == "No end in sight here"


def test_subjects_and_ranks():
    """A thousand ranks are named in a few characters."""
    assert rank_list(tuple(range(1024))) == "0-1023"
    assert rank_list(tuple(range(0, 40, 2))) == "0, 2, 4, 6, 8, 10, … (20)"
    assert where(Subject("stage", "1", (4, 5, 6, 7)), "en") == "stage 1 (ranks 4-7)"
    assert where(Subject("rank", "3", (3,)), "zh") == "rank 3"


def test_a_changed_parameter_is_shown_with_both_values():
    """Whoever acts on it wants to see what it is now."""
    remedy = Remedy("a", Text("", ""), Text("", ""), parameter="workers", current=2, proposed=6)
    assert change(remedy) == "workers: 2 → 6"


def test_a_finding_about_all_ranks_of_a_host_names_them():
    """Its id is the first of them; people want to know which."""
    assert where(Subject("rank", "8", tuple(range(8, 16))), "en") == "ranks 8-15"
    assert where(Subject("link", "8-*", tuple(range(8, 16))), "en") == "link 8-* (ranks 8-15)"
    assert where(Subject("link", "1-2", (1, 2)), "en") == "link 1-2"


def test_sentences_that_fit_keep_the_blanks_between_them():
    """A no-break space within a sentence does not glue it to the one before."""
    text = "It takes 30\u00a0% of the time. Its unit is 5\u00a0% busy. More follows here."
    assert first_sentences(text, 50) == "It takes 30\u00a0% of the time. Its unit is 5\u00a0% busy. …"
    assert first_sentences("它占30\u00a0%。最繁忙。后面还有。", 12) == "它占30\u00a0%。最繁忙。 …"
    assert first_sentences("A first sentence that is too long. More.", 5) == "A first sentence that is too long. …"


def test_one_measure_of_several_ranks_says_whose_each_is():
    """A finding about ranks 1 and 3 rests on the same fact twice; two numbers under one title would contradict."""
    first = Evidence("rank.lateness_share", 0.22, "ratio", ">= 0.03", Subject("rank", "1", (1,)))
    other = Evidence("rank.lateness_share", 0.15, "ratio", ">= 0.03", Subject("rank", "3", (3,)))
    assert line(other, (first, other), "en") == "15\xa0%, rank 3 (limit 3\xa0%)"
    assert line(other, (other,), "en") == "15\xa0% (limit 3\xa0%)"


@pytest.mark.parametrize(
    ("sure", "told"),
    [(3_000.0, "; more than 3 ms only if the ranks without a profile have the same cause"),
     (0.0, "; only if the ranks without a profile have the same cause"), (14_000.0, "")],
)  # fmt: skip
def test_what_hangs_on_ranks_without_a_profile_is_told_in_one_line(sure, told):
    """The account of the step counts 3 ms of it: two numbers of one thing are explained wherever they stand."""
    saving = Saving(14_000.0, 0.1, Text("", ""), kind="upper_bound", without_absent_us=sure, after_others_us=sure)
    assert brief_gain(saving, "−").en.replace("\N{NO-BREAK SPACE}", " ") == f"up to −14 ms (10 %{told})"
    assert bool(hangs_on_absent(saving, "zh")) == bool(told)


@pytest.mark.parametrize(
    ("after", "told"), [(13_000.0, "; 13 ms after the findings above are repaired"), (3_000.0, "")]
)
def test_what_another_cause_hides_most_of_is_told_in_one_line(after, told):
    """Its severity is that of what it gives then: "high" beside 2 % would seem out of place."""
    saving = Saving(2_200.0, 0.019, Text("", ""), after_others_us=after)
    assert brief_gain(saving, "−").en.replace("\N{NO-BREAK SPACE}", " ") == f"−2.2 ms (1.9 %{told})"
