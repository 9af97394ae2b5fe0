"""Packs: folders of rules with an optional `pack.yaml` that says what they build on and what they change.

name: strict
description: {en: …, zh: …}
extend: [default]
ignore: [SCHED009]
params: {COMM001: {share: 0.05}}
severities: {COMM001: high}
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.errors import RuleError
from advisor.basics.resources import resource
from advisor.basics.suggest import suggest
from advisor.config import Config

ENTRY_POINTS = "advisor.packs"
"""Group of entry points: each gives the folder of a pack (a path, or a package that holds it)."""


class Pack(Struct, frozen=True):
    name: str
    folder: Path
    description: str = ""
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    params: dict[str, dict[str, Any]] = field(default_factory=dict)
    severities: dict[str, str] = field(default_factory=dict)


def shipped_packs() -> dict[str, Path]:
    """Names and folders of the packs that come with the advisor."""
    rules = resource("rules")
    folders = sorted((rules / "packs").glob("*/")) if (rules / "packs").is_dir() else []
    return {"default": rules, **{folder.name: folder for folder in folders if folder.is_dir()}}


def find_pack(name: str) -> Path:
    """The folder of a pack: a shipped one, one of an installed package, or a folder itself. Raises RuleError."""
    shipped = shipped_packs()
    installed = _installed()
    if name in shipped and name in installed:
        raise RuleError(f"an installed package claims the name of the shipped pack {name!r}")
    if name in shipped:
        return shipped[name]
    if name in installed:
        return _folder_of(name, installed[name])
    if _is_folder(Path(name)):
        return Path(name)
    near = suggest(name, [*shipped, *installed])
    known = ", ".join([*shipped, *installed])
    raise RuleError(
        f"there is no pack {name!r}", hint=f"did you mean {near[0]}?" if near else f"packs: {known}, or a folder"
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _installed() -> dict[str, Any]:
    from importlib.metadata import entry_points

    found: dict[str, Any] = {}
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in found and found[point.name].value != point.value:
            raise RuleError(
                f"two installed packages offer a pack {point.name!r}: {found[point.name].value}, {point.value}"
            )
        found[point.name] = point
    return found


def _folder_of(name: str, point: Any) -> Path:
    try:
        target = point.load()
        folder = Path(target() if callable(target) else getattr(target, "__path__", [target])[0])
    except Exception as error:
        raise RuleError(f"the pack {name!r} cannot be loaded: {type(error).__name__}: {error}") from None
    if not folder.is_dir():
        raise RuleError(f"the pack {name!r} names no folder: {folder}")
    return folder


def read_pack(folder: Path, name: str = "") -> Pack:
    """The pack in this folder; one without `pack.yaml` builds on nothing and changes nothing."""
    path = folder / "pack.yaml"
    if not path.is_file():
        return Pack(name or folder.name, folder)
    from advisor.ruleset.files.schema import PackModel
    from advisor.yamlfiles.document import read_document
    from advisor.yamlfiles.faults import Faults, validate

    document = read_document(path)
    faults = Faults(document)
    model = validate(PackModel, document, faults)
    if model is None:
        first = faults.found[0]
        raise RuleError(first.message, place=f"{first.file}:{first.line}", hint=first.hint)
    text = model.description
    return Pack(
        model.name or name or folder.name,
        folder,
        (text.en or text.zh or "") if text else "",
        tuple(model.extend),
        tuple(model.ignore),
        {rule: dict(values) for rule, values in model.params.items()},
        dict(model.severities),
    )


def resolve(config: Config) -> tuple[list[Path], Config]:
    """Folders to load, in order, and the configuration with what the packs change beneath what the user changes.

    A pack's own `extend` comes before it; a pack named twice is loaded once.
    """
    packs: list[Pack] = []
    for name in config.extend:
        try:
            _collect(name, packs, ())
        except RuleError as error:
            raise RuleError(error.message, place=error.place or str(config.path or ""), hint=error.hint) from None
    folders = [pack.folder for pack in packs]
    for folder in config.rules:
        if not _is_folder(folder):
            raise RuleError(
                "there is no such folder of rules",
                place=str(folder),
                hint=f"--rules, or `rules` in {config.path}, names it" if config.path else "",
            )
        if folder.resolve() not in {each.resolve() for each in folders}:
            pack = read_pack(folder)
            packs.append(pack)
            folders.append(folder)
    return folders, _beneath(config, packs)


def _collect(name: str, packs: list[Pack], path: tuple[str, ...]) -> None:
    folder = find_pack(name).resolve()
    if str(folder) in path:
        raise RuleError(f"packs extend each other: {' → '.join(Path(each).name for each in (*path, str(folder)))}")
    if any(pack.folder == folder for pack in packs):
        return
    pack = read_pack(folder, name)
    for other in pack.extend:
        _collect(_extended(other, folder), packs, (*path, str(folder)))
    packs.append(pack)


def _extended(name: str, folder: Path) -> str:
    """The pack that the one in `folder` builds on: a shipped or installed one by name, a folder inside it, or a pack
    beside it. A stranger's pack must not make the advisor walk or show any other folder of this machine."""
    if name in shipped_packs() or name in _installed():
        return name
    with suppress(OSError, ValueError, RuntimeError):  # names too long, with NUL, loops of links
        target = (folder / name).resolve()
        beside = target.parent == folder.parent and (target / "pack.yaml").is_file()
        if target.is_dir() and target != folder and (target.is_relative_to(folder) or beside):
            return str(target)
    raise RuleError(
        f"a pack may not build on {name!r}",
        place=str(folder / "pack.yaml"),
        hint="name a shipped or installed pack, a folder inside this one, or a folder beside it that has a pack.yaml",
    )


def _beneath(config: Config, packs: Sequence[Pack]) -> Config:
    params: dict[str, dict[str, Any]] = {}
    severities: dict[str, str] = {}
    ignore: list[str] = []
    for pack in packs:
        ignore.extend(pack.ignore)
        severities.update(pack.severities)
        for rule, values in pack.params.items():
            params.setdefault(rule, {}).update(values)
    for rule, changed in config.params.items():
        params.setdefault(rule, {}).update(changed)
    severities.update(config.severities)
    return replace(config, params=params, severities=severities, ignore=(*ignore, *config.ignore))
