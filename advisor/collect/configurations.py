"""What kind of profiler configuration a file holds, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.files import read_own
from advisor.collect.check import DYNAMIC_NAME, Fault, check_dynamic, check_environment
from advisor.collect.script import check_script

MAX_BYTES = 5_000_000

_ASSIGNED = re.compile(r"MS_PROFILER_OPTIONS\s*=\s*(['\"])(.*?)\1", re.DOTALL)


def check_file(path: str | Path, *, total_steps: int | None = None, ranks: int | None = None) -> list[Fault]:
    """Every defect of the configuration in this file. Raises UsageError where it cannot be read or holds none."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError("too large for a configuration", place=str(path))
        text = read_own(path, MAX_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", place=str(path)) from None
    return check_text(text, str(path), total_steps=total_steps, ranks=ranks)


def check_text(text: str, name: str, *, total_steps: int | None = None, ranks: int | None = None) -> list[Fault]:
    """The same for a text; the ending of `name` tells what it is."""
    if name.endswith(".py"):
        return list(check_script(text, name, total_steps, ranks))
    assigned = _ASSIGNED.search(text)
    if assigned:
        return list(check_environment(_json(assigned.group(2), name), name, ranks))
    document = _json(text, name)
    if "start_step" in document or "stop_step" in document or Path(name).name == DYNAMIC_NAME:
        return list(check_dynamic(document, name, total_steps, ranks))
    if "start" in document or "output_path" in document:
        return list(check_environment(document, name, ranks))
    raise UsageError(
        "no profiler configuration recognised",
        place=name,
        hint="a script (.py), profiler_config.json, or the value of MS_PROFILER_OPTIONS",
    )


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not valid JSON: {error}", place=name) from None
    if not isinstance(document, dict):
        raise UsageError("a JSON object is expected", place=name)
    return document
