"""Messages about files and arguments, and the words of `--help`, in the language of the user
(`knowledge_base/messages.yaml`, `help.yaml`).

They are written in English where they arise, stand so in JSON, and are translated where they are shown.
"""

from __future__ import annotations

import re
from functools import lru_cache

from advisor.basics.errors import AdvisorError
from advisor.basics.resources import resource
from advisor.knowledge.words import fill, word
from advisor.model import LANGUAGES, Text
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import LintError

_SLOT = re.compile(r"\{(\d+)\}")
_FILES = ("messages.yaml", "help.yaml")
_DEEPEST = 3
"""Messages within messages."""


@lru_cache(maxsize=1)
def _translations() -> tuple[dict[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    """Messages without values as they are, and those with values as patterns, the most telling first."""
    plain, patterns = {}, []
    entries = [entry for name in _FILES for entry in read_document(resource("knowledge_base", name)).data.items()]
    for english, chinese in entries:
        if not _SLOT.search(english):
            plain[english] = chinese
            continue
        seen: set[str] = set()
        pattern = ""
        for index, part in enumerate(_SLOT.split(english)):
            named = f"(?P=s{part})" if part in seen else f"(?P<s{part}>.*?)"
            pattern += re.escape(part) if index % 2 == 0 else named
            seen |= {part} if index % 2 else set()
        patterns.append((len(_SLOT.sub("", english)), re.compile(pattern, re.DOTALL), chinese))
    patterns.sort(key=lambda entry: -entry[0])
    return plain, tuple((pattern, chinese) for _, pattern, chinese in patterns)


def translated(message: str, lang: str, depth: int = 0) -> str:
    """The message in this language; as it is where nobody translated it."""
    if lang == LANGUAGES[0] or depth > _DEEPEST:
        return message
    plain, patterns = _translations()
    if message in plain:
        return plain[message]
    for pattern, chinese in patterns:
        if (match := pattern.fullmatch(message)) is not None:
            values = {name[1:]: translated(value, lang, depth + 1) for name, value in match.groupdict().items()}
            return fill(chinese, lang, values)
    return message


def in_both(message: str) -> Text:
    """The message in both languages."""
    return Text(*(translated(message, lang) for lang in LANGUAGES))


def told(error: AdvisorError, lang: str) -> str:
    """The error with its place and hint, as `str(error)` has them in English."""
    if lang == LANGUAGES[0]:
        return str(error)
    text = translated(error.message, lang)
    text = word(lang, "errors.placed", place=error.place, message=text) if error.place else text
    return word(lang, "errors.hinted", message=text, hint=translated(error.hint, lang)) if error.hint else text


def told_fault(error: LintError, lang: str) -> str:
    """A defect of a rule file with its place and hint, as `str(error)` has them in English."""
    message = translated(error.message, lang)
    if error.level != "error":
        message = word(lang, "errors.placed", place=word(lang, f"fault_levels.{error.level}"), message=message)
    text = word(lang, "errors.placed", place=error.place, message=message)
    return word(lang, "errors.hinted", message=text, hint=translated(error.hint, lang)) if error.hint else text
