"""`facts`, `doctor` and `explain`: what lies behind a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from advisor.cli.exits import DONE, NO_VERDICT
from advisor.cli.options import (
    ALLOW_CODE,
    CONFIG,
    HUSH,
    JOBS,
    LANG,
    MODEL,
    QUIET,
    RULES,
    VERBOSE,
    extend_catalogue,
    load_ruleset,
    tell_notes,
)
from advisor.cli.terminal import check_outputs, print_text, progress, start_log


@click.command()
@click.argument("profiles", nargs=-1, metavar="[list | PROFILE...]", required=True)
@click.option("--save", type=click.Path(dir_okay=False), metavar="FILE", help="Write the facts to a file as well.")
@click.option("--format", "form", type=click.Choice(["text", "json", "md"]), default="text", help="For `list`.")
@JOBS
@ALLOW_CODE
@QUIET
@VERBOSE
def facts(
    profiles: tuple[str, ...], save: str | None, form: str, jobs: int, quiet: bool, verbose: int, allowed: Sequence[str]
) -> int:
    """The facts measured in a profile, as JSON.

    `facts list` is the catalogue of all fact kinds.
    """
    from advisor.facts import saved

    start_log(verbose, quiet)
    check_outputs([save])
    extend_catalogue(None, allowed, () if profiles == ("list",) else profiles)
    if profiles == ("list",):
        click.echo(saved.catalogue_text(form), nl=False)
        return DONE
    from advisor.pipeline import Options, measure

    with progress(quiet) as tell:
        measured = measure(profiles, None, Options(jobs=jobs, progress=tell))
    text = saved.dump(measured)
    if save:
        print_text(text, save)
    print_text(text)
    return DONE


@click.command()
@click.argument("profiles", nargs=-1, metavar="PROFILE...", required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@RULES
@CONFIG
@ALLOW_CODE
@MODEL
@LANG
@HUSH
def doctor(profiles: tuple[str, ...], form: str, **given: Any) -> int:
    """What was recognised, and what is missing.

    For all that is missing: the setting that brings it, and the rules that wait for it.
    """
    from advisor.inspection.doctor import examine, show

    start_log()
    config, rules = load_ruleset(given, profiles)
    diagnosis = examine(profiles, rules)
    click.echo(show(diagnosis, form, given["lang"] or config.lang or "en"), nl=False)
    return DONE if diagnosis.recognised else NO_VERDICT


@click.command()
@click.argument("rule")
@click.option("--profile", "profile", multiple=True, metavar="PROFILE", help="Show what every clause saw there.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@RULES
@CONFIG
@ALLOW_CODE
@MODEL
@LANG
@HUSH
def explain(rule: str, profile: tuple[str, ...], form: str, **given: Any) -> int:
    """A rule, its thresholds and their origin.

    Also the document it encodes and, with a profile, what each clause saw. Instead of a rule, one of the profile's
    findings: F1.
    """
    from advisor.inspection.explain import explain as tell

    start_log()
    config, rules = load_ruleset(given, profile)
    tell_notes(rules)
    click.echo(tell(rule, profile, rules, form, given["lang"] or config.lang or "en"), nl=False)
    return DONE
