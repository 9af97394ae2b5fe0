"""Finds `rules/`, `reports/` and `knowledge_base/` in a checkout and in an installed package alike."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from advisor.kept import load, own_folder, prune, store

MOST_DOCUMENTS = 300
"""Parsed documents kept, the latest: those of a few versions."""
_FORM = "msgpack"

_PACKAGE = Path(__file__).resolve().parents[1]


def resource(*parts: str) -> Path:
    """Path of a shipped folder or file, e.g. `resource("reports", "locales", "en")`."""
    installed = _PACKAGE.joinpath("_data", *parts)
    return installed if installed.exists() else _PACKAGE.parent.joinpath(*parts)


def document(*parts: str) -> Any:
    """A shipped YAML file as plain data: as it was parsed once where its content is the same."""
    content = resource(*parts).read_bytes()
    place = own_folder("documents")
    entry = place and place / f"{hashlib.sha256(content).hexdigest()}.{_FORM}"
    body = load(entry) if entry else None
    if body is not None:
        return msgspec.msgpack.decode(body)
    import yaml

    # the parser in C, where it was built, takes a tenth of the time
    made = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if entry:
        store(entry, msgspec.msgpack.encode(made))
        prune(entry.parent, f"*.{_FORM}", MOST_DOCUMENTS)
    return made
