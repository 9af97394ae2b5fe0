"""`watch`: the profiles of a long training, judged as they appear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from advisor.cli.exits import DONE
from advisor.cli.options import ALLOW_CODE, CONFIG, HUSH, LANG, RULES
from advisor.cli.terminal import note, start_log
from advisor.model import SEVERITIES


@click.command()
@click.argument("folder", type=click.Path(), metavar="FOLDER")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), metavar="DIR", help="[default: FOLDER/advisor-reports]"
)
@click.option("--exec", "command", metavar="CMD", help="Call it, with the event as JSON on its standard input.")
@click.option("--webhook", metavar="URL", help="Send the event there.")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), default="high", show_default=True,
    help="Call on a new root cause this severe, and on a step slower than the gate's limit.",
)  # fmt: skip
@click.option("--every", "poll_s", type=click.FloatRange(0.1), metavar="S", help="Look every so many seconds [10].")
@click.option(
    "--settled", "settled_s", type=click.FloatRange(0), metavar="S", help="Finished when unchanged for so long [20]."
)
@click.option(
    "--timeout",
    "longest_s",
    type=click.FloatRange(1),
    metavar="S",
    help="Leave a profile out that takes longer [1800].",
)
@click.option("--once", is_flag=True, help="Judge what is finished now, and end.")
@click.option("--with-process", "process", type=click.IntRange(1), metavar="PID", help="End when this process has.")
@RULES
@CONFIG
@ALLOW_CODE
@LANG
@HUSH
def watch(folder: str, **given: Any) -> int:
    """Judges the profiles of a long training as they appear in FOLDER.

    One line each: step time, direction, first cause, what changed. Keeps reports for `advisor serve`, a line of JSON a
    profile in runs.jsonl, and goes on where it stopped.
    """
    from advisor.model import Severity
    from advisor.watch.settings import Settings
    from advisor.watch.watcher import Watcher, output_of

    start_log()
    chosen = {name: given[name] for name in ("poll_s", "settled_s", "longest_s") if given[name] is not None}
    place = Path(folder).resolve()
    settings = Settings(
        place, Path(given["output"]).resolve() if given["output"] else output_of(place), once=given["once"],
        process=given["process"], severity=Severity(given["severity"]), command=given["command"],
        webhook=given["webhook"], lang=given["lang"] or "en", rules=tuple(given["directories"]),
        config=given["config_file"], allowed=tuple(given["allowed"]), **chosen,
    )  # fmt: skip
    watcher = Watcher(settings, lambda line: click.echo(line))
    if not settings.once:
        note(f"advisor: watching {place}; reports: advisor serve {settings.output}  (Ctrl-C ends it)")
    watcher.run()
    return DONE
