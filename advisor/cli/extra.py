"""Subcommands that are imported only when used: compare, rules, collect."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.cli.main import ALLOW_CODE, MODEL

if TYPE_CHECKING:
    from advisor.ruleset.files.loader import RuleSet

DONE, FAILED, USAGE, NO_VERDICT = 0, 1, 2, 3

_RULES = click.option("--rules", "directories", multiple=True, type=click.Path(), metavar="DIR", help="A further pack.")
_CONFIG = click.option("--config", "config_file", type=click.Path(), metavar="FILE")
_LANG = click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of texts [default: en].")


@click.command()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json", "html"]), default="text")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write there instead.")
@click.option("--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes [all cores].")
@_RULES
@_CONFIG
@ALLOW_CODE
@click.option("--model", metavar="NAME", help=MODEL)
@_LANG
@click.option("-v", "--verbose", count=True, help="Say more; twice: debug.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no log.")
def compare(
    before: str, after: str, form: str, output: str | None, jobs: int, verbose: int, quiet: bool, **given: Any
) -> int:
    """What a change did.

    Metrics, findings resolved, remaining and new, and whether each remedy had its promised effect.
    BEFORE and AFTER are profiles, reports (`advise --format json:FILE`) or saved facts. Ends with 3 where the two
    cannot be compared.
    """
    from advisor.cli.main import _log, _progress, check_outputs, load_ruleset, tell_notes
    from advisor.compare import compare as run_compare
    from advisor.compare import read_report
    from advisor.pipeline import Options
    from advisor.render.comparison.text import render_comparison

    _log(verbose, quiet)
    check_outputs([output])
    config, rules = load_ruleset(given, (before, after))
    tell_notes(rules)
    with _progress(quiet) as tell:
        options = Options(jobs=jobs, engine=config.engine, progress=tell)
        sides = read_report(before, rules, options), read_report(after, rules, options)
    comparison = run_compare(*sides)
    lang = given["lang"] or config.lang or "en"
    if form == "html":
        from advisor.render.comparison.html import render_comparison as render_page

        _print(render_page(comparison, *sides, lang), output)
    else:
        _print(render_comparison(comparison, form, lang), output)
    return DONE if comparison.comparable else NO_VERDICT


def _print(text: str, output: str | None) -> None:
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    from advisor.basics.files import write_atomically

    write_atomically(output, text)


@click.group()
def rules() -> None:
    """Work on rule packs: list, show, lint, test, new."""


@rules.command(name="list")
@click.option("--format", "form", type=click.Choice(["text", "md", "json"]), default="text")
@_RULES
@_CONFIG
@ALLOW_CODE
@_LANG
def list_rules(form: str, **given: Any) -> int:
    """Every rule: id, verdict, direction, what it judges, title."""
    from advisor.cli.main import load_ruleset

    config, ruleset = load_ruleset(given)
    _print(_listed(ruleset, form, given["lang"] or config.lang or "en"), None)
    for error in (*ruleset.notes, *ruleset.errors):
        click.echo(str(error), err=True)
    return DONE


def _listed(ruleset: RuleSet, form: str, lang: str) -> str:
    rows = [(r.id, r.verdict, r.direction.value, r.subject_kind, r.status, r.title.get(lang)) for r in ruleset.rules]
    names = ("id", "verdict", "direction", "for", "status", "title")
    if form == "json":
        return json.dumps([dict(zip(names, row, strict=True)) for row in rows], ensure_ascii=False, indent=1) + "\n"
    if form == "md":
        head = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        return (
            "\n".join([*head, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)])
            + "\n"
        )
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
    lines = [
        "  ".join(
            [*(row[i].ljust(widths[i]) for i in range(4)), row[5] + ("" if row[4] == "stable" else f" [{row[4]}]")]
        )
        for row in rows
    ]
    return "\n".join(lines) + f"\n{len(rows)} rules\n"


@rules.command()
@click.argument("rule")
@_RULES
@_CONFIG
@ALLOW_CODE
@_LANG
def show(rule: str, **given: Any) -> int:
    """A rule as it is in force: thresholds with their origin, statements, remedies, and the file it stands in."""
    from advisor.cli.main import load_ruleset
    from advisor.inspection.explain import explain

    config, ruleset = load_ruleset(given)
    click.echo(explain(rule, (), ruleset, "text", given["lang"] or config.lang or "en"), nl=False)
    return DONE


def _folders(paths: Sequence[str]) -> list[Path]:
    """Folders or files named, or the shipped rules; a file of cases stands for its rule."""
    from advisor.basics.errors import UsageError
    from advisor.basics.resources import resource

    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise UsageError("no such file or folder", place=missing[0])
    rules = (Path(path.removesuffix(".test.yaml") + ".yaml") for path in paths if path.endswith(".test.yaml"))
    files = [Path(path) for path in paths if not path.endswith(".test.yaml")]
    return list(dict.fromkeys([*files, *rules])) or [resource("rules")]


@rules.command(name="lint")
@click.argument("paths", nargs=-1, metavar="[DIR|FILE]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@_CONFIG
@ALLOW_CODE
def lint_rules(paths: tuple[str, ...], form: str, config_file: str | None, allowed: tuple[str, ...]) -> int:
    """Every defect of rules, cases and remedies, with file, line and a hint. Ends with 2 where there is one."""
    from advisor.authoring.lint import lint
    from advisor.cli.main import extend_catalogue

    extend_catalogue(config_file, allowed)
    found = lint(_folders(paths))
    if form == "json":
        click.echo(json.dumps([vars(error) for error in found], ensure_ascii=False, indent=1, default=str))
    else:
        for error in found:
            click.echo(str(error))
        click.echo(f"{len(found)} defects" if found else "no defects", err=True)
    return USAGE if any(error.level == "error" for error in found) else DONE


@rules.command(name="test")
@click.argument("paths", nargs=-1, metavar="[DIR|FILE]...")
@click.option("-v", "--verbose", is_flag=True, help="Show the cases that hold as well.")
@_CONFIG
@ALLOW_CODE
def test_rules(paths: tuple[str, ...], verbose: bool, config_file: str | None, allowed: tuple[str, ...]) -> int:
    """Runs the cases beside the rules. Ends with 1 where one does not hold."""
    from advisor.authoring.cases import run_cases
    from advisor.cli.main import extend_catalogue
    from advisor.ruleset.files.loader import rule_files

    extend_catalogue(config_file, allowed)
    results = run_cases([file for folder in _folders(paths) for file in rule_files(folder)])
    failed = [result for result in results if not result.passed]
    for result in results if verbose else failed:
        click.echo(f"{'ok  ' if result.passed else 'FAIL'} {result.rule}: {result.case}  {result.file}:{result.line}")
        for failure in result.failures:
            click.echo(f"     {failure}")
        for line in result.near if result.failures else ():
            click.echo(f"       {line}")
    click.echo(f"{len(results)} cases, {len(failed)} do not hold", err=True)
    return FAILED if failed else DONE


class _Asked(click.Option):
    """Asked for where it was not given; where nobody answers, its default or an error that names it."""

    def prompt_for_value(self, ctx: click.Context) -> Any:
        try:
            return super().prompt_for_value(ctx)
        except click.Abort:
            if sys.stdin is not None and sys.stdin.isatty():
                raise
        default = self.get_default(ctx)
        if not isinstance(default, str):
            raise click.MissingParameter(ctx=ctx, param=self)
        return self.type_cast_value(ctx, default)


@rules.command()
@click.argument("directory", type=click.Path(file_okay=False))
@click.option("--id", "name", cls=_Asked, prompt="Rule id, e.g. ACME001")
@click.option("--verdict", cls=_Asked, prompt="Verdict: a known word, or your own such as acme/slow-save")
@click.option(
    "--direction",
    type=click.Choice(["computation", "scheduling", "communication", "evidence"]),
    help="What it is about [default: as the verdict, else computation].",
)
@click.option("--fact", cls=_Asked, prompt="Fact (advisor facts list)")
@click.option(
    "--op", type=click.Choice([">", ">=", "<", "<="]), default=">", cls=_Asked, prompt="Fires where the fact is"
)
@click.option("--threshold", type=float, cls=_Asked, prompt="Threshold")
@click.option("--origin", cls=_Asked, prompt="Where the threshold comes from", default="chosen because …")
@click.option("--title", cls=_Asked, prompt="Title in English")
@click.option("--title-zh", cls=_Asked, prompt="Title in Chinese", default="")
@ALLOW_CODE
def new(directory: str, name: str, allowed: tuple[str, ...], **answers: Any) -> int:
    """Writes a rule and its cases from a few answers; both load and pass as they are."""
    from advisor.authoring.new import NewRule, write_rule
    from advisor.cli.main import extend_catalogue
    from advisor.facts.registry import catalogue

    extend_catalogue(None, allowed)
    for path in write_rule(
        NewRule(id=name, **{**answers, "direction": answers["direction"] or ""}), Path(directory), catalogue()
    ):
        click.echo(str(path))
    return DONE


@click.command()
@click.option("--for", "profile", metavar="PROFILE", help="Ask for what its rules lack most.")
@click.option(
    "--evidence", multiple=True, metavar="NAME", help="steps, operators, communication, data, memory, …; repeatable."
)
@click.option("--framework", type=click.Choice(["mindspore", "pytorch"]), default=None)
@click.option(
    "--as",
    "form",
    type=click.Choice(["call", "callback", "dynamic", "environment"]),
    default="call",
    help="Python call, MindSpore callback, profiler_config.json, or MS_PROFILER_OPTIONS.",
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
@_LANG
def collect(profile: str | None, checked: str | None, **given: Any) -> int:
    """Writes a profiler configuration, or checks one.

    Without --for and --evidence: what most diagnoses need. --check ends with 1 where something is wrong.
    """
    from advisor import collect as collecting
    from advisor.cli.main import check_outputs

    check_outputs([given["output"]])
    lang = given["lang"] or "en"
    if checked:
        faults = collecting.check_file(checked, total_steps=given["total_steps"], ranks=given["ranks"])
        for fault in faults:
            click.echo(fault.show(lang))
        click.echo(f"{len(faults)} defects" if faults else "no defects", err=True)
        return FAILED if any(fault.level == "error" for fault in faults) else DONE
    evidence, framework = tuple(given["evidence"]), given["framework"]
    if profile:
        report = _report(profile)
        framework = framework or (report.profile.framework if report.profile.framework != "unknown" else None)
        click.echo(collecting.next_collection(report).get(lang), err=True)
        evidence = evidence or collecting.next_evidence(report)
    text = collecting.write_configuration(
        evidence, framework or "mindspore", given["form"], steps=given["steps"], start=given["start"],
        path=given["output_path"], lang=lang,
    )  # fmt: skip
    _print(text, given["output"])
    return DONE


def _report(profile: str) -> Any:
    from advisor.cli.main import load_ruleset, tell_notes
    from advisor.pipeline import advise

    rules = load_ruleset({}, [profile])[1]
    tell_notes(rules)
    return advise([profile], rules)
