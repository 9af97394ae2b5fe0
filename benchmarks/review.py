"""A page for an editor: every text of the rules, remedies and facts as it was at an earlier commit and as it is now.

    python -m benchmarks.review --before COMMIT --output review.html [--lang zh]

Texts are read once more with only them in view: what has to be read twice is marked there and mended in its file. Below
a message stand the sentences that it becomes on the rule's own cases. The page is no part of the package.
"""

from __future__ import annotations

import argparse
import html
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from advisor.authoring.texts import rendered
from advisor.basics.files import write_atomically
from advisor.basics.resources import resource
from advisor.facts.registry import catalogue
from advisor.model import LANGUAGES
from advisor.ruleset.files.loader import load_rules
from advisor.yamlfiles.document import read_document

FOLDERS = ("rules", "knowledge_base/remedies", "reports/locales", "knowledge_base/fact_titles.yaml")
_STYLE = """body{font:15px/1.5 sans-serif;max-width:90rem;margin:auto}td{vertical-align:top;padding:.2rem .6rem}
td{width:45%}td:first-child{width:10%;color:#666}.new td:last-child{background:#eef7ee}li{color:#444}"""

Key = tuple[str, ...]


def main(arguments: list[str]) -> int:
    """Writes the page; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the commit to compare with")
    parser.add_argument("--output", required=True, help="the page to write")
    parser.add_argument("--lang", choices=LANGUAGES, default=LANGUAGES[0])
    given = parser.parse_args(arguments)
    root = resource("rules").parent
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", given.before, *FOLDERS], cwd=root, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        before = dict(_texts(Path(folder), given.lang))
    now = dict(_texts(root, given.lang))
    write_atomically(given.output, _page(before, now, _sentences(given.lang), given.lang))
    changed = sum(before.get(key) != text for key, text in now.items())
    print(f"{given.output}: {len(now)} texts, {changed} of them changed since {given.before}")
    return 0


def _texts(root: Path, lang: str) -> Iterator[tuple[Key, str]]:
    """(file, place in it) and text, of everything that is said in this language."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.yaml")) or [root / folder]:
            if path.name.endswith(".test.yaml") or (path.parent.name in LANGUAGES and path.parent.name != lang):
                continue
            name = path.relative_to(root).as_posix()
            said = path.parent.name in LANGUAGES
            yield from (((name, *where), text) for where, text in _said(read_document(path).data, lang, said))


def _said(tree: Any, lang: str, said: bool) -> Iterator[tuple[Key, str]]:
    if isinstance(tree, str):
        if said:
            yield (), tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            if name == lang or name not in LANGUAGES:
                for where, text in _said(value, lang, said or name == lang):
                    yield (() if name == lang else (str(name),)) + where, text
    elif isinstance(tree, list):
        pair = not said and len(tree) == len(LANGUAGES) and all(isinstance(item, str) for item in tree)
        chosen = [(LANGUAGES.index(lang), tree[LANGUAGES.index(lang)])] if pair else list(enumerate(tree))
        for index, item in chosen:
            for where, text in _said(item, lang, said or pair):
                yield (() if pair else (str(index),)) + where, text


def _sentences(lang: str) -> dict[str, list[str]]:
    """File of a rule -> what its message becomes on its cases."""
    rules, facts = load_rules(), catalogue()
    root = resource("rules").parent
    return {
        rule.path.relative_to(root).as_posix(): list(
            dict.fromkeys(finding.message.get(lang) for _, finding in rendered(rule, rules.remedies, facts))
        )
        for rule in rules.rules
        if rule.path.is_relative_to(root)
    }


def _page(before: dict[Key, str], now: dict[Key, str], sentences: dict[str, list[str]], lang: str) -> str:
    rows, file = [], ""
    for key, text in now.items():
        if key[0] != file:
            file = key[0]
            rows.append(f"<tr><th colspan=3 align=left>{html.escape(file)}</th></tr>")
        old = before.get(key, "")
        shown = "".join(f"<li>{html.escape(each)}</li>" for each in sentences.get(file, []) if key[1:] == ("message",))
        mark = " class=new" if old != text else ""
        cells = (html.escape(".".join(key[1:])), html.escape(old) if old != text else "", html.escape(text))
        rows.append(f"<tr{mark}><td>{cells[0]}</td><td>{cells[1]}</td><td>{cells[2]}<ul>{shown}</ul></td></tr>")
    head = f'<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>Texts</title><style>{_STYLE}</style>'
    return f"{head}<table>{''.join(rows)}</table></html>\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
