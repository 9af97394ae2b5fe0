"""How long durable-rules takes to match: `python benchmarks/engine.py`. CPU seconds, best of three."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from advisor.engine.matching.base import CompiledRule, Engine, Join, Pattern, Record, Test
from advisor.engine.matching.durable import DurableEngine

Case = tuple[list[CompiledRule], list[Record]]


def build_filters(rules: int, records: int, share: float) -> Case:
    """Rules `kind == k and f > threshold` over records of twenty fields; each fires on about `share` of its kind."""
    random = Random(1)
    made = [
        CompiledRule(
            f"R{n}",
            (Pattern("r", "rank", (Test("kind", "==", f"k{n % 10}"), Test(f"step.f{n % 20}", ">", 1 - share))),),
        )
        for n in range(rules)
    ]
    fields = [{f"step.f{k}": random.random() for k in range(20)} for _ in range(records)]
    return made, [Record(f"r{n}", "rank", {"kind": f"k{n % 10}", **values}) for n, values in enumerate(fields)]


def build_thresholds(rules: int, records: int) -> Case:
    """Rules of one ordering test each, all on one type: no equality to sort by; one in a hundred fires."""
    random = Random(2)
    made = [CompiledRule(f"R{n}", (Pattern("r", "rank", (Test(f"f{n % 20}", ">", 0.99),)),)) for n in range(rules)]
    return made, [Record(f"r{n}", "rank", {f"f{k}": random.random() for k in range(20)}) for n in range(records)]


def build_joins(rules: int, hosts: int, ranks: int) -> Case:
    """Rules `rank.host == host.name and rank.wait > host.limit`: each rank meets one host; half of them fire."""
    random = Random(3)
    joins = (Join("host", "==", "h", "name"), Join("wait", ">", "h", "limit"))
    made = [CompiledRule(f"R{n}", (Pattern("h", "host"), Pattern("r", "rank", (), joins))) for n in range(rules)]
    records = [Record(f"h{n}", "host", {"name": f"n{n}", "limit": 0.5}) for n in range(hosts)]
    records += [Record(f"r{n}", "rank", {"host": f"n{n % hosts}", "wait": random.random()}) for n in range(ranks)]
    return made, records


def build_statistics(rules: int, ranks: int) -> Case:
    """Rules `rank.wait > run.limit`: ranks against one record of the run; one in a hundred fires. The numerous type
    comes first: durable-rules scans all earlier facts of a later pattern that no equality sorts."""
    random = Random(4)
    join = (Join("limit", "<", "r", "wait"),)
    made = [CompiledRule(f"R{n}", (Pattern("r", "rank"), Pattern("c", "run", (), join))) for n in range(rules)]
    ranked = [Record(f"r{n}", "rank", {"wait": random.random()}) for n in range(ranks)]
    return made, [Record("run", "run", {"limit": 0.99}), *ranked]


CASES: dict[str, Callable[[], Case]] = {
    "500 rules x 10,000 records, 1 in 1,000 tests fires": lambda: build_filters(500, 10_000, 0.01),
    "500 rules x 10,000 records, 1 in 100 fires": lambda: build_filters(500, 10_000, 0.1),
    "500 rules x 10,000 records, thresholds only": lambda: build_thresholds(500, 10_000),
    "10 rules, equality join 1,000 x 1,000": lambda: build_joins(10, 1_000, 1_000),
    "50 rules, equality join 1,250 x 10,000": lambda: build_joins(50, 1_250, 10_000),
    "50 rules, 10,000 records against one": lambda: build_statistics(50, 10_000),
}


def measure(engine: Engine, records: list[Record]) -> tuple[int, float]:
    """Hits of one run and the CPU seconds it took."""
    start = time.process_time()
    engine.begin()
    hits = sum(len(engine.add(record)) for record in records)
    engine.end()
    return hits, time.process_time() - start


def main() -> None:
    print(f"{'case':55}{'hits':>9}{'durable':>10}")
    for title, build in CASES.items():
        rules, records = build()
        engine = DurableEngine(rules, max_hits=10**9)
        runs = [measure(engine, records) for _ in range(3)]
        print(f"{title:55}{runs[0][0]:9}{min(seconds for _, seconds in runs):9.3f}s")


if __name__ == "__main__":
    main()
