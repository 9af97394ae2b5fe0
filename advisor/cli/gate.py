"""Commands of the gate: `gate`, and `baseline add / list / show / trend / promote / freeze`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from advisor.basics.errors import AdvisorError
from advisor.cli.advise import status_of_rules
from advisor.cli.exits import DONE, FAILED, NO_VERDICT
from advisor.cli.language import SPEAK, Group
from advisor.cli.options import (
    ALLOW_CODE,
    CONFIG,
    HUSH,
    JOBS,
    LANG,
    MODEL,
    QUIET,
    RULES,
    judging,
    load_ruleset,
    run_options,
    tell_notes,
)
from advisor.cli.terminal import Output, outputs, progress, start_log, write

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.gate.flow import Sampler
    from advisor.gate.history.baselines import Reference
    from advisor.gate.model import Decision
    from advisor.gate.policy import Policy
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet

log = logging.getLogger("advisor")

_PAIRS = "NAME=VALUE"


def _described(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--steps-only", is_flag=True, help="PROFILEs are step times from a log: CSV or JSON, one a run."),
        click.option(
            "--step-unit", type=click.Choice(["us", "ms", "s"]), help="Their unit, where the column does not say it."
        ),
        click.option("--meta", multiple=True, metavar=_PAIRS, help="Kept with the run: commit, branch, …; repeatable."),
        click.option(
            "--key", multiple=True, metavar=_PAIRS,
            help="A field of the key no profile tells: model, hardware, configuration, …; repeatable.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


@click.command()
@click.argument("profiles", nargs=-1, metavar="PROFILE...")
@click.option("--baseline", metavar="REF", help="FOLDER or FOLDER#NAME [default: `baseline` of the policy].")
@click.option("--confirm", multiple=True, metavar="PROFILE", help="A run made to confirm a failure; repeatable.")
@click.option("--record", is_flag=True, help="While the history is too short: record the runs, no verdict yet, exit 0.")
@click.option(
    "--allow-unreadable",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Judge the others where up to N runs cannot be read [0].",
)
@_described
@judging
def gate(profiles: tuple[str, ...], **given: Any) -> int:
    """Compares with a baseline, applies the policy, passes or fails.

    Each PROFILE is one run. Exit status: 0 passed, 1 failed, 2 wrong usage, 3 could not tell.
    """
    start_log(given["verbose"], given["quiet"])
    wanted = outputs(given["formats"], "decision")
    if not profiles:
        raise click.UsageError("name at least one PROFILE: each is one run")
    try:
        decision, rules, lang = _decide(profiles, given)
    except (AdvisorError, click.ClickException) as error:
        place = getattr(error, "place", "")
        _write_stop(f"{place}: {error.message}" if place else error.message, profiles, wanted, given)
        raise
    except Exception as error:
        _write_stop(f"{type(error).__name__}: {error}", profiles, wanted, given)
        raise
    _write(decision, wanted, lang)
    status = {"pass": DONE, "fail": FAILED, "inconclusive": NO_VERDICT, "recorded": DONE}[decision.verdict.value]
    return status_of_rules(rules, status)


def _decide(profiles: tuple[str, ...], given: dict[str, Any]) -> tuple[Decision, RuleSet, str]:
    """The decision, the rules it was made with, and the language to tell it in."""
    from advisor.gate.flow import run_gate
    from advisor.gate.history.baselines import parse_reference
    from advisor.gate.judging.waivers import check_waivers

    paths = (*profiles, *given["confirm"])
    config, rules = load_ruleset({**given, "required": ("gate",)}, paths)
    policy = _policy(config)
    if policy.waivers:
        check_waivers(policy, _verdicts(config), str(config.path or ""))
    reference = given["baseline"] or _located(policy.baseline, config)
    if given["steps_only"]:
        if given["fail_on"]:
            raise click.UsageError("--fail-on judges findings, and step times alone have none; name profiles")
        policy = policy.for_step_times()
    with progress(given["quiet"]) as tell:
        decision = run_gate(
            profiles, given["confirm"], parse_reference(reference) if reference else None, policy,
            _sampler(given, policy, rules, run_options(given, config, tell)), fail_on=given["fail_on"],
            allow_unreadable=given["allow_unreadable"], record=given["record"],
        )  # fmt: skip
    return decision, rules, given["lang"] or config.lang or "en"


def _verdicts(config: Config) -> set[str]:
    """Verdict words and ids of all rules, also of those not selected now: what a waiver may name."""
    from advisor.knowledge.verdicts import verdict_words
    from advisor.ruleset.files.loader import load_rules

    every = load_rules(config=replace(config, select=(), ignore=()), strict=False)
    return {*verdict_words(), *every.by_id, *(rule.verdict for rule in every.rules)}


def _sampler(given: dict[str, Any], policy: Policy, rules: RuleSet, options: Options) -> Sampler:
    """What makes a run of a path: its profile, or its step times."""
    from advisor.gate.flow import profile_sampler

    key, metadata = _key(given), _pairs(given["meta"], "--meta")
    if not given["steps_only"]:
        return profile_sampler(policy, rules, options, key, metadata)
    from advisor.gate.steptimes import read_step_times

    return lambda path: read_step_times(path, given["step_unit"], {**policy.key_values, **key}, metadata)


@click.group(cls=Group)
@SPEAK
def baseline() -> None:
    """Keeps baselines: files in a folder, no server.

    REF is FOLDER or FOLDER#NAME (main where none is given).
    """


@baseline.command("add")
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@click.option("--baseline", "reference", metavar="REF", help="[default: `baseline` of the policy]")
@RULES
@CONFIG
@ALLOW_CODE
@MODEL
@JOBS
@LANG
@QUIET
@_described
def add(profiles: tuple[str, ...], reference: str | None, jobs: int, quiet: bool, **given: Any) -> int:
    """Adds runs, one a PROFILE: facts and verdicts, not traces.

    A run that is there already is not added again; one that cannot be compared with those there opens a history of its
    own.
    """
    from advisor.basics.errors import NoVerdict
    from advisor.gate.flow import refuse_parts, require_measured, take_samples
    from advisor.gate.history.baselines import add_runs
    from advisor.pipeline import Options
    from advisor.render.decision.history import added_text

    start_log(0, quiet)
    config, rules = load_ruleset({**given, "required": ("gate",)}, profiles)
    tell_notes(rules)
    policy = _policy(config)
    target = _reference(reference, policy, config)
    with progress(quiet) as tell:
        samples, unreadable = take_samples(
            profiles, _sampler(given, policy, rules, Options(jobs, None, config.engine, tell))
        )
    if unreadable:
        raise NoVerdict(
            f"{unreadable[0].problem}; nothing was added", place=unreadable[0].file,
            hint="`advisor doctor` tells what is missing",
        )  # fmt: skip
    refuse_parts(samples)
    for sample in samples:
        require_measured(sample)
    for sample in samples:
        for problem in sample.problems[:3]:
            log.warning("%s: %s: %s", sample.id, problem.file, problem.problem)
    added = add_runs(target, samples, policy.key_ignored)
    click.echo(added_text(target, added, given["lang"] or config.lang or "en"), nl=False)
    return DONE


@baseline.command("list")
@click.argument("folder", required=False, type=click.Path(file_okay=False), metavar="[FOLDER]")
@CONFIG
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@LANG
@HUSH
def list_(folder: str | None, config_file: str | None, form: str, lang: str | None) -> int:
    """The baselines in a folder: runs, kinds of run, newest, frozen or not."""
    from advisor.render.decision.history import list_text

    config = _configuration(config_file)
    policy = _policy(config)
    place = Path(folder) if folder else _reference(None, policy, config).folder
    click.echo(list_text(place, form, lang or config.lang or "en", policy.key_ignored), nl=False)
    return DONE


@baseline.command()
@click.argument("reference", required=False, metavar="[REF]")
@CONFIG
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@LANG
@HUSH
def show(reference: str | None, config_file: str | None, form: str, lang: str | None) -> int:
    """The runs of a baseline, their level and noise, and from where on the gate would fail."""
    from advisor.render.decision.history import show_text

    config = _configuration(config_file)
    policy = _policy(config)
    target = _reference(reference, policy, config)
    click.echo(show_text(target, policy, form, lang or config.lang or "en"), nl=False)
    return DONE


@baseline.command()
@click.argument("reference", required=False, metavar="[REF]")
@click.option("--metric", metavar="NAME", help="This metric [default: those that can fail the gate].")
@CONFIG
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@LANG
@HUSH
def trend(reference: str | None, metric: str | None, config_file: str | None, form: str, lang: str | None) -> int:
    """Each metric over the runs: level, limit, accepted changes, findings that came and went, unsteady runs.

    A section for each kind of run: only runs that can be compared share a line.
    """
    from advisor.render.decision.trend import trend_text

    config = _configuration(config_file)
    policy = _policy(config)
    target = _reference(reference, policy, config)
    click.echo(trend_text(target, policy, form, lang or config.lang or "en", metric), nl=False)
    return DONE


@baseline.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--reason", required=True, help="Why the new level is right; kept with the baseline.")
@HUSH
def promote(source: str, target: str, reason: str) -> int:
    """Makes the runs of FROM the new level of TO: an intended change. Earlier runs stay on disk, uncounted."""
    from advisor.gate.history.baselines import parse_reference
    from advisor.gate.history.baselines import promote as run_promote

    count = run_promote(parse_reference(source), parse_reference(target), reason)
    click.echo(f"{parse_reference(target)}: {count} runs of {parse_reference(source)} are the new level")
    return DONE


@baseline.command()
@click.argument("reference", metavar="REF")
@click.option("--reason", default="", help="Shown to whoever tries to add a run.")
@click.option("--thaw", is_flag=True, help="Open it again.")
@HUSH
def freeze(reference: str, reason: str, thaw: bool) -> int:
    """Closes a baseline to further runs, so that slow drift cannot carry it away."""
    from advisor.gate.history.baselines import freeze as run_freeze
    from advisor.gate.history.baselines import parse_reference

    run_freeze(parse_reference(reference), reason, thaw=thaw)
    click.echo(f"{parse_reference(reference)}: {'open again' if thaw else 'frozen'}")
    return DONE


def _key(given: dict[str, Any]) -> dict[str, str]:
    """What --key says, and the model where --model names one: runs of different models are not compared."""
    named = {"model": str(given["model"])} if given["model"] else {}
    return {**named, **_pairs(given["key"], "--key")}


def _pairs(values: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for value in values:
        name, sign, text = value.partition("=")
        if not sign or not name.strip():
            raise click.UsageError(f"{option} {value!r}: write {_PAIRS}")
        pairs[name.strip()] = text.strip()
    return pairs


def _policy(config: Config) -> Policy:
    from advisor.facts.registry import catalogue
    from advisor.gate.policy import read_policy

    return read_policy(config.gate, catalogue(), config.path)


def _located(reference: str | None, config: Config) -> str | None:
    """The policy's baseline, relative to the file it stands in."""
    if reference is None or config.path is None:
        return reference
    return str(config.path.parent / reference)


def _reference(given: str | None, policy: Policy, config: Config) -> Reference:
    from advisor.gate.history.baselines import parse_reference

    text = given or _located(policy.baseline, config)
    if not text:
        raise click.UsageError("name a baseline: --baseline FOLDER#NAME, or `baseline` in [gate]")
    return parse_reference(text)


def _configuration(config_file: str | None) -> Config:
    """The configuration of commands that judge no profile."""
    from advisor.trust import settle

    settled = settle(config_file)
    settled.require("gate")
    return settled.config


def _write_stop(message: str, profiles: Sequence[str], wanted: Sequence[Output], given: Any) -> None:
    """The files asked for say why there is no decision; the terminal hears it as an error."""
    from advisor.gate.decision import stopped

    decision = stopped(message, given["baseline"], profiles)
    _write(decision, [(name, path) for name, path in wanted if path != "-" or name != "text"], given["lang"] or "en")


def _write(decision: Decision, outputs: Sequence[Output], lang: str) -> None:
    from advisor.render import render

    write(decision, outputs, lang)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as stream:
                stream.write(render(decision, "markdown", lang))
        except OSError as error:
            print(f"advisor: $GITHUB_STEP_SUMMARY: {error.strerror or error}", file=sys.stderr)
