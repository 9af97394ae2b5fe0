"""Numbers are shown in the units people use, with no more digits than evidence carries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.units import EXACT, MEASURED, NBSP, UNITS, show, show_apart, signed


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.7466, "ratio", "75 %"), (1500.0, "us", "1.5 ms"), (2_500_000.0, "us", "2.5 s"), (0.4, "us", "0.4 µs"),
        (17_545_200_000.0, "bytes_per_s", "18 GB/s"), (3, "count", "3"), (True, "bool", "yes"),
        ((85, 160), "list", "85, 160"), ("compute", "text", "compute"), (0.0, "us", "0 µs"),
        (123456.0, "number", "123456"), (999.9, "us", "1 ms"), (134_217_728, "bytes", "134 MB"),
        (1.047, "number", "1.05"), (2.047, "number", "2"), (1.1, "ratio", "110 %"),
        (3.2, "count", "≈ 3"), (0.3, "count", "≈ 0.3"), (12_345, "count", "12345"), (0.03, "us", "< 0.1 µs"),
    ],
)  # fmt: skip
def test_values_read_naturally(value, unit, text):
    """A microsecond count becomes milliseconds, a ratio percent, the mean of counts says that it is one."""
    assert show(value, unit).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.00037, "< 0.1 %"), (0.0, "0 %"), (0.997, "> 99 %"), (1.0, "100 %"), (0.99999, "100 %")]
)
def test_a_share_is_never_rounded_to_nothing_or_to_everything(share, text):
    """What is there although small is not 0 %, and where something is left it is not 100 %."""
    assert show(share, "ratio").replace(NBSP, " ") == text


def test_a_number_and_its_unit_stand_in_one_line():
    """A line break between 23 and ms makes both unreadable."""
    values = [show(1234.5, unit) for unit in UNITS if unit not in ("text", "bool", "list", "number", "count")]
    assert all(NBSP in value and " " not in value for value in values)


def test_what_somebody_wrote_keeps_its_digits():
    """A limit of 12.5 % is no limit of 12 or 13 %."""
    assert show(0.125, "ratio", EXACT) == f"12.5{NBSP}%"
    assert show(48_912.0, "us", MEASURED) == f"48.9{NBSP}ms"


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9), st.sampled_from(["us", "ratio", "bytes_per_s"]))
def test_values_that_differ_are_told_apart(first, second, unit):
    """A value beside its limit, or a metric before and after, must show the difference that is being talked about."""
    told = show_apart(first, second, unit)
    assert told[0] != told[1] or abs(first - second) <= 1e-5 * max(first, second)


def test_a_difference_has_its_sign():
    """Faster and slower look alike without it."""
    assert signed(-0.043, "ratio") == f"−4.3{NBSP}%"
    assert signed(1200.0, "us") == f"+1.2{NBSP}ms"


def test_a_change_by_many_times_is_told_as_how_many_times_as_much():
    """ "+54 ×" beside a time that is 55 times as long misleads; a minus is the sign, not a hyphen."""
    assert signed(54.0, "ratio") == "×\u00a055"
    assert signed(0.5, "ratio") == "+50\u00a0%"
    assert show(-25.4, "us", 3) == "−25.4\u00a0µs"


def test_what_no_digits_tell_apart_takes_no_more_than_usual():
    """A run and its twin in a database differ behind the sixth digit."""
    assert show_apart(11935.9, 11935.90001, "us", 3) == ("11.9\u00a0ms", "11.9\u00a0ms")
