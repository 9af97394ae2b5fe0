"""The command line: parses, calls, renders, exits. No logic, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from advisor.basics.errors import AdvisorError

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.model import Report
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet

FORMATS = ("text", "json", "html", "markdown", "sarif", "junit", "github")
SEVERITIES = ("low", "medium", "high", "critical")

ALLOW_CODE = click.option(
    "--allow-code", "allowed", multiple=True, type=click.Path(), metavar="DIR",
    help="Run extractors that are programs in DIR; repeatable.",
)  # fmt: skip
MODEL = "Apply the section [models.NAME] of the configuration."

DONE, FAILED, USAGE, NO_VERDICT, DEFECT, INTERRUPTED = 0, 1, 2, 3, 4, 130


def _shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of `advise` and `gate`."""
    for option in reversed(
        (
            click.option("--format", "formats", multiple=True, metavar="FORMAT[:PATH]",
                         help=f"{', '.join(FORMATS)}; repeatable; PATH - is standard output."),
            click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of texts [default: en]."),
            click.option("--rules", "directories", multiple=True, type=click.Path(), metavar="DIR",
                         help="A further rule pack; repeatable."),
            click.option("--config", "config_file", type=click.Path(), metavar="FILE",
                         help="advisor.toml [default: found from here upwards]."),
            ALLOW_CODE,
            click.option("--select", multiple=True, metavar="RULES", help="Only these: ids, prefixes, verdicts."),
            click.option("--ignore", multiple=True, metavar="RULES", help="Not these."),
            click.option("--model", metavar="NAME", help=MODEL),
            click.option("--fail-on", type=click.Choice(SEVERITIES), help="Exit 1 on a finding this severe."),
            click.option("--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes [all cores]."),
            click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler, tcp://host:port."),
            click.option("--engine", type=click.Choice(["auto", "durable", "python"]), help="Inference engine."),
            click.option("-v", "--verbose", count=True, help="Say more; twice: debug."),
            click.option("-q", "--quiet", is_flag=True, help="No progress, no log."),
        )
    ):  # fmt: skip
        function = option(function)
    return function


class _LazyGroup(click.Group):
    """Finds further subcommands in modules that are imported only when they are asked for."""

    lazy: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("collect", "compare", "rules"), "advisor.cli.extra"),
        **dict.fromkeys(("baseline", "gate"), "advisor.cli.gate"),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy:
            command: click.Command = getattr(import_module(self.lazy[cmd_name]), cmd_name)
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="advisor", prog_name="advisor")
def cli() -> None:
    """Tells why AI training on Ascend NPUs is slow, and what to change."""


@cli.command()
@click.argument("profiles", nargs=-1, metavar="PROFILE...")
@click.option(
    "--facts",
    "saved",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Judge facts saved by `advisor facts --save` instead of a profile.",
)
@_shared
def advise(profiles: tuple[str, ...], saved: str | None, **given: Any) -> int:
    """Analyses one profiler result and reports.

    PROFILE is a rank folder, a folder of rank folders, a cluster output, or single files of them.
    """
    from advisor.execution import collect_seldom, prepare
    from advisor.pipeline import advise as run_advise

    collect_seldom()
    _log(given["verbose"], given["quiet"])
    outputs = _outputs(given["formats"])
    prepare(profiles, given["jobs"], given["cluster"])
    config, rules = load_ruleset(given, profiles)
    if bool(profiles) == bool(saved):
        raise click.UsageError("name a PROFILE, or saved --facts")
    if saved:
        from advisor.facts.saved import load
        from advisor.pipeline import judge_saved

        report = judge_saved(load(saved), rules, given["engine"] or config.engine)
    else:
        with _progress(given["quiet"]) as tell:
            report = run_advise(profiles, rules, _options(given, config, tell))
    _write(report, outputs, given["lang"] or config.lang or "en")
    return told_broken(rules, _status(report, rules, given["fail_on"]))


def told_broken(rules: RuleSet, status: int) -> int:
    """The status, or 2 where rules are wrong and nothing failed: what they ask for was not judged.

    A rule without the facts of an extractor that cannot be used is not wrong.
    """
    tell_notes(rules)
    for error in rules.errors:
        print(f"advisor: {error}", file=sys.stderr)
    wrong = rules.errors and all(error.level == "error" for error in rules.errors)
    return USAGE if wrong and status != FAILED else status


def _status(report: Report, rules: RuleSet, fail_on: str | None) -> int:
    if not report.profile.ranks:
        return _say(
            "nothing was recognised as profiler output\n"
            "  hint: `advisor doctor` tells what was looked for and why each folder was passed over",
            NO_VERDICT,
        )
    if not _judged(report, rules):
        return NO_VERDICT
    if fail_on is not None:
        limit = SEVERITIES.index(fail_on)
        if any(f.severity.rank >= limit and f.status != "experimental" for f in report.findings):
            return FAILED
    return DONE


def _judged(report: Report, rules: RuleSet) -> bool:
    """Whether anything was said of the training: that all ranks are there says nothing where no file could be read."""
    if any(f.severity.rank >= SEVERITIES.index("medium") for f in report.findings):
        return True
    about = {rule.id for rule in rules.rules if rule.direction.value != "evidence"} or set(rules.by_id)
    return any(check.outcome.value in ("pass", "fail") and check.rule in about for check in report.checked)


@cli.command()
@click.argument("profiles", nargs=-1, metavar="[list | PROFILE...]", required=True)
@click.option("--save", type=click.Path(dir_okay=False), metavar="FILE", help="Write the facts to a file as well.")
@click.option("--format", "form", type=click.Choice(["json", "md"]), default="json", help="For `list`.")
@click.option("--jobs", type=click.IntRange(min=0), default=0, metavar="N")
@ALLOW_CODE
@click.option("-q", "--quiet", is_flag=True)
@click.option("-v", "--verbose", count=True)
def facts(
    profiles: tuple[str, ...], save: str | None, form: str, jobs: int, quiet: bool, verbose: int, allowed: Sequence[str]
) -> int:
    """The facts measured in a profile, as JSON.

    `facts list` is the catalogue of all fact kinds.
    """
    from advisor.facts import saved

    _log(verbose, quiet)
    check_outputs([save])
    extend_catalogue(None, allowed, () if profiles == ("list",) else profiles)
    if profiles == ("list",):
        click.echo(saved.catalogue_text(form), nl=False)
        return DONE
    from advisor.pipeline import Options, measure

    with _progress(quiet) as tell:
        measured = measure(profiles, None, Options(jobs=jobs, progress=tell))
    text = saved.dump(measured)
    if save:
        from advisor.basics.files import write_atomically

        write_atomically(save, text)
    click.echo(text, nl=False)
    return DONE


@cli.command()
@click.argument("profiles", nargs=-1, metavar="PROFILE...", required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--rules", "directories", multiple=True, type=click.Path(), metavar="DIR")
@click.option("--config", "config_file", type=click.Path(), metavar="FILE")
@ALLOW_CODE
@click.option("--model", metavar="NAME", help=MODEL)
@click.option("--lang", type=click.Choice(["en", "zh"]))
def doctor(profiles: tuple[str, ...], form: str, **given: Any) -> int:
    """What was recognised, and what is missing.

    For all that is missing: the setting that brings it, and the rules that wait for it.
    """
    from advisor.inspection.doctor import examine, show

    _log(0, False)
    config, rules = load_ruleset(given, profiles)
    diagnosis = examine(profiles, rules)
    click.echo(show(diagnosis, form, given["lang"] or config.lang or "en"), nl=False)
    return DONE if diagnosis.recognised else NO_VERDICT


@cli.command()
@click.argument("rule")
@click.option("--profile", "profile", multiple=True, metavar="PROFILE", help="Show what every clause saw there.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--rules", "directories", multiple=True, type=click.Path(), metavar="DIR")
@click.option("--config", "config_file", type=click.Path(), metavar="FILE")
@ALLOW_CODE
@click.option("--model", metavar="NAME", help=MODEL)
@click.option("--lang", type=click.Choice(["en", "zh"]))
def explain(rule: str, profile: tuple[str, ...], form: str, **given: Any) -> int:
    """A rule, its thresholds and their origin.

    Also the document it encodes and, with a profile, what each clause saw.
    """
    from advisor.inspection.explain import explain as tell

    _log(0, False)
    config, rules = load_ruleset(given, profile)
    tell_notes(rules)
    click.echo(tell(rule, profile, rules, form, given["lang"] or config.lang or "en"), nl=False)
    return DONE


@cli.command()
@click.argument("folder", default=".", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; there is no login.")
@click.option("--port", default=8350, show_default=True, type=click.IntRange(1, 65535))
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", help="Language pages open in.")
def serve(folder: str, host: str, port: int, lang: str) -> int:
    """Shows saved reports in a browser.

    The JSON reports of a folder: list, search, trend, report, comparison.
    """
    from advisor.serve.app import serve as run_server

    click.echo(f"advisor: http://{host}:{port}/  (Ctrl-C ends it)", err=True)
    run_server(folder, host, port, lang)
    return DONE


@cli.command()
@click.argument("folder", required=False, type=click.Path(), metavar="[DIR]")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
def trust(folder: str | None, remove: bool) -> int:
    """Trusts the configuration in DIR and the programs it names there.

    Kept in your own configuration. Holds for DIR itself, not for folders below. Without DIR: what is trusted.
    """
    from advisor import trust as trusting

    if folder is None:
        for each in sorted(trusting.trusted_folders()):
            click.echo(str(each))
        return DONE
    chosen = trusting.trust(folder, withdraw=remove)
    click.echo(f"{chosen}: {'no longer trusted' if remove else 'trusted'}", err=True)
    return DONE


def extend_catalogue(config_file: str | None, allowed: Sequence[str] = (), profiles: Sequence[str] = ()) -> None:
    """Adds the facts of extractors to the catalogue, for commands that load no rule set; what is wrong with them, or
    was not run, goes to the log."""
    from advisor.facts.extractors import load_extractors
    from advisor.trust import settle

    settled = settle(config_file, profiles, allowed)
    for note in (*settled.notes, *load_extractors(settled.config.extractors)):
        logging.getLogger("advisor").warning("%s", note)


def load_ruleset(given: dict[str, Any], profiles: Sequence[str] = ()) -> tuple[Config, RuleSet]:
    """The configuration as far as it may be in force for these data, and its rules with what is to be told of it."""
    from advisor.facts.extractors import load_extractors
    from advisor.facts.registry import catalogue
    from advisor.ruleset.files.loader import load_rules
    from advisor.trust import settle

    settled = settle(given.get("config_file"), profiles, given.get("allowed") or ())
    for key in (*(("models",) if given.get("model") else ()), *given.get("required", ())):
        settled.require(key)
    config = settled.config.for_model(given.get("model"))
    warnings = load_extractors(config.extractors)
    config = replace(
        config,
        rules=(*config.rules, *map(Path, given.get("directories") or ())),
        select=_words(given.get("select")) or config.select,
        ignore=(*config.ignore, *_words(given.get("ignore"))),
    )
    rules = load_rules(config=config, catalogue=catalogue(), strict=False)
    return config, replace(rules, errors=(*rules.errors, *warnings), notes=settled.notes)


def tell_notes(rules: RuleSet) -> None:
    """Says on standard error what the reports say of the configuration."""
    for note in rules.notes:
        logging.getLogger("advisor").warning("%s", note)


def _words(values: Sequence[str] | None) -> tuple[str, ...]:
    """Comma-separated and repeated options alike."""
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def _options(given: dict[str, Any], config: Config, tell: Any) -> Options:
    from advisor.pipeline import Options

    return Options(given["jobs"], given["cluster"], given["engine"] or config.engine, tell)


def _outputs(formats: Sequence[str]) -> list[tuple[str, str]]:
    """(format, path) pairs; text to standard output where none was asked for. Raises UsageError for what could not be
    written after the analysis."""
    outputs: list[tuple[str, str]] = []
    for item in formats or ("text",):
        name, _, path = item.partition(":")
        if name not in FORMATS:
            raise click.UsageError(f"--format {item}: unknown format {name!r}; known: {', '.join(FORMATS)}")
        outputs.append((name, "-" if path in ("", *_STANDARD_OUTPUT) else path))
    check_outputs([path for _, path in outputs])
    return outputs


_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_outputs(paths: Sequence[str | None]) -> None:
    """Raises UsageError where two outputs go to one place, or one to a folder that does not exist: better before an
    analysis than after it."""
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        if path != "-":
            from advisor.basics.files import check_target

            check_target(path)
        target = Path(path).resolve()
        if target in seen and (path == "-" or target.is_file() or not target.exists()):
            where = "standard output" if path == "-" else path
            raise click.UsageError(f"two outputs go to {where}; write each to a file of its own: --format json:FILE")
        seen.add(target)


def _write(report: Report, outputs: Sequence[tuple[str, str]], lang: str) -> None:
    from advisor.basics.files import write_atomically
    from advisor.render import render

    for name, path in outputs:
        if path == "-":
            text = render(report, name, lang, color=_colour(), width=_width())
            click.echo(text, nl=not text.endswith("\n"), color=True)
        else:
            text = render(report, name, lang)
            write_atomically(path, text if text.endswith("\n") else text + "\n")


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int | None:
    import shutil

    return shutil.get_terminal_size((100, 40)).columns if sys.stdout.isatty() else 100


def _progress(quiet: bool) -> Any:
    from advisor.cli.progress import progress

    return progress(sys.stderr.isatty() and not quiet and not os.environ.get("CI"))


def _log(verbose: int, quiet: bool) -> None:
    level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="advisor: %(message)s", stream=sys.stderr, force=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status (contract: 0, 1, 2, 3, 4; 130 when interrupted).

    Ended by SIGTERM or SIGHUP it is 128 + the signal's number.
    """
    verbose = "-v" in (argv or sys.argv) or "-vv" in (argv or sys.argv)
    try:
        with _terminable():
            _refuse_empty(sys.argv[1:] if argv is None else argv)
            status = cli.main(args=None if argv is None else list(argv), prog_name="advisor", standalone_mode=False)
            sys.stdout.flush()
        return int(status or DONE)
    except _Terminated as stop:
        return _say("terminated; no unfinished file was left", 128 + stop.number)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return _say("interrupted; no unfinished file was left", INTERRUPTED)
    except click.ClickException as error:
        error.show(sys.stderr)
        return USAGE
    except AdvisorError as error:
        return _say(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _say("interrupted; no unfinished file was left", INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        return DONE
    except OSError as error:
        _forget_output()
        return _say(f"{error.filename or 'the output'}: {error.strerror or error}", USAGE)
    except MemoryError:
        return _say("the memory does not suffice\n  hint: fewer --jobs, or fewer ranks at once", NO_VERDICT)
    except Exception as error:
        if verbose:
            logging.getLogger("advisor").exception("a defect")
        return _say(
            f"a defect of the advisor itself: {type(error).__name__}: {error}\n"
            "  hint: run again with -v and report what it prints",
            DEFECT,
        )


_MAY_BE_EMPTY = ("--reason", "--title-zh")


def _refuse_empty(arguments: Sequence[str]) -> None:
    """An empty argument is a variable that was not set; taken as the current folder it becomes a verdict on something
    else."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        name, sign, value = argument.partition("=")
        if argument == "" and before not in _MAY_BE_EMPTY:
            after = f" after {before}" if before else ""
            raise click.UsageError(f"an argument{after} is empty; is a variable not set?")
        if sign and not value and name.startswith("--") and name not in _MAY_BE_EMPTY:
            raise click.UsageError(f"{name} is empty; is a variable not set?")


class _Terminated(BaseException):
    """The process was told to end; unwinds through every clean-up."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C instead of leaving temporary files and workers behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise _Terminated(number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [(number, signal.signal(number, stop)) for number in signals]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _forget_output() -> None:
    """Standard output is gone or full; what is still buffered for it must not raise again when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def advise_main() -> int:
    """`advise PROFILE` is `advisor advise PROFILE`."""
    return main(["advise", *sys.argv[1:]])


def _say(message: str, status: int) -> int:
    print(f"advisor: {message}", file=sys.stderr)
    return status
