"""The words for users in both languages (`reports/locales/<language>/*.yaml`), asked for by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from advisor.basics.resources import document, resource
from advisor.model import LANGUAGES, Text

_SLOT = re.compile(r"\{(\w+)\}")


@cache
def words(lang: str) -> dict[str, dict[str, Any]]:
    """All words of a language by group, those of every file of its folder; English where the language is unknown."""
    found: dict[str, dict[str, Any]] = {}
    folder = ("reports", "locales", lang if lang in LANGUAGES else "en")
    for path in sorted(resource(*folder).glob("*.yaml")):
        for group, entries in document(*folder, path.name).items():
            found.setdefault(group, {}).update(entries)
    return found


def word(lang: str, key: str, **slots: object) -> str:
    """The word under "group.name" with its slots filled; the name itself where the locale has none (a plugin's own
    direction, say). A slot that is a `Text` is said in the same language."""
    group, _, name = key.partition(".")
    return fill(str(words(lang)[group].get(name, name)), lang, slots)


def fill(text: str, lang: str, slots: Mapping[str, object]) -> str:
    """The text with its {slots} filled, in one pass: what stands in a value is never taken for a slot."""

    def value_of(match: re.Match[str]) -> str:
        value = slots.get(match[1], match[0])
        return value.get(lang) if isinstance(value, Text) else str(value)

    return _SLOT.sub(value_of, text)


def both(key: str, **slots: object) -> Text:
    """The word under "group.name" in both languages."""
    return Text(*(word(lang, key, **slots) for lang in LANGUAGES))
