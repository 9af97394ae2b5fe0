"""The language of what is said before a command knows its own: errors, log, and the pages of `--help`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar

import click

from advisor.basics.errors import AdvisorError
from advisor.model import LANGUAGES

_named: ContextVar[str | None] = ContextVar("named", default=None)
_of_help: ContextVar[str] = ContextVar("of_help", default=LANGUAGES[0])
_ENVIRONMENT = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Where a system keeps its user's language, the first that is set."""


def settle(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    """Keeps for this run what `--lang` asks for, wherever it stands, else the configuration. Help follows the language
    of the system where neither says anything; results never do, for scripts read them."""
    named = _asked(arguments, "--lang") or _configured(_asked(arguments, "--config"))
    _named.set(named if named in LANGUAGES else None)
    system = next((environment[name] for name in _ENVIRONMENT if environment.get(name)), "")[:2]
    _of_help.set(_named.get() or (system if system in LANGUAGES else LANGUAGES[0]))


def named() -> str | None:
    """The language somebody asked for."""
    return _named.get()


def spoken() -> str:
    """The language of errors and remarks."""
    return _named.get() or LANGUAGES[0]


def in_words(message: str) -> str:
    """A message in the language of errors and remarks."""
    return _translated(message, spoken())


def told(error: AdvisorError) -> str:
    """An error with its place and hint in the language of errors."""
    if spoken() == LANGUAGES[0]:
        return str(error)
    from advisor.knowledge.messages import told as told_in

    return told_in(error, spoken())


def _translated(message: str, lang: str) -> str:
    if lang == LANGUAGES[0]:
        return message
    from advisor.knowledge.messages import translated  # what it reads with is not needed for English

    return translated(message, lang)


def of_help() -> str:
    """The language of `--help`."""
    return _of_help.get()


def _asked(arguments: Sequence[str], option: str) -> str:
    """The last value that the command line gives this option, though nobody has checked the arguments yet."""
    found = ""
    for argument, after in zip(arguments, [*arguments[1:], ""], strict=False):
        name, sign, value = argument.partition("=")
        if name == option:
            found = value if sign else after
    return found


def _configured(file: str) -> str | None:
    from pathlib import Path

    from advisor.config import language_in

    return language_in(Path(file) if file else None)


_EXTRA = "  ["
"""Before what click itself adds to the words of an option: its range, or that it is required."""
_FIRST_COLUMN = 30
"""Widest name of an option beside which its words still start on the same line."""


class _Page(click.HelpFormatter):
    """Writes as click does; in another language than English each sentence is replaced by its translation."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The line of usage."""
        super().write_usage(prog, args, None if of_help() == LANGUAGES[0] else _said("Usage: "))

    def write_heading(self, heading: str) -> None:
        """ "Options:" and its like."""
        if of_help() == LANGUAGES[0]:
            super().write_heading(heading)
        else:
            from advisor.knowledge.words import word

            self.write(" " * self.current_indent + word(of_help(), "errors.heading", name=_said(heading)) + "\n")

    def write_text(self, text: str) -> None:
        """The paragraphs of a description."""
        if of_help() == LANGUAGES[0]:
            super().write_text(text)
            return
        paragraphs = (_said(" ".join(each.split())) for each in text.split("\n\n"))
        indent = " " * self.current_indent
        lines = ("\n".join(indent + line for line in _lines(each, self.width - len(indent))) for each in paragraphs)
        self.write("\n\n".join(lines) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = _FIRST_COLUMN, col_spacing: int = 2) -> None:
        """Names with what they mean."""
        if of_help() == LANGUAGES[0]:
            super().write_dl(rows, col_max, col_spacing)
            return
        rows = list(rows)
        first = min(max(len(name) for name, _ in rows), col_max) + col_spacing
        for name, meaning in rows:
            told, sign, extra = meaning.partition(_EXTRA)
            text = _said(told) + (_EXTRA[:-1] + _said(f"[{extra}") if sign else "")
            lines = _lines(text, self.width - self.current_indent - first)
            if lines and len(name) > first - col_spacing:
                lines = ["", *lines]
            for number, line in enumerate(lines or [""]):
                before = f"{'' if number else name:<{first}}"
                self.write(f"{'':>{self.current_indent}}{before}{line}".rstrip() + "\n")


def _said(text: str) -> str:
    return _translated(text, of_help())


def _lines(text: str, width: int) -> list[str]:
    from rich.text import Text as Line

    from advisor.render.wrapping import wrapped

    return [line.plain for line in wrapped(Line(text), max(width, 20))]


SPEAK = click.option(
    "--lang", type=click.Choice(LANGUAGES), expose_value=False, help="Language of texts [default: en]."
)
"""`--lang` of groups: `settle` has read it, wherever it stands."""


class _Context(click.Context):
    formatter_class = _Page


class Group(click.Group):
    """A group that tells the first sentence of each of its commands in full, however long."""

    context_class = _Context

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first(command)) for name, command in found if command is not None and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first(command: click.Command) -> str:
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def localised(command: click.Command) -> click.Command:
    """The command with pages in the language of the reader, and those below it."""
    command.context_class = _Context
    for each in getattr(command, "commands", {}).values():
        localised(each)
    return command
