"""`advisor serve`: browse the saved reports of a folder. Read-only, on loopback unless told otherwise.

Needs the extra `advisor[serve]` (starlette, uvicorn). Runs are named by keys that exist only for files found below the
folder, so no address leads outside it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.basics.errors import UsageError
from advisor.model import LANGUAGES
from advisor.render.wording import both, word
from advisor.serve.access import SafeHeaders, TokenGuard, is_loopback
from advisor.serve.runs import Metric, RunFolder, SavedRun, grouped, same_kind, trend

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

SHOWN = 50
"""Runs on a page of the list: only these are opened."""
LOOPBACK = ("127.0.0.1", "localhost")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve(
    folder: str | Path, host: str = "127.0.0.1", port: int = 8350, lang: str = "en", token: str | None = None
) -> None:
    """Serves the folder until interrupted, with a token only to those who bring it.

    Raises UsageError where the folder or the extra is missing, or where other machines could read without a token.
    """
    if token is None and not is_loopback(host):
        raise UsageError("other machines could read the reports", place=host, hint="--allow-remote, with a token")
    try:
        import uvicorn
    except ImportError:
        raise UsageError("serve needs two more packages", hint="pip install 'advisor[serve]'") from None
    application = build_application(folder, (*LOOPBACK, host), lang, token)
    uvicorn.run(application, host=host, port=port, log_level="warning", server_header=False)


def build_application(
    folder: str | Path, hosts: Sequence[str] = LOOPBACK, lang: str = "en", token: str | None = None
) -> Starlette:
    """The web application. Requests whose Host header is none of `hosts` are refused: a page elsewhere cannot read
    these reports through a name that resolves to this machine. With a token its bearers alone are let in, under
    whatever name: a foreign page has none."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.routing import Route
    except ImportError:
        raise UsageError("serve needs two more packages", hint="pip install 'advisor[serve]'") from None
    root = Path(folder)
    if not root.is_dir():
        raise UsageError("no such folder", place=str(folder), hint="name the folder that holds the saved reports")
    if not os.access(root, os.R_OK | os.X_OK):
        raise UsageError("the folder cannot be read", place=str(folder))
    pages = _Pages(RunFolder(root), lang)
    names = sorted({host for host in hosts if host not in ("0.0.0.0", "::", "*")})
    guard = (
        Middleware(TokenGuard, token=token, headers=_HEADERS)
        if token
        else Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    )
    return Starlette(
        routes=[
            Route("/", pages.index, methods=["GET"]),
            Route("/run/{key}", pages.report, methods=["GET"]),
            Route("/run/{key}/json", pages.json, methods=["GET"]),
            Route("/trend", pages.trend, methods=["GET"]),
            Route("/compare", pages.compare, methods=["GET"]),
            Route("/baselines", pages.baselines, methods=["GET"]),
        ],
        middleware=[Middleware(SafeHeaders, headers=_HEADERS), guard],
        exception_handlers={404: pages.missing, 500: pages.broken},
    )


class _Pages:
    """What each address shows. Functions are synchronous: the framework runs them in threads."""

    def __init__(self, folder: RunFolder, lang: str) -> None:
        self._folder, self._lang = folder, lang if lang in LANGUAGES else "en"

    def index(self, request: Request) -> Response:
        query = request.query_params.get("q", "")[:200]
        asked = request.query_params.get("page", "1")[:6]
        page = max(int(asked), 1) if asked.isdecimal() else 1
        files = self._folder.files()
        if query.strip():
            found = self._matching(query)
            runs, more = found[(page - 1) * SHOWN : page * SHOWN], len(found) > page * SHOWN
        else:
            runs = list(self._folder.runs(files[(page - 1) * SHOWN : page * SHOWN]))
            more = len(files) > page * SHOWN
        title = word(self._lang, "serve.runs")
        return self._page("list", title, groups=grouped(runs), query=query, page=page, more=more)

    def report(self, request: Request) -> Response:
        from advisor.render import render

        found = self._folder.get(request.path_params["key"])
        return self.missing(request) if found is None else _answer(render(found[1], "html", self._lang))

    def json(self, request: Request) -> Response:
        from advisor.render import render

        found = self._folder.get(request.path_params["key"])
        if found is None:
            return self.missing(request)
        return _answer(render(found[1], "json", facts="all"), media="application/json")

    def trend(self, request: Request) -> Response:
        query = request.query_params.get("q", "")[:200]
        of = request.query_params.get("of", "")[:16]
        runs = same_kind(self._matching(query), of)
        metric = request.query_params.get("metric", "step.time_us")[:200]
        names = sorted({each.name for run in runs for each in run.metrics})
        points = trend(runs, metric)
        figure = _trend_figure(points, metric) if points else None
        return self._page(
            "trend", metric, query=query, of=of, metric=metric, names=names, points=points, figure=figure,
        )  # fmt: skip

    def compare(self, request: Request) -> Response:
        before, after = (self._folder.get(request.query_params.get(name, "")) for name in ("before", "after"))
        if before is None or after is None:
            return self.missing(request)
        from advisor.compare import compare
        from advisor.render import render

        sides, names = (before[1], after[1]), (before[0].name, after[0].name)
        found = compare(*sides)
        return _answer(render(found, "html", self._lang, sides=sides, names=names, home=True))

    def baselines(self, request: Request) -> Response:
        from advisor.facts.registry import catalogue
        from advisor.gate.history.baselines import baselines_below
        from advisor.gate.policy import read_policy
        from advisor.render.decision.trend import render_trends

        return _answer(render_trends(baselines_below(self._folder.root), read_policy({}, catalogue()), self._lang))

    def missing(self, request: Request, error: Exception | None = None) -> Response:
        return self._page("missing", word(self._lang, "serve.not_found"), status=404)

    def broken(self, request: Request, error: Exception | None = None) -> Response:
        return self._page("broken", word(self._lang, "serve.broken"), status=500)

    def _matching(self, query: str) -> list[SavedRun]:
        """All runs in which every word of the query stands, newest first."""
        wanted = query.casefold().split()
        return [run for run in self._folder.runs(self._folder.files()) if all(part in run.searched for part in wanted)]

    def _page(self, view: str, title: str, *, status: int = 200, **values: Any) -> Response:
        from advisor.render.report.html import render_page
        from advisor.render.report.outline import say_counts

        text = render_page("runs.html", self._lang, view=view, title=title, when=_when, say_counts=say_counts, **values)
        return _answer(text, status=status)


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M")


def _trend_figure(points: list[tuple[SavedRun, Metric]], name: str) -> Any:
    from advisor.render.report.figure import Figure, caption, scale
    from advisor.render.report.pictures import bars

    unit = points[0][1].unit
    values = [metric.value for _, metric in points]
    factor, shown = scale(values, unit)
    labels = [run.name.removesuffix(".json") for run, _ in points]
    picture = bars.Bars(labels, [("p-accent", [value * factor for value in values])], shown, both("serve.run"))
    return Figure("trend", both("serve.trend"), (), (), bars.columns(picture, caption("trend"), wide=True))


def _answer(text: str, *, media: str = "text/html", status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(text, status_code=status, media_type=f"{media}; charset=utf-8", headers=_HEADERS)
