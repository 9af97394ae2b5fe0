"""Who may read reports over a network: whoever has the token that the server printed when it started."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from advisor.basics.errors import UsageError

COOKIE = "advisor_token"
SHORTEST_TOKEN = 16
_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]
_Receive = Callable[[], Awaitable[_Message]]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def make_token(given: str | None = None) -> str:
    """The token asked for, or a new one. Raises UsageError where the one asked for could be guessed."""
    if given is None:
        return secrets.token_urlsafe(24)
    if len(given) < SHORTEST_TOKEN:
        raise UsageError(f"a token of {len(given)} characters can be guessed", hint=f"{SHORTEST_TOKEN} or more")
    if not re.fullmatch(r"[\w.~-]+", given, re.ASCII):
        raise UsageError("a token of other characters than letters, digits, . _ ~ - does not pass through addresses")
    return given


class TokenGuard:
    """Lets through who brings the token: once in the address (`?token=…`), from then on as a cookie that scripts and
    foreign pages do not see; programs as `Authorization: Bearer …`."""

    def __init__(self, app: Any, token: str, headers: dict[str, str]) -> None:
        self.app, self.token = app, token.encode()
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and self._is_right(given):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            await self._welcome(scope["path"], rest, send)
        elif any(self._is_right(each) for each in _brought(scope)):
            await self.app(scope, receive, send)
        else:
            await self._answer(401, [(b"www-authenticate", b"Bearer")], b"401: a token is needed\n", send)

    def _is_right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token)

    async def _welcome(self, path: str, rest: str, send: _Send) -> None:
        """Puts the token where it does not stand in the history of the browser. The path comes decoded: a browser drops
        tabs and line breaks, and a letter left out would make two slashes of one, so that it is encoded again."""
        where = "/" + quote(path.lstrip("/\\"), errors="replace") + (f"?{rest}" if rest else "")
        cookie = f"{COOKIE}={self.token.decode()}; HttpOnly; SameSite=Strict; Path=/"
        found = [(b"location", where.encode("ascii")), (b"set-cookie", cookie.encode("ascii"))]
        await self._answer(303, found, b"", send)

    async def _answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes, send: _Send) -> None:
        plain = (b"content-type", b"text/plain; charset=utf-8")
        await send({"type": "http.response.start", "status": status, "headers": [plain, *headers, *self.headers]})
        await send({"type": "http.response.body", "body": body})


class SafeHeaders:
    """Every answer carries these headers, those of the framework itself among them."""

    def __init__(self, app: Callable[[_Message, _Receive, _Send], Awaitable[None]], headers: dict[str, str]) -> None:
        self.app = app
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        async def complete(message: _Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message.get("headers", ())}
                missing = [pair for pair in self.headers if pair[0] not in there]
                message = {**message, "headers": [*message.get("headers", ()), *missing]}
            await send(message)

        await self.app(scope, receive, complete if scope["type"] == "http" else send)


def _brought(scope: _Message) -> list[str]:
    """The tokens that a request carries in its headers."""
    found = []
    for name, value in scope.get("headers", ()):
        text = value.decode("latin-1")
        if name == b"authorization" and text.lower().startswith("bearer "):
            found.append(text[7:].strip())
        elif name == b"cookie":
            try:
                cookie = SimpleCookie(text).get(COOKIE)
            except CookieError:
                cookie = None
            found += [cookie.value] if cookie else []
    return found
