"""Progress on a terminal; silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from advisor.cli.language import spoken
from advisor.knowledge.messages import translated
from advisor.pipeline import Advance, Progress


@contextmanager
def progress(wanted: bool) -> Iterator[Progress | None]:
    """Yields a callback for `Options.progress` that draws a bar on standard error, or None where none is wanted."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(translated("reading", spoken())),
        BarColumn(),
        TextColumn("{task.fields[ranks]} ranks"),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, ranks="0")

        def tell(advance: Advance) -> None:
            ranks = f"{advance.ranks_done}/{advance.ranks}"
            bar.update(task, completed=advance.bytes_done, total=advance.bytes or 1, ranks=ranks)

        yield tell
