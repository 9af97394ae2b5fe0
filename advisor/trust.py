"""Whose configuration this is, and which code may run: a configuration found beside data is a stranger's until its
folder was trusted, and programs run only where the user asked for it.

Trusted folders are kept in the user's own configuration (`$XDG_CONFIG_HOME/advisor/trust.json`), never in a project.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import fields, replace

from advisor.basics.errors import UsageError
from advisor.basics.files import read_own, write_atomically
from advisor.config import Config, load_config
from advisor.yamlfiles.faults import LintError

_PROFILE = re.compile(
    r".*_ascend_(ms|pt)|PROF_.+|ASCEND_PROFILER_OUTPUT|cluster_analysis_output|profiler_(info|metadata).*\.json", re.I
)
_HARMLESS = ("lang", "engine")
"""Keys that choose no rule, no number and no file."""
_NAMED_FIRST = 6
_LARGEST_FILE = 1_000_000
_MOST_ENTRIES = 1_000
"""Names of a folder that are looked at to tell whether it holds a profile."""


@dataclass(frozen=True)
class Settled:
    """A configuration without what may not be in force, and what must be said about it."""

    config: Config
    notes: tuple[LintError, ...] = ()
    withheld: frozenset[str] = frozenset()
    """Its keys that are not in force."""

    def require(self, key: str) -> None:
        """Raises UsageError where what the user asks for stands in a part that is not in force."""
        if key in self.withheld:
            raise UsageError(
                f"lies with the profile, so that its {key!r} is not in force", place=str(self.config.path),
                hint="if it is yours, trust its folder with `advisor trust`, or name it with --config",
            )  # fmt: skip


def settle(
    file: str | Path | None = None, profiles: Sequence[str | Path] = (), allowed: Sequence[str | Path] = ()
) -> Settled:
    """The configuration that the user named, or that was found from here upwards, as far as it may be in force.

    `profiles` are the data to be judged, `allowed` the folders whose programs the user allows this time. Raises
    ConfigError, and UsageError where an allowed folder does not exist.
    """
    folders = [_folder(each) for each in allowed]
    config = load_config(Path(file) if file else None)
    if config.path is None:
        return Settled(config)
    home, trusted = config.path.resolve().parent, trusted_folders()
    settled = Settled(config)
    if file is None and (home not in trusted or _open_to_all(config.path)):
        settled = _found(config, _is_beside(home, profiles))
    return _without_programs(settled, home, trusted, folders)


def _found(config: Config, beside_data: bool) -> Settled:
    """A configuration that nobody named: told in every report, and set aside where it came with the data."""
    place, keys = str(config.path), _chosen(config)
    if not keys:
        return Settled(config)
    if not beside_data:
        told = f"was found here and is in force: it sets {_listed(config, keys)}"
        return Settled(config, (LintError(place, 0, told, "", "warning"),))
    told = f"lies with the profile and is not in force: it would set {_listed(config, keys)}"
    yours = f"; if it is yours: `advisor trust {Path(place).parent}`, or name it with --config"
    kept = replace(Config(), **{key: getattr(config, key) for key in _HARMLESS}, path=config.path)
    return Settled(kept, (LintError(place, 0, told + yours, "", "warning"),), frozenset(keys))


def _chosen(config: Config) -> list[str]:
    """Keys by which a configuration chooses or changes what is judged."""
    plain = Config()
    keys = [each.name for each in fields(Config) if each.name not in (*_HARMLESS, "path")]
    return sorted(key for key in keys if getattr(config, key) != getattr(plain, key))


def _listed(config: Config, keys: Iterable[str]) -> str:
    """Keys with the names they are about: "ignore (COMM001, COMM010), params (HOST001)"."""
    parts = []
    for key in keys:
        names = [str(each) for each in getattr(config, key)]
        more = " …" if len(names) > _NAMED_FIRST else ""
        parts.append(f"{key} ({', '.join(names[:_NAMED_FIRST])}{more})")
    return ", ".join(parts)


def _without_programs(settled: Settled, home: Path, trusted: frozenset[Path], allowed: Sequence[Path]) -> Settled:
    """Without the extractors that are files nobody allowed; those of installed packages stay."""
    kept, notes = [], list(settled.notes)
    for entry in settled.config.extractors:
        path = Path(entry)
        if len(path.parts) == 1 and path.suffix != ".py":
            kept.append(entry)
            continue
        program = path.resolve()
        if any(program.is_relative_to(folder) for folder in allowed):
            kept.append(entry)
            continue
        if (home in trusted and program.is_relative_to(home)) or program.parent in trusted:
            if not (open_to_all := _open_to_all(program)):
                kept.append(entry)
                continue
            told = "is a program and was not run: anybody can write to it"
            notes.append(LintError(entry, 0, f"{told}; `chmod o-w {open_to_all}`", "", "warning"))
            continue
        told = f"is a program and was not run; {settled.config.path} names it"
        yours = f"; if it is yours: `advisor trust {path.parent}`, or --allow-code {path.parent} this once"
        notes.append(LintError(entry, 0, told + yours, "", "warning"))
    return Settled(replace(settled.config, extractors=tuple(kept)), tuple(notes), settled.withheld)


def _is_beside(home: Path, profiles: Sequence[str | Path]) -> bool:
    """Whether a folder is, holds or lies in data that may come from anybody."""
    for each in profiles:
        try:
            data = Path(each).expanduser().resolve()
        except (OSError, ValueError, RuntimeError):
            continue
        data = data if data.is_dir() else data.parent
        if home == data or data in home.parents:
            return True
    return any(_PROFILE.fullmatch(name) for name in home.parts) or _holds_profile(home)


def _holds_profile(home: Path) -> bool:
    """Whether files of a profile lie in the folder or in one right below it."""
    from advisor.sources.layouts import legacy, loose

    def is_known(name: str) -> bool:
        return bool(_PROFILE.fullmatch(name)) or loose.is_known(name) or legacy.is_known(name)

    names, folders = _names(home)
    below = [name for folder in folders for name in _names(home / folder)[0]]
    return any(is_known(name) for name in (*names, *below)) or any(_PROFILE.fullmatch(name) for name in folders)


def _names(folder: Path) -> tuple[list[str], list[str]]:
    """The first names of files and of folders there."""
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                (folders if entry.is_dir() else files).append(entry.name)
    except OSError:
        pass
    return files, folders


def _open_to_all(path: Path) -> Path | None:
    """The path, or the folder it is in, where anybody on the machine can write to it; None where nobody unknown can."""
    for each in (path, path.parent):
        with suppress(OSError):
            mode = each.stat().st_mode
            if os.name != "nt" and mode & stat.S_IWOTH and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
                return each
    return None


def trust_file() -> Path:
    """Where the trusted folders of this user are kept."""
    named = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME", "")
    base = Path(named) if named and Path(named).is_absolute() else Path.home() / ".config"
    return base / "advisor" / "trust.json"


def trusted_folders() -> frozenset[Path]:
    """Folders that the user trusts. Raises UsageError where the file is damaged or others can write to it."""
    file = trust_file()
    try:
        state = file.stat()
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", place=str(file)) from None
    if os.name != "nt" and (state.st_uid not in (os.getuid(), 0) or state.st_mode & 0o022):
        raise UsageError("others can write to it", place=str(file), hint=f"chmod 600 {file}")
    try:
        entries = json.loads(read_own(file, _LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list) or not all(isinstance(each, str) and Path(each).is_absolute() for each in entries):
        raise UsageError("is no list of trusted folders", place=str(file), hint="remove it; `advisor trust` writes it")
    return frozenset(map(Path, entries))


def trust(folder: str | Path, *, withdraw: bool = False) -> Path:
    """Trusts the configuration in this folder and the programs that it names there, or no longer.

    Returns the folder. It holds for this folder only, not for those below it. Raises UsageError.
    """
    chosen = Path(folder).resolve() if withdraw else _folder(folder)
    if not withdraw and _open_to_all(chosen / "any") == chosen:
        raise UsageError("anybody can write to it", place=str(chosen), hint=f"chmod o-w {chosen}")
    file = trust_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror or error}", place=str(file.parent)) from None
    with _alone(file.parent):
        before = trusted_folders()
        after = before - {chosen} if withdraw else before | {chosen}
        write_atomically(file, json.dumps(sorted(map(str, after)), indent=1) + "\n")  # ASCII: names may be no text
        file.chmod(0o600)
    return chosen


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other command changes the list meanwhile: what one of them withdraws must not come back with another's."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", place=str(folder)) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _folder(given: str | Path) -> Path:
    path = Path(given).expanduser()
    if not str(given).strip() or not path.is_dir():
        raise UsageError("no such folder", place=str(given), hint="name the folder whose programs may run")
    return path.resolve()
