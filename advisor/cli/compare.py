"""What a change did (`compare`) and what repairs would do (`whatif`)."""

from __future__ import annotations

from typing import Any

import click

from advisor.cli.exits import DONE, NO_VERDICT
from advisor.cli.options import ALLOW_CODE, CONFIG, JOBS, LANG, MODEL, QUIET, RULES, VERBOSE, load_ruleset, tell_notes
from advisor.cli.terminal import check_outputs, print_text, progress, say, start_log
from advisor.render import formats_of, render


@click.command()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--format", "form", type=click.Choice(formats_of("comparison")), default="text")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write there instead.")
@JOBS
@RULES
@CONFIG
@ALLOW_CODE
@MODEL
@LANG
@VERBOSE
@QUIET
def compare(
    before: str, after: str, form: str, output: str | None, jobs: int, verbose: int, quiet: bool, **given: Any
) -> int:
    """What a change did.

    Metrics, findings resolved, remaining and new, and whether each remedy had its promised effect.
    BEFORE and AFTER are profiles, reports (`advise --format json:FILE`) or saved facts. Ends with 3 where the two
    cannot be compared.
    """
    from advisor.compare import compare as run_compare
    from advisor.compare import read_report
    from advisor.pipeline import Options

    start_log(verbose, quiet)
    check_outputs([output])
    config, rules = load_ruleset(given, (before, after))
    tell_notes(rules)
    with progress(quiet) as tell:
        options = Options(jobs=jobs, engine=config.engine, progress=tell)
        sides = read_report(before, rules, options), read_report(after, rules, options)
    comparison = run_compare(*sides)
    print_text(render(comparison, form, given["lang"] or config.lang or "en", sides=sides), output)
    return DONE if comparison.comparable else NO_VERDICT


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
