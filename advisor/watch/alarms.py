"""Who is called when something new is wrong: a command, a webhook. Neither can stop or delay the watching for long."""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
import threading
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from advisor.basics.errors import UsageError
from advisor.watch.settings import Settings, number

log = logging.getLogger("advisor")

_LONGEST_TOLD = 200
"""Characters of what an answer was wrong with; it may quote all of it."""


def check(settings: Settings) -> None:
    """Raises UsageError for a command or an address that could never be called."""
    if settings.command is not None:
        try:
            words = shlex.split(settings.command)
        except ValueError as error:
            raise UsageError(f"--exec {settings.command}: {error}") from None
        if not words:
            raise UsageError("--exec: name a command")
    if settings.webhook is not None and not _is_address(settings.webhook):
        raise UsageError("--webhook: name an address that begins with http:// or https://")


def _is_address(webhook: str) -> bool:
    try:
        parts = urlsplit(webhook)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number
        return False


def call(settings: Settings, event: dict[str, Any]) -> None:
    """Calls whoever is to be called. The event is JSON on standard input or the body of the request: nothing that
    comes from a profile stands on a command line."""
    body = json.dumps(event, ensure_ascii=True, allow_nan=False, sort_keys=True).encode("ascii")
    if settings.command:
        _run(shlex.split(settings.command), body)
    if settings.webhook:
        _post(settings.webhook, body)


def _run(words: list[str], body: bytes) -> None:
    try:
        done = subprocess.run(
            words, input=body, timeout=number("longest_call"), check=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            log.warning("--exec %s: ended with %d", words[0], done.returncode)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("--exec %s: %s", words[0], error)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An address that leads elsewhere is told, not followed: what is sent was meant for this one."""

    def redirect_request(self, *given: Any, **more: Any) -> None:
        return None


def _post(address: str, body: bytes) -> None:
    """The limit of a socket begins anew with each byte that drips in: what is not done in time is left behind."""
    longest, faults = number("longest_call"), list[str]()

    def send() -> None:
        headers = {"Content-Type": "application/json"}
        try:
            request = urllib.request.Request(address, data=body, headers=headers, method="POST")
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=longest) as answer:
                answer.read(1 << 16)
        except (OSError, ValueError, HTTPException) as error:
            faults.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=send, name="webhook", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # no more threads
        faults.append(str(error))
    else:
        thread.join(longest)
    if thread.is_alive():
        faults.append(f"was not done after {longest:.0f} s; it was left behind")
    for fault in faults:
        log.warning("--webhook %s: %s", urlsplit(address).hostname, fault[:_LONGEST_TOLD])
