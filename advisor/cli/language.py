"""The language of what is said before a command knows its own: help, wrong arguments, errors, log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

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
