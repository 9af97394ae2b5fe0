"""Names of kernels are judged by their words, once for all that only numbers tell apart."""

from __future__ import annotations

import re

import pytest

from advisor.facts.data.getnext import _GETNEXT
from advisor.facts.device.kernel_time import _COLLECTIVE, _COMMUNICATION_NAME
from advisor.facts.operators.kinds import _FUSED_UPDATE
from advisor.facts.recording.limits import _document
from advisor.sources.streams.trace import _RARE, COPIES_BACK, SYNCHRONISES

WORK = ("training", "inference", "gradient_exchange", "mindspore")
PATTERNS = [
    *(pattern for work in WORK for pattern in _document()["work"][work]),
    *(each.pattern for each in (_GETNEXT, _COLLECTIVE, _COMMUNICATION_NAME, _FUSED_UPDATE)),
    *(each.pattern for each in (_RARE, COPIES_BACK, SYNCHRONISES)),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_work_is_told_by_a_number(pattern):
    """A word with a number of its own (fp16) would be sought in names whose numbers are another's."""
    assert not re.search(r"[0-9]|\\d(?!\+)", pattern)
