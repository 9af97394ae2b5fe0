"""`collect`: profiler configurations, written and checked."""

from __future__ import annotations

from typing import Any

import click

from advisor.cli.exits import DONE, FAILED
from advisor.cli.options import HUSH, LANG, load_ruleset, tell_notes
from advisor.cli.terminal import check_outputs, note, print_text, start_log


@click.command()
@click.option("--for", "profile", metavar="PROFILE", help="Ask for what its rules lack most.")
@click.option(
    "--for-missing", "lacking", type=click.Path(exists=True, dir_okay=False), metavar="REPORT.json",
    help="Ask for all that this report (`advise --format json:FILE`) lacked, and say what it costs.",
)  # fmt: skip
@click.option(
    "--evidence", multiple=True, metavar="NAME", help="steps, operators, communication, data, memory, …; repeatable."
)
@click.option("--framework", type=click.Choice(["mindspore", "pytorch"]), default=None)
@click.option(
    "--as",
    "form",
    type=click.Choice(["call", "callback", "dynamic", "environment", "msprof"]),
    default="call",
    help="Python call, MindSpore callback, profiler_config.json, MS_PROFILER_OPTIONS, or msprof's command line.",
)
@click.option("--steps", type=click.IntRange(min=1), default=None, help="Steps to record.")
@click.option("--start", type=click.IntRange(min=0), default=None, help="First step to record.")
@click.option("--output-path", default="./profile", help="Where the profiler is to write.")
@click.option(
    "--check", "checked", type=click.Path(), metavar="FILE", help="Check a script, profiler_config.json or options."
)
@click.option(
    "--total-steps", type=click.IntRange(min=1), default=None, help="Steps that the training runs, for --check."
)
@click.option("--ranks", type=click.IntRange(min=1), default=None, help="Ranks that take part, for --check.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE")
@LANG
@HUSH
def collect(profile: str | None, lacking: str | None, checked: str | None, **given: Any) -> int:
    """Writes a profiler configuration, or checks one.

    Without --for and --evidence: what most diagnoses need. --check ends with 1 where something is wrong.
    """
    from advisor import collect as collecting
    from advisor.knowledge.words import word

    start_log()
    check_outputs([given["output"]])
    lang = given["lang"] or "en"
    if checked:
        faults = collecting.check_file(checked, total_steps=given["total_steps"], ranks=given["ranks"])
        for fault in faults:
            click.echo(fault.show(lang))
        note(word(lang, "collect.defects" if faults else "collect.no_defects", count=len(faults)))
        return FAILED if any(fault.level == "error" for fault in faults) else DONE
    evidence, framework = tuple(given["evidence"]), given["framework"] or "mindspore"
    if lacking:
        return _for_missing(lacking, lang, given)
    if profile:
        report = _report(profile)
        known = report.profile.framework if report.profile.framework != "unknown" else None
        framework = given["framework"] or known
        note(collecting.next_collection(report).get(lang))
        evidence = evidence or collecting.next_evidence(report)
    text = collecting.write_configuration(
        evidence, framework, given["form"], steps=given["steps"], start=given["start"],
        path=given["output_path"], lang=lang,
    )  # fmt: skip
    print_text(text, given["output"])
    return DONE


def _for_missing(file: str, lang: str, given: dict[str, Any]) -> int:
    """The configurations for what a saved report lacked; remarks to standard error."""
    from advisor.basics.errors import UsageError
    from advisor.basics.files import LARGEST_DOCUMENT, read_own
    from advisor.collect.missing import for_missing
    from advisor.exchange import report_from_json

    try:
        content = read_own(file, LARGEST_DOCUMENT)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", place=file) from None
    collection = for_missing(
        report_from_json(content), given["form"], lang, given["framework"], steps=given["steps"],
        start=given["start"], path=given["output_path"],
    )  # fmt: skip
    for remark in collection.remarks:
        note(remark)
    if collection.text:
        print_text(collection.text, given["output"])
    return DONE


def _report(profile: str) -> Any:
    from advisor.pipeline import advise

    rules = load_ruleset({}, [profile])[1]
    tell_notes(rules)
    return advise([profile], rules)
