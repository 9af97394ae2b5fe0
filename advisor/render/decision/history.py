"""What `advisor baseline list` and `show` print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.basics.errors import NoVerdict
from advisor.basics.units import show
from advisor.gate.baselines import Baseline, Reference, load_baseline, names_in
from advisor.gate.metrics import value_of
from advisor.gate.policy import Policy
from advisor.gate.sample import Sample
from advisor.gate.statistics import compare
from advisor.render.escaping import printable


def list_text(folder: Path, form: str) -> str:
    """Every baseline of a folder. Raises NoVerdict where there is none."""
    baselines = [load_baseline(Reference(folder, name)) for name in names_in(folder)]
    if not baselines:
        raise NoVerdict("no baseline here", place=str(folder), hint="`advisor baseline add PROFILE --baseline FOLDER`")
    rows = [_outline(baseline) for baseline in baselines]
    if form == "json":
        return json.dumps(rows, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
    lines = []
    for row in rows:
        state = "" if row["frozen"] is None else f"  frozen: {row['frozen'] or 'no reason given'}"
        lines.append(
            f"{row['name']}: {row['runs']} runs, {row['keys']} key(s), newest {row['newest'] or '–'}"
            f"{_earlier(row)}{state}"
        )
        lines += [f"  ! {problem}" for problem in row["problems"]]
    return "\n".join(printable(line) for line in lines) + "\n"


def _earlier(row: dict[str, Any]) -> str:
    return f", {row['earlier']} of earlier levels" if row["earlier"] else ""


def _outline(baseline: Baseline) -> dict[str, Any]:
    keys = {tuple(sorted(sample.key.items())) for sample in baseline.runs}
    return {
        "name": baseline.reference.name,
        "runs": len(baseline.runs),
        "earlier": len(baseline.earlier),
        "keys": len(keys),
        "newest": max((sample.added for sample in baseline.runs), default=None),
        "frozen": baseline.frozen,
        "level": baseline.level,
        "problems": [f"{problem.file}: {problem.problem}" for problem in baseline.problems],
    }


def show_text(reference: Reference, policy: Policy, form: str, lang: str) -> str:
    """One baseline: for each key its runs, and for each metric level, noise and the limit. Raises NoVerdict where it
    has no runs."""
    baseline = load_baseline(reference)
    if not baseline.runs and not baseline.earlier and not baseline.problems:
        raise NoVerdict("has no runs", place=str(reference), hint="`advisor baseline add PROFILE --baseline REF`")
    groups: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in baseline.runs:
        groups.setdefault(tuple(sorted(sample.key.items())), []).append(sample)
    described = [_group(samples, policy) for samples in groups.values()]
    if form == "json":
        document = {**_outline(baseline), "groups": described}
        return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False) + "\n"
    outline = _outline(baseline)
    lines = [f"{reference}: {outline['runs']} runs{_earlier(outline)}"]
    if baseline.frozen is not None:
        lines.append(f"frozen: {baseline.frozen or 'no reason given'}")
    if baseline.level:
        lines.append(f"level: {baseline.level}")
    for group in described:
        lines += ["", "  ".join(f"{name}={value}" for name, value in group["key"].items())]
        lines += [_metric_line(metric, lang) for metric in group["metrics"]]
        lines += [_run_line(run) for run in group["runs"]]
    lines += [f"! {problem}" for problem in outline["problems"]]
    return "\n".join(printable(line) for line in lines) + "\n"


def _group(samples: Sequence[Sample], policy: Policy) -> dict[str, Any]:
    judging = policy.for_run(samples[-1].attributes)
    metrics = []
    for metric in judging.metrics:
        values = [v for s in samples if (v := value_of(s.facts, metric.name, metric.lower_is_better)) is not None]
        if not values:
            continue
        # A set of min_runs runs at the level itself meets the threshold that real ones will meet.
        found = compare(values, [0.0] * judging.min_runs, metric.limits, lower_is_better=metric.lower_is_better)
        sign = 1 if metric.lower_is_better else -1
        metrics.append(
            {
                "name": metric.name, "unit": metric.unit, "runs": len(values), "needed": judging.min_history,
                "level": found.before, "sigma": found.sigma, "fails_beyond": found.before + sign * found.threshold,
                "gates": metric.gates, "title": {"en": metric.title.en, "zh": metric.title.zh},
            }
        )  # fmt: skip
    runs = [
        {
            "id": s.id, "added": s.added, "step_time_us": s.summary.step_time_us, "metadata": dict(s.metadata),
            "findings": len(s.findings),
        }
        for s in samples
    ]  # fmt: skip
    return {"key": dict(samples[-1].key), "metrics": metrics, "runs": runs}


def _metric_line(metric: dict[str, Any], lang: str) -> str:
    spread = f" ± {show(metric['sigma'] / abs(metric['level']), 'ratio')}" if metric["level"] else ""
    few = f" ({metric['runs']} of {metric['needed']} runs)" if metric["runs"] < metric["needed"] else ""
    limit = f"  fails beyond {show(metric['fails_beyond'], metric['unit'])}" if metric["gates"] else "  watched"
    return f"  {metric['title'][lang]}: {show(metric['level'], metric['unit'])}{spread}{limit}{few}"


def _run_line(run: dict[str, Any]) -> str:
    step = "–" if run["step_time_us"] is None else show(run["step_time_us"], "us")
    told = "  ".join(f"{name}={value}" for name, value in run["metadata"].items())
    return f"    {run['id']}  {step}  {run['findings']} findings  {told}".rstrip()
