"""`advise`: one profile, one report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from advisor.basics.errors import NoVerdict
from advisor.cli.exits import DONE, FAILED, NO_VERDICT, USAGE
from advisor.cli.language import spoken
from advisor.cli.options import judging, load_ruleset, run_options, tell_notes
from advisor.cli.terminal import draws_bar, inert, outputs, progress, say, start_log, write
from advisor.model import Severity

if TYPE_CHECKING:
    from advisor.model import Report
    from advisor.ruleset.files.loader import RuleSet


@click.command()
@click.argument("profiles", nargs=-1, metavar="PROFILE...")
@click.option(
    "--facts",
    "saved",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Judge facts saved by `advisor facts --save` instead of a profile.",
)
@judging
def advise(profiles: tuple[str, ...], saved: str | None, **given: Any) -> int:
    """Analyses one profiler result and reports.

    PROFILE is a rank folder, a folder of rank folders, a cluster output, or single files of them.
    """
    from advisor.execution import prepare

    start_log(given["verbose"], given["quiet"])
    wanted = outputs(given["formats"], "report")
    prepare(profiles, given["jobs"], given["cluster"], threads=draws_bar(given["quiet"]))
    config, rules = load_ruleset(given, profiles)
    if bool(profiles) == bool(saved):
        raise click.UsageError("name a PROFILE, or saved --facts")
    if saved:
        from advisor.facts.saved import load
        from advisor.pipeline import judge_saved

        report = judge_saved(load(saved), rules, given["engine"] or config.engine)
    else:
        from advisor.pipeline import advise as run_advise

        with progress(given["quiet"]) as tell:
            report = run_advise(profiles, rules, run_options(given, config, tell))
    write(report, wanted, given["lang"] or config.lang or "en")
    return status_of_rules(rules, _status(report, rules, given["fail_on"]))


def status_of_rules(rules: RuleSet, status: int) -> int:
    """The status, or 2 where rules are wrong and nothing failed: what they ask for was not judged.

    A rule without the facts of an extractor that cannot be used is not wrong.
    """
    from advisor.knowledge.messages import told_fault

    tell_notes(rules)
    for error in rules.errors:
        print(f"advisor: {inert(told_fault(error, spoken()))}", file=sys.stderr)
    wrong = rules.errors and all(error.level == "error" for error in rules.errors)
    return USAGE if wrong and status != FAILED else status


def _status(report: Report, rules: RuleSet, fail_on: str | None) -> int:
    if not report.profile.ranks:
        return say(
            NoVerdict(
                "nothing was recognised as profiler output",
                hint="`advisor doctor` tells what was looked for and why each folder was passed over",
            ),
            NO_VERDICT,
        )
    if not _judged(report, rules):
        return NO_VERDICT
    if fail_on is not None:
        limit = Severity(fail_on).rank
        if any(f.severity.rank >= limit and f.status != "experimental" for f in report.findings):
            return FAILED
    return DONE


def _judged(report: Report, rules: RuleSet) -> bool:
    """Whether anything was said of the training: that all ranks are there says nothing where no file could be read."""
    if any(f.severity.rank >= Severity.MEDIUM.rank for f in report.findings):
        return True
    about = {rule.id for rule in rules.rules if rule.direction.value != "evidence"} or set(rules.by_id)
    return any(check.outcome.value in ("pass", "fail") and check.rule in about for check in report.checked)
