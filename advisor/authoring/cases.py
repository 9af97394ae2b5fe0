"""Cases: given facts (or a profile), what must a rule conclude?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.basics.errors import AdvisorError, RuleError
from advisor.basics.units import NBSP, show
from advisor.facts.base import FactKind, FactSet
from advisor.knowledge.remedy import RemedySpec
from advisor.model import (
    COLLECTION,
    RUN,
    SUBJECT_KINDS,
    Check,
    Confidence,
    Direction,
    Fact,
    Finding,
    Outcome,
    Role,
    Severity,
    Subject,
    Text,
)
from advisor.ruleset.files.loader import RuleSet, with_params
from advisor.ruleset.files.reading import load_rule
from advisor.ruleset.files.schema import CaseModel, CasesModel, ExpectModel
from advisor.ruleset.language.scopes import SINGLE
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.evaluate import Scope
from advisor.ruleset.truth.population import population_of
from advisor.ruleset.truth.trace import trace
from advisor.yamlfiles.document import Document, read_document
from advisor.yamlfiles.faults import Faults, LintError, of_error, validate

Judge = Callable[[RuleSet, FactSet, Sequence[Finding]], tuple[Sequence[Finding], Sequence[Check]]]


@dataclass(frozen=True)
class CaseResult:
    """What became of one case: `failures` is empty where it holds; `near` shows each clause with what it saw."""

    rule: str
    case: str
    file: str
    line: int
    failures: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures


def cases_path(rule_path: Path) -> Path:
    """Where the cases of a rule stand."""
    return rule_path.with_name(f"{rule_path.stem}.test.yaml")


def load_cases(path: Path) -> tuple[CasesModel | None, Document | None, list[LintError]]:
    """The cases in a file; None, with every defect, where they cannot be used."""
    try:
        document = read_document(path)
    except RuleError as error:
        return None, None, [of_error(error, path)]
    faults = Faults(document)
    return validate(CasesModel, document, faults), document, faults.found


def run_cases(
    files: Iterable[Path],
    *,
    catalogue: Mapping[str, FactKind] | None = None,
    remedies: Mapping[str, RemedySpec] | None = None,
    judge: Judge | None = None,
) -> list[CaseResult]:
    """Runs the cases beside these rule files. `judge` decides (default: the engine that judges profiles)."""
    if catalogue is None:
        from advisor.facts.registry import catalogue as measured

        catalogue = measured()
    if remedies is None:
        from advisor.knowledge.remedies import load_remedies

        remedies, _ = load_remedies(sorted({path.parent for path in files}))
    judge = judge or default_judge(catalogue)
    return [result for path in files for result in _run_file(path, catalogue, remedies, judge)]


def default_judge(catalogue: Mapping[str, FactKind]) -> Judge:
    """The judge that judges profiles."""
    from advisor.engine.judge import decide

    def judge(rules: RuleSet, facts: FactSet, given: Sequence[Finding]) -> tuple[list[Finding], list[Check]]:
        verdicts = decide(rules, facts, catalogue=catalogue, given=given)
        return verdicts.findings, verdicts.checks

    return judge


def _run_file(
    path: Path, catalogue: Mapping[str, FactKind], remedies: Mapping[str, RemedySpec], judge: Judge
) -> list[CaseResult]:
    rule, faults = load_rule(path, catalogue)
    if rule is None:
        return [CaseResult(path.stem, "the rule loads", e.file, e.line, (e.message,)) for e in faults]
    where = cases_path(path)
    if not where.is_file():
        return [CaseResult(rule.id, "cases exist", str(where), 1, ("there is no file of cases",))]
    model, document, faults = load_cases(where)
    if model is None or document is None:
        return [CaseResult(rule.id, "the cases load", e.file, e.line, (e.message,)) for e in faults]
    results = []
    for index, case in enumerate(model.cases):
        line = document.line(("cases", index))
        try:
            failures, near = _run_case(rule, case, where, catalogue, remedies, judge)
        except AdvisorError as error:
            failures, near = (error.message,), ()
        results.append(CaseResult(rule.id, case.name, str(where), line, failures, near))
    return results


def _run_case(
    rule: Rule,
    case: CaseModel,
    path: Path,
    catalogue: Mapping[str, FactKind],
    remedies: Mapping[str, RemedySpec],
    judge: Judge,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if case.params:
        rule = with_params(rule, case.params, case.name)
    if case.profile is not None:
        facts = _measured(path, case.profile, rule.uses_facts(remedies))
    else:
        facts = facts_of(case.facts or [], catalogue)
    given = [given_finding(entry, facts) for entry in case.findings]
    findings, checks = judge(RuleSet((rule,), remedies), facts, given)
    failures = tuple(compare(case.expect, rule, findings, checks))
    return failures, tuple(came_near(rule, facts, catalogue, given)) if failures else ()


def _measured(path: Path, profile: str, names: Iterable[str]) -> FactSet:
    """The facts of a profile below the folder of the pack."""
    from advisor.pipeline import measure

    root = next((p for p in path.parents if (p / "pack.yaml").is_file()), path.parent).resolve()
    folder = (path.parent / profile).resolve()
    if not folder.is_relative_to(root):
        raise RuleError(f"the profile {profile} is not in the pack", hint=f"copy it below {root.name}")
    return measure([folder], names).facts


def facts_of(entries: Sequence[Mapping[str, Any]], catalogue: Mapping[str, FactKind]) -> FactSet:
    """The facts written in a case. Raises RuleError for what the catalogue does not know."""
    facts = FactSet()
    for entry in entries:
        subject, values = _subject_of(entry)
        for name, value in values.items():
            kind = catalogue.get(name)
            if kind is None:
                raise RuleError(f"there is no fact {name!r}", hint="`advisor facts list` names all facts")
            if subject.kind not in kind.scopes:
                raise RuleError(f"{name} is a fact of {', '.join(kind.scopes)}, not of a {subject.kind}")
            if value is not None:
                facts.add(Fact(name, subject, tuple(value) if isinstance(value, list) else value))
    return facts


def _subject_of(entry: Mapping[str, Any]) -> tuple[Subject, dict[str, Any]]:
    kinds = [key for key in entry if key in SUBJECT_KINDS]
    if len(kinds) != 1:
        raise RuleError("facts belong to one subject", hint="write {rank: '3', rank.compute_us: 1000}")
    kind = kinds[0]
    inner = entry[kind]
    rest = {key: value for key, value in entry.items() if key not in (kind, "ranks")}
    if kind in SINGLE:
        if not isinstance(inner, dict):
            raise RuleError(f"{kind} holds facts", hint=f"write {{{kind}: {{area.fact: 1}}}}")
        return (RUN if kind == "run" else COLLECTION), {**inner, **rest}
    name = str(inner)
    return Subject(kind, name, _ranks(kind, name, entry.get("ranks"))), rest


def _ranks(kind: str, name: str, ranks: Any) -> tuple[int, ...]:
    if ranks is not None:
        if not isinstance(ranks, list) or not all(isinstance(rank, int) for rank in ranks):
            raise RuleError("ranks is a list of global ranks", hint="write ranks: [0, 1]")
        return tuple(ranks)
    if kind in ("rank", "link"):
        return tuple(int(part) for part in name.split("-") if part.isdigit())
    return ()


def given_finding(entry: Mapping[str, Any], facts: FactSet) -> Finding:
    """A finding that a case takes as reached: a verdict, and the subject (default: the run)."""
    verdict, about = entry.get("verdict"), entry.get("subject")
    unknown = set(entry) - {"verdict", "subject"}
    if not isinstance(verdict, str) or unknown:
        raise RuleError(
            "a given finding has a verdict and a subject", hint="{verdict: slow-link, subject: {rank: '3'}}"
        )
    subject = RUN
    if isinstance(about, Mapping):
        kind = next((key for key in about if key in SUBJECT_KINDS), "")
        if not kind:
            raise RuleError("the subject of a given finding has a kind", hint="write subject: {rank: '3'}")
        name = str(about[kind]) if kind not in SINGLE else kind
        known = [each for each in facts.subjects(kind) if each.id == name and "ranks" not in about]
        subject = known[0] if known else Subject(kind, name, _ranks(kind, name, about.get("ranks")))
    text = Text(verdict, verdict)
    return Finding(
        id=f"given:{verdict}:{subject}",
        rule="given",
        verdict=verdict,
        direction=Direction.EVIDENCE,
        role=Role.CONTRIBUTING,
        severity=Severity.LOW,
        confidence=Confidence.HIGH,
        subject=subject,
        title=text,
        message=text,
    )


def compare(expect: ExpectModel, rule: Rule, findings: Sequence[Finding], checks: Sequence[Check]) -> Iterable[str]:
    """What differs from the expectation, in words."""
    own = [finding for finding in findings if finding.rule == rule.id]
    check = next((each for each in checks if each.rule == rule.id), None)
    outcome = check.outcome if check else Outcome.NO_DATA
    if outcome.value != expect.outcome:
        why = check.reason or ", ".join(check.missing) if check else ""
        yield f"outcome is {outcome.value}{f' ({why})' if why else ''}, expected {expect.outcome}"
    if expect.subjects is not None:
        subjects, wanted = sorted(f.subject.id for f in own), sorted(map(str, expect.subjects))
        if subjects != wanted:
            yield f"subjects are {', '.join(subjects) or 'none'}, expected {', '.join(wanted) or 'none'}"
    if not own:
        return
    severity = max((finding.severity for finding in own), key=lambda each: each.rank)
    if expect.severity is not None and severity.value != expect.severity:
        yield f"severity is {severity.value}, expected {expect.severity}"
    confidence = max((finding.confidence for finding in own), key=lambda each: each.rank)
    if expect.confidence is not None and confidence.value != expect.confidence:
        yield f"confidence is {confidence.value}, expected {expect.confidence}"
    if expect.saving_us is not None:
        saving = max((finding.weight_us for finding in own if finding.saving or finding.at_stake), default=None)
        if saving is None or abs(saving - expect.saving_us) > 1e-3 * max(1.0, abs(expect.saving_us)):
            found = "none" if saving is None else show(saving, "us")
            yield f"saving is {found}, expected {show(expect.saving_us, 'us')}"
    source = rule.message.en + rule.title.en
    if "unknown" not in source and any("unknown" in f.message.en + f.title.en for f in own):
        yield f"the message needs a fact that the case does not give: {own[0].message.en}"
    messages = [text.replace(NBSP, " ") for finding in own for text in (finding.message.en, finding.message.zh)]
    if expect.message is not None and not any(expect.message in message for message in messages):
        yield f"no message contains {expect.message!r}: {own[0].message.en}"


def came_near(
    rule: Rule, facts: FactSet, catalogue: Mapping[str, FactKind], findings: Sequence[Finding] = ()
) -> Iterable[str]:
    """Every clause with its truth and what it saw, for each subject (the first ten)."""
    for subject in population_of(facts, catalogue).of_kind(rule.subject_kind)[:10]:
        for clause in trace(Scope(rule, subject, facts, catalogue), findings):
            truth = {True: "true", False: "false", None: "unknown"}[clause.truth]
            seen = ", ".join(f"{each.fact} = {show(each.value, each.unit)}" for each in clause.observed)
            yield f"{subject}: {clause.part}: {clause.text}: {truth}{f'  [{seen}]' if seen else ''}"
