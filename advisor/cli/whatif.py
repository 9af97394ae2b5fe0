"""`whatif`: the step without some of the causes that were found."""

from __future__ import annotations

from typing import Any

import click

from advisor.cli.exits import DONE, NO_VERDICT
from advisor.cli.options import ALLOW_CODE, CONFIG, JOBS, LANG, MODEL, QUIET, RULES, VERBOSE, load_ruleset, tell_notes
from advisor.cli.terminal import check_outputs, print_text, progress, say, start_log


@click.command()
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@click.option(
    "--without",
    required=True,
    metavar="F1,F3",
    help="Findings to do without, by their ids in the report, or `all`.",
)
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write there instead.")
@JOBS
@RULES
@CONFIG
@ALLOW_CODE
@MODEL
@LANG
@VERBOSE
@QUIET
def whatif(
    profiles: tuple[str, ...], without: str, form: str, output: str | None, jobs: int, verbose: int, quiet: bool,
    **given: Any,
) -> int:  # fmt: skip
    """The step without some of its causes.

    Replays the step of PROFILE with these findings repaired, and tells what it takes then, each rank's new share of
    computing and what limits next. The ids are those of `advisor advise PROFILE`.
    """
    from advisor.pipeline import Options, repair
    from advisor.render.report.whatif import render_whatif, render_whatif_json

    start_log(verbose, quiet)
    check_outputs([output])
    config, rules = load_ruleset(given, profiles)
    tell_notes(rules)
    with progress(quiet) as tell:
        options = Options(jobs=jobs, engine=config.engine, progress=tell)
        repaired = repair(profiles, without.split(","), rules, options)
    if repaired is None:
        return say("no finding of this profile says what a step gains without it", NO_VERDICT)
    lang = given["lang"] or config.lang or "en"
    print_text(render_whatif_json(repaired) if form == "json" else render_whatif(repaired, lang), output)
    return DONE
