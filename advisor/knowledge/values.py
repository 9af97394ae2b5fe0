"""Values as people say them in a language: numbers as `basics/units` writes them, words by
`knowledge_base/fact_words.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from advisor.basics.resources import resource
from advisor.basics.symbols import plain_symbol
from advisor.basics.units import is_whole, show
from advisor.knowledge.words import word
from advisor.model import Text
from advisor.yamlfiles.document import read_document


@lru_cache(maxsize=1)
def value_words() -> Mapping[str, Mapping[str, Text]]:
    """What the values of a fact are called, by the id of the fact and the value."""
    data = read_document(resource("knowledge_base", "fact_words.yaml")).data
    sets = {name: {str(value): Text(*said) for value, said in entry.items()} for name, entry in data["sets"].items()}
    return {fact: sets[name] for fact, name in data["facts"].items()}


def say_value(value: object, unit: str, lang: str, fact: str = "", digits: int | None = None) -> str:
    """The value in people's words: "23.7 ms", "about 3", "yes", "computation"; names from a profile as they
    are, those of C++ without namespaces and arguments.

    `fact`: whose value it is, where its words have a translation. `digits` as for `show`.
    """
    if isinstance(value, bool):
        return word(lang, f"conditions.{'yes' if value else 'no'}")
    if isinstance(value, (tuple, list)):
        said = (say_value(item, "number", lang, fact, digits) for item in value)
        return word(lang, "values.separator").join(said) or word(lang, "values.nothing")
    if isinstance(value, str):
        known = value_words().get(fact, {}).get(value)
        return known.get(lang) if known is not None else plain_symbol(value)
    if unit == "count" and isinstance(value, float) and not is_whole(value):
        rounded = round(value)
        return word(lang, "values.about", count=rounded) if rounded else word(lang, "values.less_than_one")
    told = show(value, unit, digits)
    return word(lang, "values.more_than", value=told[2:]) if told.startswith(">") and unit == "ratio" else told
