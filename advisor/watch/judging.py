"""Judges recordings in a process of its own: what a profile does to it, it does to no watcher and no training."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from advisor.basics.errors import AdvisorError
from advisor.knowledge.words import word
from advisor.model import LANGUAGES, Subject
from advisor.watch.settings import Settings, number


@dataclass(frozen=True)
class Verdict:
    """What is said of one recording, or why nothing is."""

    headline: Mapping[str, str]
    direction: str
    step_us: float | None
    causes: tuple[Mapping[str, str], ...]
    """Root causes, the largest first: id, rule, verdict, subject, severity, and what and where in both languages."""
    findings: tuple[str, ...]
    problems: int
    ranks: int


class Judge:
    """Hands recordings to a worker process, and gets a new one where it died, hung, or has judged many."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker: Any = None
        self._pipe: Connection | None = None
        self._judged = 0

    def judge(self, paths: tuple[Path, ...], report: Path) -> Verdict | str:
        """The verdict, its report written to `report`; or, as text, why there is none. A recording whose judging was
        killed gets a second process: it need not have been its own fault."""
        for _ in range(2):
            if self._worker is None or not self._worker.is_alive() or self._judged >= number("judged_by_one"):
                self.close()
                self._start()
            assert self._pipe is not None
            self._judged += 1
            try:
                self._pipe.send(([str(path) for path in paths], str(report)))
                if not self._pipe.poll(self._settings.longest_s):
                    self.close()
                    return f"was not judged within {self._settings.longest_s:.0f} s; left out"
                answer: Verdict | str = self._pipe.recv()
            except (EOFError, OSError):
                self.close()
                continue
            return answer
        return "the process that judged it was killed twice (out of memory?); left out"

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._worker = context.Process(target=_work, args=(theirs, self._settings), daemon=True)
        self._worker.start()
        theirs.close()
        self._judged = 0

    def close(self) -> None:
        """Ends the worker."""
        if self._pipe is not None:
            self._pipe.close()
        if self._worker is not None:
            self._worker.join(0.5)
            if self._worker.is_alive():
                self._worker.kill()
                self._worker.join()
            self._worker.close()
        self._worker = self._pipe = None


def _work(pipe: Connection, settings: Settings) -> None:
    """Judges what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        os.nice(10)
    from advisor.basics.garbage import collect_seldom

    collect_seldom()
    rules: dict[str, Any] = {}
    while True:
        try:
            paths, report = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: Verdict | str = _judged(paths, Path(report), settings, rules)
        except AdvisorError as error:
            answer = str(error)
        except MemoryError:
            answer = "the memory does not suffice; left out"
        except Exception as error:
            answer = f"a defect of the advisor itself: {type(error).__name__}: {error}"
        try:
            pipe.send(answer)
        except OSError:
            return


def _judged(paths: list[str], target: Path, settings: Settings, rules: dict[str, Any]) -> Verdict | str:
    from advisor.basics.files import write_atomically
    from advisor.pipeline import Options, advise
    from advisor.render import render
    from advisor.render.wording import where

    if "rules" not in rules:
        rules["rules"] = _load_rules(settings)
    report = advise(paths, rules["rules"], Options(jobs=1))
    if not report.profile.ranks:
        return "nothing was recognised as profiler output"
    write_atomically(target, render(report, "json"))
    roots = [finding for finding in report.findings if finding.role.value == "root_cause"]
    return Verdict(
        {"en": report.summary.headline.en, "zh": report.summary.headline.zh},
        report.summary.direction,
        report.summary.step_time_us,
        tuple(
            {
                "id": f.id, "rule": f.rule, "verdict": f.verdict, "subject": f.subject.id,
                "severity": f.severity.value,
                **{lang: word(lang, "watch.at", what=f.title, where=where(f.subject, lang)) for lang in LANGUAGES},
            }
            for f in roots
        ),
        tuple(dict.fromkeys(_name(f.verdict, f.subject) for f in report.findings)),
        len(report.problems),
        len(report.profile.ranks),
    )  # fmt: skip


def _name(verdict: str, subject: Subject) -> str:
    """What a finding is known by from one recording to the next."""
    return verdict if subject.kind == subject.id else f"{verdict} {subject.id}"


def _load_rules(settings: Settings) -> Any:
    from msgspec.structs import replace

    from advisor.facts.extractors import load_extractors
    from advisor.facts.registry import catalogue
    from advisor.ruleset.files.loader import load_rules
    from advisor.trust import settle

    settled = settle(settings.config, [settings.folder], settings.allowed)
    warnings = load_extractors(settled.config.extractors)
    config = settled.config.with_options(rules=map(Path, settings.rules))
    loaded = load_rules(config=config, catalogue=catalogue(), strict=False)
    return replace(loaded, errors=(*loaded.errors, *warnings), notes=settled.notes)
