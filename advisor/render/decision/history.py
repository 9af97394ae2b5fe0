"""What `advisor baseline add`, `list` and `show` print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.basics.errors import NoVerdict, UsageError
from advisor.basics.units import MEASURED, show
from advisor.gate.history.baselines import Added, Baseline, Reference, load_baseline, names_in, require_baseline
from advisor.gate.history.histories import History, apart
from advisor.gate.judging.readings import value_of
from advisor.gate.judging.statistics import compare
from advisor.gate.metrics import Metric
from advisor.gate.policy import Policy
from advisor.gate.sample import Sample
from advisor.knowledge.messages import translated
from advisor.render.decision.phrases import brief
from advisor.render.decision.phrases import counted as counted_in_gate
from advisor.render.escaping import printable
from advisor.render.wording import word


def say(lang: str, key: str, **values: object) -> str:
    """A word of the locale's group `baseline`."""
    return word(lang, f"baseline.{key}", **values)


def counted(lang: str, key: str, count: int) -> str:
    """A word that depends on a number: "1 kind", "2 kinds"."""
    return say(lang, f"{key}_{'one' if count == 1 else 'many'}", count=count)


def added_text(reference: Reference, added: Sequence[Added], lang: str) -> str:
    """A line a run: added, there already, or the first of its kind."""
    return "".join(f"{printable(_added(reference, item, lang))}\n" for item in added)


def _added(reference: Reference, item: Added, lang: str) -> str:
    if item.path is None:
        return say(lang, "there", reference=reference, run=item.sample.id, known=item.known)
    if item.apart:
        told = word(lang, "gate.separator").join(brief(each, lang) for each in item.apart[:4])
        return say(lang, "opened", reference=reference, run=item.sample.id, differences=told)
    return say(lang, "added", reference=reference, run=item.sample.id, number=item.number)


def list_text(folder: Path, form: str, lang: str = "en", ignored: Sequence[str] = ()) -> str:
    """Every baseline of a folder. Raises UsageError where there is no such folder, NoVerdict where it holds none."""
    if not folder.is_dir():
        raise UsageError("no such folder", place=str(folder), hint="`advisor baseline add` makes a baseline")
    baselines = [load_baseline(Reference(folder, name), ignored) for name in names_in(folder)]
    if not baselines:
        raise NoVerdict("no baseline here", place=str(folder), hint="`advisor baseline add PROFILE --baseline FOLDER`")
    if form == "json":
        rows = [_outline(baseline) for baseline in baselines]
        return json.dumps(rows, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
    lines = []
    for baseline in baselines:
        earlier = say(lang, "earlier", count=len(baseline.earlier)) if baseline.earlier else ""
        frozen = baseline.frozen or say(lang, "no_reason")
        state = "" if baseline.frozen is None else say(lang, "frozen", reason=frozen)
        lines.append(
            say(
                lang, "summary", name=baseline.reference.name, runs=counted_in_gate(lang, "runs", len(baseline.runs)),
                kinds=counted(lang, "kinds", len(baseline.histories)), newest=_newest(baseline) or "–",
                earlier=earlier, state=state,
            )
        )  # fmt: skip
        lines += [f"  {line}" for line in _faults(baseline, lang)]
    return "\n".join(printable(line) for line in lines) + "\n"


def _newest(baseline: Baseline) -> str | None:
    return max((sample.added for sample in baseline.runs), default=None)


def _faults(baseline: Baseline, lang: str) -> list[str]:
    told = [say(lang, "problem", file=item.file, problem=translated(item.problem, lang)) for item in baseline.problems]
    return [*told, *([say(lang, "copies", count=baseline.copies)] if baseline.copies else [])]


def _outline(baseline: Baseline) -> dict[str, Any]:
    accepted = [mark for history in baseline.histories for mark in history.accepted]
    return {
        "name": baseline.reference.name,
        "runs": len(baseline.runs),
        "earlier": len(baseline.earlier),
        "copies": baseline.copies,
        "kinds": len(baseline.histories),
        "keys": len({tuple(sorted(sample.key.items())) for sample in baseline.runs}),
        "newest": _newest(baseline),
        "frozen": baseline.frozen,
        "level": max(accepted, key=lambda mark: mark.added).reason if accepted else "",
        "problems": [f"{problem.file}: {problem.problem}" for problem in baseline.problems],
    }


def show_text(reference: Reference, policy: Policy, form: str, lang: str) -> str:
    """One baseline: for each kind of run its runs, and for each metric level, noise and the limit. Raises UsageError
    where there is no such baseline, NoVerdict where it has no runs."""
    baseline = load(reference, policy)
    described = [_group(history, policy) for history in baseline.histories]
    if form == "json":
        document = {**_outline(baseline), "groups": described}
        return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False) + "\n"
    earlier = say(lang, "earlier", count=len(baseline.earlier)) if baseline.earlier else ""
    lines = [f"{reference}: {counted_in_gate(lang, 'runs', len(baseline.runs))}{earlier}"]
    if baseline.frozen is not None:
        lines.append(say(lang, "frozen_line", reason=baseline.frozen or say(lang, "no_reason")))
    lines += alike(baseline.histories, lang)
    for history, group in zip(baseline.histories, described, strict=True):
        lines += ["", heading(history, baseline.histories, lang)]
        lines += [say(lang, "level_line", day=mark.added[:10], reason=mark.reason) for mark in history.accepted]
        lines += [f"  {_metric_line(metric, lang)}" for metric in group["metrics"]]
        lines += [f"    {_run_line(run, lang)}".rstrip() for run in group["runs"]]
    lines += _faults(baseline, lang)
    return "\n".join(printable(line) for line in lines) + "\n"


def load(reference: Reference, policy: Policy) -> Baseline:
    """The baseline to be shown. Raises UsageError where there is none, NoVerdict where none of its runs can be read."""
    require_baseline(reference)
    baseline = load_baseline(reference, policy.key_ignored)
    if not baseline.histories:
        told = "; ".join(f"{problem.file}: {problem.problem}" for problem in baseline.problems[:3])
        message = f"none of its files can be read: {told}" if told else "has no runs"
        raise NoVerdict(message, place=str(reference), hint="`advisor baseline add PROFILE --baseline REF`")
    return baseline


def heading(history: History, histories: Sequence[History], lang: str) -> str:
    """What tells this kind of run from the first of the baseline; the whole key where it is the only one."""
    if len(histories) == 1:
        return _key(history)
    number = histories.index(history) + 1
    told = apart(histories[0].everything[0], history.everything[0]) if number > 1 else []
    if not told:
        return say(lang, "kind", number=number)
    what = word(lang, "gate.separator").join(brief(item, lang) for item in told)
    return say(lang, "kind_apart", number=number, differences=what)


def alike(histories: Sequence[History], lang: str) -> list[str]:
    """What all kinds have in common, where there are several."""
    if len(histories) == 1:
        return []
    common = set.intersection(*(set(history.key.items()) for history in histories))
    return [say(lang, "same_in_all", fields="  ".join(f"{name}={value}" for name, value in sorted(common)))]


def _key(history: History) -> str:
    return "  ".join(f"{name}={value}" for name, value in history.key.items())


def _group(history: History, policy: Policy) -> dict[str, Any]:
    samples = history.runs
    judging = policy.for_run(samples[-1].attributes)
    metrics = [found for metric in judging.metrics if (found := _metric(samples, metric, judging.min_runs)) is not None]
    for metric in metrics:
        metric["needed"] = judging.min_history
    runs = [
        {
            "id": s.id, "profile": s.info.path, "added": s.added, "step_time_us": s.summary.step_time_us,
            "metadata": dict(s.metadata), "findings": len(s.findings),
        }
        for s in samples
    ]  # fmt: skip
    return {"key": dict(history.key), "metrics": metrics, "runs": runs}


def _metric(samples: Sequence[Sample], metric: Metric, min_runs: int) -> dict[str, Any] | None:
    values = [v for s in samples if (v := value_of(s, metric.name, metric.lower_is_better)) is not None]
    if not values:
        return None
    # A set of min_runs runs at the level itself meets the threshold that real ones will meet.
    found = compare(values, [0.0] * min_runs, metric.limits, lower_is_better=metric.lower_is_better)
    sign = 1 if metric.lower_is_better else -1
    return {
        "name": metric.name, "unit": metric.unit, "runs": len(values), "level": found.before, "sigma": found.sigma,
        "fails_beyond": found.before + sign * found.threshold, "gates": metric.gates,
        "title": {"en": metric.title.en, "zh": metric.title.zh},
    }  # fmt: skip


def _metric_line(metric: dict[str, Any], lang: str) -> str:
    level, unit = metric["level"], metric["unit"]
    spread = say(lang, "spread", sigma=show(metric["sigma"] / abs(level), "ratio")) if level else ""
    few = metric["runs"] < metric["needed"]
    beyond = say(lang, "fails_beyond", limit=show(metric["fails_beyond"], unit, MEASURED))
    return say(
        lang, "metric_line", name=metric["title"][lang], level=show(level, unit, MEASURED), spread=spread,
        limit=beyond if metric["gates"] else say(lang, "watched"),
        few=say(lang, "few", runs=metric["runs"], needed=metric["needed"]) if few else "",
    )  # fmt: skip


def _run_line(run: dict[str, Any], lang: str) -> str:
    step = "–" if run["step_time_us"] is None else show(run["step_time_us"], "us", MEASURED)
    told = "  ".join(f"{name}={value}" for name, value in run["metadata"].items())
    return say(
        lang,
        "run_line",
        run=run["profile"],
        step=step,
        findings=counted(lang, "findings", run["findings"]),
        metadata=told,
    )
