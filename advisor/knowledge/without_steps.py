"""Words about a recording in which nothing marks steps: nothing is "per step", but of the recording (`without_steps` in
reports/locales) or, in the data pipeline, of a batch (`of_batches`)."""

from __future__ import annotations

import re
from functools import cache

from advisor.knowledge.words import words
from advisor.model import Text


def reworded(text: Text, into: str = "without_steps") -> Text:
    """The text without steps."""
    return Text(_in("en", text.en, into), _in("zh", text.zh, into))


def _in(lang: str, text: str, into: str) -> str:
    for pattern, instead in _patterns(lang, into):
        text = pattern.sub(instead, text)
    return text


@cache
def _patterns(lang: str, into: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(sought), instead) for sought, instead in words(lang)[into].values())
