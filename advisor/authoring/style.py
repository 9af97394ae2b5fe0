"""What no text for users may show, whatever its values: signs of an unfilled slot, of a program's own notation, of
careless composition, and words for which the glossary has another."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from advisor.basics.resources import resource
from advisor.model import LANGUAGES
from advisor.yamlfiles.document import read_document

_HAN = "\u4e00-\u9fff"
_UNITS = r"(?:ms|µs|%|[kMG]B(?:/s)?|MHz)"
_FACT = re.compile(r"(?<![\w./-])[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*(?![\w(/.])")
_PATTERNS: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "": (
        (
            "has an empty slot",
            re.compile(r"\(\s*\)|（\s*）|“”|\(\s*[,;]|[,;:]\s+[.,;]|，\s*[。；]|：\s*[。；，]|^\s*[,.;:，。]"),
        ),
        ("has a doubled space", re.compile(r"\S[ \u00a0]{2,}\S")),
        ("has a doubled unit", re.compile(rf"\d\s?{_UNITS}\s?{_UNITS}(?!\w)|%\s(?:times|倍)")),
        (
            "has a doubled mark",
            re.compile(r"([,，。；：、])\s?\1|; ;|: :|[，。；：、][,;:]|[,;:][，。；：、]|(?<!\.)\.\.(?![./])"),
        ),
        ("shows a mangled name", re.compile(r"(?<!\w)_Z[NK\d]\w{6,}")),
        ("shows brackets of a program", re.compile(r"\[\s*['\"\d]|\(\s*['\"]|\{|\}|\bText\(")),
    ),
    "en": (("has a space before a mark", re.compile(r"[a-z0-9%] [,.;:](?:\s|$)")),),
    "zh": (
        (
            "has half-width punctuation between Chinese characters",
            re.compile(rf"[{_HAN}][,;:!?][\s{_HAN}]|[{_HAN}]\.(?:\s|$)"),
        ),
        ("has half-width parentheses around Chinese", re.compile(rf"\([^()]*[{_HAN}][^()]*\)|[{_HAN}]\s?\([^()]*\)")),
        ("has a space between Chinese characters", re.compile(rf"[{_HAN}，。；：、] +[{_HAN}]")),
    ),
}


@dataclass(frozen=True)
class Style:
    """`knowledge_base/style.yaml` and the words the glossary forbids."""

    unfilled: tuple[re.Pattern[str], ...]
    plural: re.Pattern[str]
    singular: re.Pattern[str]
    instead: dict[str, tuple[tuple[re.Pattern[str], str], ...]]
    """language -> (what is not written, what is written instead)."""


@lru_cache(maxsize=1)
def style() -> Style:
    """The rules of style as data."""
    data = read_document(resource("knowledge_base", "style.yaml")).data
    terms = read_document(resource("knowledge_base", "glossary.yaml")).data
    nouns = "|".join(map(re.escape, data["nouns"]))
    plurals = "|".join(re.escape(plural) for plural in data["nouns"].values())
    named = "".join(rf"(?<!{re.escape(name)}[ \u00a0])" for name in data["named"])
    return Style(
        tuple(re.compile(pattern) for pattern in data["unfilled"]),
        re.compile(rf"(?<![\d.,/-]){named}1[ \u00a0](?:{plurals})\b"),
        re.compile(rf"(?<![\d.,/:-]){named}(?:[2-9]|\d{{2,}})[ \u00a0](?:{nouns})\b(?!-)"),
        {lang: tuple(_forbidden(terms, lang)) for lang in LANGUAGES},
    )


def _forbidden(terms: dict[str, dict[str, object]], lang: str) -> Iterator[tuple[re.Pattern[str], str]]:
    for key, entry in terms.items():
        name, banned = entry.get("name", {}), entry.get("never", {})
        assert isinstance(name, dict) and isinstance(banned, dict)
        for word in banned.get(lang, ()):
            pattern = rf"(?<!\w){word}(?!\w)" if lang == "en" else str(word)
            yield re.compile(pattern, re.IGNORECASE if pattern.isascii() else 0), str(name.get(lang, key))


def faults_of(text: str, lang: str, source: str = "", facts: Collection[str] = ()) -> Iterator[str]:
    """What is wrong with a text, each said as the rest of "the text …". What stands in its template (`source`) was
    written on purpose; only what the values brought is held against it. `facts`: ids that must not be shown."""
    known = style()
    for pattern in known.unfilled:
        for left in pattern.findall(text):
            if left not in source:
                yield f"has an unfilled slot: “{left}”"
    for what, pattern in (*_PATTERNS[""], *_PATTERNS.get(lang, ())):
        if (match := pattern.search(text)) and match[0] not in source:
            yield f"{what}: “{match[0]}”"
    for name in _FACT.findall(text):
        if name in facts:
            yield f"shows the id of a fact: “{name}”"
    if lang == "en":
        for what, pattern in (("has a plural of one", known.plural), ("has a singular of several", known.singular)):
            if match := pattern.search(text):
                yield f"{what}: “{match[0]}”"
    yield from words_of(text, lang)


def lang_of(text: str) -> str:
    """The language of a text that may be in either."""
    return LANGUAGES[1] if re.search(f"[{_HAN}]", text) else LANGUAGES[0]


def words_of(text: str, lang: str) -> Iterator[str]:
    """Words for which the glossary has another."""
    for pattern, instead in style().instead[lang]:
        if match := pattern.search(text):
            yield f"says “{match[0]}”; the glossary's word is “{instead}”"
