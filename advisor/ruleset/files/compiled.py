"""Rules that were read and checked once are kept in the user's cache, so that a run parses none of them again.

An entry is plain data under the hash of everything it was made from: each file with its path, and the advisor itself.
It lies in the user's own folder (`$XDG_CACHE_HOME/advisor/rules`, else `~/.cache/…`), is used only where nobody else
could have written it, and can be deleted at any time. Whatever is wrong with it, the files are read instead.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from advisor.facts.base import FactKind
from advisor.knowledge.remedy import RemedySpec, remedy_files
from advisor.knowledge.thresholds import thresholds_path
from advisor.model import Confidence, Direction, Severity, Text, Verify
from advisor.ruleset.files.found import rule_files
from advisor.ruleset.language import conditions, expression
from advisor.ruleset.rule import Doubt, Explains, Ladder, RemedyUse, Rule, SavingSpec, Threshold
from advisor.yamlfiles.document import reading_each_once
from advisor.yamlfiles.faults import LintError

log = logging.getLogger("advisor")

MOST_ENTRIES = 32
"""Entries kept, the latest: one per version and set of packs in use."""
_LARGEST = 1 << 26
MOST_REMEMBERED = 4
"""Sets of rules that a process keeps in its memory too: a service judges many profiles by the same ones."""
_REMEMBERED: dict[str, Compiled] = {}


@dataclass(frozen=True)
class Compiled:
    """Rules and remedies of some folders as written, and the errors of their files."""

    rules: tuple[Rule, ...] = ()
    remedies: tuple[RemedySpec, ...] = ()
    errors: tuple[LintError, ...] = ()
    mentions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Id of a rule -> names of all facts that it mentions, with its texts and remedies: looked for once."""


_KINDS: tuple[type, ...] = (
    Compiled, Rule, RemedySpec, LintError, Text, Verify, Severity, Direction, Confidence, Threshold, Ladder, Doubt,
    Explains, SavingSpec, RemedyUse, conditions.Leaf, conditions.All, conditions.AnyOf, conditions.Negation,
    conditions.CountOf, conditions.FindingIs, expression.Literal, expression.Param, expression.Name, expression.FactRef,
    expression.Negative, expression.Arithmetic, expression.Compare, expression.Logic, expression.Not, expression.Call,
    expression.Items,
)  # fmt: skip
_PLACES = {kind: place for place, kind in enumerate(_KINDS)}


def compiled(directories: Sequence[Path], catalogue: Mapping[str, FactKind] | None = None) -> Compiled:
    """The rules and remedies of these folders, checked against the catalogue: from the cache where they are the same
    and the catalogue is the advisor's own (None)."""
    from advisor.facts.registry import has_extractors

    if catalogue is not None or has_extractors():
        return _read(directories, catalogue)
    key = _key(directories)
    if key is None:
        return _read(directories, None)
    if key in _REMEMBERED:
        return _REMEMBERED[key]
    place = _own_folder()
    made = None if place is None else _load(place / f"{key}.json")
    if made is None:
        made = _read(directories, None)
        if _key(directories) != key:  # a file changed while it was read
            return made
        if made.errors:  # what is refused is read anew, for somebody is about to mend it
            return made
        if place is not None:
            _store(place / f"{key}.json", made)
    _remember(key, made)
    return made


def _remember(key: str, made: Compiled) -> None:
    """Keeps the latest in memory. Nobody changes them: what configurations tune are copies."""
    _REMEMBERED[key] = made
    while len(_REMEMBERED) > MOST_REMEMBERED:
        _REMEMBERED.pop(next(iter(_REMEMBERED)), None)


@reading_each_once()
def _read(directories: Sequence[Path], catalogue: Mapping[str, FactKind] | None) -> Compiled:
    """Rules that refer to what does not exist are errors like those that cannot be read: none of them is judged."""
    from advisor.facts.registry import catalogue as measured
    from advisor.knowledge.remedies import load_remedies
    from advisor.ruleset.files.reading import read_rules
    from advisor.ruleset.files.references import References

    catalogue = measured() if catalogue is None else catalogue
    rules, errors = read_rules(directories, catalogue)
    remedies, faults = load_remedies(directories)
    references = References(catalogue, remedies, rules)
    lost = {rule.id: [e for e in references.faults_of(rule) if e.level == "error"] for rule in rules}
    wrong = [error for error in (*errors, *faults) if error.level == "error"]
    wrong += [error for found in lost.values() for error in found]
    whole = tuple(rule for rule in rules if not lost[rule.id])
    mentions = {rule.id: tuple(sorted(rule.uses_facts(remedies))) for rule in whole}
    return Compiled(whole, tuple(remedies.values()), tuple(wrong), mentions)


def _key(directories: Sequence[Path]) -> str | None:
    """The hash of all that decides what is read; None where a file cannot be read, which reading will tell."""
    paths = [*(path for folder in directories for path in rule_files(folder)), *remedy_files(directories)]
    paths.append(thresholds_path())
    digest = hashlib.sha256(repr((sys.version_info, [*map(str, directories)], _program())).encode())
    for path in paths:
        try:
            content = path.read_bytes() if path.stat().st_size < _LARGEST else b""
        except OSError:
            return None
        digest.update(repr((str(path), len(content))).encode() + content)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _program() -> tuple[tuple[str, int, int], ...]:
    """The advisor's own files: with another version the same rule may mean something else."""
    root = Path(__file__).parents[2]
    found: list[tuple[str, int, int]] = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                path = f"{folder}/{name}"
                status = os.stat(path)  # noqa: PTH116 - hundreds of files: a Path for each takes as long as the rest
                found.append((path, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def _own_folder() -> Path | None:
    """The folder of the cache, made where it is absent; None where it is not the user's alone, or not to be had."""
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME") or "")
        place = (named if named.is_absolute() else Path.home() / ".cache") / "advisor" / "rules"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place if _is_own(place.lstat(), stat.S_ISDIR) else None
    except (OSError, RuntimeError):
        return None


def _is_own(status: os.stat_result, kind: Any) -> bool:
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return bool(kind(status.st_mode)) and mine and not (os.name == "posix" and status.st_mode & 0o022)


def _load(path: Path) -> Compiled | None:
    try:
        if not _is_own(path.lstat(), stat.S_ISREG):
            return None
        digest, _, body = path.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        kept = _thaw(json.loads(body))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        log.debug("the kept rules in %s cannot be used", path, exc_info=True)
        return None
    return kept if isinstance(kept, Compiled) else None


def _store(path: Path, made: Compiled) -> None:
    """Writes an entry whole or not at all; a cache that cannot be written is none."""
    temporary = ""
    try:
        body = json.dumps(_plain(made), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        Path(temporary).replace(path)
        temporary = ""
        _prune(path.parent)
    except (OSError, ValueError, TypeError, RecursionError):
        log.debug("rules were not kept in %s", path, exc_info=True)
    finally:
        if temporary:
            with suppress(OSError):
                Path(temporary).unlink()


def _prune(place: Path) -> None:
    entries = sorted(place.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in entries[MOST_ENTRIES:]:
        with suppress(OSError):
            path.unlink()


def _plain(value: Any) -> Any:
    """As JSON: objects are lists that begin with their kind's number. Raises TypeError for what rules do not hold."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Path):
        return ["path", str(value)]
    if type(value) is tuple:
        return ["tuple", *map(_plain, value)]
    return [_PLACES[type(value)], *map(_plain, _parts(value))] if type(value) in _PLACES else _refuse(value)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Enum):
        return (value.value,)
    return value if isinstance(value, tuple) else (getattr(value, field.name) for field in fields(value))


def _refuse(value: object) -> Any:
    raise TypeError(f"rules hold no {type(value).__name__}")


def _thaw(data: Any) -> Any:
    """The value that `_plain` wrote. Only the kinds listed here are ever made."""
    if type(data) is dict:
        return {key: _thaw(each) for key, each in data.items()}
    if type(data) is not list:
        return data
    kind, *parts = data
    if kind == "path":
        return Path(parts[0])
    values = [_thaw(each) if type(each) in (list, dict) else each for each in parts]
    return tuple(values) if kind == "tuple" else _KINDS[kind](*values)
