"""What a mutation is, and the list of all of them.

`effect` says what a mutant may change. SAME: the content means what it meant, so must the report. LESS: evidence was
lost or spoilt; nothing new may be claimed, and where facts changed a problem names the file. OTHER: the file is a
different, believable measurement; only robustness is asked for. MEANING: well-formed numbers that cannot be true, to
be told; nothing new is claimed with more than low confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

SAME, LESS, OTHER, MEANING = "same", "less", "other", "meaning"

Apply = Callable[[Path, Random], str | None]
"""apply(file or folder to change, draw) -> what was done, None where it cannot be done there."""


@dataclass(frozen=True)
class Mutation:
    """One way to damage a file (`suffixes`; empty: any) or, with `whole`, a profile folder."""

    name: str
    effect: str
    apply: Apply
    suffixes: tuple[str, ...] = ()
    whole: bool = False


MUTATIONS: dict[str, Mutation] = {}


def mutation(name: str, effect: str, *suffixes: str, whole: bool = False) -> Callable[[Apply], Apply]:
    """Registers a function as a mutation; names look like `family.what`."""

    def register(apply: Apply) -> Apply:
        MUTATIONS[name] = Mutation(name, effect, apply, suffixes, whole)
        return apply

    return register


def replace_file(path: Path, data: bytes) -> None:
    """Writes a new file under the name: the original may be a link to a shared one."""
    path.unlink()
    path.write_bytes(data)
