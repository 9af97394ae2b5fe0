"""Rules that were read and checked once are kept in the user's cache, so that a run parses none of them again.

An entry is plain data under the hash of everything it was made from: each file with its path, and the advisor itself.
Whatever is wrong with it, the files are read instead.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import astuple

from advisor.facts.base import FactKind
from advisor.kept import load, own_folder, program, prune, store
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


class Compiled(Struct, frozen=True):
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
    place = own_folder("rules")
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
    digest = hashlib.sha256(repr((sys.version_info, [*map(str, directories)], program())).encode())
    for path in paths:
        try:
            content = path.read_bytes() if path.stat().st_size < _LARGEST else b""
        except OSError:
            return None
        digest.update(repr((str(path), len(content))).encode() + content)
    return digest.hexdigest()


def _load(path: Path) -> Compiled | None:
    try:
        body = load(path)
        kept = None if body is None else _thaw(json.loads(body))
    except (ValueError, TypeError, LookupError, RecursionError):
        log.debug("the kept rules in %s cannot be used", path, exc_info=True)
        return None
    return kept if isinstance(kept, Compiled) else None


def _store(path: Path, made: Compiled) -> None:
    try:
        body = json.dumps(_plain(made), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError):
        log.debug("rules were not kept in %s", path, exc_info=True)
        return
    store(path, body)
    prune(path.parent, "*.json", MOST_ENTRIES)


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
    if isinstance(value, Struct):
        return astuple(value)
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
