"""What both frameworks share: run the profiler's own handler, then advise on what it wrote. Never ends a training."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

log = logging.getLogger("advisor")

Handler = Callable[[Any], Any]


class AdviseHandler:
    """An `on_trace_ready` handler. Calls `inner(profiler)` (the framework's handler, which analyses and writes), then
    advises on what has newly appeared under `folder`, and writes the report in each of `formats`.

    Only rank 0 advises unless `all_ranks`; its folder holds all ranks' results where they share a file system. With
    the framework's asynchronous analysis nothing is there yet: that is said, not waited for.
    """

    def __init__(
        self,
        folder: str | Path,
        inner: Handler,
        *,
        formats: Sequence[str] = ("text",),
        lang: str = "en",
        all_ranks: bool = False,
        tell: Callable[[str], None] = print,
    ) -> None:
        self.folder, self.inner = Path(folder), inner
        self.formats, self.lang, self.all_ranks, self.tell = tuple(formats), lang, all_ranks, tell

    def __call__(self, profiler: Any = None) -> Any:
        before = _results(self.folder)
        result = self.inner(profiler)
        if self.all_ranks or rank_of_this_process() == 0:
            fresh = [path for path, changed in _results(self.folder).items() if before.get(path) != changed]
            self.advise(fresh)
        return result

    def advise(self, folders: Sequence[Path]) -> None:
        """Reports on these results. Whatever goes wrong is told and logged; training goes on."""
        if not folders:
            self.tell(f"advisor: nothing was written under {self.folder} yet; run `advisor advise {self.folder}` later")
            return
        try:
            self._report(folders)
        except Exception as error:
            log.debug("advising failed", exc_info=True)
            self.tell(f"advisor: no report on {self.folder}: {error}")

    def _report(self, folders: Sequence[Path]) -> None:
        from advisor.api import advise
        from advisor.basics.files import write_atomically
        from advisor.render import render

        report = advise(list(folders))
        for item in self.formats:
            name, _, path = item.partition(":")
            text = render(report, name, self.lang)
            if path and path != "-":
                write_atomically(path, text)
                self.tell(f"advisor: wrote {path}")
            else:
                self.tell(text)


def rank_of_this_process() -> int:
    """The global rank as launchers tell it; 0 where none does."""
    for name in ("RANK_ID", "RANK"):
        value = os.environ.get(name, "")
        if value.isdecimal():
            return int(value)
    return 0


def _results(folder: Path) -> dict[Path, float]:
    """Profiler results directly under the folder, with the time of their last change."""
    try:
        return {
            path: max((p.stat().st_mtime for p in path.glob("ASCEND_PROFILER_OUTPUT/*")), default=path.stat().st_mtime)
            for path in sorted(folder.iterdir())
            if path.is_dir() and path.name.endswith(("_ascend_ms", "_ascend_pt"))
        }
    except OSError:
        return {}
