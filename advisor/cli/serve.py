"""`serve`: saved reports in a browser."""

from __future__ import annotations

import click

from advisor.cli.exits import DONE
from advisor.model import LANGUAGES


@click.command()
@click.argument("folder", default=".", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; there is no login.")
@click.option("--port", default=8350, show_default=True, type=click.IntRange(1, 65535))
@click.option("--lang", type=click.Choice(LANGUAGES), default="en", help="Language pages open in.")
def serve(folder: str, host: str, port: int, lang: str) -> int:
    """Shows saved reports in a browser.

    The JSON reports of a folder: list, search, trend, report, comparison.
    """
    from advisor.serve.app import serve as run_server

    click.echo(f"advisor: http://{host}:{port}/  (Ctrl-C ends it)", err=True)
    run_server(folder, host, port, lang)
    return DONE
