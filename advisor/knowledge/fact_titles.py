"""What people call a fact (`knowledge_base/fact_titles.yaml`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from advisor.basics.resources import document
from advisor.knowledge.without_steps import reworded
from advisor.knowledge.words import word
from advisor.model import Text


@lru_cache(maxsize=1)
def fact_titles() -> dict[str, Text]:
    """The titles in both languages by the id of the fact."""
    data = document("knowledge_base", "fact_titles.yaml")
    return {name: Text(*titles) for name, titles in data.items()}


_STEPLESS: ContextVar[bool] = ContextVar("stepless", default=False)


@contextmanager
def titles_for(has_steps: bool) -> Iterator[None]:
    """Titles inside speak of the recording where nothing in it marks steps."""
    token = _STEPLESS.set(not has_steps)
    try:
        yield
    finally:
        _STEPLESS.reset(token)


def titles_of(names: Iterable[str], lang: str) -> str:
    """The titles of these facts in a row."""
    return word(lang, "values.separator").join(dict.fromkeys(fact_title(name, lang) for name in names))


def fact_title(name: str, lang: str) -> str:
    """The title of a fact; its id where it has none (facts of plugins, rare ones)."""
    title = fact_titles().get(name)
    if title is None:
        return name
    return as_recorded(title).get(lang)


def as_recorded(text: Text) -> Text:
    """The text as the report at hand speaks: of the recording where nothing in it marks steps."""
    return reworded(text) if _STEPLESS.get() else text
