"""What a rule refers to outside its own file: verdicts, remedies, the facts its texts tell. Where one is missing, the
rule cannot say what it is there to say, so it is not judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from advisor.basics.errors import RuleError
from advisor.basics.suggest import suggest
from advisor.facts.base import FactKind
from advisor.knowledge.remedy import RemedySpec
from advisor.knowledge.verdicts import verdict_words
from advisor.model import Text
from advisor.ruleset.language.expression import Expr, FactRef
from advisor.ruleset.language.scopes import IDENTITY
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.templates import placeholders
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import Faults, LintError


class References:
    """What rules may refer to. `rules` are all that are judged together."""

    def __init__(
        self, catalogue: Mapping[str, FactKind], remedies: Mapping[str, RemedySpec], rules: Sequence[Rule]
    ) -> None:
        self.catalogue, self.remedies = catalogue, remedies
        self.verdicts = {rule.verdict for rule in rules} | set(verdict_words())
        self.of_rule = {rule.id: rule.verdict for rule in rules}

    def faults_of(self, rule: Rule) -> list[LintError]:
        """Everything the rule refers to that does not exist, and every value its remedies lack."""
        faults = Faults(read_document(rule.path))
        self._verdict(rule, faults)
        for index, use in enumerate(rule.remedies):
            spec, where = self.remedies.get(use.id), ("remedies", index, "id")
            if spec is None:
                hint = f"write {use.id}.yaml in knowledge_base/remedies/ or in the pack's remedies/"
                unknown(faults, where, f"there is no remedy {use.id!r}", use.id, self.remedies, hint)
            else:
                self._values(spec, use.values, where, faults)
        for index, symptom in enumerate(rule.explains):
            self._reachable(("explains", index, "verdict"), symptom.verdict, faults)
            for other in symptom.but:
                if self.of_rule.get(other, symptom.verdict) != symptom.verdict:
                    faults.add(
                        ("explains", index, "but"), f"{other} is about {self.of_rule[other]}, not {symptom.verdict}"
                    )
        for condition in rule.findings():
            for verdict in condition.verdicts:
                self._reachable(("when",), verdict, faults)
        for where, text in texts_of(rule):
            with faults.at(*where):
                for name in sorted(placeholders(text.en) | placeholders(text.zh)):
                    self._placeholder(rule, where, name, faults)
        return faults.found

    def _verdict(self, rule: Rule, faults: Faults) -> None:
        words = verdict_words()
        word = words.get(rule.verdict)
        if word is None:
            if "/" not in rule.verdict:
                hint = "a word of your own has a prefix: acme/…"
                unknown(faults, ("verdict",), f"there is no verdict {rule.verdict!r}", rule.verdict, words, hint)
            return
        if rule.direction.value not in (word.direction, *word.also):
            faults.add(("direction",), f"{rule.verdict} is a matter of {word.direction}")
        if rule.subject_kind not in word.subjects:
            kinds = " or ".join(word.subjects)
            faults.add(("for",), f"{rule.verdict} is about a {kinds}, not a {rule.subject_kind}")

    def _reachable(self, where: tuple[Any, ...], verdict: str, faults: Faults) -> None:
        if verdict not in self.verdicts:
            unknown(faults, where, f"no rule reaches the verdict {verdict!r}", verdict, self.verdicts)

    def _values(self, spec: RemedySpec, values: Mapping[str, Expr], where: tuple[Any, ...], faults: Faults) -> None:
        asked_for: set[str] = set()
        for template in spec.templates():
            try:
                asked_for |= {name.partition(".")[0] for name in placeholders(template)}
            except RuleError:  # told of the remedy's own file
                continue
        areas = {name.partition(".")[0] for name in (*self.catalogue, *IDENTITY)}
        for name in sorted(asked_for - areas - set(values) - {"param"}):
            faults.add(where, f"the remedy {spec.id} needs the value {name}", f"values: {{{name}: …}}")

    def _placeholder(self, rule: Rule, where: tuple[Any, ...], name: str, faults: Faults) -> None:
        first, _, rest = name.partition(".")
        if name in rule.let or (first == "param" and rest in rule.params) or first == "subject":
            return
        with faults.at(*where):
            rule.dimensions(self.catalogue).unit(FactRef(name))


def texts_of(rule: Rule) -> Iterator[tuple[tuple[Any, ...], Text]]:
    """The rule's texts, each with its place in the file."""
    yield from ((("title",), rule.title), (("message",), rule.message))
    yield from ((("doubts", index, "because"), doubt.because) for index, doubt in enumerate(rule.doubts))
    if rule.saving is not None:
        yield ("saving", "basis"), rule.saving.basis


def unknown(
    faults: Faults, where: tuple[Any, ...], message: str, word: str, words: Collection[str], hint: str = ""
) -> None:
    """Notes a word that is none of these, with the nearest one that is."""
    near = suggest(word, list(words))
    faults.add(where, message, f"did you mean {near[0]}?" if near else hint)
