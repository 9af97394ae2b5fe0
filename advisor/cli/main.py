"""The command line: parses, calls, renders, exits. No logic, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from io import StringIO

import click

from advisor.basics.errors import AdvisorError, NoVerdict
from advisor.basics.garbage import collect_seldom, end_quickly
from advisor.cli.exits import DEFECT, DONE, INTERRUPTED, NO_VERDICT, SIGNALLED, USAGE, status_of
from advisor.cli.language import SPEAK, Group, localised, settle, spoken
from advisor.cli.terminal import inert, prepare, say
from advisor.model import LANGUAGES

COMMANDS = {
    "advise": "advise",
    "baseline": "gate",
    "collect": "collect",
    "compare": "compare",
    "whatif": "compare",
    "doctor": "inspection",
    "example": "example",
    "explain": "inspection",
    "facts": "inspection",
    "gate": "gate",
    "mcp": "serve",
    "rules": "rules",
    "serve": "serve",
    "trust": "trust",
    "watch": "watch",
}
"""command -> the module of this folder that it stands in, imported only when it is asked for."""


class _LazyGroup(Group):
    """Finds the commands in modules that are imported only when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"advisor.cli.{COMMANDS[cmd_name]}"), cmd_name)
        return localised(command)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="advisor", prog_name="advisor")
@SPEAK
def cli() -> None:
    """Tells why AI training on Ascend NPUs is slow, and what to change."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status (contract: 0, 1, 2, 3, 4; 130 when interrupted).

    Ended by SIGTERM or SIGHUP it is 128 + the signal's number.
    """
    collect_seldom()
    end_quickly()
    settle(sys.argv[1:] if argv is None else argv)
    verbose = "-v" in (argv or sys.argv) or "-vv" in (argv or sys.argv)
    try:
        with _terminable():
            prepare()
            _refuse_empty(sys.argv[1:] if argv is None else argv)
            status = cli.main(args=None if argv is None else list(argv), prog_name="advisor", standalone_mode=False)
            sys.stdout.flush()
        return int(status or DONE)
    except _Terminated as stop:
        return say("terminated; no unfinished file was left", SIGNALLED + stop.number)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return say("interrupted; no unfinished file was left", INTERRUPTED)
    except click.ClickException as error:
        _show(error)
        return USAGE
    except AdvisorError as error:
        return say(error, status_of(error))
    except KeyboardInterrupt:
        return say("interrupted; no unfinished file was left", INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        return DONE
    except OSError as error:
        _forget_output()
        return say(f"{error.filename or 'the output'}: {error.strerror or error}", USAGE)
    except MemoryError:
        return say(_TOO_LITTLE, NO_VERDICT)
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        if isinstance(error, ImportError) and any(sign in str(error) for sign in _NO_ROOM):
            return say(_TOO_LITTLE, NO_VERDICT)
        if verbose:
            logging.getLogger("advisor").exception("a defect")
        defect = f"a defect of the advisor itself: {type(error).__name__}: {error}"
        return say(AdvisorError(defect, hint="run again with -v and report what it prints"), DEFECT)


def _show(error: click.ClickException) -> None:
    """What is wrong with the arguments, as click tells it; in another language than English in words of our own."""
    if spoken() == LANGUAGES[0]:
        shown = StringIO()
        error.show(shown)
        print(inert(shown.getvalue()), end="", file=sys.stderr)
        return
    from advisor.knowledge.words import word

    context = getattr(error, "ctx", None)
    if context is not None:
        command = context.command_path
        print(f"{context.get_usage()}\n{word(spoken(), 'errors.try_help', command=command)}\n", file=sys.stderr)
    say(error.format_message(), USAGE)


_TOO_LITTLE = NoVerdict("the memory does not suffice", hint="fewer --jobs, or fewer ranks at once")
_PANIC = "PanicException"
"""What native libraries raise past `Exception`; a defect like any other."""
_NO_ROOM = ("failed to map segment", "Cannot allocate memory")
"""How the system's loader says that a library did not fit."""
_MAY_BE_EMPTY = ("--reason", "--title-zh")


def _refuse_empty(arguments: Sequence[str]) -> None:
    """An empty argument is a variable that was not set; taken as the current folder it becomes a verdict on something
    else."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        name, sign, value = argument.partition("=")
        if argument == "" and before not in _MAY_BE_EMPTY:
            after = f" after {before}" if before else ""
            raise click.UsageError(f"an argument{after} is empty; is a variable not set?")
        if sign and not value and name.startswith("--") and name not in _MAY_BE_EMPTY:
            raise click.UsageError(f"{name} is empty; is a variable not set?")


class _Terminated(BaseException):
    """The process was told to end; unwinds through every clean-up."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C instead of leaving temporary files and workers behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise _Terminated(number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [(number, signal.signal(number, stop)) for number in signals]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _forget_output() -> None:
    """Standard output is gone or full; what is still buffered for it must not raise again when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def advise_main() -> int:
    """`advise PROFILE` is `advisor advise PROFILE`."""
    return main(["advise", *sys.argv[1:]])
