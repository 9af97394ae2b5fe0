"""Progress on a terminal; silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from advisor.pipeline import Progress


@contextmanager
def progress(wanted: bool) -> Iterator[Progress | None]:
    """Yields a callback for `Options.progress` that draws a bar on standard error, or None where none is wanted."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TextColumn("ranks"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("ranks", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total)
