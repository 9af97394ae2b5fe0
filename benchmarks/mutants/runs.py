"""One run of the advisor in a process of its own, bounded in time and memory, and what came of it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import json
import os
import pickle
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CAPABILITY_VERSION = 0x20080522
SEVERE = ("medium", "high", "critical")
"""Severities of findings that a user is meant to act on."""
_LOOK_S = 0.5
"""How often running processes are held against their limit."""
ADDRESS_SPACE = 12 << 30
"""Reserving is cheap and libraries reserve much; what is really used is judged afterwards."""


@dataclass
class Outcome:
    """What one run ended with. `exit` is None where it was killed."""

    exit: int | None = None
    signal: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    stderr: str = ""
    done: str | None = None
    """What the mutation did; None where it could not be applied."""
    readable: bool = False
    """The JSON report was written and is strict JSON."""
    direction: str = ""
    findings: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    """(rule, verdict, subject, severity, direction), experimental ones left out."""
    symptoms: set[tuple[str, str]] = field(default_factory=set)
    """(verdict, subject) of those that follow from another one that counts: nobody is told to repair these."""
    confident: set[tuple[str, str]] = field(default_factory=set)
    """(verdict, subject) of those with more than low confidence."""
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Evidence that the report says it lacks, and findings about the collection."""
    errors: list[str] = field(default_factory=list)
    """Rules whose outcome is error."""
    modules: list[str] = field(default_factory=list)
    """What the run imported, in that order; of intact profiles only."""
    texts: set[tuple[str, bool]] = field(default_factory=set)
    """Templates that the run compiled, and whether strictly; of intact profiles only."""
    patterns: set[tuple[str | bytes, int]] = field(default_factory=set)
    """Regular expressions that the run compiled, with their flags; of intact profiles only."""


def advise(folder: Path, report: Path, *options: str) -> Outcome:
    """Runs the command line on a profile in this process and reduces what it wrote."""
    import advisor.pipeline as pipeline
    from advisor.cli.main import main

    kept: list[Any] = []
    original = pipeline.advise

    def keep(*given: Any, **named: Any) -> Any:
        kept.append(original(*given, **named))
        return kept[-1]

    pipeline.advise = keep  # type: ignore[assignment]
    errors = io.StringIO()
    outcome = Outcome()
    started = time.monotonic()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            arguments = [
                "advise",
                str(folder),
                "--format",
                f"json:{report}",
                "--format",
                "text",
                "--jobs",
                "1",
                *options,
            ]
            outcome.exit = main(arguments)
    finally:
        pipeline.advise = original
        outcome.seconds = time.monotonic() - started
        outcome.stderr = errors.getvalue()
    if kept:
        _reduce(outcome, kept[0])
    try:
        json.loads(report.read_text(encoding="utf-8"), parse_constant=_refuse)
        outcome.readable = True
    except (OSError, ValueError):
        outcome.readable = False
    return outcome


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _reduce(outcome: Outcome, report: Any) -> None:
    outcome.direction = report.summary.direction
    outcome.findings = sorted(
        (f.rule, f.verdict, f"{f.subject.kind} {f.subject.id}", f.severity.value, f.direction.value)
        for f in report.findings
        if f.status != "experimental"
    )
    outcome.symptoms = _symptoms(report.findings)
    outcome.confident = {
        (f.verdict, f"{f.subject.kind} {f.subject.id}") for f in report.findings if f.confidence.value != "low"
    }
    outcome.facts = {f"{f.name} {f.subject.kind} {f.subject.id}": f.value for f in report.facts}
    outcome.problems = [(p.file, p.problem) for p in report.problems]
    about = [f"{f.rule} {f.message.en}" for f in report.findings if f.direction.value == "evidence"]
    outcome.missing = sorted([*(m.evidence for m in report.missing_evidence), *about])
    outcome.errors = [f"{c.rule}: {c.reason}" for c in report.checked if c.outcome.value == "error"]


def _symptoms(findings: Any) -> set[tuple[str, str]]:
    """Those told as symptoms, as far as the cause they are told to follow from is of medium severity at least."""
    by_id = {finding.id: finding for finding in findings}
    found = set()
    for finding in findings:
        causes = [by_id[cause] for cause in finding.because if cause in by_id]
        known = any(cause.severity.value in SEVERE and cause.status != "experimental" for cause in causes)
        if finding.role.value == "symptom" and known:
            found.add((finding.verdict, f"{finding.subject.kind} {finding.subject.id}"))
    return found


@dataclass
class _Job:
    pid: int
    key: Any
    result: Path
    started: float
    handle: int
    """Of the process; readable once it has ended."""
    killed: bool = False


class Workers:
    """Runs functions that give an Outcome in forked processes; `wait` gives (key, Outcome) as they end."""

    def __init__(self, folder: Path, count: int, limit_s: float) -> None:
        self.folder, self.count, self.limit_s = folder, count, limit_s
        self._jobs: dict[int, _Job] = {}

    @property
    def full(self) -> bool:
        return len(self._jobs) >= self.count

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def start(self, key: Any, work: Callable[[], Outcome]) -> None:
        """Forks a process that runs `work`."""
        result = self.folder / f"result-{key}"
        result.unlink(missing_ok=True)
        sys.stdout.flush(), sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            run_child(result, work)
        self._jobs[pid] = _Job(pid, key, result, time.monotonic(), os.pidfd_open(pid))

    def wait(self) -> tuple[Any, Outcome]:
        """The next process that ended; kills those that run too long."""
        while True:
            for job in list(self._jobs.values()):
                pid, status, usage = os.wait4(job.pid, os.WNOHANG)
                if pid:
                    del self._jobs[job.pid]
                    os.close(job.handle)
                    return job.key, _collect(job, status, usage)
                if time.monotonic() - job.started > self.limit_s and not job.killed:
                    job.killed = True
                    os.killpg(job.pid, signal.SIGKILL)
            select.select([job.handle for job in self._jobs.values()], [], [], _LOOK_S)


def run_child(result: Path, work: Callable[[], Any]) -> None:
    """The forked process: never returns."""
    status = 1
    try:
        os.setpgid(0, 0)
        gc.disable()  # what it holds is gone with it
        os.fsync = lambda handle: None  # no power fails here
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        found = work()
        temporary = result.with_name(result.name + ".part")
        temporary.write_bytes(pickle.dumps(found))
        temporary.replace(result)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _collect(job: _Job, status: int, usage: Any) -> Outcome:
    try:
        outcome: Outcome = pickle.loads(job.result.read_bytes())
    except OSError:
        outcome = Outcome(exit=None, done="?")
        outcome.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        outcome.seconds = time.monotonic() - job.started
    outcome.peak_bytes = usage.ru_maxrss * 1024
    job.result.unlink(missing_ok=True)
    return outcome


def drop_privileges() -> None:
    """From here on file permissions count, even where this process is root's: all capabilities are given up."""
    if os.getuid() == 0:
        library = ctypes.CDLL(None, use_errno=True)
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        library.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
