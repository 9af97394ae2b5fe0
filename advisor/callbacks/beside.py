"""Beside a training: `advisor watch` in a process of its own, which cannot slow the training and not end it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from advisor.callbacks.handler import rank_of_this_process

log = logging.getLogger("advisor")

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"), "1"
)


def watch_beside(
    folder: str | Path,
    *,
    command: str | None = None,
    webhook: str | None = None,
    severity: str = "high",
    lang: str = "en",
    tell: Callable[[str], None] = print,
) -> subprocess.Popen[bytes] | None:
    """Watches the folder that the profiler writes to as long as this process runs, and judges its last profile then.

    One line a profile goes to `advisor-reports/watch.log` below the folder, beside the reports. `command` and
    `webhook` are called as by `advisor watch`. Only rank 0 starts one. Returns the process, or None where none was
    started; whatever goes wrong is told, and the training goes on.
    """
    if rank_of_this_process() != 0:
        return None
    try:
        reports = Path(folder).resolve() / "advisor-reports"
        reports.mkdir(parents=True, exist_ok=True)
        arguments = [
            sys.executable,
            "-m",
            "advisor",
            "watch",
            str(Path(folder).resolve()),
            "--with-process",
            str(os.getpid()),
        ]
        arguments += ["--severity", severity, "--lang", lang]
        arguments += ["--exec", command] if command else []
        arguments += ["--webhook", webhook] if webhook else []
        with (reports / "watch.log").open("ab") as output:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                env={**os.environ, **_ONE_THREAD}, close_fds=True,
            )  # fmt: skip
    except OSError as error:
        log.debug("watching failed", exc_info=True)
        tell(f"advisor: {folder} is not watched: {error.strerror or error}")
        return None
    tell(f"advisor: watching {folder}; see {reports / 'watch.log'}")
    return process
