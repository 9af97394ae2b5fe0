"""Extractors: facts from files of your own (logs with tokens per second, a scheduler's metadata, loads of experts).

    from advisor.facts.extractors import Context, Extractor, fact, kind

    def measure(context):
        for path in context.files("train*.log"):
            yield fact("acme.tokens_per_s", context.run, rate_of(path), context.source(path, "tokens/s"))

    EXTRACTOR = Extractor("acme", (kind("acme.tokens_per_s", "per_s", "run", "tokens per second"),), measure)

An extractor is Python that runs with your rights. It is loaded only from a file that the configuration names
(`extractors = ["extractor.py"]`) in a folder that was trusted or allowed (see `advisor/trust.py`), or from an installed
package (entry point of the group `advisor.extractors` that gives an `Extractor`), never from a pack of rules. Its facts
join the catalogue: units, scopes and provenance are checked as for any other. What goes wrong in it is told (`doctor`,
`problems` of the report) and ends nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from advisor.basics.errors import RuleError
from advisor.facts.base import FactKind, FactSet, Family, Run, kind
from advisor.facts.declared import kind_fault
from advisor.facts.registry import add_families, families
from advisor.model import RUN, Fact, Parallelism, Problem, Source, Subject, Value
from advisor.yamlfiles.faults import LintError

__all__ = ["Context", "Extractor", "fact", "kind", "load_extractors"]

ENTRY_POINTS = "advisor.extractors"
EXTRACTOR = "extractor"
"""Its family and its problems are named "extractor acme"."""
TIMEOUT_S = 60.0
"""An extractor that is not done by then is left behind."""
MOST_FACTS = 100_000
"""Further facts of an extractor are left out."""

T = TypeVar("T")


class Extractor(Struct, frozen=True):
    """`measure(context)` yields facts of `kinds`, whose names all start with `name` and a dot.

    `uses` names built-in facts that must have been measured before, to be read from `context.facts`.
    """

    name: str
    kinds: tuple[FactKind, ...]
    measure: Callable[[Context], Iterable[Fact]]
    uses: tuple[str, ...] = ()


class Context(Struct, frozen=True):
    """What an extractor is given: the profile's folders and ranks, and the facts measured before it."""

    folders: tuple[Path, ...]
    ranks: tuple[int, ...]
    world_size: int | None
    parallelism: Parallelism
    facts: FactSet
    run: Subject = RUN

    def files(self, pattern: str) -> list[Path]:
        """Files below the profile's folders that match a glob pattern, such as "**/train*.log", sorted."""
        return sorted({path for folder in self.folders for path in folder.glob(pattern) if path.is_file()})

    def rank(self, number: int) -> Subject:
        """The subject that stands for a global rank."""
        return Subject("rank", str(number), (number,))

    def source(self, path: Path, *columns: str, steps: Iterable[str] = ()) -> Source:
        """Where a fact was read, for its evidence."""
        inside = next((folder for folder in self.folders if path.is_relative_to(folder)), path.parent)
        return Source(path.relative_to(inside).as_posix(), columns, tuple(steps))

    def value(self, name: str, subject: Subject = RUN) -> Value | None:
        """A fact measured before, None where it was not."""
        return self.facts.value(name, subject)


def fact(name: str, subject: Subject, value: Value, *sources: Source, samples: int = 1) -> Fact:
    """A fact. Leave out what could not be measured; NaN and infinities are left out for you."""
    return Fact(name, subject, value, samples, sources)


def load_extractors(entries: Sequence[str]) -> list[LintError]:
    """Adds the facts of these extractors and of all installed ones to the catalogue; returns what is wrong with them.

    An entry is a file, or the name of an entry point, which must then exist.
    """
    installed = _installed()
    faults: list[LintError] = []
    added: dict[str, Family] = {}
    wanted = [*installed, *(entry for entry in entries if entry not in installed)]
    for entry in dict.fromkeys(wanted):
        try:
            for extractor in bounded(lambda entry=entry: _load(entry, installed), entry):  # type: ignore[misc]
                family = _family(extractor, added)
                added[family.name] = family
        except RuleError as error:
            faults.append(LintError(entry, 0, f"the extractor cannot be used: {error.message}", error.hint, "warning"))
    add_families(added.values())
    return faults


def _installed() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _load(entry: str, installed: Mapping[str, Any]) -> list[Extractor]:
    if entry in installed:
        found = [installed[entry].load()]
    elif Path(entry).is_file():
        names: dict[str, Any] = {"__name__": f"advisor_extractor_{Path(entry).stem}", "__file__": entry}
        exec(compile(Path(entry).read_text(encoding="utf-8"), entry, "exec"), names)
        found = [value for value in names.values() if isinstance(value, Extractor)]
    else:
        raise RuleError("there is no such file and no such entry point", hint=f"entry points: {', '.join(installed)}")
    if not found or not all(isinstance(each, Extractor) for each in found):
        raise RuleError("it holds no Extractor", hint="write EXTRACTOR = Extractor('acme', (kind(…),), measure)")
    return found


def _family(extractor: Extractor, added: Mapping[str, Family]) -> Family:
    """The extractor as a family of facts. Raises RuleError where its declaration is wrong."""
    known = {each.name: family.name for family in families(added=False).values() for each in family.kinds}
    prefixes = {name.partition(".")[0] for name in known}
    if extractor.name in prefixes or f"{EXTRACTOR} {extractor.name}" in added or not extractor.name.isidentifier():
        raise RuleError(f"the name {extractor.name!r} is taken or no identifier", hint="use one of your own: acme")
    for each in extractor.kinds:
        wrong = (
            "its name does not start with the extractor's" if not each.name.startswith(f"{extractor.name}.")
            else kind_fault(each)
        )  # fmt: skip
        if wrong:
            raise RuleError(f"{each.name}: {wrong}", hint="kind('acme.tokens_per_s', 'per_s', 'run', 'what it means')")
    unknown = [name for name in extractor.uses if name not in known]
    if unknown:
        raise RuleError(f"uses: there is no fact {unknown[0]!r}", hint="`advisor facts list` names all facts")
    after = tuple(dict.fromkeys(known[name] for name in extractor.uses))
    name = f"{EXTRACTOR} {extractor.name}"
    return Family(name, extractor.kinds, partial(_measure, extractor), after=after, built_in=False)


def _measure(extractor: Extractor, run: Run, facts: FactSet) -> Iterator[Fact]:
    profile = run.profile
    folders = tuple(dict.fromkeys(rank.base for rank in profile.ranks)) or (Path(profile.path),)
    folders = tuple(folder if folder.is_dir() else folder.parent for folder in folders)
    ranks = tuple(sorted(rank.rank for rank in profile.ranks))
    context = Context(folders, ranks, profile.world_size, profile.parallelism, facts)
    try:
        found = bounded(lambda: list(islice(extractor.measure(context), MOST_FACTS)), extractor.name)
    except RuleError as error:
        profile.problems.append(Problem(f"{EXTRACTOR} {extractor.name}", error.message))
        return
    yield from found


def bounded(call: Callable[[], T], name: str) -> T:
    """What the call returns. Raises RuleError for whatever it raises, and where it takes longer than `TIMEOUT_S`."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # sys.exit() in someone's file must not end the advisor
            failure.append(error)

    thread = threading.Thread(target=work, name=f"extractor {name}", daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    if thread.is_alive():
        raise RuleError(f"was not done after {TIMEOUT_S:.0f} s; it was left behind")
    if failure:
        if isinstance(failure[0], RuleError):
            raise failure[0]
        raise RuleError(f"{type(failure[0]).__name__}: {failure[0]}")
    return outcome[0]
