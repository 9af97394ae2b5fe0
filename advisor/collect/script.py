"""Reads profiler calls out of a Python script without running it: constants only, nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.basics.errors import UsageError
from advisor.collect.check import Fault, check_schedule, database_only, fault, low_level

_ENTRIES = ("wait", "warmup", "active", "repeat", "skip_first")


def check_script(text: str, name: str, total_steps: int | None, ranks: int | None) -> Iterator[Fault]:
    """Every defect of the script's calls of profile and schedule. Raises UsageError where it has none, or does not
    parse. Values that are no constants cannot be judged and are passed over."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"not valid Python: {error}", place=name) from None
    constants = _constants(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    profiles = [c for c in calls if _called(c) in ("profile", "Profiler")]
    schedules = [c for c in calls if _called(c) == "schedule"]
    if not profiles and not schedules:
        raise UsageError("no call of the profiler in this script", place=name, hint="profile(...), schedule(...)")
    total = total_steps if total_steps is not None else _loop_length(tree, constants)
    for call in schedules:
        yield from check_schedule(f"{name}:{call.lineno}", _schedule(call, constants), total)
    for call in profiles:
        yield from _profile(call, f"{name}:{call.lineno}", constants, ranks)
    if schedules and not any(isinstance(c.func, ast.Attribute) and c.func.attr == "step" for c in calls):
        yield fault("never_stepped", f"{name}:{schedules[0].lineno}")


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _constants(tree: ast.Module) -> dict[str, int]:
    """Names that are assigned one integer, once."""
    found: dict[str, list[int | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(_integer(node.value, {}))
    return {name: values[0] for name, values in found.items() if len(values) == 1 and values[0] is not None}


def _integer(node: ast.expr, constants: dict[str, int]) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _integer(node.operand, constants)
        return None if value is None else -value
    return constants.get(node.id) if isinstance(node, ast.Name) else None


def _schedule(call: ast.Call, constants: dict[str, int]) -> dict[str, int]:
    """Named entries that are constants, with defaults for those that are not given; by position the first three
    only add up, so that their order does not matter."""
    given = {k.arg: _integer(k.value, constants) for k in call.keywords if k.arg in _ENTRIES}
    given.update(zip(_ENTRIES, (_integer(argument, constants) for argument in call.args), strict=False))
    known = {str(key): value for key, value in given.items() if value is not None}
    if "repeat" in given and given["repeat"] is None:
        known["repeat"] = 1
    return known


def _profile(call: ast.Call, place: str, constants: dict[str, int], ranks: int | None) -> Iterator[Fault]:
    words = {k.arg: k.value for k in call.keywords if k.arg}
    scheduled = words.get("schedule")
    has_schedule = scheduled is not None and not (isinstance(scheduled, ast.Constant) and scheduled.value is None)
    data = words.get("data_process")
    if has_schedule and isinstance(data, ast.Constant) and data.value is True:
        yield fault("data_switched_off", place)
    settings = ast.unparse(call)
    if "activities" in words and "NPU" not in ast.unparse(words["activities"]):
        yield fault("no_device", place)
    if "ExportType.Db" in settings and "ExportType.Text" not in settings:
        yield database_only(place)
    if (ranks or 0) > 1 and ("Level0" in settings or "LevelNone" in settings):
        yield low_level(place, ranks or 0)


def _loop_length(tree: ast.Module, constants: dict[str, int]) -> int | None:
    """Steps of the one loop over range(n) in which step() is called; None where that is not plain."""
    lengths = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or _called(node.iter) != "range":
            continue
        steps = any(
            isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "step"
            for inner in ast.walk(node)
        )
        if steps and len(node.iter.args) == 1:
            lengths.append(_integer(node.iter.args[0], constants))
    return lengths[0] if len(lengths) == 1 else None
