"""Facts from what our training writes itself: speed (train.log), the job (job.json), loads of experts (experts.csv)."""

import csv
import json
import re
from collections import defaultdict
from statistics import median

from advisor.facts.extractors import Extractor, fact, kind

SPEED = re.compile(r"step[ =](\d+).*?tokens/s[ =]([0-9.]+)")
WARM_UP = 2
"""Steps at the beginning of a log that compile."""

KINDS = (
    kind("acme.tokens_per_s", "per_s", "run", "tokens per second of the whole job", formula="median over steps"),
    kind("acme.mfu", "ratio", "run", "model FLOPs utilisation",
         formula="tokens per second × FLOPs per token ÷ (devices × peak)"),
    kind("acme.expert_tokens", "count", "rank", "tokens that the router sent to the experts of this rank"),
)  # fmt: skip


def measure(context):
    speed, log = None, None
    for log in context.files("**/train.log")[:1]:
        found = {int(step): float(rate) for step, rate in SPEED.findall(log.read_text(encoding="utf-8"))}
        rates = [found[step] for step in sorted(found)[WARM_UP:]]
        if rates:
            speed = median(rates)
            yield fact("acme.tokens_per_s", context.run, speed, context.source(log, "tokens/s"), samples=len(rates))
    for path in context.files("**/job.json")[:1]:
        job = json.loads(path.read_text(encoding="utf-8"))
        peak = job["devices"] * job["peak_flop_per_s"]
        if speed and peak > 0:
            sources = context.source(log, "tokens/s"), context.source(path, "flop_per_token", "peak_flop_per_s")
            yield fact("acme.mfu", context.run, speed * job["flop_per_token"] / peak, *sources)
    for path in context.files("**/experts.csv")[:1]:
        tokens = defaultdict(int)
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                tokens[int(row["rank"])] += int(row["tokens"])
        for rank, count in sorted(tokens.items()):
            yield fact("acme.expert_tokens", context.rank(rank), count, context.source(path, "tokens"))


EXTRACTOR = Extractor("acme", KINDS, measure)
