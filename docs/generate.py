"""Writes docs/rules.md, docs/facts.md, docs/coverage.md and docs/architecture.md from rules/, the catalogue,
knowledge_base/ and the code, and the schemas in reports/schemas/ from the loaders and the thresholds shared.

`python docs/generate.py` writes, `--check` only compares and ends with 1 where a file is out of date.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from advisor.authoring.coverage import cited_verdicts, encodings
from advisor.authoring.schemas import KINDS, schema_path, schema_text
from advisor.basics.resources import resource
from advisor.basics.units import UNITS, show
from advisor.facts.registry import catalogue
from advisor.knowledge.statements import documents, other_tools, statements
from advisor.knowledge.verdicts import verdict_words
from advisor.ruleset.files.loader import RuleSet, load_rules
from advisor.ruleset.rule import Rule

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py; `make docs` writes it anew. -->\n"


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    rules = load_rules([resource("rules")], catalogue=catalogue(), strict=False)
    return {
        name: NOTE + "\n".join(lines) + "\n"
        for name, lines in (
            ("rules.md", _rules(rules)),
            ("facts.md", _facts()),
            ("coverage.md", _coverage(rules)),
            ("architecture.md", _architecture()),
        )
    }


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ").strip()


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _table(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield "|" + "---|" * len(names)


def _rules(rules: RuleSet) -> Iterator[str]:
    yield "# Rules\n"
    yield f"{len(rules.rules)} rules reach {len(cited_verdicts(rules))} verdicts.\n"
    yield from _table("rule", "verdict", "title", "judged for")
    for rule in rules.rules:
        yield _row(f"[{rule.id}](#{rule.id.lower()})", rule.verdict, rule.title.en, rule.subject_kind)
    for rule in rules.rules:
        yield ""
        yield from _rule(rule, rules)


def _rule(rule: Rule, rules: RuleSet) -> Iterator[str]:
    yield f"## {rule.id}\n"
    yield f"**{rule.title.en}** · {rule.title.zh}\n"
    status = "" if rule.status == "stable" else f", {rule.status}"
    file = rule.path.relative_to(resource("rules")).as_posix()
    yield f"Verdict `{rule.verdict}`, {rule.direction.value}, {rule.kind}{status}; `rules/{file}`\n"
    for name in rule.statements:
        statement = statements().get(name)
        if statement is not None:
            yield f"- {name}: {statement.text.en}"
    if rule.params:
        yield ""
        yield from _table("threshold", "value", "origin")
        for name, param in rule.params.items():
            yield _row(f"`{name}`", show(param.value, param.unit), param.origin.en)
    if rule.needs:
        yield f"\nNeeds: {', '.join(f'`{name}`' for name in dict.fromkeys(rule.needs))}\n"
    if rule.explains:
        yield f"\nExplains: {', '.join(dict.fromkeys(e.verdict for e in rule.explains))}\n"
    for use in rule.remedies:
        spec = rules.remedies.get(use.id)
        if spec is not None:
            verify = f"; check: `{spec.verify.fact}` {spec.verify.expect}" if spec.verify else ""
            yield f"- Remedy `{use.id}` ({spec.effort}){verify}"
    for trap in rule.false_positives:
        yield f"- Known trap: {trap.en}"


def _facts() -> Iterator[str]:
    kinds = sorted(catalogue().values(), key=lambda kind: kind.name)
    yield "# Facts\n"
    yield f"{len(kinds)} facts. A fact that could not be measured is absent, never zero.\n"
    yield from _table("unit", "meaning")
    for unit, meaning in UNITS.items():
        yield _row(unit, meaning)
    yield ""
    yield from _table("fact", "unit", "about", "meaning", "how", "needs")
    for kind in kinds:
        needs = ", ".join(need.replace("|", " or ") for need in kind.needs)
        yield _row(f"`{kind.name}`", kind.unit, ", ".join(kind.scopes), kind.meaning, kind.formula, needs)


def _coverage(rules: RuleSet) -> Iterator[str]:
    yield "# Coverage\n"
    yield "## Documents\n"
    yield from _table("document", "title", "version", "language")
    for name, entry in documents().items():
        yield _row(name, f"[{entry['title']['en']}]({entry['url']})", entry["version"], entry["language"])
    yield "\n## Statements\n"
    yield from _table("statement", "document", "section", "what it says", "rules", "facts and checks", "remedies")
    for name, encoding in encodings(rules).items():
        statement = statements()[name]
        told = [f"`{fact}`" for fact in encoding.facts] + [f"`{check}`" for check in encoding.checks]
        yield _row(
            name, statement.document, statement.section, statement.text.en, _links(encoding.rules), ", ".join(told),
            ", ".join(encoding.remedies),
        )  # fmt: skip
    yield "\n## Verdicts\n"
    yield from _table("verdict", "direction", "rules", "remedies")
    cited = cited_verdicts(rules)
    for word, entry in verdict_words().items():
        ids = cited.get(word, [])
        remedies = dict.fromkeys(use.id for name in ids for use in rules.by_id[name].remedies)
        yield _row(word, entry.direction, _links(ids), ", ".join(remedies))
    yield "\n## Other tools\n"
    yield "What their checks correspond to here, or why nothing does.\n"
    for tool, checks in other_tools().items():
        yield f"### {tool}\n"
        yield from _table("their check", "ours", "remark")
        for check in checks:
            yield _row(check["check"], _ours(check), _remark(check))
        yield ""


FLOW = (
    ("profile folder", "advisor.sources.discover"),
    ("source", "advisor.sources.base"),
    ("table", "advisor.tables"),
    ("fact", "advisor.facts.base"),
    ("finding", "advisor.engine.judge"),
    ("report", "advisor.render"),
)
"""The way of a profile, and the module that stands for each of its stages."""
PACKAGE = resource("rules").parent / "advisor"


def _architecture() -> Iterator[str]:
    known = {room: _knows(room) for room in sorted(_rooms())}
    yield "# Architecture\n"
    yield "The way of a profile. A later stage never reads an earlier stage's files, an earlier one never knows a later"
    yield "one; `advisor/pipeline.py` is the one place that knows the whole way.\n"
    yield "```mermaid"
    yield "flowchart LR"
    for index, (stage, module) in enumerate(FLOW):
        path = PACKAGE.parent.joinpath(*module.split("."))
        if not path.with_suffix(".py").is_file() and not path.is_dir():
            raise ValueError(f"FLOW names {module}, which does not exist")
        yield f'  s{index}["{stage}<br/>{module.removeprefix("advisor.")}"]'
    yield "  " + " --> ".join(f"s{index}" for index in range(len(FLOW)))
    yield "```\n"
    yield "## Rooms\n"
    yield "An arrow leads to a room that is imported; what follows from other arrows is not drawn."
    yield "`tests/test_architecture.py` holds which room may know which.\n"
    yield "```mermaid"
    yield "flowchart TD"
    yield from (f"  {room}" for room in known)
    for room, others in known.items():
        implied = {further for other in others for further in _reached(other, known)}
        yield from (f"  {room} --> {other}" for other in sorted(others - implied))
    yield "```\n"
    yield from _table("room", "what it is for", "imports")
    for room, others in known.items():
        yield _row(f"`{room}`", _purpose(room), ", ".join(sorted(others)))
    yield "\n## Rooms with rooms of their own\n"
    yield from _table("room", "what it is for")
    for path in sorted(PACKAGE.glob("*/*/__init__.py")):
        if "_data" not in path.parts:
            yield _row(f"`{path.parent.relative_to(PACKAGE).as_posix()}`", _said_first(path))


def _rooms() -> set[str]:
    """Folders and loose modules of the package."""
    return {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} | {
        path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")
    }


def _purpose(room: str) -> str:
    folder = PACKAGE / room / "__init__.py"
    return _said_first(folder if folder.is_file() else PACKAGE / f"{room}.py")


def _said_first(path: Path) -> str:
    """The first paragraph of a module's docstring. Raises ValueError where it has none: every room says what it is."""
    told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not told:
        raise ValueError(f"{path} has no docstring")
    return " ".join(told.partition("\n\n")[0].split())


def _knows(room: str) -> set[str]:
    """The rooms whose modules are imported while the program runs, wherever in a file; not those only types need."""
    folder = PACKAGE / room
    found = set()
    for path in folder.rglob("*.py") if folder.is_dir() else [PACKAGE / f"{room}.py"]:
        for node in _running(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "advisor":
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("advisor."):
                found.add(node.module.split(".")[1])
    return (found & _rooms()) - {room}


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from _running(node)


def _reached(room: str, known: Mapping[str, set[str]], seen: frozenset[str] = frozenset()) -> set[str]:
    """Rooms that this one imports, directly or through others."""
    found = set(known[room])
    for other in known[room] - seen:
        found |= _reached(other, known, seen | {room})
    return found


def _links(ids: list[str]) -> str:
    return ", ".join(f"[{name}](rules.md#{name.lower()})" for name in ids)


def _ours(check: Mapping[str, object]) -> str:
    named = [f"`{name}`" for key in ("facts", "checks") for name in check.get(key, ())]  # type: ignore[attr-defined]
    return ", ".join(part for part in (_links(list(check.get("rules", ()))), *named) if part)  # type: ignore[call-overload]


def _remark(check: Mapping[str, object]) -> str:
    why_not = check.get("why_not")
    return "; ".join(str(text) for text in (f"not as such: {why_not}" if why_not else None, check.get("note")) if text)


def main(arguments: list[str]) -> int:
    """Writes or checks the pages and schemas; returns the exit status."""
    stale = []
    files = {HERE / name: text for name, text in pages().items()}
    files |= {schema_path(kind): schema_text(kind) for kind in KINDS}
    for path, text in files.items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    print(f"{'out of date' if '--check' in arguments else 'written'}: {', '.join(stale) or 'none'}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
