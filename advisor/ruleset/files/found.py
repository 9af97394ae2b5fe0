"""Which files of a folder are rules, and whose."""

from __future__ import annotations

import os
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
    found: list[Path] = []
    for folder, inner, names in os.walk(directory):
        inner[:] = [name for name in inner if _is_rules(name)]
        chosen = (Path(folder, name) for name in names if _is_rules(name) and name.endswith((".yaml", ".yml")))
        found += [path for path in chosen if path.name != "pack.yaml" and not path.stem.endswith(".test")]
    return sorted(path for path in found if path.is_file() and _stays(path, root))


def _is_rules(name: str) -> bool:
    return name not in _SKIPPED and not name.startswith((".", "_"))


def _stays(path: Path, root: Path) -> bool:
    """Whether it leads to a file below the root; folders that are links are not walked."""
    return not path.is_symlink() or path.resolve().is_relative_to(root)
