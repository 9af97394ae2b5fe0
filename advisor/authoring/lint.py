"""Everything that is wrong with rules, remedies and cases, all at once, with file, line and a hint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from advisor.authoring.cases import cases_path, facts_of, given_finding, load_cases
from advisor.authoring.chains import bare_numbers, find_loops, find_unreached, read_otherwise
from advisor.authoring.texts import lint_texts, lint_words
from advisor.basics.errors import RuleError
from advisor.basics.resources import resource
from advisor.basics.suggest import suggest
from advisor.engine.matching.strata import stratify
from advisor.facts.base import FactKind
from advisor.knowledge.remedies import load_remedies
from advisor.knowledge.remedy import RemedySpec
from advisor.model import Direction
from advisor.ruleset.files.found import rule_files
from advisor.ruleset.files.loader import with_params
from advisor.ruleset.files.packs import shipped_packs
from advisor.ruleset.files.reading import read_rules
from advisor.ruleset.files.references import References, texts_of, unknown
from advisor.ruleset.language.alternatives import expand
from advisor.ruleset.language.conditions import All, AnyOf, Condition, Leaf, parts, push_down
from advisor.ruleset.language.expression import Call, Expr, FactRef, Literal, Logic, Name, Param, children, walk
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.templates import check_template, placeholders
from advisor.yamlfiles.document import read_document, reading_each_once
from advisor.yamlfiles.faults import Faults, LintError

__all__ = ["LintError", "lint"]


@reading_each_once()
def lint(
    directories: Sequence[Path], *, catalogue: Mapping[str, FactKind] | None = None, cases: bool = True
) -> list[LintError]:
    """All defects of the rules, remedies and (unless `cases` is off) cases in these folders, sorted by place.

    Rules of the default pack are known as parents and as sources of verdicts, and are not linted unless named.
    """
    if catalogue is None:
        from advisor.facts.registry import catalogue as measured

        catalogue = measured()
    rules, found = read_rules(directories, catalogue)
    default = shipped_packs()["default"]
    ours = any(directory.resolve() == default.resolve() for directory in directories)
    others = [] if ours else read_rules([default], catalogue)[0]
    remedies, faults = load_remedies([directory for directory in directories if directory.is_dir()])
    known = _Known(catalogue, remedies, [*rules, *others])
    if cases:
        faults = [*faults, *lint_texts(rules, remedies, catalogue), *(lint_words() if ours else ())]
    found = [replace(error, level="error") if _shipped(error.file) else error for error in (*found, *faults)]
    for rule in rules:
        found += _Linter(rule, known).lint(cases)
    if cases:
        found += _without_cases(directories, {rule.path for rule in rules})
    found += [error for path in _files(directories) for error in read_otherwise(path)]
    for spec in remedies.values():
        if ours or not _shipped(str(spec.path)):
            found += _lint_remedy(spec, known)
    return sorted(set(found))


def _shipped(file: str) -> bool:
    roots = (resource("rules").resolve(), resource("knowledge_base").resolve())
    return any(Path(file).resolve().is_relative_to(root) for root in roots)


class _Known:
    """What rules may refer to."""

    def __init__(
        self, catalogue: Mapping[str, FactKind], remedies: Mapping[str, RemedySpec], rules: Sequence[Rule]
    ) -> None:
        self.catalogue, self.references = catalogue, References(catalogue, remedies, rules)
        self.ids = {rule.id for rule in rules}
        self.valued = {rule.verdict for rule in rules if rule.saving is not None}
        """Verdicts that come with a saving."""
        self.circular = stratify(rules).circular
        self.shipped = {rule.id: rule for rule in rules if _shipped(str(rule.path))}
        self.loops = find_loops(rules)
        self.unreached = find_unreached(rules)


class _Linter:
    def __init__(self, rule: Rule, known: _Known) -> None:
        self.rule, self.known = rule, known
        self.faults = Faults(read_document(rule.path))

    def lint(self, cases: bool) -> list[LintError]:
        self._identity()
        self._parents()
        self._numbers()
        self._ladder()
        self._params()
        self._needs()
        self._texts()
        self._saving()
        if self.rule.id in self.known.circular:
            self.faults.add(("when",), "depends, through other rules, on the absence of its own verdict")
        with self.faults.at("when"):
            expand(All((*self.rule.applies, self.rule.when)))
        found = [*self.known.references.faults_of(self.rule), *self.faults.found]
        return found + (self._cases() if cases else [])

    def _identity(self) -> None:
        """What keeps the rule from being loaded beside the shipped ones, or from ever saying something."""
        rule, other = self.rule, self.known.shipped.get(self.rule.id)
        if other is not None and not _shipped(str(rule.path)):
            hint = "take a prefix of your own: ACME001; the shipped one is changed by [params], left out by `ignore`"
            self.faults.add(("id",), f"{rule.id} is a rule of the shipped pack", hint)
        if rule.id in self.known.loops:
            loop = " → ".join(self.known.loops[rule.id])
            self.faults.add(("explains",), f"explains itself: {loop}", "a symptom is explained by its cause only")
        if rule.id in self.known.unreached:
            others = ", ".join(self.known.unreached[rule.id])
            told = f"is never reached: it needs the finding of {others}, which needs this one's"
            self.faults.add(("when",), told, "let one of them go without the other's finding")

    def _numbers(self) -> None:
        """Thresholds have a name and an origin; how many there must be at least speaks for itself."""
        for part in parts(All((*self.rule.applies, self.rule.when))):
            for number in bare_numbers(part, self.known.catalogue):
                hint = f"params: {{limit: {{value: {number:g}, unit: …, origin: …}}}}, and $limit here"
                level = "error" if _shipped(str(self.rule.path)) else "warning"
                self.faults.add(("when",), f"{number:g} in a condition has no name and no origin", hint, level)

    def _parents(self) -> None:
        for index, parent in enumerate(self.rule.parents):
            if parent not in self.known.ids:
                unknown(self.faults, ("parents", index), f"there is no rule {parent!r}", parent, self.known.ids)

    def _saving(self) -> None:
        """A cause without a saving of its own has it from its symptoms: one of them must state one."""
        rule = self.rule
        if rule.kind != "cause" or rule.saving is not None or rule.direction == Direction.EVIDENCE:
            return
        if not {symptom.verdict for symptom in rule.explains} & self.known.valued:
            hint = "say what removing it gives (saving: {us: …, basis: …}), or explain a symptom that does"
            self.faults.add(("id",), "what removing this cause gives can be told by nobody", hint, "warning")

    def _ladder(self) -> None:
        ladder, before = self.rule.severity, None
        for severity, expr in ladder.steps:
            value = expr.value if isinstance(expr, Literal) else None
            if isinstance(expr, Param):
                value = self.rule.params[expr.name].value  # type: ignore[assignment]
            if not isinstance(value, (int, float)):
                continue
            if before is not None and (value <= before if ladder.worse == "higher" else value >= before):
                word = "above" if ladder.worse == "higher" else "below"
                self.faults.add(
                    ("severity", severity.value),
                    f"{severity.value} must be {word} the step before it ({value:g} after {before:g})",
                    "where low values are bad, say worse: lower",
                )
            before = value

    def _params(self) -> None:
        used = {part.name for expr in self.rule.expressions() for part in walk(expr) if isinstance(part, Param)}
        for template in self.rule.templates():
            used |= {name.split(".")[1] for name in _names(template) if name.startswith("param.")}
        for name in self.rule.params:
            if name not in used:
                self.faults.add(("params", name), f"the parameter {name} is used nowhere", "remove it")
        let = {part.name for expr in self.rule.expressions() for part in walk(expr) if isinstance(part, Name)}
        mentioned = {name for template in self.rule.templates() for name in _names(template)}
        for name in self.rule.let:
            if name not in let | mentioned:
                self.faults.add(("let", name), f"the name {name} is used nowhere", "remove it")

    def _needs(self) -> None:
        named = set(self.rule.needs)
        for fact in dict.fromkeys(_certain(push_down(self.rule.when), self.rule)):
            if fact not in named and not fact.startswith("subject."):
                hint = f"needs: [{fact}], or guard it: or_else({fact}, …)"
                self.faults.add(("needs",), f"`when` uses {fact}, which `needs` does not name", hint)

    def _texts(self) -> None:
        for where, text in texts_of(self.rule):
            with self.faults.at(*where):
                differ = sorted(placeholders(text.en) ^ placeholders(text.zh))
                if differ:
                    self.faults.add(where, f"{', '.join(differ)} stands in one language only", "mention it in both")

    def _cases(self) -> list[LintError]:
        path = cases_path(self.rule.path)
        if not path.is_file():
            self.faults.add(("id",), "the rule has no cases", f"write {path.name} beside it")
            return self.faults.found[-1:]
        model, document, faults = load_cases(path)
        if model is None or document is None:
            return faults
        noted = Faults(document)
        if model.rule != self.rule.id:
            noted.add(("rule",), f"the cases are of {model.rule}, the rule is {self.rule.id}")
        outcomes = [case.expect.outcome for case in model.cases]
        for missing, what in (
            ("fail" not in outcomes, "a case in which the rule fires (outcome: fail)"),
            ("pass" not in outcomes, "a case in which the rule stays silent (outcome: pass)"),
            (not any(case.boundary for case in model.cases), "a case at its limit (boundary: true)"),
        ):
            if missing:
                noted.add(("cases",), f"there is no {what.removeprefix('a ')}", f"add {what}")
        for index, case in enumerate(model.cases):
            with noted.at("cases", index):
                with_params(self.rule, case.params, case.name)
                facts = facts_of(case.facts or [], self.known.catalogue)
                for entry in case.findings:
                    given_finding(entry, facts)
        return [*faults, *noted.found]


def _files(directories: Sequence[Path]) -> list[Path]:
    return [path for directory in directories for path in rule_files(directory)]


def _without_cases(directories: Sequence[Path], loaded: Collection[Path]) -> list[LintError]:
    """Rules that could not be loaded want cases all the same: told at once, not after the rest was repaired."""
    return [
        LintError(str(path), 1, "the rule has no cases", f"write {cases_path(path).name} beside it")
        for path in _files(directories)
        if path not in loaded and not cases_path(path).is_file()
    ]


def _lint_remedy(spec: RemedySpec, known: _Known) -> list[LintError]:
    faults = Faults(read_document(spec.path))
    for key, text in (("title", spec.title), ("action", spec.action), ("risk", spec.risk)):
        if text is None:
            continue
        with faults.at(key):
            differ = sorted(placeholders(text.en) ^ placeholders(text.zh))
            if differ:
                faults.add((key,), f"{', '.join(differ)} stands in one language only", "mention it in both")
    for framework, snippet in spec.snippet.items():
        with faults.at("snippet", framework):
            check_template(snippet)
    if spec.verify is not None and spec.verify.fact not in known.catalogue:
        near = suggest(spec.verify.fact, known.catalogue)
        hint = f"did you mean {near[0]}?" if near else "`advisor facts list` names all facts"
        faults.add(("verify", "fact"), f"there is no fact {spec.verify.fact!r}", hint)
    return faults.found


def _names(template: str) -> frozenset[str]:
    try:
        return placeholders(template)
    except RuleError:
        return frozenset()


def _certain(condition: Condition, rule: Rule) -> Iterator[str]:
    """Facts that must be known for the condition to be judged: those outside `any`, `known` and `or_else`."""
    if isinstance(condition, All):
        for item in condition.items:
            yield from _certain(item, rule)
    elif isinstance(condition, Leaf):
        yield from _required(condition.expr, rule)
    elif isinstance(condition, AnyOf) and len(condition.items) == 1:
        yield from _certain(condition.items[0], rule)


def _required(expr: Expr, rule: Rule) -> Iterator[str]:
    if isinstance(expr, FactRef):
        yield expr.fact
    elif isinstance(expr, Name):
        yield from _required(rule.let[expr.name], rule)
    elif isinstance(expr, Call) and expr.function in ("known", "or_else", "if"):
        if expr.function == "or_else":
            yield from _required(expr.arguments[1], rule)
        elif expr.function == "if":
            yield from _required(expr.arguments[0], rule)
    elif not (isinstance(expr, Logic) and expr.op == "or"):
        for child in children(expr):
            yield from _required(child, rule)
