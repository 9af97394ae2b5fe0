"""`compare`: what a change did."""

from __future__ import annotations

from typing import Any

import click

from advisor.cli.exits import DONE, NO_VERDICT
from advisor.cli.options import ALLOW_CODE, CONFIG, JOBS, LANG, MODEL, QUIET, RULES, VERBOSE, load_ruleset, tell_notes
from advisor.cli.terminal import check_outputs, print_text, progress, start_log
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
