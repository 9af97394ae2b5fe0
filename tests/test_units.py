"""Numbers are shown in the units people use, with no more digits than evidence carries."""

import pytest

from advisor.basics.units import show


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.7466, "ratio", "74.7 %"), (1500.0, "us", "1.5 ms"), (2_500_000.0, "us", "2.5 s"), (0.4, "us", "0.4 us"),
        (17_545_200_000.0, "bytes_per_s", "17.5 GB/s"), (3, "count", "3"), (True, "bool", "yes"),
        ((85, 160), "list", "85, 160"), ("compute", "text", "compute"), (0.0, "us", "0 us"),
        (123456.0, "number", "123456"),
    ],
)  # fmt: skip
def test_values_read_naturally(value, unit, text):
    """A microsecond count becomes milliseconds, a ratio percent."""
    assert show(value, unit) == text
