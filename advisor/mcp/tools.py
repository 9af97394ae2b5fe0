"""What agents may ask: each tool a method that takes JSON and gives JSON, as the contract spells it."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from advisor.basics.errors import UsageError
from advisor.facts.registry import catalogue
from advisor.knowledge.statements import statements
from advisor.mcp.pages import cut, page
from advisor.mcp.places import Root, State, state_of
from advisor.model import Report
from advisor.ruleset.files.loader import RuleSet
from advisor.ruleset.rule import Rule

KEPT = 8
"""Reports, measurements and explanations of the session; older ones are made again."""
PROBLEMS_SHOWN = 8
SCHEME = "advisor://"
T = TypeVar("T")
_REPORT = "report"


class Tools:
    """The tools over one root, with what they have already read."""

    def __init__(
        self,
        root: Root,
        config: str | None = None,
        directories: Sequence[str] = (),
        allowed: Sequence[str] = (),
        jobs: int = 1,
    ) -> None:
        self.root, self._config, self._directories = root, config, tuple(directories)
        self._allowed, self._jobs = tuple(allowed), jobs
        self._rules: dict[str, RuleSet] = {}
        self._kept: OrderedDict[tuple[str, str, State], Any] = OrderedDict()

    def advise(self, path: str, offset: int = 0, limit: int = 5) -> dict[str, Any]:
        from advisor.exchange import report_to_json

        report = self._report(path)
        document = report_to_json(report, facts="none")
        return {
            **{name: document[name] for name in ("schema_version", "profile", "summary")},
            **page(document["findings"], offset, limit, "findings"),
            "missing_evidence": document["missing_evidence"][:PROBLEMS_SHOWN],
            "problems": document["problems"][:PROBLEMS_SHOWN],
            "report": f"{SCHEME}report/{self._name(path)}",
        }

    def explain(self, rule: str, path: str = "", offset: int = 0, limit: int = 5) -> dict[str, Any]:
        from advisor.inspection.explain import explain

        where = self.root.find(path) if path else None

        def make() -> dict[str, Any]:
            profile = [str(where)] if where else []
            told: dict[str, Any] = json.loads(explain(rule, profile, self._rules_for(profile), "json", "en"))
            told["rule"].pop("file", None)
            return told

        if where is None:
            return make()
        told = self._once(f"explain {rule}", where, make)
        judged = {**told["profile"], "path": path}
        judged.update(page(judged.pop("subjects"), offset, limit, "subjects"))
        return {**told, "profile": judged}

    def facts(self, path: str, prefix: str = "", subject: str = "", offset: int = 0, limit: int = 40) -> dict[str, Any]:
        from advisor.pipeline import Options, measure
        from advisor.plain import to_plain

        names = [name for name in catalogue() if name.startswith(prefix)]
        if not names:
            raise UsageError(f"no fact begins with {prefix!r}", hint="step., run., operators., communication., …")
        kinds = catalogue()
        where = self.root.find(path)
        measured = self._once(f"facts {prefix}", where, lambda: measure([where], names, Options(jobs=self._jobs)).facts)
        rows = [
            {**to_plain(fact), "unit": kinds[fact.name].unit}
            for fact in measured
            if fact.name.startswith(prefix) and (not subject or fact.subject.kind == subject)
        ]
        return page(rows, offset, limit, "facts")

    def compare(
        self, before: str, after: str, part: str = "findings", offset: int = 0, limit: int = 20
    ) -> dict[str, Any]:
        from advisor.compare import compare
        from advisor.render import render

        document = json.loads(render(compare(self._report(before), self._report(after)), "json"))
        head = {name: document[name] for name in ("comparable", "outcome", "headline", "obstacles")}
        return {**head, **page(document[part], offset, limit, part)}

    def whatif(self, path: str, without: list[str]) -> dict[str, Any]:
        from advisor.basics.errors import NoVerdict
        from advisor.pipeline import Options, repair
        from advisor.render.report.whatif import render_whatif_json

        where = str(self.root.find(path))
        repaired = repair([where], without, self._rules_for([where]), Options(jobs=self._jobs))
        if repaired is None:
            raise NoVerdict("no finding of this profile says what a step gains without it", place=path)
        return dict(json.loads(render_whatif_json(repaired)))

    def doctor(self, path: str, offset: int = 0, limit: int = 8) -> dict[str, Any]:
        from advisor.inspection.doctor import examine

        where = str(self.root.find(path))
        told = examine([where], self._rules_for([where]))
        missing = [{**vars(each), "rules": list(each.rules)} for each in told.missing]
        return {
            "path": path, "recognised": told.recognised, "layout": told.layout, "framework": told.framework,
            "world_size": told.world_size, "missing": missing,
            "problems": told.problems[:PROBLEMS_SHOWN], **page(told.ranks, offset, limit, "ranks"),
        }  # fmt: skip

    def rules_search(self, query: str = "", offset: int = 0, limit: int = 20) -> dict[str, Any]:
        words = query.casefold().split()
        rows = [
            {
                "id": rule.id, "verdict": rule.verdict, "direction": rule.direction.value, "for": rule.subject_kind,
                "title": {"en": rule.title.en, "zh": rule.title.zh}, "statements": list(rule.statements),
            }
            for rule in self._rules_for([]).rules
            if all(word in _searched(rule) for word in words)
        ]  # fmt: skip
        return page(rows, offset, limit, "rules")

    def resource(self, uri: str) -> tuple[str, str]:
        """(text, media type) of a resource. Raises UsageError where there is none."""
        kind, _, name = uri.removeprefix(SCHEME).partition("/")
        if uri.startswith(SCHEME) and kind == "report" and name:
            from advisor.render import render

            return cut(render(self._report(name), "markdown", "en")), "text/markdown"
        if uri.startswith(SCHEME) and kind == "statement" and name in statements():
            from msgspec.structs import asdict

            found = statements()[name]
            document = asdict(found) | {"text": {"en": found.text.en, "zh": found.text.zh}}
            return json.dumps(document, ensure_ascii=False, indent=1, default=list), "application/json"
        if uri.startswith(SCHEME) and kind == "remedy" and name in (known := self._rules_for([]).remedies):
            spec = known[name]
            told = {
                "id": spec.id, "title": vars(spec.title), "action": vars(spec.action), "effort": spec.effort,
                "parameter": dict(spec.parameter), "statements": list(spec.statements),
                "risk": vars(spec.risk) if spec.risk else None, "snippet": dict(spec.snippet),
            }  # fmt: skip
            return json.dumps(told, ensure_ascii=False, indent=1, default=str), "application/json"
        raise UsageError(
            "there is no such resource", place=uri, hint="advisor://report/PROFILE, …statement/S01, …remedy/ID"
        )

    def resources(self) -> list[tuple[str, str, str]]:
        """(uri, name, media type) of everything that can be read without another question."""
        reports = [(f"{SCHEME}report/{name}", name, "text/markdown") for kind, name, _ in self._kept if kind == _REPORT]
        told = [(f"{SCHEME}statement/{each}", each, "application/json") for each in statements()]
        known = sorted(self._rules_for([]).remedies)
        return [*reports, *told, *((f"{SCHEME}remedy/{each}", each, "application/json") for each in known)]

    def _name(self, path: str) -> str:
        return self._named(self.root.find(path))

    def _named(self, where: Path) -> str:
        return where.relative_to(self.root.folder).as_posix()

    def _report(self, path: str) -> Report:
        """The report on a profile, or the saved one of a file."""
        from advisor.compare import read_report
        from advisor.pipeline import Options, advise

        where = self.root.find(path)

        def make() -> Report:
            rules, options = self._rules_for([str(where)]), Options(jobs=self._jobs)
            saved = where.suffix == ".json"
            return read_report(str(where), rules, options) if saved else advise([str(where)], rules, options)

        return self._once(_REPORT, where, make)

    def _once(self, kind: str, where: Path, make: Callable[[], T]) -> T:
        """What was made of a profile before, while nothing in it changes: following pages cost no second look."""
        key = (kind, self._named(where), state_of(where))
        if key not in self._kept:
            self._kept[key] = make()
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        made: T = self._kept[key]
        return made

    def _rules_for(self, profiles: Sequence[str]) -> RuleSet:
        """The rules in force for these data; a configuration that lies with them is set aside as everywhere."""
        from msgspec.structs import replace

        from advisor.facts.extractors import load_extractors
        from advisor.ruleset.files.loader import load_rules
        from advisor.trust import settle

        settled = settle(self._config, profiles, self._allowed)
        key = repr(settled)
        if key not in self._rules:
            warnings = load_extractors(settled.config.extractors)
            config = settled.config.with_options(rules=map(Path, self._directories))
            rules = load_rules(config=config, catalogue=catalogue(), strict=False)
            self._rules[key] = replace(rules, errors=(*rules.errors, *warnings), notes=settled.notes)
        return self._rules[key]


def _searched(rule: Rule) -> str:
    texts = [statements()[name].text for name in rule.statements if name in statements()]
    parts = [rule.id, rule.verdict, rule.direction.value, rule.subject_kind, rule.title.en, rule.title.zh]
    return " ".join([*parts, *(text.en for text in texts), *(text.zh for text in texts)]).casefold()
