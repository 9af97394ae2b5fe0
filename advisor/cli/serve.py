"""`serve`: saved reports in a browser; `mcp`: the advisor as tools for agents."""

from __future__ import annotations

import os
from typing import Any

import click

from advisor.cli.exits import DONE
from advisor.cli.options import ALLOW_CODE, CONFIG, HUSH, RULES
from advisor.cli.terminal import note, start_log
from advisor.model import LANGUAGES

TOKEN = "ADVISOR_TOKEN"


@click.command()
@click.argument("folder", default=".", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8350, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--allow-remote",
    is_flag=True,
    help=f"Let other machines read, with a token: ${TOKEN}, or a new one that is printed.",
)
@click.option("--lang", type=click.Choice(LANGUAGES), default="en", help="Language pages open in.")
@HUSH
def serve(folder: str, host: str, port: int, allow_remote: bool, lang: str) -> int:
    """Shows saved reports in a browser.

    The JSON reports of a folder: list, search, trend, report, comparison. Only this machine reads them unless another
    --host is named with --allow-remote.
    """
    from advisor.serve.access import is_loopback, make_token
    from advisor.serve.app import serve as run_server

    if not allow_remote and not is_loopback(host):
        raise click.UsageError(
            f"--host {host}: other machines could read every report below {folder}; "
            "--allow-remote lets those in who have the token"
        )
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    if not allow_remote:
        note(f"advisor: {address}  (Ctrl-C ends it)")
        run_server(folder, host, port, lang)
        return DONE
    token = make_token(os.environ.get(TOKEN))
    note("advisor: other machines can read these reports, unencrypted; put a proxy with TLS before it outside of a lab")
    click.echo(f"advisor: {address}?token={token}  (Ctrl-C ends it)", err=True)
    run_server(folder, host, port, lang, token)
    return DONE


@click.command()
@click.option("--root", default=".", type=click.Path(), metavar="DIR", help="Read below this folder only [default: .].")
@RULES
@CONFIG
@ALLOW_CODE
@click.option("--jobs", type=click.IntRange(min=0), default=1, metavar="N", help="Processes [1].")
@HUSH
def mcp(root: str, jobs: int, **given: Any) -> int:
    """Serves agents over the Model Context Protocol.

    Tools on standard input and output: advise, explain, facts, compare, doctor, rules_search. None of them writes.
    """
    from advisor.mcp.places import Root
    from advisor.mcp.server import serve as run_server
    from advisor.mcp.tools import Tools

    start_log()
    run_server(Tools(Root(root), given["config_file"], given["directories"], given["allowed"], jobs))
    return DONE
