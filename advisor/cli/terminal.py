"""What commands write: results to files and to standard output, progress and log to standard error."""

from __future__ import annotations

import codecs
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.basics.errors import AdvisorError, UsageError
from advisor.cli.language import in_words, told
from advisor.render import FORMATS, formats_of

if TYPE_CHECKING:
    from advisor.pipeline import Advance, Progress

Output = tuple[str, str]
"""(format, path); the path - is standard output."""


def outputs(formats: Sequence[str], kind: str) -> list[Output]:
    """What --format asks for, of the formats that can show this kind of result; text where nothing was asked for.
    Raises UsageError for what could not be written after the analysis."""
    known = formats_of(kind)
    found: list[Output] = []
    for item in formats or ("text",):
        name, asked, path = item.partition(":")
        if name not in known:
            what = "cannot show this" if name in FORMATS else "unknown format"
            raise click.UsageError(f"--format {item}: {what} {name!r}; known: {', '.join(known)}")
        if asked and not path.strip():
            raise click.UsageError(
                f"--format {item}: the path is empty (an unset variable?); name a file, or - for here"
            )
        found.append((name, path if asked and path not in _STANDARD_OUTPUT else "-"))
    check_outputs([path for _, path in found])
    return found


_QUIET = "advisor.quiet"
_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_outputs(paths: Sequence[str | None]) -> None:
    """Raises UsageError where two outputs go to one place, or one to a folder that does not exist: better before an
    analysis than after it."""
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        if path != "-":
            from advisor.basics.files import check_target

            check_target(path)
        target = Path(path).resolve()
        if target in seen and (path == "-" or target.is_file() or not target.exists()):
            where = "standard output" if path == "-" else path
            raise click.UsageError(f"two outputs go to {where}; write each to a file of its own: --format json:FILE")
        seen.add(target)


def write(result: Any, outputs: Sequence[Output], lang: str, **options: Any) -> None:
    """A report, decision or comparison in every format asked for."""
    from advisor.basics.files import write_atomically
    from advisor.render import render

    for name, path in outputs:
        if path == "-":
            text = render(result, name, lang, color=_colour(), width=_width(), **options)
            click.echo(text, nl=not text.endswith("\n"), color=True)
        else:
            text = render(result, name, lang, **options)
            write_atomically(path, text if text.endswith("\n") else text + "\n")
            if all(other != "-" for _, other in outputs):
                note(f"advisor: written: {path}")


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int | None:
    import shutil

    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told[:6]) > 0:
        return int(told[:6])
    return shutil.get_terminal_size((100, 40)).columns if sys.stdout.isatty() else 100


def print_text(text: str, output: str | None = None) -> None:
    """Text as it is, to a file where one is named."""
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    from advisor.basics.files import write_atomically

    write_atomically(output, text)


def draws_bar(quiet: bool) -> bool:
    """Whether reading shows a bar, which a thread of its own keeps moving."""
    return not quiet and sys.stderr.isatty() and not os.environ.get("CI")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress | None]:
    """Yields a callback for `Options.progress` that draws a bar on standard error where that is a terminal and nobody
    asked for silence; None elsewhere."""
    if not draws_bar(quiet):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(in_words("reading")),
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


def hush(context: click.Context, _: click.Parameter, quiet: bool) -> None:
    """Keeps for this command what `-q` asks for."""
    context.meta[_QUIET] = quiet


def _is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_QUIET))


def note(message: str) -> None:
    """A remark beside the result, on standard error."""
    if not _is_quiet():
        click.echo(inert(in_words(message)), err=True)


def start_log(verbose: int = 0, quiet: bool = False) -> None:
    """Warnings, and more as `verbose` asks, to standard error."""
    quiet = quiet or _is_quiet()
    level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, stream=sys.stderr, force=True)
    logging.getLogger().handlers[0].setFormatter(_Translating("advisor: %(message)s"))


class _Translating(logging.Formatter):
    """Lines of the log in the language of errors."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line as the format has it, its message translated and inert."""
        record.message = inert(in_words(record.message))
        return super().formatMessage(record)


def say(error: AdvisorError | str, status: int) -> int:
    """Tells what went wrong, and hands on what to end with."""
    text = in_words(error) if isinstance(error, str) else told(error)
    print(f"advisor: {inert(text)}", file=sys.stderr)
    return status


def inert(text: str) -> str:
    """A remark whose names, which come from files of strangers, move no cursor and hide no letters."""
    from advisor.render.escaping import printable

    return printable(text, lines=True)


_POLARS_THREADS = "POLARS_MAX_THREADS"
_ALGEBRA_THREADS = "OPENBLAS_NUM_THREADS"
"""numpy starts a thread for each processor as soon as it is imported; nothing here multiplies matrices so large that
they were worth it."""


_PLAIN = "advisor-plain"
_PLAINER = {"\u00a0": " ", "µ": "u", "–": "-", "−": "-", "≈": "~", "→": "->", "…": "..."}
"""What stands for a character that a terminal of one-byte letters has not."""


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    told = (_PLAINER.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in lost)
    return "".join(told), error.end


def prepare() -> None:
    """Makes the surroundings safe, or raises an error for people."""
    _open_closed_streams()
    codecs.register_error(_PLAIN, _plainer)
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_PLAIN)
    os.environ.setdefault(_ALGEBRA_THREADS, "1")
    threads = os.environ.get(_POLARS_THREADS)
    if threads is not None and not (threads.isascii() and threads.isdecimal() and int(threads) > 0):
        del os.environ[_POLARS_THREADS]
        print(f"advisor: {_POLARS_THREADS}={threads!r} is no number of threads; ignored", file=sys.stderr)
    try:
        Path.cwd()
    except OSError:
        raise UsageError("the working folder is gone", hint="change to a folder that exists") from None


def _open_closed_streams() -> None:
    """What was closed leads nowhere: else the next file that is opened would be taken for it, and written to."""
    closed = []
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            closed.append(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if 1 in closed:
        print("advisor: standard output is closed; nothing is shown there", file=sys.stderr)
