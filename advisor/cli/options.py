"""Options that several commands have, and what they come to: configuration, rules, and how to measure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from advisor.basics.garbage import spare_lasting
from advisor.cli.language import named, spoken
from advisor.cli.terminal import hush
from advisor.model import ENGINES, LANGUAGES, SEVERITIES
from advisor.render import formats_of

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet
    from advisor.yamlfiles.faults import LintError

FORMATS = click.option(
    "--format", "formats", multiple=True, metavar="FORMAT[:PATH]",
    help=f"{', '.join(formats_of('report'))}; repeatable; PATH - is standard output.",
)  # fmt: skip
LANG = click.option("--lang", type=click.Choice(LANGUAGES), default=named, help="Language of texts [default: en].")
RULES = click.option(
    "--rules", "directories", multiple=True, type=click.Path(), metavar="DIR", help="A further rule pack; repeatable."
)
CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(),
    metavar="FILE",
    help="advisor.toml [default: found from here upwards].",
)
ALLOW_CODE = click.option(
    "--allow-code", "allowed", multiple=True, type=click.Path(), metavar="DIR",
    help="Run extractors that are programs in DIR; repeatable.",
)  # fmt: skip
SELECT = click.option("--select", multiple=True, metavar="RULES", help="Only these: ids, prefixes, verdicts.")
IGNORE = click.option("--ignore", multiple=True, metavar="RULES", help="Not these.")
MODEL = click.option("--model", metavar="NAME", help="Apply the section [models.NAME] of the configuration.")
FAIL_ON = click.option("--fail-on", type=click.Choice(SEVERITIES), help="Exit 1 on a finding this severe.")
JOBS = click.option("--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes [all cores].")
CLUSTER = click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler, tcp://host:port.")
ENGINE = click.option("--engine", type=click.Choice(ENGINES), help="Inference engine.")
VERBOSE = click.option("-v", "--verbose", count=True, help="Say more; twice: debug.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress, no log.")
HUSH = click.option(
    "-q", "--quiet", is_flag=True, expose_value=False, is_eager=True, callback=hush, help="Results and errors only."
)
"""`-q` of commands that have neither progress nor log."""


def options(*chosen: Callable[..., Any]) -> Callable[..., Any]:
    """These options on a command, in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(chosen):
            function = option(function)
        return function

    return add


judging = options(
    FORMATS, LANG, RULES, CONFIG, ALLOW_CODE, SELECT, IGNORE, MODEL, FAIL_ON, JOBS, CLUSTER, ENGINE, VERBOSE, QUIET
)
"""Options of `advise` and `gate`."""


def extend_catalogue(config_file: str | None, allowed: Sequence[str] = (), profiles: Sequence[str] = ()) -> None:
    """Adds the facts of extractors to the catalogue, for commands that load no rule set; what is wrong with them, or
    was not run, goes to the log."""
    from advisor.facts.extractors import load_extractors
    from advisor.trust import settle

    settled = settle(config_file, profiles, allowed)
    _warn((*settled.notes, *load_extractors(settled.config.extractors)))


def load_ruleset(given: dict[str, Any], profiles: Sequence[str] = ()) -> tuple[Config, RuleSet]:
    """The configuration as far as it may be in force for these data, and its rules with what is to be told of it."""
    from advisor.facts.extractors import load_extractors
    from advisor.ruleset.files.loader import load_rules
    from advisor.trust import settle

    settled = settle(given.get("config_file"), profiles, given.get("allowed") or ())
    for key in (*(("models",) if given.get("model") else ()), *given.get("required", ())):
        settled.require(key)
    config = settled.config.for_model(given.get("model"))
    warnings = load_extractors(config.extractors)
    config = config.with_options(
        rules=given.get("directories") or (), select=_words(given.get("select")), ignore=_words(given.get("ignore"))
    )
    rules = load_rules(config=config, strict=False)
    spare_lasting()
    return config, replace(rules, errors=(*rules.errors, *warnings), notes=settled.notes)


def tell_notes(rules: RuleSet) -> None:
    """Says on standard error what the reports say of the configuration."""
    _warn(rules.notes)


def _warn(notes: Iterable[LintError]) -> None:
    from advisor.knowledge.messages import told_fault

    for note in notes:
        logging.getLogger("advisor").warning("%s", told_fault(note, spoken()))


def _words(values: Sequence[str] | None) -> tuple[str, ...]:
    """Comma-separated and repeated options alike."""
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def run_options(given: dict[str, Any], config: Config, tell: Any) -> Options:
    """How to measure: what these options ask for, else the configuration."""
    from advisor.pipeline import Options

    return Options(given["jobs"], given["cluster"], given["engine"] or config.engine, tell)
