"""How long judging takes: `python benchmarks/rules.py` writes 500 rules, loads them and judges 10,000 facts.

Processor seconds of one run each. The rules are of five forms (threshold, peers, alternatives, arithmetic, verdict);
every tenth is a cause that explains what others find. The share of subjects at fault decides how much is found.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from advisor.engine.judge import Verdicts, decide
from advisor.facts.base import FactSet
from advisor.facts.registry import catalogue
from advisor.model import RUN, Fact, Subject
from advisor.ruleset.files.loader import RuleSet, load_rules

WHENS = (
    "{fact} > $limit",
    "{fact} > $limit and deviation({fact}) > 0.5",
    "any: [{fact} > $limit, {fact} > $limit * 2]",
    "{fact} * 0.99 > $limit",
    "all: [{fact} > $limit, {{finding: acme/v{before}, on: same}}]",
)


def names() -> list[str]:
    """Five measured facts of a rank that hold microseconds."""
    kinds = [kind.name for kind in catalogue().values() if "rank" in kind.scopes and kind.unit == "us"]
    return sorted(kinds)[:10]


def write_rules(folder: Path, count: int) -> None:
    """Rule files R000, R001, …; all are about ranks."""
    facts = names()
    for n in range(count):
        when = WHENS[n % len(WHENS)].format(fact=facts[n % len(facts)], before=n - 1)
        when = when if when.startswith(("any:", "all:")) else f"['{when}']"
        when = when if when.startswith("[") else "{" + when + "}"
        explains = f"explains: [{{verdict: acme/v{n + 1}, on: same}}]\n" if n % 10 == 0 else ""
        (folder / f"R{n:03}-made.yaml").write_text(
            f"id: R{n:03}\ntitle: {{en: rule {n}}}\nverdict: acme/v{n}\ndirection: computation\n"
            f"kind: {'cause' if n % 10 == 0 else 'symptom'}\nfor: rank\n"
            f"params: {{limit: {{value: 9e4, unit: us, origin: made up}}}}\nneeds: [{facts[n % len(facts)]}]\n"
            f"when: {when}\nseverity: {{by: {facts[n % len(facts)]}, medium: $limit}}\n{explains}"
            f"message: {{en: '{{{{ subject.id }}}} has {{{{ {facts[n % len(facts)]} }}}}'}}\n",
            encoding="utf-8",
        )


def make_facts(ranks: int, share: float) -> FactSet:
    """Ten facts of each rank; this share of the ranks is above every limit."""
    random = Random(1)
    facts = FactSet([Fact("step.time_us", RUN, 1e5)])
    for rank in range(ranks):
        subject = Subject("rank", str(rank), (rank,))
        slow = random.random() < share
        for name in names():
            facts.add(Fact(name, subject, 95_000.0 + random.random() if slow else 50_000.0 + random.random()))
    return facts


def judge(rules: RuleSet, facts: FactSet, engine: str) -> tuple[Verdicts, float]:
    start = time.process_time()
    verdicts = decide(rules, facts, engine=engine)
    return verdicts, time.process_time() - start


def main(count: int = 500, ranks: int = 1000) -> None:
    with TemporaryDirectory() as folder:
        write_rules(Path(folder), count)
        start = time.process_time()
        rules = load_rules([Path(folder)])
        print(f"{len(rules.rules)} rules loaded in {time.process_time() - start:.1f} s")
    print(f"{'slow ranks':>11}{'facts':>8}{'engine':>9}{'findings':>10}{'seconds':>9}")
    for share in (0.0, 0.01, 0.1, 0.5):
        facts = make_facts(ranks, share)
        for engine in ("durable", "python"):
            verdicts, seconds = judge(rules, facts, engine)
            print(f"{share:11.0%}{len(facts):8}{verdicts.engine:>9}{len(verdicts.findings):10}{seconds:9.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
