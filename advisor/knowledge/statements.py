"""The documents' statements, and the facts and checks that encode them (knowledge_base/)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from advisor.basics.resources import document as read
from advisor.basics.resources import resource
from advisor.model import LANGUAGES, Text


class Statement(Struct, frozen=True):
    """One thing the documents tell an engineer to look at, conclude or do. `checks` are dotted paths of functions."""

    id: str
    document: str
    section: str
    direction: str
    kind: str
    text: Text
    facts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()


def document(*parts: str) -> Any:
    """A YAML file of the knowledge base, as it stands."""
    return read("knowledge_base", *parts)


@lru_cache(maxsize=1)
def statements() -> dict[str, Statement]:
    """Every statement by id, in order. Raises ValueError where an id stands twice."""
    found: dict[str, Statement] = {}
    for path in sorted(resource("knowledge_base", "statements").glob("*.yaml")):
        for entry in document("statements", path.name):
            encoded = entry.get("encoded_by", [])
            statement = Statement(
                entry["id"], entry["document"], entry["section"], entry["direction"], entry["kind"],
                Text(entry["text"]["en"], entry["text"]["zh"]),
                tuple(item["fact"] for item in encoded if "fact" in item),
                tuple(item["check"] for item in encoded if "check" in item),
            )  # fmt: skip
            if statement.id in found:
                raise ValueError(f"{path.name}: a second {statement.id}")
            found[statement.id] = statement
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def documents() -> dict[str, dict[str, Any]]:
    """The documents by the word that references use."""
    return dict(document("documents.yaml"))


@lru_cache(maxsize=1)
def _sections() -> dict[tuple[str, str], Text]:
    """(document, the section's name in either language) -> its name in both."""
    return {
        (name, section[lang]): Text(section["en"], section["zh"])
        for name, entry in documents().items()
        for section in entry.get("sections", ())
        for lang in LANGUAGES
    }


def cited(reference: Mapping[str, str]) -> tuple[Text, Text]:
    """(document, section) of a rule's reference as readers know them; as written where the document is none of ours."""
    name, section = str(reference.get("document") or ""), str(reference.get("section") or "")
    title = documents().get(name, {}).get("title", {"en": name, "zh": name})
    return Text(title["en"], title["zh"]), _sections().get((name, section), Text(section, section))


@lru_cache(maxsize=1)
def other_tools() -> dict[str, Any]:
    """What other tools check, and which rules of ours do the same or why none does."""
    return dict(document("other_tools.yaml"))
