"""Words about a recording in which nothing marks steps (`without_steps` in reports/locales): nothing is "per step"."""

from __future__ import annotations

import re
from functools import cache

from advisor.knowledge.words import words
from advisor.model import Text


def reworded(text: Text) -> Text:
    """The text without steps."""
    return Text(_in("en", text.en), _in("zh", text.zh))


def _in(lang: str, text: str) -> str:
    for pattern, instead in _patterns(lang):
        text = pattern.sub(instead, text)
    return text


@cache
def _patterns(lang: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(sought), instead) for sought, instead in words(lang)["without_steps"].values())
