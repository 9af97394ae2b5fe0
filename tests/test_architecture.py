"""The plan of the house, kept true: which room may know which, no circles, no overcrowded room, tests beside them.

`ROOMS` is the contract: from the ground up, each line a storey. A room may import what stands on a lower storey; rooms
of one storey do not know each other. A module that lies loose in `advisor/` is a room of its own. Imports inside of
functions count like those at the top, those under TYPE_CHECKING too: both say that one file cannot be understood
without the other. Names of modules in texts do not count (readers, formats and commands are found by name so that
they are loaded when they are needed, and whoever loads them does not know them).

Where the order is not the one of the profile's way (source → table → fact → finding → report), this is why:

- `config` and `knowledge` lie below `ruleset`: a configuration names rules without knowing what a rule is, and
  remedies, words and limits are facts of the trade that hold whether or not a rule uses them.
- `facts` lies below `ruleset`: rules speak of facts, never the other way round; what is measured depends on no rule.
- `execution` lies beside `engine`: it distributes the measuring and knows nothing of what is concluded.
- `exchange` lies below `compare`, `gate` and `render`: a report read back from a file is what they all begin with.
- `render` lies above `compare`, `gate` and `collect`: it writes their results, and they do not know how they look.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "advisor"

ROOMS: tuple[tuple[str, ...], ...] = (
    ("kept",),
    ("basics",),
    ("model",),
    ("tables", "yamlfiles", "plain"),
    ("knowledge",),
    ("configtable", "sources"),
    ("config",),
    ("facts", "trust"),
    ("ruleset", "execution"),
    ("engine",),
    ("pipeline",),
    ("exchange",),
    ("compare", "collect"),
    ("gate",),
    ("render",),
    ("api", "authoring", "inspection"),
    ("mcp", "serve", "watch"),
    ("callbacks",),
    ("cli",),
    ("__init__", "__main__"),
)

MOST_MODULES = 15
"""Modules of one folder that can be taken in at a glance."""
NO_ROOMS = ("data", "helpers")
"""Folders below tests/ that belong to no room: what tests read, and what they share."""


@cache
def modules() -> Mapping[str, Path]:
    """Dotted names of all modules; a package's own is `package.__init__`."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if "_data" not in path.parts
    }


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """module -> the modules of the package that it imports, wherever in the file."""
    known = modules()
    found = {}
    for name, path in known.items():
        named = {each for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for each in _named(node)}
        there = (each if each in known else f"{each}.__init__" for each in named)
        found[name] = frozenset(each for each in there if each in known and each != name)
    return found


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports name their module in full, so that they can be searched for"
        for inner in (f"{node.module}.{alias.name}" for alias in node.names):
            yield inner if inner in modules() or f"{inner}.__init__" in modules() else str(node.module)


def room_of(module: str) -> str:
    return module.split(".")[1]


def circle(graph: Mapping[str, frozenset[str]]) -> list[str]:
    """One circle of the graph, from a node back to it; empty where there is none."""
    done: set[str] = set()

    def follow(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for other in sorted(graph[node]):
            if found := follow(other, [*path, node]):
                return found
        done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := follow(node, []))), [])


def test_every_room_has_its_place_and_every_place_its_room() -> None:
    """A new folder or loose module is entered in ROOMS, on the lowest storey where it stands."""
    there = {room_of(name) for name in modules()}
    planned = [room for storey in ROOMS for room in storey]
    assert sorted(there) == sorted(planned), f"in ROOMS of {Path(__file__).name}: {there.symmetric_difference(planned)}"


def test_no_room_knows_one_above_or_beside_it() -> None:
    """Arrows go down: what a profile holds can be changed without looking at reports."""
    storey = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
    upward = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if room_of(other) != room_of(name) and storey[room_of(other)] >= storey[room_of(name)]
    ]
    assert not upward, "\n".join(sorted(upward))


def test_no_circles_between_files() -> None:
    """Each file can be understood from those below it."""
    assert not circle(imports()), " → ".join(circle(imports()))


@pytest.mark.parametrize("outer", ["engine", "ruleset"])
def test_no_circles_between_the_folders_of_a_room(outer: str) -> None:
    """Inside of these rooms, too, the folders stand above each other."""
    inner: dict[str, set[str]] = {}
    for name, others in imports().items():
        if room_of(name) == outer and len(name.split(".")) > 3:
            own = inner.setdefault(name.split(".")[2], set())
            own.update(o.split(".")[2] for o in others if room_of(o) == outer and len(o.split(".")) > 3)
    graph = {folder: frozenset(others - {folder}) for folder, others in inner.items()}
    assert not circle(graph), " → ".join(circle(graph))


def test_no_folder_is_overcrowded() -> None:
    """Whoever opens a folder sees at a glance what is in it."""
    counts: dict[Path, int] = {}
    for path in modules().values():
        counts[path.parent] = counts.get(path.parent, 0) + (path.name != "__init__.py")
    crowded = {path.relative_to(ROOT).as_posix(): count for path, count in counts.items() if count > MOST_MODULES}
    assert not crowded


def test_tests_lie_where_the_code_lies() -> None:
    """The tests of a module are found in the folder of the same name."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    astray = [f for f in folders if not (PACKAGE / f).is_dir() and f.parts[0] not in NO_ROOMS]
    assert not astray


def test_the_plan_finds_circles_and_arrows() -> None:
    """The search itself: a circle through three files is found, a ladder is none."""
    assert circle({"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("a")}) == ["a", "b", "c", "a"]
    assert circle({"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()}) == []
    assert all(set(one).isdisjoint(two) for one, two in pairwise(ROOMS))
    assert "advisor.pipeline" in imports()["advisor.api"] and "advisor.facts.base" in imports()["advisor.pipeline"]
