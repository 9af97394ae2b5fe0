"""`rules list / show / lint / test / new`: work on rule packs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.cli.exits import DONE, FAILED, USAGE
from advisor.cli.language import SPEAK, Group, in_words, spoken
from advisor.cli.options import ALLOW_CODE, CONFIG, HUSH, LANG, RULES, extend_catalogue, load_ruleset
from advisor.cli.terminal import note, print_text, start_log
from advisor.model import DIRECTIONS, LANGUAGES

if TYPE_CHECKING:
    from advisor.ruleset.files.loader import RuleSet


SCHEMAS = ("rule", "cases", "remedy", "pack", "config", "policy", "waivers")


@click.group(cls=Group)
@SPEAK
def rules() -> None:
    """Work on rule packs: list, show, lint, test, new, schema."""


@rules.command(name="list")
@click.option("--format", "form", type=click.Choice(["text", "md", "json"]), default="text")
@RULES
@CONFIG
@ALLOW_CODE
@LANG
@HUSH
def list_rules(form: str, **given: Any) -> int:
    """Every rule: id, verdict, direction, what it judges, title."""
    from advisor.knowledge.messages import told_fault

    config, ruleset = load_ruleset(given)
    print_text(_listed(ruleset, form, given["lang"] or config.lang or "en"))
    for error in (*ruleset.notes, *ruleset.errors):
        click.echo(told_fault(error, spoken()), err=True)
    return DONE


def _listed(ruleset: RuleSet, form: str, lang: str) -> str:
    from advisor.knowledge.words import word

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
    return "\n".join([*lines, word(lang, "rules.count", count=len(rows))]) + "\n"


@rules.command()
@click.argument("rule")
@RULES
@CONFIG
@ALLOW_CODE
@LANG
@HUSH
def show(rule: str, **given: Any) -> int:
    """A rule as it is in force: thresholds with their origin, statements, remedies, and the file it stands in."""
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
@CONFIG
@ALLOW_CODE
@LANG
@HUSH
def lint_rules(
    paths: tuple[str, ...], form: str, config_file: str | None, allowed: tuple[str, ...], lang: str | None
) -> int:
    """Every defect of rules, cases and remedies, with file, line and a hint. Ends with 2 where there is one."""
    from msgspec.structs import asdict

    from advisor.authoring.lint import lint
    from advisor.knowledge.messages import told_fault
    from advisor.knowledge.words import word

    start_log()
    extend_catalogue(config_file, allowed)
    found = lint(_folders(paths))
    if form == "json":
        click.echo(json.dumps([asdict(error) for error in found], ensure_ascii=False, indent=1, default=str))
    else:
        said = lang or LANGUAGES[0]
        for error in found:
            click.echo(told_fault(error, said))
        note(word(said, "collect.defects" if found else "collect.no_defects", count=len(found)))
    return USAGE if any(error.level == "error" for error in found) else DONE


@rules.command(name="test")
@click.argument("paths", nargs=-1, metavar="[DIR|FILE]...")
@click.option("-v", "--verbose", is_flag=True, help="Show the cases that hold as well.")
@CONFIG
@ALLOW_CODE
@HUSH
def test_rules(paths: tuple[str, ...], verbose: bool, config_file: str | None, allowed: tuple[str, ...]) -> int:
    """Runs the cases beside the rules. Ends with 1 where one does not hold."""
    from advisor.authoring.cases import run_cases
    from advisor.ruleset.files.found import rule_files

    start_log()
    extend_catalogue(config_file, allowed)
    results = run_cases([file for folder in _folders(paths) for file in rule_files(folder)])
    failed = [result for result in results if not result.passed]
    for result in results if verbose else failed:
        click.echo(f"{'ok  ' if result.passed else 'FAIL'} {result.rule}: {result.case}  {result.file}:{result.line}")
        for failure in result.failures:
            click.echo(f"     {failure}")
        for line in result.near if result.failures else ():
            click.echo(f"       {line}")
    note(f"{len(results)} cases, {len(failed)} do not hold")
    return FAILED if failed else DONE


class _Asked(click.Option):
    """Asked for where it was not given; where nobody answers, its default or an error that names it."""

    def prompt_for_value(self, ctx: click.Context) -> Any:
        self.prompt = in_words(self.prompt or "")
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
    type=click.Choice(DIRECTIONS),
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
@HUSH
def new(directory: str, name: str, allowed: tuple[str, ...], **answers: Any) -> int:
    """Writes a rule and its cases from a few answers; both load and pass as they are."""
    from advisor.authoring.new import NewRule, write_rule
    from advisor.facts.registry import catalogue

    start_log()
    extend_catalogue(None, allowed)
    for path in write_rule(
        NewRule(id=name, **{**answers, "direction": answers["direction"] or ""}), Path(directory), catalogue()
    ):
        click.echo(str(path))
    return DONE


@rules.command()
@click.argument("kind", type=click.Choice(SCHEMAS), default="rule")
@click.option("--path", "only_path", is_flag=True, help="Where it lies, for the settings of an editor.")
@HUSH
def schema(kind: str, only_path: bool) -> int:
    """The JSON schema of files you write: rules, cases, remedies, packs, advisor.toml, policy, waivers."""
    from advisor.authoring.schemas import schema_path, schema_text

    print_text(f"{schema_path(kind)}\n" if only_path else schema_text(kind))
    return DONE
