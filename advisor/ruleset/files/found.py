"""Which files of a folder are rules, and whose."""

from __future__ import annotations

from pathlib import Path

_SKIPPED = ("remedies", "packs", "extractors", "profiles")
"""Folders of a pack that hold no rules."""


def rule_id_of(path: Path) -> str:
    """The id that a rule file's name claims."""
    return path.name.partition("-")[0].partition(".")[0]


def rule_files(directory: Path) -> list[Path]:
    """Rule files below a folder, sorted: every YAML file that is no test file, no remedy, no pack description and
    whose name starts with a letter. Links that lead out of the folder are left out. A file stands for itself."""
    if directory.is_file():
        return [directory]
    root = directory.resolve()
    files = []
    for path in sorted({*directory.rglob("*.yaml"), *directory.rglob("*.yml")}):
        inner = path.relative_to(directory).parts
        if any(part in _SKIPPED or part.startswith((".", "_")) for part in inner) or inner[-1] == "pack.yaml":
            continue
        if path.stem.endswith(".test") or not path.is_file() or not path.resolve().is_relative_to(root):
            continue
        files.append(path)
    return files
