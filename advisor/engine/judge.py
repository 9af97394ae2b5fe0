"""Facts and rules in, report out: matching, forward chaining, findings, outcomes.

durable-rules finds which rules match which records; a finding becomes a record in its turn, so that rules can build
on verdicts. Rules that ask for the absence of a verdict wait in a later stratum, until every rule that could reach it
has been heard; then its absence is asserted as a record of its own. Where durable-rules cannot be had, the plain loop
asks every rule about every subject in the same order of strata.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, field

from advisor.engine.concluding.accounting import account
from advisor.engine.concluding.contained import with_one_root_each
from advisor.engine.concluding.evidence import missing_evidence, needless
from advisor.engine.concluding.findings import Draft, build
from advisor.engine.concluding.gathered import members_of, stages_of
from advisor.engine.concluding.joint import Joint, tell_jointly, tell_of_whole
from advisor.engine.concluding.paced import beside_collectives, in_step_with_the_slowest
from advisor.engine.concluding.roots import assign_roles, merge
from advisor.engine.concluding.summary import summarise
from advisor.engine.concluding.without_steps import tell_of_recording
from advisor.engine.matching.base import MAX_HITS, Engine, EngineFailure, Hit, Record, RecordError
from advisor.engine.matching.loop import Match, match
from advisor.engine.matching.program import Compiled, compile_rules, finding_record, stratum_records
from advisor.engine.matching.select import LOOP, make_engine
from advisor.engine.matching.strata import CIRCULAR, Strata, stratify
from advisor.facts.account.spending import step_time
from advisor.facts.base import FactKind, FactSet, Measured
from advisor.facts.registry import catalogue as known_facts
from advisor.knowledge.writers import RECORDED, left_behind, written_by
from advisor.model import COLLECTION, RUN, Check, Finding, Outcome, Problem, Report, Subject
from advisor.ruleset.files.loader import RuleSet
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.board import Board
from advisor.ruleset.truth.evaluate import Readiness, readiness
from advisor.ruleset.truth.population import population_of

log = logging.getLogger("advisor")

MOST_FINDINGS = 500
"""Findings of one rule that are worked out; for the subjects beyond, other rules still know of the verdict."""


class _Untold(Struct, frozen=True):
    """A verdict that was reached, but not worked out: one of too many of its rule."""

    rule: str
    verdict: str
    subject: Subject


class Verdicts(Struct):
    """What judging a set of facts came to."""

    findings: list[Finding]
    checks: list[Check]
    engine: str
    problems: list[Problem] = field(default_factory=list)


def judge(measured: Measured, rules: RuleSet, engine: str = "auto") -> Report:
    """The report on measured facts."""
    kinds = known_facts()
    verdicts = decide(rules, measured.facts, engine=engine, catalogue=kinds)
    problems = sorted({*measured.problems, *verdicts.problems, *rules.problems()}, key=lambda p: (p.file, p.problem))
    tables = {*measured.tables, *needless(measured.facts)}
    alone = measured.facts.value("collection.database_only", COLLECTION) is True
    settings = {name: measured.facts.value(f"collection.{name}", COLLECTION) for name in RECORDED}
    writes = left_behind(written_by(measured.info.layout, measured.info.framework, alone), settings)
    missing = missing_evidence(verdicts.checks, kinds, tables, writes)
    step_us = step_time(measured.facts) if measured.info.has_steps else None
    try:
        if step_us is None:
            joint = tell_of_whole(verdicts.findings, measured.facts)
        else:
            joint = tell_jointly(verdicts.findings, measured.facts, measured.run, step_us)
        if (single := with_one_root_each(verdicts.findings, joint.whatif)) != verdicts.findings and step_us:
            joint = tell_jointly(single, measured.facts, measured.run, step_us)
    except Exception as error:  # chains of a damaged profile may contradict each other: the findings stand all the same
        log.debug("joint savings", exc_info=True)
        problems.append(Problem("replay", f"joint savings could not be told: {type(error).__name__}: {error}"))
        joint = Joint(verdicts.findings, None)
    report = Report(
        profile=measured.info,
        summary=summarise(
            joint.findings, verdicts.checks, measured.facts, measured.info.ranks, measured.unusable, missing
        ),
        findings=tuple(joint.findings),
        whatif=joint.whatif,
        accounting=account(joint.findings, measured.facts, step_us),
        checked=tuple(verdicts.checks),
        missing_evidence=missing,
        problems=tuple(problems),
        facts=tuple(measured.facts),
        engine=verdicts.engine,
        promised=frozenset(spec.verify.fact for spec in rules.remedies.values() if spec.verify is not None),
    )
    return report if measured.info.has_steps else tell_of_recording(report)


def decide(
    rules: RuleSet,
    facts: FactSet,
    *,
    engine: str = "auto",
    catalogue: Mapping[str, FactKind] | None = None,
    given: Sequence[Finding] = (),
) -> Verdicts:
    """Findings with their roles, and the outcome of every rule. `given` findings are taken as reached already."""
    catalogue = known_facts() if catalogue is None else catalogue
    done, name, problems = _judged(rules, facts, catalogue, list(given), engine)
    owned = frozenset(rule.id for rule in rules.rules if rule.owned)
    together = frozenset(rule.id for rule in rules.rules if rule.together)
    launching = frozenset(rule.id for rule in rules.rules if rule.saving is not None and rule.saving.launches)
    merged = merge(
        beside_collectives(done.findings, facts, together),
        frozenset(rule.id for rule in rules.rules if rule.general),
        {subject: fact.value for subject, fact in facts.of("rank.alike").items() if isinstance(fact.value, tuple)},
        together,
        stages_of(facts),
        owned,
        frozenset(rule.id for rule in rules.rules if rule.disjoint),
    )
    findings = assign_roles(
        in_step_with_the_slowest(merged, facts, launching),
        {r.id: tuple((e.verdict, e.on) for e in r.explains) for r in rules.rules},
        {r.id: r.kind for r in rules.rules},
        {subject.id: str(fact.value) for subject, fact in facts.of("operator.type").items()},
        {rule.id for rule in rules.rules if rule.kind == "cause" and rule.saving is None},
        members_of(done.findings, together),
        {(r.id, e.verdict) for r in rules.rules for e in r.explains if e.apart},
        owned,
        {(r.id, other) for r in rules.rules for e in r.explains for other in e.but},
        int(facts.number("run.rank_count", RUN) or 0),
    )
    return Verdicts(findings, done.checks(), name, problems + done.problems)


def _judged(
    rules: RuleSet, facts: FactSet, catalogue: Mapping[str, FactKind], given: list[Finding], engine: str
) -> tuple[_Pass, str, list[Problem]]:
    """A pass that came to its end: where durable-rules fails, the plain loop judges again."""
    done = _Pass(rules, facts, catalogue, given)
    try:
        return done, done.run(engine), []
    except EngineFailure as failure:
        problem = Problem("engine", f"{failure}; judged again with the plain loop")
    done = _Pass(rules, facts, catalogue, given)
    return done, done.run(LOOP), [problem]


class _Pass:
    """One pass of all rules over one set of facts."""

    def __init__(
        self,
        rules: RuleSet,
        facts: FactSet,
        catalogue: Mapping[str, FactKind],
        given: list[Finding],
    ) -> None:
        self.rules, self.facts, self.catalogue, self.given = rules, facts, catalogue, given
        self.findings: list[Finding] = []
        self.board = Board(given)
        self.seen: set[tuple[str, Subject]] = set()
        self.told: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self.errors: dict[str, str] = {}
        self.ready: dict[str, dict[Subject, Readiness]] = {}

    def run(self, engine: str) -> str:
        """Matches until nothing new follows; returns the name of the engine that did."""
        for rule in self.rules.rules:
            self._prepare(rule)
        judged = {
            rule: [s for s, r in by.items() if r.state == "ready"]
            for rule, by in self.ready.items()
            if rule not in self.errors
        }
        strata = stratify(self.rules.rules)
        self.errors.update(dict.fromkeys(strata.circular, CIRCULAR))
        judged = {rule: subjects for rule, subjects in judged.items() if rule not in self.errors}
        name = self._durable(strata, judged, engine) if engine != LOOP else None
        if name is None:
            match(self.rules.rules, judged, self.facts, self.catalogue, strata, self.board, self._enter)
        self.problems += [
            Problem(rule, f"reached its verdict about {count} subjects; only {MOST_FINDINGS} of them are told")
            for rule, count in sorted(self.told.items())
            if count > MOST_FINDINGS
        ]
        return name or LOOP

    def _durable(self, strata: Strata, judged: Mapping[str, Sequence[Subject]], engine: str) -> str | None:
        """Matches with durable-rules; None where that cannot be had and another may do."""
        compiled = compile_rules(
            self.rules.rules, judged, self.facts, self.catalogue, strata, [finding.subject for finding in self.given]
        )
        # One match for each rule and subject is no explosion, however many there are.
        machine = make_engine(compiled.rules, engine, MAX_HITS + sum(map(len, judged.values())))
        if machine is None or (compiled.errors and engine == "auto"):
            return None  # a rule that no patterns can hold is none too much for the loop
        self.errors.update(compiled.errors)
        machine.begin()
        try:
            pending = [hit for record in compiled.records for hit in self._add(machine, record)]
            pending += [hit for f in self.given for hit in self._add(machine, finding_record(f))]
            self._chain(machine, compiled, pending)
            for record in stratum_records(compiled, lambda: self.board):
                self._chain(machine, compiled, self._add(machine, record))
        finally:
            machine.end()
        return machine.name

    def _add(self, machine: Engine, record: Record) -> list[Hit]:
        """A record that engines cannot hold (a name of thousands of characters) is left out and told."""
        try:
            return machine.add(record)
        except RecordError as error:
            self.problems.append(Problem("engine", f"{record.type} {record.id[:80]} was not judged: {error}"))
            return []

    def _prepare(self, rule: Rule) -> None:
        subjects = self._subjects(rule.subject_kind)
        try:
            self.ready[rule.id] = {s: readiness(rule, s, self.facts, self.catalogue) for s in subjects}
        except Exception as error:
            log.debug("rule %s", rule.id, exc_info=True)
            self.errors[rule.id] = f"{type(error).__name__}: {error}"

    def _subjects(self, kind: str) -> Sequence[Subject]:
        return population_of(self.facts, self.catalogue).of_kind(kind)

    def _chain(self, machine: Engine, compiled: Compiled, pending: list[Hit]) -> None:
        """Breadth first: findings of one round are the records of the next."""
        while pending:
            matches = ((self.rules.by_id[name], subject) for name, subject in map(compiled.read, pending))
            batch = self._conclude(matches)
            pending = [hit for finding in batch for hit in self._add(machine, finding_record(finding))]

    def _enter(self, matches: Sequence[Match]) -> list[str]:
        """The verdicts that these matches reach; they stand on the board from now on."""
        return [reached.verdict for reached in self._conclude(matches)]

    def _conclude(self, matches: Iterable[Match]) -> list[Finding | _Untold]:
        """What these matches come to, those seen before left out."""
        batch: list[Finding | _Untold] = []
        for rule, subject in matches:
            if (rule.id, subject) in self.seen:
                continue
            self.seen.add((rule.id, subject))
            reached = self._reached(rule, subject)
            if reached is not None:
                batch.append(reached)
        self.findings += [finding for finding in batch if isinstance(finding, Finding)]
        self.board.extend(batch)
        return batch

    def _reached(self, rule: Rule, subject: Subject) -> Finding | _Untold | None:
        """The finding; None where working it out failed, which is then the rule's outcome."""
        self.told[rule.id] += 1
        if self.told[rule.id] > MOST_FINDINGS:
            return _Untold(rule.id, rule.verdict, subject)
        try:
            return build(Draft(rule, subject), self.facts, self.catalogue, self.rules, self.board)
        except Exception as error:
            log.debug("rule %s", rule.id, exc_info=True)
            self.errors[rule.id] = f"{type(error).__name__}: {error}"
            return None

    def checks(self) -> list[Check]:
        """The outcome of every rule: a rule fails if it reached a verdict about any subject."""
        fired = {f.rule for f in self.findings}
        checks = [replace(self._check(rule, fired), title=rule.title) for rule in self.rules.rules]
        checks += [Check(name, Outcome.ERROR, (), reason) for name, reason in self.rules.broken().items()]
        return sorted(checks, key=lambda check: check.rule)

    def _check(self, rule: Rule, fired: Collection[str]) -> Check:
        if rule.id in self.errors:
            self.problems.append(Problem(str(rule.path), f"rule {rule.id} could not be judged: {self.errors[rule.id]}"))
            return Check(rule.id, Outcome.ERROR, (), self.errors[rule.id])
        if rule.id in fired:
            return Check(rule.id, Outcome.FAIL)
        states = self.ready.get(rule.id, {})
        if any(r.state == "ready" for r in states.values()):
            return Check(rule.id, Outcome.PASS)
        if any(r.state == "not_applicable" for r in states.values()):
            return Check(rule.id, Outcome.NOT_APPLICABLE)
        missing = sorted({name for r in states.values() for name in r.missing} or rule_needs(rule))
        reason = "; ".join(self.facts.absent[name] for name in missing if name in self.facts.absent)
        return Check(rule.id, Outcome.NO_DATA, tuple(missing), reason)


def rule_needs(rule: Rule) -> set[str]:
    """Names of the facts without which the rule has nothing to judge."""
    return {reference.fact for alternatives in rule.required for reference in alternatives}
