"""Names of C++ functions as people say them: the function's own name, without namespaces, types and arguments."""

from __future__ import annotations

import re
from functools import lru_cache

_LENGTH = re.compile(r"\d{1,4}")
_DECLARED = re.compile(r"^void \S+::\w|::\w+[<(]|::\(anonymous namespace\)::")
_LONGEST = 4096
"""Characters; a name beyond that is left alone."""


@lru_cache(maxsize=4096)
def plain_symbol(name: str) -> str:
    """The function's own name of a mangled symbol (`_ZN2at6native3addEv`: add) or of a declaration
    (`void at::native::add<float>(float*)`: add); any other name, and one that cannot be read, as it is."""
    if len(name) > _LONGEST:
        return name
    if name.startswith(("_Z", "__Z")):
        return _unmangled(name) or name
    if _DECLARED.search(name):
        return _undeclared(name) or name
    return name


def _unmangled(name: str) -> str:
    """The last of the identifiers, each of which stands after its length; anything but identifiers ends them."""
    place = name.index("_Z") + 2
    while (place < len(name) and name[place] in "NKVrLt") or name[place : place + 2] == "St":
        place += 2 if name[place : place + 2] == "St" else 1
    last = ""
    while match := _LENGTH.match(name, place):
        start, length = match.end(), int(match[0])
        word = name[start : start + length]
        if length == 0 or len(word) < length:
            return ""
        last, place = (last if word.startswith("_GLOBAL__N") else word), start + length
    return last


def _undeclared(name: str) -> str:
    """The last part of the qualified name, once brackets and what they hold are gone."""
    kept, depth = [], 0
    for index, letter in enumerate(name):
        if letter in "<([":
            depth += 1
        elif letter in ">)]" and not (letter == ">" and name[index - 1 : index] == "-"):
            depth -= 1
        elif depth == 0:
            kept.append(letter)
        if depth < 0:
            return ""
    words = [word for word in "".join(kept).split() if "::" in word]
    parts = [part for part in words[0].split("::") if part.isidentifier() and part != "operator"] if words else []
    return parts[-1] if parts and depth == 0 else ""
