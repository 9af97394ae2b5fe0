"""The watching itself: find, wait until finished, judge once, tell, remember."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from advisor.basics.errors import UsageError
from advisor.gate.judging.statistics import Comparison, Limits, compare
from advisor.model import Severity
from advisor.watch import alarms
from advisor.watch.captures import Capture, State, find_captures, state_of
from advisor.watch.judging import Judge, Verdict
from advisor.watch.ledger import Ledger
from advisor.watch.lines import line_of
from advisor.watch.settings import Settings, number

log = logging.getLogger("advisor")

Tell = Callable[[str], None]


class Watcher:
    """Watches one folder. `step` looks once; `run` goes on until told to stop."""

    def __init__(self, settings: Settings, tell: Tell) -> None:
        if not settings.folder.is_dir():
            raise UsageError(
                "no such folder", place=str(settings.folder), hint="name the folder the profiler writes to"
            )
        alarms.check(settings)
        self.settings, self._tell = settings, tell
        self.ledger = Ledger.open(settings.output)
        self._judge = Judge(settings)
        self._limits = _limits()
        self._seen: dict[str, tuple[State, float]] = {}
        """recording -> how it looked, and since when it has (monotonic seconds)."""
        self._unusable: dict[str, State] = {}
        """Looked at and not recognised: looked at again only after it changed."""
        self._usual_ranks = 0

    def run(self) -> None:
        """Until interrupted, or until the training has ended and its last recording is judged."""
        try:
            while True:
                going = self.settings.process is None or _is_running(self.settings.process)
                self.step()
                if self.settings.once or (not going and not self._waiting()):
                    return
                time.sleep(self.settings.poll_s)
        finally:
            self._judge.close()

    def step(self) -> int:
        """Looks once and judges what is finished; returns how many recordings that were."""
        try:
            captures = find_captures(self.settings.folder, self.settings.output)
        except OSError as error:
            log.warning("%s: %s", self.settings.folder, error.strerror or error)
            return 0
        self._forget_gone(captures)
        judged = 0
        for number_, capture in enumerate(captures):
            newest = number_ == len(captures) - 1
            if not self.ledger.knows(capture.names) and self._is_finished(capture, newest):
                judged += self._take(capture)
        return judged

    def _waiting(self) -> bool:
        """Whether something may still become finished by itself: raw data that nobody parses will not."""
        return any(state.parsed for key, (state, _) in self._seen.items() if key not in self._unusable)

    def _forget_gone(self, captures: list[Capture]) -> None:
        keys = {capture.key for capture in captures}
        self.ledger.forget_gone({name for capture in captures for name in capture.names})
        for known in (self._seen, self._unusable):
            for key in [key for key in known if key not in keys]:
                del known[key]

    def _is_finished(self, capture: Capture, newest: bool) -> bool:
        """Nothing in it has changed for a while, it is parsed, and as many ranks are there as usual."""
        state, now = state_of(capture), time.monotonic()
        if state is None:
            self._seen.pop(capture.key, None)
            return False
        if self._unusable.get(capture.key) == state:
            return False
        before = self._seen.get(capture.key)
        if before is None or before[0] != state:
            self._seen[capture.key] = before = (state, now)
        watched_s = now - before[1]
        aged_s = time.time() - state.newest_ns / 1e9 if watched_s > 0 or self.settings.once else 0.0
        if not state.parsed or max(watched_s, aged_s) < self.settings.settled_s:
            return False
        late = newest and len(capture.paths) < self._usual_ranks and not self.settings.once
        return not late or watched_s >= number("late_ranks") * self.settings.settled_s

    def _take(self, capture: Capture) -> int:
        """Judges one recording, tells and remembers it; 0 where it is not (yet) a recording."""
        started, report = time.monotonic(), self.ledger.report_path(capture.key)
        found = self._judge.judge(capture.paths, report)
        if isinstance(found, str):
            state = state_of(capture)
            if state is not None and "recognised" in found:
                self._unusable[capture.key] = state
                return 0
        self._usual_ranks = max(self._usual_ranks, len(capture.paths))
        line: dict[str, Any] = {
            "time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "profile": capture.key,
            "entries": list(capture.names), "seconds": round(time.monotonic() - started, 2),
        }  # fmt: skip
        reasons: list[str] = []
        if isinstance(found, str):
            line["error"] = found
        else:
            line["report"] = report.name
            reasons = self._remember(found, line)
        line["reasons"] = reasons
        self.ledger.remember(capture.names, "error" if isinstance(found, str) else "judged")
        self._seen.pop(capture.key, None)
        try:
            self.ledger.note(line)
            self.ledger.save()
        except (OSError, UsageError) as error:  # a full disk must not end days of watching
            log.warning("%s cannot be kept: %s", capture.key, error)
        self._tell(line_of(line, self.settings.lang))
        if reasons:
            alarms.call(self.settings, {"schema_version": "1.1", "folder": str(self.settings.folder), **line})
        with suppress(OSError):
            self.ledger.forget_old_reports()
        return 1

    def _remember(self, found: Verdict, line: dict[str, Any]) -> list[str]:
        """Adds what was found to the line and to the memory; returns what is worth a call."""
        ledger, reasons = self.ledger, []
        seen_before = bool(ledger.findings) or bool(ledger.steps_us)
        line |= {
            "headline": dict(found.headline), "direction": found.direction, "step_time_us": found.step_us,
            "ranks": found.ranks, "problems": found.problems, "cause": dict(found.causes[0]) if found.causes else None,
            "new": [each for each in found.findings if each not in ledger.findings] if seen_before else [],
            "resolved": [each for each in ledger.findings if each not in found.findings],
        }  # fmt: skip
        if found.step_us is not None:
            line["change"] = found.step_us / ledger.steps_us[-1] - 1 if ledger.steps_us else None
            compared = self._against_history(found.step_us)
            if compared is not None:
                line["limit_us"] = compared.before + compared.threshold
                if compared.worse and not ledger.slower:
                    reasons.append("slower")
                ledger.slower = compared.worse
            ledger.steps_us = [*ledger.steps_us, found.step_us][-int(number("history")) :]
        causes = {f"{each['verdict']} {each['subject']}": each for each in found.causes}
        fresh = [
            key for key, each in causes.items()
            if key not in ledger.causes and Severity(each["severity"]).rank >= self.settings.severity.rank
        ]  # fmt: skip
        if fresh:
            reasons.append("new_cause")
            line["new_causes"] = fresh
        aged = {key: age + 1 for key, age in ledger.causes.items() if age + 1 < number("forgotten_after")}
        ledger.causes = {**aged, **dict.fromkeys(causes, 0)}
        ledger.findings = list(found.findings)
        return reasons

    def _against_history(self, step_us: float) -> Comparison | None:
        """This step time against those before, by the gate's rule; None where the history is too short to tell."""
        history = self.ledger.steps_us
        return compare(history, [step_us], self._limits) if len(history) >= self._limits.noise_runs else None


def _limits() -> Limits:
    """The gate's limits for the step time."""
    from advisor.facts.registry import catalogue
    from advisor.gate.policy import STEP, read_policy

    metrics = read_policy({}, catalogue()).for_run({}).metrics
    return next(metric.limits for metric in metrics if metric.name == STEP)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def output_of(folder: Path) -> Path:
    """Where a watcher keeps its memory and reports unless told otherwise."""
    return folder / "advisor-reports"
