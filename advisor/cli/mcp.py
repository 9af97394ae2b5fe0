"""`mcp`: the advisor as tools for agents."""

from __future__ import annotations

from typing import Any

import click

from advisor.cli.exits import DONE
from advisor.cli.options import ALLOW_CODE, CONFIG, HUSH, RULES
from advisor.cli.terminal import start_log


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
    from advisor.mcp.server import serve
    from advisor.mcp.tools import Tools

    start_log()
    serve(Tools(Root(root), given["config_file"], given["directories"], given["allowed"], jobs))
    return DONE
