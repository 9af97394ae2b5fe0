"""Two reports → one comparison; and what a user may name as a side of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.basics.errors import UsageError
from advisor.basics.files import LARGEST_DOCUMENT, read_own
from advisor.basics.units import MEASURED, show, show_apart, signed
from advisor.compare.changes import Change, Role, changes, stirred
from advisor.compare.effects import causes, effects
from advisor.compare.executions import as_many_calls, doubt, holds_as_much
from advisor.compare.facts import FactTable
from advisor.compare.inputs import of_measured, with_inputs
from advisor.compare.matching import match_findings
from advisor.compare.metrics import KERNEL_TIME, MEASURED_KERNEL, metrics
from advisor.compare.model import Cause, Comparison, Matched, Metric, Obstacle
from advisor.compare.obstacles import obstacles, unlike_files
from advisor.compare.renamed import as_one_kernel
from advisor.compare.sight import sight
from advisor.compare.steps import MOST, pauses, slow_steps_told
from advisor.engine.concluding.summary import about, named
from advisor.facts.base import FactKind
from advisor.knowledge.comparison import compared_facts, settings
from advisor.knowledge.fact_titles import fact_titles
from advisor.knowledge.without_steps import reworded
from advisor.knowledge.words import both
from advisor.model import RUN, Report, Text

if TYPE_CHECKING:
    from advisor.pipeline import Options
    from advisor.ruleset.files.loader import RuleSet

log = logging.getLogger("advisor")
_STEP = (MEASURED_KERNEL, "step.time_us", "data.step_us")
"""How long a launch of the kernel takes that was measured, else a step: on the device, or where only the host was
recorded, from batch to batch."""

_SUBJECTS = {MEASURED_KERNEL: "kernel", KERNEL_TIME: "kernels"}
"""What a headline speaks of, where that is no step."""


def compare(before: Report, after: Report, *, catalogue: Mapping[str, FactKind] | None = None) -> Comparison:
    """What became of metrics, findings and promises. Pure: reads no profile. Reports with all their facts explain
    the change best; those read back from JSON carry only what was written there."""
    if catalogue is None:
        from advisor.facts.registry import catalogue as known

        catalogue = known()
    before, renamed = as_one_kernel(before, after)
    seen = sight(FactTable(before.facts), FactTable(after.facts), catalogue)
    repeated = as_many_calls(before, after, seen.old, seen.new)
    if repeated.obstacle is not None:
        after = repeated.report
        seen = sight(FactTable(before.facts), FactTable(after.facts), catalogue)
    old, new = seen.old, seen.new
    differing = (*obstacles(before.profile, after.profile, old, new), *filter(None, (renamed, repeated.obstacle)))
    between = (*_once(differing), *unlike_files(seen))
    comparable = not any(obstacle.blocks for obstacle in between)
    unsure = doubt(new, repeated.factor)
    found = tuple(metrics(old, new, catalogue, unsure))
    matched = tuple(match_findings(before, after, seen, comparable))
    step = next((m for name in _STEP for m in found if m.fact == name and m.before and m.after), None)
    marked = before.profile.has_steps or after.profile.has_steps
    untold = None if marked or not comparable else _untold(step, old, new, unsure, matched)
    step = step if untold is None else None
    usable = step if comparable else None
    units = {name: kind.unit for name, kind in catalogue.items()}
    outcome = _outcome(step, comparable)
    worth = step.noise if step is not None else settings().limits["least_change"]
    of_steps = None if usable is not None and usable.fact == MEASURED_KERNEL else usable
    kernels = next((m for m in found if m.fact == KERNEL_TIME and m.before and m.after), None)
    if not comparable or marked or step is not None or untold is not None or repeated.factor is None:
        kernels = None  # how long a recording takes is told otherwise, or not by them
    moved = comparable and of_steps is usable and untold is None and (kernels is None or kernels.moved)
    where = tuple(changes(old, new, worth)) if moved else ()
    within = tuple(stirred(old, new)) if outcome == "same" and marked and not where else ()
    measured = tuple(of_measured(old, new)) if usable is not None and usable.fact == MEASURED_KERNEL else ()
    behind = tuple(causes(matched, old, new, of_steps, _against(where))) if of_steps is not None else ()
    said = untold or _headline(outcome, step or kernels, matched, between, behind, where, (old, new))
    return Comparison(
        before=before.profile,
        after=after.profile,
        comparable=comparable,
        headline=said if marked or untold is not None else reworded(said),
        outcome=outcome,
        obstacles=between,
        metrics=found,
        findings=matched,
        effects=tuple(effects(before, seen, units, usable or kernels, found)),
        causes=behind,
        unattributed_us=_unattributed(of_steps, behind),
        accounts=measured or tuple(with_inputs(where or within, old, new)),
    )


def _once(obstacles: Iterable[Obstacle]) -> Iterator[Obstacle]:
    """Each kind of difference once."""
    yield from {other.what: other for other in obstacles}.values()


def _untold(
    step: Metric | None, old: FactTable, new: FactTable, unsure: float, matched: Sequence[Matched]
) -> Text | None:
    """The headline where lengths of recordings without steps tell nothing of speed, and why; None where they do."""
    if step is None or step.fact != "step.time_us":
        return None
    paused = pauses(old, new)
    if paused is not None:
        lengths = " → ".join(show_apart(*paused, "us", MEASURED))
        return both("comparison.headline_paused", times=lengths, counts=_counted(matched))
    why = None
    if not holds_as_much(old, new):
        why = both("comparison.untold_work")
    elif unsure > settings().limits["account_share"]:
        why = both("comparison.untold_idle", share=show(unsure, "ratio"))
    if why is None:
        return None
    lengths = " → ".join(show_apart(step.before or 0.0, step.after or 0.0, "us", MEASURED))
    return both("comparison.headline_untold", times=lengths, why=why, counts=_counted(matched))


def _against(where: Sequence[Change]) -> float:
    """By how much parts of the step moved the other way than the step did, microseconds."""
    return sum(abs(line.difference) for line in where if line.role is Role.PART and line.share < 0)


def _unattributed(step: Metric | None, behind: Sequence[Cause]) -> float | None:
    if step is None or step.before is None or step.after is None or not step.moved:
        return None
    return step.after - step.before - sum(cause.us for cause in behind)


def _outcome(step: Metric | None, comparable: bool) -> str:
    if not comparable:
        return "incomparable"
    if step is None:
        return "unknown"
    if not step.moved:
        return "same"
    return "faster" if (step.change or 0.0) < 0 else "slower"


def _headline(
    outcome: str, step: Metric | None, matched: Sequence[Matched], between: Sequence[Obstacle],
    behind: Sequence[Cause], where: Sequence[Change], facts: tuple[FactTable, FactTable],
) -> Text:  # fmt: skip
    said = _counted(matched)
    if outcome == "incomparable":
        blocking = [_differing(other) for other in between if other.blocks]
        listed = reduce(lambda first, second: both("comparison.and", first=first, second=second), blocking)
        return both("comparison.headline_incomparable", obstacles=listed, counts=said)
    if step is None or step.before is None or step.after is None:
        said = both("comparison.headline_unknown", counts=said)
        for other in (other for other in between if other.what == "executions" or other.what.endswith("files")):
            said = both("comparison.headline_besides", first=said, what=_differing(other), why=other.why)
        return said
    subject = _SUBJECTS.get(step.fact, "headline")
    outcome = _outcome(step, True)
    assumed = outcome == "same" and step.noise <= settings().limits["least_change"]
    said = both(
        f"comparison.{subject}_{'assumed' if assumed else outcome}",
        times=" → ".join(show_apart(step.before, step.after, "us", MEASURED)),
        change=signed(step.change or 0.0, "ratio"), noise=show(step.noise, "ratio"), counts=said,
    )  # fmt: skip
    if subject == "headline":
        said = slow_steps_told(said, *facts, step)
    whole = step.after - step.before
    for cause in behind[:1]:
        word = "cause" if abs(cause.us) >= abs(whole - sum(each.us for each in behind)) else "part"
        said = both(
            f"comparison.headline_{word}", first=said, cause=named(cause.finding), change=signed(cause.us, "us")
        )
    known = sum(cause.us for cause in behind if cause.finding.saving is not None)
    if abs(whole - known) > MOST * abs(whole):
        for place, line in _places(where) if step.moved else ():
            said = both("comparison.headline_place", first=said, place=place, change=signed(line.difference, "us"))
    for other in (other for other in between if (step.moved and other.what != "files") or other.what == "executions"):
        said = both("comparison.headline_besides", first=said, what=_differing(other), why=other.why)
    return said


def _counted(matched: Sequence[Matched]) -> Text:
    counts = {state: sum(m.state == state for m in matched) for state in ("resolved", "remaining", "new", "unjudged")}
    return both("comparison.counts_unjudged" if counts["unjudged"] else "comparison.counts", **counts)


def _differing(other: Obstacle) -> Text:
    what = both(f"differences.{other.what}")
    return both("comparison.blocking", what=what, before=other.before, after=other.after)


def _places(where: Sequence[Change]) -> Iterator[tuple[Text, Change]]:
    """Where most of the change stands: a part of the step, or who of it has most of the change."""
    told = [line for line in where if line.role is not Role.SEEN_AT and not line.rest and line.share > MOST]
    told = [line for line in told if line.subject != RUN or line.fact != KERNEL_TIME]  # the headline's own subject
    for line in told[:2][-1:]:
        of = fact_titles().get(line.fact if line.subject == RUN else line.part)
        if of is not None:
            yield about(of, line.subject), line


def read_report(path: str, rules: RuleSet, options: Options | None = None) -> Report:
    """The report on a profile, or the one a file holds: `advise --format json:FILE`, `facts --save FILE`.

    Raises UsageError and NoVerdict as `advise` does.
    """
    from advisor.engine.judge import judge
    from advisor.pipeline import Options, measure

    options = options or Options()
    document = _document(Path(path))
    if document is not None and "findings" in document:
        from advisor.exchange import report_from_json

        report = report_from_json(document)
        known = document.get("problems")
        for problem in report.problems[len(known) if isinstance(known, list) else 0 :]:
            log.warning("%s: %s", path, problem.problem)
        return report
    if document is not None and "facts" in document:
        from advisor.facts.saved import load

        return judge(load(path), rules, options.engine)
    measured = measure([path], rules.uses_facts() | compared_facts(), options)
    return judge(measured, rules, options.engine)


def _document(path: Path) -> dict[str, object] | None:
    """The JSON object of a report or facts file; None for everything else, profiles among it."""
    if path.suffix != ".json" or not path.is_file():
        return None
    from advisor.basics.jsonin import parsed

    try:
        document = parsed(read_own(path, LARGEST_DOCUMENT))
    except (OSError, JSONDecodeError, UnicodeDecodeError, RecursionError):
        return None
    except ValueError as error:
        hint = "write one with: advisor advise PROFILE --format json:report.json"
        raise UsageError(f"no report of the advisor: {error}", place=str(path), hint=hint) from None
    if not isinstance(document, dict) or "schema_version" not in document:
        return None
    if "findings" not in document and "facts" not in document:
        raise UsageError("neither a report nor saved facts", place=str(path))
    return document
