"""Rules and facts → patterns and records of the inference engine.

A comparison of a fact with a threshold becomes a test on a record's field, `any` becomes alternatives, a condition on
a verdict becomes a join of subject and finding. What engines lack (arithmetic, peers, counts) is worked out here and
joins the record as one truth value for each alternative.

Record types: the kinds of subjects; "finding" (verdict, rule, kind, id, key, ranks); "absent" (verdict, on, key);
"overlap0", … (a, b: texts of ranks that have one in common; a type for each such condition of a rule, as a record
never fills two patterns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from advisor.basics.errors import RuleError
from advisor.engine.matching.base import CompiledRule, Hit, Join, Pattern, Record, Scalar, Test
from advisor.engine.matching.records import field_of, key_of, ranks_of
from advisor.engine.matching.strata import Strata
from advisor.facts.base import FactKind, FactSet
from advisor.model import Subject
from advisor.ruleset.language.alternatives import expand
from advisor.ruleset.language.arithmetic import exact_limit, normal
from advisor.ruleset.language.conditions import All, Condition, FindingIs, Leaf, parts
from advisor.ruleset.language.expression import Compare, FactRef, Literal, Not, Param, text_of
from advisor.ruleset.language.scopes import SINGLE, fact_kind, place
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.board import Board, Reached
from advisor.ruleset.truth.evaluate import Scope
from advisor.ruleset.truth.population import overlap, population_of

MAX_PATTERNS = 15
_ENGINE_OPS = ("==", "!=", "<", "<=", ">", ">=")


class Absence(Struct, frozen=True):
    """A verdict whose absence some rule asks for: anywhere, or about each of these subjects."""

    verdict: str
    on: str
    subjects: tuple[Subject, ...] = ()


class Compiled(Struct):
    """What the engine gets, and how to read its hits."""

    rules: list[CompiledRule] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    keys: dict[str, tuple[Rule, int]] = field(default_factory=dict)
    """key of a compiled rule -> the rule and which of its alternatives"""
    subjects: dict[str, Subject] = field(default_factory=dict)
    """record id -> subject"""
    absences: dict[int, list[Absence]] = field(default_factory=dict)
    """stratum -> the absences that are certain once all rules before it have been heard"""
    errors: dict[str, str] = field(default_factory=dict)
    """rule id -> why it could not be compiled"""

    def read(self, hit: Hit) -> tuple[str, Subject]:
        """The rule that matched and the subject it matched about."""
        rule, _ = self.keys[hit.key]
        return rule.id, next(self.subjects[record] for alias, record in hit.bindings if alias == "subject")


def compile_rules(
    rules: Sequence[Rule],
    judged: Mapping[str, Sequence[Subject]],
    facts: FactSet,
    catalogue: Mapping[str, FactKind],
    strata: Strata,
    also: Iterable[Subject] = (),
) -> Compiled:
    """Patterns and records for these rules. `judged`: rule id -> subjects that are ready to be judged; `also`:
    subjects of findings that are given, where the facts do not mention them."""
    compiled = Compiled()
    wire = _Wire(facts, catalogue)
    for rule in rules:
        if not judged.get(rule.id):
            continue
        try:
            made = _RuleCompiler(rule, judged[rule.id], wire).compile()
        except RuleError as error:
            compiled.errors[rule.id] = error.message
            continue
        compiled.rules += made
        compiled.keys.update({each.key: (rule, number) for number, each in enumerate(made)})
    compiled.subjects = wire.subjects
    compiled.records = wire.records(also)
    for (verdict, on), subjects in wire.absences.items():
        stratum = strata.complete.get(verdict, 0)
        ordered = tuple(sorted(subjects)) if on != "any" else ()
        compiled.absences.setdefault(stratum, []).append(Absence(verdict, on, ordered))
    return compiled


def finding_record(finding: Reached) -> Record:
    """A verdict that has been reached, as a record for rules that build on it."""
    subject, rule = finding.subject, getattr(finding, "rule", "")
    fields: dict[str, Scalar] = {
        "verdict": finding.verdict,
        "rule": rule,
        "kind": subject.kind,
        "id": subject.id,
        "key": key_of(subject),
        "ranks": ranks_of(subject),
    }
    return Record(f"finding:{finding.verdict}:{rule}:{key_of(subject)}", "finding", fields)


def stratum_records(compiled: Compiled, verdicts: Callable[[], Sequence[Reached]]) -> Iterator[Record]:
    """Records of absence, stratum by stratum. Ask for the next one only when all consequences of the last have been
    drawn: `verdicts` is called at the beginning of each stratum, when those before it are complete."""
    for stratum in sorted(compiled.absences):
        reached = verdicts()
        yield from [record for absence in compiled.absences[stratum] for record in _absent(absence, reached)]


def _absent(absence: Absence, reached: Sequence[Reached]) -> Iterator[Record]:
    board = reached if isinstance(reached, Board) else Board(reached)
    found = [finding.subject for finding in board.of(absence.verdict)]
    name = f"absent:{absence.verdict}:{absence.on}"
    fields: dict[str, Scalar] = {"verdict": absence.verdict, "on": absence.on}
    if absence.on == "any":
        if not found:
            yield Record(name, "absent", fields)
        return
    for subject in absence.subjects:
        same = board.about(absence.verdict, subject) is not None
        hit = same if absence.on == "same" else any(overlap(subject, other) for other in found)
        if not hit:
            yield Record(f"{name}:{key_of(subject)}", "absent", {**fields, "key": key_of(subject)})


class _Wire:
    """Collects the records: which fields of which kinds are asked for, and what was derived."""

    def __init__(self, facts: FactSet, catalogue: Mapping[str, FactKind]) -> None:
        self.facts, self.catalogue = facts, catalogue
        self.population = population_of(facts, catalogue)
        self.fields: dict[str, set[str]] = {}
        self.derived: dict[Subject, dict[str, Scalar]] = {}
        self.absences: dict[tuple[str, str], set[Subject]] = {}
        self.overlaps = 0
        """How many conditions on overlapping findings one alternative has at most."""
        self.subjects: dict[str, Subject] = {}

    def ask(self, kind: str, name: str = "") -> None:
        """Notes that records of this kind are needed, with this fact as a field."""
        wanted = self.fields.setdefault(kind, set())
        if name:
            wanted.add(name)

    def derive(self, subject: Subject, name: str, value: Scalar | None) -> None:
        if value is not None:
            self.derived.setdefault(subject, {})[name] = value

    def records(self, also: Iterable[Subject]) -> list[Record]:
        """All records, the run first, in a stable order."""
        records = [self._record(kind, subject) for kind in self._kinds() for subject in self.population.of_kind(kind)]
        if self.overlaps:
            records += self._overlaps(also)
        return records

    def _kinds(self) -> list[str]:
        return sorted(self.fields, key=lambda kind: (kind != "run", kind))

    def _record(self, kind: str, subject: Subject) -> Record:
        name = f"{kind}:{subject.id}" if kind != subject.id else kind
        if name in self.subjects:
            name = key_of(subject)
        self.subjects[name] = subject
        fields: dict[str, Scalar] = {"key": key_of(subject), "ranks": ranks_of(subject)}
        for fact in sorted(self.fields[kind]):
            value = field_of(self.facts, fact, subject)
            if value is not None:
                fields[fact] = value
        return Record(name, kind, {**fields, **self.derived.get(subject, {})})

    def _overlaps(self, also: Iterable[Subject]) -> list[Record]:
        by_text = {ranks_of(subject): subject for subject in (*self.population.all(), *also)}
        by_rank: dict[int, set[str]] = {}
        for text, subject in by_text.items():
            for rank in subject.ranks:
                by_rank.setdefault(rank, set()).add(text)
        pairs: set[tuple[str, str]] = set()
        for text, subject in by_text.items():
            near = set().union(*(by_rank[rank] for rank in subject.ranks)) | {"*"} if subject.ranks else set(by_text)
            pairs |= {(text, other) for other in near}
        return [
            Record(f"overlap{number}:{a}:{b}", f"overlap{number}", {"a": a, "b": b})
            for number in range(self.overlaps)
            for a, b in sorted(pairs)
        ]


class _RuleCompiler:
    """One rule's alternatives as patterns."""

    def __init__(self, rule: Rule, judged: Sequence[Subject], wire: _Wire) -> None:
        self.rule, self.judged, self.wire = rule, judged, wire
        self.kind = rule.subject_kind
        self.scopes = {subject: Scope(rule, subject, wire.facts, wire.catalogue) for subject in judged}
        self.overlapping = 0
        self.partial = len(judged) < len(wire.population.of_kind(self.kind))
        wire.ask(self.kind)

    def compile(self) -> list[CompiledRule]:
        on_findings = (c for c in self.rule.applies if any(isinstance(part, FindingIs) for part in parts(c)))
        alternatives = expand(All((*on_findings, self.rule.when)))
        return [self._alternative(number, each) for number, each in enumerate(alternatives)]

    def _alternative(self, number: int, leaves: Sequence[Condition]) -> CompiledRule:
        tests: dict[str, list[Test]] = {"subject": []}
        derived: list[Condition] = []
        findings: list[FindingIs] = []
        for leaf in leaves:
            if isinstance(leaf, FindingIs):
                findings.append(leaf)
            elif not self._test(leaf, tests):
                derived.append(leaf)
        name = f"{self.rule.id}/{number}"
        if derived or self.partial:
            self._derive(name, derived)
            tests["subject"].append(Test(name, "==", True))
        patterns = [Pattern("subject", self.kind, tuple(tests.pop("subject")))]
        patterns += [Pattern(each, each, tuple(tests.pop(each))) for each in SINGLE if each in tests]
        patterns += self._findings(findings)
        if len(patterns) > MAX_PATTERNS:
            raise RuleError(f"{len(patterns)} patterns in one alternative; at most {MAX_PATTERNS}")
        return CompiledRule(name, tuple(patterns))

    # --- clauses ----------------------------------------------------------------------------------------------------

    def _test(self, leaf: Condition, tests: dict[str, list[Test]]) -> bool:
        """Writes the clause as a test on a field where it is one."""
        if not isinstance(leaf, Leaf):
            return False
        expr, op = leaf.expr, "=="
        value: Any = True
        if isinstance(expr, Not):
            expr, value = expr.operand, False
        elif isinstance(expr, Compare):
            if len(expr.ops) != 1 or expr.ops[0] not in _ENGINE_OPS:
                return False
            op, right, expr = expr.ops[0], expr.operands[1], expr.operands[0]
            if not isinstance(right, (Literal, Param)):
                return False
            value = normal(right.value if isinstance(right, Literal) else self.rule.params[right.name].value)
            if value is None or isinstance(value, tuple):
                return False
        if not isinstance(expr, FactRef) or fact_kind(expr.fact, self.wire.catalogue).unit == "list":
            return False
        alias, name = self._field(expr)
        if isinstance(value, float):
            value = exact_limit(op, value)
        tests.setdefault(alias, []).append(Test(name, op, value))
        return True

    def _field(self, ref: FactRef) -> tuple[str, str]:
        """The pattern and field that stand for a fact; a fact of the holder becomes a field of the subject."""
        where = place(ref, self.kind, self.wire.catalogue)
        if where.startswith("holder:"):
            for subject, scope in self.scopes.items():
                value: Any = scope.value(ref)
                if not isinstance(value, tuple):
                    self.wire.derive(subject, text_of(ref), value)
            return "subject", text_of(ref)
        alias = "subject" if where == "self" else where
        self.wire.ask(self.kind if where == "self" else where, ref.fact)
        return alias, ref.fact

    def _derive(self, name: str, clauses: list[Condition]) -> None:
        for subject, scope in self.scopes.items():
            if all(scope.truth(clause) is True for clause in clauses):
                self.wire.derive(subject, name, True)

    # --- findings ---------------------------------------------------------------------------------------------------

    def _findings(self, conditions: Sequence[FindingIs]) -> list[Pattern]:
        """Patterns on verdicts. Of several conditions on one verdict the narrowest implies the others."""
        order = {"same": 0, "overlapping": 1, "any": 2}
        kept: dict[tuple[str, bool], FindingIs] = {}
        for condition in conditions:
            key = (condition.verdicts[0], condition.absent)
            narrower = order[condition.on] < order[kept[key].on] if key in kept else True
            if narrower is not condition.absent or key not in kept:
                kept[key] = condition
        patterns: list[Pattern] = []
        self.overlapping = 0
        for number, ((verdict, absent), condition) in enumerate(kept.items()):
            make = self._absent if absent else self._reached
            patterns += make(f"_f{number}", verdict, condition.on)
        return patterns

    def _reached(self, alias: str, verdict: str, on: str) -> list[Pattern]:
        test = Test("verdict", "==", verdict)
        if on == "any":
            return [Pattern(alias, "finding", (test,))]
        if on == "same":
            return [Pattern(alias, "finding", (test,), (Join("key", "==", "subject", "key"),))]
        number = self.overlapping
        self.overlapping += 1
        self.wire.overlaps = max(self.wire.overlaps, self.overlapping)
        near = Pattern(f"{alias}o", f"overlap{number}", (), (Join("a", "==", "subject", "ranks"),))
        return [near, Pattern(alias, "finding", (test,), (Join("ranks", "==", f"{alias}o", "b"),))]

    def _absent(self, alias: str, verdict: str, on: str) -> list[Pattern]:
        self.wire.absences.setdefault((verdict, on), set()).update(self.judged)
        tests = (Test("verdict", "==", verdict), Test("on", "==", on))
        return [Pattern(alias, "absent", tests, () if on == "any" else (Join("key", "==", "subject", "key"),))]
