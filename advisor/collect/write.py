"""Writes profiler configurations: a call, a MindSpore callback, profiler_config.json, MS_PROFILER_OPTIONS, and the
command line of msprof."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.suggest import suggest
from advisor.collect.plan import kinds_of_evidence, knowledge, limit, merged
from advisor.knowledge.words import word

FORMS = ("call", "callback", "dynamic", "environment", "msprof")


def write_configuration(
    evidence: Sequence[str] = (),
    framework: str | None = "mindspore",
    form: str = "call",
    *,
    steps: int | None = None,
    start: int | None = None,
    path: str = "./profile",
    lang: str = "en",
) -> str:
    """A configuration that brings this evidence (none named: what most diagnoses need), ready to paste. Where nobody
    knows the framework (None), the call of each, as far as both bring the evidence; other forms are MindSpore's.

    Raises UsageError for evidence that does not exist, or that the form cannot bring.
    """
    names = tuple(evidence) or tuple(knowledge()["usual"])
    for name in names:
        if name not in kinds_of_evidence():
            near = suggest(name, kinds_of_evidence())
            known = ", ".join(kinds_of_evidence())
            raise UsageError(f"there is no evidence {name!r}", hint=f"did you mean {near[0]}?" if near else known)
    settings = merged(names)
    settings["steps"] = steps or int(limit("data_steps" if settings.get("data_process") else "steps"))
    settings["start"] = int(limit("start")) if start is None else start
    settings["path"] = json.dumps(path, ensure_ascii=False)
    if form == "msprof":
        return _msprof(settings, lang)
    if framework is None and form == "call" and not settings.get("data_process"):
        return f"{_note(settings, lang)}# MindSpore:\n{_call(settings)}\n# PyTorch:\n{_torch_call(settings)}"
    if framework == "pytorch":
        if form != "call":
            raise UsageError(f"--as {form} is MindSpore's", hint="--as call")
        if settings.get("data_process"):
            raise UsageError(
                "torch_npu has no data_process", hint="--evidence steps: the timeline shows the DataLoader"
            )
        return _note(settings, lang) + _torch_call(settings)
    writers = {"call": _call, "callback": _callback, "dynamic": _dynamic, "environment": _environment}
    if form == "environment":
        settings.pop("schedule", None)
    note = "" if form in ("dynamic", "environment") else _note(settings, lang)
    return note + writers[form](settings)


def _note(settings: dict[str, Any], lang: str) -> str:
    if settings.get("data_process"):
        return f"# {word(lang, 'collect.note_data')}\n"
    return f"# {word(lang, 'collect.note_steps', last=settings['start'] + settings['steps'])}\n"


def _experimental(settings: dict[str, Any], prefix: str) -> str:
    words = [f"profiler_level={prefix}.ProfilerLevel.Level{settings.get('level', 0)}"]
    if settings.get("level", 0) >= 1:
        words.append(f"aic_metrics={prefix}.AicoreMetrics.PipeUtilization")
    if settings.get("l2_cache"):
        words.append("l2_cache=True")
    return f"{prefix}._ExperimentalConfig({', '.join(words)})"


def _schedule(settings: dict[str, Any], prefix: str) -> str:
    """wait and warmup of one step each lie before the recorded ones."""
    skip = max(settings["start"] - 2, 0)
    return f"{prefix}.schedule(wait=1, warmup=1, active={settings['steps']}, repeat=1, skip_first={skip})"


def _arguments(settings: dict[str, Any], prefix: str) -> list[str]:
    lines = [f"activities=[{prefix}.ProfilerActivity.CPU, {prefix}.ProfilerActivity.NPU],"]
    if settings.get("schedule"):
        lines.append(f"schedule={_schedule(settings, prefix)},")
    else:
        lines.append("start_profile=False,")
    lines.append(f"on_trace_ready={prefix}.tensorboard_trace_handler({settings['path']}),")
    lines += [f"{key}=True," for key in ("data_process", "profile_memory", "with_stack") if settings.get(key)]
    lines.append(f"experimental_config={_experimental(settings, prefix)},")
    return lines


def _call(settings: dict[str, Any]) -> str:
    prefix = "profiler"
    arguments = "".join(f"    {line}\n" for line in _arguments(settings, prefix))
    if settings.get("schedule"):
        use = "with profile as running:\n    for batch in batches:\n        train(batch)\n        running.step()\n"
    else:
        first, last = settings["start"], settings["start"] + settings["steps"]
        use = (
            "for number, batch in enumerate(batches):\n"
            f"    if number == {first}:\n        profile.start()\n"
            "    train(batch)\n"
            f"    if number == {last}:\n        profile.stop()\n"
        )
    return f"from mindspore import profiler\n\nprofile = profiler.profile(\n{arguments})\n{use}"


def _torch_call(settings: dict[str, Any]) -> str:
    arguments = "".join(f"    {line}\n" for line in _arguments(settings, "profiler"))
    use = "with profile as running:\n    for batch in batches:\n        train(batch)\n        running.step()\n"
    return f"from torch_npu import profiler\n\nprofile = profiler.profile(\n{arguments})\n{use}"


def _callback(settings: dict[str, Any]) -> str:
    first, last = settings["start"], settings["start"] + settings["steps"] - 1
    lines = [
        "start_profile=False,",
        *(line for line in _arguments(settings, "profiler") if "start_profile" not in line),
    ]
    if settings.get("schedule"):
        plain = f"schedule=profiler.schedule(wait=0, warmup=0, active={settings['steps']}, repeat=1, skip_first=0),"
        lines = [plain if line.startswith("schedule=") else line for line in lines]
    arguments = "".join(f"            {line}\n" for line in lines)
    step = "            self.profile.step()\n" if settings.get("schedule") else "            pass\n"
    return (
        "import mindspore\nfrom mindspore import profiler\n\n\n"
        "class Profile(mindspore.Callback):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.profile = profiler.profile(\n{arguments}        )\n\n"
        "    def on_train_step_begin(self, run_context):\n"
        f"        if run_context.original_args().cur_step_num == {first}:\n"
        "            self.profile.start()\n\n"
        "    def on_train_step_end(self, run_context):\n"
        "        number = run_context.original_args().cur_step_num\n"
        f"        if {first} <= number <= {last}:\n{step}"
        f"        if number == {last}:\n"
        "            self.profile.stop()\n"
    )


def _dynamic(settings: dict[str, Any]) -> str:
    if settings.get("data_process") or settings.get("l2_cache"):
        name = "data_process" if settings.get("data_process") else "l2_cache"
        raise UsageError(f"profiler_config.json has no {name}", hint="--as call")
    first = settings["start"]
    document = {
        "start_step": first,
        "stop_step": first + settings["steps"] - 1,
        "aic_metrics": 0 if settings.get("level", 0) else -1,
        "profiler_level": settings.get("level", 0),
        "activities": 0,
        "export_type": 0,
        "profile_memory": bool(settings.get("profile_memory")),
        "mstx": False,
        "analyse_mode": 0,
        "parallel_strategy": False,
        "with_stack": bool(settings.get("with_stack")),
        "data_simplification": True,
    }
    return json.dumps(document, indent=3) + "\n"


def _environment(settings: dict[str, Any]) -> str:
    options: dict[str, Any] = {
        "start": True,
        "output_path": json.loads(settings["path"]),
        "activities": ["CPU", "NPU"],
        "profiler_level": f"Level{settings.get('level', 0)}",
        "aic_metrics": "PipeUtilization" if settings.get("level", 0) else "AicoreNone",
    }
    options.update(
        {key: True for key in ("data_process", "profile_memory", "l2_cache", "with_stack") if settings.get(key)}
    )
    return f"export MS_PROFILER_OPTIONS='{json.dumps(options, indent=1, ensure_ascii=False)}'\n"


def _msprof(settings: dict[str, Any], lang: str) -> str:
    """Its options, one a line; it records the whole run of a command, and knows no steps."""
    for name in ("data_process", "with_stack"):
        if settings.get(name):
            raise UsageError(f"msprof has no {name}", hint="--as call")
    known = knowledge()["msprof"]
    options = [*known["always"], *known["levels"][settings.get("level", 0)]]
    for name in ("profile_memory", "l2_cache"):
        options += known[name] if settings.get(name) else []
    lines = ["msprof", f"--output={settings['path']}", *options, "python train.py"]
    return f"# {word(lang, 'collect.with_framework')}\n" + " \\\n    ".join(lines) + "\n"
