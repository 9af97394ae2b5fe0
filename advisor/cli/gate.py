"""Commands of the gate: `gate`, and `baseline add / list / show / promote / freeze`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.cli.advise import told_broken
from advisor.cli.exits import DONE, FAILED, NO_VERDICT
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
    from advisor.gate.baselines import Reference
    from advisor.gate.model import Decision
    from advisor.gate.policy import Policy

log = logging.getLogger("advisor")

_PAIRS = "NAME=VALUE"


def _described(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
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
@_described
@judging
def gate(profiles: tuple[str, ...], baseline: str | None, confirm: tuple[str, ...], **given: Any) -> int:
    """Compares with a baseline, applies the policy, passes or fails.

    Each PROFILE is one run. Exit status: 0 passed, 1 failed, 2 wrong usage, 3 could not tell.
    """
    from advisor.gate.baselines import parse_reference
    from advisor.gate.flow import run_gate

    start_log(given["verbose"], given["quiet"])
    wanted = outputs(given["formats"], "decision")
    if not profiles:
        raise click.UsageError("name at least one PROFILE: each is one run")
    key, metadata = _key(given), _pairs(given["meta"], "--meta")
    config, rules = load_ruleset({**given, "required": ("gate",)}, (*profiles, *confirm))
    policy = _policy(config)
    reference = baseline or _located(policy.baseline, config)
    with progress(given["quiet"]) as tell:
        decision = run_gate(
            profiles, confirm, parse_reference(reference) if reference else None, policy, rules,
            run_options(given, config, tell), key=key, metadata=metadata, fail_on=given["fail_on"],
        )  # fmt: skip
    _write(decision, wanted, given["lang"] or config.lang or "en")
    return told_broken(rules, {"pass": DONE, "fail": FAILED, "inconclusive": NO_VERDICT}[decision.verdict.value])


@click.group()
def baseline() -> None:
    """Keeps baselines: files in a folder, no server. REF is FOLDER or FOLDER#NAME (main where none is given)."""


@baseline.command("add")
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@click.option("--baseline", "reference", metavar="REF", help="[default: `baseline` of the policy]")
@RULES
@CONFIG
@ALLOW_CODE
@MODEL
@JOBS
@QUIET
@_described
def add(profiles: tuple[str, ...], reference: str | None, jobs: int, quiet: bool, **given: Any) -> int:
    """Adds runs, one a PROFILE: facts and verdicts, not traces."""
    from advisor.gate.baselines import add_run
    from advisor.gate.flow import take_samples
    from advisor.pipeline import Options

    start_log(0, quiet)
    key, metadata = _key(given), _pairs(given["meta"], "--meta")
    config, rules = load_ruleset({**given, "required": ("gate",)}, profiles)
    tell_notes(rules)
    policy = _policy(config)
    target = _reference(reference, policy, config)
    with progress(quiet) as tell:
        options = Options(jobs, None, config.engine, tell)
        samples = take_samples(profiles, policy, rules, options, key, metadata)
    for sample in samples:
        _require_measured(sample)
    for sample in samples:
        for problem in sample.problems[:3]:
            log.warning("%s: %s: %s", sample.id, problem.file, problem.problem)
        click.echo(f"{target}: {add_run(target, sample).name}  ({sample.id})")
    return DONE


@baseline.command("list")
@click.argument("folder", required=False, type=click.Path(file_okay=False), metavar="[FOLDER]")
@CONFIG
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@HUSH
def list_(folder: str | None, config_file: str | None, form: str) -> int:
    """The baselines in a folder: runs, keys, newest, frozen or not."""
    from advisor.render.decision.history import list_text

    click.echo(list_text(_folder(folder, config_file), form), nl=False)
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
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--reason", required=True, help="Why the new level is right; kept with the baseline.")
@HUSH
def promote(source: str, target: str, reason: str) -> int:
    """Makes the runs of FROM the new level of TO: an intended change. Earlier runs stay on disk, uncounted."""
    from advisor.gate.baselines import parse_reference
    from advisor.gate.baselines import promote as run_promote

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
    from advisor.gate.baselines import freeze as run_freeze
    from advisor.gate.baselines import parse_reference

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
    from advisor.gate.baselines import parse_reference

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


def _folder(given: str | None, config_file: str | None) -> Path:
    if given:
        return Path(given)
    config = _configuration(config_file)
    return _reference(None, _policy(config), config).folder


def _require_measured(sample: Any) -> None:
    from advisor.basics.errors import NoVerdict
    from advisor.gate.metrics import defaults, value_of

    if not any(value_of(sample.facts, name) is not None for name in defaults()["metrics"]):
        raise NoVerdict(
            "none of the gate's metrics could be measured; nothing was added",
            place=sample.id,
            hint="`advisor doctor` tells what is missing",
        )


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
