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
from advisor.serve.access import TokenGuard, is_loopback
from advisor.serve.runs import Metric, RunFolder, SavedRun, metrics, trend

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

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
        middleware=[guard],
        exception_handlers={404: pages.missing},
    )


class _Pages:
    """What each address shows. Functions are synchronous: the framework runs them in threads."""

    def __init__(self, folder: RunFolder, lang: str) -> None:
        self._folder, self._lang = folder, lang if lang in LANGUAGES else "en"

    def index(self, request: Request) -> Response:
        query, runs = self._found(request)
        return self._page("list", word(self._lang, "serve.runs"), runs=runs, query=query)

    def report(self, request: Request) -> Response:
        from advisor.render import render

        run = self._folder.get(request.path_params["key"])
        return self.missing(request) if run is None else _answer(render(run.report, "html", self._lang))

    def json(self, request: Request) -> Response:
        from advisor.render import render

        run = self._folder.get(request.path_params["key"])
        if run is None:
            return self.missing(request)
        return _answer(render(run.report, "json", facts="all"), media="application/json")

    def trend(self, request: Request) -> Response:
        query, runs = self._found(request)
        metric = request.query_params.get("metric", "step.time_us")[:200]
        names = sorted({name for run in runs for name in metrics(run.report)})
        points = trend(runs, metric)
        figure = _trend_figure(points, metric) if points else None
        return self._page(
            "trend", metric, query=query, metric=metric, names=names, points=points, figure=figure,
        )  # fmt: skip

    def compare(self, request: Request) -> Response:
        before, after = (self._folder.get(request.query_params.get(name, "")) for name in ("before", "after"))
        if before is None or after is None:
            return self.missing(request)
        from advisor.compare import compare
        from advisor.render import render

        found = compare(before.report, after.report)
        sides, names = (before.report, after.report), (before.name, after.name)
        return _answer(render(found, "html", self._lang, sides=sides, names=names, home=True))

    def baselines(self, request: Request) -> Response:
        from advisor.facts.registry import catalogue
        from advisor.gate.history.baselines import baselines_below
        from advisor.gate.policy import read_policy
        from advisor.render.decision.trend import render_trends

        return _answer(render_trends(baselines_below(self._folder.root), read_policy({}, catalogue()), self._lang))

    def missing(self, request: Request, error: Exception | None = None) -> Response:
        return self._page("missing", word(self._lang, "serve.not_found"), status=404)

    def _found(self, request: Request) -> tuple[str, list[SavedRun]]:
        query = request.query_params.get("q", "")[:200]
        wanted = query.casefold().split()
        return query, [run for run in self._folder.runs() if all(part in _searched(run) for part in wanted)]

    def _page(self, view: str, title: str, *, status: int = 200, **values: Any) -> Response:
        from advisor.render.report.html import render_page

        text = render_page("runs.html", self._lang, view=view, title=title, when=_when, **values)
        return _answer(text, status=status)


def _searched(run: SavedRun) -> str:
    """What a search looks through: names, headline, verdicts, rules and their titles."""
    summary = run.report.summary
    parts = [run.name, run.report.profile.path, summary.direction, summary.headline.en, summary.headline.zh]
    for finding in run.report.findings:
        parts += [finding.verdict, finding.rule, finding.title.en, finding.title.zh]
    return " ".join(parts).casefold()


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
