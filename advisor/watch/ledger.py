"""What a watcher remembers: which recordings were judged, the last step times and causes. Survives a restart.

`state.json` is replaced whole; `runs.jsonl` grows by a line a recording; reports lie beside them for `advisor serve`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.files import read_own, write_atomically
from advisor.watch.settings import number

_VERSION = 1
_LONGEST_LINE = 1 << 16


@dataclass
class Ledger:
    """The memory of one watcher in its output folder."""

    folder: Path
    judged: dict[str, str] = field(default_factory=dict)
    """entry of the folder -> what became of its recording, oldest first"""
    steps_us: list[float] = field(default_factory=list)
    causes: dict[str, int] = field(default_factory=dict)
    """root cause -> how many recordings ago it was last seen."""
    findings: list[str] = field(default_factory=list)
    """What the last judged recording showed."""
    slower: bool = False

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """The memory there, a new one where there is none. Raises UsageError where it cannot be read or written."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = read_own(folder / "state.json", int(number("largest_memory")))
        except FileNotFoundError:
            ledger = cls(folder)
            ledger._catch_up()
            return ledger
        except OSError as error:
            raise UsageError(
                f"cannot be used as a watcher's memory: {error.strerror or error}", place=str(folder / "state.json")
            ) from None
        try:
            ledger = cls(folder, **_checked(json.loads(text)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            hint = "remove it to judge everything in the folder again"
            raise UsageError("is no memory of a watcher", place=str(folder / "state.json"), hint=hint) from None
        ledger._catch_up()
        return ledger

    def knows(self, names: Sequence[str]) -> bool:
        """Whether a recording was judged of which these are the entries; ranks that came late belong to it."""
        return any(name in self.judged for name in names)

    def remember(self, names: Sequence[str], outcome: str) -> None:
        """Never to be judged again, also when it vanishes and comes back."""
        self.judged.update(dict.fromkeys(names, outcome))

    def forget_gone(self, present: Container[str]) -> None:
        """Of the oldest nothing is kept in the end, but of what is still there: it would be judged again, and push out
        the next."""
        surplus = len(self.judged) - int(number("remembered"))
        if surplus > 0:
            for name in [name for name in self.judged if name not in present][:surplus]:
                del self.judged[name]

    def save(self) -> None:
        """Puts the memory on disk, whole."""
        names = ("judged", "steps_us", "causes", "findings", "slower")
        document = {"version": _VERSION, **{name: getattr(self, name) for name in names}}
        write_atomically(self.folder / "state.json", json.dumps(document, ensure_ascii=True) + "\n")

    def note(self, line: dict[str, Any]) -> None:
        """Appends one line to runs.jsonl. Raises UsageError where that is nothing that can be written to."""
        text = json.dumps(line, ensure_ascii=True, allow_nan=False, sort_keys=True) + "\n"
        path = self.folder / "runs.jsonl"
        try:
            if path.exists() and not path.is_file():
                raise OSError("is no plain file")
            with path.open("ab+") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(size - 1, 0))
                torn = size > 0 and stream.read(1) != b"\n"
                stream.write(b"\n" * torn + text.encode("ascii"))
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror or error}", place=str(path)) from None

    def _catch_up(self) -> None:
        """The last line may have been written without the memory, where the watcher was killed in between."""
        path = self.folder / "runs.jsonl"
        if not path.is_file():
            return
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError), path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - _LONGEST_LINE, 0))
            last = json.loads(stream.read().rstrip(b"\n").rpartition(b"\n")[2])
            self.remember([str(name) for name in last["entries"]], "error" if "error" in last else "judged")

    def report_path(self, key: str) -> Path:
        """Where the report on a recording lies; the name stays inside the folder whatever the recording is called."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return self.folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', key)[:80].lstrip('.')}-{digest}.json"

    def forget_old_reports(self) -> None:
        """Keeps the newest reports only."""
        reports = [path for path in self.folder.glob("*.json") if path.name != "state.json"]
        surplus = len(reports) - int(number("kept_reports"))
        if surplus > 0:
            for path in sorted(reports, key=_changed)[:surplus]:
                path.unlink(missing_ok=True)


def _changed(path: Path) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    if document.pop("version") != _VERSION:
        raise ValueError("of another version")
    judged = {str(key): str(value) for key, value in document["judged"].items()}
    steps = [float(value) for value in document["steps_us"]]
    if any(value - value != 0 or value <= 0 for value in steps):
        raise ValueError("no step times")
    causes = {str(key): int(value) for key, value in document["causes"].items()}
    findings = [str(each) for each in document["findings"]]
    return {
        "judged": judged,
        "steps_us": steps,
        "causes": causes,
        "findings": findings,
        "slower": bool(document["slower"]),
    }
